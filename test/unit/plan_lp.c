/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound as a linear program (plan_lp.h).  Variables for layer i: x_i bytes
 * streamed, w_i time waited before it, c_i and d_i bytes copied since some start
 * when it begins and ends.  In an iteration the sums repeat, shifted by the sum
 * of x.  minimise sum(ms + w) so that
 *   c_i >= x_0 + .. + x_i                      its bytes are there
 *   d_i <= x_0 + .. + x_{i-1} + X - need       there was room
 *   0 <= d_i - c_i <= rate * ms_i
 *   0 <= c_{i+1} - d_i <= rate * w_{i+1}
 * and that the copies, none larger than the pool P = X - need, fit the period:
 *   T >= X / rate + a (1 + need / P)           by tangents in P, as many as
 *                                              it takes.
 * For a given pool P the program has more to say: no copy is faster than one of
 * P bytes, and two in a row are no larger than the pool, but for what layers
 * shorter than a latency may release in between (quick):
 *   1 / rate + a / P instead of 1 / rate
 *   T >= X / rate + a (2 + (2 need - quick) / P)
 */
#include "test/unit/plan_lp.h"

#if __has_include(<glpk.h>)

#include <glpk.h>
#include <math.h>
#include <stdlib.h>

#define TANGENTS 20
#define MAX_CUTS 40
#define UNIT 1048576.0		/* the program is in MiB */

struct lp {
	glp_prob *p;
	int nr;
	int rows;
	double need, rate, link_rate, latency, compute, quick, pool;
	int *at;		/* of the row that is being made */
	double *factor;
	int n;
};

enum { X, W, C, D, NR_KINDS };

static int column(const struct lp *l, int kind, int layer)
{
	return 1 + kind * l->nr + layer;
}

static void put(struct lp *l, int col, double factor)
{
	for (int i = 1; i <= l->n; i++)
		if (l->at[i] == col) {
			l->factor[i] += factor;
			return;
		}
	l->at[++l->n] = col;
	l->factor[l->n] = factor;
}

static void put_sum(struct lp *l, int layers, double factor)
{
	for (int i = 0; i < layers; i++)
		put(l, column(l, X, i), factor);
}

/* low <= the row's sum <= high. */
static void add(struct lp *l, double low, double high)
{
	int type = low == -INFINITY ? GLP_UP : high == INFINITY ? GLP_LO :
		low == high ? GLP_FX : GLP_DB;

	l->rows = glp_add_rows(l->p, 1);
	glp_set_row_bnds(l->p, l->rows, type, low, high);
	glp_set_mat_row(l->p, l->rows, l->n, l->at, l->factor);
	l->n = 0;
}

static void add_layer(struct lp *l, int i, const double *ms)
{
	int next = (i + 1) % l->nr;

	put(l, column(l, C, i), 1);
	put_sum(l, i + 1, -1);
	add(l, 0, INFINITY);
	put(l, column(l, D, i), 1);
	put_sum(l, i, -1);
	put_sum(l, l->nr, -1);
	add(l, -INFINITY, -l->need);
	put(l, column(l, D, i), 1);
	put(l, column(l, C, i), -1);
	if (ms[i] > 0)
		add(l, 0, l->rate * ms[i]);
	else
		add(l, 0, 0);
	/* Across the end of the iteration the sums have grown by X. */
	for (int upper = 0; upper < 2; upper++) {
		put(l, column(l, C, next), 1);
		if (next == 0)
			put_sum(l, l->nr, 1);
		put(l, column(l, D, i), -1);
		if (upper)
			put(l, column(l, W, next), -l->rate);
		add(l, upper ? -INFINITY : 0, upper ? 0 : INFINITY);
	}
}

/* The latency row for one pool p: 1 / P >= 2 / p - P / p^2; P = X - need. */
static void add_tangent(struct lp *l, double p)
{
	double slope = l->latency * l->need / (p * p);

	for (int i = 0; i < l->nr; i++)
		put(l, column(l, W, i), 1);
	put_sum(l, l->nr, slope - 1 / l->rate);
	add(l, l->latency + l->latency * l->need * 2 / p + slope * l->need -
		l->compute, INFINITY);
}

