/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second half of the search of `optimal`: from the choices that the seeds
 * left, pads at other layers, then random moves of bytes, pads and the ring's
 * size, most of them along the cycle that sets the period.  Called by
 * optimal_search.c.  Pure; no locks.
 */
#include "planner/optimal_int.h"

#include <math.h>
#include <string.h>

#define CLOSE 0.0002	/* a gap that is not worth more search */
#define SLACK 0.003	/* what a step may lose */

static uint32_t pick(struct search *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)((s->random >> 32) * below >> 32);
}

/* The layers whose copies lie on the cycle that set the last period. */
static void note_critical(struct search *s)
{
	const uint32_t *nodes;
	uint32_t nr = cycle_critical(s->trial.cycle, &nodes);

	s->nr_critical = 0;
	for (uint32_t i = 0; i < nr && s->nr_critical < s->m->nr; i++)
		if (nodes[i] >= s->m->nr)
			s->critical[s->nr_critical++] =
				s->trial.copies[nodes[i] - s->m->nr].layer;
}

static bool move_pads(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, from = pick(s, nr), to = pick(s, nr), n = 0;

	while (c->pads[from] == 0) {
		from = from + 1 < nr ? from + 1 : 0;
		if (++n == nr)
			return false;
	}
	n = c->pads[from];
	if (pick(s, 2))
		n = (n + 1) / 2;
	if (from == to)
		return false;
	c->pads[from] -= n;
	c->pads[to] += n;
	return true;
}

static uint64_t sum_of_pads(const struct search *s,
	const struct optimal_choice *c)
{
	uint64_t pads = 0;

	for (uint32_t i = 0; i < s->m->nr; i++)
		pads += c->pads[i];
	return pads;
}

/*
 * Other addresses for the layers of a part of the iteration: pads before it,
 * and around the ring back to where the next part was.  Any address can be had.
 */
static bool move_addresses(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, from = pick(s, nr), to, by;

	if (c->ring < 2 || c->unit != c->chunk ||
		!optimal_few_turns(s, c, optimal_positions(s, c)))
		return false;
	to = (from + 1 + (pick(s, 2) ? 0 : pick(s, nr))) % nr;
	if (from == to)
		return false;
	by = 1 + pick(s, c->ring - 1);
	if (pick(s, 4)) {
		by = 1u << pick(s, 7);
		if (by >= c->ring)
			return false;
		if (pick(s, 2))
			by = c->ring - by;
	}
	c->pads[from] = (uint32_t)(((uint64_t)c->pads[from] + by) % c->ring);
	c->pads[to] = (uint32_t)(((uint64_t)c->pads[to] + c->ring - by) %
		c->ring);
	return sum_of_pads(s, c) <= PLAN_MOST_PADS * optimal_positions(s, c);
}

static bool move_bytes(struct search *s, struct optimal_choice *c)
{
	const struct optimal_model *m = s->m;
	uint32_t nr = m->nr, from, to = pick(s, nr);
	uint64_t units, all, cap, have, left, got;

	if (s->nr_critical > 0 && pick(s, 4)) {
		uint32_t back = pick(s, 3);

		from = s->critical[pick(s, s->nr_critical)];
		if (pick(s, 3) == 0)
			from = (from + nr - back) % nr;
	} else {
		from = pick(s, nr);
	}
	if (from == to || c->bytes[from] == 0)
		return false;
	all = (c->bytes[from] + c->unit - 1) / c->unit;
	units = pick(s, 4) ? 1ull << pick(s, 12) : all;
	if (units > all)
		units = all;
	cap = m->bytes[to] < c->most ? m->bytes[to] : c->most;
	have = (c->bytes[to] + c->unit - 1) / c->unit;
	cap = (cap + c->unit - 1) / c->unit;
	if (units > cap - have)
		units = cap - have;
	/* Blocks: a layer more or less would shift all that follow. */
	if (units == 0 || (c->unit != c->chunk &&
		(units == all || have == 0)))
		return false;
	left = (all - units) * c->unit;
	got = (have + units) * c->unit;
	cap = m->bytes[to] < c->most ? m->bytes[to] : c->most;
	if (got > cap)
		got = cap;
	c->streamed += left + got - c->bytes[from] - c->bytes[to];
	c->bytes[from] = left;
	c->bytes[to] = got;
	return c->streamed >= s->need + c->ring * c->chunk;
}

/* All pads before one layer: the one that had most, or any. */
static void gather_pads(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, at = pick(s, nr), most = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (c->pads[i] > most) {
			most = c->pads[i];
			at = i;
		}
		c->pads[i] = 0;
	}
	c->pads[at] = (uint32_t)optimal_pads(c, optimal_positions(s, c));
}

/*
 * After the ring has changed from `old`: layers keep their distance from the one
 * before, and one of them makes up the difference.
 */
