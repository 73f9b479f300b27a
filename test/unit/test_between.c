/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What another thread does between two steps of one.  The library's state is
 * linked as it is, on a driver of the test's own; the other thread has its turn
 * inside a call of that driver, or where a lock is about to be taken, so that
 * the order is the same each time.
 */
#include <sched.h>

#include "shim/chunk.h"
#include "shim/prefetch.h"
#include "test/unit/small_state.h"

/* ---- turns ---- */

/* The linker has put these before the library's functions. */
void __real_lock_acquire(struct lock *l);
void __wrap_lock_acquire(struct lock *l);
bool __real_lock_wait(struct lock *l, pthread_cond_t *cond, uint64_t until);
bool __wrap_lock_wait(struct lock *l, pthread_cond_t *cond, uint64_t until);
void __real_schedule_destroy(struct schedule *sc);
void __wrap_schedule_destroy(struct schedule *sc);

/* This thread is about to take a lock. */
static __thread void (*before_lock)(struct lock *l);
/* This thread is the other one; its waits are counted. */
static __thread bool other;
static int nr_waits, nr_ended;		/* atomic */
/* The other thread's waits end no sooner than the first thread waits. */
static bool parks, parked, go;		/* guarded by pool_lock */
static pthread_cond_t park = PTHREAD_COND_INITIALIZER;
static int nr_destroyed;		/* atomic */
static struct schedule *destroyed;	/* the last one; one thread's at a time */

void __wrap_lock_acquire(struct lock *l) NO_THREAD_SAFETY
{
	void (*turn)(struct lock *l) = before_lock;

	before_lock = NULL;
	if (turn != NULL)
		turn(l);
	if (turn != NULL)
		before_lock = turn;
	__real_lock_acquire(l);
}

bool __wrap_lock_wait(struct lock *l, pthread_cond_t *cond, uint64_t until)
	NO_THREAD_SAFETY
{
	if (other && parks) {
		__atomic_store_n(&parked, true, __ATOMIC_SEQ_CST);
		while (!go)
			pthread_cond_wait(&park, &l->mutex);
		__atomic_store_n(&parked, false, __ATOMIC_SEQ_CST);
		return true;
	}
	if (other) {
		__atomic_add_fetch(&nr_waits, 1, __ATOMIC_SEQ_CST);
	} else if (parks) {
		go = true;
		pthread_cond_broadcast(&park);
	}
	return __real_lock_wait(l, cond, until);
}

void __wrap_schedule_destroy(struct schedule *sc)
{
	ck_assert_msg(!__atomic_load_n(&parked, __ATOMIC_SEQ_CST),
		"a plan is freed while a thread waits for one of its units");
	ck_assert_msg(sc == NULL || sc != destroyed, "a plan is freed twice");
	if (sc != NULL) {
		destroyed = sc;
		__atomic_add_fetch(&nr_destroyed, 1, __ATOMIC_SEQ_CST);
	}
	__real_schedule_destroy(sc);
}

/* ---- the other thread ---- */

static pthread_t second;

static void begin(void *(*f)(void *arg))
{
	ck_assert_int_eq(pthread_create(&second, NULL, f, NULL), 0);
}

/* Until the other thread waits for a lock, or has come to its end. */
static void until_it_waits(void)
{
	while (__atomic_load_n(&nr_waits, __ATOMIC_SEQ_CST) == 0 &&
	       __atomic_load_n(&nr_ended, __ATOMIC_SEQ_CST) == 0)
		sched_yield();
}

static void ends(void)
{
	__atomic_add_fetch(&nr_ended, 1, __ATOMIC_SEQ_CST);
}

/* ---- a page comes again while the last piece is on its way ---- */

static uint32_t page_first, page_else;

static void it_comes_again(CUstream s)
{
	if (s != c->copy)
		return;
	small.on_record = NULL;
	/* It takes the slot of the unit's first page, which then returns. */
	ck_assert_int_eq(use(page_else), CUDA_SUCCESS);
	ck_assert_int_eq(d->pages[page_first].state, PAGE_ABSENT);
	ck_assert_int_eq(use(page_first), CUDA_SUCCESS);
}

START_TEST(test_whole)
{
	struct schedule *sc;
	uint64_t before;

	start(2);
	page_first = memory(2);
	page_else = memory(1);
	sc = install(&(struct layer){ page_first, 2, 0 }, 1);
	before = small.copies;
	small.on_record = it_comes_again;
	prefetch_pump(d);
	ck_assert_ptr_null(small.on_record);
	ck_assert_uint_eq(small.copies, before + 3);
	ck_assert_uint_eq(sc->units[0].nr_here, 2);
	small.seen[(uintptr_t)SMALL_STREAM] = 0;
	launch(&sc->units[0]);
	/* All three, the one that came last too. */
	ck_assert_uint_eq(small.seen[(uintptr_t)SMALL_STREAM], before + 3);
}
END_TEST

