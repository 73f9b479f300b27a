/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GlobalTensorSelectionStrategy: any set of tensors, and one scale for all
 * windows, so that memory is used to the limit with short transfers.  It
 * minimises -(peak / limit + offloaded / (2 * all bytes)) / scale.
 *
 * Differences to the published one:
 *  - Blocks are assigned to the transfers that the set really has, in each
 *    evaluation.  Published, they are tied to slots before the search, so that a
 *    layer that offloads nothing leaves two neighbours with one block, and the
 *    peak differs from the one that was searched with.
 *  - The scale of a set is the smallest one its transfers need.
 *  - Sets that fill windows up to a level, and annealing at the end, join the
 *    starts; the seed is always fixed.
 *  - A layer of duration 0 hides nothing; published, it is an error.
 */
#include "planner/plan_selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SCALE_MEMORY 100
#define ANNEAL_STEPS 8000
#define MOST_JUMPS 1500000

/* ---- judging a set ---- */

static uint32_t transfers(struct plan_selector *s)
{
	uint32_t nr = 0;

	for (uint32_t i = 1; i < s->in->nr_layers; i++)
		if (s->off[i])
			s->sizes[nr++] = s->off[i];
	return nr;
}

static uint64_t peak_of(struct plan_selector *s)
{
	uint32_t nr = transfers(s);

	if (!s->err && nr)
		s->err = s->assignment.compute(&s->assignment, s->sizes, nr,
			s->p->n_blocks, s->block);
	if (s->err)
		return UINT64_MAX;
	return s->g.total_bytes - s->fixed_bytes - s->chosen +
		plan_block_bytes(s->sizes, s->block, nr);
}

/* The stretch that the transfers need: infinite where there is no window. */
static double stretch_of(struct plan_selector *s)
{
	double need = 1, w;

	for (uint32_t i = 1; i < s->in->nr_layers; i++) {
		if (!s->off[i])
			continue;
		w = s->window.compute(i, s->off, s->duration, s->window.data);
		if (!(w > 0))
			return INFINITY;
		if (s->timed[i] != s->off[i]) {
			s->timed[i] = s->off[i];
			s->ms[i] = plan_bytes_to_duration(s->ip,
				(double)s->off[i]);
		}
		if (s->ms[i] > w * need)
			need = s->ms[i] / w;
	}
	return need;
}

double plan_selector_judge(struct plan_selector *s, double scale)
{
	double peak = (double)peak_of(s), value, need, filled = 1;

	if (s->err)
		return INFINITY;
	s->fits = !(s->limit > 0 && peak > s->limit);
	if (!s->fits) {
		value = 1000 * (1 + (peak - s->limit) / s->limit);
		if (value < s->best)
			goto keep;
		return value;
	}
	need = stretch_of(s);
	if (need > s->hi * SELECTION_SLACK) {
		value = 1000 * fmin(need, 1e9) / scale;
		if (value < s->best)
			goto keep;
		return value;
	}
	if (s->limit > 0)
		filled = peak / s->limit;
	filled += 0.5 * (double)s->chosen / (double)s->g.total_bytes;
	value = need > scale * SELECTION_SLACK ? 1000 * need / scale :
		-filled / scale;
	scale = fmin(fmax(need / SELECTION_SLACK, s->lo), s->hi);
	if (-filled / scale < s->best) {
		s->best = -filled / scale;
		s->best_scale = scale;
		memcpy(s->best_on, s->on, s->nr * sizeof(*s->on));
	}
	return value;
keep:
	s->best = value;
	s->best_scale = scale;
	memcpy(s->best_on, s->on, s->nr * sizeof(*s->on));
	return value;
}

void plan_selector_set(struct plan_selector *s, const struct plan_variable *v,
	bool on)
{
	uint64_t bytes = on ? v->t->size_bytes : -v->t->size_bytes;

	if (s->on[v->place] == on)
		return;
	s->on[v->place] = on;
	s->off[v->layer] += bytes;
	s->chosen += bytes;
}

static void set_all(struct plan_selector *s, const bool *on)
{
	for (uint32_t k = 0; k < s->nr; k++)
		plan_selector_set(s, &s->vars[k], on[k]);
}

/* ---- search ---- */

/* Coordinates: each variable, then the scale. */
static double value(void *ctx, const double *x)
{
	struct plan_selector *s = ctx;

	for (uint32_t k = 0; k < s->nr; k++)
		plan_selector_set(s, &s->vars[k], x[k] > 0.5);
	return plan_selector_judge(s, x[s->nr]);
}

static void fill_member(struct plan_selector *s, uint32_t member, double *x)
{
	uint32_t copies = (uint32_t)(s->p->pop_size * s->p->seed_ratio);

	for (uint32_t k = 0; k < s->nr; k++) {
		if (member < copies || member == 0)
			x[k] = s->best_on[k];
		else if (member == copies || member == 1)
			x[k] = 1;
		else
			x[k] = plan_random_next(&s->random) >> 63;
	}
	x[s->nr] = member < copies || member == 0 ? s->best_scale :
		s->lo + plan_random_unit(&s->random) * (s->hi - s->lo);
}

