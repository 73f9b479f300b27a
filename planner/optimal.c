/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategy `optimal`: any bytes of a layer may be streamed, through a ring
 * or a few equal blocks.  From the planner's input to the model that
 * optimal_search.c works on, the modes, and the result.  Tensors that several
 * layers use stay resident as long as the budget allows that; beyond it an equal
 * part of each is streamed, for every use (a backward pass).  Called through the
 * table of strategies.  Pure; no locks.
 */
#include "planner/optimal.h"

#include <math.h>
#include <string.h>

#include "planner/optimal_int.h"
#include "planner/plan_int.h"

#define SAME 1e-12

/* Is this the tensor's first mention in the layer? */
bool optimal_first_in_layer(const struct layer_statistics *l, uint32_t k,
	const struct plan_ids *seen, uint32_t layer)
{
	uint32_t *at = plan_ids_at(seen, l->tensors[k].id);

	if (*at == layer)
		return false;
	*at = layer;
	return true;
}

size_t optimal_nr_tensors(const struct plan_input *in)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < in->nr_layers; i++)
		nr += in->layers[i].nr;
	return nr;
}

/* Which ids several layers use, and the sums. */
static enum plan_status count_bytes(struct optimal *o)
{
	const struct plan_input *in = o->in;
	enum plan_status status = plan_ids_init(&o->ids, optimal_nr_tensors(in),
		o->arena);

	o->shared = plan_arena_alloc(o->arena, optimal_nr_tensors(in) + 1,
		sizeof(*o->shared));
	if (status != PLAN_OK || !o->shared)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; k < in->layers[i].nr; k++) {
			const struct tensor_statistics *t =
				&in->layers[i].tensors[k];
			uint32_t *at = plan_ids_at(&o->ids, t->id);

			if (*at == PLAN_NONE) {
				*at = i;
				o->unique += t->size_bytes;
			} else if (*at != i && !optimal_is_shared(*at)) {
				*at = OPTIMAL_SHARED | o->nr_shared;
				o->shared[o->nr_shared++].size = t->size_bytes;
				o->tied += t->size_bytes;
			}
		}
	return PLAN_OK;
}

static enum plan_status count_layers(struct optimal *o)
{
	const struct plan_input *in = o->in;
	struct plan_ids seen;
	enum plan_status status = plan_ids_init(&seen, optimal_nr_tensors(in),
		o->arena);

	if (status != PLAN_OK)
		return status;
	o->bytes = plan_arena_alloc(o->arena, in->nr_layers,
		sizeof(*o->bytes));
	o->reads = plan_arena_alloc(o->arena, in->nr_layers,
		sizeof(*o->reads));
	o->ms = plan_arena_alloc(o->arena, in->nr_layers, sizeof(*o->ms));
	if (!o->bytes || !o->reads || !o->ms)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < in->nr_layers; i++) {
		const struct layer_statistics *l = &in->layers[i];

		o->ms[i] = l->duration_ms;
		for (uint32_t k = 0; k < l->nr; k++) {
			if (!optimal_first_in_layer(l, k, &seen, i))
				continue;
			o->reads[i] += l->tensors[k].size_bytes;
			if (plan_ids_find(&o->ids, l->tensors[k].id) == i)
				o->bytes[i] += l->tensors[k].size_bytes;
		}
		if (o->bytes[i] > o->largest)
			o->largest = o->bytes[i];
		if (o->reads[i] > o->largest_read)
			o->largest_read = o->reads[i];
	}
	return PLAN_OK;
}

static enum plan_status optimal_init(struct optimal *o,
	const struct plan_input *in, const struct plan_params *p,
	struct plan_arena *arena)
{
	enum plan_status status;

	memset(o, 0, sizeof(*o));
	o->in = in;
	o->p = p;
	o->arena = arena;
	if (in->nr_layers == 0 || in->nr_layers > INT32_MAX / 16)
		return PLAN_BAD_MODEL;
	status = count_bytes(o);
	return status == PLAN_OK ? count_layers(o) : status;
}

