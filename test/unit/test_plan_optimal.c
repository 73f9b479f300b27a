/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strategy `optimal`: on the cases against stored bounds, on random models
 * against the bound, and that against the linear program, on tiny ones against
 * every choice there is.
 */
#include "planner/optimal.h"
#include "planner/optimal_int.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/plan_cases.h"
#include "test/unit/plan_check.h"
#include "test/unit/plan_lp.h"
#include "test/unit/unit.h"

#define MIB 1048576ull

static const char *const cases[] = {
	"deep500", "embed_heavy", "flux1_dev", "gpt2xl_tied",
	"llama3_70b_prefill2k", "llama3_8b_decode", "llama3_8b_prefill4k",
	"one_layer", "qwen15_moe_a2p7b", "sdxl_unet", "two_layer",
	"uneven_seed7", "vit_small", "wan14b",
};

#define NR_CASES (sizeof(cases) / sizeof(*cases))

static const struct plan_params defaults = {
	.chunk_bytes = 2 * MIB,
	.margin = 0.05,
	.wrap = true,
	.seed = 42,
};

static uint64_t seed;

static uint32_t pick(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 33) % below);
}

static double between(double low, double high)
{
	return low + (high - low) * pick(1 << 30) / (1 << 30);
}

/* ---- the cases ------------------------------------------------------------------ */

static struct plan_input input_of(const struct plan_case *c, uint64_t budget)
{
	return (struct plan_input){ c->layers, c->nr, &c->memory_stats,
		budget };
}

static uint64_t largest_layer(const struct plan_input *in)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < in->nr_layers; i++) {
		uint64_t sum = 0;

		for (uint32_t k = 0; k < in->layers[i].nr; k++)
			sum += in->layers[i].tensors[k].size_bytes;
		if (sum > most)
			most = sum;
	}
	return most;
}

START_TEST(test_cases)
{
	struct json_object *all = json_object_from_file(
		"test/data/lower-bounds.json"), *bounds, *b;
	struct plan_case *c = plan_case_load(cases[_i]);
	int valid = 0, close = 0;

	ck_assert(json_object_object_get_ex(all, "bounds", &bounds));
	for (uint32_t k = 0; k < c->nr_budgets; k++) {
		struct plan_input in = input_of(c, c->budgets[k]);
		struct plan_arena *arena = plan_arena_create();
		struct strategy_result r = { 0 };
		enum plan_status status;
		double bound, compute = 0;
		char key[128];

		if (in.max_gpu_mem_bytes == PLAN_NO_LIMIT) {
			plan_arena_destroy(arena);
			continue;
		}
		for (uint32_t i = 0; i < c->nr; i++)
			compute += c->layers[i].duration_ms;
		snprintf(key, sizeof(key), "%s/%llu", c->name,
			(unsigned long long)in.max_gpu_mem_bytes);
		ck_assert(json_object_object_get_ex(bounds, key, &b));
		status = plan_optimal(&in, &defaults, arena, &r);
		ck_assert_int_eq(status, b ? PLAN_OK : PLAN_INFEASIBLE);
		if (!b) {
			ck_assert_uint_eq(r.smallest_budget,
				largest_layer(&in));
			ck_assert_uint_lt(in.max_gpu_mem_bytes,
				r.smallest_budget);
			plan_arena_destroy(arena);
			continue;
		}
		bound = json_object_get_double(b);
		plan_check(&in, &defaults, &r, arena);
		ck_assert_double_ge(r.period_ms, bound * (1 - 1e-6));
		ck_assert_double_le(r.period_ms, bound * 1.015);
		if (bound <= compute * (1 + 1e-9))
			ck_assert_double_le(r.period_ms, compute * (1 + 1e-9));
		/* Two rows of the 48 may be farther off than 1 %. */
		close += r.period_ms <= bound * 1.01;
		valid++;
		plan_arena_destroy(arena);
	}
	if (strcmp(c->name, "two_layer") == 0)
		ck_assert_int_ge(close, valid - 2);
	else
		ck_assert_int_eq(close, valid);
	json_object_put(all);
	plan_case_free(c);
}
END_TEST

