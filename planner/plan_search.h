/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random search in a box: differential evolution and dual annealing, the same
 * result for the same seed.  Private to planner/.
 */
#ifndef BALLAST_PLAN_SEARCH_H
#define BALLAST_PLAN_SEARCH_H

#include "planner/planner.h"

struct plan_random {
	uint64_t state;
};

static inline uint64_t plan_random_next(struct plan_random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* In [0, 1). */
static inline double plan_random_unit(struct plan_random *r)
{
	return (double)(plan_random_next(r) >> 11) * 0x1p-53;
}

/* Below n; n > 0. */
static inline uint32_t plan_random_below(struct plan_random *r, uint32_t n)
{
	return (uint32_t)(((plan_random_next(r) >> 32) * n) >> 32);
}

/* To be minimised; +infinity ends nothing, it is only never the best. */
typedef double plan_value_fn(void *ctx, const double *x);

struct plan_search {
	uint32_t nr;			/* dimensions */
	const double *lo, *hi;
	const bool *integral;		/* NULL: none is; lo and hi whole then */
	plan_value_fn *value;
	void *ctx;
	uint32_t pop, epochs, stall;	/* members; generations; of no gain */
	uint32_t most_values;		/* 0: no limit on calls of value */
	uint64_t seed;
	double tolerance;		/* relative spread that ends it; 0: off */
};

/*
 * start: pop members of nr coordinates, inside the box, overwritten.  best: nr
 * coordinates.  Returns the value of best in *value.
 */
enum plan_status plan_search_de(const struct plan_search *s, double *start,
	double *best, double *value);
/* start: nr coordinates, the first point. */
enum plan_status plan_search_sa(const struct plan_search *s,
	const double *start, double *best, double *value);

#endif
