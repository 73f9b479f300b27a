/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests with very many plans: assertions that cost nothing while they hold,
 * and the way of a plan through its file and back.
 */
#ifndef BALLAST_TEST_PLAN_SAME_H
#define BALLAST_TEST_PLAN_SAME_H

#include "planner/plan_io.h"
#include "test/unit/unit.h"

/* Check's own assertions write to a pipe each time; these only on failure. */
#define HOLDS_MSG(x, ...) \
	do { \
		if (!(x)) \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)
#define HOLDS(x) HOLDS_MSG(x, "not so: %s", #x)
#define HOLDS_EQ(a, b) HOLDS_MSG((a) == (b), "%s is not %s", #a, #b)

/* The file test/data/cases/NAME.json as a profile. */
void plan_same_case(const char *name, struct plan_arena *arena,
	struct plan_profile *p);
/* Both may be NULL. */
void plan_same_text(const char *a, const char *b);
/* Fails unless the plan that is read is the plan that was written. */
void plan_same_file(const struct plan_strategy *s, const struct plan_file *f,
	struct plan_arena *arena);

#endif