/* No budget: nothing lost, and less memory wherever anything can be hidden. */
START_TEST(test_latency)
{
	struct plan_case *c = plan_case_load(cases[_i]);
	struct plan_input in = input_of(c, PLAN_NO_LIMIT);
	struct plan_arena *arena = plan_arena_create();
	struct strategy_result r = { 0 };
	double compute = 0;

	for (uint32_t i = 0; i < c->nr; i++)
		compute += c->layers[i].duration_ms;
	ck_assert_int_eq(plan_optimal(&in, &defaults, arena, &r), PLAN_OK);
	plan_check(&in, &defaults, &r, arena);
	ck_assert_double_le(r.period_ms, compute * (1 + 1e-9));
	if (c->nr >= 10)
		ck_assert_uint_lt(r.pool->peak_bytes, plan_check_unique(&in));
	/* No budget under which nothing is lost is smaller. */
	for (uint32_t k = 0; k + 1 < c->nr_budgets; k++) {
		struct strategy_result other = { 0 };

		in.max_gpu_mem_bytes = c->budgets[k];
		if (plan_optimal(&in, &defaults, arena, &other) == PLAN_OK &&
			other.period_ms <= compute * (1 + 1e-12))
			ck_assert_uint_le(r.pool->peak_bytes,
				in.max_gpu_mem_bytes);
	}
	plan_arena_destroy(arena);
	plan_case_free(c);
}
END_TEST

/* One seed always gives one plan; where moves are made, others give others. */
START_TEST(test_seed)
{
	struct plan_case *c = plan_case_load("uneven_seed7");
	struct plan_input in = input_of(c, c->budgets[0]);
	struct plan_arena *arena = plan_arena_create();
	double first = 0;
	int others = 0;

	for (uint64_t k = 0; k < 8; k++) {
		struct plan_params p = defaults;
		struct strategy_result r[2] = { 0 };

		p.seed = 42 + k;
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(plan_optimal(&in, &p, arena, &r[i]),
				PLAN_OK);
		plan_check(&in, &p, &r[0], arena);
		ck_assert(r[0].period_ms == r[1].period_ms);
		ck_assert_uint_eq(r[0].pool->nr_pieces, r[1].pool->nr_pieces);
		if (k == 0)
			first = r[0].period_ms;
		others += r[0].period_ms != first;
		ck_assert_double_le(r[0].period_ms, 1.015 * r[0].bound_ms);
	}
	ck_assert_int_gt(others, 0);
	plan_arena_destroy(arena);
	plan_case_free(c);
}
END_TEST

/* The stored bounds are what the linear program gives. */
START_TEST(test_lp_cases)
{
	struct json_object *all = json_object_from_file(
		"test/data/lower-bounds.json"), *bounds, *b;
	struct plan_case *c = plan_case_load(cases[_i]);

	ck_assert(json_object_object_get_ex(all, "bounds", &bounds));
	/* Tied tensors have a variable for each gap there. */
	for (uint32_t k = 0; k < c->nr_budgets && plan_lp_available() &&
		c->nr <= 120 && strcmp(c->name, "gpt2xl_tied") != 0; k++) {
		struct plan_input in = input_of(c, c->budgets[k]);
		struct plan_arena *arena = plan_arena_create();
		struct bound_model m;
		double bound, lp;
		char key[128];

		snprintf(key, sizeof(key), "%s/%llu", c->name,
			(unsigned long long)in.max_gpu_mem_bytes);
		if (json_object_object_get_ex(bounds, key, &b) && b) {
			bound = json_object_get_double(b);
			ck_assert_int_eq(optimal_bound_model(&in, arena, &m),
				PLAN_OK);
			lp = plan_lp_bound(m.nr, m.ms, m.bytes,
				(double)m.need, m.latency_ms, m.ms_per_byte,
				0);
			/* They were computed with a few tangents only. */
			ck_assert_double_ge(lp, bound * (1 - 1e-6));
			ck_assert_double_le(lp, bound * (1 + 2e-4));
			ck_assert_double_le(bound_simple(&m),
				lp * (1 + 1e-6));
		}
		plan_arena_destroy(arena);
	}
	json_object_put(all);
	plan_case_free(c);
}
END_TEST

