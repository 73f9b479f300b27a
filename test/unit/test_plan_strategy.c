/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner as its callers see it: what is refused, the table of strategies,
 * scores, moved transfers, and properties of every strategy's plans on random
 * models.
 */
#include "planner/plan_search.h"
#include "planner/planner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

#define MB 1000000u

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

static const struct transfer_time times[] = { { 65536, 0.012621 },
	{ 1048576, 0.051943 }, { 16777216, 0.681089 },
	{ 268435456, 10.747418 } };
static const struct memory_stats table = { times, 4 };

/* ---- what is refused ---- */

static enum plan_status check(struct layer_statistics *l, uint32_t nr,
	const char *part)
{
	struct plan_input in = { l, nr, &table, PLAN_NO_LIMIT };
	char message[PLAN_MESSAGE] = "";
	enum plan_status err = plan_input_check(&in, message);

	ck_assert_msg(strstr(message, part) != NULL, "\"%s\" lacks \"%s\"",
		message, part);
	return err;
}

START_TEST(test_bad_input)
{
	struct tensor_statistics a[] = { { 1, "a", 10, 0 } },
		b[] = { { 1, "a", 11, 0 } }, huge[] = {
		{ 2, "c", INT64_MAX, 0 }, { 3, "d", 1, 0 } },
		late[] = { { 4, "e", 1, -1 } },
		twice[] = { { 5, "f", 1, 0 }, { 5, "f", 1, 0 } };
	struct layer_statistics l[2] = { { "x", a, 1, 1 }, { "y", a, 1, 1 } };

	ck_assert_int_eq(check(l, 2, ""), PLAN_OK);
	l[1].label = "x";
	ck_assert_int_eq(check(l, 2, "two layers are called x"),
		PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ "y", b, 1, 1 };
	ck_assert_int_eq(check(l, 2, "another size"), PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ "y", huge, 2, 1 };
	ck_assert_int_eq(check(l, 2, "63 bits"), PLAN_TOO_LARGE);
	l[1] = (struct layer_statistics){ "y", late, 1, 1 };
	ck_assert_int_eq(check(l, 2, "load time"), PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ "y", twice, 2, 1 };
	ck_assert_int_eq(check(l, 2, "twice"), PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ "y", a, 1, NAN };
	ck_assert_int_eq(check(l, 2, "duration"), PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ "y", a, 1, -1 };
	ck_assert_int_eq(check(l, 2, "duration"), PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ "y", NULL, 1, 1 };
	ck_assert_int_eq(check(l, 2, "no tensors"), PLAN_BAD_MODEL);
	l[1] = (struct layer_statistics){ NULL, a, 1, 1 };
	ck_assert_int_eq(check(l, 2, "no label"), PLAN_BAD_MODEL);
	l[0].duration_ms = l[1].duration_ms = 1e308;
	l[1].label = "y";
	ck_assert_int_eq(check(l, 2, "infinity"), PLAN_BAD_MODEL);
}
END_TEST

static void refuse(const char *name, const struct plan_params *p,
	const char *part)
{
	const struct plan_strategy *s = plan_strategy_find(name);
	char message[PLAN_MESSAGE] = "";

	ck_assert_int_eq(plan_params_check(s, p, message), PLAN_BAD_PARAM);
	ck_assert_msg(strstr(message, part) != NULL, "\"%s\" lacks \"%s\"",
		message, part);
}

