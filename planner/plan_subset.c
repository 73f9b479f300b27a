/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which tensors of a layer fit a transfer window: by bytes, or by load times.
 * Called by the knapsack and tensor selection strategies.
 *
 * The published pickers take the best of two or three first-fit rules and, for
 * more than five candidates, search on at random.  Here that search is a branch
 * and bound over groups of equal tensors: exact unless it would take more than
 * MOST_NODES steps, and never worse than the rules it starts from.
 */
#include "planner/plan_int.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES 50000

/* One tensor, or (in groups) several with the same weight and profit. */
struct item {
	uint64_t weight, profit;
	uint32_t index, count;
};

struct pack {
	struct item *items;
	uint32_t nr;
	uint64_t cap;
	/* profit and weight of items i.., for bounds */
	uint64_t *rest_profit, *rest_weight;
	uint32_t *take, *best_take;
	uint64_t best;		/* profit */
	uint64_t goal;		/* no need to look further */
	uint32_t nodes;
};

static int more_profit(const void *a, const void *b)
{
	const struct item *p = a, *q = b;

	if (p->profit != q->profit)
		return p->profit > q->profit ? -1 : 1;
	return (p->index > q->index) - (p->index < q->index);
}

static int less_weight(const void *a, const void *b)
{
	const struct item *p = a, *q = b;

	if (p->weight != q->weight)
		return p->weight < q->weight ? -1 : 1;
	return (p->index > q->index) - (p->index < q->index);
}

/* An item without weight counts as worthless, as published. */
static double ratio(const struct item *i)
{
	return i->weight ? (double)i->profit / (double)i->weight : 0;
}

static int more_ratio(const void *a, const void *b)
{
	const struct item *p = a, *q = b;
	double x = ratio(p), y = ratio(q);

	if (x != y)
		return x > y ? -1 : 1;
	return (p->index > q->index) - (p->index < q->index);
}

/* Weightless first, then by ratio; equals together. */
static int for_search(const void *a, const void *b)
{
	const struct item *p = a, *q = b;
	double x = ratio(p), y = ratio(q);

	if (!p->weight != !q->weight)
		return p->weight ? 1 : -1;
	if (x != y)
		return x > y ? -1 : 1;
	return more_profit(a, b);
}

/* Takes what fits, in order; returns the profit, marks[index] tells which. */
static uint64_t first_fit(const struct pack *k, bool *marks)
{
	uint64_t weight = 0, profit = 0;

	memset(marks, 0, k->nr * sizeof(*marks));
	for (uint32_t i = 0; i < k->nr; i++)
		if (k->items[i].weight <= k->cap - weight) {
			weight += k->items[i].weight;
			profit += k->items[i].profit;
			marks[k->items[i].index] = true;
		}
	return profit;
}

static void pack_from(struct pack *k, uint32_t g, uint64_t weight,
	uint64_t profit)
{
	const struct item *i = &k->items[g];
	uint64_t left = k->cap - weight, most;

	if (profit > k->best) {
		k->best = profit;
		memcpy(k->best_take, k->take, k->nr * sizeof(*k->take));
	}
	if (g == k->nr || k->best >= k->goal || ++k->nodes > MOST_NODES ||
	    profit + k->rest_profit[g] <= k->best)
		return;
	/* Not all of it fits: what does is worth at most this item's ratio. */
	if (i->weight && k->rest_weight[g] > left &&
	    (double)profit + (double)left * ratio(i) < (double)k->best + 0.5)
		return;
	most = i->weight && left / i->weight < i->count ? left / i->weight :
		i->count;
	for (uint64_t c = most + 1; c-- > 0;) {
		k->take[g] = (uint32_t)c;
		pack_from(k, g + 1, weight + c * i->weight,
			profit + c * i->profit);
	}
	k->take[g] = 0;
}

/* Merges equals, then searches; marks by index if it found better. */
static void search(struct pack *k, uint32_t *first, uint32_t *next, bool *marks)
{
	uint32_t nr = k->nr, groups = 0, before = 0;
	uint64_t start = k->best;

	qsort(k->items, nr, sizeof(*k->items), for_search);
	/* Members of a group: a list through next, in order of index. */
	for (uint32_t i = 0; i < nr; i++) {
		struct item *g = &k->items[groups ? groups - 1 : 0];

		next[k->items[i].index] = PLAN_NONE;
		if (groups && g->weight == k->items[i].weight &&
		    g->profit == k->items[i].profit) {
			g->count++;
			next[before] = k->items[i].index;
		} else {
			k->items[groups] = k->items[i];
			k->items[groups].count = 1;
			first[groups++] = k->items[i].index;
		}
		before = k->items[i].index;
	}
	k->nr = groups;
	k->rest_profit[groups] = k->rest_weight[groups] = 0;
	for (uint32_t g = groups; g-- > 0;) {
		k->rest_profit[g] = k->rest_profit[g + 1] +
			k->items[g].count * k->items[g].profit;
		k->rest_weight[g] = k->rest_weight[g + 1] +
			k->items[g].count * k->items[g].weight;
	}
	memset(k->take, 0, groups * sizeof(*k->take));
	pack_from(k, 0, 0, 0);
	if (k->best == start)
		return;
	memset(marks, 0, nr * sizeof(*marks));
	for (uint32_t g = 0; g < groups; g++)
		for (uint32_t i = first[g], c = 0; c < k->best_take[g];
		     c++, i = next[i])
			marks[i] = true;
}

