/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds on the period of any plan under a budget: whatever the layout,
 * the order and the splitting of copies, as long as the link is one engine.
 * Called by the strategy `optimal` and by the tools.  Pure; no locks.
 */
#ifndef BALLAST_PLANNER_BOUND_H
#define BALLAST_PLANNER_BOUND_H

#include "planner/timeline.h"

struct bound_model {
	uint32_t nr;		/* layers */
	const double *ms;	/* by layer */
	const uint64_t *bytes;	/* by layer: all that it reads */
	uint64_t need;		/* unique bytes less the budget; 0: all fits */
	double latency_ms, ms_per_byte;	/* nowhere above the link's cost */
};

/*
 * The larger of computing without waits and of copying what cannot be resident
 * through the smallest pool that allows it.
 */
double bound_simple(const struct bound_model *m);

/*
 * Much closer where compute is uneven: the optimum over all pools of copies as a
 * fluid, with the latency of copies that are no larger than the pool, two in a
 * row neither; for plans whose residents stay the same.  Cost about linear in layers.  Never
 * below bound_simple().  streamed (NULL, or room for nr) gets the bytes of each
 * layer in the optimum and *pool its pool; *pool is 0 where there is none.
 */
enum plan_status bound_strong(const struct bound_model *m,
	struct plan_arena *arena, double *period_ms, double *streamed,
	double *pool);

#endif