START_TEST(test_bad_params)
{
	static const struct { const char *name; enum plan_param_id id;
		double v; } bad[] = {
		{ "greedy", PLAN_PARAM_scale, 0 },
		{ "greedy", PLAN_PARAM_scale, NAN },
		{ "greedy", PLAN_PARAM_threshold_mb, -1 },
		{ "nth_layer", PLAN_PARAM_nth_layer, 0 },
		{ "knapsack", PLAN_PARAM_group_size, 0 },
		{ "knapsack", PLAN_PARAM_n_blocks, -1 },
		{ "global_offload", PLAN_PARAM_n_blocks, 1 },
		{ "global_offload", PLAN_PARAM_min_blocks, 1 },
		{ "global_offload", PLAN_PARAM_min_blocks, 5 },
		{ "global_offload", PLAN_PARAM_max_blocks, 5 },
		{ "budget_fill", PLAN_PARAM_n_blocks, 1 },
		{ "budget_fill_spread", PLAN_PARAM_min_blocks, 5 },
		{ "adaptive", PLAN_PARAM_min_blocks, 5 },
		{ "global_tensor_selection_de", PLAN_PARAM_pop_size, 2 },
		{ "global_tensor_selection_de", PLAN_PARAM_scale_ub, 0.5 },
		{ "global_tensor_selection_sa", PLAN_PARAM_seed_ratio, 1.5 },
		{ "optimal", PLAN_PARAM_margin, 1 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const struct plan_param *param = plan_param(bad[i].id);
		struct plan_params p = plan_strategy_find(bad[i].name)->defaults;

		if (param->kind == PLAN_REAL)
			*(double *)((char *)&p + param->offset) = bad[i].v;
		else
			*(int *)((char *)&p + param->offset) = (int)bad[i].v;
		refuse(bad[i].name, &p, param->name);
	}
}
END_TEST

START_TEST(test_table)
{
	static const char *const names[] = { "greedy", "nth_layer", "knapsack",
		"knapsack_block", "adaptive_knapsack", "budget_fill",
		"budget_fill_greedy", "budget_fill_layer_de",
		"budget_fill_tensor_de", "budget_fill_spread",
		"global_offload", "global_offload_strict",
		"global_tensor_selection_de", "global_tensor_selection_sa",
		"adaptive", "optimal" };

	ck_assert_uint_eq(plan_nr_strategies(), sizeof(names) / sizeof(*names));
	for (uint32_t i = 0; i < plan_nr_strategies(); i++) {
		const struct plan_strategy *s = plan_strategy_find(names[i]);

		ck_assert_ptr_nonnull(s);
		ck_assert_int_eq(plan_params_check(s, &s->defaults, NULL),
			PLAN_OK);
		ck_assert_uint_eq(s->params >> PLAN_NR_PARAMS, 0);
	}
	ck_assert_ptr_null(plan_strategy_find("Greedy"));
	ck_assert_ptr_null(plan_strategy(plan_nr_strategies()));
	/* As published. */
	ck_assert_int_eq(plan_strategy_find("budget_fill")->defaults.n_blocks,
		0);
	ck_assert_int_eq(plan_strategy_find("adaptive")->defaults.cyclic,
		false);
	for (int i = 0; i < PLAN_NR_STATUS; i++)
		ck_assert_uint_gt(strlen(plan_status_message(i)), 0);
	ck_assert_str_eq(plan_status_name(PLAN_CONFLICT), "CONFLICT");
	ck_assert_str_eq(plan_status_message(PLAN_NR_STATUS), "unknown status");
}
END_TEST

/* ---- scores ---- */

START_TEST(test_score_order)
{
	struct strategy_score a = { "a", 10, 0.5, 0, true };
	struct strategy_score b = { "b", 20, 0.5 + 1e-13, 0, true };

	ck_assert_int_lt(plan_score_compare(&a, &b), 0);
	b.estimated_overhead = 0.4;
	ck_assert_int_gt(plan_score_compare(&a, &b), 0);
	b.is_valid = false;
	ck_assert_int_lt(plan_score_compare(&a, &b), 0);
	a.is_valid = false;
	a.estimated_overhead = 9;
	ck_assert_int_lt(plan_score_compare(&a, &b), 0);
	b.peak_memory_bytes = 10;
	ck_assert_int_eq(plan_score_compare(&a, &b), 0);
}
END_TEST

/* Three layers of 100 MB, the last two copied through two blocks. */
START_TEST(test_evaluation)
{
	const struct transfer_time t[] = { { MB, 0.04 }, { 100 * MB, 4 } };
	const struct memory_stats m = { t, 2 };
	struct tensor_statistics x[3] = { { 1, "a", 100 * MB, 4 },
		{ 2, "b", 100 * MB, 4 }, { 3, "c", 50 * MB, 2 } };
	struct layer_statistics l[3] = { { "0", x, 1, 1 }, { "1", x + 1, 1, 3 },
		{ "2", x + 2, 1, 6 } };
	struct plan_entry e[2] = { { x + 1, 0, 100 * MB }, { x + 2, 0,
		50 * MB } };
	struct plan_slot slots[2] = { { 0, 1, e }, { 1, 1, e + 1 } };
	const uint32_t at[2] = { 0, 1 }, block[2] = { 0, 1 };
	const uint64_t sizes[2] = { 100 * MB, 50 * MB };
	struct block_strategy_data b = { .nr = 2, .slots = at,
		.label_to_block_id = block, .nr_blocks = 2,
		.block_sizes = sizes };
	struct strategy_result r = { .strategy_map = { 2, slots } };
	struct plan_input in = { l, 3, &m, 200 * MB };
	struct memory_transfer_interpolator *ip;
	struct strategy_score s;

	ck_assert_int_eq(plan_interpolator_of(&in, arena, &ip), PLAN_OK);
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", ip, &s),
		PLAN_OK);
	/* Without blocks, only what stays counts. */
	ck_assert_uint_eq(s.peak_memory_bytes, 100 * MB);
	ck_assert_double_eq_tol(s.estimated_overhead, 3.0 / 10, 1e-9);
	ck_assert(s.is_valid);
	r.block_data = &b;
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", NULL, &s),
		PLAN_OK);
	ck_assert_uint_eq(s.peak_memory_bytes, 250 * MB);
	ck_assert_double_eq(s.estimated_overhead, 0);
	ck_assert(!s.is_valid);
	b.label_to_block_id = (const uint32_t[]){ 1, 1 };
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", ip, &s),
		PLAN_OK);
	ck_assert_uint_eq(s.consecutive_violations, 1);
	/* The first layer's bytes in the last one's slot: no window at all. */
	slots[1] = (struct plan_slot){ 2, 1, &(struct plan_entry){ x, 0,
		100 * MB } };
	r.block_data = NULL;
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", ip, &s),
		PLAN_OK);
	ck_assert_double_eq_tol(s.estimated_overhead, 7.0 / 10, 1e-9);
	ck_assert(!strategy_has_transfer_gaps(&r.strategy_map, &in));
	r.strategy_map.nr = 1;
	ck_assert(strategy_has_transfer_gaps(&r.strategy_map, &in));
	/* Two copies for one layer; a slot that is no layer; too long. */
	r.strategy_map.nr = 2;
	slots[1] = (struct plan_slot){ 2, 1, e };
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", ip, &s),
		PLAN_SHARED_CONSUMER);
	slots[1].slot = 3;
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", ip, &s),
		PLAN_BAD_PLAN);
	slots[1] = (struct plan_slot){ 1, 1, &(struct plan_entry){ x + 2, 1,
		50 * MB } };
	ck_assert_int_eq(evaluate_strategy_result(&r, &in, "n", ip, &s),
		PLAN_BAD_PLAN);
}
END_TEST