/* The common part: rules in order, the earliest best one; then the search. */
static enum plan_status pick_best(struct pack *k, const struct plan_pick *from,
	int (*const *rules)(const void *, const void *), bool greedy,
	struct plan_pick *out)
{
	uint32_t nr = from->nr, *first, *next;
	bool *marks, *trial;
	uint64_t profit;

	first = malloc(nr * sizeof(*first));
	next = malloc(nr * sizeof(*next));
	marks = malloc(2 * nr * sizeof(*marks));
	k->take = malloc(2 * nr * sizeof(*k->take));
	k->rest_profit = malloc(2 * (nr + 1) * sizeof(*k->rest_profit));
	if (!first || !next || !marks || !k->take || !k->rest_profit) {
		free(first);
		free(next);
		free(marks);
		free(k->take);
		free(k->rest_profit);
		return PLAN_NO_MEMORY;
	}
	trial = marks + nr;
	k->best_take = k->take + nr;
	k->rest_weight = k->rest_profit + nr + 1;
	for (uint32_t r = 0; rules[r]; r++) {
		qsort(k->items, nr, sizeof(*k->items), rules[r]);
		profit = first_fit(k, trial);
		if (r == 0 || profit > k->best) {
			k->best = profit;
			memcpy(marks, trial, nr * sizeof(*marks));
		}
	}
	if (!greedy && nr > PLAN_GREEDY_CANDIDATES)
		search(k, first, next, marks);
	for (uint32_t i = 0; i < nr; i++)
		if (marks[i]) {
			out->at[out->nr++] = from->at[i];
			out->bytes += from->at[i]->size_bytes;
		}
	free(first);
	free(next);
	free(marks);
	free(k->take);
	free(k->rest_profit);
	return PLAN_OK;
}

static uint64_t divisor(uint64_t a, uint64_t b)
{
	uint64_t c;

	while (b) {
		c = a % b;
		a = b;
		b = c;
	}
	return a;
}

enum plan_status plan_subset_bytes(const struct plan_pick *from, double cap,
	bool greedy, struct plan_arena *arena, struct plan_pick *out)
{
	/* The published order: larger first, and that wins ties. */
	static int (*const rules[])(const void *, const void *) = {
		more_profit, less_weight, NULL };
	struct pack k = { .nr = from->nr };
	enum plan_status err;
	uint64_t unit = 0;

	memset(out, 0, sizeof(*out));
	if (!from->nr || !(cap >= 0))
		return PLAN_OK;
	out->at = plan_arena_alloc(arena, from->nr, sizeof(*out->at));
	if (!out->at)
		return PLAN_NO_MEMORY;
	if ((double)from->bytes <= cap) {
		memcpy(out->at, from->at, from->nr * sizeof(*out->at));
		out->nr = from->nr;
		out->bytes = from->bytes;
		return PLAN_OK;
	}
	k.items = malloc(from->nr * sizeof(*k.items));
	if (!k.items)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < from->nr; i++) {
		k.items[i].weight = k.items[i].profit = from->at[i]->size_bytes;
		k.items[i].index = i;
		unit = divisor(unit, from->at[i]->size_bytes);
	}
	/* All sizes are multiples of unit, so their sums are too. */
	k.cap = (uint64_t)cap;
	k.goal = unit ? k.cap / unit * unit : 0;
	err = pick_best(&k, from, rules, greedy, out);
	free(k.items);
	return err;
}

enum plan_status plan_subset_time(const struct plan_pick *from, int64_t cap,
	bool greedy, struct plan_arena *arena, struct plan_pick *out)
{
	static int (*const rules[])(const void *, const void *) = {
		more_ratio, less_weight, more_profit, NULL };
	struct pack k = { .nr = from->nr, .goal = UINT64_MAX };
	enum plan_status err;
	double ns, sum = 0;

	memset(out, 0, sizeof(*out));
	if (!from->nr || cap < 0)
		return PLAN_OK;
	out->at = plan_arena_alloc(arena, from->nr, sizeof(*out->at));
	k.items = malloc(from->nr * sizeof(*k.items));
	if (!out->at || !k.items) {
		free(k.items);
		return PLAN_NO_MEMORY;
	}
	k.cap = cap;
	for (uint32_t i = 0; i < from->nr; i++) {
		ns = from->at[i]->load_time_ms * 1e6;
		/* Beyond a century it never fits. */
		k.items[i].weight = ns < 4e18 ? (uint64_t)ns : (uint64_t)4e18;
		k.items[i].profit = from->at[i]->size_bytes;
		k.items[i].index = i;
		sum += (double)k.items[i].weight;
	}
	if (sum < 4e18) {
		uint64_t weight = 0;

		for (uint32_t i = 0; i < from->nr; i++)
			weight += k.items[i].weight;
		if (weight <= k.cap)
			k.cap = weight;
	}
	err = pick_best(&k, from, rules, greedy, out);
	free(k.items);
	return err;
}
