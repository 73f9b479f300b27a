/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's table.  Source: a free range of the arena; target: a piece of GPU
 * memory taken from the driver for the moment.  No state here.
 */
#include "shim/gauge.h"

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/mover.h"

#define LEAST (64u << 10)
#define LARGEST (32u << 20)	/* the mover's pieces */
#define ROUNDS 3

/* As large a target as there is, up to `size`. */
static CUdeviceptr target_find(uint64_t *size)
{
	CUdeviceptr p;

	while (*size >= LEAST) {
		if (real.cuMemAlloc_v2(&p, *size) == CUDA_SUCCESS)
			return p;
		*size /= 2;
	}
	return 0;
}

/*
 * A range that nobody else writes: what lies there does not matter, but a copy
 * must not read what another one writes.
 */
static uint64_t source_find(uint64_t *size)
{
	uint64_t from;

	while (*size >= LEAST) {
		from = arena_alloc(*size);
		if (from != ARENA_NONE)
			return from;
		*size /= 2;
	}
	return ARENA_NONE;
}

static CUresult time_copy(struct context *c, CUdeviceptr to, uint64_t from,
	uint64_t size, CUevent *mark, double *best)
{
	float ms = 0;
	CUresult r;

	*best = 0;
	for (int i = 0; i < ROUNDS; i++) {
		r = real.cuEventRecord(mark[0], c->copy);
		if (r == CUDA_SUCCESS)
			r = real.cuMemcpyHtoDAsync_v2(to, arena_ptr(from),
				size, c->copy);
		if (r == CUDA_SUCCESS)
			r = real.cuEventRecord(mark[1], c->copy);
		if (r == CUDA_SUCCESS)
			r = real.cuEventSynchronize(mark[1]);
		if (r == CUDA_SUCCESS)
			r = real.cuEventElapsedTime(&ms, mark[0], mark[1]);
		if (r != CUDA_SUCCESS)
			return r;
		if (ms > 0 && (*best == 0 || ms < *best))
			*best = ms;
	}
	return CUDA_SUCCESS;
}

/*
 * What is larger than the largest one measured: several of the mover's pieces,
 * or, where there was no room for one of those, on the line through the last
 * two, since latency comes once in each piece.
 */
static void extend(struct gauge *g, uint64_t most)
{
	const struct transfer_time *last = &g->points[g->nr - 1];
	double rest = (double)most - (double)last->bytes;
	double ms = last->ms * (double)most / (double)last->bytes;

	if (rest <= 0 || g->nr == GAUGE_POINTS)
		return;
	if (last->bytes < LARGEST && g->nr > 1)
		ms = last->ms + rest * (last->ms - last[-1].ms) /
			(double)(last->bytes - last[-1].bytes);
	if (ms < last->ms)
		ms = last->ms;
	g->points[g->nr++] = (struct transfer_time){ most, ms };
}

CUresult gauge_measure(struct context *c, uint64_t most, struct gauge *g)
{
	CUevent mark[2] = { NULL, NULL };
	uint64_t from, size, held;
	CUdeviceptr to;
	CUresult r = CUDA_SUCCESS;
	double ms;

	g->nr = 0;
	size = most > LARGEST ? LARGEST : most < LEAST ? LEAST : most;
	from = source_find(&size);
	if (from == ARENA_NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	held = size;
	to = target_find(&size);
	if (to == 0) {
		arena_free(from, held);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (int i = 0; i < 2 && r == CUDA_SUCCESS; i++)
		r = real.cuEventCreate(&mark[i], CU_EVENT_DEFAULT);
	for (uint64_t n = LEAST; r == CUDA_SUCCESS && g->nr < GAUGE_POINTS - 1;
	     n *= 4) {
		if (n > size)
			n = size;
		r = time_copy(c, to, from, n, mark, &ms);
		if (r == CUDA_SUCCESS && ms > 0)
			g->points[g->nr++] = (struct transfer_time){ n, ms };
		if (n == size)
			break;
	}
	if (r != CUDA_SUCCESS)
		mover_drain(c, c->copy);	/* both places are given back */
	for (int i = 0; i < 2; i++)
		if (mark[i] != NULL)
			real.cuEventDestroy_v2(mark[i]);
	real.cuMemFree_v2(to);
	arena_free(from, held);
	if (r == CUDA_SUCCESS && g->nr > 0)
		extend(g, most);
	return r;
}
