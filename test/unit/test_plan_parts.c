/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner's parts against brute force and known numbers: assignments,
 * subsets, searches, interpolation, windows, arena.
 */
#include "planner/plan_int.h"
#include "planner/plan_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

static struct plan_arena *arena;

static void setup(void)
{
	arena = plan_arena_create();
	ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
	plan_arena_destroy(arena);
}

/* ---- arena ---- */

START_TEST(test_arena)
{
	char *p = plan_arena_alloc(arena, 0, 8), *q;

	ck_assert_ptr_nonnull(p);
	ck_assert_ptr_null(plan_arena_alloc(arena, SIZE_MAX / 4, 8));
	ck_assert_ptr_null(plan_arena_alloc(arena, SIZE_MAX - 8, 1));
	for (size_t n = 1; n < 300000; n = n * 3 + 1) {
		q = plan_arena_alloc(arena, n, 1);
		ck_assert_ptr_nonnull(q);
		ck_assert_uint_eq((uintptr_t)q % _Alignof(max_align_t), 0);
		for (size_t i = 0; i < n; i++)
			ck_assert_int_eq(q[i], 0);
		memset(q, 0xff, n);
	}
	ck_assert_str_eq(plan_arena_strdup(arena, "text"), "text");
}
END_TEST

/* ---- interpolation ---- */

static struct memory_transfer_interpolator *table(const struct transfer_time *t,
	uint32_t nr)
{
	struct memory_stats m = { t, nr };
	struct memory_transfer_interpolator *ip;

	ck_assert_int_eq(plan_interpolator_create(&m, arena, &ip), PLAN_OK);
	return ip;
}

START_TEST(test_interpolation)
{
	const struct transfer_time one[] = { { 1000, 2.5 } };
	const struct transfer_time t[] = { { 4096, 4 }, { 1024, 1 },
		{ 16384, 32 } };
	struct memory_transfer_interpolator *ip = table(one, 1);

	ck_assert_double_eq(plan_bytes_to_duration(ip, 7), 2.5);
	ck_assert_double_eq(plan_duration_to_bytes(ip, 99), 1000);
	ip = table(t, 3);
	ck_assert_double_eq_tol(plan_bytes_to_duration(ip, 1024), 1, 1e-12);
	ck_assert_double_eq_tol(plan_bytes_to_duration(ip, 2048), 2, 1e-12);
	/* Slope 1.5 in the logarithms from here on, also beyond the end. */
	ck_assert_double_eq_tol(plan_bytes_to_duration(ip, 65536), 256, 1e-9);
	ck_assert_double_eq_tol(plan_bytes_to_duration(ip, 256), 0.25, 1e-12);
	for (double b = 10; b < 1e9; b *= 1.7)
		ck_assert_double_eq_tol(plan_duration_to_bytes(ip,
			plan_bytes_to_duration(ip, b)) / b, 1, 1e-9);
	ck_assert_double_eq(plan_bytes_to_duration(ip, 0), 0);
	ck_assert_double_eq(plan_duration_to_bytes(ip, 0), 0);
	ck_assert_double_eq(plan_duration_to_bytes(ip, -1), 0);
}
END_TEST

START_TEST(test_bad_tables)
{
	const struct transfer_time zero[] = { { 0, 1 } }, late[] = { { 1, 0 } },
		twice[] = { { 5, 1 }, { 5, 2 } }, nan[] = { { 5, NAN } };
	struct memory_transfer_interpolator *ip;
	struct memory_stats m = { NULL, 0 };

	ck_assert_int_eq(plan_interpolator_create(&m, arena, &ip),
		PLAN_NEEDS_TABLE);
	m = (struct memory_stats){ zero, 1 };
	ck_assert_int_eq(plan_interpolator_create(&m, arena, &ip),
		PLAN_BAD_TABLE);
	m = (struct memory_stats){ late, 1 };
	ck_assert_int_eq(plan_interpolator_create(&m, arena, &ip),
		PLAN_BAD_TABLE);
	m = (struct memory_stats){ twice, 2 };
	ck_assert_int_eq(plan_interpolator_create(&m, arena, &ip),
		PLAN_BAD_TABLE);
	m = (struct memory_stats){ nan, 1 };
	ck_assert_int_eq(plan_interpolator_create(&m, arena, &ip),
		PLAN_BAD_TABLE);
	ck_assert_ptr_null(ip);
}
END_TEST

