/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of strategies: name, parameters and their defaults as published,
 * and the function.  Called by the tools, by adaptive and by the library.
 */
#include "planner/plan_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define P(name) (UINT64_C(1) << PLAN_PARAM_##name)

/* What a strategy does not take has these values too. */
#define DEFAULTS .scale = 1, .threshold_mb = 0.1, .nth_layer = 2, \
	.group_size = 1, .n_blocks = 4, .cyclic = true, \
	.enable_layer_de = true, .enable_tensor_de = true, .pop_size = 20, \
	.epoch = 60, .max_early_stop = 20, .seed_ratio = 0.25, .seed = 42, \
	.chunk_bytes = 2 << 20, .margin = 0.05, .wrap = true
#define BUDGET_FILL .n_blocks = 0, .threshold_mb = 1
#define SELECTION .pop_size = 50, .epoch = 200, .max_early_stop = 25

#define KNAPSACK (P(scale) | P(group_size) | P(threshold_mb) | P(n_blocks))
#define BLOCKS (P(n_blocks) | P(scale) | P(threshold_mb))
#define ASSIGNED (P(assignment) | P(min_blocks) | P(max_blocks))
#define SEARCH (P(pop_size) | P(epoch) | P(max_early_stop) | P(seed))

/* Members set twice: the later one is meant. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Winitializer-overrides"
#endif
static const struct plan_strategy strategies[] = {
	{ "greedy", "offload when the compute so far hides the layer's load",
	  P(threshold_mb) | P(n_blocks) | P(scale),
	  { DEFAULTS }, plan_greedy },
	{ "nth_layer", "offload every n-th layer",
	  P(nth_layer) | P(threshold_mb) | P(n_blocks),
	  { DEFAULTS }, plan_nth_layer },
	{ "knapsack", "per layer, what loads within the layer before",
	  KNAPSACK | P(cyclic), { DEFAULTS }, plan_knapsack },
	{ "knapsack_block", "the same by the table of transfer times",
	  KNAPSACK, { DEFAULTS }, plan_knapsack_block },
	{ "adaptive_knapsack", "one of the two, as the loader needs",
	  KNAPSACK | P(cyclic) | P(loader_type),
	  { DEFAULTS }, plan_adaptive_knapsack },
	{ "budget_fill", "fewest offloaded bytes within the budget",
	  BLOCKS | ASSIGNED | SEARCH | P(enable_layer_de) |
		P(enable_tensor_de),
	  { DEFAULTS, BUDGET_FILL }, plan_budget_fill },
	{ "budget_fill_greedy", "the same, greedy only",
	  BLOCKS | ASSIGNED, { DEFAULTS, BUDGET_FILL },
	  plan_budget_fill_greedy },
	{ "budget_fill_layer_de", "the same, searching parts of layers",
	  BLOCKS | ASSIGNED | SEARCH, { DEFAULTS, BUDGET_FILL },
	  plan_budget_fill_layer_de },
	{ "budget_fill_tensor_de", "the same, searching sets of tensors",
	  BLOCKS | ASSIGNED | SEARCH,
	  { DEFAULTS, BUDGET_FILL, .pop_size = 30, .epoch = 80,
	    .max_early_stop = 25 }, plan_budget_fill_tensor_de },
	{ "budget_fill_spread", "as many bytes from each layer",
	  BLOCKS | P(min_blocks), { DEFAULTS }, plan_budget_fill_spread },
	{ "global_offload", "layers as whole as one scale for all allows",
	  BLOCKS | ASSIGNED, { DEFAULTS }, plan_global_offload },
	{ "global_offload_strict", "the same with blocks strictly in turn",
	  BLOCKS | ASSIGNED, { DEFAULTS }, plan_global_offload_strict },
	{ "global_tensor_selection_de", "sets of tensors, by evolution",
	  BLOCKS | ASSIGNED | SEARCH | P(scale_ub) | P(window) |
		P(seed_ratio), { DEFAULTS, SELECTION },
	  plan_tensor_selection_de },
	{ "global_tensor_selection_sa", "sets of tensors, by annealing",
	  BLOCKS | ASSIGNED | SEARCH | P(scale_ub) | P(window) |
		P(seed_ratio), { DEFAULTS, SELECTION },
	  plan_tensor_selection_sa },
	{ "adaptive", "the best of several strategies",
	  KNAPSACK | P(cyclic) | P(loader_type) | P(min_blocks) |
		P(extra_optimization) | P(candidates) | P(seed),
	  { DEFAULTS, .cyclic = false, .min_blocks = 2,
	    .loader_type = PLAN_LOADER_ALLOCATION_BLOCK }, plan_adaptive },
	{ "optimal", "the shortest iteration, in parts of tensors",
	  P(chunk_bytes) | P(margin) | P(release_ms) | P(wrap) | P(seed),
	  { DEFAULTS }, plan_optimal },
};
#pragma GCC diagnostic pop

uint32_t plan_nr_strategies(void)
{
	return sizeof(strategies) / sizeof(strategies[0]);
}

const struct plan_strategy *plan_strategy(uint32_t nr)
{
	return nr < plan_nr_strategies() ? &strategies[nr] : NULL;
}

const struct plan_strategy *plan_strategy_find(const char *name)
{
	for (uint32_t i = 0; i < plan_nr_strategies(); i++)
		if (!strcmp(strategies[i].name, name))
			return &strategies[i];
	return NULL;
}

/* ---- ranges ---- */

