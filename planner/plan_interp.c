/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MemoryTransferInterpolator: bytes to time and back, piecewise linear in the
 * logarithms of both, beyond the ends along the outermost two points.  Called
 * by strategies, evaluation and tools.
 *
 * Times that do not grow with size (a noisy measurement) have no inverse; the
 * inverse then uses a table made non-decreasing by running maxima, where the
 * published one answers with whatever its search hits.
 */
#include "planner/plan_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct memory_transfer_interpolator {
	uint32_t nr;
	double only_bytes, only_ms;	/* if nr == 1, exactly */
	double *x, *y;			/* ln bytes, ln ms */
	double *up;			/* y, never falling */
};

static int by_bytes(const void *a, const void *b)
{
	const struct transfer_time *p = a, *q = b;

	if (p->bytes != q->bytes)
		return p->bytes > q->bytes ? 1 : -1;
	/* So that a mean does not depend on how qsort treats equals. */
	return (p->ms > q->ms) - (p->ms < q->ms);
}

enum plan_status plan_interpolator_create(const struct memory_stats *stats,
	struct plan_arena *arena, struct memory_transfer_interpolator **out)
{
	struct memory_transfer_interpolator *ip;
	struct transfer_time *t;
	uint32_t nr = stats->nr;

	*out = NULL;
	if (!nr)
		return PLAN_NEEDS_TABLE;
	ip = plan_arena_alloc(arena, 1, sizeof(*ip));
	t = plan_arena_alloc(arena, nr, sizeof(*t));
	if (!ip || !t)
		return PLAN_NO_MEMORY;
	memcpy(t, stats->points, nr * sizeof(*t));
	qsort(t, nr, sizeof(*t), by_bytes);
	ip->nr = nr;
	ip->x = plan_arena_alloc(arena, nr, sizeof(double));
	ip->y = plan_arena_alloc(arena, nr, sizeof(double));
	ip->up = plan_arena_alloc(arena, nr, sizeof(double));
	if (!ip->x || !ip->y || !ip->up)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < nr; i++) {
		if (!t[i].bytes || !(t[i].ms > 0) || !isfinite(t[i].ms) ||
		    (i > 0 && t[i].bytes == t[i - 1].bytes))
			return PLAN_BAD_TABLE;
		ip->x[i] = log((double)t[i].bytes);
		ip->y[i] = log(t[i].ms);
		ip->up[i] = i > 0 && ip->up[i - 1] > ip->y[i] ?
			ip->up[i - 1] : ip->y[i];
		/* Sizes beyond 2^53 may share a logarithm. */
		if (i > 0 && ip->x[i] <= ip->x[i - 1])
			return PLAN_BAD_TABLE;
	}
	ip->only_bytes = (double)t[0].bytes;
	ip->only_ms = t[0].ms;
	*out = ip;
	return PLAN_OK;
}

/* The value over v of the line chain (a[i], b[i]); flat where a repeats. */
static double chain(const double *a, const double *b, uint32_t nr, double v)
{
	uint32_t lo = 0, hi = nr - 1, mid;

	/* The segment that holds v, or the outermost one. */
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (a[mid] <= v)
			lo = mid;
		else
			hi = mid;
	}
	if (a[hi] <= a[lo])
		return v < a[lo] ? b[lo] : b[hi];
	return b[lo] + (b[hi] - b[lo]) / (a[hi] - a[lo]) * (v - a[lo]);
}

double plan_bytes_to_duration(const struct memory_transfer_interpolator *ip,
	double bytes)
{
	if (!(bytes > 0))
		return 0;
	if (ip->nr == 1)
		return ip->only_ms;
	return exp(chain(ip->x, ip->y, ip->nr, log(bytes)));
}

double plan_duration_to_bytes(const struct memory_transfer_interpolator *ip,
	double ms)
{
	if (!(ms > 0))
		return 0;
	if (ip->nr == 1)
		return ip->only_bytes;
	return exp(chain(ip->up, ip->x, ip->nr, log(ms)));
}

enum plan_status plan_extract_memory_stats(const struct layer_statistics *layers,
	uint32_t nr, struct plan_arena *arena, struct memory_stats *stats)
{
	struct transfer_time *t;
	uint32_t all = 0, n = 0, same;

	for (uint32_t i = 0; i < nr; i++)
		all += layers[i].nr;
	t = plan_arena_alloc(arena, all, sizeof(*t));
	if (!t)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < nr; i++)
		for (uint32_t j = 0; j < layers[i].nr; j++) {
			const struct tensor_statistics *s =
				&layers[i].tensors[j];

			if (s->load_time_ms > 0 && s->size_bytes > 0) {
				t[n].bytes = s->size_bytes;
				t[n++].ms = s->load_time_ms;
			}
		}
	qsort(t, n, sizeof(*t), by_bytes);
	stats->points = t;
	stats->nr = 0;
	for (uint32_t i = 0; i < n; i += same) {
		double sum = 0;

		for (same = 0; i + same < n && t[i + same].bytes == t[i].bytes;
		     same++)
			sum += t[i + same].ms;
		t[stats->nr].bytes = t[i].bytes;
		t[stats->nr++].ms = sum / same;
	}
	return PLAN_OK;
}

enum plan_status plan_interpolator_of(const struct plan_input *in,
	struct plan_arena *arena, struct memory_transfer_interpolator **out)
{
	struct memory_stats extracted;
	const struct memory_stats *stats = in->memory_stats;
	enum plan_status err;

	*out = NULL;
	if (!stats) {
		err = plan_extract_memory_stats(in->layers, in->nr_layers,
			arena, &extracted);
		if (err)
			return err;
		stats = &extracted;
	}
	if (!stats->nr)
		return PLAN_OK;
	return plan_interpolator_create(stats, arena, out);
}
