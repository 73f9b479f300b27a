/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GlobalOffloadStrategy, with the optimized or the strict assignment: whole
 * layers, as far as they fit their windows, each copied during the offloaded
 * layer before it; one scale for all windows, raised until the budget is met.
 *
 * Differences to the published one, each of which changes numbers:
 *  - Where layer 0 keeps all its tensors, the first offloaded layer is copied
 *    during layer 0.  Published, it is copied in no slot and yet left out of
 *    the resident bytes, so that the plan needs more memory than it says.
 *  - A single layer is never offloaded, and there is no block for it.
 *    Published, a block as large as the layer is added to the model.
 *  - The scale that was found is a result; the published object keeps it and
 *    starts from it the next time.
 */
#include "planner/plan_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_STEPS 40
#define SEARCH_END 0.001

struct global {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	const struct memory_transfer_interpolator *ip;
	struct plan_assignment assignment;
	struct plan_groups g;
	/* Eligible tensors by size, descending, for each layer. */
	struct plan_pick *sorted;
	/* The plan at hand: picks of the layers 1.. that are offloaded. */
	uint32_t nr;
	uint32_t *layers;
	struct plan_pick *picks;
	uint64_t *sizes;
	uint32_t *block;
	bool first;		/* layer 0 has an eligible tensor */
	uint64_t peak;
};

struct place {
	const struct tensor_statistics *t;
	uint32_t at;
};

static int larger(const void *a, const void *b)
{
	const struct place *p = a, *q = b;

	if (p->t->size_bytes != q->t->size_bytes)
		return p->t->size_bytes > q->t->size_bytes ? -1 : 1;
	return (p->at > q->at) - (p->at < q->at);
}

static enum plan_status sort_layers(struct global *s)
{
	struct place *tmp;

	s->sorted = plan_arena_alloc(s->arena, s->g.nr, sizeof(*s->sorted));
	if (!s->sorted)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < s->g.nr; i++) {
		const struct plan_pick *e = &s->g.at[i].eligible;

		s->sorted[i] = *e;
		s->sorted[i].at = plan_arena_alloc(s->arena, e->nr,
			sizeof(*e->at));
		tmp = plan_arena_alloc(s->arena, e->nr, sizeof(*tmp));
		if (!s->sorted[i].at || !tmp)
			return PLAN_NO_MEMORY;
		for (uint32_t j = 0; j < e->nr; j++)
			tmp[j] = (struct place){ e->at[j], j };
		qsort(tmp, e->nr, sizeof(*tmp), larger);
		for (uint32_t j = 0; j < e->nr; j++)
			s->sorted[i].at[j] = tmp[j].t;
	}
	return PLAN_OK;
}

/* What fits the layer before i, larger tensors first; all if that takes no time. */
static void fit_layer(const struct global *s, uint32_t i, double scale,
	struct plan_pick *out)
{
	double window = s->g.at[i - 1].duration_ms, bytes;
	uint64_t cap = UINT64_MAX;

	out->nr = 0;
	out->bytes = 0;
	if (window > 0) {
		bytes = plan_duration_to_bytes(s->ip, window * scale);
		cap = bytes < 0x1p62 ? (uint64_t)bytes : UINT64_MAX;
	}
	for (uint32_t j = 0; j < s->sorted[i].nr; j++) {
		const struct tensor_statistics *t = s->sorted[i].at[j];

		if (t->size_bytes > cap - out->bytes)
			continue;
		out->at[out->nr++] = t;
		out->bytes += t->size_bytes;
	}
}

static enum plan_status plan_at(struct global *s, double scale)
{
	uint64_t offloaded = 0;
	enum plan_status err;

	s->nr = 0;
	for (uint32_t i = 1; i < s->g.nr; i++) {
		struct plan_pick *p = &s->picks[i];

		fit_layer(s, i, scale, p);
		if (!p->nr)
			continue;
		s->layers[s->nr] = i;
		s->sizes[s->nr++] = p->bytes;
		offloaded += p->bytes;
	}
	s->peak = s->g.total_bytes - offloaded;
	if (!s->nr)
		return PLAN_OK;
	err = s->assignment.compute(&s->assignment, s->sizes, s->nr,
		s->p->n_blocks, s->block);
	if (!err)
		s->peak += plan_block_bytes(s->sizes, s->block, s->nr);
	return err;
}

