/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c: ranges never overlap, never cross a segment's border, and nothing
 * is lost; pinning on demand, refusals, and the capacity that is kept.
 */
#include "shim/arena.c"

#include <sys/resource.h>

#include "test/unit/unit.h"

#define MIB (1ull << 20)

/* The driver's part: what is registered, and when it refuses. */
struct real_api real;
struct conf conf;
static uint64_t registered;
static int nr_registered, refuse_from = INT32_MAX;

static CUresult fake_register(void *p, size_t size, unsigned int flags)
{
	if (nr_registered >= refuse_from)
		return CUDA_ERROR_OUT_OF_MEMORY;
	nr_registered++;
	registered += size;
	return CUDA_SUCCESS;
}

static uint64_t unregistered[16];
static int nr_unregistered;

static CUresult fake_unregister(void *p)
{
	nr_registered--;
	if (nr_unregistered < 16)
		unregistered[nr_unregistered++] =
			(uint64_t)((uint8_t *)p - (uint8_t *)arena_ptr(0));
	return CUDA_SUCCESS;
}

const char *api_result_name(CUresult r)
{
	return "some error";
}

static void setup(void)
{
	real.cuMemHostRegister_v2 = fake_register;
	real.cuMemHostUnregister = fake_unregister;
	conf.arena = 200 * MIB;
	log_threshold = -1;
}

struct range {
	uint64_t offset;
	uint64_t size;
};

static void check_apart(const struct range *r, int n)
{
	for (int i = 0; i < n; i++) {
		if (r[i].size == 0)
			continue;
		ck_assert_uint_eq(r[i].offset % ARENA_ALIGN, 0);
		ck_assert_uint_le(r[i].offset + r[i].size, conf.arena);
		ck_assert_uint_eq(r[i].offset / ARENA_SEGMENT,
			(r[i].offset + r[i].size - 1) / ARENA_SEGMENT);
		for (int k = 0; k < i; k++)
			ck_assert(r[k].size == 0 ||
				r[i].offset + r[i].size <= r[k].offset ||
				r[k].offset + r[k].size <= r[i].offset);
	}
}

START_TEST(test_random)
{
	struct range r[60] = { 0 };
	uint64_t live = 0;

	srand((unsigned)_i);
	for (int k = 0; k < 1500; k++) {
		struct range *x = &r[rand() % 60];

		if (x->size > 0) {
			arena_free(x->offset, x->size);
			live -= rounded(x->size);
			x->size = 0;
		} else {
			uint64_t size = 1 + (uint64_t)rand() % (9 * MIB);
			uint64_t offset = arena_alloc(size);

			if (offset != ARENA_NONE) {
				*x = (struct range){ offset, size };
				live += rounded(size);
			}
		}
		ck_assert_uint_eq(arena_live(), live);
		ck_assert_uint_le(registered, conf.arena);
		if (k % 50 == 0)
			check_apart(r, 60);
	}
	check_apart(r, 60);
	for (int i = 0; i < 60; i++)
		if (r[i].size > 0)
			arena_free(r[i].offset, r[i].size);
	/* Whole segments are there again. */
	ck_assert_uint_ne(arena_alloc(ARENA_SEGMENT), ARENA_NONE);
}
END_TEST

START_TEST(test_on_demand)
{
	ck_assert_uint_eq(registered, 0);
	ck_assert_uint_eq(arena_capacity(), 0);
	ck_assert_uint_eq(arena_alloc(1000), 0);
	ck_assert_uint_eq(registered, ARENA_SEGMENT);
	ck_assert_uint_eq(arena_capacity(), 200 * MIB);
	arena_reserve(ARENA_SEGMENT);
	ck_assert_uint_eq(registered, 2 * ARENA_SEGMENT);
	memset(arena_ptr(0), 1, 1000);
	/* The last segment is what the capacity leaves. */
	arena_reserve(1000 * MIB);
	ck_assert_uint_eq(registered, 200 * MIB);
}
END_TEST

START_TEST(test_limits)
{
	ck_assert_uint_eq(arena_alloc(0), ARENA_NONE);
	ck_assert_uint_eq(arena_alloc(ARENA_SEGMENT + 1), ARENA_NONE);
	ck_assert_uint_eq(arena_alloc(SIZE_MAX), ARENA_NONE);
}
END_TEST

START_TEST(test_refusal)
{
	refuse_from = 1;
	ck_assert_uint_ne(arena_alloc(ARENA_SEGMENT), ARENA_NONE);
	ck_assert_uint_eq(arena_alloc(1), ARENA_NONE);
	/* No second try, even if the driver would take it now. */
	refuse_from = INT32_MAX;
	ck_assert_uint_eq(arena_alloc(1), ARENA_NONE);
	ck_assert_uint_eq(registered, ARENA_SEGMENT);
	ck_assert_uint_eq(arena_room(), 0);
	arena_stop();
	ck_assert_int_eq(nr_registered, 0);
}
END_TEST