struct range {
	double lo, hi;
	const char *text;
};

static struct range range_of(enum plan_param_id id)
{
	switch (id) {
	case PLAN_PARAM_scale:
		return (struct range){ 1e-6, 1e6, "above 0, at most 1e6" };
	case PLAN_PARAM_scale_ub:
		return (struct range){ 0, 1e6, "0 or up to 1e6" };
	case PLAN_PARAM_threshold_mb:
		return (struct range){ 0, 1e9, "not negative" };
	case PLAN_PARAM_nth_layer:
	case PLAN_PARAM_group_size:
		return (struct range){ 1, 1e6, "1 to 1000000" };
	case PLAN_PARAM_n_blocks:
	case PLAN_PARAM_min_blocks:
	case PLAN_PARAM_max_blocks:
		return (struct range){ 0, 1024, "0 to 1024" };
	case PLAN_PARAM_pop_size:
		return (struct range){ 3, 10000, "3 to 10000" };
	case PLAN_PARAM_epoch:
	case PLAN_PARAM_max_early_stop:
		return (struct range){ 1, 1e6, "1 to 1000000" };
	case PLAN_PARAM_seed_ratio:
		return (struct range){ 0, 1, "0 to 1" };
	case PLAN_PARAM_loader_type:
		return (struct range){ 0, 2, "one of three" };
	case PLAN_PARAM_candidates:
		return (struct range){ 0, 1, "one of two" };
	case PLAN_PARAM_chunk_bytes:
		return (struct range){ 1, 0x1p40, "1 to 1 TiB" };
	case PLAN_PARAM_margin:
		return (struct range){ 0, 0.9, "0 to 0.9" };
	case PLAN_PARAM_release_ms:
		return (struct range){ 0, 1e9, "not negative" };
	default:
		return (struct range){ -INFINITY, INFINITY, "" };
	}
}

static double value_of(const struct plan_param *param,
	const struct plan_params *p)
{
	const void *at = (const char *)p + param->offset;

	switch (param->kind) {
	case PLAN_REAL:
		return *(const double *)at;
	case PLAN_INT:
		return *(const int *)at;
	case PLAN_BYTES:
		return (double)*(const uint64_t *)at;
	case PLAN_LOADER:
		return *(const enum plan_loader *)at;
	case PLAN_CANDIDATES:
		return *(const enum plan_candidates *)at;
	default:
		return 0;
	}
}

static enum plan_status bad(char *message, const char *name, const char *text)
{
	if (message)
		snprintf(message, PLAN_MESSAGE, "%s: must be %s", name, text);
	return PLAN_BAD_PARAM;
}

/* Numbers of blocks that do not go together. */
static enum plan_status check_blocks(const struct plan_strategy *s,
	const struct plan_params *p, char *message)
{
	int max = p->max_blocks ? p->max_blocks : p->n_blocks;

	if (!(s->params & (P(assignment) | P(min_blocks))))
		return PLAN_OK;
	/* What plans without blocks by default, may. */
	if (!p->n_blocks && (!s->defaults.n_blocks ||
	    s->compute == plan_budget_fill_spread))
		return PLAN_OK;
	if (p->n_blocks < 2)
		return bad(message, "n_blocks", "at least 2 here");
	if (p->min_blocks == 1)
		return bad(message, "min_blocks", "at least 2");
	if (max > p->n_blocks)
		return bad(message, "max_blocks", "at most n_blocks");
	if (p->min_blocks > max)
		return bad(message, "min_blocks", "at most max_blocks");
	return PLAN_OK;
}

enum plan_status plan_params_check(const struct plan_strategy *s,
	const struct plan_params *p, char *message)
{
	for (uint32_t i = 0; i < PLAN_NR_PARAMS; i++) {
		const struct plan_param *param = plan_param(i);
		struct range r = range_of(i);
		double v = value_of(param, p);

		if (!(s->params >> i & 1))
			continue;
		if (!(v >= r.lo && v <= r.hi))
			return bad(message, param->name, r.text);
	}
	if ((s->params & P(assignment)) && p->assignment.compute &&
	    !(p->assignment.distribution_weight >= 0 &&
	      p->assignment.distribution_weight <= 1))
		return bad(message, "distribution_weight", "0 to 1");
	if ((s->params & P(scale_ub)) && p->scale_ub && p->scale_ub < p->scale)
		return bad(message, "scale_ub", "0 or at least scale");
	return check_blocks(s, p, message);
}

enum plan_status plan_compute(const struct plan_strategy *s,
	const struct plan_input *in, const struct plan_params *p,
	struct plan_arena *arena, struct strategy_result *result)
{
	enum plan_status err;

	memset(result, 0, sizeof(*result));
	if (!p)
		p = &s->defaults;
	err = plan_input_check(in, result->message);
	if (!err)
		err = plan_params_check(s, p, result->message);
	if (!err && in->max_gpu_mem_bytes == 0)
		err = PLAN_BAD_BUDGET;
	return err ? err : s->compute(in, p, arena, result);
}
