/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From chosen tensors to a strategy_result: slots, and the data of blocks.
 * Called by every strategy.
 */
#include "planner/plan_int.h"

#include <string.h>

enum plan_status plan_map_init(struct strategy_map *map, uint32_t max,
	struct plan_arena *arena)
{
	map->nr = 0;
	map->slots = plan_arena_alloc(arena, max, sizeof(*map->slots));
	return map->slots ? PLAN_OK : PLAN_NO_MEMORY;
}

enum plan_status plan_map_add(struct strategy_map *map, uint32_t slot,
	const struct plan_pick *pick, struct plan_arena *arena)
{
	struct plan_slot *s = (struct plan_slot *)&map->slots[map->nr];
	struct plan_entry *e;

	e = plan_arena_alloc(arena, pick->nr, sizeof(*e));
	if (!e)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < pick->nr; i++) {
		e[i].tensor = pick->at[i];
		e[i].length = pick->at[i]->size_bytes;
	}
	s->slot = slot;
	s->nr = pick->nr;
	s->entries = e;
	map->nr++;
	return PLAN_OK;
}

uint64_t plan_slot_bytes(const struct plan_slot *slot)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < slot->nr; i++)
		bytes += slot->entries[i].length;
	return bytes;
}

uint32_t plan_consumer(const struct plan_slot *slot,
	const struct plan_input *in)
{
	const struct layer_statistics *l;
	uint32_t i = slot->slot;

	for (uint32_t n = 0; slot->nr && n < in->nr_layers; n++) {
		i = i + 1 < in->nr_layers ? i + 1 : 0;
		l = &in->layers[i];
		for (uint32_t j = 0; j < l->nr; j++)
			if (l->tensors[j].id == slot->entries[0].tensor->id)
				return i;
	}
	return PLAN_NONE;
}

uint64_t plan_offloaded_bytes(const struct strategy_result *result)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < result->strategy_map.nr; i++)
		bytes += plan_slot_bytes(&result->strategy_map.slots[i]);
	return bytes;
}

uint32_t plan_map_transfers(const struct strategy_map *map, uint32_t nr_layers,
	uint32_t *layers, uint64_t *sizes)
{
	uint32_t nr = 0;

	memset(sizes, 0, nr_layers * sizeof(*sizes));
	for (uint32_t i = 0; i < map->nr; i++)
		sizes[map->slots[i].slot] = plan_slot_bytes(&map->slots[i]);
	for (uint32_t i = 0; i < nr_layers; i++)
		if (sizes[i]) {
			layers[nr] = i;
			sizes[nr++] = sizes[i];
		}
	return nr;
}

uint64_t plan_block_bytes(const uint64_t *sizes, const uint32_t *block,
	uint32_t nr)
{
	uint64_t sum = 0, most;
	uint32_t blocks = 0;

	for (uint32_t i = 0; i < nr; i++)
		if (block[i] >= blocks)
			blocks = block[i] + 1;
	for (uint32_t b = 0; b < blocks; b++) {
		most = 0;
		for (uint32_t i = 0; i < nr; i++)
			if (block[i] == b && sizes[i] > most)
				most = sizes[i];
		sum += most;
	}
	return sum;
}

/* Arrays of block_strategy_data while they are filled. */
struct draft {
	uint32_t *slots, *ids, *consumer, *new_id, *at;
	uint64_t *sizes, *block_sizes;
	struct plan_block_slots *lists;
};

static bool draft_init(struct draft *d, uint32_t nr_layers, uint32_t nr_ids,
	struct plan_arena *arena)
{
	d->slots = plan_arena_alloc(arena, nr_layers, sizeof(*d->slots));
	d->sizes = plan_arena_alloc(arena, nr_layers, sizeof(*d->sizes));
	d->ids = plan_arena_alloc(arena, nr_layers, sizeof(*d->ids));
	d->consumer = plan_arena_alloc(arena, nr_layers, sizeof(*d->consumer));
	d->at = plan_arena_alloc(arena, nr_layers, sizeof(*d->at));
	d->new_id = plan_arena_alloc(arena, nr_ids, sizeof(*d->new_id));
	d->block_sizes = plan_arena_alloc(arena, nr_ids,
		sizeof(*d->block_sizes));
	d->lists = plan_arena_alloc(arena, nr_ids, sizeof(*d->lists));
	return d->slots && d->sizes && d->ids && d->consumer && d->at &&
		d->new_id && d->block_sizes && d->lists;
}

static enum plan_status fill_lists(struct draft *d, uint32_t nr,
	uint32_t nr_blocks, struct plan_arena *arena)
{
	for (uint32_t b = 0; b < nr_blocks; b++) {
		uint32_t *list;

		for (uint32_t k = 0; k < nr; k++)
			d->lists[b].nr += d->ids[k] == b;
		list = plan_arena_alloc(arena, d->lists[b].nr, sizeof(*list));
		if (!list)
			return PLAN_NO_MEMORY;
		d->lists[b].slots = list;
		for (uint32_t k = 0; k < nr; k++)
			if (d->ids[k] == b)
				*list++ = d->slots[k];
	}
	return PLAN_OK;
}

enum plan_status plan_build_blocks(struct strategy_result *result,
	const struct plan_input *in, const uint32_t *block,
	struct plan_arena *arena)
{
	struct block_strategy_data *data;
	uint32_t nr_ids = 0, nr_blocks = 0, nr;
	enum plan_status err;
	struct draft d;

	data = plan_arena_alloc(arena, 1, sizeof(*data));
	for (uint32_t i = 0; i < result->strategy_map.nr; i++)
		if (plan_slot_bytes(&result->strategy_map.slots[i]))
			nr_ids++;
	for (uint32_t i = 0, n = nr_ids; i < n; i++)
		if (block[i] >= nr_ids)
			nr_ids = block[i] + 1;
	if (!data || !draft_init(&d, in->nr_layers, nr_ids, arena))
		return PLAN_NO_MEMORY;
	nr = plan_map_transfers(&result->strategy_map, in->nr_layers, d.slots,
		d.sizes);
	for (uint32_t i = 0; i < result->strategy_map.nr; i++) {
		const struct plan_slot *s = &result->strategy_map.slots[i];

		d.at[s->slot] = plan_consumer(s, in);
	}
	memset(d.new_id, 0xff, nr_ids * sizeof(*d.new_id));
	for (uint32_t k = 0; k < nr; k++) {
		if (d.new_id[block[k]] == PLAN_NONE)
			d.new_id[block[k]] = nr_blocks++;
		d.ids[k] = d.new_id[block[k]];
		d.consumer[k] = d.at[d.slots[k]];
		if (d.sizes[k] > d.block_sizes[d.ids[k]])
			d.block_sizes[d.ids[k]] = d.sizes[k];
	}
	err = fill_lists(&d, nr, nr_blocks, arena);
	if (err)
		return err;
	data->nr = nr;
	data->slots = d.slots;
	data->label_to_size_map = d.sizes;
	data->label_to_block_id = d.ids;
	data->transfer_to_compute_map = d.consumer;
	data->nr_blocks = nr_blocks;
	data->block_sizes = d.block_sizes;
	data->allocation_ordered = d.lists;
	result->block_data = data;
	return PLAN_OK;
}
