/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linear program that bounds every plan's period from below, for tests:
 * solved with GLPK where that was found when the tests were built.
 */
#ifndef BALLAST_TEST_PLAN_LP_H
#define BALLAST_TEST_PLAN_LP_H

#include <stdbool.h>
#include <stdint.h>

/* Was GLPK there? */
bool plan_lp_available(void);
/*
 * bytes: what a layer may give up; need: what must be given up net of the pool.
 * pool: in bytes, or 0 for the best one; see plan_lp.c for what else that
 * changes.  -1 if the program has no solution.
 */
double plan_lp_bound(uint32_t nr, const double *ms, const uint64_t *bytes,
	double need, double latency_ms, double ms_per_byte, double pool);

#endif
