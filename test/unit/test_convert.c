/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans to schedules: random models, some with tensors that several layers use,
 * under strategies of all three kinds (ring, blocks, no blocks).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

#include "shim/convert.h"
#include "shim/schedule.h"

#define PAGE 65536u
#define MAX_LAYERS 32
#define RANDOM_LAYERS 12
#define MAX_TENSORS 6		/* of a layer */
#define MAX_PAGES 12		/* of a tensor */

/* Nothing has been copied, so there is none. */
void event_put(struct event *e)
{
	ck_assert_ptr_null(e);
}

/* ---- models ---- */

struct model {
	struct layer_statistics layers[MAX_LAYERS];
	struct tensor_statistics list[MAX_LAYERS][MAX_TENSORS];
	struct observe_tensor tensors[MAX_LAYERS * MAX_TENSORS];
	char labels[MAX_LAYERS][16];
	uint32_t nr_layers, nr_tensors, nr_pages;
};

static uint32_t seed;

static uint32_t pick(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static uint32_t tensor_new(struct model *m)
{
	struct observe_tensor *t = &m->tensors[m->nr_tensors];

	t->first = m->nr_pages;
	t->nr = 1 + pick(MAX_PAGES);
	/* Sometimes a hole: other memory lies there. */
	m->nr_pages += t->nr + (pick(4) == 0);
	return m->nr_tensors++;
}

static void layer_use(struct model *m, uint32_t layer, uint32_t id)
{
	struct layer_statistics *l = &m->layers[layer];

	for (uint32_t k = 0; k < l->nr; k++)
		if (l->tensors[k].id == id)
			return;
	if (l->nr == MAX_TENSORS)
		return;
	m->list[layer][l->nr++] = (struct tensor_statistics){
		.id = id,
		.name = "t",
		.size_bytes = (uint64_t)m->tensors[id].nr * PAGE,
	};
}

/* kind 0: apart; 1: there and back; 2: any sharing. */
static void model_make(struct model *m, int kind)
{
	memset(m, 0, sizeof(*m));
	m->nr_layers = 2 + pick(RANDOM_LAYERS - 1);
	for (uint32_t i = 0; i < m->nr_layers; i++) {
		m->layers[i].tensors = m->list[i];
		snprintf(m->labels[i], sizeof(m->labels[i]), "l%u", i);
		m->layers[i].label = m->labels[i];
		m->layers[i].duration_ms = 0.05 + pick(100) / 500.0;
	}
	for (uint32_t i = 0; i < m->nr_layers; i++) {
		uint32_t back = m->nr_layers - 1 - i;

		if (kind == 1 && back < i) {
			for (uint32_t k = 0; k < m->layers[back].nr; k++)
				layer_use(m, i, (uint32_t)m->list[back][k].id);
			continue;
		}
		for (uint32_t k = 1 + pick(3); k > 0; k--)
			layer_use(m, i, kind == 2 && m->nr_tensors > 0 &&
				pick(3) == 0 ? pick(m->nr_tensors) :
				tensor_new(m));
	}
}

/* ---- what must hold ---- */

static bool layer_uses(const struct model *m, uint32_t layer, uint32_t page)
{
	for (uint32_t k = 0; k < m->layers[layer].nr; k++) {
		const struct observe_tensor *t =
			&m->tensors[m->list[layer][k].id];

		if (page >= t->first && page < t->first + t->nr)
			return true;
	}
	return false;
}

static void check_units(const struct model *m, const struct schedule *sc,
	uint64_t budget)
{
	uint8_t *seen = calloc(m->nr_pages + 1, 1);
	uint32_t streamed = 0, all = 0;

	for (uint32_t i = 0; i < sc->nr_units; i++) {
		const struct unit *u = &sc->units[i];
		uint32_t covered = 0;

		ck_assert_uint_gt(u->nr, 0);
		streamed += u->nr;
		for (uint32_t k = 0; k < u->nr; k++) {
			ck_assert_uint_lt(u->pages[k], m->nr_pages);
			ck_assert(!seen[u->pages[k]]);
			seen[u->pages[k]] = 1;
			ck_assert_uint_lt(u->slots[k], sc->nr_slots);
			/* The same layers use all of it. */
			for (uint32_t l = 0; l < m->nr_layers; l++)
				ck_assert_int_eq(
					layer_uses(m, l, u->pages[k]),
					layer_uses(m, l, u->pages[0]));
		}
		for (uint32_t j = 0; j < u->nr_pieces; j++) {
			const struct unit_piece *p =
				&sc->pieces[u->first_piece + j];

			ck_assert_uint_eq(p->unit, i);
			for (uint32_t k = 0; k < p->nr; k++) {
				ck_assert_uint_lt(p->first + k, u->nr);
				ck_assert_int_eq(
					seen[u->pages[p->first + k]]++, 1);
			}
			covered += p->nr;
		}
		ck_assert_uint_eq(covered, u->nr);
	}
	for (uint32_t i = 0; i < m->nr_tensors; i++)
		all += m->tensors[i].nr;
	ck_assert_uint_le((uint64_t)(all - streamed + sc->nr_slots) * PAGE,
		budget);
	free(seen);
}

/* All that a layer uses is there at once. */
static void check_layers(const struct model *m, const struct schedule *sc)
{
	uint8_t *slots = calloc(sc->nr_slots, 1);

	for (uint32_t l = 0; l < m->nr_layers; l++) {
		memset(slots, 0, sc->nr_slots);
		for (uint32_t i = 0; i < sc->nr_units; i++) {
			const struct unit *u = &sc->units[i];

			for (uint32_t k = 0; k < u->nr &&
			     layer_uses(m, l, u->pages[0]); k++) {
				ck_assert(!slots[u->slots[k]]);
				slots[u->slots[k]] = 1;
			}
		}
	}
	free(slots);
}

/* The visits are the layers that use units, but for equal neighbours. */
static void check_visits(const struct model *m, const struct schedule *sc)
{
	const struct visits *v = &sc->visits;

	for (uint32_t i = 0; i < v->nr; i++) {
		uint32_t n = 0;

		for (uint32_t k = 0; k < sc->nr_units; k++) {
			bool uses = layer_uses(m, v->at[i].layer,
				sc->units[k].pages[0]);

			ck_assert_int_eq(uses, visits_has(v, i, k));
			n += uses;
		}
		ck_assert_uint_eq(n, v->at[i].nr);
		ck_assert(i == 0 || v->at[i].layer > v->at[i - 1].layer);
	}
	for (uint32_t k = 0; k < sc->nr_units; k++)
		ck_assert_uint_ne(v->units[k].first, VISIT_NONE);
}

static uint32_t made, streaming;

static void try(const struct model *m, const char *name, int blocks,
	uint64_t budget)
{
	static const struct transfer_time points[] = {
		{ PAGE, 0.01 }, { 100 * PAGE, 0.3 },
	};
	const struct memory_stats stats = { points, 2 };
	const struct plan_strategy *s = plan_strategy_find(name);
	struct plan_params params = s->defaults;
	struct plan_arena *arena = plan_arena_create();
	struct strategy_result result = { 0 };
	struct plan_input in = {
		.layers = m->layers,
		.nr_layers = m->nr_layers,
		.memory_stats = &stats,
		.max_gpu_mem_bytes = budget,
	};
	struct convert c = {
		.result = &result,
		.in = &in,
		.tensors = m->tensors,
		.nr_tensors = m->nr_tensors,
		.page_bytes = PAGE,
		.budget = budget,
	};
	struct schedule *sc = NULL;
	enum plan_status status;

	params.chunk_bytes = PAGE;
	if (blocks >= 0)
		params.n_blocks = (uint32_t)blocks;
	if (params.threshold_mb > 0)
		params.threshold_mb = 0;
	status = plan_compute(s, &in, &params, arena, &result);
	if (status == PLAN_OK && !result.over_budget) {
		status = convert_plan(&c, &sc);
		ck_assert(status == PLAN_OK || status == PLAN_INFEASIBLE);
		made += status == PLAN_OK;
	}
	if (sc != NULL) {
		streaming++;
		check_units(m, sc, budget);
		check_layers(m, sc);
		check_visits(m, sc);
	}
	schedule_destroy(sc);
	plan_arena_destroy(arena);
}

static void try_all(int kind)
{
	struct model m;
	uint64_t bytes;

	made = streaming = 0;
	for (uint32_t n = 0; n < 60; n++) {
		seed = n * 7919 + 1;
		model_make(&m, kind);
		bytes = (uint64_t)m.nr_pages * PAGE;
		for (uint32_t percent = 30; percent <= 90; percent += 20) {
			uint64_t budget = bytes * percent / 100 / PAGE * PAGE;

			try(&m, "optimal", -1, budget);
			try(&m, "knapsack", 4, budget);
			try(&m, "knapsack", 0, budget);
			try(&m, "greedy", 3, budget);
			try(&m, "nth_layer", 0, budget);
			try(&m, "global_offload", 2, budget);
		}
	}
	/* Most models stream under some strategy. */
	ck_assert_uint_gt(streaming, 100);
}

START_TEST(test_apart)
{
	try_all(0);
}
END_TEST

START_TEST(test_there_and_back)
{
	try_all(1);
}
END_TEST

START_TEST(test_shared)
{
	try_all(2);
}
END_TEST

/*
 * Each weight is used with one buffer, and later with another one: whatever the
 * plan keeps, no weight may stand where a buffer must.
 */
START_TEST(test_two_buffers)
{
	struct model m;
	uint32_t tries = 0;

	memset(&m, 0, sizeof(m));
	m.nr_layers = MAX_LAYERS;
	for (uint32_t i = 0; i < MAX_LAYERS / 2 + 2; i++) {
		m.tensors[i] = (struct observe_tensor){ m.nr_pages, 2 };
		m.nr_pages += 2;
	}
	m.nr_tensors = MAX_LAYERS / 2 + 2;
	for (uint32_t i = 0; i < MAX_LAYERS; i++) {
		m.layers[i].tensors = m.list[i];
		snprintf(m.labels[i], sizeof(m.labels[i]), "l%u", i);
		m.layers[i].label = m.labels[i];
		m.layers[i].duration_ms = 0.05;
		layer_use(&m, i, i % (MAX_LAYERS / 2));
		layer_use(&m, i, MAX_LAYERS / 2 + i / (MAX_LAYERS / 2));
	}
	made = 0;
	for (uint32_t n = 4; n < m.nr_pages; n++, tries++)
		try(&m, "optimal", -1, (uint64_t)n * PAGE);
	ck_assert_uint_eq(made, tries);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("convert");
	TCase *t = tcase_create("convert");

	tcase_add_test(t, test_apart);
	tcase_add_test(t, test_there_and_back);
	tcase_add_test(t, test_shared);
	tcase_add_test(t, test_two_buffers);
	suite_add_tcase(s, t);
	return unit_run(s);
}
