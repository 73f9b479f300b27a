/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interior point method (predictor and corrector) for the linear program of
 * bound_fluid.c.  Its normal equations are a band and two more rows, so a step
 * costs about linear in layers.  Pure; no locks.
 */
#include "planner/bound_int.h"

#include <math.h>
#include <string.h>

#define MAX_STEPS 60
#define BAND 3			/* diagonal and two below */

struct term {
	uint32_t row;
	double factor;
};

/* The rows that variable `kind` of layer i occurs in. */
static uint32_t terms_of(const struct fluid *f, uint32_t i, int kind,
	struct term *t)
{
	uint32_t before = fluid_balance_row(i > 0 ? i - 1 : f->n - 1);

	switch (kind) {
	case Q:
		t[0] = (struct term){ fluid_room_row(i), 1 };
		t[1] = (struct term){ fluid_balance_row(i), -1 };
		t[2] = (struct term){ before, 1 };
		return 3;
	case Y:
		t[0] = (struct term){ fluid_room_row(i), 1 };
		t[1] = (struct term){ fluid_balance_row(i), -1 };
		return 2;
	case Z:
		t[0] = (struct term){ before, -1 };
		return 1;
	case X:
		t[0] = (struct term){ fluid_room_row(i), 1 };
		t[1] = (struct term){ before, 1 };
		t[2] = (struct term){ 2 * f->n, 1 };
		return 3;
	default:
		t[0] = (struct term){ fluid_room_row(i), 1 };
		return 1;
	}
}

/* Upper limit, or INFINITY. */
static double upper(const struct fluid *f, uint32_t i, int kind)
{
	return kind == Y ? f->rate[i] : kind == X ? f->cap[i] : INFINITY;
}

static double cost(int kind)
{
	return kind == Z ? 1 : 0;
}

enum plan_status fluid_init(struct fluid *f, uint32_t n,
	struct plan_arena *arena)
{
	size_t vars = (size_t)KINDS * n, rows = 2 * (size_t)n + 1;
	double **by_var[] = { &f->v, &f->s, &f->t, &f->w, &f->theta, &f->dv,
		&f->ds, &f->dt, &f->dw, &f->rd };
	double **by_row[] = { &f->price, &f->rp, &f->step, &f->rhs,
		&f->edge[0], &f->edge[1] };

	memset(f, 0, sizeof(*f));
	f->n = n;
	f->rows = (int64_t)rows;
	for (size_t k = 0; k < sizeof(by_var) / sizeof(*by_var); k++) {
		*by_var[k] = plan_arena_alloc(arena, vars, sizeof(double));
		if (!*by_var[k])
			return PLAN_NO_MEMORY;
	}
	for (size_t k = 0; k < sizeof(by_row) / sizeof(*by_row); k++) {
		*by_row[k] = plan_arena_alloc(arena, rows, sizeof(double));
		if (!*by_row[k])
			return PLAN_NO_MEMORY;
	}
	f->band = plan_arena_alloc(arena, rows * BAND, sizeof(double));
	f->cap = plan_arena_alloc(arena, n, sizeof(double));
	f->rate = plan_arena_alloc(arena, n, sizeof(double));
	return f->band && f->cap && f->rate ? PLAN_OK : PLAN_NO_MEMORY;
}

/* ---- the matrix ---------------------------------------------------------------- */

static void add_entry(struct fluid *f, uint32_t a, uint32_t b, double x)
{
	uint32_t edge = 2 * f->n - 1;

	if (a < b) {
		uint32_t swap = a;

		a = b;
		b = swap;
	}
	if (b >= edge)
		f->corner[a - edge][b - edge] += x;
	else if (a >= edge)
		f->edge[a - edge][b] += x;
	else
		f->band[(size_t)b * BAND + (a - b)] += x;
}

/*
 * The normal equations: banded, but for the balance around the end of the
 * iteration and the sum.  Then L D L' of the band, in place, and of the two
 * last rows.
 */
