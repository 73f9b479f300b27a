/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BudgetFillStrategy and its solvers: offload as few bytes as the budget allows,
 * tensors whose copy fits its window first, larger ones first.
 *
 * Difference to the published ones: the facade prefers, of two plans that both
 * exceed the budget, the lower peak; published, the one that offloads fewer
 * bytes.  The two searches are in plan_budget_search.c.
 */
#include "planner/plan_budget.h"

#include <stdlib.h>
#include <string.h>

/* With more candidates, not every prefix is tried with the real assignment. */
#define TRY_ALL 64

static int by_rank(const void *a, const void *b)
{
	const struct plan_ranked *p = a, *q = b;

	if (p->fits != q->fits)
		return p->fits ? -1 : 1;
	if (p->t->size_bytes != q->t->size_bytes)
		return p->t->size_bytes > q->t->size_bytes ? -1 : 1;
	if (p->ms != q->ms)
		return p->ms < q->ms ? -1 : 1;
	if (p->t->id != q->t->id)
		return p->t->id < q->t->id ? -1 : 1;
	return (p->at > q->at) - (p->at < q->at);
}

static enum plan_status rank(struct plan_budget *b, const struct plan_groups *g)
{
	struct memory_transfer_interpolator *ip = NULL;
	enum plan_status err = PLAN_OK;
	uint32_t nr = 0;

	if (b->in->memory_stats && b->in->memory_stats->nr)
		err = plan_interpolator_create(b->in->memory_stats, b->arena,
			&ip);
	if (err)
		return err;
	b->ip = ip;
	for (uint32_t i = 1; i < g->nr; i++) {
		const struct plan_pick *e = &g->at[i].eligible;
		double window = g->at[i - 1].duration_ms * b->p->scale;

		for (uint32_t j = 0; j < e->nr; j++) {
			struct plan_ranked *r = &b->ranked[nr];

			r->t = e->at[j];
			r->layer = i;
			r->at = nr++;
			r->ms = ip ? plan_bytes_to_duration(ip,
				(double)r->t->size_bytes) : r->t->load_time_ms;
			r->fits = r->ms <= window;
		}
	}
	b->nr = nr;
	qsort(b->ranked, nr, sizeof(*b->ranked), by_rank);
	for (uint32_t k = 0; k < nr; k++) {
		struct plan_budget_layer *l = &b->layers[b->ranked[k].layer];

		b->ranked[k].at = k;
		l->ranked[l->nr++] = b->ranked[k];
		l->bytes += b->ranked[k].t->size_bytes;
	}
	return PLAN_OK;
}

enum plan_status plan_budget_init(struct plan_budget *b,
	const struct plan_input *in, const struct plan_params *p,
	struct plan_arena *arena, struct strategy_result *result)
{
	struct plan_groups g;
	enum plan_status err;
	uint32_t nr = 0;

	memset(b, 0, sizeof(*b));
	if (in->max_gpu_mem_bytes == PLAN_NO_LIMIT)
		return PLAN_NEEDS_BUDGET;
	if (in->nr_layers < 2)
		return PLAN_NEEDS_LAYERS;
	b->in = in;
	b->p = p;
	b->arena = arena;
	b->limit = in->max_gpu_mem_bytes;
	b->assignment = plan_assignment_of(p, plan_assign_strict);
	err = plan_groups_create(in, p->threshold_mb, 1, arena, &g);
	if (err)
		return err;
	b->total_bytes = g.total_bytes;
	for (uint32_t i = 1; i < g.nr; i++)
		nr += g.at[i].eligible.nr;
	b->ranked = plan_arena_alloc(arena, nr, sizeof(*b->ranked));
	b->layers = plan_arena_alloc(arena, g.nr, sizeof(*b->layers));
	b->sizes = plan_arena_alloc(arena, g.nr, sizeof(*b->sizes));
	b->block = plan_arena_alloc(arena, g.nr, sizeof(*b->block));
	if (!b->ranked || !b->layers || !b->sizes || !b->block)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 1; i < g.nr; i++) {
		b->layers[i].ranked = plan_arena_alloc(arena,
			g.at[i].eligible.nr, sizeof(*b->ranked));
		if (!b->layers[i].ranked)
			return PLAN_NO_MEMORY;
	}
	err = rank(b, &g);
	if (!err && !b->nr && b->total_bytes > b->limit)
		plan_warn(result, "no tensor may be offloaded");
	return err;
}

/* ---- selections ---- */

