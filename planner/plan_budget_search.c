/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The searches of BudgetFillLayerDEStrategy (a part of each layer, in order of
 * rank) and BudgetFillTensorDEStrategy (any set of tensors).  Called by
 * plan_budget.c.
 *
 * Both look for the fewest offloaded bytes whose real peak fits the budget, by
 * differential evolution from several starts, then by local moves.  Differences
 * to the published ones: the peak is that of the real assignment throughout
 * (published: a model with two blocks, checked only at the end); the starts
 * include "every layer up to a level"; local moves follow; the seed is always
 * fixed, so that the answer does not change from run to run.
 */
#include "planner/plan_budget.h"
#include "planner/plan_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 48
#define MOST_MOVES 4000
#define EXACT_CANDIDATES 4
#define ANNEAL_STEPS 20000
#define OVERHEAD_STEPS 10000

struct search {
	const struct plan_budget *b;
	struct plan_selection trial, *best;
	struct plan_random random;
	uint32_t nr_vars;
	uint32_t *vars;		/* layers with candidates */
	uint32_t moves;
	enum plan_status err;
};

/* Judges the trial; keeps it in best if it is better. */
static double judge(struct search *s)
{
	struct plan_selection *t = &s->trial;

	if (s->err)
		return INFINITY;
	s->err = plan_budget_peak(s->b, t);
	if (s->err)
		return INFINITY;
	if (plan_selection_better(t, s->best, s->b->limit))
		plan_selection_copy(s->best, t, s->b);
	if (t->peak > s->b->limit)
		return 1e18 + (double)(t->peak - s->b->limit);
	return (double)t->off +
		(double)t->nonfit / ((double)s->b->total_bytes + 1);
}

static enum plan_status search_init(struct search *s,
	const struct plan_budget *b, struct plan_selection *best)
{
	memset(s, 0, sizeof(*s));
	s->b = b;
	s->best = best;
	s->random.state = b->p->seed;
	s->vars = plan_arena_alloc(b->arena, b->in->nr_layers,
		sizeof(*s->vars));
	if (!s->vars)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 1; i < b->in->nr_layers; i++)
		if (b->layers[i].nr)
			s->vars[s->nr_vars++] = i;
	return plan_selection_init(&s->trial, b);
}

/* ---- starts ---- */

