/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of `optimal`: ring sizes from small to large, several ways to share
 * the streamed bytes out, then moves (optimal_move.c).  The effort is counted in
 * nodes visited, never in time, so that the same input gives the same plan.
 * Called by optimal.c.  Pure; no locks.
 */
#include "planner/optimal_int.h"

#include <math.h>
#include <string.h>

/* Nodes visited by one search; large models make do with fewer. */
#define WORK(nr) ((nr) > 250 ? 220000 : 600000)
#define MAX_SIZES 400
#define FEW_SIZES 24
#define FEW_TURNS 12
#define FEW_LAYERS 64

enum plan_status optimal_search_init(struct search *s,
	const struct optimal_model *m, uint64_t need, struct plan_arena *arena)
{
	enum plan_status status;

	memset(s, 0, sizeof(*s));
	s->m = m;
	s->need = need;
	s->limit = INFINITY;
	timeline_link_below(&m->link, &s->link_latency_ms,
		&s->link_ms_per_byte);
	/* Never 0, where it would stay. */
	s->random = (m->seed * 0x9e3779b97f4a7c15u) | 1;
	status = optimal_trial_init(&s->trial, m, arena);
	if (status == PLAN_OK)
		status = optimal_seeder_init(&s->seeder, m, arena);
	if (status == PLAN_OK)
		status = optimal_choice_init(&s->now, m->nr, arena);
	if (status == PLAN_OK)
		status = optimal_choice_init(&s->at, m->nr, arena);
	for (uint32_t i = 0; i < OPTIMAL_TOP && status == PLAN_OK; i++)
		status = optimal_choice_init(&s->top[i], m->nr, arena);
	s->critical = plan_arena_alloc(arena, m->nr, sizeof(*s->critical));
	return s->critical ? status : PLAN_NO_MEMORY;
}

bool optimal_lossless(const struct search *s, double period)
{
	return period <= s->m->compute_ms * (1 + 1e-12);
}

/* Shorter; of equal ones, what streams less. */
bool optimal_better(const struct search *s, const struct optimal_choice *a,
	const struct optimal_choice *b)
{
	if (optimal_lossless(s, a->period_ms) &&
		optimal_lossless(s, b->period_ms))
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
	if (from == s->nr_top && s->nr_top < OPTIMAL_TOP)
		s->nr_top++;
	else if (from == s->nr_top)
		from--;
	else if (!optimal_better(s, &s->now, &s->top[from]))
		return;
	at = from;
	spare = s->top[from];
	while (at > 0 && optimal_better(s, &s->now, &s->top[at - 1])) {
		s->top[at] = s->top[at - 1];
		at--;
	}
	if (at == OPTIMAL_TOP - 1 && from == at && s->nr_top == OPTIMAL_TOP &&
		!optimal_better(s, &s->now, &spare) &&
		spare.period_ms < INFINITY) {
		s->top[at] = spare;
		return;
	}
	s->top[at] = spare;
	optimal_choice_copy(&s->top[at], &s->now, s->m->nr);
}

static double limit_of(const struct search *s)
{
	return s->nr_top < OPTIMAL_TOP ? s->limit :
		fmin(s->limit, s->top[OPTIMAL_TOP - 1].period_ms);
}

/* Does the link alone take longer than any choice may? */
static bool too_long(const struct search *s, uint64_t bytes, uint32_t copies)
{
	return (double)bytes * s->link_ms_per_byte +
		copies * s->link_latency_ms > s->limit;
}

static uint32_t nr_streamed(const struct search *s,
	const struct optimal_choice *c)
{
	uint32_t nr = 0;

	for (uint32_t i = 0; i < s->m->nr; i++)
		nr += c->bytes[i] > 0;
	return nr;
}

