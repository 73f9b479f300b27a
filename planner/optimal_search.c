/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of `optimal`: ring sizes from small to large, several ways to share
 * the streamed bytes out, then pads and single moves along the cycle that sets
 * the period.  The effort is counted in nodes visited, never in time, so that
 * the same input gives the same plan.  Called by optimal.c.  Pure; no locks.
 */
#include "planner/optimal_int.h"

#include <math.h>
#include <string.h>

#define TOP 6
/* Nodes visited by one search; large models make do with fewer. */
#define WORK(nr) ((nr) > 250 ? 220000 : 600000)
#define MAX_SIZES 400
#define CLOSE 0.0002	/* a gap that is not worth more search */
#define SLACK 0.003	/* what a step may lose */

struct search {
	const struct optimal_model *m;
	uint64_t need;
	int effort;
	struct optimal_trial trial;
	struct optimal_seeder seeder;
	struct optimal_choice now, at;
	struct optimal_choice top[TOP];	/* by period */
	uint32_t nr_top;
	uint32_t *critical, nr_critical;	/* layers */
	uint64_t random;
	int64_t work;		/* left */
	double bound_ms;	/* 0: not known */
	double fluid_pool;	/* of the bound, in chunks; 0: not known */
};

static enum plan_status search_init(struct search *s,
	const struct optimal_model *m, uint64_t need, int effort,
	struct plan_arena *arena)
{
	enum plan_status status;

	memset(s, 0, sizeof(*s));
	s->m = m;
	s->need = need;
	s->effort = effort;
	s->random = 88172645463325252u;
	status = optimal_trial_init(&s->trial, m, arena);
	if (status == PLAN_OK)
		status = optimal_seeder_init(&s->seeder, m, arena);
	if (status == PLAN_OK)
		status = optimal_choice_init(&s->now, m->nr, arena);
	if (status == PLAN_OK)
		status = optimal_choice_init(&s->at, m->nr, arena);
	for (uint32_t i = 0; i < TOP && status == PLAN_OK; i++)
		status = optimal_choice_init(&s->top[i], m->nr, arena);
	s->critical = plan_arena_alloc(arena, m->nr, sizeof(*s->critical));
	return s->critical ? status : PLAN_NO_MEMORY;
}

static uint32_t pick(struct search *s, uint32_t below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (uint32_t)((s->random >> 32) * below >> 32);
}

static bool nothing_lost(const struct search *s, double period)
{
	return period <= s->m->compute_ms * (1 + 1e-12);
}

/* Shorter; of equal ones, what streams less. */
static bool better(const struct search *s, const struct optimal_choice *a,
	const struct optimal_choice *b)
{
	if (nothing_lost(s, a->period_ms) && nothing_lost(s, b->period_ms))
		return a->streamed < b->streamed;
	if (fabs(a->period_ms - b->period_ms) <= 1e-12 * b->period_ms)
		return a->streamed < b->streamed;
	return a->period_ms < b->period_ms;
}

/* Where a choice of the same pool stands in the list, or nr_top. */
static uint32_t same_pool(const struct search *s)
{
	uint32_t i;

	for (i = 0; i < s->nr_top; i++)
		if (s->top[i].ring == s->now.ring &&
			s->top[i].chunk == s->now.chunk)
			break;
	return i;
}

/* Puts s->now into the list, one for each pool, if it belongs there. */
static void keep(struct search *s)
{
	struct optimal_choice spare;
	uint32_t from = same_pool(s), at;

	if (s->now.period_ms == INFINITY)
		return;
	if (from == s->nr_top && s->nr_top < TOP)
		s->nr_top++;
	else if (from == s->nr_top)
		from--;
	else if (!better(s, &s->now, &s->top[from]))
		return;
	at = from;
	spare = s->top[from];
	while (at > 0 && better(s, &s->now, &s->top[at - 1])) {
		s->top[at] = s->top[at - 1];
		at--;
	}
	if (at == TOP - 1 && from == at && s->nr_top == TOP &&
		!better(s, &s->now, &spare) && spare.period_ms < INFINITY) {
		s->top[at] = spare;
		return;
	}
	s->top[at] = spare;
	optimal_choice_copy(&s->top[at], &s->now, s->m->nr);
}

static double limit_of(const struct search *s)
{
	return s->nr_top == TOP ? s->top[TOP - 1].period_ms : INFINITY;
}

static void try_now(struct search *s, double limit)
{
	s->now.period_ms = optimal_trial_period(&s->trial, &s->now, limit);
	s->work -= s->m->nr + s->trial.nr_pieces;
}

static uint64_t chunks_of(const struct optimal_choice *c, uint32_t i)
{
	return (c->bytes[i] + c->chunk - 1) / c->chunk;
}

static uint64_t positions(const struct search *s, const struct optimal_choice *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->m->nr; i++)
		sum += chunks_of(c, i);
	return sum;
}

