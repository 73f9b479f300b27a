/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linear program behind the strong bound, shared by bound_fluid.c, which
 * says what it means, and bound_solve.c.
 */
#ifndef BALLAST_PLANNER_BOUND_INT_H
#define BALLAST_PLANNER_BOUND_INT_H

#include "planner/bound.h"

#define KINDS 5
enum { Q, Y, Z, X, ROOM };	/* ROOM: what is left of P */

struct fluid {
	uint32_t n;
	int64_t rows;		/* 2n + 1: room and balance by layer, sum */
	double need, *cap, *rate;	/* bytes_i and rate * ms_i, scaled */
	/* By variable (KINDS * layer + kind): value, slack, their prices. */
	double *v, *s, *t, *w, *theta, *dv, *ds, *dt, *dw, *rd;
	double *price;		/* by row */
	double *rp, *step, *rhs;	/* by row */
	double *band, *edge[2];	/* matrix; its last two columns */
	double corner[2][2];
};

static inline uint32_t fluid_room_row(uint32_t i)
{
	return 2 * i;
}

/* Between layers i and i + 1. */
static inline uint32_t fluid_balance_row(uint32_t i)
{
	return 2 * i + 1;
}

enum plan_status fluid_init(struct fluid *f, uint32_t n,
	struct plan_arena *arena);
/* Values and prices for this pool, as good as the numbers allow. */
void fluid_solve(struct fluid *f, double pool);

#endif
