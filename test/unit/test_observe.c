/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observe.c: steps, periods, layers and times of small programs, exactly.
 */
#include <string.h>

#include "test/unit/observe_util.h"
#include "test/unit/unit.h"

static struct observer *o;
static struct plan_arena *arena;
static struct observe_profile p;

static void setup(void)
{
	o = observe_create();
	arena = plan_arena_create();
	ck_assert_ptr_nonnull(o);
	ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
	observe_destroy(o);
	plan_arena_destroy(arena);
}

static const struct observe_options plain = { .page_bytes = 1 };

static void profile(const struct observe_options *opt, uint32_t iterations)
{
	struct plan_input in = { .max_gpu_mem_bytes = PLAN_NO_LIMIT };
	char message[PLAN_MESSAGE];

	ck_assert_int_eq(observe_profile(o, opt, iterations, arena, &p),
		PLAN_OK);
	in.layers = p.layers;
	in.nr_layers = p.nr_layers;
	ck_assert_msg(plan_input_check(&in, message) == PLAN_OK, "%s",
		message);
}

static void periodic(uint32_t period)
{
	ck_assert_int_eq(observe_state(o), OBSERVE_PERIODIC);
	ck_assert_uint_eq(observe_period(o), period);
}

/* ---- steps and periods ---- */

START_TEST(test_steps)
{
	ck_assert_uint_eq(feed(o, "."), OBSERVE_NONE);
	ck_assert_uint_eq(feed(o, ".."), OBSERVE_NONE);
	ck_assert_uint_eq(feed(o, "A"), 0);
	ck_assert_uint_eq(feed(o, "AA."), 0);
	ck_assert_uint_eq(feed(o, "A"), 0);
	ck_assert_uint_eq(feed(o, "B"), 1);
	ck_assert_uint_eq(feed(o, "."), 1);
	ck_assert_uint_eq(feed(o, "A"), 2);
	ck_assert_int_eq(observe_state(o), OBSERVE_CANDIDATE);
	ck_assert_uint_eq(observe_period(o), 2);
	observe_reset(o);
	ck_assert_int_eq(observe_state(o), OBSERVE_SEARCHING);
	ck_assert_uint_eq(observe_period(o), 0);
	ck_assert_uint_eq(feed(o, "."), OBSERVE_NONE);
	ck_assert_uint_eq(feed(o, "C"), 0);
}
END_TEST

/* Equal ranges are one set, whoever names them; others are not. */
START_TEST(test_sets)
{
	struct page_range a[2] = { { 0, 2 }, { 5, 1 } };
	struct page_range b[2] = { { 0, 2 }, { 5, 2 } };

	ck_assert_uint_eq(observe_launch(o, 1, NULL, a, 2), 0);
	ck_assert_uint_eq(observe_launch(o, 2, NULL, a, 2), 0);
	ck_assert_uint_eq(observe_launch(o, 1, NULL, b, 2), 1);
	ck_assert_uint_eq(observe_launch(o, 1, NULL, a, 1), 2);
	ck_assert_uint_eq(observe_launch(o, 1, NULL, a, 2), 3);
	ck_assert_uint_eq(observe_period(o), 3);
}
END_TEST

static const struct {
	const char *first, *again;
	int times;
	uint32_t period;
} programs[] = {
	{ "", "AB", 2, 2 },
	{ "", "ABC", 2, 3 },
	{ "", "ABAC", 2, 4 },		/* A is tied */
	{ "", "ABABAC", 2, 6 },
	{ "", "ACABAB", 2, 6 },
	{ "", "ELMELM", 1, 3 },		/* E begins and ends */
	{ "", "ELME", 2, 3 },		/* the same; the Es are one step */
	{ "", "E.LM.", 2, 3 },
	{ "", "EABABABH", 2, 8 },	/* layers that share their weights */
	{ "", "AAABBBCCC", 2, 3 },
	{ "XYZ", "ABC", 2, 3 },		/* what happens once */
	{ "XYZABC", "ABCD", 2, 4 },
	{ "CBA", "ABCD", 2, 4 },
	{ "XABCYABC", "ABCD", 2, 4 },
	{ "", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 2, 26 },
};