/* ---- random models ---------------------------------------------------------------- */

#define MAX_LAYERS 130
/* Sanitizers look for faults, not for rates. */
#ifdef SAN_BUILD
#define RANDOM_GAPS 20
#define FEWER 10
#else
#define RANDOM_GAPS 200
#define FEWER 1
#endif

struct random_model {
	struct layer_statistics layers[MAX_LAYERS];
	struct tensor_statistics tensors[MAX_LAYERS][2];
	struct transfer_time points[6];
	struct memory_stats stats;
	struct plan_input in;
	uint64_t unique, largest;
};

/* Mean layer of `mib`, compute that moves 1/load of it. */
static void random_model(struct random_model *m, uint32_t nr, double mib,
	bool tied)
{
	double gbps = between(12, 100), latency = between(0.005, 0.02);
	double load = exp(between(log(0.3), log(8)));
	uint32_t family = pick(7);

	memset(m, 0, sizeof(*m));
	m->in = (struct plan_input){ m->layers, nr, &m->stats, 0 };
	for (uint32_t i = 0; i < nr; i++) {
		double size = mib * MIB, ms;

		if (family == 1)
			size *= between(0.2, 1.8);
		else if (family == 2)
			size *= i % 2 ? 1.6 : 0.4;
		else if (family == 3)
			size *= i == 0 || i == nr - 1 ? 4 : 1;
		else if (family == 4)
			size *= exp(between(-1.5, 1.5));
		else if (family == 5)
			size *= 0.5 + 1.5 * i / nr;
		ms = mib * MIB / (gbps * 1e6) / load;
		if (family == 4 || family == 6)
			ms *= exp(between(-1, 1));
		else if (family == 3 && i == 0)
			ms *= 0.05;
		else
			ms *= size / (mib * MIB);
		m->tensors[i][0] = (struct tensor_statistics){ 2 * i, NULL,
			(uint64_t)(size * 0.7) + 1, 0 };
		m->tensors[i][1] = (struct tensor_statistics){ 2 * i + 1, NULL,
			(uint64_t)(size * 0.3) + 1, 0 };
		m->layers[i] = (struct layer_statistics){ NULL, m->tensors[i],
			2, ms };
		m->unique += m->tensors[i][0].size_bytes +
			m->tensors[i][1].size_bytes;
	}
	if (tied && nr > 2) {
		m->unique -= m->tensors[nr - 1][1].size_bytes;
		m->tensors[nr - 1][1] = m->tensors[0][1];
	}
	m->largest = largest_layer(&m->in);
	for (int i = 0; i < 6; i++) {
		m->points[i].bytes = 65536ull << (3 * i);
		m->points[i].ms = latency + m->points[i].bytes / (gbps * 1e6);
	}
	m->stats = (struct memory_stats){ m->points, 6 };
}

/* What is printed is the program's optimum, and no pool has a lower one. */
static void check_bound(const struct random_model *m, struct plan_arena *arena,
	const struct strategy_result *r)
{
	static const double sizes[] = { 1, 0.7, 0.96, 1.03, 1.5 };
	struct bound_model b;
	double strong, pool;

	ck_assert_int_eq(optimal_bound_model(&m->in, arena, &b), PLAN_OK);
	ck_assert_int_eq(bound_strong(&b, arena, &strong, NULL, &pool), 0);
	ck_assert_double_le(r->bound_ms, strong);
	for (int k = 0; k < 5 && pool > 0 && plan_lp_available(); k++) {
		double lp = plan_lp_bound(b.nr, b.ms, b.bytes, (double)b.need,
			b.latency_ms, b.ms_per_byte, pool * sizes[k]);

		if (k > 0 && lp < 0)
			continue;
		ck_assert_double_ge(lp, strong * (1 - 1e-9));
		if (k == 0)
			ck_assert_double_le(lp, strong * (1 + 1e-6));
	}
}

