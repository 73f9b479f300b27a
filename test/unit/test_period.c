/* SPDX-License-Identifier: Apache-2.0 */
/*
 * period.c: the median of the last 16 iterations.
 */
#include "shim/period.h"

#include <stdlib.h>

#include "test/unit/unit.h"

START_TEST(first)
{
	struct period p = { 0 };

	ck_assert_uint_eq(period_begins(&p, 1000), 0);
	ck_assert_uint_eq(period_begins(&p, 1010), 10);
	ck_assert_uint_eq(period_begins(&p, 1030), 15);
	ck_assert_uint_eq(period_begins(&p, 1031), 10);
	ck_assert_uint_eq(p.last_ns, 1);
}
END_TEST

START_TEST(outliers)
{
	struct period p = { 0 };
	uint64_t now = 1, got = 0;

	period_begins(&p, now);
	for (int i = 0; i < 100; i++)
		got = period_begins(&p, now += i % 5 == 2 ? 90000 : 100);
	ck_assert_uint_eq(got, 100);
	/* What is older than 16 iterations does not count. */
	for (int i = 0; i < PERIOD_KEPT; i++)
		got = period_begins(&p, now += 7);
	ck_assert_uint_eq(got, 7);
}
END_TEST

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The same by sorting. */
START_TEST(random_times)
{
	uint64_t kept[2000], sorted[PERIOD_KEPT], now = 5, got, want;
	struct period p = { 0 };

	period_begins(&p, now);
	for (int i = 0; i < 2000; i++) {
		int nr = i + 1 < PERIOD_KEPT ? i + 1 : PERIOD_KEPT;

		kept[i] = (uint64_t)rand() % 50;
		got = period_begins(&p, now += kept[i]);
		for (int k = 0; k < nr; k++)
			sorted[k] = kept[i - k];
		qsort(sorted, (size_t)nr, sizeof(*sorted), compare);
		want = nr % 2 ? sorted[nr / 2] :
			(sorted[nr / 2 - 1] + sorted[nr / 2]) / 2;
		ck_assert_uint_eq(got, want);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("period");
	TCase *t = tcase_create("period");

	tcase_add_test(t, first);
	tcase_add_test(t, outliers);
	tcase_add_test(t, random_times);
	suite_add_tcase(s, t);
	return unit_run(s);
}
