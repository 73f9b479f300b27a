/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the search of `optimal` begins: how large the ring may be, and how a
 * given number of streamed bytes is shared out among the layers by a rule with
 * one level, found by bisection.  Pure; no locks.
 */
#include "planner/optimal_int.h"

#include <math.h>

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * What a pool of this size frees, less the pool.  blocks 0: a ring, from which a
 * layer may take all; else so many blocks of the size.
 */
static int64_t frees(const struct optimal_model *m, uint64_t size,
	uint32_t blocks)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < m->nr; i++)
		sum += (int64_t)least(m->bytes[i], size);
	return sum - (int64_t)(size * (blocks ? blocks : 1));
}

bool optimal_range(const struct optimal_model *m, uint64_t need, uint64_t unit,
	uint32_t blocks, struct optimal_range *out)
{
	uint64_t most = 0, low, high, top;

	for (uint32_t i = 0; i < m->nr; i++)
		if (m->bytes[i] > most)
			most = m->bytes[i];
	/* frees() rises and falls once: find the top by its slope. */
	low = 1;
	high = most / unit + 1;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (frees(m, (mid + 1) * unit, blocks) >
			frees(m, mid * unit, blocks))
			low = mid + 1;
		else
			high = mid;
	}
	top = low;
	if (frees(m, top * unit, blocks) < (int64_t)need)
		return false;
	low = 1;
	high = top;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (frees(m, mid * unit, blocks) >= (int64_t)need)
			high = mid;
		else
			low = mid + 1;
	}
	out->low = low;
	low = top;
	high = m->total / unit + 1;
	while (low < high) {
		uint64_t mid = low + (high - low + 1) / 2;

		if (frees(m, mid * unit, blocks) >= (int64_t)need)
			low = mid;
		else
			high = mid - 1;
	}
	out->high = low;
	return true;
}

enum plan_status optimal_seeder_init(struct optimal_seeder *s,
	const struct optimal_model *m, struct plan_arena *arena)
{
	s->m = m;
	s->want = plan_arena_alloc(arena, m->nr, sizeof(double));
	s->weight = plan_arena_alloc(arena, m->nr, sizeof(double));
	s->cap = plan_arena_alloc(arena, m->nr, sizeof(*s->cap));
	s->fluid = plan_arena_alloc(arena, m->nr, sizeof(double));
	return s->fluid && s->want && s->weight && s->cap ? PLAN_OK : PLAN_NO_MEMORY;
}

/* Bytes that the link moves while layer i computes. */
static double link_bytes(const struct optimal_model *m, uint32_t i)
{
	return m->ms[i] / m->link.ms_per_byte;
}

/* want[i] at level h; the sum. */
static double at_level(struct optimal_seeder *s, enum optimal_seed seed,
	double h)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->m->nr; i++) {
		double x = h, cap = (double)s->cap[i];

		if (seed == SEED_COMPUTE)
			x = h - s->weight[i];
		else if (seed == SEED_WINDOW || seed == SEED_FLUID)
			x = h * s->weight[i];
		x = x < 0 ? 0 : x > cap ? cap : x;
		s->want[i] = x;
		sum += x;
	}
	return sum;
}

/* How many copies balance latency against the pool they need. */
static uint32_t few_layers(const struct optimal_model *m, double bytes,
	enum optimal_seed seed)
{
	double a = m->link.latency_ms / m->link.ms_per_byte, nr;

	if (a <= 0)
		return m->nr;
	nr = sqrt(bytes / a);
	if (seed == SEED_FEW_MORE)
		nr *= 1.5;
	else if (seed == SEED_FEW_MOST)
		nr *= 2.2;
	return nr < 1 ? 1 : nr >= m->nr ? m->nr : (uint32_t)nr;
}

/* Caps of the layers that take part; false if they cannot give enough. */
static bool set_caps(struct optimal_seeder *s, enum optimal_seed seed,
	uint64_t most, uint64_t unit, uint64_t bytes)
{
	const struct optimal_model *m = s->m;
	uint64_t sum = 0, small = 0;

	for (uint32_t i = 0; i < m->nr; i++) {
		s->cap[i] = least(m->bytes[i], most);
		sum += s->cap[i];
		if (s->cap[i] < unit)
			small += s->cap[i];
	}
	if (sum < bytes)
		return false;
	/* A layer of less than a chunk takes a chunk and frees little. */
	if (sum - small >= bytes) {
		for (uint32_t i = 0; i < m->nr; i++)
			if (s->cap[i] < unit)
				s->cap[i] = 0;
		sum -= small;
	}
	if (seed >= SEED_FEW && seed <= SEED_FEW_MOST) {
		uint32_t users = 0, few, k = 0;

		few = few_layers(m, (double)bytes, seed);
		for (uint32_t i = 0; i < m->nr; i++)
			users += s->cap[i] > 0;
		if (few >= users)
			return false;
		sum = 0;
		for (uint32_t i = 0; i < m->nr; i++) {
			if (s->cap[i] == 0)
				continue;
			if ((uint64_t)k * few / users ==
				(uint64_t)(k + 1) * few / users)
				s->cap[i] = 0;
			sum += s->cap[i];
			k++;
		}
	}
	return sum >= bytes;
}