START_TEST(test_periods)
{
	const char *text = programs[_i].again;

	feed(o, programs[_i].first);
	for (int i = 0; i < programs[_i].times; i++)
		feed(o, text);
	periodic(programs[_i].period);
	for (int i = 0; i < 20; i++) {
		uint32_t generation = observe_generation(o);

		feed(o, text);
		periodic(programs[_i].period);
		ck_assert_uint_eq(observe_generation(o), generation);
	}
	ck_assert_uint_ge(observe_iterations(o), 20);
}
END_TEST

START_TEST(test_states)
{
	feed(o, "ABC");
	ck_assert_int_eq(observe_state(o), OBSERVE_SEARCHING);
	ck_assert_uint_eq(observe_iterations(o), 0);
	feed(o, "A");
	ck_assert_int_eq(observe_state(o), OBSERVE_CANDIDATE);
	ck_assert_uint_eq(observe_iterations(o), 1);
	ck_assert_int_eq(observe_profile(o, &plain, 3, arena, &p),
		PLAN_BAD_MODEL);
	feed(o, "B");
	ck_assert_int_eq(observe_state(o), OBSERVE_CANDIDATE);
	feed(o, "C");
	periodic(3);
	ck_assert_uint_eq(observe_iterations(o), 2);
	feed(o, "ABC");
	ck_assert_uint_eq(observe_iterations(o), 3);
	ck_assert_int_eq(observe_profile(o, &plain, 3, arena, &p), PLAN_OK);
}
END_TEST

/* A new order: the old period is void at once, the new one found. */
START_TEST(test_change)
{
	uint32_t generation;

	feed_times(o, "ABCD", 6);
	periodic(4);
	generation = observe_generation(o);
	feed(o, "BA");
	ck_assert_int_ne(observe_state(o), OBSERVE_PERIODIC);
	ck_assert_uint_ne(observe_generation(o), generation);
	feed(o, "DC");
	feed(o, "BADC");
	periodic(4);
	ck_assert_uint_ne(observe_generation(o), generation);
	generation = observe_generation(o);
	feed_times(o, "BADC", 10);
	ck_assert_uint_eq(observe_generation(o), generation);
}
END_TEST

/* One iteration with something else in it costs an iteration or two. */
START_TEST(test_glitch)
{
	feed_times(o, "ABCD", 20);
	feed(o, "ABXCD");
	ck_assert_int_ne(observe_state(o), OBSERVE_PERIODIC);
	feed_times(o, "ABCD", 2);
	periodic(4);
	feed_times(o, "ABCD", 4);
	/* It comes again, and might come after 29 steps always; but no. */
	feed(o, "ABX");
	periodic(29);
	feed(o, "CD");
	feed_times(o, "ABCD", 9);
	periodic(4);
	/* From now on it is none of ours. */
	for (int i = 0; i < 10; i++) {
		feed(o, "ABXCD");
		periodic(4);
		feed(o, "ABCD");
		periodic(4);
	}
}
END_TEST

/* Something new each time. */
START_TEST(test_glitches)
{
	for (uint32_t i = 0; i < 40; i++) {
		feed_times(o, "ABCD", 6);
		if (i > 4)
			periodic(4);
		feed(o, "AB");
		feed_set(o, 100 + i);
		feed(o, "CD");
	}
	periodic(4);
}
END_TEST

/* Another program in the same process, after one that had optional sets. */
START_TEST(test_other_program)
{
	feed_times(o, "ABCD", 6);
	for (int i = 0; i < 3; i++) {
		feed(o, "ABXCD");
		feed_times(o, "ABCD", 4 + 3 * i);
	}
	periodic(4);
	feed(o, "X");
	periodic(4);
	for (int i = 0; i < 80; i++)
		feed(o, "XYZ");
	periodic(3);
	profile(&plain, 1);
	ck_assert_uint_eq(p.nr_layers, 3);
}
END_TEST

START_TEST(test_limit)
{
	observe_set_limit(o, 100);
	for (uint32_t i = 0; i < 99; i++)
		ck_assert_uint_eq(feed_set(o, i), i);
	ck_assert_int_eq(observe_state(o), OBSERVE_SEARCHING);
	feed_set(o, 99);
	ck_assert_int_eq(observe_state(o), OBSERVE_APERIODIC);
	ck_assert_uint_eq(feed(o, "ABABAB"), OBSERVE_NONE);
	ck_assert_int_eq(observe_state(o), OBSERVE_APERIODIC);
	ck_assert_uint_eq(observe_period(o), 0);
	observe_reset(o);
	feed(o, "ABAB");
	periodic(2);
}
END_TEST

