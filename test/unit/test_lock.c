/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c, built here with the order check whatever the variant is.
 */
#ifndef LOCK_DEBUG
#define LOCK_DEBUG
#endif
#include "shim/lock.c"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/unit/unit.h"

static char path[] = "/tmp/ballast-lock-XXXXXX";
static char text[4096];
static struct lock pool = LOCK_INITIALIZER(LOCK_POOL, "pool");
static struct lock mover = LOCK_INITIALIZER(LOCK_MOVER, "mover");
static struct lock other = LOCK_INITIALIZER(LOCK_MOVER, "other mover");

static void setup(void)
{
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(log_open(LOG_DEBUG, path), 0);
}

static void teardown(void)
{
	log_open(LOG_WARN, NULL);
	unlink(path);
}

static const char *logged(void)
{
	FILE *f = fopen(path, "r");
	size_t n = fread(text, 1, sizeof(text) - 1, f);

	text[n] = '\0';
	fclose(f);
	return text;
}

START_TEST(right_order) NO_THREAD_SAFETY
{
	lock_acquire(&pool);
	lock_acquire(&mover);
	ck_assert_int_eq(lock_nr_held(), 2);
	/* Released in any order. */
	lock_release(&pool);
	lock_release(&mover);
	ck_assert_int_eq(lock_nr_held(), 0);
	lock_acquire(&pool);
	lock_release(&pool);
	ck_assert_str_eq(logged(), "");
}
END_TEST

START_TEST(wrong_order) NO_THREAD_SAFETY
{
	lock_acquire(&mover);
	lock_acquire(&pool);
	ck_assert_ptr_nonnull(strstr(logged(), "E: lock order: pool (rank 5) "
		"wanted while mover (rank 6) is held\n"));
	lock_release(&pool);
	lock_release(&mover);
	ck_assert_int_eq(lock_nr_held(), 0);
}
END_TEST

START_TEST(same_rank) NO_THREAD_SAFETY
{
	lock_acquire(&mover);
	lock_acquire(&other);
	ck_assert_ptr_nonnull(strstr(logged(), "other mover"));
	lock_release(&other);
	lock_release(&mover);
}
END_TEST

START_TEST(not_held) NO_THREAD_SAFETY
{
	struct lock l;

	lock_init(&l, LOCK_STATS, "stats");
	pthread_mutex_lock(&l.mutex);
	lock_release(&l);
	ck_assert_ptr_nonnull(strstr(logged(), "stats is released but not"));
	lock_fini(&l);
}
END_TEST

static pthread_cond_t cond;
static bool ready;

static void *wake(void *arg)
{
	lock_acquire(&pool);
	ready = true;
	pthread_cond_broadcast(&cond);
	lock_release(&pool);
	return NULL;
}

START_TEST(waiting)
{
	uint64_t begin = lock_now_ns();
	pthread_t thread;

	cond_init(&cond);
	lock_acquire(&pool);
	ck_assert(!lock_wait(&pool, &cond, begin + 20000000));
	ck_assert(lock_now_ns() - begin >= 20000000);
	ck_assert_int_eq(lock_nr_held(), 1);
	/* A deadline that has passed. */
	ck_assert(!lock_wait(&pool, &cond, begin));
	pthread_create(&thread, NULL, wake, NULL);
	while (!ready)
		ck_assert(lock_wait(&pool, &cond,
			lock_now_ns() + 20000000000ull));
	lock_release(&pool);
	pthread_join(thread, NULL);
	ck_assert_str_eq(logged(), "");
}
END_TEST

static Suite *lock_suite(void)
{
	Suite *s = suite_create("lock");
	TCase *t = tcase_create("lock");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, right_order);
	tcase_add_test(t, wrong_order);
	tcase_add_test(t, same_rank);
	tcase_add_test(t, not_held);
	tcase_add_test(t, waiting);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(lock_suite());
}
