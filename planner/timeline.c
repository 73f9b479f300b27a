/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a plan (timeline.h): the link's cost, copies from blocks or a
 * ring, the steady state (cycle.c) and the cold first iteration.  Called by the
 * strategies, the library's phase module and the tools.  Pure; no locks.
 */
#include "planner/timeline.h"

#include <math.h>
#include <string.h>

#include "planner/cycle.h"
#include "planner/ring.h"

/* ---- times ------------------------------------------------------------------ */

/* When copy c may start, at the earliest; shift: layers before iteration 0. */
static double cold_start(const struct timeline *t, const struct timeline_copy *c,
	int32_t shift, const double *end, double idle)
{
	int32_t s = t->in_slot ? c->slot : TIMELINE_ANY;

	if (c->after >= shift && end[c->after - shift] + t->release_ms > idle)
		idle = end[c->after - shift] + t->release_ms;
	if (s >= shift && end[s - shift] - t->duration_ms[s - shift] > idle)
		idle = end[s - shift] - t->duration_ms[s - shift];
	return idle;
}

/*
 * One iteration from an empty pool: first those copies of the iteration before
 * that it needs, then its own.  The order is known to be sound.  last: by layer,
 * the number of copies, in two iterations, up to the last one for it.
 */
static double cold_run(const struct timeline *t, double *ready, double *end,
	uint32_t *last)
{
	int32_t n = (int32_t)t->nr_layers;
	double idle = 0, now = 0;
	uint32_t j = 0, nr = t->nr_copies;

	for (uint32_t k = 0; k < 2 * nr; k++) {
		const struct timeline_copy *c = &t->copies[k % nr];

		if ((c->use >= n) == (k < nr))
			last[c->layer] = k + 1;
	}
	for (int32_t i = 0; i < n; i++) {
		for (; j < last[i]; j++) {
			const struct timeline_copy *c = &t->copies[j % nr];
			int32_t shift = j < nr ? n : 0;

			if (j < nr && c->use < n)
				continue;
			idle = cold_start(t, c, shift, end, idle) + c->ms;
			if (c->use - shift < n)
				ready[c->layer] = idle;
		}
		if (ready[i] > now)
			now = ready[i];
		now += t->duration_ms[i];
		end[i] = now;
	}
	return now;
}

static enum plan_status steady_times(struct cycle *c, const struct timeline *t,
	struct plan_arena *arena, struct timeline_times *out)
{
	const double *layer_end, *copy_end;
	double zero;

	out->layer_start_ms = plan_arena_alloc(arena, t->nr_layers,
		sizeof(double));
	out->copy_start_ms = plan_arena_alloc(arena, (size_t)t->nr_copies + 1,
		sizeof(double));
	if (!out->layer_start_ms || !out->copy_start_ms)
		return PLAN_NO_MEMORY;
	cycle_times(c, out->period_ms, &layer_end, &copy_end);
	zero = layer_end[0] - t->duration_ms[0];
	for (uint32_t i = 0; i < t->nr_layers; i++)
		out->layer_start_ms[i] = layer_end[i] - t->duration_ms[i] -
			zero;
	for (uint32_t j = 0; j < t->nr_copies; j++)
		out->copy_start_ms[j] = copy_end[j] - t->copies[j].ms - zero;
	return PLAN_OK;
}

enum plan_status plan_timeline(const struct timeline *t, bool want_times,
	struct plan_arena *arena, struct timeline_times *out)
{
	struct cycle *c = cycle_create(t->nr_layers, t->nr_copies, arena);
	double *ready = plan_arena_alloc(arena, t->nr_layers, sizeof(double));
	double *end = plan_arena_alloc(arena, t->nr_layers, sizeof(double));
	uint32_t *last = plan_arena_alloc(arena, t->nr_layers, sizeof(*last));
	enum plan_status status;