enum plan_status optimal_bound_model(const struct plan_input *in,
	struct plan_arena *arena, struct bound_model *out)
{
	struct timeline_link link;
	struct optimal o;
	enum plan_status status = optimal_init(&o, in, NULL, arena);

	if (status == PLAN_OK)
		status = timeline_link_of(in, arena, &link);
	if (status != PLAN_OK)
		return status;
	*out = (struct bound_model){
		.nr = in->nr_layers,
		.ms = o.ms,
		.bytes = o.reads,
		.need = o.unique > in->max_gpu_mem_bytes ?
			o.unique - in->max_gpu_mem_bytes : 0,
	};
	timeline_link_below(&link, &out->latency_ms, &out->ms_per_byte);
	return o.largest_read > in->max_gpu_mem_bytes ? PLAN_INFEASIBLE :
		PLAN_OK;
}

/* Tied tensors resident, or, as the last way out, streamed for each use. */
void optimal_set_model(struct optimal *o, bool stream_tied)
{
	struct optimal_model *m = &o->m;

	o->stream_tied = stream_tied;
	m->nr = o->in->nr_layers;
	m->ms = o->ms;
	m->bytes = stream_tied ? o->loads : o->bytes;
	m->total = 0;
	m->compute_ms = 0;
	for (uint32_t i = 0; i < m->nr; i++) {
		m->total += m->bytes[i];
		m->compute_ms += m->ms[i];
	}
	m->chunk = o->p->chunk_bytes;
	m->release_ms = o->p->release_ms;
	m->wrap = o->p->wrap;
	m->seed = o->p->seed;
}

/* ---- the modes --------------------------------------------------------------- */

static bool lossless(const struct optimal *o, const struct optimal_choice *c)
{
	return c->period_ms <= o->m.compute_ms * (1 + SAME);
}

/* The same model with a link that moves bytes slower by the margin. */
static struct optimal_model slower(const struct optimal *o)
{
	struct optimal_model m = o->m;

	m.link.ms_per_byte /= 1 - o->p->margin;
	if (m.link.nr_points > 0) {
		struct transfer_time *p = plan_arena_alloc(o->arena,
			m.link.nr_points, sizeof(*p));

		for (uint32_t i = 0; p && i < m.link.nr_points; i++) {
			p[i] = m.link.points[i];
			p[i].ms /= 1 - o->p->margin;
		}
		if (p)
			m.link.points = p;
	}
	return m;
}

/* The best period at nominal speed; among such, one with slack. */
enum plan_status optimal_search_budget(struct optimal *o, uint64_t need,
	double bound, struct optimal_choice *best)
{
	struct optimal_model slow;
	struct optimal_choice other;
	struct optimal_trial trial;
	enum plan_status status;

	if (o->p->margin <= 0 || bound > o->m.compute_ms * (1 + SAME))
		return optimal_search(&o->m, need, best);
	slow = slower(o);
	status = optimal_search(&slow, need, best);
	if (status != PLAN_OK || lossless(o, best))
		return status;
	status = optimal_trial_init(&trial, &o->m, o->arena);
	if (status == PLAN_OK)
		status = optimal_choice_init(&other, o->m.nr, o->arena);
	if (status == PLAN_OK)
		status = optimal_search(&o->m, need, &other);
	if (status != PLAN_OK)
		return status;
	best->period_ms = optimal_trial_at(&trial, best, &o->m.link);
	best->bound_ms = other.bound_ms;
	if (other.period_ms < best->period_ms * (1 - SAME))
		optimal_choice_copy(best, &other, o->m.nr);
	return PLAN_OK;
}

/* ---- the result --------------------------------------------------------------- */

