/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the planner's result to a schedule: bytes to pages, pools and blocks to
 * slots.  Pure; called on the planning thread.
 *
 * A plan of `optimal` brings its own ring.  Block data become runs of slots, a
 * block's size rounded up to pages.  A plan without blocks says only which
 * bytes are streamed: they go through a ring of what the budget leaves, in
 * order, each layer's in one piece.
 */
#ifndef BALLAST_CONVERT_H
#define BALLAST_CONVERT_H

#include <stdint.h>

#include "planner/planner.h"
#include "shim/observe.h"
#include "shim/unit.h"

struct convert {
	const struct strategy_result *result;
	const struct plan_input *in;
	/* By tensor id: its pages.  Sizes in `in` are whole pages. */
	const struct observe_tensor *tensors;
	uint32_t nr_tensors;
	uint64_t page_bytes;
	uint64_t budget;	/* residents and pool, bytes */
};

/*
 * PLAN_INFEASIBLE: it needs more slots than the budget has.  On success *out
 * is the caller's (schedule_destroy); NULL: nothing is streamed.
 */
enum plan_status convert_plan(const struct convert *c, struct schedule **out);

#endif
