/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds for every strategy.  On the cases: none has a plan with a shorter
 * period than `optimal`, which stays close to the stored bounds.  On random
 * models: memory within the budget, no period below the bound, plan files that
 * come back as they were.
 */
#include "planner/optimal.h"
#include "planner/plan_io.h"
#include "planner/plan_search.h"
#include "planner/timeline.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/plan_same.h"

#ifdef SAN_BUILD
#define SLOW 1
#else
#define SLOW 0
#endif

#define NR_MODELS (SLOW ? 1000 : 10000)
#define PARTS 8		/* of the random models, each a test of its own */
#define FILES 5		/* every so many-th plan goes through a file */
#define MAX_LAYERS 12
#define MAX_TENSORS 5

static const char *const cases[] = {
	"deep500", "embed_heavy", "flux1_dev", "gpt2xl_tied",
	"llama3_70b_prefill2k", "llama3_8b_decode", "llama3_8b_prefill4k",
	"one_layer", "qwen15_moe_a2p7b", "sdxl_unet", "two_layer",
	"uneven_seed7", "vit_small", "wan14b",
};
#define NR_CASES ((int)(sizeof(cases) / sizeof(*cases)))

/* A strategy's plan, and what the timeline says of it. */
struct outcome {
	enum plan_status status;
	struct plan_file file;
	bool shared;		/* PLAN_SHARED_CONSUMER, as published */
	bool runs;		/* valid, with room for its transfers */
	double period_ms;	/* if it runs */
};

/* ---- making and judging a plan ------------------------------------------- */

/*
 * The published peak of a plan without blocks leaves out the memory that its
 * transfers need.
 */
static bool has_room(const struct plan_file *f)
{
	const struct strategy_result *r = &f->result;

	return r->pool || r->block_data || f->budget == PLAN_NO_LIMIT ||
		f->score.peak_memory_bytes + plan_offloaded_bytes(r) <=
		f->budget;
}

static void time_plan(const struct plan_input *in, struct outcome *o,
	struct plan_arena *arena)
{
	struct timeline_options opt = { .wrap = o->file.params.wrap };
	struct timeline_times times;
	enum plan_status status;
	struct timeline t;

	status = timeline_link_of(in, arena, &opt.link);
	/* Nothing is copied: no table is needed. */
	if (!plan_offloaded_bytes(&o->file.result) &&
	    status == PLAN_NEEDS_TABLE)
		status = PLAN_OK;
	HOLDS_EQ(status, PLAN_OK);
	status = timeline_of_result(&o->file.result, in, &opt, arena, &t);
	if (!status)
		status = plan_timeline(&t, false, arena, &times);
	o->runs = !status;
	HOLDS_MSG(!status || status == PLAN_CONFLICT, "%s: %s",
		o->file.strategy, plan_status_message(status));
	if (status)
		return;
	o->period_ms = times.period_ms;
	o->file.period_ms = times.period_ms;
	o->file.cold_ms = times.cold_ms;
	o->file.bound_ms = o->file.result.bound_ms;
}

static void make_plan(const struct plan_profile *p,
	const struct plan_strategy *s, const struct plan_params *params,
	uint64_t budget, struct plan_arena *arena, struct outcome *o)
{
	struct plan_input in = plan_io_input(p, budget);
	struct memory_transfer_interpolator *ip;
	struct plan_file *f = &o->file;
	enum plan_status status;

	memset(o, 0, sizeof(*o));
	f->profile = *p;
	f->strategy = s->name;
	f->params = params ? *params : s->defaults;
	f->budget = budget;
	f->fingerprint = plan_io_fingerprint(p->layers, p->nr_layers);
	o->status = plan_compute(s, &in, &f->params, arena, &f->result);
	HOLDS_MSG(o->status <= PLAN_INFEASIBLE, "%s: %s", s->name,
		plan_status_message(o->status));
	if (o->status)
		return;
	HOLDS_EQ(plan_interpolator_of(&in, arena, &ip), PLAN_OK);
	status = evaluate_strategy_result(&f->result, &in, s->name, ip,
		&f->score);
	/* Of tied tensors it may know no overhead; the rest it does. */
	if (status == PLAN_SHARED_CONSUMER) {
		o->shared = true;
		status = evaluate_strategy_result(&f->result, &in, s->name,
			NULL, &f->score);
	}
	HOLDS_EQ(status, PLAN_OK);
	if (f->score.is_valid && has_room(f))
		time_plan(&in, o, arena);
}