enum plan_status optimal_entries(struct optimal *o, uint32_t layer,
	uint64_t bytes, struct plan_slot *slot)
{
	const struct layer_statistics *l = &o->in->layers[layer];
	struct plan_entry *e = plan_arena_alloc(o->arena, l->nr, sizeof(*e));
	struct plan_ids seen;
	enum plan_status status = plan_ids_init(&seen, l->nr, o->arena);

	if (!e || status != PLAN_OK)
		return PLAN_NO_MEMORY;
	slot->entries = e;
	for (uint32_t k = 0; k < l->nr && bytes > 0; k++) {
		const struct tensor_statistics *t = &l->tensors[k];

		uint32_t at = plan_ids_find(&o->ids, t->id);
		uint64_t length = t->size_bytes;

		if (optimal_is_shared(at))
			length = o->stream_tied ?
				o->shared[at & ~OPTIMAL_SHARED].streamed : 0;
		if (length == 0 || !optimal_first_in_layer(l, k, &seen, layer))
			continue;
		if (bytes < length)
			length = bytes;
		e[slot->nr++] = (struct plan_entry){ t, 0, length };
		bytes -= length;
	}
	return PLAN_OK;
}

/*
 * How many places ahead copies start, so that a place's copy never starts before
 * the layer of that earlier place does.
 */
static uint32_t places_ahead(const struct optimal_trial *t, double period,
	const double *layer_end, const double *copy_end)
{
	uint32_t nr = t->pool.nr_places, ahead = 1;

	for (uint32_t j = 0; j < t->nr_pieces; j++) {
		double start = copy_end[j] - t->copies[j].ms;

		while (ahead < nr) {
			uint32_t place = (t->pieces[j].place + nr - ahead) % nr;
			uint32_t layer = t->places[place].layer;
			bool before = ahead > t->pieces[j].place;

			if (layer_end[layer] - t->m->ms[layer] -
				(before ? period : 0) <= start)
				break;
			ahead++;
		}
	}
	return ahead;
}

static enum plan_status put_pool(struct optimal *o,
	const struct optimal_choice *c, const struct optimal_trial *t,
	struct strategy_result *result)
{
	struct plan_pool *pool = plan_arena_alloc(o->arena, 1, sizeof(*pool));
	struct plan_piece *pieces = plan_arena_alloc(o->arena,
		(size_t)t->nr_pieces + 1, sizeof(*pieces));

	if (!pool || !pieces)
		return PLAN_NO_MEMORY;
	for (uint32_t j = 0; j < t->nr_pieces; j++)
		pieces[j] = (struct plan_piece){ t->pieces[j].place,
			t->pieces[j].offset, t->pieces[j].length };
	*pool = t->pool;
	pool->pieces = pieces;
	pool->nr_pieces = t->nr_pieces;
	/* Tied tensors that are streamed are counted, and loaded, per use. */
	pool->peak_bytes = (o->stream_tied ? o->m.total + o->kept :
		o->unique) - c->streamed + c->ring * c->chunk;
	result->pool = pool;
	return PLAN_OK;
}

static enum plan_status put_result(struct optimal *o, struct optimal_choice *c,
	struct strategy_result *result)
{
	struct plan_slot *slots;
	struct optimal_trial t;
	const double *layer_end, *copy_end;
	enum plan_status status = optimal_trial_init(&t, &o->m, o->arena);
	uint32_t ahead;

