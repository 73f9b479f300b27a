/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan of `optimal` against its input, counted anew (plan_check.h).
 */
#include "test/unit/plan_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/optimal.h"
#include "planner/timeline.h"
#include "test/unit/unit.h"

static bool used_elsewhere(const struct plan_input *in, uint32_t layer,
	int64_t id)
{
	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; i != layer && k < in->layers[i].nr; k++)
			if (in->layers[i].tensors[k].id == id)
				return true;
	return false;
}

uint64_t plan_check_unique(const struct plan_input *in)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; k < in->layers[i].nr; k++) {
			const struct tensor_statistics *t =
				&in->layers[i].tensors[k];
			bool seen = false;

			for (uint32_t j = 0; j < k; j++)
				seen |= in->layers[i].tensors[j].id == t->id;
			for (uint32_t h = 0; h < i; h++)
				for (uint32_t j = 0; j < in->layers[h].nr; j++)
					seen |= in->layers[h].tensors[j].id ==
						t->id;
			if (!seen)
				sum += t->size_bytes;
		}
	return sum;
}

static bool apart(const struct plan_piece *a, const struct plan_piece *b)
{
	return a->offset + a->length <= b->offset ||
		b->offset + b->length <= a->offset;
}

/* What a layer streams of a tensor; entries begin at a tensor's start. */
static uint64_t streamed_of(const struct strategy_result *r, uint32_t layer,
	int64_t id)
{
	for (uint32_t s = 0; s < r->pool->nr_places; s++)
		for (uint32_t e = 0; r->pool->places[s].layer == layer &&
			e < r->strategy_map.slots[s].nr; e++) {
			const struct plan_entry *x =
				&r->strategy_map.slots[s].entries[e];

			if (x->tensor->id == id)
				return x->length;
		}
	return 0;
}

/* Bytes that some use of their tensor finds on the GPU, each once. */
static uint64_t resident_bytes(const struct plan_input *in,
	const struct strategy_result *r)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; k < in->layers[i].nr; k++) {
			const struct tensor_statistics *t =
				&in->layers[i].tensors[k];
			uint64_t most = 0;
			bool seen = false;

			for (uint32_t h = 0; h < in->nr_layers && !seen; h++)
				for (uint32_t j = 0; j < in->layers[h].nr; j++) {
					uint64_t n;

					if (in->layers[h].tensors[j].id !=
						t->id)
						continue;
					seen |= h < i || (h == i && j < k);
					n = t->size_bytes - streamed_of(r, h,
						t->id);
					if (n > most)
						most = n;
				}
			if (!seen)
				sum += most;
		}
	return sum;
}

/* Entries name bytes of their layer, once; pieces cover places exactly. */
static void check_entries(const struct plan_input *in,
	const struct strategy_result *r)
{
	const struct plan_pool *pool = r->pool;
	uint64_t at = 0, bytes = 0;
	uint32_t j = 0;

	ck_assert_uint_eq(r->strategy_map.nr, pool->nr_places);
	for (uint32_t p = 0; p < pool->nr_places; p++) {
		const struct plan_place *place = &pool->places[p];
		const struct plan_slot *s = &r->strategy_map.slots[p];
		const struct layer_statistics *l = &in->layers[place->layer];
		uint64_t sum = 0, off = 0;

		ck_assert_uint_ge(place->position, at);
		at = place->position + place->chunks;
		ck_assert_uint_le(place->chunks, pool->nr_chunks);
		ck_assert_uint_le(place->bytes,
			place->chunks * pool->chunk_bytes);
		for (uint32_t e = 0; e < s->nr; e++) {
			const struct plan_entry *x = &s->entries[e];

			ck_assert(x->tensor >= l->tensors &&
				x->tensor < l->tensors + l->nr);
			ck_assert(e == 0 || x->tensor > x[-1].tensor);
			ck_assert_uint_le(x->offset + x->length,
				x->tensor->size_bytes);
			sum += x->length;
		}
		ck_assert_uint_eq(sum, place->bytes);
		bytes += sum;
		for (; j < pool->nr_pieces && pool->pieces[j].place == p; j++) {
			off += pool->pieces[j].length;
			for (uint32_t h = j; h > 0 &&
				pool->pieces[h - 1].place == p; h--)
				ck_assert(apart(&pool->pieces[h - 1],
					&pool->pieces[j]));
		}
		ck_assert_uint_eq(off, sum);
	}
	ck_assert_uint_eq(j, pool->nr_pieces);
	ck_assert_uint_le(at, pool->positions);
	if (pool->nr_chunks > 0)
		ck_assert_uint_eq(pool->positions % pool->nr_chunks, 0);
	ck_assert_uint_eq(bytes, pool->streamed_bytes);
	ck_assert_uint_eq(bytes, plan_offloaded_bytes(r));
}

