/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest mean cycle of a timeline (cycle.h).  For a trial period p every
 * arc weighs its time less p for each lap.  Relaxing from one node either
 * settles, then no cycle is longer than p, or leaves a loop in the tree of
 * predecessors, whose mean is the next trial.  Pure; no locks.
 */
#include "planner/cycle.h"

#include <math.h>
#include <string.h>

#define NO_NODE UINT32_MAX
#define MAX_TRIALS 1000

/* Where a node's arc comes from, and how many laps ago. */
struct arc {
	int32_t layer;	/* -1: none */
	int32_t laps;
};

struct copy {
	struct arc after, slot;
	double ms;
};

struct cycle {
	uint32_t max_layers, max_copies;
	uint32_t nr_layers, nr_copies;
	double release_ms, total_ms, link_ms, eps;
	double trial;
	bool wrap, in_slot;
	double *duration;	/* by layer */
	int32_t *last;		/* by layer: the last copy for it, -1 none */
	uint8_t *last_laps;
	struct copy *copies;
	double *end;		/* by node */
	uint32_t *parent;	/* by node */
	uint32_t *mark;		/* by node: the walk that was here last */
	uint32_t *loop, *critical;
	uint32_t nr_loop, nr_critical;
	uint32_t walk;
	uint32_t source;
};

struct cycle *cycle_create(uint32_t max_layers, uint32_t max_copies,
	struct plan_arena *arena)
{
	struct cycle *c = plan_arena_alloc(arena, 1, sizeof(*c));
	size_t nodes = (size_t)max_layers + max_copies;

	if (!c)
		return NULL;
	c->max_layers = max_layers;
	c->max_copies = max_copies;
	c->duration = plan_arena_alloc(arena, max_layers, sizeof(double));
	c->last = plan_arena_alloc(arena, max_layers, sizeof(*c->last));
	c->last_laps = plan_arena_alloc(arena, max_layers, 1);
	c->copies = plan_arena_alloc(arena, (size_t)max_copies + 1,
		sizeof(*c->copies));
	c->end = plan_arena_alloc(arena, nodes, sizeof(double));
	c->parent = plan_arena_alloc(arena, nodes, sizeof(*c->parent));
	c->mark = plan_arena_alloc(arena, nodes, sizeof(*c->mark));
	c->loop = plan_arena_alloc(arena, nodes, sizeof(*c->loop));
	c->critical = plan_arena_alloc(arena, nodes, sizeof(*c->critical));
	if (!c->duration || !c->last || !c->last_laps || !c->copies ||
		!c->end || !c->parent || !c->mark || !c->loop || !c->critical)
		return NULL;
	return c;
}

static struct arc arc_to(int32_t layer, uint32_t nr_layers)
{
	int32_t n = (int32_t)nr_layers, laps = 0;

	if (layer == TIMELINE_ANY)
		return (struct arc){ -1, 0 };
	while (layer < 0) {
		layer += n;
		laps++;
	}
	while (layer >= n) {
		layer -= n;
		laps--;
	}
	return (struct arc){ layer, laps };
}

void cycle_load_sound(struct cycle *c, const struct timeline *t)
{
	c->nr_layers = t->nr_layers;
	c->nr_copies = t->nr_copies;
	c->release_ms = t->release_ms;
	c->wrap = t->wrap;
	c->in_slot = t->in_slot;
	c->total_ms = 0;
	c->link_ms = 0;
	for (uint32_t i = 0; i < t->nr_layers; i++) {
		c->duration[i] = t->duration_ms[i];
		c->total_ms += t->duration_ms[i];
		c->last[i] = -1;
		c->last_laps[i] = 1;
	}
	for (uint32_t j = 0; j < t->nr_copies; j++) {
		const struct timeline_copy *from = &t->copies[j];
		bool next = from->use >= (int32_t)t->nr_layers;

		c->copies[j].after = arc_to(from->after, t->nr_layers);
		c->copies[j].slot = arc_to(
			t->in_slot ? from->slot : TIMELINE_ANY, t->nr_layers);
		c->copies[j].ms = from->ms;
		c->link_ms += from->ms;
		/* One for this iteration is copied after one for the next. */
		if (!next || c->last_laps[from->layer]) {
			c->last[from->layer] = (int32_t)j;
			c->last_laps[from->layer] = next;
		}
	}
	c->eps = 1e-13 * (c->total_ms + c->link_ms);
}

