/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mode of `optimal` without a budget: the least memory that costs no time.
 * Bisection on the bytes that residents give up.  A choice that loses anything
 * is of no interest: each trial ends at the first sign of a loss, and each step
 * at the first choice without one.  Called by optimal.c.  Pure; no locks.
 */
#include "planner/optimal_int.h"

#include <math.h>

#define MOST_SIZES 24
#define CLIMB 1500000	/* nodes visited beyond the bisection */

/* What lost nothing last time is the first guess for the next. */
struct guess {
	uint32_t ring;
	enum optimal_seed seed;
};

/* One ring size, the guessed seed first. */
static bool try_size(struct search *s, const struct guess *g, uint64_t ring)
{
	if (optimal_try_seed(s, ring, g->seed))
		return true;
	for (uint32_t seed = 0; seed < SEED_FLUID; seed++)
		if (seed != g->seed && optimal_try_seed(s, ring, seed))
			return true;
	return false;
}

/* Sizes from the guess upwards, then those below it, down. */
static bool try_sizes(struct search *s, const struct guess *g,
	const struct optimal_range *range)
{
	uint64_t sizes[2 * MOST_SIZES];
	uint32_t nr = optimal_ring_sizes(s, range, MOST_SIZES, sizes);
	uint32_t from = 0;

	while (from < nr && sizes[from] < g->ring)
		from++;
	for (uint32_t i = from; i < nr; i++)
		if (try_size(s, g, sizes[i]))
			return true;
	for (uint32_t i = from; i > 0; i--)
		if (try_size(s, g, sizes[i - 1]))
			return true;
	return false;
}

static bool try_blocks(struct search *s)
{
	for (uint32_t k = 2; k <= 4; k++)
		if (optimal_try_blocks(s, k, s->m->chunk))
			return true;
	return false;
}

/*
 * Is there a choice without loss that frees `need`?  It is in s->top: the first
 * one found if there is a guess, else the one that streams least.
 */
static bool can_free(struct search *s, uint64_t need, struct guess *g)
{
	struct optimal_range range;
	bool found, blocks = g && g->ring == 0;

	s->need = need;
	s->any = g != NULL;
	s->nr_top = 0;
	if (!optimal_range(s->m, need, s->m->chunk, 0, &range))
		/* One block, in bytes if chunks are too coarse. */
		return optimal_try_blocks(s, 1, s->m->chunk) ||
			optimal_try_blocks(s, 1, 1);
	found = blocks && try_blocks(s);
	if (!found && g)
		found = try_sizes(s, g, &range);
	else if (!found)
		found = optimal_try_rings(s, &range, MOST_SIZES);
	found = found || (!blocks && try_blocks(s));
	if (found && g) {
		const struct optimal_choice *c = &s->top[0];

		g->ring = c->chunk == s->m->chunk ? c->ring : 0;
		g->seed = c->seed;
	}
	return found;
}

static uint64_t bisect(struct search *s, uint64_t most, struct guess *g)
{
	uint64_t low = 0, high = most;

	/* In steps of a part of a chunk: sizes are no multiples of one. */
	while (high - low > s->m->chunk / 8) {
		uint64_t mid = low + (high - low + 1) / 2;

		if (can_free(s, mid, g))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/*
 * What can be freed has gaps, as turns of the ring come out even or not, and
 * the bisection may have stopped below one.
 */
static uint64_t climb(struct search *s, uint64_t low, uint64_t most,
	struct guess *g)
{
	uint64_t step = s->m->chunk;

	s->work = CLIMB;
	while (s->work > 0 && step <= low / 32 && step <= most - low) {
		if (can_free(s, low + step, g)) {
			low += step;
			step = s->m->chunk;
		} else {
			step *= 2;
		}
	}
	return low;
}

enum plan_status optimal_latency(const struct optimal_model *m, uint64_t most,
	struct optimal_choice *best)
{
	struct plan_arena *scratch = plan_arena_create();
	struct search *s = scratch ?
		plan_arena_alloc(scratch, 1, sizeof(*s)) : NULL;
	enum plan_status status = s ? optimal_search_init(s, m, 0, scratch) :
		PLAN_NO_MEMORY;
	struct guess g = { 1, SEED_LEVEL };
	uint64_t need;

	best->streamed = 0;
	best->period_ms = m->compute_ms;
	if (status == PLAN_OK) {
		s->limit = m->compute_ms * (1 + 1e-12);
		need = climb(s, bisect(s, most, &g), most, &g);
		if (need > 0 && can_free(s, need, NULL))
			optimal_choice_copy(best,
				&s->top[optimal_shortest(s)], m->nr);
	}
	plan_arena_destroy(scratch);
	return status;
}