static void set_weights(struct optimal_seeder *s, enum optimal_seed seed)
{
	const struct optimal_model *m = s->m;

	for (uint32_t i = 0; i < m->nr; i++) {
		if (seed == SEED_COMPUTE)
			s->weight[i] = link_bytes(m, i);
		else if (seed == SEED_FLUID)
			s->weight[i] = s->fluid[i] > 1 ? s->fluid[i] : 1;
		else if (i > 0)
			s->weight[i] = link_bytes(m, i - 1);
		else
			s->weight[i] = m->wrap ? link_bytes(m, m->nr - 1) : 0;
	}
}

/* want[] such that its sum is `bytes`, or all that the rule can give. */
static void find_level(struct optimal_seeder *s, enum optimal_seed seed,
	double bytes)
{
	double low = 0, high = 1;

	set_weights(s, seed);
	for (int i = 0; i < 200 && at_level(s, seed, high) < bytes; i++)
		high *= 4;
	for (int i = 0; i < 40; i++) {
		double mid = low + (high - low) / 2;

		if (high - low < 1e-5 * high)
			break;
		if (at_level(s, seed, mid) < bytes)
			low = mid;
		else
			high = mid;
	}
	at_level(s, seed, high);
}

/* Adds whole units, evenly spread, until the sum is at least `bytes`. */
static uint64_t top_up(struct optimal_seeder *s, struct optimal_choice *c,
	uint64_t sum, uint64_t bytes, uint64_t unit)
{
	uint32_t nr = s->m->nr, users = 0;

	for (uint32_t i = 0; i < nr; i++)
		users += c->bytes[i] > 0 && c->bytes[i] < s->cap[i];
	/* First those already in use, then any; a second round takes all. */
	for (int round = 0; round < 4 && sum < bytes; round++) {
		uint64_t each = unit;

		if (users > 0 && (bytes - sum) / users > unit)
			each = (bytes - sum) / users / unit * unit;
		for (uint32_t i = 0; i < nr && sum < bytes; i++) {
			uint64_t more = least(s->cap[i] - c->bytes[i],
				round < 3 ? each :
				(bytes - sum + unit - 1) / unit * unit);

			if (round < 1 && c->bytes[i] == 0)
				continue;
			c->bytes[i] += more;
			sum += more;
		}
	}
	return sum;
}

/* Drops last units that are not needed, the emptiest first. */
static uint64_t trim(struct optimal_seeder *s, struct optimal_choice *c,
	uint64_t sum, uint64_t bytes, uint64_t unit)
{
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < s->m->nr; i++) {
			uint64_t part = c->bytes[i] % unit;

			if (part == 0 && round == 0)
				continue;
			if (part == 0)
				part = unit;
			if (c->bytes[i] == 0 || sum - bytes < part)
				continue;
			c->bytes[i] -= part;
			sum -= part;
		}
	return sum;
}

bool optimal_seed(struct optimal_seeder *s, struct optimal_choice *c,
	enum optimal_seed seed, uint64_t need)
{
	uint64_t unit = c->unit, bytes = need + c->ring * c->chunk, sum = 0;
	double run = 0, done = 0;

	if (!set_caps(s, seed, c->most, unit, bytes))
		return false;
	find_level(s, seed, (double)bytes);
	/* What rounding takes from one layer the next one gets. */
	for (uint32_t i = 0; i < s->m->nr; i++) {
		double x;

		run += s->want[i];
		x = floor((run - done) / (double)unit + 0.5);
		x = x < 0 ? 0 : x * (double)unit;
		c->bytes[i] = s->cap[i];
		if (x < (double)s->cap[i])
			c->bytes[i] = (uint64_t)x;
		if (s->want[i] <= 0)
			c->bytes[i] = 0;
		done += (double)c->bytes[i];
		sum += c->bytes[i];
	}
	sum = top_up(s, c, sum, bytes, unit);
	if (sum < bytes)
		return false;
	c->streamed = trim(s, c, sum, bytes, unit);
	return true;
}