/* Does layer `layer`, `laps` iterations ago, come before position `at`? */
static bool is_before(struct arc a, int64_t at, int64_t lap, uint32_t nr)
{
	return a.layer < 0 || (lap - a.laps) * nr + a.layer < at;
}

/*
 * Runs the order of events, without times, until the pattern must repeat: laps
 * reach at most a few iterations back.
 */
static bool can_run(const struct cycle *c)
{
	int64_t n = c->nr_layers, laps = 4, layer = 0, copy = 0;
	int64_t nr = c->nr_copies;

	while (layer < laps * n) {
		int64_t lap = layer / n, i = layer % n;
		int64_t need = c->last[i] < 0 ? -1 :
			(lap - c->last_laps[i]) * nr + c->last[i];

		/* What the first iteration lacks is copied before it. */
		while (copy <= need) {
			const struct copy *k = &c->copies[copy % nr];

			lap = copy / nr;
			if (!is_before(k->after, layer, lap, c->nr_layers) ||
				!is_before(k->slot, layer, lap, c->nr_layers))
				return false;
			copy++;
		}
		layer++;
	}
	return true;
}

enum plan_status cycle_load(struct cycle *c, const struct timeline *t)
{
	if (t->nr_layers > c->max_layers || t->nr_copies > c->max_copies)
		return PLAN_BAD_PLAN;
	cycle_load_sound(c, t);
	return can_run(c) ? PLAN_OK : PLAN_CONFLICT;
}

static bool relax_copy(struct cycle *c, uint32_t j, double p)
{
	const struct copy *k = &c->copies[j];
	uint32_t n = c->nr_layers, from;
	double t, u;

	from = n + (j > 0 ? j : c->nr_copies) - 1;
	t = c->end[from] - (j > 0 ? 0 : p);
	if (k->after.layer >= 0) {
		u = c->end[k->after.layer] + c->release_ms - p * k->after.laps;
		if (u > t) {
			t = u;
			from = (uint32_t)k->after.layer;
		}
	}
	if (k->slot.layer >= 0) {
		u = c->end[k->slot.layer] - c->duration[k->slot.layer] -
			p * k->slot.laps;
		if (u > t) {
			t = u;
			from = (uint32_t)k->slot.layer;
		}
	}
	if (!c->wrap && c->end[n - 1] - p > t) {
		t = c->end[n - 1] - p;
		from = n - 1;
	}
	t += k->ms;
	if (!(t > c->end[n + j] + c->eps))
		return false;
	c->end[n + j] = t;
	c->parent[n + j] = from;
	return true;
}

static bool relax_layer(struct cycle *c, uint32_t i, double p)
{
	uint32_t n = c->nr_layers, from = (i > 0 ? i : n) - 1;
	double t = c->end[from] - (i > 0 ? 0 : p);

	if (c->last[i] >= 0) {
		uint32_t k = n + (uint32_t)c->last[i];
		double u = c->end[k] - (c->last_laps[i] ? p : 0);

		if (u > t) {
			t = u;
			from = k;
		}
	}
	t += c->duration[i];
	if (!(t > c->end[i] + c->eps))
		return false;
	c->end[i] = t;
	c->parent[i] = from;
	return true;
}

/* One relaxation of every node, in the order in which things happen. */
static bool relax(struct cycle *c, double p)
{
	uint32_t j = 0;
	bool changed = false;

	for (uint32_t i = 0; i < c->nr_layers; i++) {
		if (c->last[i] >= 0 && !c->last_laps[i])
			while (j <= (uint32_t)c->last[i])
				changed |= relax_copy(c, j++, p);
		changed |= relax_layer(c, i, p);
	}
	while (j < c->nr_copies)
		changed |= relax_copy(c, j++, p);
	return changed;
}