static uint64_t pads_needed(const struct optimal_choice *c, uint64_t used)
{
	return (c->ring - used % c->ring) % c->ring;
}

/* Evenly, so that no turn of the ring loses much. */
static void spread_pads(struct search *s, struct optimal_choice *c,
	uint64_t used)
{
	uint64_t pads = pads_needed(c, used), run = 0, put = 0;

	for (uint32_t i = 0; i < s->m->nr; i++) {
		uint64_t due;

		run += chunks_of(c, i);
		due = used ? pads * run / used : 0;
		c->pads[i] = (uint32_t)(due - put);
		put = due;
	}
}

/* Streams a few chunks more instead of leaving pads; false if there is no room. */
static bool fill_pads(struct search *s, struct optimal_choice *c, uint64_t used)
{
	uint64_t pads = pads_needed(c, used);
	uint32_t nr = s->m->nr, step = nr / (uint32_t)(pads + 1) + 1;

	memset(c->pads, 0, nr * sizeof(*c->pads));
	for (uint32_t first = 0; first < step; first++)
		for (uint32_t i = first; i < nr && pads > 0; i += step) {
			uint64_t more = s->m->bytes[i] < c->most ?
				s->m->bytes[i] : c->most;

			more -= c->bytes[i];
			if (c->bytes[i] == 0 || more == 0)
				continue;
			if (more > c->chunk)
				more = c->chunk;
			c->bytes[i] += more;
			c->streamed += more;
			pads--;
		}
	return pads == 0;
}

/* One ring size with several seeds.  True: one of them loses nothing. */
static bool try_seeds(struct search *s, uint64_t chunk, uint32_t ring,
	uint64_t unit, uint64_t most, uint32_t first, uint32_t end)
{
	bool lossless = false;

	for (uint32_t seed = first; seed < end; seed++) {
		struct optimal_choice *c = &s->now;
		uint64_t used, pads;

		c->chunk = chunk;
		c->ring = ring;
		c->unit = unit;
		c->most = most;
		c->seed = seed;
		s->work -= s->m->nr;
		if (!optimal_seed(&s->seeder, c, seed, s->need))
			continue;
		used = positions(s, c);
		spread_pads(s, c, used);
		try_now(s, limit_of(s));
		keep(s);
		lossless |= nothing_lost(s, c->period_ms);
		pads = pads_needed(c, used);
		if (lossless || pads == 0 || pads * 50 > used ||
			unit != chunk || !fill_pads(s, c, used))
			continue;
		try_now(s, limit_of(s));
		keep(s);
	}
	return lossless;
}

static bool try_size(struct search *s, uint64_t chunk, uint32_t ring,
	uint64_t unit, uint64_t most)
{
	return try_seeds(s, chunk, ring, unit, most, 0, SEED_FLUID);
}

static bool try_ring(struct search *s, uint64_t ring)
{
	return try_size(s, s->m->chunk, (uint32_t)ring, s->m->chunk,
		ring * s->m->chunk);
}

/* The smallest ring that needs no pads for as many turns as this one has. */
static uint64_t snapped(const struct search *s, uint64_t ring)
{
	double need = (double)s->need / (double)s->m->chunk;
	double turns = floor(need / (double)ring + 0.5);

	return turns < 1 ? ring : (uint64_t)ceil(need / turns);
}

/* Ascending sizes in a geometric grid, each also snapped; without repeats. */
static uint32_t sizes_of(const struct search *s,
	const struct optimal_range *range, uint32_t grid, uint64_t *sizes)
{
	double step = pow((double)range->high / (double)range->low,
		1.0 / (grid > 1 ? grid - 1 : 1));
	double at = (double)range->low;
	uint32_t nr = 0;

	for (uint32_t i = 0; i < grid; i++, at *= step) {
		uint64_t two[2];

		two[0] = (uint64_t)(at + 0.5);
		two[1] = snapped(s, two[0]);
		for (int k = 0; k < 2; k++) {
			uint64_t r = two[k];
			uint32_t p;

			if (r < range->low || r > range->high)
				continue;
			for (p = nr; p > 0 && sizes[p - 1] > r; p--)
				;
			if (p > 0 && sizes[p - 1] == r)
				continue;
			memmove(&sizes[p + 1], &sizes[p],
				(nr - p) * sizeof(*sizes));
			sizes[p] = r;
			nr++;
		}
	}
	return nr;
}

static bool try_seed(struct search *s, uint64_t ring, enum optimal_seed seed)
{
	return try_seeds(s, s->m->chunk, (uint32_t)ring, s->m->chunk,
		ring * s->m->chunk, seed, seed + 1);
}

/* Between a size that loses and a larger one that does not. */
static void shrink_lossless(struct search *s, uint64_t low, uint64_t high)
{
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (try_ring(s, mid))
			high = mid;
		else
			low = mid;
	}
}

