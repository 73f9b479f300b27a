/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See visit.h.  Filled in by convert.c, moved by unit.c.
 */
#include "shim/visit.h"

#include <stdlib.h>
#include <string.h>

bool visits_init(struct visits *v, uint32_t nr_units, uint32_t max_visits,
	uint32_t max_uses)
{
	memset(v, 0, sizeof(*v));
	v->here = VISIT_NONE;
	v->at = calloc((size_t)max_visits + 1, sizeof(*v->at));
	v->uses = calloc((size_t)max_uses + 1, sizeof(*v->uses));
	v->units = calloc((size_t)nr_units + 1, sizeof(*v->units));
	if (v->at == NULL || v->uses == NULL || v->units == NULL) {
		visits_fini(v);
		return false;
	}
	v->nr_units = nr_units;
	for (uint32_t i = 0; i < nr_units; i++)
		v->units[i].first = VISIT_NONE;
	return true;
}

void visits_fini(struct visits *v)
{
	free(v->at);
	free(v->uses);
	free(v->units);
	memset(v, 0, sizeof(*v));
}

void visits_add(struct visits *v, uint32_t layer)
{
	v->at[v->nr++] = (struct visit){ .layer = layer, .first = v->nr_uses };
}

void visits_add_use(struct visits *v, uint32_t unit)
{
	v->uses[v->nr_uses++].unit = unit;
	v->at[v->nr - 1].nr++;
}

bool visits_has(const struct visits *v, uint32_t visit, uint32_t unit)
{
	const struct visit *at = &v->at[visit];

	for (uint32_t i = 0; i < at->nr; i++)
		if (v->uses[at->first + i].unit == unit)
			return true;
	return false;
}

/* Neither is empty, and no unit is twice in one. */
static bool same(const struct visits *v, uint32_t a, uint32_t b)
{
	if (a == b || v->at[a].nr != v->at[b].nr)
		return false;
	for (uint32_t i = 0; i < v->at[a].nr; i++)
		if (!visits_has(v, b, v->uses[v->at[a].first + i].unit))
			return false;
	return true;
}

void visits_close(struct visits *v)
{
	uint32_t nr = 0, uses = 0;

	for (uint32_t i = 0; i < v->nr; i++) {
		struct visit at = v->at[i];

		if (at.nr == 0 || (nr > 0 && same(v, i, nr - 1)))
			continue;
		memmove(&v->uses[uses], &v->uses[at.first],
			at.nr * sizeof(*v->uses));
		at.first = uses;
		uses += at.nr;
		v->at[nr++] = at;
	}
	if (nr > 1 && same(v, 0, nr - 1))
		uses -= v->at[--nr].nr;
	v->nr = nr;
	v->nr_uses = uses;
	/* Backwards: each finds the one after it, and the last the first. */
	for (uint32_t i = nr; i-- > 0; )
		for (uint32_t k = 0; k < v->at[i].nr; k++) {
			uint32_t use = v->at[i].first + k;
			struct visit_unit *u = &v->units[v->uses[use].unit];

			v->uses[use].visit = i;
			v->uses[use].next = u->first;
			if (u->first == VISIT_NONE)
				u->use = use;
			u->first = use;
		}
	for (uint32_t i = 0; i < v->nr_units; i++) {
		struct visit_unit *u = &v->units[i];

		if (u->first == VISIT_NONE)
			continue;
		v->uses[u->use].next = u->first;
		u->use = u->first;
	}
}

/* ---- questions ---- */

uint32_t visits_from(const struct visits *v)
{
	const struct visit *at;

	if (v->here == VISIT_NONE)
		return 0;
	at = &v->at[v->here];
	for (uint32_t i = 0; i < at->nr; i++)
		if (!v->units[v->uses[at->first + i].unit].done)
			return v->here;
	return (v->here + 1) % v->nr;
}

/* The unit's next use, counted from a visit on; *distance to it. */
static uint32_t use_from(const struct visits *v, uint32_t unit, uint32_t from,
	uint32_t *distance)
{
	uint32_t first = v->units[unit].first, use = first, best = first, d;

	*distance = v->nr;
	do {
		d = (v->uses[use].visit + v->nr - from) % v->nr;
		if (d < *distance) {
			*distance = d;
			best = use;
		}
		use = v->uses[use].next;
	} while (use != first);
	return best;
}

uint32_t visits_distance(const struct visits *v, uint32_t unit)
{
	uint32_t d;

	if (v->here == VISIT_NONE) {
		use_from(v, unit, 0, &d);
		return d;
	}
	use_from(v, unit, v->here, &d);
	if (d > 0 || !v->units[unit].done)
		return d;
	use_from(v, unit, (v->here + 1) % v->nr, &d);
	return d + 1;
}

/* Whether the visit under way has all that another one uses. */
static bool covered(const struct visits *v, uint32_t visit)
{
	const struct visit *at = &v->at[visit];

	for (uint32_t i = 0; i < at->nr; i++)
		if (!visits_has(v, v->here, v->uses[at->first + i].unit))
			return false;
	return true;
}

bool visits_in_order(const struct visits *v, uint32_t unit)
{
	uint32_t distance;

	if (v->here == VISIT_NONE)
		return true;
	distance = visits_distance(v, unit);
	/* Nobody notices a visit to units that are open anyway. */
	for (uint32_t i = 1; i < distance; i++)
		if (!covered(v, (v->here + i) % v->nr))
			return false;
	return true;
}

/* ---- the program moves ---- */

enum visit_move visits_arrive(struct visits *v, uint32_t unit)
{
	uint32_t from = v->here, d;

	if (v->here != VISIT_NONE && visits_distance(v, unit) == 0)
		return VISIT_STAYS;
	/* More launches than were expected, unless the next one uses it, too. */
	if (v->here != VISIT_NONE && visits_has(v, v->here, unit) &&
	    (v->nr == 1 || visits_distance(v, unit) != 1)) {
		v->units[unit].done = false;
		return v->nr == 1 ? VISIT_ROUND : VISIT_STAYS;
	}
	for (uint32_t i = 0; from != VISIT_NONE && i < v->at[from].nr; i++)
		v->units[v->uses[v->at[from].first + i].unit].entered = false;
	from = from == VISIT_NONE ? 0 : (from + 1) % v->nr;
	v->here = v->uses[use_from(v, unit, from, &d)].visit;
	for (uint32_t i = 0; i < v->at[v->here].nr; i++)
		v->units[v->uses[v->at[v->here].first + i].unit].done = false;
	return v->here == 0 ? VISIT_ROUND : VISIT_MOVES;
}

bool visits_entered(const struct visits *v, uint32_t unit)
{
	const struct visit_unit *u = &v->units[unit];

	return u->entered && v->uses[u->use].visit == v->here;
}

uint32_t visits_turn(struct visits *v, uint32_t unit, uint32_t launches)
{
	struct visit_unit *u = &v->units[unit];
	struct visit_use *use = &v->uses[u->use];
	uint32_t d;

	if (launches > 0) {
		use->before = use->last;
		use->last = launches;
	}
	u->use = use_from(v, unit, v->here, &d);
	u->entered = true;
	use = &v->uses[u->use];
	return use->last == use->before ? use->last : 0;
}

bool visits_done(struct visits *v, uint32_t unit)
{
	struct visit_unit *u = &v->units[unit];

	if (v->here == VISIT_NONE || u->done ||
	    !visits_has(v, v->here, unit))
		return false;
	u->done = true;
	u->entered = false;
	return true;
}