	memset(out, 0, sizeof(*out));
	if (!c || !ready || !end || !last)
		return PLAN_NO_MEMORY;
	status = cycle_load(c, t);
	if (status != PLAN_OK)
		return status;
	out->period_ms = cycle_period(c, INFINITY);
	for (uint32_t i = 0; i < t->nr_layers; i++)
		out->compute_ms += t->duration_ms[i];
	for (uint32_t j = 0; j < t->nr_copies; j++)
		out->link_busy_ms += t->copies[j].ms;
	out->stall_ms = out->period_ms - out->compute_ms;
	if (out->stall_ms < 0)
		out->stall_ms = 0;
	out->cold_ms = cold_run(t, ready, end, last);
	return want_times ? steady_times(c, t, arena, out) : PLAN_OK;
}

/* ---- copies of a plan -------------------------------------------------------- */

/* Where the copy for `layer` is planned: before it, or in the iteration before. */
static int32_t slot_before(int32_t slot, int32_t layer, int32_t nr)
{
	if (slot == TIMELINE_ANY)
		return slot;
	return slot < layer ? slot : slot - nr;
}

static enum plan_status of_pool(const struct strategy_result *result,
	const struct plan_input *in, const struct timeline_options *opt,
	struct plan_arena *arena, struct timeline *out)
{
	const struct plan_pool *pool = result->pool;
	const struct strategy_map *map = &result->strategy_map;
	int32_t nr = (int32_t)in->nr_layers;
	struct timeline_copy *copies = plan_arena_alloc(arena,
		(size_t)pool->nr_pieces + 1, sizeof(*copies));
	int32_t *slot = plan_arena_alloc(arena, in->nr_layers, sizeof(*slot));

	if (!copies || !slot)
		return PLAN_NO_MEMORY;
	for (int32_t i = 0; i < nr; i++)
		slot[i] = TIMELINE_ANY;
	/* The slots are in the order of the places. */
	for (uint32_t i = 0, p = 0; i < map->nr && p < pool->nr_places; i++)
		if (map->slots[i].nr > 0)
			slot[pool->places[p++].layer] =
				(int32_t)map->slots[i].slot;
	for (uint32_t j = 0; j < pool->nr_pieces; j++) {
		const struct plan_piece *k = &pool->pieces[j];
		const struct plan_place *p = &pool->places[k->place];
		uint64_t first = k->offset / pool->chunk_bytes;
		uint64_t end = (k->offset + k->length + pool->chunk_bytes - 1) /
			pool->chunk_bytes;

		if (k->place >= pool->nr_places || p->layer >= in->nr_layers ||
			end > p->chunks || p->chunks > pool->nr_chunks)
			return PLAN_BAD_PLAN;
		copies[j] = (struct timeline_copy){
			.bytes = k->length,
			.ms = timeline_copy_ms(&opt->link, k->length),
			.use = (int32_t)p->layer,
			.layer = p->layer,
			.after = ring_after(pool, in->nr_layers,
				(int64_t)(p->position + first),
				(int64_t)(p->position + end)),
			.slot = slot_before(slot[p->layer], (int32_t)p->layer,
				nr),
		};
	}
	out->copies = copies;
	out->nr_copies = pool->nr_pieces;
	return PLAN_OK;
}

/* The last layer with the id of the slot's first tensor, as published. */
static uint32_t consumer_of(const struct plan_slot *s,
	const struct plan_input *in)
{
	uint32_t found = PLAN_NONE;

	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; k < in->layers[i].nr; k++)
			if (in->layers[i].tensors[k].id ==
				s->entries[0].tensor->id)
				found = i;
	return found;
}

/* Blocks of one copy: the reader of what was in it before. */
static enum plan_status block_readers(struct timeline_copy *copies, uint32_t nr,
	const uint32_t *block, uint32_t nr_blocks, int32_t nr_layers,
	struct plan_arena *arena)
{
	int32_t *reader = plan_arena_alloc(arena, nr_blocks,
		sizeof(*reader));

	if (!reader)
		return PLAN_NO_MEMORY;
	for (uint32_t j = 0; j < nr; j++)
		reader[block[j]] = copies[j].use - nr_layers;
	for (uint32_t j = 0; j < nr; j++) {
		copies[j].after = reader[block[j]];
		reader[block[j]] = copies[j].use;
		if (copies[j].after >= copies[j].use)
			return PLAN_CONFLICT;
	}
	return PLAN_OK;
}