/* ---- the profile ---- */

static void layer_is(uint32_t l, const char *label, uint32_t first_step,
	uint32_t nr_launches, uint64_t bytes)
{
	uint64_t sum = 0;

	ck_assert_uint_lt(l, p.nr_layers);
	ck_assert_str_eq(p.layers[l].label, label);
	ck_assert_uint_eq(p.first_step[l], first_step);
	ck_assert_uint_eq(p.nr_launches[l], nr_launches);
	for (uint32_t i = 0; i < p.layers[l].nr; i++)
		sum += p.layers[l].tensors[i].size_bytes;
	ck_assert_uint_eq(sum, bytes);
}

START_TEST(test_profile)
{
	const struct observe_options opt = { .page_bytes = 2 << 20 };

	feed_times(o, "AAB..C", 3);
	profile(&opt, 3);
	ck_assert_uint_eq(p.period, 3);
	ck_assert_uint_eq(p.nr_layers, 3);
	ck_assert_uint_eq(p.nr_tensors, 3);
	layer_is(0, "0.k0", 0, 2, 20 << 20);
	layer_is(1, "1.k1", 1, 3, 20 << 20);
	layer_is(2, "2.k2", 2, 1, 20 << 20);
	ck_assert_uint_eq(p.tensors[1].first, 10);
	ck_assert_uint_eq(p.tensors[1].nr, 10);
	ck_assert_str_eq(p.layers[1].tensors[0].name, "0x1400000+20MiB");
	ck_assert_int_eq(p.layers[1].tensors[0].id, 1);
	ck_assert(p.iteration_ms == 0);
	/* Steps are counted from the first launch. */
	for (uint32_t i = 0; i < 9; i++)
		ck_assert_uint_eq(observe_layer_of(o, &p, i), i % 3);
	ck_assert_uint_eq(observe_layer_of(o, &p, 9), OBSERVE_NONE);
	ck_assert_uint_eq(observe_layer_of(o, &p, OBSERVE_NONE), OBSERVE_NONE);
}
END_TEST

/* The iteration begins where the program began, prologue or not. */
START_TEST(test_rotation)
{
	feed(o, "XY");
	feed_times(o, "ABCD", 5);
	profile(&plain, 1);
	layer_is(0, "0.k0", 0, 1, 10);
	ck_assert_uint_eq(observe_layer_of(o, &p, 1), OBSERVE_NONE);
	ck_assert_uint_eq(observe_layer_of(o, &p, 2), 0);
	ck_assert_uint_eq(observe_layer_of(o, &p, 5), 3);
	/* Found anew from the middle: step 24 is C. */
	feed(o, "ABXC");
	ck_assert_uint_eq(feed(o, "D"), 26);
	feed_times(o, "ABCD", 3);
	periodic(4);
	profile(&plain, 1);
	layer_is(0, "0.k0", 0, 1, 10);
	layer_is(3, "3.k3", 3, 1, 10);
	ck_assert_uint_eq(observe_layer_of(o, &p, 27), 0);
	ck_assert_uint_eq(observe_layer_of(o, &p, 24), OBSERVE_NONE);
	ck_assert_uint_eq(observe_layer_of(o, &p, 38), 3);
}
END_TEST

START_TEST(test_times)
{
	for (uint32_t i = 0; i < 4; i++) {
		feed(o, "ABC");
		observe_time(o, 3 * i, 1);
		observe_time(o, 3 * i, i);
		if (i != 1)
			observe_time(o, 3 * i + 1, 2 * i);
	}
	/* Nonsense, and steps that do not exist. */
	observe_time(o, 0, -1);
	observe_time(o, 0, __builtin_nan(""));
	observe_time(o, 12, 1);
	observe_time(o, OBSERVE_NONE, 1);
	/* The last iteration is not over before the next begins. */
	feed(o, "A");
	profile(&plain, 2);
	ck_assert(p.layers[0].duration_ms == (3 + 4) / 2.0);
	ck_assert(p.layers[1].duration_ms == (4 + 6) / 2.0);
	ck_assert(p.layers[2].duration_ms == 0);
	ck_assert(p.iteration_ms == 8.5);
	/* All of them: B has no time in the second one. */
	profile(&plain, 8);
	ck_assert(p.layers[0].duration_ms == (1 + 2 + 3 + 4) / 4.0);
	ck_assert(p.layers[1].duration_ms == (0 + 4 + 6) / 3.0);
	profile(&plain, 0);
	ck_assert(p.iteration_ms == 0);
}
END_TEST