/* Times that fall with size still have an inverse that does not fall. */
START_TEST(test_noisy_table)
{
	const struct transfer_time t[] = { { 100, 2 }, { 1000, 1 },
		{ 10000, 4 }, { 100000, 4 } };
	struct memory_transfer_interpolator *ip = table(t, 4);
	double last = 0;

	for (double ms = 0.1; ms < 20; ms *= 1.1) {
		double b = plan_duration_to_bytes(ip, ms);

		ck_assert_double_ge(b, last);
		last = b;
	}
}
END_TEST

START_TEST(test_extraction)
{
	const struct tensor_statistics a[] = { { 1, "a", 100, 1 },
		{ 2, "b", 100, 3 }, { 3, "c", 7, 0 } },
		b[] = { { 4, "d", 50, 0.5 } };
	const struct layer_statistics l[] = { { "x", a, 3, 1 },
		{ "y", b, 1, 1 } };
	struct memory_stats m;

	ck_assert_int_eq(plan_extract_memory_stats(l, 2, arena, &m), PLAN_OK);
	ck_assert_uint_eq(m.nr, 2);
	ck_assert_uint_eq(m.points[0].bytes, 50);
	ck_assert_double_eq(m.points[0].ms, 0.5);
	ck_assert_uint_eq(m.points[1].bytes, 100);
	ck_assert_double_eq(m.points[1].ms, 2);
}
END_TEST

/* ---- windows ---- */

START_TEST(test_windows)
{
	const uint64_t off[] = { 0, 0, 0, 9, 0, 5 };
	const double d[] = { 1, 2, 4, 8, 16, 32 };

	ck_assert_double_eq(plan_window_single(0, off, d, NULL), 0);
	ck_assert_double_eq(plan_window_single(3, off, d, NULL), 4);
	ck_assert_double_eq(plan_window_gap_aware(0, off, d, NULL), 0);
	ck_assert_double_eq(plan_window_gap_aware(1, off, d, NULL), 1);
	ck_assert_double_eq(plan_window_gap_aware(3, off, d, NULL), 7);
	/* Layer 2 copies for layer 3. */
	ck_assert_double_eq(plan_window_gap_aware(5, off, d, NULL), 24);
}
END_TEST

/* ---- assignments ---- */

struct brute {
	const uint64_t *sizes;
	uint32_t nr, k, at[12], best[12];
	double weight, total, best_score;
	bool found, exact_k;
};

static uint64_t blocks_of(const struct brute *b, const uint32_t *at)
{
	return plan_block_bytes(b->sizes, at, b->nr);
}

static double brute_score(const struct brute *b, const uint32_t *at)
{
	double gaps = 0, dist = 1;
	uint32_t reuses = 0;

	for (uint32_t i = 0; i < b->nr; i++)
		for (uint32_t j = i; j-- > 0;)
			if (at[j] == at[i]) {
				gaps += i - j;
				reuses++;
				break;
			}
	if (b->nr > b->k && reuses)
		dist = fmin(gaps / reuses / b->k, 1);
	return (1 - b->weight) * (1 - (double)blocks_of(b, at) / b->total) +
		b->weight * dist;
}

/* Every assignment, in the published order, without any short cut. */
static void brute_from(struct brute *b, uint32_t i)
{
	uint32_t used = 0;

	if (i < b->nr) {
		for (uint32_t v = 0; v < b->k; v++) {
			b->at[i] = v;
			if (i == 0 || b->at[i - 1] != v)
				brute_from(b, i + 1);
		}
		return;
	}
	for (uint32_t j = 0; j < b->nr; j++)
		used |= 1u << b->at[j];
	if (used != (1u << b->k) - 1 ||
	    (b->found && brute_score(b, b->at) <= b->best_score))
		return;
	b->found = true;
	b->best_score = brute_score(b, b->at);
	memcpy(b->best, b->at, sizeof(b->at));
}