/* No chunk gets a new tenant before the last one's layer has ended. */
static void check_tenants(const struct plan_input *in,
	const struct plan_pool *pool, const struct timeline *t,
	const struct timeline_times *x)
{
	double *until = malloc((pool->nr_chunks + 1) * sizeof(double));
	uint32_t *tenant = calloc(pool->nr_chunks + 1, sizeof(*tenant));
	double eps = 1e-9 * x->period_ms;

	for (uint32_t c = 0; c < pool->nr_chunks; c++)
		until[c] = -INFINITY;
	for (uint32_t lap = 0; lap < 3; lap++)
		for (uint32_t j = 0; j < pool->nr_pieces; j++) {
			const struct plan_piece *k = &pool->pieces[j];
			const struct plan_place *p = &pool->places[k->place];
			uint64_t c = p->position + k->offset /
				pool->chunk_bytes;
			uint32_t me = lap * pool->nr_places + k->place + 1;
			double at = x->copy_start_ms[j] + lap * x->period_ms;

			for (uint64_t done = 0; done < k->length;
				done += pool->chunk_bytes, c++) {
				uint32_t cell = (uint32_t)(c % pool->nr_chunks);

				if (tenant[cell] != me)
					ck_assert_double_ge(at + eps,
						until[cell]);
				tenant[cell] = me;
				until[cell] = x->layer_start_ms[p->layer] +
					in->layers[p->layer].duration_ms +
					lap * x->period_ms;
			}
			ck_assert_double_le(at + t->copies[j].ms,
				x->layer_start_ms[p->layer] +
				lap * x->period_ms + eps);
		}
	free(until);
	free(tenant);
}

void plan_check(const struct plan_input *in, const struct plan_params *p,
	const struct strategy_result *r, struct plan_arena *arena)
{
	struct timeline_options opt = {
		.release_ms = p->release_ms,
		.wrap = p->wrap,
	};
	struct timeline t;
	struct timeline_times times;
	uint64_t peak;

	check_entries(in, r);
	peak = plan_check_unique(in) - r->pool->streamed_bytes +
		r->pool->nr_chunks * r->pool->chunk_bytes;
	if (r->pool->peak_bytes != peak) {
		/*
		 * Tied tensors that are streamed count for each use, what
		 * stays of them once.
		 */
		ck_assert_uint_le(r->pool->peak_bytes, peak +
			plan_total_bytes(in) - plan_check_unique(in));
		if (in->nr_layers < 60)
			ck_assert_uint_ge(r->pool->peak_bytes,
				resident_bytes(in, r) + r->pool->nr_chunks *
				r->pool->chunk_bytes);
	} else {
		for (uint32_t s = 0; s < r->pool->nr_places; s++)
			for (uint32_t e = 0; e < r->strategy_map.slots[s].nr &&
				in->nr_layers < 60; e++)
				ck_assert(!used_elsewhere(in,
					r->pool->places[s].layer,
					r->strategy_map.slots[s].entries[e]
						.tensor->id));
	}
	ck_assert_uint_le(r->pool->peak_bytes, in->max_gpu_mem_bytes);
	ck_assert_int_eq(timeline_link_of(in, arena, &opt.link), PLAN_OK);
	for (int in_slot = 0; in_slot < 2; in_slot++) {
		opt.in_slot = in_slot;
		ck_assert_int_eq(timeline_of_result(r, in, &opt, arena, &t),
			PLAN_OK);
		ck_assert_int_eq(plan_timeline(&t, true, arena, &times),
			PLAN_OK);
		ck_assert_double_eq_tol(times.period_ms, r->period_ms,
			1e-9 * r->period_ms);
		check_tenants(in, r->pool, &t, &times);
	}
	ck_assert_double_le(r->bound_ms, r->period_ms * (1 + 1e-9));
}