/* Untimed iterations are passed over; forgotten ones do no harm. */
START_TEST(test_old_times)
{
	uint32_t step = 0;

	feed_times(o, "ABC", 1000);
	observe_time(o, 0, 100);
	for (int i = 0; i < 2; i++) {
		step = feed(o, "A");
		feed(o, "BC");
		observe_time(o, step, 4);
	}
	feed_times(o, "ABC", 4);
	profile(&plain, 2);
	ck_assert(p.layers[0].duration_ms == 4);
	feed_times(o, "ABC", 1000);
	profile(&plain, 2);
	ck_assert(p.iteration_ms == 0);
}
END_TEST

START_TEST(test_merge)
{
	struct observe_options opt = {
		.page_bytes = 1, .min_layer_bytes = 15, .max_layer_bytes = 30,
	};
	/* A step of 40 pages stands alone. */
	struct page_range big = { 1000, 40 };

	for (int i = 0; i < 3; i++) {
		feed(o, "ABC.DE");
		observe_launch(o, 77, "big", &big, 1);
		feed(o, "F");
	}
	profile(&opt, 1);
	ck_assert_uint_eq(p.nr_layers, 5);
	layer_is(0, "0.k0", 0, 2, 20);
	layer_is(1, "1.k2", 2, 3, 20);
	layer_is(2, "2.k4", 4, 1, 10);
	layer_is(3, "3.big", 5, 1, 40);
	layer_is(4, "4.k5", 6, 1, 10);
	/* Two of one layer are neighbours: one tensor. */
	ck_assert_uint_eq(p.layers[0].nr, 1);
	ck_assert_uint_eq(observe_layer_of(o, &p, 3), 1);
	ck_assert_uint_eq(observe_layer_of(o, &p, 7 + 6), 4);
	/* No limit: the rest goes to the layer before. */
	opt.max_layer_bytes = 0;
	profile(&opt, 1);
	ck_assert_uint_eq(p.nr_layers, 3);
	layer_is(2, "2.k4", 4, 3, 60);
	/* Pairs, whatever they weigh. */
	opt.min_layer_bytes = 0;
	opt.group_size = 2;
	profile(&opt, 1);
	ck_assert_uint_eq(p.nr_layers, 4);
	layer_is(2, "2.k4", 4, 2, 50);
	layer_is(3, "3.k5", 6, 1, 10);
	opt.group_size = UINT32_MAX;
	profile(&opt, 1);
	ck_assert_uint_eq(p.nr_layers, 1);
}
END_TEST

/*
 * E is used at both ends: a layer each time.  What the layer before uses is not
 * new.
 */
START_TEST(test_tied)
{
	struct observe_options opt = {
		.page_bytes = 1, .min_layer_bytes = 5,
	};

	feed_times(o, "EABEC", 3);
	profile(&opt, 1);
	ck_assert_uint_eq(p.period, 5);
	ck_assert_uint_eq(p.nr_layers, 5);
	layer_is(0, "0.k4", 0, 1, 10);
	layer_is(3, "3.k4", 3, 1, 10);
	ck_assert_uint_eq(p.nr_tensors, 4);
	ck_assert_int_eq(p.layers[3].tensors[0].id,
		p.layers[0].tensors[0].id);
	/* There and back. */
	observe_reset(o);
	feed_times(o, "CABDBA", 3);
	profile(&opt, 1);
	ck_assert_uint_eq(p.nr_layers, 6);
	layer_is(4, "4.k1", 4, 1, 10);
}
END_TEST