/* The published bisection; the peak does not fall steadily, so it may miss. */
static enum plan_status fit_budget(struct global *s, double *scale)
{
	const uint64_t limit = s->in->max_gpu_mem_bytes;
	double lo = *scale, hi, mid;
	enum plan_status err;

	hi = fmax(2 * lo * (double)s->g.total_bytes / (double)limit, 100 * lo);
	for (int i = 0; i < SEARCH_STEPS && hi - lo >= SEARCH_END; i++) {
		mid = (lo + hi) / 2;
		err = plan_at(s, mid);
		if (err)
			return err;
		if ((s->nr || s->first) && s->peak <= limit)
			hi = mid;
		else
			lo = mid;
	}
	*scale = hi;
	return plan_at(s, hi);
}

static enum plan_status finish(struct global *s, struct strategy_result *result)
{
	enum plan_status err;
	uint32_t slot = 0;

	err = plan_map_init(&result->strategy_map, s->nr, s->arena);
	for (uint32_t k = 0; k < s->nr && !err; k++) {
		err = plan_map_add(&result->strategy_map, slot,
			&s->picks[s->layers[k]], s->arena);
		slot = s->layers[k];
	}
	if (err || !s->nr)
		return err;
	return plan_build_blocks(result, s->in, s->block, s->arena);
}

static enum plan_status setup(struct global *s)
{
	const uint32_t n = s->in->nr_layers;
	enum plan_status err;

	err = plan_groups_create(s->in, s->p->threshold_mb, 1, s->arena,
		&s->g);
	if (!err)
		err = sort_layers(s);
	if (err)
		return err;
	s->first = s->g.at[0].eligible.nr > 0;
	s->layers = plan_arena_alloc(s->arena, n, sizeof(*s->layers));
	s->picks = plan_arena_alloc(s->arena, n, sizeof(*s->picks));
	s->sizes = plan_arena_alloc(s->arena, n, sizeof(*s->sizes));
	s->block = plan_arena_alloc(s->arena, n, sizeof(*s->block));
	if (!s->layers || !s->picks || !s->sizes || !s->block)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 1; i < n; i++) {
		s->picks[i].at = plan_arena_alloc(s->arena, s->sorted[i].nr,
			sizeof(*s->picks[i].at));
		if (!s->picks[i].at)
			return PLAN_NO_MEMORY;
	}
	return PLAN_OK;
}

static enum plan_status global_offload(const struct plan_input *in,
	const struct plan_params *p, plan_assign_fn *otherwise,
	struct plan_arena *arena, struct strategy_result *result)
{
	struct global s = { .in = in, .p = p, .arena = arena,
		.assignment = plan_assignment_of(p, otherwise) };
	struct memory_transfer_interpolator *ip;
	double scale = p->scale;
	enum plan_status err;

	if (!in->nr_layers)
		return PLAN_OK;
	err = plan_interpolator_of(in, arena, &ip);
	if (err)
		return err;
	if (!ip)
		return PLAN_NEEDS_TABLE;
	s.ip = ip;
	err = setup(&s);
	if (!err)
		err = plan_at(&s, scale);
	if (err || (!s.nr && !s.first))
		return err;
	if (s.peak > in->max_gpu_mem_bytes) {
		err = fit_budget(&s, &scale);
		if (err)
			return err;
	}
	result->scale = scale;
	if (s.peak > in->max_gpu_mem_bytes) {
		result->over_budget = true;
		plan_warn(result, "no scale tried fits the budget; the plan is "
			"above it");
	} else if (scale > p->scale) {
		plan_warn(result, "the budget needs transfers longer than the "
			"compute they hide behind");
	}
	return finish(&s, result);
}

enum plan_status plan_global_offload(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return global_offload(in, p, plan_assign_optimized, arena, result);
}

enum plan_status plan_global_offload_strict(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return global_offload(in, p, plan_assign_strict, arena, result);
}
