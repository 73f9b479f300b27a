/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cases and reference results of test/data, for the planner's tests.  The
 * tests run in the project's root.
 */
#ifndef BALLAST_TEST_PLAN_CASES_H
#define BALLAST_TEST_PLAN_CASES_H

#include "planner/planner.h"

#define PLAN_CASES "test/data/cases"
#define PLAN_REFERENCE "test/data/reference.tsv"

struct plan_case {
	char name[64];
	struct plan_arena *arena;
	struct layer_statistics *layers;
	uint32_t nr;
	struct memory_stats memory_stats;
	uint64_t total;		/* each use counted */
	uint64_t budgets[8];
	uint32_t nr_budgets;
};

/* Aborts the test program if the file is missing or wrong. */
struct plan_case *plan_case_load(const char *name);
void plan_case_free(struct plan_case *c);

struct plan_reference {
	char name[64], strategy[64], selected[64];
	uint64_t budget;	/* or PLAN_NO_LIMIT */
	bool failed, valid;
	uint64_t peak, offloaded;
	uint32_t violations, blocks;
	double overhead, scale;	/* scale 0: not told */
};

struct plan_reference *plan_reference_load(uint32_t *nr);

#endif