static double compute_of(const struct plan_profile *p)
{
	double sum = 0;

	for (uint32_t i = 0; i < p->nr_layers; i++)
		sum += p->layers[i].duration_ms;
	return sum;
}

static uint64_t largest_layer(const struct plan_profile *p)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < p->nr_layers; i++) {
		uint64_t sum = 0;

		for (uint32_t k = 0; k < p->layers[i].nr; k++)
			sum += p->layers[i].tensors[k].size_bytes;
		most = sum > most ? sum : most;
	}
	return most;
}

/* ---- memory, counted anew ------------------------------------------------ */

static uint64_t streamed_of(const struct strategy_result *r,
	const struct tensor_statistics *t)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < r->strategy_map.nr; i++)
		for (uint32_t j = 0; j < r->strategy_map.slots[i].nr; j++)
			if (r->strategy_map.slots[i].entries[j].tensor == t)
				sum += r->strategy_map.slots[i].entries[j]
					.length;
	return sum;
}

/* What one layer keeps of a tensor must be there for all of its users. */
static uint64_t resident_bytes(const struct plan_profile *p,
	const struct strategy_result *r, bool *tied)
{
	uint64_t sum = 0;

	*tied = false;
	for (uint32_t i = 0; i < p->nr_layers; i++)
		for (uint32_t k = 0; k < p->layers[i].nr; k++) {
			const struct tensor_statistics *t =
				&p->layers[i].tensors[k];
			uint64_t most = 0, left;
			bool first = true;

			for (uint32_t h = 0; h < p->nr_layers; h++)
				for (uint32_t j = 0; j < p->layers[h].nr; j++) {
					const struct tensor_statistics *u =
						&p->layers[h].tensors[j];

					if (u->id != t->id)
						continue;
					*tied |= u != t;
					first &= u >= t || h > i;
					left = u->size_bytes -
						streamed_of(r, u);
					most = left > most ? left : most;
				}
			sum += first ? most : 0;
		}
	return sum;
}

/* Each block as large as the largest of what is copied into it. */
static uint64_t block_bytes(const struct strategy_result *r)
{
	const struct block_strategy_data *b = r->block_data;
	uint64_t sum = 0, all = 0;

	for (uint32_t n = 0; n < b->nr_blocks; n++) {
		uint64_t most = 0;

		for (uint32_t k = 0; k < b->nr; k++) {
			uint64_t bytes = 0;

			for (uint32_t i = 0; i < r->strategy_map.nr; i++) {
				const struct plan_slot *s =
					&r->strategy_map.slots[i];

				for (uint32_t j = 0; j < s->nr &&
				     s->slot == b->slots[k]; j++)
					bytes += s->entries[j].length;
			}
			HOLDS_EQ(bytes, b->label_to_size_map[k]);
			if (b->label_to_block_id[k] != n)
				continue;
			all += bytes;
			most = bytes > most ? bytes : most;
		}
		HOLDS(most <= b->block_sizes[n]);
		sum += b->block_sizes[n];
	}
	/* Nothing is copied that has no block. */
	HOLDS_EQ(all, plan_offloaded_bytes(r));
	return sum;
}

static void check_memory(const struct outcome *o)
{
	const struct plan_file *f = &o->file;
	const struct strategy_result *r = &f->result;
	uint64_t used;
	bool tied;

	used = resident_bytes(&f->profile, r, &tied);
	if (r->pool)
		used += r->pool->nr_chunks * r->pool->chunk_bytes;
	else if (r->block_data)
		used += block_bytes(r);
	HOLDS_MSG(used <= f->score.peak_memory_bytes, "%s uses more memory "
		"than it says", f->strategy);
	HOLDS_MSG(tied || used == f->score.peak_memory_bytes,
		"%s uses less memory than it says", f->strategy);
	if (f->score.is_valid)
		HOLDS(used <= f->budget);
	else
		HOLDS(used > f->budget || tied ||
			f->score.consecutive_violations > 0);
	if (!strcmp(f->strategy, "optimal"))
		HOLDS(f->score.is_valid);
}