/* Finds a loop among the predecessors; nr_loop is 0 if there is none. */
static bool find_loop(struct cycle *c)
{
	uint32_t nodes = c->nr_layers + c->nr_copies;

	c->nr_loop = 0;
	if (c->walk > UINT32_MAX / 2) {
		memset(c->mark, 0, nodes * sizeof(*c->mark));
		c->walk = 0;
	}
	/* Marks of this call lie above `old`. */
	uint32_t old = c->walk;

	for (uint32_t s = 0; s < nodes; s++) {
		uint32_t v = s;

		if (c->mark[s] > old)
			continue;
		c->walk++;
		while (v != NO_NODE && c->mark[v] <= old) {
			c->mark[v] = c->walk;
			v = c->parent[v];
		}
		if (v == NO_NODE || c->mark[v] != c->walk)
			continue;
		for (uint32_t u = v; c->nr_loop == 0 || u != v; u = c->parent[u])
			c->loop[c->nr_loop++] = u;
		return true;
	}
	return false;
}

/* Time and laps of the arc into v from its predecessor. */
static double arc_weight(const struct cycle *c, uint32_t v, int32_t *laps)
{
	uint32_t n = c->nr_layers, from = c->parent[v];
	const struct copy *k;

	*laps = 0;
	if (v < n) {
		if (from < n)
			*laps = from == n - 1 && v == 0;
		else
			*laps = c->last_laps[v];
		return c->duration[v];
	}
	k = &c->copies[v - n];
	if (from >= n) {
		*laps = v == n;
		return k->ms;
	}
	/* Of two arcs from one layer, the one that weighs more. */
	double best = -INFINITY, u;
	const double p = c->trial;

	if (k->after.layer == (int32_t)from) {
		best = c->release_ms - p * k->after.laps;
		*laps = k->after.laps;
	}
	u = -c->duration[from] - p * k->slot.laps;
	if (k->slot.layer == (int32_t)from && u > best) {
		best = u;
		*laps = k->slot.laps;
	}
	if (!c->wrap && from == n - 1 && -p > best) {
		best = -p;
		*laps = 1;
	}
	return best + p * *laps + k->ms;
}

static double loop_mean(const struct cycle *c)
{
	double sum = 0;
	int64_t laps = 0;

	for (uint32_t i = 0; i < c->nr_loop; i++) {
		int32_t l;

		sum += arc_weight(c, c->loop[i], &l);
		laps += l;
	}
	return laps > 0 ? sum / (double)laps : INFINITY;
}

static void restart(struct cycle *c)
{
	uint32_t nodes = c->nr_layers + c->nr_copies;

	for (uint32_t v = 0; v < nodes; v++) {
		c->end[v] = -INFINITY;
		c->parent[v] = NO_NODE;
	}
	c->end[c->source] = 0;
}

/* True when it settles: no cycle's mean is above p.  Else the loop is set. */
static bool settle(struct cycle *c, double p)
{
	uint32_t nodes = c->nr_layers + c->nr_copies, look = 2;

	c->trial = p;
	restart(c);
	for (uint32_t round = 1; round <= nodes + 2; round++) {
		if (!relax(c, p))
			return true;
		if (round < look)
			continue;
		if (find_loop(c))
			return false;
		look = round + 2 + round / 4;
	}
	/* Rounding alone keeps moving the ends: as good as settled. */
	return true;
}

/* The loop just found sets the period, as far as is known. */
static void keep_loop(struct cycle *c)
{
	memcpy(c->critical, c->loop, c->nr_loop * sizeof(*c->loop));
	c->nr_critical = c->nr_loop;
	c->source = c->loop[0];
}

double cycle_period(struct cycle *c, double limit)
{
	double p = c->total_ms, mean;

	c->nr_critical = 0;
	c->source = c->nr_layers - 1;
	if (c->link_ms > p) {
		p = c->link_ms;
		c->source = c->nr_layers + c->nr_copies - 1;
	}
	if (p > limit)
		return INFINITY;
	/* Most trials of a search end here: one look at the limit. */
	if (limit < INFINITY && !settle(c, limit) && loop_mean(c) > limit) {
		keep_loop(c);
		return INFINITY;
	}
	for (int trial = 0; trial < MAX_TRIALS; trial++) {
		if (settle(c, p))
			break;
		mean = loop_mean(c);
		if (!(mean > p))
			break;
		p = mean;
		keep_loop(c);
		if (p > limit)
			return INFINITY;
	}
	return p;
}

void cycle_times(struct cycle *c, double period, const double **layer_end,
	const double **copy_end)
{
	settle(c, period);
	*layer_end = c->end;
	*copy_end = c->end + c->nr_layers;
}

uint32_t cycle_critical(const struct cycle *c, const uint32_t **nodes)
{
	*nodes = c->critical;
	return c->nr_critical;
}
