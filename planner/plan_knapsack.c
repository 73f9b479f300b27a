/* SPDX-License-Identifier: Apache-2.0 */
/*
 * KnapsackStrategy, KnapsackBlockStrategy and AdaptiveKnapsackStrategy: for each
 * layer the tensors whose transfer fits the layer before it, that layer's time
 * being stretched by one scale for all; under a budget the smallest scale that
 * frees enough.
 *
 * Differences to the published ones: the subset for more than five candidates
 * is found by branch and bound (plan_subset.c), so more bytes may be chosen; and
 * a layer of duration 0 hides nothing, where the published ones fail.
 */
#include "planner/plan_int.h"

#include <math.h>
#include <string.h>

#define SEARCH_STEPS 50
#define MOST_ROUNDS 10

struct knapsack {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	const struct memory_transfer_interpolator *ip; /* or NULL */
	struct plan_groups g;
	bool by_time, greedy;
	/* The plan at hand: picks[i] is copied during group i. */
	struct plan_pick *picks;
	uint64_t *sizes;	/* of the transfers */
	uint32_t *block;
	uint64_t offloaded, peak;
};

static enum plan_status pick(struct knapsack *k, double window,
	const struct plan_pick *from, double scale, struct plan_pick *out)
{
	double ns;

	if (!k->by_time)
		return plan_subset_bytes(from, k->ip ?
			plan_duration_to_bytes(k->ip, window * scale) : -1,
			k->greedy, k->arena, out);
	ns = trunc(trunc(window * 1e6) * scale);
	return plan_subset_time(from, ns < 4e18 ? (int64_t)ns : (int64_t)4e18,
		k->greedy, k->arena, out);
}

/* ---- the scale for a budget ---- */

/* Bytes that could be hidden at this scale, tensors taken as divisible. */
static double hidden(const struct knapsack *k, double scale)
{
	double sum = 0;

	for (uint32_t i = 1; i < k->g.nr; i++)
		sum += fmin(plan_duration_to_bytes(k->ip,
				k->g.at[i - 1].duration_ms * scale),
			(double)k->g.at[i].all.bytes);
	return sum;
}

static double scale_for(const struct knapsack *k, double need)
{
	const double scale = k->p->scale;
	double time = 0, all = 0, cap, most = 100, lo, hi, mid, f;

	for (uint32_t i = 0; i + 1 < k->g.nr; i++) {
		time += k->g.at[i].duration_ms;
		all += (double)k->g.at[i + 1].all.bytes;
	}
	cap = plan_duration_to_bytes(k->ip, time);
	if (cap > 0)
		most = fmax(need / cap * 1.5, 10);
	hi = fmax(100 * scale, most);
	if (need > all)
		return hi;
	if (hidden(k, scale) >= need)
		return scale;
	lo = scale;
	for (int i = 0; i < SEARCH_STEPS; i++) {
		mid = (lo + hi) / 2;
		f = hidden(k, mid);
		/* As published: within a MiB is good enough, even if short. */
		if (fabs(f - need) < PLAN_MIB)
			return mid;
		if (f < need)
			lo = mid;
		else
			hi = mid;
	}
	return hi;
}

/* ---- a plan for a scale ---- */

/*
 * Layers at the start may be loaded, for the next iteration, in the time after
 * the last transfer; one of them is.
 */
static enum plan_status extend_cyclic(struct knapsack *k, double scale)
{
	struct plan_pick candidate, best = { 0 };
	uint32_t slot = k->g.nr, i;
	double time = 0;
	struct plan_ids used;
	enum plan_status err;
	size_t nr = 0;

	for (i = 0; i < k->g.nr; i++)
		nr += k->picks[i].nr;
	err = plan_ids_init(&used, nr, k->arena);
	if (err)
		return err;
	for (i = 0; i < k->g.nr; i++)
		for (uint32_t j = 0; j < k->picks[i].nr; j++)
			*plan_ids_at(&used, k->picks[i].at[j]->id) = 0;
	while (slot > 0 && !k->picks[slot - 1].nr)
		time += k->g.at[--slot].duration_ms;
	if (slot == k->g.nr || time <= 0)
		return PLAN_OK;
	for (i = 0; i < k->g.nr; i++) {
		const struct plan_pick *all = &k->g.at[i].all;

		for (uint32_t j = 0; j < all->nr; j++)
			if (plan_ids_find(&used, all->at[j]->id) != PLAN_NONE)
				goto out;
		err = pick(k, time, &k->g.at[i].eligible, scale, &candidate);
		if (err)
			return err;
		if (candidate.bytes > best.bytes)
			best = candidate;
		time += k->g.at[i].duration_ms;
	}
out:
	if (best.bytes)
		k->picks[slot] = best;
	return PLAN_OK;
}

static enum plan_status plan_at(struct knapsack *k, double scale)
{
	enum plan_status err = PLAN_OK;
	uint32_t nr = 0;