/* ---- the cases: optimal and its bounds ----------------------------------- */

/* Of one row; 1 + gap, or 0 where the budget cannot hold the largest layer. */
static double check_row(const char *name, const struct plan_profile *p,
	uint64_t budget, struct json_object *bounds, struct plan_arena *arena)
{
	bool fits = largest_layer(p) <= budget;
	struct json_object *b;
	struct outcome o;
	char key[128];
	double bound;

	snprintf(key, sizeof(key), "%s/%llu", name,
		(unsigned long long)budget);
	ck_assert_msg(json_object_object_get_ex(bounds, key, &b), "%s", key);
	ck_assert_int_eq(b != NULL, fits);
	make_plan(p, plan_strategy_find("optimal"), NULL, budget, arena, &o);
	if (!fits) {
		ck_assert_int_eq(o.status, PLAN_INFEASIBLE);
		ck_assert_uint_eq(o.file.result.smallest_budget,
			largest_layer(p));
		return 0;
	}
	ck_assert_int_eq(o.status, PLAN_OK);
	ck_assert(o.file.score.is_valid && o.runs);
	ck_assert_uint_le(o.file.score.peak_memory_bytes, budget);
	bound = json_object_get_double(b);
	ck_assert_msg(o.period_ms >= bound * (1 - 1e-9),
		"%s: %.12g is below the bound, %.12g", key, o.period_ms, bound);
	if (bound <= compute_of(p) * (1 + 1e-12))
		ck_assert_double_le(o.period_ms, compute_of(p) * (1 + 1e-9));
	return o.period_ms / bound;
}

START_TEST(test_bounds)
{
	struct json_object *all = json_object_from_file(
		"test/data/lower-bounds.json"), *bounds;
	uint32_t rows = 0, valid = 0, close = 0;
	double gap, worst = 0;

	ck_assert(json_object_object_get_ex(all, "bounds", &bounds));
	for (int i = 0; i < NR_CASES; i++) {
		struct plan_arena *arena = plan_arena_create();
		struct plan_profile p;

		plan_same_case(cases[i], arena, &p);
		for (uint32_t k = 0; k < p.nr_budgets; k++) {
			if (p.budgets[k] == PLAN_NO_LIMIT)
				continue;
			rows++;
			gap = check_row(cases[i], &p, p.budgets[k], bounds,
				arena) - 1;
			valid += gap > -1;
			close += gap > -1 && gap <= 0.01;
			worst = fmax(worst, gap);
		}
		plan_arena_destroy(arena);
	}
	if (getenv("V"))
		printf("%u rows, %u valid, %u within 1 %%, worst %.3f %%\n",
			rows, valid, close, 100 * worst);
	ck_assert_uint_eq(rows, 56);
	ck_assert_uint_eq(valid, 48);
	ck_assert_double_le(worst, 0.015);
	ck_assert_uint_ge(close * 100, valid * 95);
	json_object_put(all);
}
END_TEST

/* ---- the cases: nobody is faster ----------------------------------------- */

/* These take most of the time; they say nothing about memory or threads. */
static bool is_slow(const struct plan_strategy *s)
{
	return !strncmp(s->name, "global_tensor_selection", 23) ||
		!strcmp(s->name, "adaptive");
}

static void check_others(const struct plan_profile *p, uint64_t budget,
	uint32_t *compared)
{
	struct plan_arena *arena = plan_arena_create();
	struct outcome best, o;
	bool fits = largest_layer(p) <= budget;

	make_plan(p, plan_strategy_find("optimal"), NULL, budget, arena, &best);
	ck_assert_int_eq(best.status, fits ? PLAN_OK : PLAN_INFEASIBLE);
	ck_assert_int_eq(best.runs, fits);
	if (budget == PLAN_NO_LIMIT)
		ck_assert_double_le(best.period_ms, compute_of(p) *
			(1 + 1e-9));
	for (uint32_t i = 0; i < plan_nr_strategies(); i++) {
		const struct plan_strategy *s = plan_strategy(i);

		if (!strcmp(s->name, "optimal") || (SLOW && is_slow(s)))
			continue;
		make_plan(p, s, NULL, budget, arena, &o);
		if (!o.runs)
			continue;
		ck_assert_msg(fits, "%s fits where nothing can", s->name);
		ck_assert_msg(best.period_ms <= o.period_ms * (1 + 1e-9),
			"%s: %.12g ms, optimal: %.12g ms", s->name,
			o.period_ms, best.period_ms);
		++*compared;
	}
	plan_arena_destroy(arena);
}

