/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phase_mix.c: which pages stay in host memory, what the planner is told about
 * the rest, and which of the plans is taken.  Plans are made here: a schedule
 * is a number, and the shortest period is that of the wanted part.
 */
#include "shim/phase_mix.c"

#include <math.h>
#include <stdlib.h>

#include "test/unit/unit.h"

#define PAGE 65536u
#define LAYERS 6u
#define TENSORS 7u

static struct plan_order *asked;
static double wanted;		/* part in host memory */
static int nr_made, nr_destroyed;
static bool no_plan;

static const uint32_t pages[TENSORS] = { 1, 1, 8, 3, 1, 16, 2 };
/* The last tensor is the first and last layer's. */
static const uint32_t of_layer[LAYERS] = { 0, 1, 2, 3, 4, 5 };

void schedule_destroy(struct schedule *sc)
{
	nr_destroyed += sc != NULL;
	free(sc);
}

static uint32_t host_pages(const struct plan_order *o)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->nr_host; i++)
		n += o->host[i].nr;
	return n;
}

/* Every page is either streamed or stays; layers say so, too. */
static void check_parts(const struct plan_order *o)
{
	const struct observe_profile *all = &asked->profile;
	uint32_t left = 0;

	ck_assert_uint_eq(o->profile.nr_tensors, TENSORS);
	for (uint32_t i = 0; i < TENSORS; i++)
		left += o->profile.tensors[i].nr;
	ck_assert_uint_eq(left + host_pages(o), 32);
	for (uint32_t i = 0; i < o->nr_host; i++)
		for (uint32_t k = 0; k < TENSORS; k++) {
			const struct observe_tensor *t = &o->profile.tensors[k];

			ck_assert(o->host[i].first + o->host[i].nr <=
				t->first || t->first + t->nr <=
				o->host[i].first);
		}
	for (uint32_t l = 0; l < LAYERS; l++) {
		const struct layer_statistics *a = &o->profile.layers[l];
		uint64_t there = bytes_of(&all->layers[l]) - bytes_of(a);

		ck_assert_double_ge(a->duration_ms,
			all->layers[l].duration_ms);
		/* Half of the link, 1 ms a page, is theirs: 2 ms a page. */
		ck_assert_double_ge(a->duration_ms + 1e-6,
			2.0 * (double)there / PAGE);
		for (uint32_t k = 0; k < a->nr; k++)
			ck_assert_uint_eq(a->tensors[k].size_bytes, (uint64_t)
				PAGE * o->profile.tensors[
				a->tensors[k].id].nr);
	}
}

enum plan_status order_compute(struct plan_order *o, uint64_t budget)
{
	ck_assert_uint_eq(budget, 4 * PAGE);
	/* Copies beside kernels take twice as long. */
	ck_assert_double_eq_tol(o->gauge.points[0].ms, 2, 1e-9);
	check_parts(o);
	if (no_plan)
		return PLAN_INFEASIBLE;
	nr_made++;
	o->schedule = malloc(1);
	return PLAN_OK;
}

void order_judge(struct plan_order *o)
{
	o->predicted_ms = 10 + fabs(host_pages(o) / 32.0 - wanted);
}

/* Layers of 1 ms; the link takes 1 ms a page. */
static struct plan_order *order(double place_ms)
{
	struct plan_order *o = calloc(1, sizeof(*o));
	struct observe_profile *p = &o->profile;
	uint32_t at = 100;

	nr_made = nr_destroyed = 0;
	o->arena = plan_arena_create();
	o->page_bytes = PAGE;
	o->budget_used = 4 * PAGE;
	o->place_ms = place_ms;
	o->gauge.nr = 1;
	o->gauge.points[0] = (struct transfer_time){ PAGE, 1 };
	p->nr_layers = LAYERS;
	p->nr_tensors = TENSORS;
	p->layers = plan_arena_alloc(o->arena, LAYERS, sizeof(*p->layers));
	p->tensors = plan_arena_alloc(o->arena, TENSORS, sizeof(*p->tensors));
	for (uint32_t i = 0; i < TENSORS; i++) {
		p->tensors[i] = (struct observe_tensor){ at, pages[i] };
		at += pages[i] + 1;
	}
	for (uint32_t l = 0; l < LAYERS; l++) {
		struct layer_statistics *y = &p->layers[l];
		struct tensor_statistics *t = plan_arena_alloc(o->arena, 2,
			sizeof(*t));

		t[0].id = of_layer[l];
		t[1].id = TENSORS - 1;
		for (int i = 0; i < 2; i++)
			t[i].size_bytes = (uint64_t)PAGE * pages[t[i].id];
		y->tensors = t;
		y->nr = l == 0 || l == LAYERS - 1 ? 2 : 1;
		y->duration_ms = 1;
	}
	asked = o;
	return o;
}

static void drop(struct plan_order *o)
{
	schedule_destroy(o->schedule);
	ck_assert_int_eq(nr_made, nr_destroyed);
	plan_arena_destroy(o->arena);
	free(o);
}

/* Whatever is best is taken, and the others are destroyed. */
START_TEST(test_best)
{
	static const double part[] = { 0.25, 0.5, 0.75 };
	struct plan_order *o = order(44);

	wanted = part[_i];
	mix_run(o);
	ck_assert_int_eq(o->status, PLAN_OK);
	ck_assert_ptr_nonnull(o->schedule);
	ck_assert_int_gt(nr_made, 3);
	ck_assert_double_eq_tol(host_pages(o) / 32.0, wanted, 0.04);
	ck_assert_double_le(o->bound_ms, o->place_ms);
	/* 28 of the 32 pages cross the link, whichever way. */
	ck_assert_double_eq_tol(o->bound_ms, 28, 1e-9);
	drop(o);
}
END_TEST

/* Nothing to gain: computing takes as long as it did in place. */
START_TEST(test_compute_bound)
{
	struct plan_order *o = order(6);

	mix_run(o);
	ck_assert_int_eq(o->status, PLAN_INFEASIBLE);
	ck_assert_int_eq(nr_made, 0);
	drop(o);
}
END_TEST

START_TEST(test_no_plan)
{
	struct plan_order *o = order(44);

	no_plan = true;
	mix_run(o);
	no_plan = false;
	ck_assert_int_eq(o->status, PLAN_INFEASIBLE);
	ck_assert_ptr_null(o->schedule);
	drop(o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("phase_mix");
	TCase *t = tcase_create("phase_mix");

	tcase_add_loop_test(t, test_best, 0, 3);
	tcase_add_test(t, test_compute_bound);
	tcase_add_test(t, test_no_plan);
	suite_add_tcase(s, t);
	return unit_run(s);
}