/* ---- moving transfers ---- */

START_TEST(test_rearrange)
{
	/* Layers 0, 3 and 6 copy; two blocks. */
	struct plan_transfer t[] = { { 2, 3, 0 }, { 5, 6, 1 }, { 7, 8, 0 } };
	struct plan_transfer bad[] = { { 0, 3, 0 }, { 2, 5, 0 } };
	uint32_t moved[3], preload[3];

	ck_assert_int_eq(rearrange_transfers(NULL, 0, 9, 1, NULL), PLAN_OK);
	ck_assert_int_eq(rearrange_transfers(t, 3, 9, 1, moved), PLAN_OK);
	ck_assert_uint_eq(moved[0], 2);
	/* Nothing before it in block 0: as early as can be. */
	ck_assert_uint_eq(t[0].slot, 0);
	/* Block 1 is free, slot 0 is not. */
	ck_assert_uint_eq(t[1].slot, 1);
	/* Block 0 is read by layer 3 until then. */
	ck_assert_uint_eq(t[2].slot, 4);
	ck_assert_uint_eq(find_transfers_for_preload(t, 3, preload), 0);
	ck_assert_int_eq(rearrange_transfers(bad, 2, 9, 1, NULL),
		PLAN_CONFLICT);
	ck_assert_uint_eq(bad[1].slot, 2);
	bad[0].slot = 9;
	ck_assert_int_eq(rearrange_transfers(bad, 2, 9, 1, NULL),
		PLAN_BAD_PLAN);
	/* For the next iteration. */
	t[0] = (struct plan_transfer){ 8, 0, 1 };
	ck_assert_uint_eq(find_transfers_for_preload(t, 3, preload), 1);
	ck_assert_uint_eq(preload[0], 0);
}
END_TEST

