/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be given up half-way, and leaves things as they were: plans that
 * cannot be ended while a stream may wait for this thread, pages that cannot be
 * fixed, chunks that stay mapped.  The library's state on a small driver.
 */
#include "shim/arena.h"
#include "shim/in_place.h"
#include "shim/prefetch.h"
#include "test/unit/small_state.h"

/* ---- a stream that may be waiting for this thread ---- */

static uint32_t first;

/* A plan, and streams that do not come to their end. */
static void plan_and_wait(void)
{
	start(2);
	first = memory(2);
	install(&(struct layer){ first, 2, 0 }, 1);
	context_stream_created(c, SMALL_STREAM, CU_STREAM_NON_BLOCKING);
	context_host_function();
	conf.wait_ms = 20;
	small.busy = true;
}

START_TEST(test_end)
{
	plan_and_wait();
	ck_assert(!schedule_try_end(d, NULL));
	ck_assert(schedule_active(d));
	/* There are two streams; the first one that takes too long will do. */
	ck_assert_uint_eq(small.nr_asked, 1);
	small.busy = false;
	ck_assert(schedule_try_end(d, NULL));
	ck_assert(!schedule_active(d));
}
END_TEST

/* Who would end it for a purpose of its own gives up. */
START_TEST(test_not_for_others)
{
	struct schedule *next;
	struct page_set s;

	plan_and_wait();
	set_of(&s, first);
	ck_assert_int_eq(tenancy_fix(&s), CUDA_ERROR_LAUNCH_TIMEOUT);
	ck_assert(schedule_active(d));
	ck_assert(!d->pages[first].fixed);
	next = plan(&(struct layer){ first, 1, 0 }, 1);
	ck_assert_int_eq(schedule_install(d, next, c),
		CUDA_ERROR_LAUNCH_TIMEOUT);
	ck_assert(schedule_active(d));
	schedule_destroy(next);
	/* The plan that stayed is whole. */
	small.busy = false;
	prefetch_pump(d);
	launch(&d->tenancy->schedule->units[0]);
	ck_assert_int_eq(tenancy_fix(&s), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert(!schedule_active(d));
	page_set_clear(&s);
}
END_TEST

/* A plan that the program no longer follows goes on; it is tried later. */
START_TEST(test_watches_later)
{
	const uint64_t many = 4096;
	struct phase *p;

	plan_and_wait();
	p = d->phase = watched(PHASE_CAREFUL);
	p->on_demand = 9 * many * p->patience;
	phase_turn(d, SMALL_STREAM, true);
	ck_assert(schedule_active(d));
	ck_assert_int_eq(p->id, PHASE_CAREFUL);
	ck_assert(!p->busy);
	/* Not at once again: each try holds up the program. */
	small.nr_asked = 0;
	phase_turn(d, SMALL_STREAM, true);
	ck_assert_uint_eq(small.nr_asked, 0);
	small.busy = false;
	p->on_demand = many * p->patience;
	phase_turn(d, SMALL_STREAM, true);
	ck_assert(!schedule_active(d));
	ck_assert_int_eq(p->id, PHASE_DISCOVERY);
}
END_TEST

/* Nor is it ended for a trial of data in place, or after one of a mixture. */
START_TEST(test_no_trial)
{
	struct phase *p;
	struct trial *t;

	plan_and_wait();
	p = watched(PHASE_FAST);
	t = &p->trial;
	t->laps = timing_create();
	ck_assert_ptr_nonnull(t->laps);
	for (int i = 0; i < 2; i++) {
		t->state = i == 0 ? TRIAL_WANTED : TRIAL_MIXED;
		/* All laps have been timed; a mixture was no gain. */
		t->nr = 3;
		t->each = t->lap = 1;
		t->ms = t->place_ms = 1;
		lock_acquire(&p->lock);
		trial_turn(p, SMALL_STREAM);
		lock_release(&p->lock);
		ck_assert(schedule_active(d));
		ck_assert_int_eq(p->id, PHASE_FAST);
		ck_assert_int_eq(t->state, TRIAL_NONE);
		ck_assert(!p->busy);
	}
}
END_TEST

/* ---- fixing ---- */

/* No chunk can be had for the second page; the first is another's. */
START_TEST(test_fixed_stays)
{
	struct page_set s;

	start(3);
	first = memory(1);
	set_of(&s, first);
	ck_assert_int_eq(tenancy_fix(&s), CUDA_SUCCESS);
	ck_assert_uint_eq(memory(3), first + 1);
	ck_assert(page_set_add(&s, first + 1, first + 3));
	ck_assert_int_eq(tenancy_fix(&s), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert(d->pages[first].fixed);
	for (uint32_t i = 1; i <= 3; i++)
		ck_assert(!d->pages[first + i].fixed);
	page_set_clear(&s);
}
END_TEST

/* ---- into host memory ---- */

/* Copies fail, and then what was mapped for them cannot be unmapped. */
START_TEST(test_lost)
{
	uint64_t begin, later = 5000000000ull;

	small.host = true;
	start(4);
	/* Pages are lent what no segment has pinned. */
	conf.arena = ARENA_SEGMENT + (1ull << 20);
	first = memory(3);
	memory(3);
	small.breaks = true;
	ck_assert_int_eq(in_place_enter(d, c), CUDA_ERROR_UNKNOWN);
	ck_assert(small.broken);
	ck_assert_uint_gt(tenancy_lost(d), 0);
	/* No thread has in its hands what is lost: nobody waits for it. */
	begin = lock_now_ns();
	lock_acquire(&d->pool_lock);
	ck_assert(!hands_wait(d, begin + later));
	lock_release(&d->pool_lock);
	ck_assert_uint_lt(lock_now_ns() - begin, later);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("undone");
	TCase *t = tcase_create("undone");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_end);
	tcase_add_test(t, test_not_for_others);
	tcase_add_test(t, test_watches_later);
	tcase_add_test(t, test_no_trial);
	tcase_add_test(t, test_fixed_stays);
	tcase_add_test(t, test_lost);
	suite_add_tcase(s, t);
	return unit_run(s);
}