/* Ranges that overlap: cut where the layers differ. */
START_TEST(test_overlap)
{
	struct page_range a[2] = { { 0, 10 }, { 100, 4 } };
	struct page_range b[2] = { { 5, 10 }, { 100, 4 } };
	struct page_range c[2] = { { 15, 5 }, { 100, 4 } };

	for (int i = 0; i < 3; i++) {
		observe_launch(o, 1, "a", a, 2);
		observe_launch(o, 2, "b", b, 2);
		observe_launch(o, 3, NULL, c, 2);
	}
	profile(&plain, 1);
	ck_assert_uint_eq(p.nr_layers, 3);
	ck_assert_uint_eq(p.nr_tensors, 5);
	ck_assert_uint_eq(p.tensors[0].nr, 5);
	ck_assert_uint_eq(p.tensors[1].first, 5);
	ck_assert_uint_eq(p.tensors[1].nr, 5);
	ck_assert_uint_eq(p.tensors[2].first, 10);
	ck_assert_uint_eq(p.tensors[2].nr, 5);
	ck_assert_uint_eq(p.tensors[3].first, 15);
	layer_is(0, "0.a", 0, 1, 14);
	layer_is(1, "1.b", 1, 1, 14);
	layer_is(2, "2.?", 2, 1, 9);
	/* What every layer uses is in each. */
	for (uint32_t l = 0; l < 3; l++)
		ck_assert_int_eq(p.layers[l].tensors[p.layers[l].nr - 1].id,
			4);
	/* One layer: nothing differs any more. */
	profile(&(struct observe_options){ .page_bytes = 1,
		.group_size = 3 }, 1);
	ck_assert_uint_eq(p.nr_tensors, 2);
	ck_assert_uint_eq(p.tensors[0].nr, 20);
}
END_TEST

/* The function that takes most time, or is launched most, with weights. */
START_TEST(test_labels)
{
	struct observe_options opt = {
		.page_bytes = 1, .min_layer_bytes = 20,
	};
	struct page_range a = { 0, 10 }, b = { 10, 10 };
	static const char mangled[] =
		"_ZN7cutlass6KernelI4GemmEEvNT_6ParamsE";

	for (int i = 0; i < 3; i++) {
		observe_launch(o, 1, "seldom", &a, 1);
		observe_launch(o, 2, "often", &a, 1);
		observe_launch(o, 2, "often", &a, 1);
		for (int k = 0; k < 5; k++)
			observe_launch(o, 3, "none", NULL, 0);
		observe_launch(o, 4, mangled, &b, 1);
	}
	profile(&opt, 1);
	ck_assert_uint_eq(p.nr_layers, 1);
	ck_assert_str_eq(p.layers[0].label, "0.often");
	observe_time(o, 2, 1);
	observe_time(o, 3, 3);
	profile(&opt, 1);
	ck_assert_str_eq(p.layers[0].label, "0.cutlass::Kernel");
	observe_reset(o);
	/* Names stay. */
	for (int i = 0; i < 2; i++) {
		observe_launch(o, 4, NULL, &b, 1);
		observe_launch(o, 1, "other", &a, 1);
	}
	profile(&plain, 1);
	ck_assert_str_eq(p.layers[0].label, "0.cutlass::Kernel");
	ck_assert_str_eq(p.layers[1].label, "1.seldom");
}
END_TEST

static const char *const names[][2] = {
	{ "_Z4gemmPfS_i", "gemm" },
	{ "_ZN2at6native3addEv", "at::native::add" },
	{ "_ZN99999999999999999999xE", "_ZN99999999999999999999xE" },
	{ "_Z", "_Z" },
	{ "_ZN3ab", "_ZN3ab" },
	{ "", "?" },
	{ "a_very_long_name_that_goes_on_and_on_until_nobody_would_read_any_more",
	  "a_very_long_name_that_goes_on_and_on_until_nobody_would_read_an" },
};

START_TEST(test_names)
{
	struct page_range r = { 0, 1 };
	char label[96];

	for (int i = 0; i < 2; i++) {
		observe_launch(o, 1, names[_i][0], &r, 1);
		feed(o, "B");
	}
	profile(&plain, 1);
	snprintf(label, sizeof(label), "0.%s", names[_i][1]);
	ck_assert_str_eq(p.layers[0].label, label);
}
END_TEST

/* The same weights with other kernels are another phase. */
START_TEST(test_kernels)
{
	uint64_t before;
	struct page_range a = { 0, 10 }, b = { 10, 10 };

	feed_times(o, "A.B.", 4);
	profile(&plain, 1);
	before = p.kernels;
	feed_times(o, "A.B.", 4);
	profile(&plain, 1);
	ck_assert(p.kernels == before);
	for (int i = 0; i < 3; i++) {
		observe_launch(o, 901, "x", &a, 1);
		observe_launch(o, 902, "y", &b, 1);
	}
	periodic(2);
	profile(&plain, 1);
	ck_assert(p.kernels != before);
	ck_assert_uint_eq(p.nr_launches[0], 1);
}
END_TEST

