/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "test/unit/unit.h"

#include "shim/visit.h"

static struct visits v;

static void teardown(void)
{
	visits_fini(&v);
}

/* Each word is a visit, each letter a unit: "a b ac". */
static void ring(const char *text)
{
	uint32_t nr = 0;

	visits_fini(&v);
	for (const char *p = text; *p; p++)
		if (*p != ' ' && (uint32_t)(*p - 'a') >= nr)
			nr = (uint32_t)(*p - 'a') + 1;
	ck_assert(visits_init(&v, nr, 64, 64));
	visits_add(&v, 0);
	for (const char *p = text; *p; p++) {
		if (*p == ' ')
			visits_add(&v, v.at[v.nr - 1].layer + 1);
		else
			visits_add_use(&v, (uint32_t)(*p - 'a'));
	}
	visits_close(&v);
}

static uint32_t away(char unit)
{
	return visits_distance(&v, (uint32_t)(unit - 'a'));
}

/* Launches `n` times; what was expected, or 0 for a turn that went on. */
static uint32_t use(char unit, uint32_t *launches, uint32_t n,
	enum visit_move move)
{
	uint32_t u = (uint32_t)(unit - 'a'), expect = 0;

	ck_assert_int_eq(visits_arrive(&v, u), move);
	ck_assert_uint_eq(visits_distance(&v, u), 0);
	if (!visits_entered(&v, u)) {
		expect = visits_turn(&v, u, launches[u]);
		launches[u] = 0;
	}
	ck_assert(visits_entered(&v, u));
	launches[u] += n;
	return expect;
}

/* One unit a layer: the usual plan. */
START_TEST(test_plain)
{
	uint32_t launches[3] = { 0 };

	ring("a b c");
	ck_assert_uint_eq(v.nr, 3);
	ck_assert_uint_eq(visits_from(&v), 0);
	ck_assert_uint_eq(away('c'), 2);
	ck_assert_uint_eq(use('a', launches, 2, VISIT_ROUND), 0);
	ck_assert_uint_eq(use('b', launches, 1, VISIT_MOVES), 0);
	ck_assert_uint_eq(away('a'), 2);
	ck_assert_uint_eq(away('c'), 1);
	ck_assert(visits_in_order(&v, 2));
	ck_assert(!visits_in_order(&v, 0));
	ck_assert_uint_eq(visits_from(&v), 1);
	ck_assert(visits_done(&v, 1));
	ck_assert(!visits_done(&v, 1));
	ck_assert_uint_eq(visits_from(&v), 2);
	ck_assert_uint_eq(away('b'), 3);
	use('c', launches, 4, VISIT_MOVES);
	/* Twice as often as that: then it is expected. */
	ck_assert_uint_eq(use('a', launches, 2, VISIT_ROUND), 0);
	use('b', launches, 1, VISIT_MOVES);
	use('c', launches, 5, VISIT_MOVES);
	ck_assert_uint_eq(use('a', launches, 2, VISIT_ROUND), 2);
	ck_assert_uint_eq(use('b', launches, 1, VISIT_MOVES), 1);
	ck_assert_uint_eq(use('c', launches, 1, VISIT_MOVES), 0);
}
END_TEST

/* A launch beyond what was expected, and one that skips a layer. */
START_TEST(test_strays)
{
	uint32_t launches[3] = { 0 };

	ring("a b c");
	use('a', launches, 1, VISIT_ROUND);
	ck_assert(visits_done(&v, 0));
	use('a', launches, 1, VISIT_STAYS);
	ck_assert_uint_eq(visits_from(&v), 0);
	use('c', launches, 1, VISIT_MOVES);
	ck_assert(!visits_done(&v, 0));
	use('b', launches, 1, VISIT_MOVES);
	use('a', launches, 1, VISIT_ROUND);
}
END_TEST

/* There and back: two uses each, and the turns are one visit. */
START_TEST(test_both_ways)
{
	uint32_t launches[3] = { 0 };

	ring("a b c c b a");
	ck_assert_uint_eq(v.nr, 4);
	for (int i = 0; i < 3; i++) {
		use('a', launches, 2, VISIT_ROUND);
		use('b', launches, 1, VISIT_MOVES);
		ck_assert_uint_eq(away('a'), 3);
		use('c', launches, 2, VISIT_MOVES);
		ck_assert_uint_eq(away('b'), 1);
		ck_assert_uint_eq(away('a'), 2);
		/* As often as on the way back before, not as there. */
		ck_assert_uint_eq(use('b', launches, 3, VISIT_MOVES),
			i == 2 ? 3 : 0);
		ck_assert_uint_eq(away('c'), 3);
	}
}
END_TEST

/* A tied tensor is a unit of its own beside the layers'. */
START_TEST(test_tied)
{
	uint32_t launches[5] = { 0 };

	ring("ab c  d ae");
	ck_assert_uint_eq(v.nr, 4);
	use('a', launches, 1, VISIT_ROUND);
	use('b', launches, 1, VISIT_STAYS);
	ck_assert(visits_done(&v, 0));
	ck_assert_uint_eq(visits_from(&v), 0);
	ck_assert_uint_eq(away('a'), 3);
	ck_assert(visits_done(&v, 1));
	ck_assert_uint_eq(visits_from(&v), 1);
	use('c', launches, 1, VISIT_MOVES);
	use('d', launches, 1, VISIT_MOVES);
	use('e', launches, 1, VISIT_MOVES);
	ck_assert_uint_eq(away('a'), 0);
	ck_assert(!visits_entered(&v, 0));
	use('a', launches, 1, VISIT_STAYS);
	ck_assert(visits_done(&v, 0));
	/* The next visit has it, too. */
	use('a', launches, 1, VISIT_ROUND);
	ck_assert_uint_eq(away('e'), 3);
}
END_TEST

/* Parts of the visit under way come again, unnoticed. */
START_TEST(test_covered)
{
	uint32_t launches[4] = { 0 };

	ring("ab b a c d");
	use('a', launches, 1, VISIT_ROUND);
	ck_assert(visits_in_order(&v, 2));
	ck_assert(!visits_in_order(&v, 3));
	use('c', launches, 1, VISIT_MOVES);
	ck_assert(visits_in_order(&v, 3));
	ck_assert(!visits_in_order(&v, 0));
}
END_TEST

/* With one visit, a turn that is over is an iteration. */
START_TEST(test_one)
{
	uint32_t launches[1] = { 0 };

	ring("a a");
	ck_assert_uint_eq(v.nr, 1);
	use('a', launches, 1, VISIT_ROUND);
	use('a', launches, 1, VISIT_STAYS);
	ck_assert(visits_done(&v, 0));
	use('a', launches, 1, VISIT_ROUND);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("visit");
	TCase *t = tcase_create("visit");

	tcase_add_checked_fixture(t, NULL, teardown);
	tcase_add_test(t, test_plain);
	tcase_add_test(t, test_strays);
	tcase_add_test(t, test_both_ways);
	tcase_add_test(t, test_tied);
	tcase_add_test(t, test_covered);
	tcase_add_test(t, test_one);
	suite_add_tcase(s, t);
	return unit_run(s);
}
