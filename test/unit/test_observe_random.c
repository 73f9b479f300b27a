/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe.c: properties of random programs, experts, memory.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/observe_util.h"
#include "test/unit/unit.h"

#ifdef SAN_BUILD
#define ROUNDS 100
#else
#define ROUNDS 1000
#endif

#define MAX_PERIOD 400

static uint32_t seq[MAX_PERIOD];

/* Neighbours differ, around the end too, and no shorter period. */
static uint32_t random_sequence(uint64_t *seed, uint32_t sets)
{
	uint32_t nr = 2 + draw(seed, draw(seed, 4) ? 20 : MAX_PERIOD - 2);
	uint32_t d;

	for (;;) {
		for (uint32_t i = 0; i < nr; i++)
			do {
				seq[i] = draw(seed, sets);
			} while ((i > 0 && seq[i] == seq[i - 1]) ||
				(i == nr - 1 && seq[i] == seq[0]));
		for (d = 1; d < nr; d++) {
			uint32_t i = 0;

			while (nr % d == 0 && i < nr &&
			       seq[i] == seq[(i + d) % nr])
				i++;
			if (i == nr)
				break;
		}
		if (d == nr)
			return nr;
		nr = 2 + draw(seed, 20);
	}
}

/* Few sets: hardly anything tells where in the iteration one is. */
static void known_period(uint32_t sets, bool prologue)
{
	uint64_t seed = 42 + sets;
	uint32_t late = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct observer *o = observe_create();
		uint32_t nr = random_sequence(&seed, sets), generation;
		uint32_t before = prologue ? draw(&seed, 30) : 0;

		for (uint32_t i = 0; i < before; i++)
			feed_set(o, draw(&seed, 2) ? 1000 + i :
				draw(&seed, sets));
		/* What came once must not be this iteration's end. */
		feed_set(o, 2000);
		for (uint32_t i = 0; i < 2 * nr; i++)
			feed_set(o, seq[i % nr]);
		late += observe_period(o) != nr ||
			(before == 0 && observe_state(o) != OBSERVE_PERIODIC);
		for (uint32_t i = 0; i < nr + 16; i++)
			feed_set(o, seq[i % nr]);
		for (uint32_t i = 16; i % nr != 0; i++)
			feed_set(o, seq[i % nr]);
		ck_assert_int_eq(observe_state(o), OBSERVE_PERIODIC);
		ck_assert_msg(observe_period(o) == nr, "round %d: %u for %u",
			round, observe_period(o), nr);
		generation = observe_generation(o);
		for (uint32_t i = 0; i < 5 * nr; i++)
			feed_set(o, seq[i % nr]);
		ck_assert_uint_eq(observe_period(o), nr);
		ck_assert_uint_eq(observe_generation(o), generation);
		observe_destroy(o);
	}
	/* Two repetitions are enough, but for "ABCBCABCBCABCB". */
	ck_assert_msg(late <= 2, "%u of %d late", late, ROUNDS);
}

START_TEST(test_two_sets_and_more)
{
	known_period(3 + (uint32_t)_i, false);
}
END_TEST

START_TEST(test_many_sets)
{
	known_period(200, false);
}
END_TEST

START_TEST(test_prologue)
{
	known_period(30, true);
}
END_TEST

static void shuffle(uint64_t *seed, uint32_t *a, uint32_t nr)
{
	for (uint32_t i = nr; i > 1; i--) {
		uint32_t k = draw(seed, i), t = a[k];

		a[k] = a[i - 1];
		a[i - 1] = t;
	}
}

/* All weights in each iteration, in another order each time. */
START_TEST(test_random_order)
{
	static const uint32_t sizes[] = { 16, 20, 40, 64, 300 };
	uint32_t nr = sizes[_i], order[300];
	struct observer *o = observe_create();
	uint64_t seed = 7;

	observe_set_limit(o, 20000);
	for (uint32_t i = 0; i < nr; i++)
		order[i] = i;
	for (uint32_t steps = 0; steps < 20500; steps += nr) {
		shuffle(&seed, order, nr);
		for (uint32_t i = 0; i < nr; i++) {
			feed_set(o, order[i]);
			ck_assert_int_ne(observe_state(o), OBSERVE_PERIODIC);
		}
	}
	ck_assert_int_eq(observe_state(o), OBSERVE_APERIODIC);
	observe_destroy(o);
}
END_TEST

/* One order, then another: found again within its two repetitions or so. */
START_TEST(test_new_order)
{
	uint64_t seed = 11;
	uint32_t order[100], late = 0, nr;

	for (int round = 0; round < ROUNDS / 4; round++) {
		struct observer *o = observe_create();

		nr = 4 + draw(&seed, 96);
		for (uint32_t i = 0; i < nr; i++)
			order[i] = i;
		for (int part = 0; part < 4; part++) {
			uint32_t times = 3 + draw(&seed, 20);

			shuffle(&seed, order, nr);
			for (uint32_t i = 0; i < times * nr; i++) {
				feed_set(o, order[i % nr]);
				if (i == 2 * nr + 16)
					late += observe_state(o) !=
						OBSERVE_PERIODIC ||
						observe_period(o) != nr;
			}
			ck_assert_int_eq(observe_state(o), OBSERVE_PERIODIC);
			ck_assert_msg(observe_period(o) == nr ||
				(order[0] == order[nr - 1]), "%u for %u",
				observe_period(o), nr);
		}
		observe_destroy(o);
	}
	ck_assert_msg(late == 0, "%u late", late);
}
END_TEST

/* ---- experts ---- */

struct experts {
	uint32_t layers, fixed, experts, active, parts;
};