static enum plan_status search(struct plan_selector *s, bool annealing)
{
	struct plan_search q = { .nr = s->nr + 1, .value = value, .ctx = s,
		.pop = s->p->pop_size, .epochs = s->p->epoch,
		.stall = s->p->max_early_stop, .seed = s->p->seed,
		.tolerance = 0.01 };
	bool *whole = calloc(q.nr, sizeof(*whole));
	double *mem = calloc((size_t)q.nr * (3 + q.pop), sizeof(*mem));
	double *lo = mem, *hi, *pop, *best, got;
	enum plan_status err = PLAN_NO_MEMORY;

	if (mem && whole) {
		hi = lo + q.nr;
		best = hi + q.nr;
		pop = best + q.nr;
		for (uint32_t k = 0; k < s->nr; k++) {
			hi[k] = 1;
			whole[k] = true;
		}
		lo[s->nr] = s->lo;
		hi[s->nr] = s->hi;
		q.lo = lo;
		q.hi = hi;
		q.integral = whole;
		for (uint32_t m = 0; m < q.pop; m++)
			fill_member(s, m, pop + (size_t)m * q.nr);
		if (annealing) {
			q.most_values = q.pop * q.epochs;
			/* Each value costs a jump of every variable. */
			if (q.most_values > MOST_JUMPS / q.nr)
				q.most_values = MOST_JUMPS / q.nr + 1;
			err = plan_search_sa(&q, pop, best, &got);
		} else {
			err = plan_search_de(&q, pop, best, &got);
		}
	}
	free(whole);
	free(mem);
	return err ? err : s->err;
}

/* The objective with the set's own scale, and a slope towards the limit. */
static double energy(struct plan_selector *s)
{
	double v = plan_selector_judge(s, s->best_scale);

	/* Too long for the best scale: as if at the scale it needs. */
	if (v > 0 && s->fits)
		return -1 / fmax(stretch_of(s) / SELECTION_SLACK, 1e-9);
	return v > 0 ? v / 1000 - 1 : v;
}

/* Flips and exchanges from the best; judging keeps what is better. */
static void polish(struct plan_selector *s)
{
	const double cool = exp(log(1e-5) / ANNEAL_STEPS);
	double heat = 0.02, at, next;

	set_all(s, s->best_on);
	at = energy(s);
	for (uint32_t n = 0; n < ANNEAL_STEPS && !s->err; n++, heat *= cool) {
		const struct plan_variable *a, *b;
		bool was_a, was_b;

		a = &s->vars[plan_random_below(&s->random, s->nr)];
		b = n % 2 ? &s->vars[plan_random_below(&s->random, s->nr)] : a;
		was_a = s->on[a->place];
		was_b = s->on[b->place];
		if (a != b && was_a == was_b)
			continue;
		plan_selector_set(s, a, !was_a);
		if (a != b)
			plan_selector_set(s, b, !was_b);
		next = energy(s);
		if (next <= at || plan_random_unit(&s->random) <
		    exp((at - next) / heat)) {
			at = next;
			continue;
		}
		plan_selector_set(s, a, was_a);
		plan_selector_set(s, b, was_b);
	}
}

/* ---- setting up, and the result ---- */

static int larger(const void *a, const void *b)
{
	const struct plan_variable *p = a, *q = b;

	if (p->layer != q->layer)
		return p->layer < q->layer ? -1 : 1;
	if (p->t->size_bytes != q->t->size_bytes)
		return p->t->size_bytes > q->t->size_bytes ? -1 : 1;
	return (p->place > q->place) - (p->place < q->place);
}

/* Layers that fit their windows as they are are always offloaded. */
static void fix_layers(struct plan_selector *s)
{
	bool gaps = false;
	double w;

	for (uint32_t i = 1; i < s->g.nr; i++)
		gaps = gaps || !s->possible[i];
	if (gaps && s->window.compute == plan_window_single)
		s->window.compute = plan_window_gap_aware;
	for (uint32_t i = 1; i < s->g.nr; i++) {
		w = s->window.compute(i, s->possible, s->duration,
			s->window.data);
		s->fixed[i] = s->possible[i] && w > 0 &&
			plan_bytes_to_duration(s->ip, (double)s->possible[i]) <=
			w * s->lo * SELECTION_SLACK;
		if (s->fixed[i]) {
			s->off[i] = s->possible[i];
			s->fixed_bytes += s->possible[i];
		}
	}
}

static void list_variables(struct plan_selector *s)
{
	for (uint32_t i = 0; i < s->g.nr; i++) {
		const struct plan_pick *e = &s->g.at[i].eligible;

		s->first[i] = s->nr;
		for (uint32_t j = 0; i > 0 && !s->fixed[i] && j < e->nr; j++) {
			s->vars[s->nr] = (struct plan_variable){ e->at[j], i,
				s->nr };
			s->nr++;
		}
	}
	s->first[s->g.nr] = s->nr;
	memcpy(s->large, s->vars, s->nr * sizeof(*s->vars));
	qsort(s->large, s->nr, sizeof(*s->large), larger);
}