/* The gap to the bound, or -1 where there is no plan. */
static double random_gap(uint64_t which, double low, double high)
{
	struct plan_arena *arena = plan_arena_create();
	struct random_model m;
	struct strategy_result r = { 0 };
	double gap, mib;
	enum plan_status status;

	/* One draw after the other: arguments have no order of their own. */
	seed = which * 0x9e3779b97f4a7c15u + 1;
	mib = exp(between(log(low), log(high)));
	random_model(&m, 6 + pick(pick(4) ? 40 : MAX_LAYERS - 6), mib, false);
	m.in.max_gpu_mem_bytes = (uint64_t)(m.unique * between(0.15, 0.9));
	status = plan_optimal(&m.in, &defaults, arena, &r);
	if (m.in.max_gpu_mem_bytes < m.largest) {
		ck_assert_int_eq(status, PLAN_INFEASIBLE);
		plan_arena_destroy(arena);
		return -1;
	}
	ck_assert_int_eq(status, PLAN_OK);
	plan_check(&m.in, &defaults, &r, arena);
	if (which % 4 == 0)
		check_bound(&m, arena, &r);
	gap = r.period_ms / r.bound_ms - 1;
	ck_assert_double_ge(gap, -1e-12);
	plan_arena_destroy(arena);
	return gap;
}

START_TEST(test_random_gaps)
{
	static const double mib[][2] = { { 30, 800 }, { 80, 2000 } };
	uint32_t all = 0, two = 0, three = 0;

	for (uint32_t k = 1; k <= RANDOM_GAPS; k++) {
		double gap = random_gap(k + 100000 * (uint32_t)_i, mib[_i][0],
			mib[_i][1]);

		if (gap <= -1)
			continue;
		all++;
		two += gap > 0.02;
		three += gap > 0.03;
	}
	if (FEWER > 1)
		return;
	ck_assert_uint_le(two * 100, all * 5);
	ck_assert_uint_le(three * 100, all * 3);
}
END_TEST

/* Small models of every kind, tight and loose, with every option. */
START_TEST(test_properties)
{
	int planned = 0;

	for (uint32_t k = 0; k < 2500 / FEWER; k++) {
		struct plan_arena *arena = plan_arena_create();
		struct plan_params p = defaults;
		struct random_model m;
		struct strategy_result r = { 0 };
		enum plan_status status;
		bool tied;
		double mib;

		seed = (k * 4ull + (uint32_t)_i + 1) * 0xd1342543de82ef95u;
		tied = pick(4) == 0;
		mib = exp(between(log(0.5), log(60)));
		random_model(&m, 1 + pick(7), mib, tied);
		m.in.max_gpu_mem_bytes = pick(20) == 0 ? m.largest :
			(uint64_t)(m.unique * between(0.1, 1.05));
		p.chunk_bytes = pick(3) ? 2 * MIB : MIB / 4;
		p.wrap = pick(5) > 0;
		p.release_ms = pick(4) ? 0 : between(0, 0.2);
		p.margin = pick(2) ? 0.05 : 0;
		status = plan_optimal(&m.in, &p, arena, &r);
		if (m.in.max_gpu_mem_bytes < m.largest) {
			ck_assert_int_eq(status, PLAN_INFEASIBLE);
			ck_assert_uint_eq(r.smallest_budget, m.largest);
		} else {
			ck_assert_int_eq(status, PLAN_OK);
			plan_check(&m.in, &p, &r, arena);
			planned++;
		}
		plan_arena_destroy(arena);
	}
	ck_assert_int_gt(planned, 1000 / FEWER);
}
END_TEST

/* ---- tiny models, every choice -------------------------------------------------------- */

#define TINY 3

/* Tries every distribution of `left` pads over layers from i on. */
static double best_pads(struct optimal_trial *t, struct optimal_choice *c,
	uint32_t i, uint32_t left, double best)
{
	if (i + 1 == t->m->nr) {
		c->pads[i] = left;
		return fmin(best, optimal_trial_period(t, c, INFINITY));
	}
	for (uint32_t n = 0; n <= left; n++) {
		c->pads[i] = n;
		best = best_pads(t, c, i + 1, left - n, best);
	}
	return best;
}

