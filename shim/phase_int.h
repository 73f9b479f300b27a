/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What phase.c (the program's threads) and phase_plan.c (the planning thread)
 * share.
 */
#ifndef BALLAST_PHASE_INT_H
#define BALLAST_PHASE_INT_H

#include "planner/plan_io.h"
#include "planner/timeline.h"
#include "shim/gauge.h"
#include "shim/observe.h"
#include "shim/phase.h"
#include "shim/unit.h"

/* One order for the planner, and what came of it. */
struct plan_order {
	/* In: */
	uint32_t device;		/* ordinal, for messages */
	struct plan_arena *arena;	/* owned; holds profile and result */
	struct observe_profile profile;
	struct gauge gauge;
	uint64_t page_bytes;
	uint64_t budget;		/* for layers and pool */
	uint64_t budget_least;		/* with other data streamed as well */
	double release_ms;
	bool profile_only;		/* everything fits: no plan is made */
	/* For files. */
	char device_name[96];
	uint64_t device_bytes;
	struct plan_program program;
	/* Out: */
	struct schedule *schedule;	/* owned; NULL: nothing to stream */
	struct strategy_result result;
	enum plan_status status;
	char message[PLAN_MESSAGE];
	double predicted_ms, bound_ms;
	uint64_t peak_bytes, streamed_bytes;
	const struct plan_strategy *strategy;
	struct plan_params params;
	uint64_t budget_used;
	struct timeline_times times;	/* of the steady state; 0: not known */
	bool from_file;			/* plan_in's */
	bool done;			/* guarded by phase_plan.c's lock */
};

void order_destroy(struct plan_order *o);	/* NULL is fine */
/* Fills in times, bound and bytes of a result, whichever strategy made it. */
void order_judge(struct plan_order *o);
/* Plans; on the planning thread, without any lock. */
void order_run(struct plan_order *o);

/*
 * Gives an order to the thread, which is started if need be.  -errno where
 * there can be none; then the order is the caller's still.
 */
int planner_submit(struct plan_order *o) WARN_UNUSED;
/* The order, done; NULL: not yet.  Waits up to wait_ns for it. */
struct plan_order *planner_take(struct plan_order *o, uint64_t wait_ns);
/* Ends the thread after what it is at. */
void planner_stop(void);

#endif