START_TEST(test_non_block_peak)
{
	struct tensor_statistics x[3] = { { 1, "a", 5, 0 }, { 2, "b", 7, 0 },
		{ 3, "c", 11, 0 } };
	struct plan_entry e[4] = { { x, 0, 5 }, { x + 1, 0, 7 },
		{ x + 1, 0, 7 }, { x + 2, 0, 11 } };
	struct plan_slot slots[2] = { { 0, 2, e }, { 2, 2, e + 2 } };
	const struct strategy_map map = { 2, slots };
	const int64_t a = 1, b = 2, none = 99;
	const struct plan_release keep[3] = { { &none, 1 }, { &a, 1 },
		{ &b, 1 } }, drop[3] = { { &a, 1 }, { &b, 1 }, { &b, 0 } };
	uint64_t peak;

	ck_assert_int_eq(plan_non_block_peak(&map, keep, 3, &peak), PLAN_OK);
	ck_assert_uint_eq(peak, 18);
	slots[1].nr = 1;
	ck_assert_int_eq(plan_non_block_peak(&map, drop, 3, &peak), PLAN_OK);
	ck_assert_uint_eq(peak, 12);
}
END_TEST

/* ---- random models ---- */

struct model {
	struct layer_statistics l[40];
	struct tensor_statistics t[40][12];
	char label[40][8];
	uint32_t nr;
	uint64_t total;
};

/* Also layers without tensors or duration, tiny tensors, shared ones. */
static void model_make(struct model *m, struct plan_random *r)
{
	int64_t id = 1;

	memset(m, 0, sizeof(*m));
	m->nr = 1 + plan_random_below(r, 40);
	for (uint32_t i = 0; i < m->nr; i++) {
		struct layer_statistics *l = &m->l[i];

		m->label[i][0] = 'a' + i / 20;
		m->label[i][1] = 'a' + i % 20;
		l->label = m->label[i];
		l->tensors = m->t[i];
		l->nr = plan_random_below(r, 8) ? plan_random_below(r, 12) : 0;
		l->duration_ms = plan_random_below(r, 10) ?
			plan_random_unit(r) * 3 : 0;
		for (uint32_t j = 0; j < l->nr; j++) {
			struct tensor_statistics *t = &m->t[i][j];

			t->id = id++;
			t->size_bytes = plan_random_below(r, 5) ?
				(1 + plan_random_below(r, 30)) << 20 :
				plan_random_below(r, 200000);
			t->load_time_ms = (double)t->size_bytes / 25e6;
			if (j == 0 && i > 2 && m->l[i - 2].nr &&
			    !plan_random_below(r, 6))
				*t = m->t[i - 2][0];
			m->total += t->size_bytes;
		}
	}
}

static bool holds(const struct layer_statistics *l, int64_t id)
{
	for (uint32_t j = 0; j < l->nr; j++)
		if (l->tensors[j].id == id)
			return true;
	return false;
}

/* A slot copies for one layer, blocks are as large as what passes through. */
static void check_plan(const struct strategy_result *r,
	const struct plan_input *in, uint32_t group)
{
	const struct block_strategy_data *b = r->block_data;

	for (uint32_t i = 0; i < r->strategy_map.nr; i++) {
		const struct plan_slot *s = &r->strategy_map.slots[i];
		bool found = !s->nr;

		ck_assert_uint_lt(s->slot, in->nr_layers);
		for (uint32_t k = 0; k < in->nr_layers && !found; k += group) {
			found = true;
			for (uint32_t j = 0; j < s->nr && found; j++) {
				found = false;
				for (uint32_t g = k; g < k + group &&
				     g < in->nr_layers; g++)
					found = found || holds(&in->layers[g],
						s->entries[j].tensor->id);
			}
		}
		ck_assert(found);
	}
	if (!b)
		return;
	for (uint32_t k = 0; k < b->nr; k++) {
		ck_assert_uint_lt(b->label_to_block_id[k], b->nr_blocks);
		ck_assert_uint_le(b->label_to_size_map[k],
			b->block_sizes[b->label_to_block_id[k]]);
		ck_assert_uint_lt(b->transfer_to_compute_map[k],
			in->nr_layers);
		ck_assert(k == 0 || b->slots[k] > b->slots[k - 1]);
	}
	for (uint32_t n = 0, k = 0; k < b->nr_blocks; k++) {
		n += b->allocation_ordered[k].nr;
		ck_assert_uint_gt(b->allocation_ordered[k].nr, 0);
		ck_assert(k + 1 < b->nr_blocks || n == b->nr);
	}
}

