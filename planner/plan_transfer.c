/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to a plan before it is carried out: transfers moved to layers
 * that have none, what must be loaded before the first iteration, and the memory
 * that a loader without blocks needs.  Called by the tools and the library.
 */
#include "planner/plan_int.h"

#include <stdlib.h>
#include <string.h>

#define NEVER UINT32_MAX

/* The last compute of this block before the slot; NEVER if there is none. */
static uint32_t last_use(const struct plan_transfer *t, uint32_t nr,
	const struct plan_transfer *of)
{
	uint32_t last = NEVER;

	for (uint32_t k = 0; k < nr; k++)
		if (t[k].block == of->block && t[k].compute < of->slot &&
		    (last == NEVER || t[k].compute > last))
			last = t[k].compute;
	return last;
}

static uint32_t lead(uint32_t slot, uint32_t compute, uint32_t nr_layers)
{
	return slot < compute ? compute - slot : nr_layers - slot + compute;
}

static bool allowed(uint32_t slot, uint32_t compute, uint32_t last,
	uint32_t gap)
{
	uint64_t first;

	if (last == NEVER)
		return slot < compute;
	first = (uint64_t)last + gap;
	if (compute < first)
		return slot < compute || slot >= first;
	return slot >= first && slot < compute;
}

static void move_earlier(struct plan_transfer *t, uint32_t nr,
	uint32_t nr_layers, uint32_t gap, bool *is_slot,
	struct plan_transfer *one)
{
	uint32_t last = last_use(t, nr, one), best = one->slot;
	uint32_t most = lead(one->slot, one->compute, nr_layers);
	uint32_t i, n;

	for (i = 0; i < nr_layers; i++) {
		if ((is_slot[i] && i != one->slot) ||
		    (i != one->slot && !allowed(i, one->compute, last, gap)))
			continue;
		n = lead(i, one->compute, nr_layers);
		if (n > most || (n == most && i < best)) {
			most = n;
			best = i;
		}
	}
	is_slot[one->slot] = false;
	is_slot[best] = true;
	one->slot = best;
}

/*
 * Each block holds one transfer at a time, from its slot through its compute;
 * owner[] is scratch of nr_layers.
 */
static bool disjoint(const struct plan_transfer *t, uint32_t nr,
	uint32_t nr_layers, uint32_t *owner)
{
	for (uint32_t k = 0; k < nr; k++) {
		bool first = t[k].block != PLAN_NONE;

		for (uint32_t j = 0; j < k && first; j++)
			first = t[j].block != t[k].block;
		if (!first)
			continue;
		memset(owner, 0xff, nr_layers * sizeof(*owner));
		for (uint32_t j = k; j < nr; j++) {
			uint32_t at = t[j].slot;

			if (t[j].block != t[k].block)
				continue;
			for (;;) {
				if (owner[at] != PLAN_NONE)
					return false;
				owner[at] = j;
				if (at == t[j].compute)
					break;
				at = at + 1 < nr_layers ? at + 1 : 0;
			}
		}
	}
	return true;
}

enum plan_status rearrange_transfers(struct plan_transfer *transfers,
	uint32_t nr, uint32_t nr_layers, uint32_t gap, uint32_t *moved)
{
	struct plan_transfer *t;
	enum plan_status err = PLAN_NO_MEMORY;
	uint32_t *owner;
	bool *is_slot;

	if (!nr || !nr_layers)
		return PLAN_OK;
	for (uint32_t k = 0; k < nr; k++)
		if (transfers[k].slot >= nr_layers ||
		    transfers[k].compute >= nr_layers)
			return PLAN_BAD_PLAN;
	t = malloc(nr * sizeof(*t));
	is_slot = calloc(nr_layers, sizeof(*is_slot));
	owner = malloc(nr_layers * sizeof(*owner));
	if (t && is_slot && owner) {
		memcpy(t, transfers, nr * sizeof(*t));
		for (uint32_t k = 0; k < nr; k++)
			is_slot[t[k].slot] = true;
		for (uint32_t k = 0; k < nr; k++)
			if (t[k].block != PLAN_NONE)
				move_earlier(t, nr, nr_layers, gap, is_slot,
					&t[k]);
		err = disjoint(t, nr, nr_layers, owner) ? PLAN_OK :
			PLAN_CONFLICT;
	}
	for (uint32_t k = 0; k < nr && !err; k++) {
		if (moved)
			moved[k] = transfers[k].slot;
		transfers[k] = t[k];
	}
	free(t);
	free(is_slot);
	free(owner);
	return err;
}

uint32_t find_transfers_for_preload(const struct plan_transfer *transfers,
	uint32_t nr, uint32_t *preload)
{
	uint32_t found = 0;

	for (uint32_t k = 0; k < nr; k++)
		if (transfers[k].compute < transfers[k].slot)
			preload[found++] = k;
	return found;
}

enum plan_status plan_non_block_peak(const struct strategy_map *map,
	const struct plan_release *release, uint32_t nr_layers, uint64_t *peak)
{
	struct plan_arena *scratch = plan_arena_create();
	const struct plan_slot **slot;
	enum plan_status err;
	struct plan_ids ids;
	uint64_t *bytes, now = 0;
	uint32_t nr = 0, *at;

	*peak = 0;
	for (uint32_t i = 0; i < map->nr; i++)
		nr += map->slots[i].nr;
	if (!scratch)
		return PLAN_NO_MEMORY;
	err = plan_ids_init(&ids, nr, scratch);
	slot = plan_arena_alloc(scratch, nr_layers, sizeof(*slot));
	/* What is on the GPU, by place; 0: nothing. */
	bytes = plan_arena_alloc(scratch, nr, sizeof(*bytes));
	if (!slot || !bytes)
		err = PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < map->nr && !err; i++) {
		if (map->slots[i].slot >= nr_layers)
			err = PLAN_BAD_PLAN;
		else
			slot[map->slots[i].slot] = &map->slots[i];
	}
	nr = 0;
	for (uint32_t i = 0; i < nr_layers && !err; i++) {
		for (uint32_t j = 0; slot[i] && j < slot[i]->nr; j++) {
			const struct plan_entry *e = &slot[i]->entries[j];

			at = plan_ids_at(&ids, e->tensor->id);
			if (*at == PLAN_NONE)
				*at = nr++;
			if (!bytes[*at])
				now += bytes[*at] = e->length;
		}
		if (now > *peak)
			*peak = now;
		for (uint32_t j = 0; j < release[i].nr; j++) {
			uint32_t k = plan_ids_find(&ids, release[i].ids[j]);

			if (k == PLAN_NONE)
				continue;
			now -= bytes[k];
			bytes[k] = 0;
		}
	}
	plan_arena_destroy(scratch);
	return err;
}