/* ---- a launch while a part of a reservation is being mapped ---- */

static CUdeviceptr pointer;

/* Whether a launch with the pointer reaches what needs no fetching. */
static bool short_way(void)
{
	static _Alignas(struct kernarg) char room[sizeof(struct kernarg) +
		sizeof(struct kernarg_param)];
	struct kernarg *k = (struct kernarg *)room;
	void *params[] = { &pointer };
	struct issue i = { 0 };
	bool is;

	k->nr = 1;
	k->known = true;
	k->params[0] = (struct kernarg_param){ .size = sizeof(pointer) };
	section_open();
	is = issue_units(&i, k, SMALL_STREAM, params, NULL);
	if (is)
		issue_units_end(&i);
	else
		section_close();
	return is;
}

static void it_launches(struct lock *l)
{
	if (l == &d->pool_lock)
		(void)short_way();
}

START_TEST(test_reach)
{
	struct alloc *whole, part;
	uint32_t first, more;

	start(2);
	whole = alloc_reserve(d, 2 * SMALL_PAGE, SMALL_PAGE);
	ck_assert_ptr_nonnull(whole);
	first = device_page(d, whole->base);
	pointer = whole->base;
	for (uint32_t i = 0; i < 2; i++)
		page_word_set(d, first + i, alloc_empty_word(whole));
	tenancy_part(&part, d, whole, first, SMALL_PAGE);
	ck_assert_int_eq(tenancy_back(d, &part), CUDA_SUCCESS);
	more = memory(1);
	install((struct layer[]){ { first, 1, 0 }, { more, 1, 1 } }, 2);
	prefetch_pump(d);
	ck_assert(short_way());
	tenancy_part(&part, d, whole, first + 1, SMALL_PAGE);
	before_lock = it_launches;
	ck_assert_int_eq(tenancy_back(d, &part), CUDA_SUCCESS);
	before_lock = NULL;
	ck_assert_int_eq(page_tier(d, first + 1), TIER_STREAMED);
	/* It reaches over a page that is not there. */
	ck_assert(!short_way());
}
END_TEST

/* ---- a plan ends while a thread waits for a unit ---- */

static struct unit *unit;

static void *it_closes(void *arg)
{
	other = true;
	lock_acquire(&d->pool_lock);
	unit_close(d, unit);
	lock_release(&d->pool_lock);
	return NULL;
}

/* The unit's users are being recorded: the other thread waits for that. */
static void it_comes_to_close(CUstream s)
{
	small.on_record = NULL;
	begin(it_closes);
	while (!__atomic_load_n(&parked, __ATOMIC_SEQ_CST))
		sched_yield();
}

START_TEST(test_waits_for_unit)
{
	start(2);
	unit = &install(&(struct layer){ memory(2), 2, 0 }, 1)->units[0];
	prefetch_pump(d);
	launch(unit);
	parks = true;
	small.on_record = it_comes_to_close;
	lock_acquire(&d->pool_lock);
	unit_close(d, unit);
	lock_release(&d->pool_lock);
	ck_assert_ptr_null(small.on_record);
	schedule_end(d, NULL);
	ck_assert_int_eq(nr_destroyed, 1);
	pthread_join(second, NULL);
}
END_TEST

/* ---- a pointer to a unit whose plan has gone ---- */

START_TEST(test_unit_of_old)
{
	uint32_t first;
	struct schedule *sc;
	struct unit *old;
	CUresult r;
	void *was;
	size_t n;

	start(2);
	first = memory(2);
	sc = install((struct layer[]){ { first, 1, 0 }, { first + 1, 1, 1 } },
		2);
	/* As if it had begun a little further on, in the same memory. */
	old = (struct unit *)((char *)sc->units + CACHE_LINE);
	n = 2 * sizeof(*sc->units);
	was = malloc(n);
	ck_assert_ptr_nonnull(was);
	ck_assert_uint_gt(sizeof(*sc->units), CACHE_LINE);
	memcpy(was, sc->units, n);
	unit_missed_launched(d, old);
	ck_assert_mem_eq(sc->units, was, n);
	ck_assert(!unit_missed(d, old));
	section_open();
	ck_assert(!unit_enter(d, old, SMALL_STREAM, c, &r));
	section_close();
	ck_assert_mem_eq(sc->units, was, n);
	ck_assert_uint_eq(sc->visits.here, VISIT_NONE);
	/* What is of the plan is still taken for it. */
	unit_missed_launched(d, &sc->units[1]);
	ck_assert_uint_eq(sc->units[1].launches, 1);
	free(was);
}
END_TEST

