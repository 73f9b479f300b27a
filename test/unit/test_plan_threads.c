/* SPDX-License-Identifier: Apache-2.0 */
/* Threads plan as one thread does: every strategy, several cases at a time. */
#include "planner/plan_io.h"
#include "planner/planner.h"

#include <pthread.h>
#include <stdlib.h>

#include "test/unit/plan_same.h"

#define THREADS 4
#define MOST_STRATEGIES 32

static const char *const threaded[THREADS] = {
	"sdxl_unet", "gpt2xl_tied", "uneven_seed7", "embed_heavy",
};

struct planner_thread {
	const struct plan_profile *profiles;
	uint32_t first;			/* case that it begins with */
	pthread_barrier_t *barrier;	/* NULL: alone */
	/* What it planned, by case and strategy. */
	char *text[THREADS][MOST_STRATEGIES];
};

/* NULL if the strategy has no plan here. */
static char *plan_text_of(const struct plan_profile *p,
	const struct plan_strategy *s)
{
	struct plan_arena *arena = plan_arena_create();
	struct plan_file f = { .profile = *p, .strategy = s->name,
		.params = s->defaults, .budget = p->budgets[2] };
	struct plan_input in = plan_io_input(p, f.budget);
	char *text = NULL;

	/* Fewer generations than by default. */
	f.params.epoch = 10;
	if (!plan_compute(s, &in, &f.params, arena, &f.result) &&
	    !evaluate_strategy_result(&f.result, &in, s->name, NULL,
		&f.score)) {
		f.bound_ms = f.result.bound_ms;
		f.period_ms = f.result.period_ms;
		text = plan_io_print_plan(&f);
	}
	plan_arena_destroy(arena);
	return text;
}

/* Check's assertions belong into the main thread only. */
static void *plan_all(void *arg)
{
	struct planner_thread *t = arg;

	for (uint32_t n = 0; n < THREADS; n++) {
		uint32_t c = (t->first + n) % THREADS;

		for (uint32_t i = 0; i < plan_nr_strategies(); i++) {
			if (t->barrier)
				pthread_barrier_wait(t->barrier);
			t->text[c][i] = plan_text_of(&t->profiles[c],
				plan_strategy(i));
		}
	}
	return NULL;
}

/* The threads come first: what is set up at first use is set up by them. */
START_TEST(test_threads)
{
	struct plan_arena *arena = plan_arena_create();
	struct plan_profile profiles[THREADS];
	struct planner_thread *t = calloc(THREADS + 1, sizeof(*t));
	pthread_t id[THREADS];
	pthread_barrier_t barrier;
	uint32_t plans = 0;

	ck_assert_uint_le(plan_nr_strategies(), MOST_STRATEGIES);
	for (int k = 0; k < THREADS; k++)
		plan_same_case(threaded[k], arena, &profiles[k]);
	ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	for (uint32_t k = 0; k < THREADS; k++) {
		t[k].profiles = profiles;
		t[k].first = k;
		t[k].barrier = &barrier;
		ck_assert_int_eq(pthread_create(&id[k], NULL, plan_all, &t[k]),
			0);
	}
	for (int k = 0; k < THREADS; k++)
		ck_assert_int_eq(pthread_join(id[k], NULL), 0);
	t[THREADS].profiles = profiles;
	plan_all(&t[THREADS]);
	for (int c = 0; c < THREADS; c++)
		for (uint32_t i = 0; i < plan_nr_strategies(); i++) {
			const char *alone = t[THREADS].text[c][i];

			plans += alone != NULL;
			for (int k = 0; k < THREADS; k++)
				plan_same_text(alone, t[k].text[c][i]);
			for (int k = 0; k <= THREADS; k++)
				free(t[k].text[c][i]);
		}
	ck_assert_uint_gt(plans, 40);
	pthread_barrier_destroy(&barrier);
	free(t);
	plan_arena_destroy(arena);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan_threads");
	TCase *t = tcase_create("threads");

	tcase_set_timeout(t, 30);
	tcase_add_test(t, test_threads);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
