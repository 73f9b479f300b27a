/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's table.  Source: pinned memory of the arena, whatever it holds;
 * target: a piece of GPU memory taken from the driver for the moment.  No
 * state here.
 */
#include "shim/gauge.h"

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/log.h"

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

/* What is larger than the largest one measured goes as several of that. */
static void extend(struct gauge *g, uint64_t most)
{
	const struct transfer_time *last = &g->points[g->nr - 1];
	double n = (double)most / (double)last->bytes;

	if (n <= 1 || g->nr == GAUGE_POINTS)
		return;
	g->points[g->nr++] = (struct transfer_time){
		.bytes = most,
		.ms = last->ms * n,
	};
}

CUresult gauge_measure(struct context *c, uint64_t most, struct gauge *g)
{
	CUevent mark[2] = { NULL, NULL };
	uint64_t from, size, room = arena_sample(&from);
	CUdeviceptr to;
	CUresult r = CUDA_SUCCESS;
	double ms;

	g->nr = 0;
	size = most < LARGEST ? most : LARGEST;
	if (size > room)
		size = room;
	if (size < LEAST)
		size = room < LEAST ? room : LEAST;
	to = target_find(&size);
	if (to == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
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
	for (int i = 0; i < 2; i++)
		if (mark[i] != NULL)
			real.cuEventDestroy_v2(mark[i]);
	real.cuMemFree_v2(to);
	if (r == CUDA_SUCCESS && g->nr > 0)
		extend(g, most);
	return r;
}