enum plan_status plan_selection_init(struct plan_selection *s,
	const struct plan_budget *b)
{
	memset(s, 0, sizeof(*s));
	s->on = plan_arena_alloc(b->arena, b->nr, sizeof(*s->on));
	s->bytes = plan_arena_alloc(b->arena, b->in->nr_layers,
		sizeof(*s->bytes));
	return s->on && s->bytes ? PLAN_OK : PLAN_NO_MEMORY;
}

void plan_selection_clear(struct plan_selection *s, const struct plan_budget *b)
{
	memset(s->on, 0, b->nr * sizeof(*s->on));
	memset(s->bytes, 0, b->in->nr_layers * sizeof(*s->bytes));
	s->off = s->nonfit = 0;
}

void plan_selection_copy(struct plan_selection *to,
	const struct plan_selection *from, const struct plan_budget *b)
{
	memcpy(to->on, from->on, b->nr * sizeof(*to->on));
	memcpy(to->bytes, from->bytes, b->in->nr_layers * sizeof(*to->bytes));
	to->off = from->off;
	to->nonfit = from->nonfit;
	to->peak = from->peak;
}

void plan_selection_set(struct plan_selection *s, const struct plan_ranked *r,
	bool on)
{
	uint64_t bytes = on ? r->t->size_bytes : -r->t->size_bytes;

	if (s->on[r->at] == on)
		return;
	s->on[r->at] = on;
	s->bytes[r->layer] += bytes;
	s->off += bytes;
	if (!r->fits)
		s->nonfit += bytes;
}

static uint32_t transfers(const struct plan_budget *b,
	const struct plan_selection *s)
{
	uint32_t nr = 0;

	for (uint32_t i = 1; i < b->in->nr_layers; i++)
		if (s->bytes[i])
			b->sizes[nr++] = s->bytes[i];
	return nr;
}

enum plan_status plan_budget_peak(const struct plan_budget *b,
	struct plan_selection *s)
{
	enum plan_status err;
	uint32_t nr;

	s->peak = b->total_bytes - s->off;
	if (!b->p->n_blocks)
		return PLAN_OK;
	nr = transfers(b, s);
	err = b->assignment.compute(&b->assignment, b->sizes, nr,
		b->p->n_blocks, b->block);
	if (!err)
		s->peak += plan_block_bytes(b->sizes, b->block, nr);
	return err;
}

bool plan_selection_better(const struct plan_selection *a,
	const struct plan_selection *b, uint64_t limit)
{
	if ((a->peak <= limit) != (b->peak <= limit))
		return a->peak <= limit;
	if (a->peak > limit)
		return a->peak < b->peak;
	if (a->off != b->off)
		return a->off < b->off;
	return a->nonfit < b->nonfit;
}

enum plan_status plan_budget_finish(const struct plan_budget *b,
	const struct plan_selection *s, struct strategy_result *result)
{
	struct plan_pick pick;
	enum plan_status err;
	uint32_t nr;

	err = plan_map_init(&result->strategy_map, b->in->nr_layers, b->arena);
	for (uint32_t i = 1; i < b->in->nr_layers && !err; i++) {
		const struct plan_budget_layer *l = &b->layers[i];

		if (!s->bytes[i])
			continue;
		pick.nr = 0;
		pick.at = plan_arena_alloc(b->arena, l->nr, sizeof(*pick.at));
		if (!pick.at)
			return PLAN_NO_MEMORY;
		for (uint32_t j = 0; j < l->nr; j++)
			if (s->on[l->ranked[j].at])
				pick.at[pick.nr++] = l->ranked[j].t;
		err = plan_map_add(&result->strategy_map, i - 1, &pick,
			b->arena);
	}
	if (err)
		return err;
	if (s->peak > b->limit) {
		result->over_budget = true;
		plan_warn(result, "no selection tried fits the budget; the "
			"plan is above it");
	}
	if (!b->p->n_blocks)
		return PLAN_OK;
	nr = transfers(b, s);
	err = b->assignment.compute(&b->assignment, b->sizes, nr,
		b->p->n_blocks, b->block);
	return err ? err : plan_build_blocks(result, b->in, b->block, b->arena);
}

/* ---- greedy ---- */

/* As if there were two blocks, used in turn (published: whatever n_blocks is). */
static uint64_t model_peak(const struct plan_budget *b,
	const struct plan_selection *s)
{
	uint64_t most[2] = { 0, 0 };
	uint32_t nr = 0;

	if (!b->p->n_blocks)
		return b->total_bytes - s->off;
	for (uint32_t i = 1; i < b->in->nr_layers; i++) {
		if (!s->bytes[i])
			continue;
		if (s->bytes[i] > most[nr % 2])
			most[nr % 2] = s->bytes[i];
		nr++;
	}
	return b->total_bytes - s->off + most[0] + most[1];
}