START_TEST(test_none)
{
	conf.arena = 0;
	ck_assert_uint_eq(arena_alloc(1), ARENA_NONE);
	ck_assert_uint_eq(arena_room(), 0);
}
END_TEST

START_TEST(test_auto)
{
	conf.arena = CONF_AUTO;
	ck_assert_uint_gt(arena_room(), 0);
	ck_assert_uint_le(arena_room(), AUTO_MOST);
}
END_TEST

/* Nobody can pin more than there is; a size of 2^62 has no addresses. */
START_TEST(test_more_than_memory)
{
	conf.arena = 1ull << 62;
	ck_assert(arena_alloc(MIB) != ARENA_NONE);
	ck_assert_uint_le(arena_capacity(),
		file_number("/proc/meminfo", "MemTotal:") << 10);
	ck_assert_uint_ge(arena_capacity(), MIB);
}
END_TEST

/* As under ulimit -v: the arena is what there are addresses for. */
START_TEST(test_address_space)
{
	uint64_t used = file_number("/proc/self/statm", "") *
		(uint64_t)sysconf(_SC_PAGESIZE);
	struct rlimit most;

	ck_assert_int_eq(getrlimit(RLIMIT_AS, &most), 0);
	most.rlim_cur = used + 300 * MIB;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &most), 0);
	conf.arena = 800 * MIB;
	ck_assert(arena_alloc(MIB) != ARENA_NONE);
	ck_assert_uint_eq(arena_capacity(), 200 * MIB);
}
END_TEST

/* What is free at the end is unpinned, and pinned again when it is needed. */
START_TEST(test_trim)
{
	uint64_t a, b;

	arena_trim();
	a = arena_alloc(MIB);
	arena_reserve(199 * MIB);
	b = arena_alloc(ARENA_SEGMENT);
	ck_assert_int_eq(nr_registered, 4);
	arena_trim();
	ck_assert_int_eq(nr_registered, 2);
	ck_assert_uint_eq(arena_spare(), 200 * MIB - 2 * ARENA_SEGMENT);
	arena_free(a, MIB);
	arena_trim();
	ck_assert_int_eq(nr_registered, 2);
	arena_free(b, ARENA_SEGMENT);
	arena_trim();
	ck_assert_int_eq(nr_registered, 0);
	ck_assert_uint_eq(arena_spare(), 200 * MIB);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(arena_alloc(ARENA_SEGMENT),
			(uint64_t)i * ARENA_SEGMENT);
	ck_assert_uint_eq(arena_alloc(8 * MIB), 3 * ARENA_SEGMENT);
	ck_assert_uint_eq(arena_alloc(1), ARENA_NONE);
}
END_TEST

/*
 * Others take some of the capacity, so that a segment ends between two borders:
 * what lies on both sides of its end never touches.
 */
START_TEST(test_short_segment)
{
	uint64_t before = 0, offset, n = 0;

	ck_assert(arena_lend(100 * MIB));
	ck_assert(arena_alloc(ARENA_SEGMENT) == 0);
	arena_reserve(ARENA_SEGMENT);
	ck_assert_uint_eq(registered, 100 * MIB);
	arena_return(100 * MIB);
	arena_reserve(200 * MIB);
	ck_assert_uint_eq(registered, 200 * MIB);
	while ((offset = arena_alloc(ARENA_ALIGN)) != ARENA_NONE) {
		ck_assert(offset + ARENA_ALIGN <= 100 * MIB ||
			offset >= 100 * MIB);
		ck_assert(n++ == 0 || offset != 100 * MIB ||
			before + ARENA_ALIGN < offset);
		before = offset;
	}
	ck_assert_uint_eq(n, (136 * MIB - ARENA_ALIGN) / ARENA_ALIGN);
	arena_stop();
	ck_assert_int_eq(nr_registered, 0);
	ck_assert_int_eq(nr_unregistered, 5);
	ck_assert_uint_eq(unregistered[2], 100 * MIB);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("arena");
	TCase *t = tcase_create("arena");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_random, 1, 6);
	tcase_add_test(t, test_on_demand);
	tcase_add_test(t, test_limits);
	tcase_add_test(t, test_refusal);
	tcase_add_test(t, test_none);
	tcase_add_test(t, test_trim);
	tcase_add_test(t, test_short_segment);
	tcase_add_test(t, test_auto);
	tcase_add_test(t, test_more_than_memory);
	tcase_add_test(t, test_address_space);
	suite_add_tcase(s, t);
	return unit_run(s);
}