/* Layer: `fixed` weights, then `parts` of each expert that is chosen. */
static uint32_t moe_iteration(struct observer *o, const struct experts *e,
	uint64_t *seed)
{
	uint32_t step = feed_set(o, 0), chosen;

	for (uint32_t l = 0; l < e->layers; l++) {
		for (uint32_t i = 0; i < e->fixed; i++)
			feed_set(o, 1 + l * e->fixed + i);
		for (chosen = 0; (uint32_t)__builtin_popcount(chosen) <
		     e->active;)
			chosen |= 1u << draw(seed, e->experts);
		for (uint32_t x = 0; x < e->experts; x++)
			for (uint32_t i = 0; chosen >> x & 1 && i < e->parts;
			     i++)
				feed_set(o, 10000 + (l * e->experts + x) *
					e->parts + i);
	}
	feed_set(o, 9999);
	return step;
}

static const struct experts models[] = {
	{ 2, 1, 8, 2, 1 }, { 4, 2, 8, 2, 1 }, { 8, 5, 8, 2, 3 },
	{ 32, 5, 8, 2, 3 }, { 12, 4, 16, 4, 1 }, { 6, 3, 8, 1, 1 },
};

/* The fixed part is the order; the experts belong to the step before. */
START_TEST(test_experts)
{
	const struct experts *e = &models[_i];
	const struct observe_options opt = { .page_bytes = 1 };
	struct plan_arena *arena = plan_arena_create();
	struct observer *o = observe_create();
	struct observe_profile p;
	uint32_t period = e->layers * e->fixed + 2, launches = 0;
	uint32_t found = 0, generation;
	uint64_t seed = 3;

	for (uint32_t i = 1; i <= 60 && !found; i++) {
		moe_iteration(o, e, &seed);
		if (observe_state(o) == OBSERVE_PERIODIC &&
		    observe_period(o) == period)
			found = i;
	}
	ck_assert_msg(found != 0, "state %d, period %u",
		observe_state(o), observe_period(o));
	ck_assert_uint_le(found, 24);
	generation = observe_generation(o);
	for (int i = 0; i < 200; i++) {
		moe_iteration(o, e, &seed);
		ck_assert_uint_eq(observe_generation(o), generation);
	}
	moe_iteration(o, e, &seed);
	ck_assert_int_eq(observe_profile(o, &opt, 3, arena, &p), PLAN_OK);
	ck_assert_uint_eq(p.nr_layers, period);
	ck_assert_str_eq(p.layers[0].label, "0.k0");
	for (uint32_t l = 0; l < p.nr_layers; l++)
		launches += p.nr_launches[l];
	ck_assert_uint_eq(launches, period +
		e->layers * e->active * e->parts);
	observe_destroy(o);
	plan_arena_destroy(arena);
}
END_TEST

/* ---- memory and time ---- */

static size_t in_use(void)
{
#ifdef SAN_BUILD
	return 0;
#else
	return mallinfo2().uordblks + mallinfo2().hblkhd;
#endif
}

static void feed_plain(struct observer *o, uint32_t set)
{
	struct page_range r = { .first = set, .nr = 1 };

	observe_launch(o, 1, "k", &r, 1);
}

START_TEST(test_memory)
{
	size_t before = in_use(), at_once;
	struct observer *o = observe_create();
	uint64_t seed = 5;

	observe_set_limit(o, 10000);
	for (uint32_t i = 0; i < 40000; i++)
		feed_plain(o, i % 100);
	at_once = in_use() - before;
	for (uint32_t i = 0; i < 1000000; i++)
		feed_plain(o, i % 100);
	ck_assert_uint_le(in_use() - before, at_once);
	/* 10 iterations of 100 steps, half empty: not more than this. */
	ck_assert_uint_le(in_use() - before, 300000);
	/* New sets again and again, and phases that hold for a while. */
	for (uint32_t i = 0; i < 400; i++) {
		uint32_t base = draw(&seed, 1000000);

		for (uint32_t k = 0; k < 1000; k++)
			feed_plain(o, base + k % 100);
	}
	ck_assert_uint_le(in_use() - before, 5 << 20);
	for (uint32_t i = 0; i < 20000; i++)
		feed_plain(o, 2000000 + i);
	ck_assert_int_eq(observe_state(o), OBSERVE_APERIODIC);
	observe_destroy(o);
}
END_TEST

/* A million steps: the log does not grow with them. */
START_TEST(test_long)
{
	struct observer *o = observe_create();
	const uint32_t period = 200, iterations = 5000;
	size_t before = in_use();

	for (uint32_t i = 0; i < period * iterations; i++) {
		uint32_t set = i % period;
		struct page_range r[2] = { { set * 10, 10 }, { 5000, 3 } };

		observe_launch(o, set % 7, "kernel", r, 2);
		observe_launch(o, 50, "other", NULL, 0);
	}
	ck_assert_uint_eq(observe_period(o), period);
	ck_assert_uint_eq(observe_iterations(o), iterations);
	ck_assert_uint_le(in_use() - before, 5 << 20);
	observe_destroy(o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("observe_random");
	TCase *t = tcase_create("observe_random");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, test_two_sets_and_more, 0, 6);
	tcase_add_test(t, test_many_sets);
	tcase_add_test(t, test_prologue);
	tcase_add_loop_test(t, test_random_order, 0, 5);
	tcase_add_test(t, test_new_order);
	tcase_add_loop_test(t, test_experts, 0,
		sizeof(models) / sizeof(models[0]));
	tcase_add_test(t, test_memory);
	tcase_add_test(t, test_long);
	suite_add_tcase(s, t);
	return unit_run(s);
}