	if (status != PLAN_OK)
		return status;
	/* The exact period, which the search may have known only as "equal". */
	c->period_ms = optimal_trial_at(&t, c, &o->m.link);
	result->period_ms = c->period_ms;
	status = put_pool(o, c, &t, result);
	if (status != PLAN_OK)
		return status;
	cycle_times(t.cycle, c->period_ms, &layer_end, &copy_end);
	ahead = places_ahead(&t, c->period_ms, layer_end, copy_end);
	slots = plan_arena_alloc(o->arena, (size_t)t.pool.nr_places + 1,
		sizeof(*slots));
	if (!slots)
		return PLAN_NO_MEMORY;
	for (uint32_t p = 0; p < t.pool.nr_places; p++) {
		uint32_t nr = t.pool.nr_places;

		slots[p].slot = t.places[(p + nr - ahead) % nr].layer;
		status = optimal_entries(o, t.places[p].layer, t.places[p].bytes,
			&slots[p]);
		if (status != PLAN_OK)
			return status;
	}
	result->strategy_map.slots = slots;
	result->strategy_map.nr = t.pool.nr_places;
	return PLAN_OK;
}

/* Nothing is streamed. */
static enum plan_status put_resident(struct optimal *o,
	struct strategy_result *result)
{
	struct plan_pool *pool = plan_arena_alloc(o->arena, 1, sizeof(*pool));

	if (!pool)
		return PLAN_NO_MEMORY;
	pool->chunk_bytes = o->m.chunk;
	pool->peak_bytes = o->unique;
	result->pool = pool;
	result->period_ms = o->m.compute_ms;
	result->bound_ms = o->m.compute_ms;
	return PLAN_OK;
}

static enum plan_status infeasible(struct optimal *o,
	struct strategy_result *result)
{
	result->smallest_budget = o->largest_read;
	return plan_fail(result, PLAN_INFEASIBLE,
		"the largest layer alone needs %llu bytes; the budget is %llu",
		(unsigned long long)o->largest_read,
		(unsigned long long)o->in->max_gpu_mem_bytes);
}

static enum plan_status plan_budget(struct optimal *o,
	struct strategy_result *result, struct optimal_choice *c)
{
	uint64_t budget = o->in->max_gpu_mem_bytes;
	struct bound_model b = {
		.nr = o->m.nr,
		.ms = o->ms,
		.bytes = o->reads,
		.need = o->unique - budget,
	};
	enum plan_status status;
	double pool;

	if (budget < o->largest_read)
		return infeasible(o, result);
	timeline_link_below(&o->m.link, &b.latency_ms, &b.ms_per_byte);
	result->bound_ms = bound_simple(&b);
	if (budget < o->tied + o->largest)
		status = optimal_search_tied(o, result->bound_ms, c);
	else
		status = optimal_search_budget(o, b.need, result->bound_ms, c);
	if (status == PLAN_INFEASIBLE)
		return infeasible(o, result);
	if (status != PLAN_OK || lossless(o, c))
		return status;
	/* The search's own bound takes tied tensors for resident. */
	if (o->tied == 0 && c->bound_ms > result->bound_ms)
		result->bound_ms = c->bound_ms;
	else if (o->tied > 0 || c->bound_ms <= 0)
		status = bound_strong(&b, o->arena, &result->bound_ms, NULL,
			&pool);
	return status;
}

enum plan_status plan_optimal(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	struct optimal o;
	struct optimal_choice c;
	enum plan_status status = optimal_init(&o, in, p, arena);

	if (status != PLAN_OK)
		return status;
	optimal_set_model(&o, false);
	if (o.unique <= in->max_gpu_mem_bytes &&
		in->max_gpu_mem_bytes != PLAN_NO_LIMIT)
		return put_resident(&o, result);
	status = timeline_link_of(in, arena, &o.m.link);
	if (status == PLAN_OK)
		status = optimal_choice_init(&c, o.m.nr, arena);
	if (status != PLAN_OK)
		return status;
	if (in->max_gpu_mem_bytes == PLAN_NO_LIMIT) {
		status = optimal_latency(&o.m, o.m.total - o.largest, &c);
		result->bound_ms = o.m.compute_ms;
		if (status == PLAN_OK && c.streamed == 0)
			return put_resident(&o, result);
	} else {
		status = plan_budget(&o, result, &c);
	}
	return status == PLAN_OK ? put_result(&o, &c, result) : status;
}
