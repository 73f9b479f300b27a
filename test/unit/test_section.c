/* SPDX-License-Identifier: Apache-2.0 */
/*
 * section.c: who waits for all sections waits for those that are open, for
 * nothing else, and not for ever.
 */
#include "shim/section.c"

#include <sched.h>
#include <unistd.h>

#include "test/unit/unit.h"

#define THREADS 4
#define ROUNDS 320

static int stage;		/* atomic */
static int flag;		/* what the sections look at; atomic */
static int in_use;		/* sections that saw flag == 0; atomic */
static bool stop;		/* atomic */

static uint64_t soon(void)
{
	return lock_now_ns() + 5000000000ull;
}

START_TEST(test_none_open)
{
	ck_assert(section_wait_all(lock_now_ns()));
	section_open();
	section_close();
	ck_assert(section_wait_all(lock_now_ns()));
}
END_TEST

static void *holder(void *arg)
{
	section_open();
	__atomic_store_n(&stage, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&stage, __ATOMIC_SEQ_CST) != 2)
		sched_yield();
	section_close();
	return NULL;
}

START_TEST(test_waits)
{
	pthread_t t;

	ck_assert_int_eq(pthread_create(&t, NULL, holder, NULL), 0);
	while (__atomic_load_n(&stage, __ATOMIC_SEQ_CST) != 1)
		sched_yield();
	/* Open: the deadline ends the wait. */
	ck_assert(!section_wait_all(lock_now_ns() + 20000000));
	__atomic_store_n(&stage, 2, __ATOMIC_SEQ_CST);
	ck_assert(section_wait_all(soon()));
	pthread_join(t, NULL);
	/* The dead thread's record is no obstacle. */
	ck_assert(section_wait_all(lock_now_ns()));
}
END_TEST

static void *user(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		section_open();
		if (__atomic_load_n(&flag, __ATOMIC_RELAXED) == 0) {
			__atomic_add_fetch(&in_use, 1, __ATOMIC_SEQ_CST);
			__atomic_sub_fetch(&in_use, 1, __ATOMIC_SEQ_CST);
		}
		section_close();
	}
	return NULL;
}

/* The rule itself: after the mark and the wait, nobody is inside unmarked. */
START_TEST(test_rule)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, user, NULL), 0);
	for (int i = 0; i < ROUNDS / THREADS; i++) {
		__atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
		ck_assert(section_wait_all(soon()));
		for (int k = 0; k < 50; k++)
			ck_assert_int_eq(__atomic_load_n(&in_use,
				__ATOMIC_SEQ_CST), 0);
		__atomic_store_n(&flag, 0, __ATOMIC_SEQ_CST);
		sched_yield();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("section");
	TCase *t = tcase_create("section");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_none_open);
	tcase_add_test(t, test_waits);
	tcase_add_test(t, test_rule);
	suite_add_tcase(s, t);
	return unit_run(s);
}
