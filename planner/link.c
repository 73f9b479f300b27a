/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a copy costs (timeline.h): a latency and a rate where a table allows it,
 * else the table itself.  Called by the timeline and the strategy `optimal`.
 * Pure; no locks.
 */
#include "planner/timeline.h"

#include <math.h>
#include <stdlib.h>

/* A table whose points lie this close to a line is taken for the line. */
#define AFFINE_TOLERANCE 0.005

/* The point at 0 bytes, on the line through the first two. */
static double table_origin(const struct transfer_time *p, uint32_t nr)
{
	double slope, at;

	if (nr == 1)
		return 0;
	slope = (p[1].ms - p[0].ms) / (double)(p[1].bytes - p[0].bytes);
	at = p[0].ms - slope * (double)p[0].bytes;
	return at < 0 ? 0 : at > p[0].ms ? p[0].ms : at;
}

static double table_ms(const struct transfer_time *p, uint32_t nr, double bytes)
{
	double x0 = 0, y0 = table_origin(p, nr), x1, y1;
	uint32_t i = 0;

	while (i < nr && (double)p[i].bytes < bytes)
		i++;
	if (i == nr && nr > 1)
		i = nr - 1;
	else if (i == nr)
		i = 0;
	x1 = (double)p[i].bytes;
	y1 = p[i].ms;
	if (i > 0) {
		x0 = (double)p[i - 1].bytes;
		y0 = p[i - 1].ms;
	}
	/* A table that falls at its end says nothing about larger copies. */
	if (bytes > x1 && y1 < y0)
		return y1;
	return y0 + (y1 - y0) * (bytes - x0) / (x1 - x0);
}

static double whole_ms(const struct timeline_link *link, uint64_t bytes)
{
	if (link->nr_points > 0)
		return table_ms(link->points, link->nr_points, (double)bytes);
	return link->latency_ms + link->ms_per_byte * (double)bytes;
}

double timeline_copy_ms(const struct timeline_link *link, uint64_t bytes)
{
	uint64_t piece = link->piece_bytes, rest;

	if (bytes == 0)
		return 0;
	if (piece == 0 || bytes <= piece)
		return whole_ms(link, bytes);
	rest = bytes % piece;
	return (double)(bytes / piece) * whole_ms(link, piece) +
		(rest > 0 ? whole_ms(link, rest) : 0);
}

/* Least squares with weights ms^-power. */
static void fit(const struct transfer_time *p, uint32_t nr, double power,
	struct timeline_link *link)
{
	double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, det;

	for (uint32_t i = 0; i < nr; i++) {
		double k = pow(p[i].ms, -power), x = (double)p[i].bytes;

		w += k;
		wx += k * x;
		wy += k * p[i].ms;
		wxx += k * x * x;
		wxy += k * x * p[i].ms;
	}
	det = w * wxx - wx * wx;
	link->ms_per_byte = det > 0 ? (w * wxy - wx * wy) / det : wy / wx;
	link->latency_ms = (wy - link->ms_per_byte * wx) / w;
	if (link->latency_ms < 0 || !(link->ms_per_byte > 0)) {
		link->latency_ms = 0;
		link->ms_per_byte = wxy / wxx;
	}
}

static double misfit(const struct transfer_time *p, uint32_t nr,
	const struct timeline_link *link)
{
	double worst = 0;

	for (uint32_t i = 0; i < nr; i++) {
		double off = fabs(link->latency_ms + link->ms_per_byte *
			(double)p[i].bytes - p[i].ms) / p[i].ms;

		if (off > worst)
			worst = off;
	}
	return worst;
}

static int by_bytes(const void *a, const void *b)
{
	const struct transfer_time *p = a, *q = b;

	return p->bytes < q->bytes ? -1 : p->bytes > q->bytes;
}

enum plan_status timeline_link_of(const struct plan_input *in,
	struct plan_arena *arena, struct timeline_link *link)
{
	struct memory_stats stats = { NULL, 0 };
	struct transfer_time *p;
	enum plan_status status;

	*link = (struct timeline_link){ 0 };
	if (in->memory_stats && in->memory_stats->nr > 0) {
		stats = *in->memory_stats;
	} else {
		status = plan_extract_memory_stats(in->layers, in->nr_layers,
			arena, &stats);
		if (status != PLAN_OK)
			return status;
	}
	if (stats.nr == 0)
		return PLAN_NEEDS_TABLE;
	p = plan_arena_alloc(arena, stats.nr, sizeof(*p));
	if (!p)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < stats.nr; i++) {
		p[i] = stats.points[i];
		if (p[i].bytes == 0 || !(p[i].ms > 0) || !isfinite(p[i].ms))
			return PLAN_BAD_TABLE;
	}
	qsort(p, stats.nr, sizeof(*p), by_bytes);
	/* Rounded tables are off by the same amount at every size. */
	fit(p, stats.nr, 0, link);
	if (misfit(p, stats.nr, link) > AFFINE_TOLERANCE)
		fit(p, stats.nr, 2, link);
	if (misfit(p, stats.nr, link) > AFFINE_TOLERANCE) {
		link->points = p;
		link->nr_points = stats.nr;
	}
	return PLAN_OK;
}

void timeline_link_below(const struct timeline_link *link, double *latency_ms,
	double *ms_per_byte)
{
	const struct transfer_time *p = link->points;
	uint32_t nr = link->nr_points;
	double rise, low, slope = INFINITY;

	*latency_ms = link->latency_ms;
	*ms_per_byte = link->ms_per_byte;
	if (nr == 0)
		return;
	/* The end of the table rules large copies. */
	rise = nr == 1 ? p[0].ms / (double)p[0].bytes :
		(p[nr - 1].ms - p[nr - 2].ms) /
		(double)(p[nr - 1].bytes - p[nr - 2].bytes);
	if (rise < 0)
		rise = 0;
	low = table_origin(p, nr);
	for (uint32_t i = 0; i < nr; i++) {
		double at = p[i].ms - rise * (double)p[i].bytes;

		if (at < low)
			low = at;
		if (p[i].ms / (double)p[i].bytes < slope)
			slope = p[i].ms / (double)p[i].bytes;
	}
	if (low < 0) {
		/* Through the origin instead, below every point. */
		low = 0;
		rise = slope < rise ? slope : rise;
	}
	*latency_ms = low;
	*ms_per_byte = rise;
}