START_TEST(test_nobody_is_faster)
{
	struct plan_arena *arena = plan_arena_create();
	uint32_t compared = 0;
	struct plan_profile p;

	plan_same_case(cases[_i], arena, &p);
	for (uint32_t k = 0; k < p.nr_budgets; k++)
		check_others(&p, p.budgets[k], &compared);
	if (getenv("V"))
		printf("%s: %u plans that run\n", cases[_i], compared);
	ck_assert_uint_gt(compared, 4);
	plan_arena_destroy(arena);
}
END_TEST

/* ---- random models ------------------------------------------------------- */

struct model {
	struct layer_statistics layers[MAX_LAYERS];
	struct tensor_statistics tensors[MAX_LAYERS][MAX_TENSORS];
	struct transfer_time points[5];
	char labels[MAX_LAYERS][16];
	struct plan_profile p;
	uint64_t budget;
};

static void make_layer(struct model *m, struct plan_random *r, uint32_t i,
	double ms_per_byte)
{
	struct layer_statistics *l = &m->layers[i];
	double load = 0;

	snprintf(m->labels[i], sizeof(m->labels[i]), "l%u", i);
	l->label = m->labels[i];
	l->tensors = m->tensors[i];
	l->nr = plan_random_below(r, 10) ?
		1 + plan_random_below(r, MAX_TENSORS) : 0;
	for (uint32_t j = 0; j < l->nr; j++) {
		struct tensor_statistics *t = &m->tensors[i][j];

		t->id = i * MAX_TENSORS + j;
		t->name = plan_random_below(r, 3) ? NULL : "w";
		t->size_bytes = plan_random_below(r, 4) ?
			(1 + plan_random_below(r, 24)) << 20 :
			plan_random_below(r, 3000000);
		t->load_time_ms = 0.01 + (double)t->size_bytes * ms_per_byte;
		if (j == 0 && i > 1 && m->layers[i - 2].nr &&
		    !plan_random_below(r, 8))
			*t = m->tensors[i - 2][0];
		load += t->load_time_ms;
	}
	if (plan_random_below(r, 12))
		l->duration_ms = load ? load * exp(4 * plan_random_unit(r) - 2) :
			plan_random_unit(r);
}

/* Also layers without tensors or time, shared tensors, tables of every kind. */
static void make_model(struct model *m, struct plan_random *r)
{
	uint32_t kind = plan_random_below(r, 5);
	double ms_per_byte = 1 / (1e6 * (10 + 80 * plan_random_unit(r)));
	uint64_t unique;

	memset(m, 0, sizeof(*m));
	m->p.name = "random";
	m->p.note = m->p.device = "";
	m->p.layers = m->layers;
	/* More small ones: `optimal` takes longest on the large ones. */
	m->p.nr_layers = 1 + plan_random_below(r, 1 +
		plan_random_below(r, MAX_LAYERS));
	for (uint32_t i = 0; i < m->p.nr_layers; i++)
		make_layer(m, r, i, ms_per_byte);
	/* Kind 0 has no table but load times. */
	for (uint32_t i = 0; i < 5 && kind; i++) {
		m->points[i].bytes = UINT64_C(65536) << (3 * i);
		m->points[i].ms = 0.01 + (double)m->points[i].bytes *
			ms_per_byte;
		if (kind == 1)
			m->points[i].ms *= 1 + 0.2 * plan_random_unit(r);
	}
	m->p.memory_stats = (struct memory_stats){ m->points, kind ? 5 : 0 };
	unique = plan_io_unique_bytes(&m->p);
	m->budget = 1 + (uint64_t)((double)unique *
		(0.05 + 1.05 * plan_random_unit(r)));
	if (!plan_random_below(r, 20))
		m->budget = PLAN_NO_LIMIT;
	else if (!plan_random_below(r, 20) && largest_layer(&m->p))
		m->budget = largest_layer(&m->p);
}