static void factor(struct fluid *f)
{
	int64_t m = f->rows - 2;

	memset(f->band, 0, (size_t)f->rows * BAND * sizeof(double));
	for (int k = 0; k < 2; k++)
		memset(f->edge[k], 0, (size_t)f->rows * sizeof(double));
	memset(f->corner, 0, sizeof(f->corner));
	for (uint32_t i = 0; i < f->n; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			struct term t[3];
			uint32_t nr = terms_of(f, i, kind, t);
			double th = f->theta[KINDS * i + kind];

			for (uint32_t a = 0; a < nr; a++)
				for (uint32_t b = 0; b <= a; b++)
					add_entry(f, t[a].row, t[b].row, th *
						t[a].factor * t[b].factor);
		}
	for (int64_t j = 0; j < m; j++) {
		double *d = &f->band[j * BAND];

		d[0] += 1e-14 * d[0] + 1e-30;
		for (int a = 1; a < BAND && j + a < m; a++) {
			double l = d[a] / d[0];

			for (int b = a; b < BAND && j + b < m; b++)
				f->band[(j + a) * BAND + b - a] -= l * d[b];
		}
		for (int k = 0; k < 2; k++)
			for (int a = 1; a < BAND && j + a < m; a++)
				f->edge[k][j + a] -= f->edge[k][j] * d[a] /
					d[0];
		for (int k = 0; k < 2; k++)
			for (int h = 0; h <= k; h++)
				f->corner[k][h] -= f->edge[k][j] *
					f->edge[h][j] / d[0];
	}
}

/* step = matrix^-1 rhs; rhs is spoilt. */
static void solve(struct fluid *f)
{
	int64_t m = f->rows - 2;
	double *r = f->rhs, *x = f->step, det;

	for (int64_t j = 0; j < m; j++) {
		const double *d = &f->band[j * BAND];
		double u = r[j] / d[0];

		for (int a = 1; a < BAND && j + a < m; a++)
			r[j + a] -= u * d[a];
		for (int k = 0; k < 2; k++)
			r[m + k] -= u * f->edge[k][j];
	}
	/* The last two; the rows may depend on each other. */
	double a = f->corner[0][0], b = f->corner[1][0], c = f->corner[1][1];

	a += 1e-13 * fabs(a) + 1e-30;
	c += 1e-13 * fabs(c) + 1e-30;
	det = a * c - b * b;
	if (!(det > 0))
		det = 1e-30 + 1e-13 * a * c;
	x[m] = (c * r[m] - b * r[m + 1]) / det;
	x[m + 1] = (a * r[m + 1] - b * r[m]) / det;
	for (int64_t j = m - 1; j >= 0; j--) {
		const double *d = &f->band[j * BAND];
		double u = r[j] - f->edge[0][j] * x[m] -
			f->edge[1][j] * x[m + 1];

		for (int k = 1; k < BAND && j + k < m; k++)
			u -= d[k] * x[j + k];
		x[j] = u / d[0];
	}
}

/* ---- the method ----------------------------------------------------------------- */

static void start(struct fluid *f, double pool)
{
	double mean = (f->need + pool) / f->n;

	for (uint32_t i = 0; i < f->n; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			uint32_t k = KINDS * i + (uint32_t)kind;
			double u = upper(f, i, kind);

			f->v[k] = u < 2 * mean ? u / 2 : mean;
			f->s[k] = u < INFINITY ? u - f->v[k] : 1;
			f->t[k] = 1;
			f->w[k] = u < INFINITY ? 1 : 0;
		}
	memset(f->price, 0, (size_t)f->rows * sizeof(double));
}

/* Residuals; returns the mean product of values and prices. */
static double residuals(struct fluid *f, double pool)
{
	double gap = 0;
	uint32_t pairs = 0;

	memset(f->rp, 0, (size_t)f->rows * sizeof(double));
	for (uint32_t i = 0; i < f->n; i++)
		f->rp[fluid_room_row(i)] = pool;
	f->rp[2 * f->n] = f->need + pool;
	for (uint32_t i = 0; i < f->n; i++)
		for (int kind = 0; kind < KINDS; kind++) {
			uint32_t k = KINDS * i + (uint32_t)kind;
			struct term t[3];
			uint32_t nr = terms_of(f, i, kind, t);
			double d = cost(kind) - f->t[k] + f->w[k];

			for (uint32_t a = 0; a < nr; a++) {
				f->rp[t[a].row] -= t[a].factor * f->v[k];
				d -= t[a].factor * f->price[t[a].row];
			}
			f->rd[k] = d;
			gap += f->v[k] * f->t[k];
			pairs++;
			if (f->w[k] > 0) {
				gap += f->s[k] * f->w[k];
				pairs++;
			}
		}
	return gap / pairs;
}