static bool search_rings(struct search *s, const struct optimal_range *range)
{
	uint64_t sizes[2 * MAX_SIZES], before = range->low - 1;
	uint32_t nr, grid = 3000 / s->m->nr;

	grid = grid < 10 ? 10 : grid > MAX_SIZES ? MAX_SIZES : grid;
	if (grid > 40 + 4 * s->m->nr)
		grid = 40 + 4 * s->m->nr;
	if (s->effort == 0 || s->fluid_pool > 0)
		grid = grid > 24 ? 24 : grid;
	nr = sizes_of(s, range, grid, sizes);
	for (uint32_t i = 0; i < nr; i++) {
		/* Something is lost anyway, and other ways are as promising. */
		if (s->fluid_pool > 0 && s->work < WORK(s->m->nr) / 2)
			break;
		if (try_ring(s, sizes[i])) {
			shrink_lossless(s, before, sizes[i]);
			return true;
		}
		before = sizes[i];
	}
	return false;
}

/* Sizes of a few turns more or less than the best one's. */
static void search_near(struct search *s, const struct optimal_range *range)
{
	double need = (double)s->need / (double)s->m->chunk;

	for (int round = 0; round < 2 && s->nr_top > 0; round++) {
		double turns = floor(need / s->top[0].ring + 0.5);

		if (s->top[0].chunk != s->m->chunk)
			return;
		for (int k = -3; k <= 3; k++) {
			uint64_t ring;

			if (turns + k < 1)
				continue;
			ring = (uint64_t)ceil(need / (turns + k));
			for (uint64_t r = ring; r < ring + 2; r++)
				if (r >= range->low && r <= range->high)
					try_seed(s, r, s->top[0].seed);
		}
	}
}

/* The optimum of the fluid, rounded, in rings from a little smaller to larger. */
static enum plan_status search_fluid(struct search *s,
	const struct optimal_range *range, struct plan_arena *arena)
{
	struct bound_model b = {
		.nr = s->m->nr,
		.ms = s->m->ms,
		.bytes = s->m->bytes,
		.need = s->need,
	};
	double pool;
	enum plan_status status;

	timeline_link_below(&s->m->link, &b.latency_ms, &b.ms_per_byte);
	status = bound_strong(&b, arena, &s->bound_ms, s->seeder.fluid, &pool);
	if (status != PLAN_OK || pool <= 0)
		return status;
	pool /= (double)s->m->chunk;
	s->fluid_pool = pool;
	for (int k = -3; k <= 12; k++) {
		uint64_t two[2];

		two[0] = (uint64_t)(pool * (1 + 0.04 * k) + 1);
		two[1] = snapped(s, two[0]);
		for (int i = 0; i < 2; i++)
			if (two[i] >= range->low && two[i] <= range->high)
				try_seed(s, two[i], SEED_FLUID);
	}
	return PLAN_OK;
}

static void search_blocks(struct search *s, uint32_t blocks, uint64_t unit)
{
	struct optimal_range range;
	double at, step, high;
	int grid = 4;

	if (!optimal_range(s->m, s->need, unit, blocks, &range))
		return;
	at = (double)range.low;
	high = (double)range.high;
	/* Blocks together come to somewhat more than the fluid needs. */
	if (s->fluid_pool > 0 && unit == s->m->chunk) {
		double size = s->fluid_pool / blocks;

		at = fmin(fmax(at, 0.8 * size), high);
		high = fmax(fmin(high, 2 * size), at);
	}
	step = pow(high / at, 1.0 / (grid - 1));
	for (int i = 0; i < grid; i++, at *= step) {
		uint64_t size = (uint64_t)(at + 0.5);

		if (s->nr_top > 0 && s->work < WORK(s->m->nr) / 4)
			return;
		if (size > range.high)
			size = range.high;
		if (size < range.low)
			size = range.low;
		try_size(s, size * unit, blocks, unit, size * unit);
	}
}

/* ---- moves ------------------------------------------------------------------- */

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
	c->pads[at] = (uint32_t)pads_needed(c, positions(s, c));
}

/* Another ring size; layers give or take what the pool needs. */
static bool move_ring(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, step = 1u << pick(s, 7);
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
	gather_pads(s, c);
	return c->streamed >= want;
}

static bool move(struct search *s, struct optimal_choice *c)
{
	switch (pick(s, 8)) {
	case 0:
		return move_ring(s, c);
	case 1:
	case 2:
		return move_pads(s, c);
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
	try_now(s, INFINITY);
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
		try_now(s, limit);
		if (s->now.period_ms > limit)
			continue;
		note_critical(s);
		optimal_choice_copy(&s->at, &s->now, nr);
		if (better(s, &s->now, c))
			optimal_choice_copy(c, &s->now, nr);
		if (nothing_lost(s, c->period_ms) ||
			c->period_ms < s->bound_ms * (1 + CLOSE))
			return;
	}
}