/* ---- a plan ends while it is put into force ---- */

static struct phase *phase;

static void *it_ends_the_plan(void *arg)
{
	other = true;
	schedule_end(d, NULL);
	ends();
	return NULL;
}

static void it_comes_to_end(CUresult r)
{
	if (d->tenancy->schedule == NULL || !d->tenancy->schedule->changing)
		return;
	small.on_map = NULL;
	begin(it_ends_the_plan);
	until_it_waits();
}

/* The plan is gone before the first thread looks again. */
static void it_has_ended(struct lock *l)
{
	if (l != &phase->lock || !phase->busy)
		return;
	ck_assert_ptr_null(small.on_map);
	pthread_join(second, NULL);
}

START_TEST(test_install)
{
	uint32_t first;

	start(2);
	conf.guard = GUARD_FAST;
	phase = watched(PHASE_PLANNING);
	phase->order = calloc(1, sizeof(*phase->order));
	ck_assert_ptr_nonnull(phase->order);
	first = memory(2);
	phase->order->schedule = plan((struct layer[]){ { first, 1, 0 },
		{ first + 1, 1, 1 } }, 2);
	lock_acquire(&phase->lock);
	small.on_map = it_comes_to_end;
	before_lock = it_has_ended;
	phase_install(phase, c);
	before_lock = NULL;
	lock_release(&phase->lock);
	ck_assert_int_eq(nr_destroyed, 1);
	ck_assert(!schedule_active(d));
	/* Not a plan that could not be had: it is watched for anew. */
	ck_assert_int_eq(phase->id, PHASE_DISCOVERY);
}
END_TEST

/* ---- a page is chosen to leave before it is marked to stay ---- */

static void *it_leaves(void *arg)
{
	uint32_t chunk;

	other = true;
	lock_acquire(&d->pool_lock);
	if (demote(d, 1, NULL, &chunk) == 1)
		chunk_recycle(d, chunk);
	lock_release(&d->pool_lock);
	return NULL;
}

static bool chosen;

static void it_is_chosen(struct lock *l)
{
	if (chosen || l != &d->pool_lock || section_self == NULL ||
	    section_self->seq % 2 == 0)
		return;
	chosen = true;
	begin(it_leaves);
	while ((device_word(d, page_first) & PAGE_LEAVING) == 0)
		sched_yield();
}

START_TEST(test_fix)
{
	struct page_set s;

	start(4);
	page_first = memory(1);
	set_of(&s, page_first);
	before_lock = it_is_chosen;
	ck_assert_int_eq(tenancy_fix(&s), CUDA_SUCCESS);
	before_lock = NULL;
	ck_assert(chosen);
	pthread_join(second, NULL);
	ck_assert_uint_eq(device_word(d, page_first) & (PAGE_TIER_MASK |
		PAGE_LEAVING), TIER_RESIDENT);
	ck_assert(d->pages[page_first].fixed);
	page_set_clear(&s);
}
END_TEST

/* ---- a page comes while aliases use up the mappings of a slot ---- */

static CUresult result;

static void *it_fetches(void *arg)
{
	other = true;
	result = use(page_else);
	ends();
	return NULL;
}

static void it_comes_to_fetch(CUresult r)
{
	if (r == CUDA_SUCCESS)
		return;
	small.on_map = NULL;
	begin(it_fetches);
	until_it_waits();
}

START_TEST(test_aliases_go)
{
	uint32_t first;

	start(2);
	first = memory(3);
	page_else = memory(1);
	/* The third has a slot that the first stays mapped to. */
	install((struct layer[]){ { first, 1, 0 }, { first + 1, 1, 1 },
		{ first + 2, 1, 0 } }, 3);
	small.limit = 2;
	small.on_map = it_comes_to_fetch;
	ck_assert_int_eq(schedule_make_fast(d), CUDA_ERROR_OUT_OF_MEMORY);
	ck_assert_ptr_null(small.on_map);
	pthread_join(second, NULL);
	ck_assert_int_eq(result, CUDA_SUCCESS);
	ck_assert_int_eq(d->pages[page_else].state, PAGE_PRESENT);
	/* And the plan goes on, without aliases. */
	ck_assert(schedule_active(d) && !schedule_is_fast(d));
	ck_assert_int_eq(use(first + 2), CUDA_SUCCESS);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("between");
	TCase *t = tcase_create("between");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_whole);
	tcase_add_test(t, test_reach);
	tcase_add_test(t, test_waits_for_unit);
	tcase_add_test(t, test_unit_of_old);
	tcase_add_test(t, test_install);
	tcase_add_test(t, test_fix);
	tcase_add_test(t, test_aliases_go);
	suite_add_tcase(s, t);
	return unit_run(s);
}