void optimal_try(struct search *s, double limit)
{
	if (s->limit < INFINITY && too_long(s, s->now.streamed,
		nr_streamed(s, &s->now))) {
		s->now.period_ms = INFINITY;
		return;
	}
	s->now.period_ms = optimal_trial_period(&s->trial, &s->now, limit);
	s->work -= s->m->nr + s->trial.nr_pieces;
}

uint64_t optimal_chunks(const struct optimal_choice *c, uint32_t i)
{
	return (c->bytes[i] + c->chunk - 1) / c->chunk;
}

uint64_t optimal_positions(const struct search *s,
	const struct optimal_choice *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->m->nr; i++)
		sum += optimal_chunks(c, i);
	return sum;
}

uint64_t optimal_pads(const struct optimal_choice *c, uint64_t used)
{
	return (c->ring - used % c->ring) % c->ring;
}

bool optimal_few_turns(const struct search *s, const struct optimal_choice *c,
	uint64_t used)
{
	return s->m->nr <= FEW_LAYERS &&
		used <= (uint64_t)FEW_TURNS * c->ring;
}

/* Evenly, so that no turn of the ring loses much. */
static void spread_pads(struct search *s, struct optimal_choice *c,
	uint64_t used)
{
	uint64_t pads = optimal_pads(c, used), run = 0, put = 0;

	for (uint32_t i = 0; i < s->m->nr; i++) {
		uint64_t due;

		run += optimal_chunks(c, i);
		due = used ? pads * run / used : 0;
		c->pads[i] = (uint32_t)(due - put);
		put = due;
	}
}

/*
 * The other way round: each layer begins a little before the end of the one
 * before it, so that no pads are left.  With few turns that costs less.
 */
static bool spread_back(struct search *s, struct optimal_choice *c,
	uint64_t used)
{
	uint64_t pads = optimal_pads(c, used), back = c->ring - pads;
	uint64_t run = 0, put = 0;

	if (pads == 0 || !optimal_few_turns(s, c, used) ||
		s->m->nr * (uint64_t)c->ring > PLAN_MOST_PADS * used ||
		c->unit != c->chunk)
		return false;
	for (uint32_t i = 0; i < s->m->nr; i++) {
		uint64_t due;

		run += optimal_chunks(c, i);
		due = back * run / used;
		c->pads[i] = (uint32_t)((c->ring - (due - put)) % c->ring);
		put = due;
	}
	return true;
}

/* Streams a few chunks more instead of leaving pads; false if there is no room. */
static bool fill_pads(struct search *s, struct optimal_choice *c,
	uint64_t used)
{
	uint64_t pads = optimal_pads(c, used);
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

	if (too_long(s, s->need + ring * chunk, 1))
		return false;
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
		used = optimal_positions(s, c);
		spread_pads(s, c, used);
		optimal_try(s, limit_of(s));
		keep(s);
		lossless |= optimal_lossless(s, c->period_ms);
		if (lossless && s->any)
			break;
		if (!lossless && spread_back(s, c, used)) {
			optimal_try(s, limit_of(s));
			keep(s);
			lossless |= optimal_lossless(s, c->period_ms);
		}
		pads = optimal_pads(c, used);
		if (lossless || pads == 0 || pads * 50 > used ||
			unit != chunk || !fill_pads(s, c, used))
			continue;
		optimal_try(s, limit_of(s));
		keep(s);
		lossless |= optimal_lossless(s, c->period_ms);
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

/* A geometric grid, each size also snapped; without repeats. */
uint32_t optimal_ring_sizes(const struct search *s,
	const struct optimal_range *range, uint32_t most, uint64_t *sizes)
{
	uint32_t nr = 0, grid = 3000 / s->m->nr;

	grid = grid < 10 ? 10 : grid > most ? most : grid;
	if (grid > 40 + 4 * s->m->nr)
		grid = 40 + 4 * s->m->nr;
	double step = pow((double)range->high / (double)range->low,
		1.0 / (grid > 1 ? grid - 1 : 1));
	double at = (double)range->low;

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

bool optimal_try_seed(struct search *s, uint64_t ring, enum optimal_seed seed)
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

bool optimal_try_rings(struct search *s, const struct optimal_range *range,
	uint32_t grid)
{
	uint64_t sizes[2 * MAX_SIZES], before = range->low - 1;
	uint32_t nr = optimal_ring_sizes(s, range, grid, sizes);

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
					optimal_try_seed(s, r, s->top[0].seed);
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
				optimal_try_seed(s, two[i], SEED_FLUID);
	}
	return PLAN_OK;
}

bool optimal_try_blocks(struct search *s, uint32_t blocks, uint64_t unit)
{
	struct optimal_range range;
	double at, step, high;
	bool lossless = false;
	int grid = 4;

	if (!optimal_range(s->m, s->need, unit, blocks, &range))
		return false;
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

		if ((lossless && s->any) || (s->limit == INFINITY &&
			s->nr_top > 0 && s->work < WORK(s->m->nr) / 4))
			break;
		if (size > range.high)
			size = range.high;
		if (size < range.low)
			size = range.low;
		lossless |= try_size(s, size * unit, blocks, unit,
			size * unit);
	}
	return lossless;
}

