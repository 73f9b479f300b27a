/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdaptiveStrategy: computes its candidates, scores each by
 * evaluate_strategy_result and takes the best.  Published candidates are those
 * of both public versions, with and without the later BudgetFill; "all" adds
 * every other strategy.  A candidate that has no plan here is left out.
 *
 * Differences to the published one: no unseeded search, and a layer of duration
 * 0 is no error.  Two candidates are new: KnapsackBlock with first-fit only, and
 * BudgetFill followed by a search for less waiting; for fuller windows, or fewer
 * bytes, are not always less waiting, and that is what adaptive looks at.
 */
#include "planner/plan_int.h"

#include <string.h>

struct candidates {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	const struct memory_transfer_interpolator *ip;
	struct strategy_score *scores;
	uint32_t nr;
	struct strategy_result best;
	uint32_t best_at;
};

/* Parameters that the candidate takes from adaptive's own. */
static struct plan_params params_of(const struct plan_strategy *s,
	const struct plan_params *p, plan_assign_fn *assign)
{
	struct plan_params q = s->defaults;

	q.scale = p->scale;
	q.threshold_mb = p->threshold_mb;
	q.group_size = p->group_size;
	q.cyclic = p->cyclic;
	q.n_blocks = p->n_blocks;
	q.min_blocks = p->min_blocks;
	q.max_blocks = p->n_blocks;
	q.seed = p->seed;
	q.enable_tensor_de = false;
	if (assign) {
		q.assignment.compute = assign;
		q.assignment.distribution_weight = 0.5;
	}
	return q;
}

static enum plan_status try_one(struct candidates *c, const char *name,
	plan_compute_fn *compute, const struct plan_params *q)
{
	struct strategy_result r;
	struct strategy_score *score = &c->scores[c->nr];
	enum plan_status err;

	memset(&r, 0, sizeof(r));
	err = compute(c->in, q, c->arena, &r);
	if (!err)
		err = evaluate_strategy_result(&r, c->in, name, c->ip, score);
	if (err && err <= PLAN_INFEASIBLE)
		return PLAN_OK;
	if (err)
		return err;
	if (!c->nr || plan_score_compare(score, &c->scores[c->best_at]) < 0) {
		c->best = r;
		c->best_at = c->nr;
	}
	c->nr++;
	return PLAN_OK;
}

static enum plan_status try_named(struct candidates *c, const char *name,
	const char *strategy, plan_assign_fn *assign, bool search_more)
{
	const struct plan_strategy *s = plan_strategy_find(strategy);
	struct plan_params q = params_of(s, c->p, assign);

	/* As published under extra_optimization. */
	if (search_more) {
		q.epoch = 100;
		q.max_early_stop = 50;
	}
	return try_one(c, name, s->compute, &q);
}

static enum plan_status try_published(struct candidates *c)
{
	const bool budget = c->in->max_gpu_mem_bytes != PLAN_NO_LIMIT;
	struct plan_params q = params_of(plan_strategy_find("budget_fill"),
		c->p, plan_assign_optimized);
	enum plan_status err;

	if (c->p->loader_type == PLAN_LOADER_STRATEGY)
		return try_named(c, "Knapsack", "knapsack", NULL, false);
	err = try_named(c, "KnapsackBlock", "knapsack_block", NULL, false);
	if (!err && budget)
		err = try_one(c, "KnapsackBlock(FirstFit)",
			plan_knapsack_first_fit, &q);
	if (!err)
		err = try_named(c, "GlobalOffload(Optimized)",
			"global_offload", plan_assign_optimized, false);
	if (!err)
		err = try_named(c, "GlobalOffload(Strict)",
			"global_offload_strict", plan_assign_strict, false);
	if (!err && budget)
		err = try_named(c, "BudgetFill", "budget_fill",
			plan_assign_optimized, false);
	if (!err && budget)
		err = try_one(c, "BudgetFill(Overhead)",
			plan_budget_fill_overhead, &q);
	if (!err && budget)
		err = try_named(c, "BudgetFillSpread", "budget_fill_spread",
			NULL, false);
	if (err || !c->p->extra_optimization)
		return err;
	err = try_named(c, "GlobalTensorSelection(Optimized)",
		"global_tensor_selection_de", plan_assign_optimized, true);
	return err ? err : try_named(c, "GlobalTensorSelection(Strict)",
		"global_tensor_selection_de", plan_assign_strict, true);
}

/* Every strategy that is not among the published candidates. */
static enum plan_status try_others(struct candidates *c)
{
	static const char *const tried[] = { "adaptive", "knapsack_block",
		"adaptive_knapsack", "budget_fill", "budget_fill_spread",
		"global_offload", "global_offload_strict" };
	enum plan_status err = PLAN_OK;

	for (uint32_t i = 0; i < plan_nr_strategies() && !err; i++) {
		const struct plan_strategy *s = plan_strategy(i);
		bool skip = false;

		for (size_t k = 0; k < sizeof(tried) / sizeof(*tried); k++)
			skip = skip || !strcmp(tried[k], s->name);
		if (!skip)
			err = try_named(c, s->name, s->name, NULL, false);
	}
	return err;
}

enum plan_status plan_adaptive(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	struct candidates c = { .in = in, .p = p, .arena = arena };
	struct memory_transfer_interpolator *ip = NULL;
	enum plan_status err = PLAN_OK;

	/* As published: without a table, the lowest peak wins. */
	if (in->memory_stats && in->memory_stats->nr)
		err = plan_interpolator_create(in->memory_stats, arena, &ip);
	if (err)
		return err;
	c.ip = ip;
	c.scores = plan_arena_alloc(arena, plan_nr_strategies() + 8,
		sizeof(*c.scores));
	if (!c.scores)
		return PLAN_NO_MEMORY;
	err = try_published(&c);
	if (!err && p->candidates == PLAN_CANDIDATES_ALL)
		err = try_others(&c);
	if (err)
		return err;
	if (!c.nr)
		return plan_fail(result, PLAN_INFEASIBLE,
			"none of the strategies tried has a plan");
	*result = c.best;
	result->all_scores = c.scores;
	result->nr_scores = c.nr;
	result->selected_strategy_name = c.scores[c.best_at].name;
	if (!c.scores[c.best_at].is_valid) {
		result->over_budget = true;
		plan_warn(result, "no strategy tried fits the budget; the "
			"best plan is above it");
	}
	return PLAN_OK;
}