	memset(&k->picks[k->g.nr - 1], 0, sizeof(*k->picks));
	for (uint32_t i = 1; i < k->g.nr && !err; i++)
		err = pick(k, k->g.at[i - 1].duration_ms, &k->g.at[i].eligible,
			scale, &k->picks[i - 1]);
	if (!err && k->by_time && k->p->cyclic)
		err = extend_cyclic(k, scale);
	k->offloaded = 0;
	for (uint32_t i = 0; i < k->g.nr; i++)
		if (k->picks[i].bytes) {
			k->offloaded += k->picks[i].bytes;
			k->sizes[nr++] = k->picks[i].bytes;
		}
	k->peak = k->g.total_bytes - k->offloaded;
	if (err || k->p->n_blocks <= 0)
		return err;
	err = plan_assign_balanced(k->sizes, nr, k->p->n_blocks, k->block);
	if (!err)
		k->peak += plan_block_bytes(k->sizes, k->block, nr);
	return err;
}

/* Rounds of a larger scale; leaves the plan with the lowest peak. */
static enum plan_status fit_budget(struct knapsack *k, double *scale)
{
	const uint64_t limit = k->in->max_gpu_mem_bytes;
	struct plan_pick *best, *swap;
	uint64_t last = k->peak, best_peak = k->peak;
	double best_scale = *scale, s = *scale;
	enum plan_status err = PLAN_OK;

	best = plan_arena_alloc(k->arena, k->g.nr, sizeof(*best));
	if (!best)
		return PLAN_NO_MEMORY;
	memcpy(best, k->picks, k->g.nr * sizeof(*best));
	for (int i = 0; i < MOST_ROUNDS && !err && best_peak > limit; i++) {
		s *= fmax((double)last / (double)limit, 1.05);
		err = plan_at(k, s);
		last = k->peak;
		if (last < best_peak) {
			best_peak = last;
			best_scale = s;
			swap = best;
			best = k->picks;
			k->picks = swap;
		}
	}
	k->picks = best;
	k->peak = best_peak;
	*scale = best_scale;
	return err;
}

static enum plan_status finish(struct knapsack *k,
	struct strategy_result *result)
{
	enum plan_status err;
	uint32_t nr = 0;

	err = plan_map_init(&result->strategy_map, k->g.nr, k->arena);
	for (uint32_t i = 0; i < k->g.nr && !err; i++) {
		if (k->picks[i].bytes)
			k->sizes[nr++] = k->picks[i].bytes;
		/* As published, a slot is listed even if it copies nothing. */
		if (i + 1 < k->g.nr || k->picks[i].nr)
			err = plan_map_add(&result->strategy_map,
				k->g.at[i].first, &k->picks[i], k->arena);
	}
	if (err || k->p->n_blocks <= 0)
		return err;
	err = plan_assign_balanced(k->sizes, nr, k->p->n_blocks, k->block);
	return err ? err : plan_build_blocks(result, k->in, k->block, k->arena);
}

static enum plan_status compute(struct knapsack *k,
	struct strategy_result *result)
{
	const uint64_t limit = k->in->max_gpu_mem_bytes;
	double scale = k->p->scale;
	enum plan_status err;

	if (limit != PLAN_NO_LIMIT && k->ip) {
		if (k->g.nr < 2)
			return plan_fail(result, PLAN_NEEDS_LAYERS,
				"a transfer needs a layer before it to hide "
				"behind: at least two layers or groups");
		if (k->g.total_bytes > limit)
			scale = scale_for(k,
				(double)(k->g.total_bytes - limit));
	}
	err = plan_at(k, scale);
	if (!err && limit != PLAN_NO_LIMIT && k->p->n_blocks > 0 &&
	    k->peak > limit)
		err = fit_budget(k, &scale);
	return err ? err : (result->scale = scale, finish(k, result));
}

static enum plan_status knapsack(const struct plan_input *in,
	const struct plan_params *p, bool by_time, bool greedy,
	struct plan_arena *arena, struct strategy_result *result)
{
	struct knapsack k = { .in = in, .p = p, .arena = arena,
		.by_time = by_time, .greedy = greedy };
	struct memory_transfer_interpolator *ip;
	enum plan_status err;

	if (!in->nr_layers)
		return PLAN_OK;
	err = plan_interpolator_of(in, arena, &ip);
	k.ip = ip;
	if (!err)
		err = plan_groups_create(in, p->threshold_mb, p->group_size,
			arena, &k.g);
	if (err)
		return err;
	k.picks = plan_arena_alloc(arena, k.g.nr, sizeof(*k.picks));
	k.sizes = plan_arena_alloc(arena, k.g.nr, sizeof(*k.sizes));
	k.block = plan_arena_alloc(arena, k.g.nr, sizeof(*k.block));
	if (!k.picks || !k.sizes || !k.block)
		return PLAN_NO_MEMORY;
	err = compute(&k, result);
	if (err)
		return err;
	if (k.peak > in->max_gpu_mem_bytes) {
		result->over_budget = true;
		plan_warn(result, "no scale tried fits the budget; the best "
			"plan is above it");
	} else if (result->scale > p->scale) {
		plan_warn(result, "the budget needs transfers longer than the "
			"compute they hide behind");
	}
	return PLAN_OK;
}

enum plan_status plan_knapsack(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return knapsack(in, p, true, false, arena, result);
}

enum plan_status plan_knapsack_block(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return knapsack(in, p, false, false, arena, result);
}

enum plan_status plan_adaptive_knapsack(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return knapsack(in, p, p->loader_type == PLAN_LOADER_STRATEGY, false,
		arena, result);
}

enum plan_status plan_knapsack_first_fit(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return knapsack(in, p, false, true, arena, result);
}