/* The layer's first tensors, up to cap bytes; over: the last may cross it. */
static void set_level(struct search *s, uint32_t layer, uint64_t cap, bool over)
{
	const struct plan_budget_layer *l = &s->b->layers[layer];
	uint64_t bytes = 0;
	bool on = true;

	for (uint32_t j = 0; j < l->nr; j++) {
		if (over)
			on = bytes < cap;
		else
			on = on && l->ranked[j].t->size_bytes <= cap - bytes;
		plan_selection_set(&s->trial, &l->ranked[j], on);
		if (on)
			bytes += l->ranked[j].t->size_bytes;
	}
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

/* Every layer up to one level, for levels that make a difference. */
static void try_levels(struct search *s)
{
	const struct plan_budget *b = s->b;
	uint64_t *level = malloc(b->nr * sizeof(*level)), bytes;
	uint32_t nr = 0, step;

	if (!level) {
		s->err = PLAN_NO_MEMORY;
		return;
	}
	for (uint32_t v = 0; v < s->nr_vars; v++) {
		const struct plan_budget_layer *l = &b->layers[s->vars[v]];

		bytes = 0;
		for (uint32_t j = 0; j < l->nr; j++)
			level[nr++] = bytes += l->ranked[j].t->size_bytes;
	}
	qsort(level, nr, sizeof(*level), by_value);
	step = nr;
	nr = 0;
	for (uint32_t i = 0; i < step; i++)
		if (i == 0 || level[i] != level[nr - 1])
			level[nr++] = level[i];
	step = (nr + LEVELS - 1) / LEVELS;
	for (uint32_t i = 0; i < nr && !s->err; i += step)
		for (int over = 0; over < 2; over++) {
			plan_selection_clear(&s->trial, b);
			for (uint32_t v = 0; v < s->nr_vars; v++)
				set_level(s, s->vars[v], level[i], over);
			judge(s);
		}
	free(level);
}

/* ---- local moves ---- */

/* Sets, judges; undoes it unless it is the new best.  True if it is. */
static bool try_move(struct search *s, const struct plan_ranked *off,
	const struct plan_ranked *on)
{
	uint64_t before = s->best->off;
	bool fitted = s->best->peak <= s->b->limit;
	uint64_t peak = s->best->peak;

	if (off)
		plan_selection_set(&s->trial, off, false);
	if (on)
		plan_selection_set(&s->trial, on, true);
	judge(s);
	s->moves++;
	if (s->best->off != before || s->best->peak != peak ||
	    (s->best->peak <= s->b->limit) != fitted)
		return true;
	if (off)
		plan_selection_set(&s->trial, off, true);
	if (on)
		plan_selection_set(&s->trial, on, false);
	return false;
}

/* The last tensor that layer i gives, or the first it keeps. */
static const struct plan_ranked *edge(const struct search *s, uint32_t i,
	bool given)
{
	const struct plan_budget_layer *l = &s->b->layers[i];
	uint32_t n = 0;

	while (n < l->nr && s->trial.on[l->ranked[n].at])
		n++;
	if (given)
		return n > 0 ? &l->ranked[n - 1] : NULL;
	return n < l->nr ? &l->ranked[n] : NULL;
}

/* Layers give less, one tensor at a time, where the budget allows. */
static void descend_layers(struct search *s)
{
	const struct plan_ranked *r;
	bool again = true;

	plan_selection_copy(&s->trial, s->best, s->b);
	while (again && !s->err && s->moves < MOST_MOVES) {
		again = false;
		for (uint32_t v = s->nr_vars; v-- > 0 && !s->err;) {
			r = edge(s, s->vars[v], true);
			while (r && try_move(s, r, NULL)) {
				again = true;
				r = edge(s, s->vars[v], true);
			}
		}
	}
}

/* One layer gives less, another more. */
static void exchange_layers(struct search *s)
{
	const struct plan_ranked *off, *on;

	for (uint32_t n = 0; n < 8 * s->nr_vars && n < 1000 && !s->err &&
	     s->moves < MOST_MOVES; n++) {
		off = edge(s, s->vars[plan_random_below(&s->random,
			s->nr_vars)], true);
		on = edge(s, s->vars[plan_random_below(&s->random,
			s->nr_vars)], false);
		if (off && on && off->layer != on->layer &&
		    on->t->size_bytes < off->t->size_bytes)
			try_move(s, off, on);
	}
}

static double energy(struct search *s)
{
	double over = 0;

	judge(s);
	if (s->trial.peak > s->b->limit)
		over = (double)(s->trial.peak - s->b->limit);
	return (double)s->trial.off + 3 * over;
}

/* Any tensor off; or off and a smaller one on. */
static void descend_tensors(struct search *s)
{
	const struct plan_budget *b = s->b;
	const struct plan_ranked *p, *q;

	plan_selection_copy(&s->trial, s->best, b);
	for (uint32_t k = 0; k < b->nr && !s->err && s->moves < MOST_MOVES;
	     k++)
		if (s->trial.on[k])
			try_move(s, &b->ranked[k], NULL);
	for (uint32_t n = 0; n < 8 * b->nr && n < 2000 && !s->err &&
	     s->moves < 2 * MOST_MOVES; n++) {
		p = &b->ranked[plan_random_below(&s->random, b->nr)];
		q = &b->ranked[plan_random_below(&s->random, b->nr)];
		if (s->trial.on[p->at] && !s->trial.on[q->at] &&
		    q->t->size_bytes < p->t->size_bytes)
			try_move(s, p, q);
	}
}

/*
 * Annealing over sets: flips and exchanges, bytes above the budget counted
 * thrice.  What it passes that is better than the best is kept by judge().
 */
static void anneal_tensors(struct search *s)
{
	const struct plan_budget *b = s->b;
	const double cool = exp(log(1e-4) / ANNEAL_STEPS);
	double heat = 0.01 * (double)b->total_bytes, at, next;
	const struct plan_ranked *p, *q;
	bool was_p, was_q;

	plan_selection_copy(&s->trial, s->best, b);
	at = energy(s);
	for (uint32_t n = 0; n < ANNEAL_STEPS && !s->err; n++, heat *= cool) {
		p = &b->ranked[plan_random_below(&s->random, b->nr)];
		q = p;
		if (n % 2)
			q = &b->ranked[plan_random_below(&s->random, b->nr)];
		was_p = s->trial.on[p->at];
		was_q = s->trial.on[q->at];
		if (p != q && was_p == was_q)
			continue;
		plan_selection_set(&s->trial, p, !was_p);
		if (p != q)
			plan_selection_set(&s->trial, q, !was_q);
		next = energy(s);
		if (next <= at || plan_random_unit(&s->random) <
		    exp((at - next) / heat)) {
			at = next;
			continue;
		}
		plan_selection_set(&s->trial, p, was_p);
		plan_selection_set(&s->trial, q, was_q);
	}
}

/* ---- least waiting instead of fewest bytes ---- */

/* Time by which the layer's transfer outlasts the layer before. */
static double wait_of(const struct plan_budget *b, uint32_t layer,
	uint64_t bytes)
{
	double ms = plan_bytes_to_duration(b->ip, (double)bytes) -
		b->in->layers[layer - 1].duration_ms;

	return ms > 0 ? ms : 0;
}

/* The waiting that setting p and q would add. */
static double more_wait(const struct search *s, const struct plan_ranked *p,
	const struct plan_ranked *q)
{
	const uint64_t *bytes = s->trial.bytes;
	uint64_t was = bytes[p->layer], is = was;
	double more;

	is += s->trial.on[p->at] ? -p->t->size_bytes : p->t->size_bytes;
	if (p != q && p->layer == q->layer)
		is += s->trial.on[q->at] ? -q->t->size_bytes :
			q->t->size_bytes;
	more = wait_of(s->b, p->layer, is) - wait_of(s->b, p->layer, was);
	if (p->layer == q->layer)
		return more;
	was = is = bytes[q->layer];
	is += s->trial.on[q->at] ? -q->t->size_bytes : q->t->size_bytes;
	return more + wait_of(s->b, q->layer, is) -
		wait_of(s->b, q->layer, was);
}

static double over_budget_ms(const struct search *s)
{
	if (s->trial.peak <= s->b->limit)
		return 0;
	return plan_bytes_to_duration(s->b->ip,
		3.0 * (double)(s->trial.peak - s->b->limit));
}

enum plan_status plan_budget_search_overhead(const struct plan_budget *b,
	struct plan_selection *best)
{
	const double cool = exp(log(1e-4) / OVERHEAD_STEPS);
	double wait = 0, least, heat, more, over, next;
	const struct plan_ranked *p, *q;
	struct search s;

	if (!b->ip || !b->nr)
		return PLAN_OK;
	s.err = search_init(&s, b, best);
	if (s.err)
		return s.err;
	plan_selection_copy(&s.trial, best, b);
	for (uint32_t i = 1; i < b->in->nr_layers; i++)
		wait += wait_of(b, i, best->bytes[i]);
	least = best->peak <= b->limit ? wait : INFINITY;
	heat = 0.002 * wait;
	over = over_budget_ms(&s);
	for (uint32_t n = 0; n < OVERHEAD_STEPS && heat > 0 && !s.err;
	     n++, heat *= cool) {
		p = &b->ranked[plan_random_below(&s.random, b->nr)];
		q = n % 4 ? &b->ranked[plan_random_below(&s.random, b->nr)] :
			p;
		if (p != q && s.trial.on[p->at] == s.trial.on[q->at])
			continue;
		more = more_wait(&s, p, q);
		/* No need for the peak to know that this is too long. */
		if (more > 20 * heat + over)
			continue;
		plan_selection_set(&s.trial, p, !s.trial.on[p->at]);
		if (p != q)
			plan_selection_set(&s.trial, q, !s.trial.on[q->at]);
		s.err = plan_budget_peak(b, &s.trial);
		next = over_budget_ms(&s);
		if (more + next - over <= 0 || plan_random_unit(&s.random) <
		    exp((over - next - more) / heat)) {
			wait += more;
			over = next;
			if (over <= 0 && wait < least) {
				least = wait;
				plan_selection_copy(best, &s.trial, b);
			}
			continue;
		}
		plan_selection_set(&s.trial, p, !s.trial.on[p->at]);
		if (p != q)
			plan_selection_set(&s.trial, q, !s.trial.on[q->at]);
	}
	return s.err;
}

/* ---- differential evolution ---- */

static double layers_value(void *ctx, const double *x)
{
	struct search *s = ctx;

	for (uint32_t v = 0; v < s->nr_vars; v++)
		set_level(s, s->vars[v], (uint64_t)(x[v] *
			(double)s->b->layers[s->vars[v]].bytes + 0.5), true);
	return judge(s);
}

static double tensors_value(void *ctx, const double *x)
{
	struct search *s = ctx;

	for (uint32_t k = 0; k < s->b->nr; k++)
		plan_selection_set(&s->trial, &s->b->ranked[k], x[k] > 0.5);
	return judge(s);
}

struct caps {
	uint32_t pop, epoch, stall;
};

static uint32_t least(int a, uint32_t b)
{
	return (uint32_t)a < b ? (uint32_t)a : b;
}

/* Runs it on members of nr coordinates in [0,1]; judge() keeps the best. */
static void evolve(struct search *s, uint32_t nr, plan_value_fn *value,
	bool integral, struct caps caps, double tolerance,
	void (*fill)(struct search *s, uint32_t member, double *x))
{
	struct plan_search de = { .nr = nr, .value = value, .ctx = s,
		.pop = least(s->b->p->pop_size, caps.pop),
		.epochs = least(s->b->p->epoch, caps.epoch),
		.stall = least(s->b->p->max_early_stop, caps.stall),
		.seed = s->b->p->seed, .tolerance = tolerance };
	double *mem, *lo, *hi, *best, *pop, got;
	bool *whole = calloc(nr, sizeof(*whole));

	if (de.pop < 5)
		de.pop = 5;
	mem = calloc((size_t)nr * (3 + de.pop), sizeof(*mem));
	if (mem && whole) {
		lo = mem;
		hi = lo + nr;
		best = hi + nr;
		pop = best + nr;
		for (uint32_t i = 0; i < nr; i++) {
			hi[i] = 1;
			whole[i] = integral;
		}
		de.lo = lo;
		de.hi = hi;
		de.integral = whole;
		for (uint32_t m = 0; m < de.pop; m++)
			fill(s, m, pop + (size_t)m * nr);
		s->err = s->err ? s->err : plan_search_de(&de, pop, best, &got);
	} else {
		s->err = PLAN_NO_MEMORY;
	}
	free(mem);
	free(whole);
}

static void fill_layers(struct search *s, uint32_t member, double *x)
{
	for (uint32_t v = 0; v < s->nr_vars; v++) {
		uint32_t i = s->vars[v];

		if (member == 0)
			x[v] = (double)s->best->bytes[i] /
				(double)s->b->layers[i].bytes;
		else if (member < 3)
			x[v] = member == 1;
		else
			x[v] = plan_random_unit(&s->random);
	}
}

static void fill_tensors(struct search *s, uint32_t member, double *x)
{
	double density = 0.05 + 0.55 * plan_random_unit(&s->random);

	for (uint32_t k = 0; k < s->b->nr; k++) {
		if (member == 0)
			x[k] = s->best->on[k];
		else
			x[k] = member == 1 ||
				plan_random_unit(&s->random) < density;
	}
}

enum plan_status plan_budget_search_layers(const struct plan_budget *b,
	struct plan_selection *best)
{
	static const struct caps small = { 8, 12, 5 }, middle = { 10, 20, 7 },
		large = { 10, 25, 8 }, huge = { 10, 20, 8 };
	struct search s;
	enum plan_status err;

	err = search_init(&s, b, best);
	if (err || !s.nr_vars)
		return err;
	evolve(&s, s.nr_vars, layers_value, false,
		s.nr_vars <= 8 ? small : s.nr_vars <= 24 ? middle :
		s.nr_vars <= 48 ? large : huge,
		s.nr_vars <= 24 ? 0.05 : 0.01, fill_layers);
	try_levels(&s);
	descend_layers(&s);
	exchange_layers(&s);
	descend_layers(&s);
	return s.err;
}

/* Every set of a few candidates. */
static void try_all(struct search *s)
{
	for (uint32_t mask = 0; mask < 1u << s->b->nr; mask++) {
		for (uint32_t k = 0; k < s->b->nr; k++)
			plan_selection_set(&s->trial, &s->b->ranked[k],
				mask >> k & 1);
		judge(s);
	}
}

enum plan_status plan_budget_search_tensors(const struct plan_budget *b,
	struct plan_selection *best)
{
	static const struct caps few = { 12, 25, 8 }, some = { 16, 40, 12 },
		many = { 14, 30, 10 }, most = { 10, 15, 6 };
	struct search s;
	enum plan_status err;

	err = search_init(&s, b, best);
	if (err || !s.nr_vars)
		return err;
	if (b->nr <= EXACT_CANDIDATES) {
		try_all(&s);
		return s.err;
	}
	try_levels(&s);
	descend_layers(&s);
	evolve(&s, b->nr, tensors_value, true,
		b->nr >= 10000 ? most : b->nr >= 1000 ? many :
		b->nr >= 100 ? some : few, b->nr >= 1000 ? 0.05 : 0.01,
		fill_tensors);
	anneal_tensors(&s);
	descend_tensors(&s);
	return s.err;
}
