/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The later BudgetFillStrategy ("spread"): every layer gives up to the same
 * number of bytes, the smallest with which the plan fits the budget.
 */
#include "planner/plan_int.h"
#include "planner/plan_budget.h"

#include <stdlib.h>
#include <string.h>

struct spread {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	struct plan_budget b;
	uint32_t min_blocks, max_blocks;
	/* The plan at hand */
	bool *on;		/* by plan_ranked.at, through same[] */
	uint32_t *same;		/* the first candidate with this one's id */
	uint64_t *taken;	/* by layer */
	uint64_t *sizes;	/* of the transfers */
	uint32_t *block, *best_block;
	uint64_t peak;
};

/*
 * Each layer's tensors, in order of rank, until cap bytes are reached.  A tensor
 * that several layers share is then taken from all of them.
 */
static void take(struct spread *s, uint64_t cap)
{
	memset(s->on, 0, s->b.nr * sizeof(*s->on));
	for (uint32_t i = 1; i < s->in->nr_layers; i++) {
		const struct plan_budget_layer *l = &s->b.layers[i];
		uint64_t bytes = 0;

		for (uint32_t j = 0; j < l->nr && bytes < cap; j++) {
			bytes += l->ranked[j].t->size_bytes;
			s->on[s->same[l->ranked[j].at]] = true;
		}
	}
	for (uint32_t i = 1; i < s->in->nr_layers; i++) {
		const struct plan_budget_layer *l = &s->b.layers[i];

		s->taken[i] = 0;
		for (uint32_t j = 0; j < l->nr; j++)
			if (s->on[s->same[l->ranked[j].at]])
				s->taken[i] += l->ranked[j].t->size_bytes;
	}
}

/* The block count with the lowest peak, fewer blocks first; peak is its. */
static enum plan_status plan_at(struct spread *s, uint64_t cap)
{
	uint64_t off = 0, bytes, least = UINT64_MAX;
	enum plan_status err;
	uint32_t nr = 0;

	take(s, cap);
	for (uint32_t i = 1; i < s->in->nr_layers; i++) {
		if (s->taken[i])
			s->sizes[nr++] = s->taken[i];
		off += s->taken[i];
	}
	s->peak = s->b.total_bytes - off;
	if (!s->max_blocks)
		return PLAN_OK;
	for (uint32_t k = s->min_blocks; k <= s->max_blocks; k++) {
		err = plan_assign_least(s->sizes, nr, k, s->block);
		if (err)
			return err;
		bytes = plan_block_bytes(s->sizes, s->block, nr);
		if (bytes < least) {
			least = bytes;
			memcpy(s->best_block, s->block,
				nr * sizeof(*s->block));
		}
	}
	s->peak += least;
	return PLAN_OK;
}

static enum plan_status search(struct spread *s, uint64_t *cap)
{
	uint64_t lo = 1, hi = 0, mid;
	enum plan_status err;

	for (uint32_t i = 1; i < s->in->nr_layers; i++)
		if (s->b.layers[i].bytes > hi)
			hi = s->b.layers[i].bytes;
	*cap = hi;
	while (lo <= hi) {
		mid = lo + (hi - lo) / 2;
		err = plan_at(s, mid);
		if (err)
			return err;
		if (s->peak <= s->in->max_gpu_mem_bytes) {
			*cap = mid;
			hi = mid - 1;
		} else {
			lo = mid + 1;
		}
	}
	return plan_at(s, *cap);
}

static int by_place(const void *a, const void *b)
{
	const struct tensor_statistics *const *p = a, *const *q = b;

	return (*p > *q) - (*p < *q);
}

static enum plan_status finish(struct spread *s,
	struct strategy_result *result)
{
	struct plan_pick pick;
	enum plan_status err;

	err = plan_map_init(&result->strategy_map, s->in->nr_layers, s->arena);
	for (uint32_t i = 1; i < s->in->nr_layers && !err; i++) {
		const struct plan_budget_layer *l = &s->b.layers[i];

		if (!s->taken[i])
			continue;
		pick.nr = 0;
		pick.at = plan_arena_alloc(s->arena, l->nr, sizeof(*pick.at));
		if (!pick.at)
			return PLAN_NO_MEMORY;
		for (uint32_t j = 0; j < l->nr; j++)
			if (s->on[s->same[l->ranked[j].at]])
				pick.at[pick.nr++] = l->ranked[j].t;
		/* A layer's tensors lie in one array: its order. */
		qsort(pick.at, pick.nr, sizeof(*pick.at), by_place);
		err = plan_map_add(&result->strategy_map, i - 1, &pick,
			s->arena);
	}
	if (err || !s->max_blocks)
		return err;
	return plan_build_blocks(result, s->in, s->best_block, s->arena);
}

static enum plan_status setup(struct spread *s)
{
	const uint32_t n = s->in->nr_layers, nr = s->b.nr;
	struct plan_ids ids;
	enum plan_status err;
	uint32_t *first;

	s->on = plan_arena_alloc(s->arena, nr, sizeof(*s->on));
	s->same = plan_arena_alloc(s->arena, nr, sizeof(*s->same));
	s->taken = plan_arena_alloc(s->arena, n, sizeof(*s->taken));
	s->sizes = plan_arena_alloc(s->arena, n, sizeof(*s->sizes));
	s->block = plan_arena_alloc(s->arena, n, sizeof(*s->block));
	s->best_block = plan_arena_alloc(s->arena, n, sizeof(*s->best_block));
	if (!s->on || !s->same || !s->taken || !s->sizes || !s->block ||
	    !s->best_block)
		return PLAN_NO_MEMORY;
	err = plan_ids_init(&ids, nr, s->arena);
	for (uint32_t k = 0; k < nr && !err; k++) {
		first = plan_ids_at(&ids, s->b.ranked[k].t->id);
		if (*first == PLAN_NONE)
			*first = k;
		s->same[k] = *first;
	}
	return err;
}

enum plan_status plan_budget_fill_spread(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	struct spread s = { .in = in, .p = p, .arena = arena };
	const uint32_t n = in->nr_layers;
	enum plan_status err;
	uint64_t cap;

	err = plan_budget_init(&s.b, in, p, arena, result);
	if (err || s.b.total_bytes <= in->max_gpu_mem_bytes)
		return err;
	if (p->n_blocks) {
		s.max_blocks = n - 1 < (uint32_t)p->n_blocks ? n - 1 :
			(uint32_t)p->n_blocks;
		s.min_blocks = p->min_blocks ? p->min_blocks : 2;
		if (s.min_blocks > s.max_blocks)
			s.min_blocks = s.max_blocks;
	}
	err = setup(&s);
	if (!err)
		err = search(&s, &cap);
	if (err)
		return err;
	if (s.peak > in->max_gpu_mem_bytes) {
		result->over_budget = true;
		plan_warn(result, "offloading all that may be is not enough "
			"for the budget");
	}
	return finish(&s, result);
}
