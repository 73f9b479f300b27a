/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan that streams tied tensors takes: iterations are played through, in
 * the order of the layers, with one chunk for each position of the ring.  Called
 * by optimal_tied.c.  Pure; no locks.
 */
#include <math.h>

#include "planner/optimal_int.h"

#define LAPS 4
#define NOWHERE UINT32_MAX

struct replay {
	struct optimal *o;
	const struct optimal_trial *t;
	struct plan_arena *arena;
	struct plan_ids ids;		/* to an index into first */
	uint32_t *first;		/* by tensor, and one more: its chunk 0 */
	uint32_t nr_tensors;
	uint32_t *at;			/* by chunk: position, or NOWHERE */
	uint32_t *tenant;		/* by position: chunk, or NOWHERE */
	double *free_ms;		/* by position: its tenant is done with */
	double copied_ms;		/* the copy engine is free */
};

static uint32_t chunks_of(const struct replay *r, uint64_t bytes)
{
	uint64_t chunk = r->t->pool.chunk_bytes;

	return (uint32_t)((bytes + chunk - 1) / chunk);
}

static enum plan_status number_chunks(struct replay *r)
{
	const struct plan_input *in = r->o->in;
	uint32_t n = 0;

	if (plan_ids_init(&r->ids, optimal_nr_tensors(in), r->arena) != PLAN_OK)
		return PLAN_NO_MEMORY;
	r->first = plan_arena_alloc(r->arena, optimal_nr_tensors(in) + 1,
		sizeof(*r->first));
	if (!r->first)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; k < in->layers[i].nr; k++) {
			uint32_t *at = plan_ids_at(&r->ids,
				in->layers[i].tensors[k].id);

			if (*at != PLAN_NONE)
				continue;
			*at = r->nr_tensors;
			r->first[r->nr_tensors++] = n;
			n += chunks_of(r, in->layers[i].tensors[k].size_bytes);
		}
	r->first[r->nr_tensors] = n;
	r->at = plan_arena_alloc(r->arena, (size_t)n + 1, sizeof(*r->at));
	if (!r->at)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++)
		r->at[i] = NOWHERE;
	return PLAN_OK;
}

/* Of several uses the first one's position counts. */
static enum plan_status place_chunks(struct replay *r)
{
	const struct plan_pool *pool = &r->t->pool;
	enum plan_status status = PLAN_OK;

	for (uint32_t p = 0; p < pool->nr_places && status == PLAN_OK; p++) {
		const struct plan_place *place = &pool->places[p];
		struct plan_slot slot = { 0 };
		uint64_t off = 0;

		status = optimal_entries(r->o, place->layer, place->bytes,
			&slot);
		for (uint32_t e = 0; e < slot.nr && status == PLAN_OK; e++) {
			const struct plan_entry *x = &slot.entries[e];
			uint32_t first = r->first[plan_ids_find(&r->ids,
				x->tensor->id)];

			for (uint32_t q = 0; q < chunks_of(r, x->length); q++)
				if (r->at[first + q] == NOWHERE)
					r->at[first + q] = (uint32_t)
						((place->position +
						off / pool->chunk_bytes + q) %
						pool->nr_chunks);
			off += x->length;
		}
	}
	return status;
}

/* Copies what a layer lacks; when it can start. */
static double load(struct replay *r, uint32_t layer, double begin)
{
	const struct layer_statistics *l = &r->o->in->layers[layer];
	const struct plan_pool *pool = &r->t->pool;
	double ms = timeline_copy_ms(&r->t->m->link, pool->chunk_bytes);

	for (uint32_t k = 0; k < l->nr; k++) {
		uint32_t id = plan_ids_find(&r->ids, l->tensors[k].id);

		for (uint32_t c = r->first[id]; c < r->first[id + 1]; c++) {
			uint32_t at = r->at[c];

			if (at == NOWHERE || r->tenant[at] == c)
				continue;
			r->copied_ms = fmax(r->copied_ms, r->free_ms[at]) + ms;
			r->tenant[at] = c;
			begin = fmax(begin, r->copied_ms);
		}
	}
	return begin;
}

static void leave(struct replay *r, uint32_t layer, double end)
{
	const struct layer_statistics *l = &r->o->in->layers[layer];

	for (uint32_t k = 0; k < l->nr; k++) {
		uint32_t id = plan_ids_find(&r->ids, l->tensors[k].id);

		for (uint32_t c = r->first[id]; c < r->first[id + 1]; c++)
			if (r->at[c] != NOWHERE)
				r->free_ms[r->at[c]] = end +
					r->t->m->release_ms;
	}
}

static double play(struct replay *r)
{
	double now = 0, before = 0;

	for (uint32_t lap = 0; lap < LAPS; lap++) {
		before = now;
		for (uint32_t i = 0; i < r->o->in->nr_layers; i++) {
			now = load(r, i, now) + r->t->m->ms[i];
			leave(r, i, now);
		}
	}
	return now - before;
}

enum plan_status optimal_replay(struct optimal *o,
	const struct optimal_trial *t, double *period_ms)
{
	struct replay r = { .o = o, .t = t, .arena = o->arena };
	uint32_t nr = t->pool.nr_chunks;
	enum plan_status status = number_chunks(&r);

	r.tenant = plan_arena_alloc(o->arena, (size_t)nr + 1,
		sizeof(*r.tenant));
	r.free_ms = plan_arena_alloc(o->arena, (size_t)nr + 1,
		sizeof(*r.free_ms));
	if (status != PLAN_OK || !r.tenant || !r.free_ms)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < nr; i++)
		r.tenant[i] = NOWHERE;
	status = place_chunks(&r);
	if (status == PLAN_OK)
		*period_ms = play(&r);
	return status;
}