static void brute_assign(struct brute *b, uint32_t lo, uint32_t hi,
	uint32_t *block)
{
	double best = -1, v;

	for (b->k = lo; b->k <= hi; b->k++) {
		b->found = false;
		brute_from(b, 0);
		if (!b->found || b->best[0] == b->best[b->nr - 1])
			for (uint32_t i = 0; i < b->nr; i++)
				b->best[i] = i % b->k;
		v = brute_score(b, b->best);
		if (v > best) {
			best = v;
			memcpy(block, b->best, b->nr * sizeof(*block));
		}
	}
}

START_TEST(test_optimized_is_exhaustive)
{
	struct plan_random r = { 7 };
	uint32_t got[12], want[12];
	uint64_t sizes[12];

	for (int n = 0; n < 300; n++) {
		uint32_t nr = 2 + plan_random_below(&r, 7);
		struct plan_assignment a = { plan_assign_optimized, 2, 4,
			n % 3 * 0.5, NULL };
		struct brute b = { .sizes = sizes, .nr = nr,
			.weight = a.distribution_weight };
		uint32_t hi = nr < 4 ? nr : 4, range = n % 2 ? 4 : 1000;

		for (uint32_t i = 0; i < nr; i++) {
			sizes[i] = 1 + plan_random_below(&r, range);
			b.total += (double)sizes[i];
		}
		ck_assert_int_eq(a.compute(&a, sizes, nr, 4, got), PLAN_OK);
		brute_assign(&b, 2 < hi ? 2 : hi, hi, want);
		for (uint32_t i = 0; i < nr; i++)
			ck_assert_uint_eq(got[i], want[i]);
	}
}
END_TEST

/* Long or short, neighbours differ and as many blocks serve as may. */
START_TEST(test_optimized_is_valid)
{
	struct plan_random r = { 11 };
	uint64_t sizes[200];
	uint32_t block[200];

	for (int n = 0; n < 300; n++) {
		uint32_t nr = 2 + plan_random_below(&r, 198), most;
		struct plan_assignment a = { plan_assign_optimized, 2,
			2 + n % 5, n % 3 * 0.5, NULL };

		for (uint32_t i = 0; i < nr; i++)
			sizes[i] = plan_random_below(&r, 3) * 1000;
		ck_assert_int_eq(a.compute(&a, sizes, nr, 8, block), PLAN_OK);
		most = block[0];
		for (uint32_t i = 1; i < nr; i++) {
			ck_assert_uint_ne(block[i], block[i - 1]);
			most = block[i] > most ? block[i] : most;
		}
		ck_assert_uint_lt(most, a.max_blocks);
	}
}
END_TEST

START_TEST(test_strict_and_balanced)
{
	const uint64_t sizes[5] = { 1, 2, 3, 4, 5 };
	const uint32_t want[5] = { 0, 1, 2, 0, 1 };
	struct plan_assignment a = { plan_assign_strict, 0, 0, 0, NULL };
	uint32_t block[5];

	ck_assert_int_eq(a.compute(&a, sizes, 5, 3, block), PLAN_OK);
	ck_assert_mem_eq(block, want, sizeof(want));
	ck_assert_int_eq(a.compute(&a, sizes, 5, 0, block),
		PLAN_TOO_FEW_BLOCKS);
	ck_assert_int_eq(plan_assign_balanced(sizes, 5, 1, block),
		PLAN_TOO_FEW_BLOCKS);
	ck_assert_int_eq(plan_assign_balanced(sizes, 1, 1, block), PLAN_OK);
	ck_assert_int_eq(plan_assign_balanced(sizes, 0, 0, block), PLAN_OK);
}
END_TEST

static uint64_t least_from(const uint64_t *sizes, uint32_t nr, uint32_t k,
	uint32_t i, uint32_t *at)
{
	uint64_t best = UINT64_MAX, v;

	if (i == nr)
		return plan_block_bytes(sizes, at, nr);
	for (at[i] = 0; at[i] < k; at[i]++) {
		if (i > 0 && at[i] == at[i - 1])
			continue;
		v = least_from(sizes, nr, k, i + 1, at);
		best = v < best ? v : best;
	}
	return best;
}