/* All pads before one layer, at up to 24 of them. */
static void scan_pads(struct search *s, struct optimal_choice *c)
{
	uint32_t nr = s->m->nr, step = nr > 24 ? nr / 24 : 1, pads = 0;

	for (uint32_t i = 0; i < nr; i++)
		pads += c->pads[i];
	if (pads == 0)
		return;
	for (uint32_t i = 0; i < nr; i += step) {
		optimal_choice_copy(&s->now, c, nr);
		memset(s->now.pads, 0, nr * sizeof(*s->now.pads));
		s->now.pads[i] = pads;
		try_now(s, c->period_ms * (1 - 1e-12));
		if (s->now.period_ms < c->period_ms)
			optimal_choice_copy(c, &s->now, nr);
	}
}

static uint32_t shortest(const struct search *s)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < s->nr_top; i++)
		if (better(s, &s->top[i], &s->top[best]))
			best = i;
	return best;
}

static void search_moves(struct search *s)
{
	uint32_t best;

	for (uint32_t i = 0; i < s->nr_top; i++)
		scan_pads(s, &s->top[i]);
	for (uint32_t i = 0; i < s->nr_top; i++)
		improve(s, &s->top[i], 300);
	/* What is left goes to the best. */
	best = shortest(s);
	if (s->nr_top > 0 && !nothing_lost(s, s->top[best].period_ms))
		improve(s, &s->top[best], 3000);
}

/* Less than two transfers fit: one block, in bytes if chunks are too coarse. */
static void search_serial(struct search *s)
{
	search_blocks(s, 1, s->m->chunk);
	if (s->nr_top == 0)
		search_blocks(s, 1, 1);
}

/* Must something be lost?  By the bound that costs nothing. */
static bool is_lossy(const struct search *s)
{
	struct bound_model b = {
		.nr = s->m->nr,
		.ms = s->m->ms,
		.bytes = s->m->bytes,
		.need = s->need,
	};

	timeline_link_below(&s->m->link, &b.latency_ms, &b.ms_per_byte);
	return !nothing_lost(s, bound_simple(&b));
}

/*
 * Where something must be lost, the fluid's pool tells where to look; otherwise
 * the smallest ring that loses nothing is wanted, so all are tried from below.
 */
static enum plan_status search_pools(struct search *s,
	const struct optimal_range *range, struct plan_arena *arena,
	bool *lossless)
{
	struct optimal_range near = *range;
	bool lossy = s->effort > 0 && is_lossy(s);
	enum plan_status status = PLAN_OK;

	if (lossy)
		status = search_fluid(s, range, arena);
	if (s->fluid_pool > 0) {
		double low = s->fluid_pool / 2, high = s->fluid_pool * 3 + 1;

		if (low > (double)near.low && low < (double)near.high)
			near.low = (uint64_t)low;
		if (high < (double)near.high && high > (double)near.low)
			near.high = (uint64_t)high;
	}
	*lossless = search_rings(s, &near);
	if (*lossless || s->effort == 0)
		return status;
	if (!lossy && status == PLAN_OK)
		status = search_fluid(s, range, arena);
	search_near(s, range);
	return status;
}

static enum plan_status run(const struct optimal_model *m, uint64_t need,
	int effort, struct plan_arena *arena, struct optimal_choice *best)
{
	struct optimal_range range;
	struct search *s = plan_arena_alloc(arena, 1, sizeof(*s));
	enum plan_status status;
	bool lossless = false;

	if (!s)
		return PLAN_NO_MEMORY;
	status = search_init(s, m, need, effort, arena);
	if (status != PLAN_OK)
		return status;
	s->work = WORK(m->nr);
	if (optimal_range(m, need, m->chunk, 0, &range)) {
		status = search_pools(s, &range, arena, &lossless);
		if (status != PLAN_OK)
			return status;
	}
	if (!lossless)
		for (uint32_t k = 2; k <= 4; k++)
			search_blocks(s, k, m->chunk);
	if (s->nr_top == 0)
		search_serial(s);
	if (s->nr_top == 0)
		return PLAN_INFEASIBLE;
	if (!lossless && effort > 0)
		search_moves(s);
	optimal_choice_copy(best, &s->top[shortest(s)], m->nr);
	best->bound_ms = s->bound_ms;
	return PLAN_OK;
}

enum plan_status optimal_search(const struct optimal_model *m, uint64_t need,
	int effort, struct optimal_choice *best)
{
	struct plan_arena *scratch = plan_arena_create();
	enum plan_status status;

	if (!scratch)
		return PLAN_NO_MEMORY;
	status = run(m, need, effort, scratch, best);
	plan_arena_destroy(scratch);
	return status;
}
