/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link's table.  Source: a free range of the arena, or memory pinned for
 * the moment where nothing has spilled; target: a piece of GPU memory taken
 * from the driver for the moment.  No state here.
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

/* Where copies come from. */
struct source {
	void *at;
	uint64_t size;
	uint64_t arena;		/* offset, or ARENA_NONE: pinned by itself */
};

/*
 * A range that nobody else writes: what lies there does not matter, but a copy
 * must not read what another one writes.
 */
static bool source_find(struct source *s, uint64_t size)
{
	/* No spill yet: the arena is not there, and is not to be. */
	bool own = arena_capacity() == 0;

	for (; size >= LEAST; size /= 2) {
		s->size = size;
		s->arena = own ? ARENA_NONE : arena_alloc(size);
		if (s->arena != ARENA_NONE) {
			s->at = arena_ptr(s->arena);
			return true;
		}
		if (own && real.cuMemHostAlloc(&s->at, size, 0) ==
		    CUDA_SUCCESS)
			return true;
	}
	return false;
}

static void source_free(const struct source *s)
{
	if (s->arena != ARENA_NONE)
		arena_free(s->arena, s->size);
	else
		real.cuMemFreeHost(s->at);
}

static CUresult time_copy(struct context *c, CUdeviceptr to, const void *from,
	uint64_t size, CUevent *mark, double *best)
{
	float ms = 0;
	CUresult r;

	*best = 0;
	for (int i = 0; i < ROUNDS; i++) {
		r = real.cuEventRecord(mark[0], c->copy);
		if (r == CUDA_SUCCESS)
			r = real.cuMemcpyHtoDAsync_v2(to, from, size, c->copy);
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
	struct source from;
	uint64_t size;
	CUdeviceptr to;
	CUresult r = CUDA_SUCCESS;
	double ms;

	g->nr = 0;
	size = most > LARGEST ? LARGEST : most < LEAST ? LEAST : most;
	if (!source_find(&from, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = from.size;
	to = target_find(&size);
	if (to == 0) {
		source_free(&from);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (int i = 0; i < 2 && r == CUDA_SUCCESS; i++)
		r = real.cuEventCreate(&mark[i], CU_EVENT_DEFAULT);
	for (uint64_t n = LEAST; r == CUDA_SUCCESS && g->nr < GAUGE_POINTS - 1;
	     n *= 4) {
		if (n > size)
			n = size;
		r = time_copy(c, to, from.at, n, mark, &ms);
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
	source_free(&from);
	if (r == CUDA_SUCCESS && g->nr > 0)
		extend(g, most);
	return r;
}