static void set_prefix(const struct plan_budget *b, uint32_t len,
	struct plan_selection *s)
{
	plan_selection_clear(s, b);
	for (uint32_t k = 0; k < len; k++)
		plan_selection_set(s, &b->ranked[k], true);
}

/* Bytes grow with the prefix, so the first that fits has the fewest. */
static uint32_t model_prefix(const struct plan_budget *b,
	struct plan_selection *s)
{
	uint64_t peak, least = UINT64_MAX;
	uint32_t best = 0;

	plan_selection_clear(s, b);
	for (uint32_t k = 0; k <= b->nr; k++) {
		if (k > 0)
			plan_selection_set(s, &b->ranked[k - 1], true);
		peak = model_peak(b, s);
		if (peak <= b->limit)
			return k;
		if (peak < least) {
			least = peak;
			best = k;
		}
	}
	return best;
}

/* Tries prefix len; keeps it in best if better. */
static enum plan_status try_prefix(const struct plan_budget *b, uint32_t len,
	struct plan_selection *s, struct plan_selection *best)
{
	enum plan_status err;

	set_prefix(b, len, s);
	err = plan_budget_peak(b, s);
	if (!err && plan_selection_better(s, best, b->limit))
		plan_selection_copy(best, s, b);
	return err;
}

enum plan_status plan_budget_greedy(const struct plan_budget *b,
	struct plan_selection *s)
{
	struct plan_selection trial;
	enum plan_status err;
	uint32_t start;

	err = plan_selection_init(&trial, b);
	if (err)
		return err;
	start = model_prefix(b, &trial);
	set_prefix(b, start, s);
	err = plan_budget_peak(b, s);
	if (err || s->peak <= b->limit)
		return err;
	if (b->nr <= TRY_ALL) {
		for (uint32_t k = 0; k <= b->nr && !err; k++)
			err = try_prefix(b, k, &trial, s);
		return err;
	}
	/* Outwards, until a distance at which one fits. */
	for (uint32_t r = 1; r <= b->nr && s->peak > b->limit && !err; r++) {
		if (r <= start)
			err = try_prefix(b, start - r, &trial, s);
		if (!err && r <= b->nr - start)
			err = try_prefix(b, start + r, &trial, s);
	}
	return err;
}

/* ---- the strategies ---- */

enum plan_solvers { GREEDY = 0, LAYER_DE = 1, TENSOR_DE = 2, OVERHEAD = 4 };

static enum plan_status budget_fill(const struct plan_input *in,
	const struct plan_params *p, unsigned int solvers,
	struct plan_arena *arena, struct strategy_result *result)
{
	const char *name = "BudgetFillGreedy";
	struct plan_selection s, before;
	struct plan_budget b;
	enum plan_status err;

	err = plan_budget_init(&b, in, p, arena, result);
	if (err || b.total_bytes <= b.limit || !b.nr)
		return err;
	err = plan_selection_init(&s, &b);
	if (!err)
		err = plan_budget_greedy(&b, &s);
	before = s;
	if (!err && (solvers & LAYER_DE))
		err = plan_budget_search_layers(&b, &s);
	if (!err && plan_selection_better(&s, &before, b.limit))
		name = "BudgetFillLayerDE";
	before = s;
	if (!err && (solvers & TENSOR_DE))
		err = plan_budget_search_tensors(&b, &s);
	if (!err && plan_selection_better(&s, &before, b.limit))
		name = "BudgetFillTensorDE";
	if (!err && (solvers & OVERHEAD))
		err = plan_budget_search_overhead(&b, &s);
	result->selected_strategy_name = name;
	return err ? err : plan_budget_finish(&b, &s, result);
}

enum plan_status plan_budget_fill_greedy(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return budget_fill(in, p, GREEDY, arena, result);
}

enum plan_status plan_budget_fill_layer_de(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return budget_fill(in, p, LAYER_DE, arena, result);
}

enum plan_status plan_budget_fill_tensor_de(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return budget_fill(in, p, TENSOR_DE, arena, result);
}

enum plan_status plan_budget_fill(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return budget_fill(in, p, (p->enable_layer_de ? LAYER_DE : 0) |
		(p->enable_tensor_de ? TENSOR_DE : 0), arena, result);
}

enum plan_status plan_budget_fill_overhead(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return budget_fill(in, p, LAYER_DE | OVERHEAD, arena, result);
}