/* The slot's place in block_data, which is in layer order; nr: none. */
static uint32_t block_of(const struct block_strategy_data *data, uint32_t slot)
{
	uint32_t low = 0, high = data->nr;

	while (low < high) {
		uint32_t mid = (low + high) / 2;

		if (data->slots[mid] < slot)
			low = mid + 1;
		else
			high = mid;
	}
	return low < data->nr && data->slots[low] == slot ? low : data->nr;
}

/*
 * Tensors of one id are copied for each layer for itself, as the published
 * strategies count them.  Without blocks every copy has memory of its own.
 */
static enum plan_status of_blocks(const struct strategy_result *result,
	const struct plan_input *in, const struct timeline_options *opt,
	struct plan_arena *arena, struct timeline *out)
{
	const struct strategy_map *map = &result->strategy_map;
	const struct block_strategy_data *data = result->block_data;
	int32_t nr = (int32_t)in->nr_layers;
	uint32_t n = 0, nr_blocks = data ? data->nr_blocks : map->nr;
	struct timeline_copy *copies = plan_arena_alloc(arena,
		(size_t)map->nr + 1, sizeof(*copies));
	uint32_t *block = plan_arena_alloc(arena, (size_t)map->nr + 1,
		sizeof(*block));
	const struct plan_slot **by_layer = plan_arena_alloc(arena,
		in->nr_layers, sizeof(*by_layer));

	if (!copies || !block || !by_layer)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < map->nr; i++) {
		if (map->slots[i].slot >= in->nr_layers)
			return PLAN_BAD_PLAN;
		if (map->slots[i].nr > 0)
			by_layer[map->slots[i].slot] = &map->slots[i];
	}
	for (int32_t i = 0; i < nr; i++) {
		uint32_t k, user;
		uint64_t bytes = 0;

		if (!by_layer[i])
			continue;
		for (uint32_t e = 0; e < by_layer[i]->nr; e++)
			bytes += by_layer[i]->entries[e].length;
		if (bytes == 0)
			continue;
		k = data ? block_of(data, (uint32_t)i) : 0;
		if (data && k == data->nr)
			return PLAN_BAD_PLAN;
		user = data ? data->transfer_to_compute_map[k] :
			consumer_of(by_layer[i], in);
		block[n] = data ? data->label_to_block_id[k] : n;
		if (user >= in->nr_layers || block[n] >= nr_blocks)
			return PLAN_BAD_PLAN;
		copies[n++] = (struct timeline_copy){
			.bytes = bytes,
			.ms = timeline_copy_ms(&opt->link, bytes),
			.use = (int32_t)user + ((int32_t)user > i ? 0 : nr),
			.layer = user,
			.slot = i,
		};
	}
	out->copies = copies;
	out->nr_copies = n;
	return block_readers(copies, n, block, nr_blocks, nr, arena);
}

enum plan_status timeline_of_result(const struct strategy_result *result,
	const struct plan_input *in, const struct timeline_options *opt,
	struct plan_arena *arena, struct timeline *out)
{
	double *ms = plan_arena_alloc(arena, in->nr_layers, sizeof(*ms));

	memset(out, 0, sizeof(*out));
	if (!ms)
		return PLAN_NO_MEMORY;
	if (in->nr_layers == 0 || in->nr_layers > INT32_MAX / 8)
		return PLAN_BAD_MODEL;
	for (uint32_t i = 0; i < in->nr_layers; i++)
		ms[i] = in->layers[i].duration_ms;
	out->nr_layers = in->nr_layers;
	out->duration_ms = ms;
	out->release_ms = opt->release_ms;
	out->wrap = opt->wrap;
	out->in_slot = opt->in_slot;
	if (result->pool)
		return of_pool(result, in, opt, arena, out);
	return of_blocks(result, in, opt, arena, out);
}
