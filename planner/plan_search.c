/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Differential evolution (Storn and Price: best/1/bin, F drawn for each
 * generation) and dual annealing (generalised annealing of Tsallis and Stariolo
 * as formulated by Xiang et al., without local search).  Called by the BudgetFill
 * and tensor selection strategies.  No state but the caller's.
 */
#include "planner/plan_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- differential evolution ---- */

#define CROSSOVER 0.7

struct de {
	const struct plan_search *s;
	struct plan_random random;
	double *members, *trial, *values;
	uint32_t best, calls;
};

static double *member(const struct de *d, uint32_t i)
{
	return d->members + (size_t)i * d->s->nr;
}

static bool integral(const struct plan_search *s, uint32_t j)
{
	return s->integral && s->integral[j];
}

/* trial: member i crossed with a mutation of the best. */
static void mutate(struct de *d, uint32_t i, double f)
{
	const struct plan_search *s = d->s;
	uint32_t a = plan_random_below(&d->random, s->pop);
	uint32_t b = plan_random_below(&d->random, s->pop - 1), must;
	const double *best = member(d, d->best), *x = member(d, a), *y;

	b += b >= a;
	y = member(d, b);
	must = plan_random_below(&d->random, s->nr);
	memcpy(d->trial, member(d, i), s->nr * sizeof(double));
	for (uint32_t j = 0; j < s->nr; j++) {
		double v;

		if (j != must && plan_random_unit(&d->random) >= CROSSOVER)
			continue;
		v = best[j] + f * (x[j] - y[j]);
		/* Integers are rounded as they are drawn. */
		if (integral(s, j))
			v = rint(v);
		if (v < s->lo[j] || v > s->hi[j]) {
			v = s->lo[j] + plan_random_unit(&d->random) *
				(s->hi[j] - s->lo[j]);
			if (integral(s, j))
				v = rint(v);
		}
		d->trial[j] = v;
	}
}