/* One Newton step towards products of `mu` (less the products in dv.. before). */
static void direction(struct fluid *f, double mu, bool corrector)
{
	memcpy(f->rhs, f->rp, (size_t)f->rows * sizeof(double));
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < f->n; i++)
			for (int kind = 0; kind < KINDS; kind++) {
				uint32_t k = KINDS * i + (uint32_t)kind;
				struct term t[3];
				uint32_t nr = terms_of(f, i, kind, t);
				double u = upper(f, i, kind), us = 0, g;
				double cv, cs = 0;

				/* t dv + v dt = cv; w ds + s dw = cs */
				cv = mu - f->v[k] * f->t[k];
				if (u < INFINITY) {
					us = u - f->v[k] - f->s[k];
					cs = mu - f->s[k] * f->w[k];
				}
				if (corrector) {
					cv -= f->dt[k];
					cs -= f->dw[k];
				}
				g = f->rd[k] - cv / f->v[k];
				if (u < INFINITY)
					g += (cs - f->w[k] * us) / f->s[k];
				if (pass == 0) {
					for (uint32_t a = 0; a < nr; a++)
						f->rhs[t[a].row] += t[a].factor *
							f->theta[k] * g;
					continue;
				}
				g = -g;
				for (uint32_t a = 0; a < nr; a++)
					g += t[a].factor * f->step[t[a].row];
				f->dv[k] = f->theta[k] * g;
				f->dt[k] = (cv - f->t[k] * f->dv[k]) / f->v[k];
				f->ds[k] = us - f->dv[k];
				f->dw[k] = u < INFINITY ? (cs - f->w[k] *
					f->ds[k]) / f->s[k] : 0;
			}
		if (pass == 0)
			solve(f);
	}
}

/* The longest steps that keep everything positive. */
static void lengths(const struct fluid *f, double *primal, double *dual)
{
	double p = 1, d = 1;

	for (uint32_t k = 0; k < KINDS * f->n; k++) {
		if (f->dv[k] < 0)
			p = fmin(p, -f->v[k] / f->dv[k]);
		if (f->dt[k] < 0)
			d = fmin(d, -f->t[k] / f->dt[k]);
		if (f->w[k] <= 0)
			continue;
		if (f->ds[k] < 0)
			p = fmin(p, -f->s[k] / f->ds[k]);
		if (f->dw[k] < 0)
			d = fmin(d, -f->w[k] / f->dw[k]);
	}
	*primal = p;
	*dual = d;
}

static double predicted_gap(const struct fluid *f, double p, double d)
{
	double gap = 0;
	uint32_t pairs = 0;

	for (uint32_t k = 0; k < KINDS * f->n; k++) {
		gap += (f->v[k] + p * f->dv[k]) * (f->t[k] + d * f->dt[k]);
		pairs++;
		if (f->w[k] > 0) {
			gap += (f->s[k] + p * f->ds[k]) *
				(f->w[k] + d * f->dw[k]);
			pairs++;
		}
	}
	return gap / pairs;
}

static void take_step(struct fluid *f, double p, double d)
{
	for (uint32_t k = 0; k < KINDS * f->n; k++) {
		f->v[k] += p * f->dv[k];
		f->t[k] += d * f->dt[k];
		if (f->w[k] > 0) {
			f->s[k] += p * f->ds[k];
			f->w[k] += d * f->dw[k];
		}
	}
	for (int64_t r = 0; r < f->rows; r++)
		f->price[r] += d * f->step[r];
}

void fluid_solve(struct fluid *f, double pool)
{
	start(f, pool);
	for (int n = 0; n < MAX_STEPS; n++) {
		double mu = residuals(f, pool), p, d, after, centre;

		if (mu < 1e-11 * f->need)
			break;
		for (uint32_t k = 0; k < KINDS * f->n; k++)
			f->theta[k] = 1 / (f->t[k] / f->v[k] +
				(f->w[k] > 0 ? f->w[k] / f->s[k] : 0));
		factor(f);
		direction(f, 0, false);
		lengths(f, &p, &d);
		after = predicted_gap(f, p, d);
		centre = after / mu;
		centre *= centre * centre;
		/* The products that the first step would leave behind. */
		for (uint32_t k = 0; k < KINDS * f->n; k++) {
			f->dt[k] *= f->dv[k];
			f->dw[k] *= f->ds[k];
		}
		direction(f, centre * mu, true);
		lengths(f, &p, &d);
		take_step(f, p < 1 ? 0.995 * p : 1, d < 1 ? 0.995 * d : 1);
	}
}