static double bound_of(const struct model *m, struct plan_arena *arena)
{
	struct plan_input in = plan_io_input(&m->p, m->budget);
	double ms = 0, pool;
	struct bound_model b;

	if (m->budget >= plan_io_unique_bytes(&m->p))
		return compute_of(&m->p);
	HOLDS_EQ(optimal_bound_model(&in, arena, &b), PLAN_OK);
	HOLDS_EQ(bound_strong(&b, arena, &ms, NULL, &pool), PLAN_OK);
	ck_assert_double_ge(ms, bound_simple(&b) * (1 - 1e-12));
	return ms;
}

static const char *const without_search[] = {
	"greedy", "nth_layer", "knapsack", "knapsack_block",
	"adaptive_knapsack", "budget_fill_greedy", "budget_fill_spread",
	"global_offload", "global_offload_strict", "optimal",
};
#define NR_WITHOUT (sizeof(without_search) / sizeof(*without_search))

struct tally {
	uint32_t plans, valid, timed, shared, files;
};

static void check_model(const struct model *m, uint32_t n,
	struct plan_random *r, struct tally *sum)
{
	struct plan_arena *arena = plan_arena_create();
	bool fits = largest_layer(&m->p) <= m->budget;
	double bound = fits ? bound_of(m, arena) : 0;
	struct outcome o;

	for (size_t i = 0; i < NR_WITHOUT; i++) {
		const struct plan_strategy *s =
			plan_strategy_find(without_search[i]);
		struct plan_params p = s->defaults;

		/* Budget fill has no blocks by default. */
		if (plan_random_below(r, 2) && s->params >>
		    PLAN_PARAM_n_blocks & 1)
			p.n_blocks = 2 + (int)plan_random_below(r, 3);
		make_plan(&m->p, s, &p, m->budget, arena, &o);
		if (!strcmp(s->name, "optimal") && m->p.memory_stats.nr)
			HOLDS_EQ(o.status,
				fits ? PLAN_OK : PLAN_INFEASIBLE);
		if (o.status)
			continue;
		sum->plans++;
		sum->valid += o.file.score.is_valid;
		sum->timed += o.runs;
		sum->shared += o.shared;
		check_memory(&o);
		/* Reading takes ten times as long as planning: in turn. */
		if ((n / PARTS + i) % FILES == 0) {
			plan_same_file(s, &o.file, arena);
			sum->files++;
		}
		if (!o.runs)
			continue;
		HOLDS_MSG(fits, "%s fits where nothing can", s->name);
		HOLDS_MSG(o.period_ms >= bound * (1 - 1e-9),
			"%s: %.12g ms, but the bound is %.12g", s->name,
			o.period_ms, bound);
		ck_assert_double_le(o.file.bound_ms,
			o.period_ms * (1 + 1e-9));
	}
	plan_arena_destroy(arena);
}

START_TEST(test_random_models)
{
	struct tally sum = { 0 };
	struct model m;

	for (uint32_t n = (uint32_t)_i; n < NR_MODELS; n += PARTS) {
		/* Each has its own, so that one can be repeated alone. */
		struct plan_random r = { 1000 + n };

		make_model(&m, &r);
		check_model(&m, n, &r, &sum);
	}
	ck_assert_uint_eq(sum.shared, 0);
	if (getenv("V"))
		printf("%u plans, %u valid, %u timed, %u shared, %u files\n",
			sum.plans, sum.valid, sum.timed, sum.shared, sum.files);
	ck_assert_uint_gt(sum.plans, 6 * NR_MODELS / PARTS);
	ck_assert_uint_gt(sum.valid, NR_MODELS / PARTS);
	ck_assert_uint_gt(sum.timed, NR_MODELS / PARTS);
	ck_assert_uint_gt(sum.files, NR_MODELS / PARTS);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan_property");
	TCase *t = tcase_create("properties");

	tcase_set_timeout(t, 30);
	tcase_add_test(t, test_bounds);
	tcase_add_loop_test(t, test_nobody_is_faster, 0, NR_CASES);
	tcase_add_loop_test(t, test_random_models, 0, PARTS);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