static bool converged(const struct de *d)
{
	double mean = 0, square = 0;
	uint32_t n = d->s->pop;

	if (d->s->tolerance <= 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		mean += d->values[i] / n;
	if (!isfinite(mean))
		return false;
	for (uint32_t i = 0; i < n; i++)
		square += (d->values[i] - mean) * (d->values[i] - mean) / n;
	return sqrt(square) <= d->s->tolerance * fabs(mean);
}

static double call(struct de *d, const double *x)
{
	double v = d->s->value(d->s->ctx, x);

	d->calls++;
	return isnan(v) ? INFINITY : v;
}

static void evolve(struct de *d)
{
	const struct plan_search *s = d->s;
	uint32_t stall = 0;

	for (uint32_t g = 0; g < s->epochs && stall < s->stall; g++) {
		double before = d->values[d->best];
		double f = 0.5 + 0.5 * plan_random_unit(&d->random), v;

		for (uint32_t i = 0; i < s->pop; i++) {
			if (s->most_values && d->calls >= s->most_values)
				return;
			mutate(d, i, f);
			v = call(d, d->trial);
			if (v > d->values[i])
				continue;
			d->values[i] = v;
			memcpy(member(d, i), d->trial, s->nr * sizeof(double));
			if (v < d->values[d->best])
				d->best = i;
		}
		stall = d->values[d->best] < before - 1e-10 ? 0 : stall + 1;
		if (converged(d))
			return;
	}
}

enum plan_status plan_search_de(const struct plan_search *s, double *start,
	double *best, double *value)
{
	struct de d = { .s = s, .random = { s->seed }, .members = start };
	enum plan_status err = PLAN_NO_MEMORY;

	if (s->pop < 3 || !s->nr)
		return PLAN_BAD_PARAM;
	d.trial = malloc(s->nr * sizeof(double));
	d.values = malloc(s->pop * sizeof(double));
	if (d.trial && d.values) {
		for (uint32_t i = 0; i < s->pop; i++) {
			d.values[i] = call(&d, member(&d, i));
			if (d.values[i] < d.values[d.best])
				d.best = i;
		}
		evolve(&d);
		memcpy(best, member(&d, d.best), s->nr * sizeof(double));
		*value = d.values[d.best];
		err = PLAN_OK;
	}
	free(d.trial);
	free(d.values);
	return err;
}

/* ---- dual annealing ---- */

#define VISIT 2.62		/* shape of the jumps */
#define ACCEPT -5.0		/* shape of the acceptance */
#define START_TEMPERATURE 5230.0
#define RESTART_RATIO 2e-5
#define TAIL_LIMIT 1e8

static double gamma_log(double x)
{
	int sign;

	/* lgamma() would write a global. */
	return lgamma_r(x, &sign);
}

/* The scale of jumps at this temperature. */
static double jump_width(double temperature)
{
	const double q = VISIT;
	double f1 = exp(log(temperature) / (q - 1));
	double f2 = exp((4 - q) * log(q - 1));
	double f3 = exp((2 - q) * log(2.0) / (q - 1));
	double f4 = sqrt(M_PI) * f1 * f2 / (f3 * (3 - q));
	double f5 = 1 / (q - 1) - 0.5;
	double f6 = M_PI * (1 - f5) / sin(M_PI * (1 - f5)) /
		exp(gamma_log(2 - f5));

	return exp(-(q - 1) * log(f6 / f4) / (3 - q));
}

/* One with heavy tails: a normal number over a power of another. */
static double jump(struct plan_random *r, double width)
{
	double radius = sqrt(-2 * log(1 - plan_random_unit(r)));
	double angle = 2 * M_PI * plan_random_unit(r), x;

	x = width * radius * cos(angle) / exp((VISIT - 1) *
		log(fabs(radius * sin(angle))) / (3 - VISIT));
	if (x > TAIL_LIMIT)
		return TAIL_LIMIT * plan_random_unit(r);
	if (x < -TAIL_LIMIT)
		return -TAIL_LIMIT * plan_random_unit(r);
	return isnan(x) ? 0 : x;
}

/* Back into the box, as if it were a ring. */
static double wrap(double v, double lo, double hi)
{
	double width = hi - lo;

	if (!(width > 0))
		return lo;
	v = (v - lo) / width;
	v = lo + (v - floor(v)) * width;
	return v < hi ? v : hi;
}

struct sa {
	const struct plan_search *s;
	struct plan_random random;
	double *at, *trial, *best;
	double value, best_value;
	uint32_t calls;
};

/* One step of a chain: every coordinate jumps, or one does. */
static void sa_step(struct sa *a, double temperature, double width,
	uint32_t step)
{
	const struct plan_search *s = a->s;
	double v, chance;

	memcpy(a->trial, a->at, s->nr * sizeof(double));
	for (uint32_t j = step < s->nr ? 0 : step - s->nr;
	     j < (step < s->nr ? s->nr : step - s->nr + 1); j++) {
		a->trial[j] = wrap(a->at[j] + jump(&a->random, width),
			s->lo[j], s->hi[j]);
	}
	v = s->value(s->ctx, a->trial);
	a->calls++;
	if (!(v < a->value)) {
		chance = 1 - (1 - ACCEPT) * (v - a->value) /
			(temperature / (step + 1.0));
		chance = chance > 0 ? exp(log(chance) / (1 - ACCEPT)) : 0;
		if (isnan(v) || plan_random_unit(&a->random) > chance)
			return;
	}
	a->value = v;
	memcpy(a->at, a->trial, s->nr * sizeof(double));
	if (v < a->best_value) {
		a->best_value = v;
		memcpy(a->best, a->trial, s->nr * sizeof(double));
	}
}

static void anneal(struct sa *a)
{
	const struct plan_search *s = a->s;
	const double top = exp((VISIT - 1) * log(2.0)) - 1;
	uint32_t stall = 0, t = 0;

	for (uint32_t g = 0; g < s->epochs && stall < s->stall; g++, t++) {
		double temperature = START_TEMPERATURE * top /
			(exp((VISIT - 1) * log(t + 2.0)) - 1);
		double before = a->best_value;
		double width = jump_width(temperature);

		if (temperature < START_TEMPERATURE * RESTART_RATIO) {
			t = 0;
			for (uint32_t j = 0; j < s->nr; j++)
				a->at[j] = s->lo[j] + (s->hi[j] - s->lo[j]) *
					plan_random_unit(&a->random);
			a->value = s->value(s->ctx, a->at);
		}
		for (uint32_t step = 0; step < 2 * s->nr; step++) {
			if (s->most_values && a->calls >= s->most_values)
				return;
			sa_step(a, temperature, width, step);
		}
		stall = a->best_value < before - 1e-10 ? 0 : stall + 1;
	}
}

enum plan_status plan_search_sa(const struct plan_search *s,
	const double *start, double *best, double *value)
{
	struct sa a = { .s = s, .random = { s->seed }, .best = best };
	enum plan_status err = PLAN_NO_MEMORY;

	if (!s->nr)
		return PLAN_BAD_PARAM;
	a.at = malloc(s->nr * sizeof(double));
	a.trial = malloc(s->nr * sizeof(double));
	if (a.at && a.trial) {
		memcpy(a.at, start, s->nr * sizeof(double));
		memcpy(best, start, s->nr * sizeof(double));
		a.value = a.best_value = s->value(s->ctx, start);
		a.calls = 1;
		anneal(&a);
		*value = a.best_value;
		err = PLAN_OK;
	}
	free(a.at);
	free(a.trial);
	return err;
}