static void check_strategy(const struct plan_strategy *s,
	const struct plan_input *in)
{
	const bool blind = !strcmp(s->name, "greedy") ||
		!strcmp(s->name, "nth_layer");
	struct strategy_result r, again;
	struct plan_params p = s->defaults;
	struct strategy_score score;
	enum plan_status err;

	/* Fewer generations: these are small models. */
	p.epoch = 10;
	p.pop_size = 8;
	err = plan_compute(s, in, &p, arena, &r);
	ck_assert_int_eq(plan_compute(s, in, &p, arena, &again), err);
	if (err) {
		ck_assert_msg(err <= PLAN_INFEASIBLE, "%s: %s", s->name,
			plan_status_message(err));
		return;
	}
	ck_assert_uint_eq(plan_offloaded_bytes(&r),
		plan_offloaded_bytes(&again));
	ck_assert_str_eq(r.message, again.message);
	if (!strcmp(s->name, "optimal"))
		return;
	check_plan(&r, in, p.group_size);
	ck_assert_int_eq(evaluate_strategy_result(&r, in, s->name, NULL,
		&score), PLAN_OK);
	ck_assert_msg(!score.consecutive_violations, "%s: a block serves two "
		"neighbours", s->name);
	ck_assert_uint_le(score.peak_memory_bytes, 2 * plan_total_bytes(in));
	if (!blind)
		ck_assert_msg(r.over_budget == !score.is_valid, "%s: %s",
			s->name, r.message);
}

START_TEST(test_random_models)
{
	struct plan_random r = { 100 + _i };
	struct model m;

	for (int n = 0; n < 5; n++) {
		struct plan_input in = { m.l, 0, &table, PLAN_NO_LIMIT };

		model_make(&m, &r);
		in.nr_layers = m.nr;
		if (n % 3 == 1)
			in.memory_stats = NULL;
		if (n % 4)
			in.max_gpu_mem_bytes = 1 + (uint64_t)(m.total *
				plan_random_unit(&r));
		for (uint32_t i = 0; i < plan_nr_strategies(); i++)
			check_strategy(plan_strategy(i), &in);
		plan_arena_destroy(arena);
		arena = plan_arena_create();
	}
}
END_TEST

START_TEST(test_empty)
{
	struct plan_input in = { NULL, 0, &table, PLAN_NO_LIMIT };
	struct strategy_result r;

	for (uint32_t i = 0; i < plan_nr_strategies(); i++) {
		const struct plan_strategy *s = plan_strategy(i);
		enum plan_status err = plan_compute(s, &in, NULL, arena, &r);

		/* Optimal has no period without layers. */
		ck_assert_msg(err <= PLAN_INFEASIBLE ||
			!strcmp(s->name, "optimal"), "%s: %s", s->name,
			plan_status_message(err));
		in.max_gpu_mem_bytes = 0;
		ck_assert_int_eq(plan_compute(s, &in, NULL, arena, &r),
			PLAN_BAD_BUDGET);
		in.max_gpu_mem_bytes = PLAN_NO_LIMIT;
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan_strategy");
	TCase *t = tcase_create("strategies");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 20);
	tcase_add_test(t, test_bad_input);
	tcase_add_test(t, test_bad_params);
	tcase_add_test(t, test_table);
	tcase_add_test(t, test_score_order);
	tcase_add_test(t, test_evaluation);
	tcase_add_test(t, test_rearrange);
	tcase_add_test(t, test_non_block_peak);
	tcase_add_loop_test(t, test_random_models, 0, 12);
	tcase_add_test(t, test_empty);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
