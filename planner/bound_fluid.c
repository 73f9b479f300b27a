/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The strong bound (bound.h).  Copies are a fluid; for a pool of P bytes, layer
 * i (cyclically) has
 *   x_i  bytes streamed, 0 <= x_i <= bytes_i
 *   q_i  bytes of later layers in the pool when it starts
 *   y_i  bytes copied while it computes, 0 <= y_i <= rate * ms_i
 *   z_i  bytes copied while it waits
 * with q_i + x_i = q_{i-1} + y_{i-1} + z_i, q_i + y_i + x_i <= P and
 * sum x = need + P; sum z is least.  Any order of copies, any eviction and
 * unequal iterations are covered: bytes are only counted, and averaging the
 * iterations of a plan gives a solution.
 *
 * bound_solve.c finds prices for the three kinds of rule.  Whatever
 * prices it finds, the bound computed from them is valid for every P (weak
 * duality), so its accuracy affects only how sharp the bound is.
 *
 * Latency: a copy keeps the link busy for a + bytes / rate and must have room
 * for all its bytes when it starts, so none is larger than P.  Taken to progress
 * evenly from start to end, it is a fluid again, with a byte at 1 / rate + a / P.
 * And let copy k of s_k bytes be followed by the next one after a gap g_k.
 * Unless g_k is as long as one of the layers that k serves, none of k's bytes
 * has been released, and s_k + s_{k+1} <= P.  A gap of a or more costs as much as
 * one more copy.  With m such gaps, K copies, X = need + P and Q the bytes of all
 * layers shorter than a, which smaller gaps may release,
 *   2 X = sum (s_k + s_{k+1}) <= K P + m P + Q
 * so copies and gaps take X / rate + a (K + m) >= X / rate + a (2 X - Q) / P.
 * Pure; no locks.
 */
#include "planner/bound.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "planner/bound_int.h"

#define MAX_CURVES 19
#define NR_TANGENTS 3

/*
 * A period of at least at + slope * pool + turns / pool for every pool in
 * question; turns >= 0, so it is convex.  size: of the terms that were added up,
 * for the rounding.
 */
struct curve {
	double at, slope, turns, size;
};

struct strong {
	const struct bound_model *m;
	double unit;		/* bytes */
	double compute, need, low, high;	/* of the pool */
	double latency, rate;	/* ms for a copy, for a unit */
	double quick;		/* in layers that are shorter than a latency */
	struct curve curves[MAX_CURVES];
	uint32_t nr;
};

/*
 * From any prices: clipped to what the rules demand.  With a byte at rate +
 * latency / pool, waits of sum z >= A + B * pool bytes cost A * latency / pool
 * and so on; what is copied while layers compute is a time to begin with.
 */
static struct curve curve_of(const struct fluid *f, const struct strong *s)
{
	double sigma = f->price[2 * f->n], a = sigma * f->need, b = sigma;
	double most = s->rate + s->latency / s->low, hidden = 0;
	struct curve c = { .at = s->compute };

	c.size = fabs(sigma) * (f->need + s->high);
	for (uint32_t i = 0; i < f->n; i++) {
		uint32_t last = i > 0 ? i - 1 : f->n - 1;
		double beta = fmin(-f->price[fluid_balance_row(i)], 1);
		double before = fmin(-f->price[fluid_balance_row(last)], 1);
		double rho = fmax(-f->price[fluid_room_row(i)], 0);

		rho = fmax(rho, beta - before);
		hidden += fmin(0, rho - beta) * s->m->ms[i];
		a += fmin(0, before + rho - sigma) * f->cap[i];
		b -= rho;
		c.size += (rho + fabs(beta)) * s->m->ms[i] / most +
			(fabs(before) + rho + fabs(sigma)) * f->cap[i] +
			(fabs(beta) + fabs(before) + rho) * s->high;
	}
	c.at += hidden + a * s->rate + b * s->latency;
	c.slope = b * s->rate;
	c.turns = a * s->latency;
	if (c.turns < 0) {
		c.at += c.turns / s->low;
		c.turns = 0;
	}
	c.size = s->compute + c.size * most;
	return c;
}

/* Copies one by one, or in pairs. */
static void latency_curves(struct strong *s)
{
	double need = s->need, pairs = 2 * need - s->quick;

	s->curves[s->nr++] = (struct curve){ s->compute, 0, 0, s->compute };
	for (int once = 1; once <= (pairs > 0 ? 2 : 1); once++) {
		struct curve c = {
			.at = need * s->rate + once * s->latency,
			.slope = s->rate,
			.turns = (once == 1 ? need : pairs) * s->latency,
		};

		c.size = c.at + s->rate * s->high + 2 * need * s->latency /
			s->low;
		s->curves[s->nr++] = c;
	}
}

static double at_pool(const struct strong *s, double pool)
{
	double best = 0;

	for (uint32_t k = 0; k < s->nr; k++)
		best = fmax(best, s->curves[k].at + s->curves[k].slope * pool +
			s->curves[k].turns / pool);
	return best;
}

/* The tangent, which is nowhere above the curve. */
static struct curve tangent(const struct curve *c, double pool)
{
	return (struct curve){
		.at = c->at + 2 * c->turns / pool,
		.slope = c->slope - c->turns / (pool * pool),
		.size = 3 * c->size,
	};
}

