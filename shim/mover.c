/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between arena and GPU.  Each direction has one stream per context, so
 * copies of a direction run in the order they were queued.  No state here.
 */
#include "shim/mover.h"

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/log.h"
#include "shim/stats.h"

/* A copy this large leaves the engine to the program's own copies in between. */
#define PIECE_BYTES (32u << 20)

static bool joins(const struct move *a, size_t size, const struct move *b)
{
	return a->device + size == b->device && a->arena + size == b->arena &&
		!arena_border(b->arena) && size + b->size <= PIECE_BYTES;
}

typedef CUresult copy_fn(struct context *c, const struct move *m, size_t size);

static CUresult copy_in(struct context *c, const struct move *m, size_t size)
{
	stat_add(fetch_bytes, size);
	return real.cuMemcpyHtoDAsync_v2(m->device, arena_ptr(m->arena), size,
		c->copy);
}

static CUresult copy_out(struct context *c, const struct move *m, size_t size)
{
	stat_add(writeback_bytes, size);
	return real.cuMemcpyDtoHAsync_v2(arena_ptr(m->arena), m->device, size,
		c->side);
}

static CUresult run(struct context *c, const struct move *m, size_t n,
	copy_fn *copy, CUstream stream, bool later, struct event **done)
{
	CUresult r = CUDA_SUCCESS;
	size_t i = 0;

	*done = NULL;
	while (i < n && r == CUDA_SUCCESS) {
		const struct move *first = &m[i];
		size_t size = first->size;

		for (i++; i < n && joins(first, size, &m[i]); i++)
			size += m[i].size;
		r = copy(c, first, size);
	}
	if (r == CUDA_SUCCESS)
		*done = later ? event_later(c, stream, &r) :
			event_record(c, stream, &r);
	/* A stream need not wait for itself. */
	if (*done != NULL)
		*(stream == c->copy ? &(*done)->copy_after :
			&(*done)->side_after) = c;
	if (r != CUDA_SUCCESS) {
		log_err("a copy between arena and GPU failed: %s",
			api_result_name(r));
		mover_drain(c, stream);
	}
	return r;
}

void mover_drain(struct context *c, CUstream stream)
{
	struct event *e;
	CUresult r = CUDA_ERROR_UNKNOWN;

	/* Twice: the driver may have failed for a reason of the moment. */
	for (int i = 0; i < 2 && r != CUDA_SUCCESS; i++) {
		e = event_record(c, stream, &r);
		if (e == NULL)
			continue;
		r = event_wait(e);
		event_put(e);
	}
	if (r != CUDA_SUCCESS && !context_has_host_functions())
		real.cuStreamSynchronize(stream);
}

CUresult mover_fetch(struct context *c, const struct move *m, size_t n,
	struct event **done)
{
	return run(c, m, n, copy_in, c->copy, false, done);
}

CUresult mover_fetch_more(struct context *c, const struct move *m, size_t n,
	struct event **done)
{
	return run(c, m, n, copy_in, c->copy, true, done);
}

CUresult mover_save(struct context *c, const struct move *m, size_t n,
	struct event **done)
{
	return run(c, m, n, copy_out, c->side, false, done);
}

/*
 * Streams run in order: what has been waited for once need not be again.  A
 * second thread may come here at the same time; then there are two waits.
 */
static CUresult after(struct event *e, CUstream s, struct context *c,
	struct context **mark)
{
	CUresult r;

	if (__atomic_load_n(mark, __ATOMIC_ACQUIRE) == c)
		return CUDA_SUCCESS;
	r = event_order(e, s);
	if (r == CUDA_SUCCESS)
		__atomic_store_n(mark, c, __ATOMIC_RELEASE);
	return r;
}

CUresult mover_fetch_after(struct context *c, struct event *e)
{
	return after(e, c->copy, c, &e->copy_after);
}

CUresult mover_save_after(struct context *c, struct event *e)
{
	return after(e, c->side, c, &e->side_after);
}