/* One iteration: A for a ms, B for b ms, by kernels of that phase. */
static uint32_t pass(uint32_t step, uint64_t phase, double a, double b)
{
	struct page_range first = { 0, 10 }, second = { 10, 10 };

	observe_launch(o, 900 + phase, "x", &first, 1);
	observe_launch(o, 950 + phase, "y", &second, 1);
	observe_time(o, step, a);
	observe_time(o, step + 1, b);
	return step + 2;
}

/* Phases keep their own times; the layers have those of the frequent one. */
START_TEST(test_phases)
{
	uint32_t step = 0;

	step = pass(step, 0, 1, 2);
	step = pass(step, 0, 3, 4);
	step = pass(step, 1, 100, 200);
	step = pass(step, 0, 5, 6);
	step = pass(step, 1, 300, 400);
	pass(step, 0, 0, 0);
	profile(&plain, 8);
	ck_assert_uint_eq(p.nr_phases, 2);
	ck_assert_uint_eq(p.phases[0].nr, 3);
	ck_assert(p.layers[0].duration_ms == 3);
	ck_assert(p.layers[1].duration_ms == 4);
	ck_assert(p.iteration_ms == 7 && p.phases[0].iteration_ms == 7);
	ck_assert_uint_eq(p.phases[1].nr, 2);
	ck_assert(p.phases[1].layer_ms[0] == 200);
	ck_assert(p.phases[1].iteration_ms == 500);
	ck_assert(p.phases[0].kernels != p.phases[1].kernels);
	ck_assert(p.kernels == p.phases[1].kernels);
	/* Of the last two, one each: nothing tells which is the rule. */
	profile(&plain, 2);
	ck_assert_uint_eq(p.nr_phases, 0);
	ck_assert(p.layers[0].duration_ms == (5 + 300) / 2.0);
	/* The last alone is a phase. */
	profile(&plain, 1);
	ck_assert_uint_eq(p.nr_phases, 1);
	ck_assert(p.iteration_ms == 700);
}
END_TEST

/* As many of each: the later one. */
START_TEST(test_phases_alike)
{
	uint32_t step = 0;

	for (uint32_t i = 0; i < 4; i++)
		step = pass(step, i / 2, 1 + i, 1);
	pass(step, 1, 0, 0);
	profile(&plain, 8);
	ck_assert_uint_eq(p.nr_phases, 2);
	ck_assert(p.phases[0].kernels == p.kernels);
	ck_assert(p.layers[0].duration_ms == 3.5);
	ck_assert(p.phases[1].layer_ms[0] == 1.5);
}
END_TEST

/* Another period's profile names no layers. */
START_TEST(test_stale)
{
	feed_times(o, "ABC", 3);
	profile(&plain, 1);
	feed(o, "X");
	ck_assert_uint_eq(observe_layer_of(o, &p, 4), OBSERVE_NONE);
	feed_times(o, "ABCD", 3);
	periodic(4);
	ck_assert_uint_eq(observe_layer_of(o, &p, 12), OBSERVE_NONE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("observe");
	TCase *t = tcase_create("observe");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, test_steps);
	tcase_add_test(t, test_sets);
	tcase_add_loop_test(t, test_periods, 0,
		sizeof(programs) / sizeof(programs[0]));
	tcase_add_test(t, test_states);
	tcase_add_test(t, test_change);
	tcase_add_test(t, test_glitch);
	tcase_add_test(t, test_glitches);
	tcase_add_test(t, test_other_program);
	tcase_add_test(t, test_limit);
	tcase_add_test(t, test_profile);
	tcase_add_test(t, test_rotation);
	tcase_add_test(t, test_times);
	tcase_add_test(t, test_old_times);
	tcase_add_test(t, test_merge);
	tcase_add_test(t, test_tied);
	tcase_add_test(t, test_overlap);
	tcase_add_test(t, test_labels);
	tcase_add_loop_test(t, test_names, 0,
		sizeof(names) / sizeof(names[0]));
	tcase_add_test(t, test_kernels);
	tcase_add_test(t, test_phases);
	tcase_add_test(t, test_phases_alike);
	tcase_add_test(t, test_stale);
	suite_add_tcase(s, t);
	return unit_run(s);
}
