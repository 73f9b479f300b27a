/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase_plan.c: orders of several devices, one thread.  What the files and the
 * schedules do is not of interest here, so they do nothing.
 */
#include "shim/phase_plan.c"

#include <unistd.h>

#include "test/unit/unit.h"

static int nr_saved;		/* atomic; orders that the thread has run */

void file_save_profile(const struct plan_order *o)
{
	__atomic_fetch_add(&nr_saved, 1, __ATOMIC_SEQ_CST);
}

void file_save_plan(const struct plan_order *o)
{
}

bool file_take_plan(struct plan_order *o)
{
	return false;
}

bool file_wants_profile(void)
{
	return false;
}

const struct plan_strategy *file_strategy(struct plan_params *params,
	char *message)
{
	return NULL;
}

void schedule_destroy(struct schedule *sc)
{
}

enum plan_status convert_plan(const struct convert *c, struct schedule **out)
{
	return PLAN_BAD_PARAM;
}

#define SOON 5000000000ull

/* Hands it in, and sees that the thread has been at it. */
static void order(struct plan_order *o)
{
	int before = __atomic_load_n(&nr_saved, __ATOMIC_SEQ_CST);

	o->profile_only = true;
	ck_assert_int_eq(planner_submit(o), 0);
	while (__atomic_load_n(&nr_saved, __ATOMIC_SEQ_CST) == before)
		usleep(100);
}

/* Nobody asks for the first one before the second is done, too. */
START_TEST(test_two_devices)
{
	struct plan_order a = { 0 }, b = { 0 };

	order(&a);
	order(&b);
	ck_assert_ptr_eq(planner_take(&b, SOON), &b);
	ck_assert_ptr_eq(planner_take(&a, SOON), &a);
}
END_TEST

START_TEST(test_not_yet)
{
	struct plan_order a = { 0 }, b = { 0 };

	order(&a);
	ck_assert_ptr_null(planner_take(&b, 0));
	ck_assert_ptr_null(planner_take(&b, 1000000));
	ck_assert_ptr_eq(planner_take(&a, SOON), &a);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("phase_plan");
	TCase *t = tcase_create("phase_plan");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_two_devices);
	tcase_add_test(t, test_not_yet);
	suite_add_tcase(s, t);
	return unit_run(s);
}