/* Less than two transfers fit: one block, in bytes if chunks are too coarse. */
static void search_serial(struct search *s)
{
	optimal_try_blocks(s, 1, s->m->chunk);
	if (s->nr_top == 0)
		optimal_try_blocks(s, 1, 1);
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
	return !optimal_lossless(s, bound_simple(&b));
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
	bool lossy = is_lossy(s);
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
	*lossless = optimal_try_rings(s, &near,
		s->fluid_pool > 0 ? FEW_SIZES : MAX_SIZES);
	if (*lossless)
		return status;
	if (!lossy && status == PLAN_OK)
		status = search_fluid(s, range, arena);
	search_near(s, range);
	return status;
}

static enum plan_status run(const struct optimal_model *m, uint64_t need,
	bool quick, struct plan_arena *arena, struct optimal_choice *best)
{
	struct optimal_range range;
	struct search *s = plan_arena_alloc(arena, 1, sizeof(*s));
	enum plan_status status;
	bool lossless = false;

	if (!s)
		return PLAN_NO_MEMORY;
	status = optimal_search_init(s, m, need, arena);
	if (status != PLAN_OK)
		return status;
	s->work = WORK(m->nr);
	if (optimal_range(m, need, m->chunk, 0, &range)) {
		if (quick)
			lossless = optimal_try_rings(s, &range, FEW_SIZES);
		else
			status = search_pools(s, &range, arena, &lossless);
		if (status != PLAN_OK)
			return status;
	}
	if (!lossless)
		for (uint32_t k = 2; k <= 4; k++)
			optimal_try_blocks(s, k, m->chunk);
	if (s->nr_top == 0)
		search_serial(s);
	if (s->nr_top == 0)
		return PLAN_INFEASIBLE;
	if (!lossless && !quick)
		optimal_moves(s);
	optimal_choice_copy(best, &s->top[optimal_shortest(s)], m->nr);
	best->bound_ms = s->bound_ms;
	return PLAN_OK;
}

static enum plan_status search(const struct optimal_model *m, uint64_t need,
	bool quick, struct optimal_choice *best)
{
	struct plan_arena *scratch = plan_arena_create();
	enum plan_status status;

	if (!scratch)
		return PLAN_NO_MEMORY;
	status = run(m, need, quick, scratch, best);
	plan_arena_destroy(scratch);
	return status;
}

enum plan_status optimal_search(const struct optimal_model *m, uint64_t need,
	struct optimal_choice *best)
{
	return search(m, need, false, best);
}

enum plan_status optimal_search_quick(const struct optimal_model *m,
	uint64_t need, struct optimal_choice *best)
{
	return search(m, need, true, best);
}