/* A start: any pool has a tangent point that is not far off. */
static void add_latency(struct lp *l, double total)
{
	double low = total / 1e4, step = pow(1e4, 1.0 / (TANGENTS - 1));

	for (int k = 0; k < TANGENTS; k++)
		add_tangent(l, low * pow(step, k));
}

/* X = need + pool, and pairs of copies. */
static void add_pool(struct lp *l)
{
	double turns = 2 + (2 * l->need - l->quick) / l->pool;

	put_sum(l, l->nr, 1);
	add(l, l->need + l->pool, l->need + l->pool);
	for (int i = 0; i < l->nr; i++)
		put(l, column(l, W, i), 1);
	add(l, (l->need + l->pool) / l->link_rate + l->latency * turns -
		l->compute, INFINITY);
}

static bool solve(struct lp *l, bool first)
{
	glp_smcp parm;

	glp_init_smcp(&parm);
	parm.msg_lev = GLP_MSG_OFF;
	parm.presolve = first ? GLP_ON : GLP_OFF;
	parm.meth = first ? GLP_PRIMAL : GLP_DUALP;
	parm.tol_bnd = 1e-9;
	return glp_simplex(l->p, &parm) == 0 &&
		glp_get_status(l->p) == GLP_OPT;
}

/*
 * Between two tangent points the program is too low, with 60 of them by up to
 * 0.7 % of the latency of all copies.  So the tangent at each solution's pool is
 * added until the solution is on the curve itself.
 */
static double solve_exactly(struct lp *l)
{
	for (int cut = 0; solve(l, cut == 0); cut++) {
		double t = l->compute + glp_get_obj_val(l->p), pool, sum = 0;

		for (int i = 0; i < l->nr; i++)
			sum += glp_get_col_prim(l->p, column(l, X, i));
		pool = sum - l->need;
		if (l->pool > 0 || l->latency <= 0 || pool <= 0 ||
			cut == MAX_CUTS || t >= (sum / l->rate + l->latency *
			(1 + l->need / pool)) * (1 - 1e-9))
			return t;
		add_tangent(l, pool);
	}
	return -1;
}

bool plan_lp_available(void)
{
	return true;
}

double plan_lp_bound(uint32_t nr, const double *ms, const uint64_t *bytes,
	double need, double latency_ms, double ms_per_byte, double pool)
{
	struct lp l = { .p = glp_create_prob(), .nr = (int)nr };
	double total = 0, best;

	l.need = need / UNIT;
	l.pool = pool / UNIT;
	l.link_rate = l.rate = 1 / (ms_per_byte * UNIT);
	l.latency = latency_ms;
	if (pool > 0)
		l.rate = 1 / (1 / l.rate + latency_ms / l.pool);
	l.at = calloc(NR_KINDS * nr + 2, sizeof(*l.at));
	l.factor = calloc(NR_KINDS * nr + 2, sizeof(*l.factor));
	glp_add_cols(l.p, NR_KINDS * l.nr);
	for (int i = 0; i < l.nr; i++) {
		double size = bytes[i] / UNIT;

		total += size;
		l.compute += ms[i];
		if (ms[i] < latency_ms)
			l.quick += size;
		if (size > 0)
			glp_set_col_bnds(l.p, column(&l, X, i), GLP_DB, 0,
				size);
		else
			glp_set_col_bnds(l.p, column(&l, X, i), GLP_FX, 0, 0);
		glp_set_col_bnds(l.p, column(&l, W, i), GLP_LO, 0, 0);
		glp_set_col_bnds(l.p, column(&l, C, i), GLP_FR, 0, 0);
		glp_set_col_bnds(l.p, column(&l, D, i), GLP_FR, 0, 0);
		glp_set_obj_coef(l.p, column(&l, W, i), 1);
	}
	for (int i = 0; i < l.nr; i++)
		add_layer(&l, i, ms);
	if (pool > 0)
		add_pool(&l);
	else if (latency_ms > 0)
		add_latency(&l, total);
	glp_set_obj_dir(l.p, GLP_MIN);
	best = solve_exactly(&l);
	glp_delete_prob(l.p);
	free(l.at);
	free(l.factor);
	return best;
}

#else

bool plan_lp_available(void)
{
	return false;
}

double plan_lp_bound(uint32_t nr, const double *ms, const uint64_t *bytes,
	double need, double latency_ms, double ms_per_byte, double pool)
{
	return -1;
}

#endif
