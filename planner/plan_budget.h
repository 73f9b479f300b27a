/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the BudgetFill strategies share: candidates in order of rank, and the
 * peak of a selection.  Private to planner/.
 */
#ifndef BALLAST_PLAN_BUDGET_H
#define BALLAST_PLAN_BUDGET_H

#include "planner/plan_int.h"

struct plan_ranked {
	const struct tensor_statistics *t;
	uint32_t layer, at;	/* its place among all candidates */
	double ms;
	bool fits;		/* its copy alone fits the layer before */
};

struct plan_budget_layer {
	uint32_t nr;
	uint64_t bytes;
	struct plan_ranked *ranked;
};

struct plan_budget {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	const struct memory_transfer_interpolator *ip; /* or NULL */
	struct plan_assignment assignment;
	uint64_t total_bytes, limit;
	uint32_t nr;
	struct plan_ranked *ranked;		/* all, best first */
	struct plan_budget_layer *layers;	/* by layer, best first */
	/* Scratch of plan_budget_peak() */
	uint64_t *sizes;
	uint32_t *block;
};

/* Which candidates are offloaded, and what follows from it. */
struct plan_selection {
	bool *on;		/* by plan_ranked.at */
	uint64_t *bytes;	/* by layer */
	uint64_t off, nonfit;	/* bytes */
	uint64_t peak;		/* set by plan_budget_peak() */
};

/* Checks for a budget and two layers; ranks. */
enum plan_status plan_budget_init(struct plan_budget *b,
	const struct plan_input *in, const struct plan_params *p,
	struct plan_arena *arena, struct strategy_result *result);
enum plan_status plan_selection_init(struct plan_selection *s,
	const struct plan_budget *b);
void plan_selection_clear(struct plan_selection *s,
	const struct plan_budget *b);
void plan_selection_copy(struct plan_selection *to,
	const struct plan_selection *from, const struct plan_budget *b);
void plan_selection_set(struct plan_selection *s, const struct plan_ranked *r,
	bool on);
/* With the real assignment. */
enum plan_status plan_budget_peak(const struct plan_budget *b,
	struct plan_selection *s);
/* a is better: fits the budget, or offloads less, or peaks lower. */
bool plan_selection_better(const struct plan_selection *a,
	const struct plan_selection *b, uint64_t limit);
enum plan_status plan_budget_finish(const struct plan_budget *b,
	const struct plan_selection *s, struct strategy_result *result);

/* The prefix of the ranking that fits the budget with the fewest bytes. */
enum plan_status plan_budget_greedy(const struct plan_budget *b,
	struct plan_selection *s);
/* plan_budget_search.c: s is a start, and only replaced by a better one. */
enum plan_status plan_budget_search_layers(const struct plan_budget *b,
	struct plan_selection *s);
enum plan_status plan_budget_search_tensors(const struct plan_budget *b,
	struct plan_selection *s);
/* From s, the least waiting by the published estimate, within the budget. */
enum plan_status plan_budget_search_overhead(const struct plan_budget *b,
	struct plan_selection *s);

#endif
