/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: what holds for every plan of the strategy `optimal`. */
#ifndef BALLAST_TEST_PLAN_CHECK_H
#define BALLAST_TEST_PLAN_CHECK_H

#include "planner/planner.h"

/* Bytes of all tensors, each once. */
uint64_t plan_check_unique(const struct plan_input *in);
/*
 * Fails unless entries and pieces cover each other, peak and period are as the
 * result says, the peak is within the budget, and no part of the pool is
 * overwritten before its last reader has ended.
 */
void plan_check(const struct plan_input *in, const struct plan_params *p,
	const struct strategy_result *r, struct plan_arena *arena);

#endif