/* The pool with the lowest bound so far: all that make it up are convex. */
static double lowest_pool(const struct strong *s)
{
	double low = s->low, high = s->high;

	for (int k = 0; k < 200 && high - low > 1e-12 * high; k++) {
		double a = low + (high - low) / 3, b = high - (high - low) / 3;

		if (at_pool(s, a) <= at_pool(s, b))
			high = b;
		else
			low = a;
	}
	return (low + high) / 2;
}

/*
 * What any mean of two lines, here the one without slope if there is one, says
 * for the whole range of pools, less what rounding may have added: naive sums
 * of no more than a dozen terms for each layer.
 */
static double lowest_of(const struct strong *s, const struct curve *a,
	const struct curve *b)
{
	double part = 0, at, slope, size;

	if (a->slope * b->slope < 0)
		part = a->slope / (a->slope - b->slope);
	part = fmin(fmax(part, 0), 1);
	at = a->at + part * (b->at - a->at);
	slope = a->slope + part * (b->slope - a->slope);
	size = a->size + b->size;
	return at + fmin(slope * s->low, slope * s->high) -
		(12.0 * s->m->nr + 40) * DBL_EPSILON * size;
}

/*
 * The least period over all pools.  Two tangents determine it, or one at an end
 * of the range; whichever are taken, the result is a bound.
 */
static double lowest_period(const struct strong *s)
{
	struct curve all[NR_TANGENTS * MAX_CURVES];
	double pool = lowest_pool(s), best = s->compute;
	uint32_t nr = 0;

	for (uint32_t k = 0; k < s->nr; k++)
		for (int t = 0; t < NR_TANGENTS; t++)
			all[nr++] = tangent(&s->curves[k],
				pool * (1 + (t - 1) * 1e-4));
	for (uint32_t a = 0; a < nr; a++)
		for (uint32_t b = 0; b <= a; b++)
			best = fmax(best, lowest_of(s, &all[a], &all[b]));
	return best;
}

static double spare(const struct fluid *f, double pool)
{
	double sum = -f->need - pool;

	for (uint32_t i = 0; i < f->n; i++)
		sum += fmin(f->cap[i], pool);
	return sum;
}

/* Pools that free enough, and none left out; spare() rises, then falls. */
static bool pool_range(const struct fluid *f, struct strong *s)
{
	double most = 0, second = 0, a, b;

	for (uint32_t i = 0; i < f->n; i++)
		if (f->cap[i] > most) {
			second = most;
			most = f->cap[i];
		} else if (f->cap[i] > second) {
			second = f->cap[i];
		}
	if (spare(f, second) <= 0)
		return false;
	for (a = 0, b = second; b - a > 1e-12 * second;)
		if (spare(f, (a + b) / 2) < 0)
			a = (a + b) / 2;
		else
			b = (a + b) / 2;
	s->low = a;
	for (a = second, b = 2 * (most + spare(f, most) + second); b - a >
		1e-12 * b;)
		if (spare(f, (a + b) / 2) >= 0)
			a = (a + b) / 2;
		else
			b = (a + b) / 2;
	s->high = b;
	/* The sums above are rounded too. */
	s->low *= 1 - 1e-9;
	s->high *= 1 + 1e-9;
	return s->low > 0;
}

static void scale(const struct bound_model *m, struct fluid *f,
	struct strong *s)
{
	s->unit = (double)m->need / m->nr;
	s->need = f->need = m->nr;
	s->rate = m->ms_per_byte * s->unit;
	s->latency = m->latency_ms;
	for (uint32_t i = 0; i < m->nr; i++) {
		f->cap[i] = (double)m->bytes[i] / s->unit + 1e-12;
		s->compute += m->ms[i];
		if (m->ms[i] < s->latency)
			s->quick += f->cap[i];
	}
}

/* No copy is larger than the pool, so none is faster than this. */
static void set_rates(struct fluid *f, const struct strong *s, double pool)
{
	for (uint32_t i = 0; i < f->n; i++)
		f->rate[i] = s->m->ms[i] / (s->rate + s->latency / pool) +
			1e-12;
}

enum plan_status bound_strong(const struct bound_model *m,
	struct plan_arena *arena, double *period_ms, double *streamed,
	double *best_pool)
{
	struct fluid f;
	struct strong s = { .m = m };
	enum plan_status status;

	*period_ms = bound_simple(m);
	*best_pool = 0;
	if (m->need == 0 || m->nr < 2)
		return PLAN_OK;
	status = fluid_init(&f, m->nr, arena);
	if (status != PLAN_OK)
		return status;
	scale(m, &f, &s);
	if (!pool_range(&f, &s))
		return PLAN_OK;
	latency_curves(&s);
	while (s.nr < MAX_CURVES) {
		double pool = lowest_pool(&s), before = at_pool(&s, pool);
		double margin = 1e-6 * (s.high - s.low);

		/* Inside, so that there is a solution with room to spare. */
		pool = fmin(fmax(pool, s.low + margin), s.high - margin);
		set_rates(&f, &s, pool);
		fluid_solve(&f, pool);
		s.curves[s.nr++] = curve_of(&f, &s);
		*best_pool = pool * s.unit;
		for (uint32_t i = 0; streamed && i < m->nr; i++)
			streamed[i] = f.v[KINDS * i + X] * s.unit;
		if (at_pool(&s, pool) <= before * (1 + 1e-7))
			break;
	}
	*period_ms = fmax(*period_ms, lowest_period(&s));
	return PLAN_OK;
}
