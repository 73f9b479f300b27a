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

void mix_run(struct plan_order *o)
{
}

#define SOON 5000000000ull

/* Hands it in, and sees that the thread has been at it. */
static void order(struct plan_order *o)
{
	int r, before = __atomic_load_n(&nr_saved, __ATOMIC_SEQ_CST);

	o->profile_only = true;
	/* It may not have begun the last one. */
	while ((r = planner_submit(o)) == -EBUSY)
		usleep(100);
	ck_assert_int_eq(r, 0);
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

/* An order that nobody will take, at work or done, is destroyed. */
START_TEST(test_forgotten)
{
	struct plan_order *a = calloc(1, sizeof(*a));
	struct plan_order *b = calloc(1, sizeof(*b));
	struct plan_order c = { 0 };

	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	planner_forget(NULL);
	a->profile_only = b->profile_only = true;
	ck_assert_int_eq(planner_submit(a), 0);
	planner_forget(a);
	order(&c);
	ck_assert_ptr_eq(planner_take(&c, SOON), &c);
	ck_assert_int_eq(planner_submit(b), 0);
	ck_assert_ptr_eq(planner_take(b, SOON), b);
	planner_forget(b);
	ck_assert_int_eq(nr_saved, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("phase_plan");
	TCase *t = tcase_create("phase_plan");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_two_devices);
	tcase_add_test(t, test_not_yet);
	tcase_add_test(t, test_forgotten);
	suite_add_tcase(s, t);
	return unit_run(s);
}
