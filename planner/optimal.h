/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategy `optimal` beyond plan_compute_fn: how its result's layers and
 * bytes are counted, for the tools and tests.  plan_optimal() itself is declared
 * in planner.h.
 */
#ifndef BALLAST_PLANNER_OPTIMAL_H
#define BALLAST_PLANNER_OPTIMAL_H

#include "planner/bound.h"
#include "planner/timeline.h"

/*
 * What the bound needs, from the planner's input.  PLAN_INFEASIBLE: a layer is
 * larger than the budget.
 */
enum plan_status optimal_bound_model(const struct plan_input *in,
	struct plan_arena *arena, struct bound_model *out);

#endif