static double best_choice(struct optimal_trial *t, struct optimal_choice *c,
	uint64_t need)
{
	const struct optimal_model *m = t->m;
	uint32_t n[TINY] = { 0 }, most = 0, i;
	double best = INFINITY;

	for (i = 0; i < m->nr; i++)
		if (m->bytes[i] / m->chunk > most)
			most = (uint32_t)(m->bytes[i] / m->chunk);
	for (;;) {
		uint32_t sum = 0, top = 0;

		for (i = 0; i < m->nr; i++) {
			c->bytes[i] = n[i] * m->chunk;
			sum += n[i];
			top = n[i] > top ? n[i] : top;
		}
		c->streamed = sum * m->chunk;
		for (uint32_t r = top; r > 0 && r <= sum; r++) {
			if (c->streamed < need + r * m->chunk)
				break;
			c->chunk = m->chunk;
			c->ring = r;
			best = best_pads(t, c, 0, (r - sum % r) % r, best);
		}
		for (i = 0; i < m->nr; i++) {
			if (++n[i] <= m->bytes[i] / m->chunk)
				break;
			n[i] = 0;
		}
		if (i == m->nr)
			return best;
	}
}

static double bound_of(const struct optimal_model *m, uint64_t need,
	struct plan_arena *arena)
{
	struct bound_model b = {
		.nr = m->nr,
		.ms = m->ms,
		.bytes = m->bytes,
		.need = need,
		.latency_ms = m->link.latency_ms,
		.ms_per_byte = m->link.ms_per_byte,
	};
	double ms, pool;

	ck_assert_int_eq(bound_strong(&b, arena, &ms, NULL, &pool), PLAN_OK);
	return ms;
}

START_TEST(test_exhaustive)
{
	int tried = 0;

	for (uint32_t k = 1; k <= 300 / FEWER; k++) {
		struct plan_arena *arena = plan_arena_create();
		double ms[TINY];
		uint64_t bytes[TINY], most = 0;
		struct optimal_model m = { .ms = ms, .bytes = bytes,
			.chunk = 2 * MIB, .wrap = true };
		struct optimal_trial t;
		struct optimal_choice c, found;
		double best;

		seed = k * 0x9e3779b97f4a7c15u + 5;
		m.nr = 2 + pick(TINY - 1);
		m.link.latency_ms = between(0.005, 0.1);
		m.link.ms_per_byte = 1 / 25e6;
		for (uint32_t i = 0; i < m.nr; i++) {
			bytes[i] = (1 + pick(6)) * m.chunk;
			ms[i] = between(0.02, 1);
			m.total += bytes[i];
			m.compute_ms += ms[i];
			most = bytes[i] > most ? bytes[i] : most;
		}
		ck_assert_int_eq(optimal_trial_init(&t, &m, arena), PLAN_OK);
		ck_assert_int_eq(optimal_choice_init(&c, m.nr, arena), 0);
		ck_assert_int_eq(optimal_choice_init(&found, m.nr, arena), 0);
		for (uint64_t need = m.chunk; need + most <= m.total;
			need += m.chunk) {
			best = best_choice(&t, &c, need);
			ck_assert_int_eq(optimal_search(&m, need, &found),
				PLAN_OK);
			/* Blocks may even be better than every ring. */
			ck_assert_double_le(found.period_ms,
				best * (1 + 1e-9));
			ck_assert_double_le(bound_of(&m, need, arena), best);
			tried++;
		}
		plan_arena_destroy(arena);
	}
	ck_assert_int_gt(tried, 1000 / FEWER);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan_optimal");
	TCase *t = tcase_create("optimal");

	tcase_set_timeout(t, 100);
	tcase_add_loop_test(t, test_cases, 0, (int)NR_CASES);
	tcase_add_loop_test(t, test_latency, 0, (int)NR_CASES);
	tcase_add_test(t, test_seed);
	tcase_add_loop_test(t, test_lp_cases, 0, (int)NR_CASES);
	tcase_add_test(t, test_exhaustive);
	tcase_add_loop_test(t, test_random_gaps, 0, 2);
	tcase_add_loop_test(t, test_properties, 0, 4);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