START_TEST(test_least_blocks)
{
	/* Published example: these five fit 8 with two or more blocks. */
	const uint64_t five[] = { 2, 5, 2, 1, 5 };
	struct plan_random r = { 3 };
	uint64_t sizes[8];
	uint32_t block[8], at[8];

	ck_assert_int_eq(plan_assign_least(five, 5, 4, block), PLAN_OK);
	ck_assert_uint_le(plan_block_bytes(five, block, 5), 8);
	for (int n = 0; n < 300; n++) {
		uint32_t nr = 2 + plan_random_below(&r, 7), k = 2 + n % 3;

		for (uint32_t i = 0; i < nr; i++)
			sizes[i] = 1 + plan_random_below(&r, 50);
		ck_assert_int_eq(plan_assign_least(sizes, nr, k, block),
			PLAN_OK);
		for (uint32_t i = 1; i < nr; i++)
			ck_assert_uint_ne(block[i], block[i - 1]);
		ck_assert_uint_eq(plan_block_bytes(sizes, block, nr),
			least_from(sizes, nr, k, 0, at));
	}
}
END_TEST

/* ---- subsets ---- */

#define FEW 12

static uint64_t best_subset(const struct tensor_statistics *t, uint32_t nr,
	uint64_t cap, bool by_time)
{
	uint64_t best = 0, weight, bytes;

	for (uint32_t mask = 0; mask < 1u << nr; mask++) {
		weight = bytes = 0;
		for (uint32_t i = 0; i < nr; i++)
			if (mask >> i & 1) {
				bytes += t[i].size_bytes;
				weight += by_time ? (uint64_t)
					(t[i].load_time_ms * 1e6) :
					t[i].size_bytes;
			}
		if (weight <= cap && bytes > best)
			best = bytes;
	}
	return best;
}

START_TEST(test_subsets)
{
	const bool by_time = _i;
	struct plan_random r = { 5 };
	struct tensor_statistics t[FEW];
	const struct tensor_statistics *at[FEW];
	struct plan_pick got;

	for (int n = 0; n < 200; n++) {
		uint32_t nr = 6 + plan_random_below(&r, FEW - 5);
		uint64_t cap, sum = 0;
		struct plan_pick from = { nr, 0, at };

		memset(t, 0, sizeof(t));
		for (uint32_t i = 0; i < nr; i++) {
			t[i].size_bytes = 1 + plan_random_below(&r,
				n % 2 ? 10 : 100000);
			t[i].load_time_ms = (double)plan_random_below(&r,
				5000) * 1e-6;
			at[i] = &t[i];
			from.bytes += t[i].size_bytes;
			sum += by_time ? (uint64_t)(t[i].load_time_ms * 1e6) :
				t[i].size_bytes;
		}
		cap = plan_random_below(&r, sum + 1);
		ck_assert_int_eq(by_time ?
			plan_subset_time(&from, cap, false, arena, &got) :
			plan_subset_bytes(&from, (double)cap, false, arena,
				&got), PLAN_OK);
		ck_assert_uint_eq(got.bytes, best_subset(t, nr, cap, by_time));
		/* In the layer's order, none twice, and the sum is theirs. */
		sum = 0;
		for (uint32_t i = 0; i < got.nr; i++) {
			sum += got.at[i]->size_bytes;
			ck_assert(i == 0 || got.at[i] > got.at[i - 1]);
		}
		ck_assert_uint_eq(sum, got.bytes);
	}
}
END_TEST

/* Five candidates and fewer: the published rules, even if they miss more. */
START_TEST(test_first_fit)
{
	struct tensor_statistics t[3] = { { 1, "a", 60, 0 }, { 2, "b", 50, 0 },
		{ 3, "c", 45, 0 } };
	const struct tensor_statistics *at[3] = { &t[0], &t[1], &t[2] };
	struct plan_pick from = { 3, 155, at }, got;

	ck_assert_int_eq(plan_subset_bytes(&from, 99, false, arena, &got),
		PLAN_OK);
	ck_assert_uint_eq(got.bytes, 95);
	ck_assert_int_eq(plan_subset_bytes(&from, 100, false, arena, &got),
		PLAN_OK);
	ck_assert_uint_eq(got.bytes, 95);
	ck_assert_int_eq(plan_subset_bytes(&from, 44, false, arena, &got),
		PLAN_OK);
	ck_assert_uint_eq(got.nr, 0);
	ck_assert_int_eq(plan_subset_bytes(&from, INFINITY, false, arena, &got),
		PLAN_OK);
	ck_assert_uint_eq(got.nr, 3);
}
END_TEST