static enum plan_status setup(struct plan_selector *s)
{
	const uint32_t n = s->g.nr;
	struct plan_arena *a = s->arena;
	uint32_t nr = 0;

	for (uint32_t i = 1; i < n; i++)
		nr += s->g.at[i].eligible.nr;
	s->fixed = plan_arena_alloc(a, n, sizeof(*s->fixed));
	s->duration = plan_arena_alloc(a, n, sizeof(*s->duration));
	s->possible = plan_arena_alloc(a, n, sizeof(*s->possible));
	s->off = plan_arena_alloc(a, n, sizeof(*s->off));
	s->timed = plan_arena_alloc(a, n, sizeof(*s->timed));
	s->ms = plan_arena_alloc(a, n, sizeof(*s->ms));
	s->sizes = plan_arena_alloc(a, n, sizeof(*s->sizes));
	s->block = plan_arena_alloc(a, n, sizeof(*s->block));
	s->first = plan_arena_alloc(a, n + 1, sizeof(*s->first));
	s->vars = plan_arena_alloc(a, nr, sizeof(*s->vars));
	s->large = plan_arena_alloc(a, nr, sizeof(*s->large));
	s->on = plan_arena_alloc(a, nr, sizeof(*s->on));
	s->best_on = plan_arena_alloc(a, nr, sizeof(*s->best_on));
	if (!s->fixed || !s->duration || !s->possible || !s->off ||
	    !s->timed || !s->ms || !s->sizes || !s->block || !s->first ||
	    !s->vars || !s->large || !s->on || !s->best_on)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		s->duration[i] = s->g.at[i].duration_ms;
		s->possible[i] = i ? s->g.at[i].eligible.bytes : 0;
	}
	fix_layers(s);
	list_variables(s);
	return PLAN_OK;
}

static enum plan_status finish(struct plan_selector *s,
	struct strategy_result *result)
{
	struct plan_pick pick;
	enum plan_status err;
	uint32_t slot = 0;
	double peak;

	set_all(s, s->best_on);
	peak = (double)peak_of(s);	/* and the blocks of this set */
	if (s->limit > 0 && peak > s->limit) {
		result->over_budget = true;
		plan_warn(result, "no selection tried fits the budget; the "
			"plan is above it");
	}
	err = plan_map_init(&result->strategy_map, s->g.nr, s->arena);
	for (uint32_t i = 1; i < s->g.nr && !err; i++) {
		if (!s->off[i])
			continue;
		pick = s->g.at[i].eligible;
		if (!s->fixed[i]) {
			pick.nr = 0;
			for (uint32_t k = s->first[i]; k < s->first[i + 1];
			     k++)
				if (s->on[k])
					pick.at[pick.nr++] = s->vars[k].t;
		}
		err = plan_map_add(&result->strategy_map, slot, &pick,
			s->arena);
		slot = i;
	}
	if (err || s->err || !result->strategy_map.nr)
		return err ? err : s->err;
	return plan_build_blocks(result, s->in, s->block, s->arena);
}

static enum plan_status tensor_selection(const struct plan_input *in,
	const struct plan_params *p, bool annealing, struct plan_arena *arena,
	struct strategy_result *result)
{
	struct plan_selector s = { .in = in, .p = p, .arena = arena,
		.window = p->window, .random = { p->seed }, .lo = p->scale,
		.assignment = plan_assignment_of(p, plan_assign_optimized) };
	struct memory_transfer_interpolator *ip;
	enum plan_status err;

	if (!in->nr_layers)
		return PLAN_OK;
	err = plan_interpolator_of(in, arena, &ip);
	if (err)
		return err;
	if (!ip)
		return PLAN_NEEDS_TABLE;
	s.ip = ip;
	if (!s.window.compute)
		s.window.compute = plan_window_single;
	if (in->max_gpu_mem_bytes != PLAN_NO_LIMIT)
		s.limit = (double)in->max_gpu_mem_bytes;
	s.hi = p->scale_ub > 0 ? p->scale_ub : s.limit > 0 ? SCALE_MEMORY :
		p->scale;
	if (s.hi < s.lo)
		s.hi = s.lo;
	s.best_scale = s.lo;
	err = plan_groups_create(in, p->threshold_mb, 1, arena, &s.g);
	if (!err)
		err = setup(&s);
	if (!err && s.nr) {
		err = plan_selector_levels(&s);
		if (!err)
			plan_selector_start(&s);
		if (!err)
			err = search(&s, annealing);
		if (!err)
			polish(&s);
	}
	result->scale = s.best_scale;
	return err ? err : finish(&s, result);
}

enum plan_status plan_tensor_selection_de(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return tensor_selection(in, p, false, arena, result);
}

enum plan_status plan_tensor_selection_sa(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	return tensor_selection(in, p, true, arena, result);
}