static void keep_pads(struct search *s, struct optimal_choice *c, uint32_t old)
{
	uint32_t nr = s->m->nr, at = pick(s, nr);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t back = c->pads[i] > old / 2 ? old - c->pads[i] : 0;

		if (back > 0)
			c->pads[i] = c->ring - back % c->ring;
		c->pads[i] %= c->ring;
		if (i != at)
			sum += c->pads[i];
	}
	c->pads[at] = (uint32_t)optimal_pads(c, optimal_positions(s, c) + sum);
}

/* Another ring size; layers give or take what the pool needs. */
static bool move_ring(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, step = 1u << pick(s, 7), old = c->ring;
	bool keeps = sum_of_pads(s, c) >= c->ring;
	uint64_t want;

	if (c->unit != c->chunk || (step >= c->ring && step > 1))
		return false;
	if (pick(s, 2))
		c->ring += step;
	else if (c->ring > step)
		c->ring -= step;
	else
		return false;
	c->most = c->ring * c->chunk;
	want = s->need + c->most;
	for (uint32_t i = 0; i < nr; i++)
		if (c->bytes[i] > c->most) {
			c->streamed -= c->bytes[i] - c->most;
			c->bytes[i] = c->most;
		}
	for (uint32_t n = 0; n < 8 * nr && c->streamed < want; n++) {
		uint32_t i = pick(s, nr);
		uint64_t cap = s->m->bytes[i] < c->most ? s->m->bytes[i] :
			c->most, more;

		more = (want - c->streamed) / (1 + pick(s, 4)) / c->chunk *
			c->chunk + c->chunk;
		if (c->bytes[i] % c->chunk != 0)
			continue;
		if (more > cap - c->bytes[i])
			more = cap - c->bytes[i];
		c->bytes[i] += more;
		c->streamed += more;
	}
	for (uint32_t n = 0; n < nr && c->streamed >= want + c->chunk; n++) {
		uint32_t i = pick(s, nr);
		uint64_t less = (c->streamed - want) / c->chunk * c->chunk;

		if (c->bytes[i] % c->chunk != 0)
			continue;
		if (less > c->bytes[i])
			less = c->bytes[i];
		c->bytes[i] -= less;
		c->streamed -= less;
	}
	if (keeps)
		keep_pads(s, c, old);
	else
		gather_pads(s, c);
	return c->streamed >= want;
}

static bool move(struct search *s, struct optimal_choice *c)
{
	switch (pick(s, 8)) {
	case 0:
		return move_ring(s, c);
	case 1:
		return move_pads(s, c);
	case 2:
		return pick(s, 2) ? move_pads(s, c) : move_addresses(s, c);
	default:
		return move_bytes(s, c);
	}
}

/*
 * Random moves on one choice.  At first steps that lose a little are taken too;
 * the best choice seen is left in c.
 */
static void improve(struct search *s, struct optimal_choice *c, uint32_t trials)
{
	uint32_t nr = s->m->nr;

	optimal_choice_copy(&s->now, c, nr);
	optimal_try(s, INFINITY);
	note_critical(s);
	optimal_choice_copy(&s->at, &s->now, nr);
	for (uint32_t i = 0; i < trials && s->work > 0; i++) {
		double slack = SLACK * (1 - (double)i / trials), limit;

		optimal_choice_copy(&s->now, &s->at, nr);
		if (!move(s, &s->now))
			continue;
		limit = s->at.period_ms * (1 + 1e-13);
		if (limit < c->period_ms * (1 + slack))
			limit = c->period_ms * (1 + slack);
		optimal_try(s, limit);
		if (s->now.period_ms > limit)
			continue;
		note_critical(s);
		optimal_choice_copy(&s->at, &s->now, nr);
		if (optimal_better(s, &s->now, c))
			optimal_choice_copy(c, &s->now, nr);
		if (optimal_lossless(s, c->period_ms) ||
			c->period_ms < s->bound_ms * (1 + CLOSE))
			return;
	}
}

/* All pads before one layer, at up to 24 of them. */
static void scan_pads(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, step = nr > 24 ? nr / 24 : 1, pads;

	pads = (uint32_t)(sum_of_pads(s, c) % c->ring);
	if (pads == 0)
		return;
	for (uint32_t i = 0; i < nr; i += step) {
		optimal_choice_copy(&s->now, c, nr);
		memset(s->now.pads, 0, nr * sizeof(*s->now.pads));
		s->now.pads[i] = pads;
		optimal_try(s, c->period_ms * (1 - 1e-12));
		if (s->now.period_ms < c->period_ms)
			optimal_choice_copy(c, &s->now, nr);
	}
}

uint32_t optimal_shortest(const struct search *s)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < s->nr_top; i++)
		if (optimal_better(s, &s->top[i], &s->top[best]))
			best = i;
	return best;
}

void optimal_moves(struct search *s)
{
	uint32_t best;

	for (uint32_t i = 0; i < s->nr_top; i++)
		scan_pads(s, &s->top[i]);
	for (uint32_t i = 0; i < s->nr_top; i++)
		improve(s, &s->top[i], 300);
	/* What is left goes to the best. */
	best = optimal_shortest(s);
	if (s->nr_top > 0 && !optimal_lossless(s, s->top[best].period_ms))
		improve(s, &s->top[best], 3000);
}