/* ---- searches ---- */

static double bowl(void *ctx, const double *x)
{
	double v = 0;

	++*(uint32_t *)ctx;
	for (int j = 0; j < 4; j++)
		v += (x[j] - j) * (x[j] - j) + 2 - 2 * cos(3 * (x[j] - j));
	return v;
}

/* Bits wanted 1 0 1 0 ...; each wrong one costs. */
static double bits(void *ctx, const double *x)
{
	double v = 1;

	++*(uint32_t *)ctx;
	for (int j = 0; j < 16; j++) {
		ck_assert(x[j] == 0 || x[j] == 1);
		v += x[j] != (j % 2 == 0);
	}
	return v;
}

START_TEST(test_evolution)
{
	double lo[16], hi[16], start[16 * 40], best[16], again[16], v, w;
	bool whole[16];
	uint32_t calls = 0;
	struct plan_search s = { .nr = 4, .lo = lo, .hi = hi, .value = bowl,
		.ctx = &calls, .pop = 40, .epochs = 200, .stall = 60,
		.seed = 1 };

	for (int round = 0; round < 2; round++) {
		struct plan_random r = { 9 };

		for (int j = 0; j < 16; j++) {
			lo[j] = -10;
			hi[j] = 10;
		}
		for (int i = 0; i < 4 * 40; i++)
			start[i] = 20 * plan_random_unit(&r) - 10;
		ck_assert_int_eq(plan_search_de(&s, start, round ? again : best,
			round ? &w : &v), PLAN_OK);
	}
	ck_assert_double_le(v, 1e-6);
	ck_assert_double_eq(v, w);
	ck_assert_mem_eq(best, again, 4 * sizeof(*best));
	for (int j = 0; j < 16; j++) {
		struct plan_random r = { 13 + j };

		lo[j] = 0;
		hi[j] = 1;
		whole[j] = true;
		for (int i = 0; i < 40; i++)
			start[i * 16 + j] = plan_random_next(&r) >> 63;
	}
	s.nr = 16;
	s.integral = whole;
	s.value = bits;
	ck_assert_int_eq(plan_search_de(&s, start, best, &v), PLAN_OK);
	ck_assert_double_eq(v, 1);
	s.pop = 2;
	ck_assert_int_eq(plan_search_de(&s, start, best, &v), PLAN_BAD_PARAM);
}
END_TEST

START_TEST(test_annealing)
{
	const double lo[4] = { -10, -10, -10, -10 }, hi[4] = { 10, 10, 10, 10 };
	const double start[4] = { 9, -9, 9, -9 };
	double best[4], again[4], v, w;
	uint32_t calls = 0;
	struct plan_search s = { .nr = 4, .lo = lo, .hi = hi, .value = bowl,
		.ctx = &calls, .epochs = 2000, .stall = 2000, .seed = 4 };

	ck_assert_int_eq(plan_search_sa(&s, start, best, &v), PLAN_OK);
	ck_assert_double_le(v, 0.05);
	ck_assert_double_eq(bowl(&calls, best), v);
	ck_assert_int_eq(plan_search_sa(&s, start, again, &w), PLAN_OK);
	ck_assert_double_eq(v, w);
	calls = 0;
	s.most_values = 100;
	ck_assert_int_eq(plan_search_sa(&s, start, best, &v), PLAN_OK);
	ck_assert_uint_le(calls, 101);
	ck_assert_double_le(v, bowl(&calls, start));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan_parts");
	TCase *t = tcase_create("parts");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, test_arena);
	tcase_add_test(t, test_interpolation);
	tcase_add_test(t, test_bad_tables);
	tcase_add_test(t, test_noisy_table);
	tcase_add_test(t, test_extraction);
	tcase_add_test(t, test_windows);
	tcase_add_test(t, test_optimized_is_exhaustive);
	tcase_add_test(t, test_optimized_is_valid);
	tcase_add_test(t, test_strict_and_balanced);
	tcase_add_test(t, test_least_blocks);
	tcase_add_loop_test(t, test_subsets, 0, 2);
	tcase_add_test(t, test_first_fit);
	tcase_add_test(t, test_evolution);
	tcase_add_test(t, test_annealing);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
