/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of weights and functions, each with a number.  Called by observe.c,
 * whose owner serialises the calls.
 */
#include "shim/observe_int.h"

#include <stdlib.h>
#include <string.h>

/* More kernels than any program has; those beyond it have no name. */
#define MAX_FUNCTIONS 65536
#define MAX_NAME 63

uint64_t observe_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

bool observe_grow(void **array, uint32_t *room, uint32_t nr, size_t size)
{
	uint32_t want = *room < 32 ? 64 : *room * 2;
	void *grown;

	if (nr < *room)
		return true;
	if (want <= *room)
		return false;
	grown = realloc(*array, want * size);
	if (!grown)
		return false;
	*array = grown;
	*room = want;
	return true;
}

/* ---- tables ---- */

uint32_t observe_table_next(const struct observe_table *t, uint64_t hash,
	uint32_t *pos)
{
	while (t->room != 0) {
		const struct observe_slot *s =
			&t->slots[((uint32_t)hash + *pos) & (t->room - 1)];

		if (s->index == OBSERVE_NONE)
			break;
		++*pos;
		if (s->hash == hash)
			return s->index;
	}
	return OBSERVE_NONE;
}

static void table_put(struct observe_table *t, uint64_t hash, uint32_t index)
{
	uint32_t at = (uint32_t)hash & (t->room - 1);

	while (t->slots[at].index != OBSERVE_NONE)
		at = (at + 1) & (t->room - 1);
	t->slots[at].hash = hash;
	t->slots[at].index = index;
}

/* Never more than half full, so that every look-up ends. */
static bool table_add(struct observe_table *t, uint64_t hash, uint32_t index)
{
	struct observe_table grown = *t;

	if (2 * (t->nr + 1) > t->room) {
		grown.room = t->room ? t->room * 2 : 128;
		grown.slots = malloc(grown.room * sizeof(*grown.slots));
		if (!grown.slots)
			return false;
		for (uint32_t i = 0; i < grown.room; i++)
			grown.slots[i].index = OBSERVE_NONE;
		for (uint32_t i = 0; i < t->room; i++)
			if (t->slots[i].index != OBSERVE_NONE)
				table_put(&grown, t->slots[i].hash,
					t->slots[i].index);
		free(t->slots);
		*t = grown;
	}
	table_put(t, hash, index);
	t->nr++;
	return true;
}

static void table_clear(struct observe_table *t)
{
	free(t->slots);
	memset(t, 0, sizeof(*t));
}

/* ---- sets ---- */

bool observe_set_is(const struct observer *o, uint32_t set,
	const struct page_range *weights, uint32_t nr)
{
	const struct observe_set *s = &o->sets[set];

	return s->nr == nr && memcmp(&o->ranges[s->first], weights,
		nr * sizeof(*weights)) == 0;
}

uint32_t observe_set_find(const struct observer *o,
	const struct page_range *weights, uint32_t nr, uint64_t *hash)
{
	uint64_t h = nr;
	uint32_t pos = 0, set;

	for (uint32_t i = 0; i < nr; i++)
		h = observe_mix(h ^ ((uint64_t)weights[i].first << 32 |
			weights[i].nr));
	*hash = h;
	do {
		set = observe_table_next(&o->set_table, h, &pos);
	} while (set != OBSERVE_NONE && !observe_set_is(o, set, weights, nr));
	return set;
}

uint32_t observe_set_add(struct observer *o, const struct page_range *weights,
	uint32_t nr, uint64_t hash)
{
	struct observe_set *s;

	if (!observe_grow((void **)&o->sets, &o->room_sets, o->nr_sets,
			sizeof(*o->sets)))
		return OBSERVE_NONE;
	if (nr > UINT32_MAX / 4 - o->nr_ranges)
		return OBSERVE_NONE;
	while (o->room_ranges < o->nr_ranges + nr)
		if (!observe_grow((void **)&o->ranges, &o->room_ranges,
				o->room_ranges, sizeof(*o->ranges)))
			return OBSERVE_NONE;
	if (!table_add(&o->set_table, hash, o->nr_sets))
		return OBSERVE_NONE;
	s = &o->sets[o->nr_sets];
	memset(s, 0, sizeof(*s));
	s->first = o->nr_ranges;
	s->nr = nr;
	for (uint32_t i = 0; i < nr; i++)
		s->pages += weights[i].nr;
	memcpy(&o->ranges[s->first], weights, nr * sizeof(*weights));
	o->nr_ranges += nr;
	return o->nr_sets++;
}

void observe_sets_clear(struct observer *o)
{
	table_clear(&o->set_table);
	free(o->sets);
	free(o->ranges);
	o->sets = NULL;
	o->ranges = NULL;
	o->nr_sets = o->room_sets = o->nr_ranges = o->room_ranges = 0;
}

/* ---- functions ---- */

/* Of a mangled C++ name the qualified name alone, without its arguments. */
static void plain_name(char *to, const char *name)
{
	bool nested;
	size_t len = 0, n;
	const char *p = name + 2;
	char *end;

	if (strncmp(name, "_Z", 2) == 0) {
		nested = *p == 'N';
		for (p += nested; *p >= '1' && *p <= '9'; p = end + n) {
			n = strtoul(p, &end, 10);
			if (n > strlen(end) || len + 2 + n > MAX_NAME)
				break;
			if (len != 0) {
				memcpy(to + len, "::", 2);
				len += 2;
			}
			memcpy(to + len, end, n);
			len += n;
			if (!nested)
				break;
		}
	}
	if (len == 0) {
		len = strnlen(name, MAX_NAME);
		memcpy(to, name, len);
	}
	to[len] = 0;
}

uint32_t observe_function(struct observer *o, uint64_t key, const char *name)
{
	/* Different for different keys, so equal means the same function. */
	uint64_t hash = observe_mix(key);
	uint32_t pos = 0, nr = o->nr_functions;
	uint32_t f = observe_table_next(&o->function_table, hash, &pos);
	char plain[MAX_NAME + 1];

	if (f != OBSERVE_NONE || nr == MAX_FUNCTIONS)
		return f;
	if (!observe_grow((void **)&o->functions, &o->room_functions, nr,
			sizeof(*o->functions)))
		return OBSERVE_NONE;
	o->functions[nr].name = NULL;
	if (name && *name) {
		plain_name(plain, name);
		o->functions[nr].name = strdup(plain);
	}
	if (!table_add(&o->function_table, hash, nr)) {
		free(o->functions[nr].name);
		return OBSERVE_NONE;
	}
	return o->nr_functions++;
}

void observe_functions_clear(struct observer *o)
{
	for (uint32_t i = 0; i < o->nr_functions; i++)
		free(o->functions[i].name);
	free(o->functions);
	table_clear(&o->function_table);
	o->functions = NULL;
	o->nr_functions = o->room_functions = 0;
}
