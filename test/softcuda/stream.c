/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams.  Called by the program; stream_submit is how every operation gets
 * its place.  The legacy stream waits for all blocking streams of its context
 * and they wait for it; per-thread default streams are blocking ones.  The
 * same edges go into the vector clocks.  Guarded by the driver's lock.
 */
#include "test/softcuda/stream.h"

#include <stdlib.h>
#include <utlist.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/report.h"

#define PRIORITY_LEAST 0
#define PRIORITY_GREATEST (-5)

static uint64_t next_id = 1;

static struct stream *create(struct context *ctx, enum stream_kind kind)
{
	struct stream *s = object_alloc(sizeof(*s));

	s->kind = kind;
	s->refs = 1;
	s->context = ctx;
	s->id = next_id++;
	s->actor = knobs.race ? race_actor_get() : 0;
	DL_APPEND2(ctx->streams, s, ctx_prev, ctx_next);
	object_add(s, OBJECT_STREAM);
	return s;
}

static void put(struct stream *s)
{
	if (--s->refs)
		return;
	if (knobs.race)
		race_actor_put(s->actor);
	race_clock_free(&s->clock);
	free(s);
}

/* The handle dies now; the record when its work is done. */
static void destroy(struct stream *s)
{
	struct context *ctx = s->context;

	if (s->thread)
		LL_DELETE2(s->thread->streams, s, thread_next);
	if (s == ctx->legacy)
		ctx->legacy = NULL;
	DL_DELETE2(ctx->streams, s, ctx_prev, ctx_next);
	object_remove(s);
	race_clock_join(&ctx->retired, &s->clock);
	op_put(s->last);
	s->last = NULL;
	put(s);
}

static struct stream *legacy_stream(struct context *ctx)
{
	if (!ctx->legacy)
		ctx->legacy = create(ctx, STREAM_LEGACY);
	return ctx->legacy;
}

static struct stream *thread_stream(struct context *ctx)
{
	struct thread *t = call_thread();
	struct stream *s;

	LL_FOREACH2(t->streams, s, thread_next)
		if (s->context == ctx)
			return s;
	s = create(ctx, STREAM_PER_THREAD);
	s->thread = t;
	LL_PREPEND2(t->streams, s, thread_next);
	return s;
}

CUresult stream_find(struct context *ctx, CUstream handle,
	enum stream_default zero, struct stream **out)
{
	if (!handle)
		handle = zero == STREAM_0_LEGACY ? CU_STREAM_LEGACY
			: CU_STREAM_PER_THREAD;
	if (handle == CU_STREAM_LEGACY)
		*out = legacy_stream(ctx);
	else if (handle == CU_STREAM_PER_THREAD)
		*out = thread_stream(ctx);
	else
		*out = object_find(handle, OBJECT_STREAM);
	if (!*out)
		return CUDA_ERROR_INVALID_HANDLE;
	return (*out)->context->error;
}

static void order_behind(struct op *op, struct stream *s)
{
	op_after(op, s->last);
	if (knobs.race)
		race_clock_join(&op->clock, &s->clock);
}

void stream_submit(struct stream *s, struct op *op)
{
	struct context *ctx = s->context;
	struct stream *other;

	op->stream = s;
	op->stream_id = s->id;
	op->context = ctx;
	op->device = ctx->device;
	s->refs++;
	order_behind(op, s);
	if (s->kind == STREAM_LEGACY) {
		DL_FOREACH2(ctx->streams, other, ctx_next)
			if (other != s && other->kind != STREAM_NON_BLOCKING)
				order_behind(op, other);
	} else if (s->kind != STREAM_NON_BLOCKING && ctx->legacy) {
		order_behind(op, ctx->legacy);
	}
	if (knobs.race) {
		call_actor();
		race_clock_join(&op->clock, call_clock());
		op->actor = s->actor;
		op->tick = race_step(s->actor, &op->clock);
		race_clock_join(&s->clock, &op->clock);
	}
	op_get(op);
	op_put(s->last);
	s->last = op;
	sim_submit(op);
}

void stream_op_done(struct op *op)
{
	struct stream *s = op->stream;

	op->stream = NULL;
	if (s && op->acquired)
		race_clock_join(&s->clock, &op->clock);
	if (s)
		put(s);
}

CUresult stream_wait(struct stream *s, struct op *op)
{
	struct context *ctx = s->context;

	op_get(op);
	stats.syncs++;
	sim_wait(op);
	call_learn(&op->clock);
	op_put(op);
	return ctx->error;
}

/* Whether operations of `s` wait for what was submitted to `other`. */
static bool covers(const struct stream *s, const struct stream *other)
{
	return s == other || (s->kind == STREAM_LEGACY
		&& other->kind != STREAM_NON_BLOCKING);
}

/* Collected first: while one waits, other threads may change the list. */
CUresult stream_synchronize(struct stream *s)
{
	struct context *ctx = s->context;
	struct race_clock seen = { 0 };
	struct op **op = NULL;
	size_t nr = 0, cap = 0, i;
	struct stream *other;

	stats.syncs++;
	DL_FOREACH2(ctx->streams, other, ctx_next) {
		if (!covers(s, other))
			continue;
		if (knobs.race)
			race_clock_join(&seen, &other->clock);
		if (!other->last)
			continue;
		op = object_grow(op, nr, &cap, sizeof(*op));
		op_get(other->last);
		op[nr++] = other->last;
	}
	for (i = 0; i < nr; i++) {
		sim_wait(op[i]);
		if (op[i]->acquired)
			race_clock_join(&seen, &op[i]->clock);
		op_put(op[i]);
	}
	free(op);
	call_learn(&seen);
	race_clock_free(&seen);
	mempool_synchronized();
	return ctx->error;
}

void stream_context_end(struct context *ctx)
{
	while (ctx->streams)
		destroy(ctx->streams);
}

void stream_thread_exit(struct thread *t)
{
	while (t->streams)
		destroy(t->streams);
}

int stream_priority(int priority)
{
	return priority < PRIORITY_GREATEST ? PRIORITY_GREATEST
		: priority > PRIORITY_LEAST ? PRIORITY_LEAST : priority;
}

CUresult stream_create(struct context *ctx, CUstream *out, unsigned flags,
	int priority)
{
	struct stream *s;

	if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	s = create(ctx, flags & CU_STREAM_NON_BLOCKING ? STREAM_NON_BLOCKING
		: STREAM_BLOCKING);
	s->flags = flags;
	s->priority = stream_priority(priority);
	*out = (CUstream)s;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = stream_create(c.context, out, flags, 0);
	return call_end(&c);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags,
	int priority)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = stream_create(c.context, out, flags, priority);
	return call_end(&c);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (least)
			*least = PRIORITY_LEAST;
		if (greatest)
			*greatest = PRIORITY_GREATEST;
	}
	return call_end(&c);
}

static CUresult destroy_stream(CUstream handle)
{
	struct stream *s = object_find(handle, OBJECT_STREAM);

	if (!s || s->kind == STREAM_LEGACY || s->kind == STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_HANDLE;
	destroy(s);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy_stream(handle);
	return call_end(&c);
}

CUresult cuStreamDestroy(CUstream handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy_stream(handle);
	return call_end(&c);
}

static CUresult query(struct stream *s)
{
	struct stream *other;

	DL_FOREACH2(s->context->streams, other, ctx_next)
		if (covers(s, other) && other->last
		    && other->last->state != OP_DONE)
			return CUDA_ERROR_NOT_READY;
	DL_FOREACH2(s->context->streams, other, ctx_next)
		if (covers(s, other))
			call_learn(&other->clock);
	return CUDA_SUCCESS;
}

/* What the plain and the per-thread spelling of a call have in common. */
#define STREAM_CALL(name, zero, params, action) \
CUresult name params \
{ \
	struct stream *s; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) { \
		c.result = stream_find(c.context, handle, zero, &s); \
		if (!c.result) \
			c.result = action; \
	} \
	return call_end(&c); \
}

#define STREAM_CALLS(name, params, action) \
	STREAM_CALL(name, STREAM_0_LEGACY, params, action) \
	STREAM_CALL(name##_ptsz, STREAM_0_PER_THREAD, params, action)

static CUresult get_flags(struct stream *s, unsigned *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = s->flags;
	return CUDA_SUCCESS;
}

static CUresult get_priority(struct stream *s, int *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = s->priority;
	return CUDA_SUCCESS;
}

static CUresult get_ctx(struct stream *s, CUcontext *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUcontext)s->context;
	return CUDA_SUCCESS;
}

static CUresult get_id(struct stream *s, unsigned long long *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = s->id;
	return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstreamCaptureStatus *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

STREAM_CALLS(cuStreamSynchronize, (CUstream handle), stream_synchronize(s))
STREAM_CALLS(cuStreamQuery, (CUstream handle), query(s))
STREAM_CALLS(cuStreamGetFlags, (CUstream handle, unsigned int *out),
	get_flags(s, out))
STREAM_CALLS(cuStreamGetPriority, (CUstream handle, int *out),
	get_priority(s, out))
STREAM_CALLS(cuStreamGetCtx, (CUstream handle, CUcontext *out),
	get_ctx(s, out))
STREAM_CALLS(cuStreamGetId, (CUstream handle, unsigned long long *out),
	get_id(s, out))
STREAM_CALLS(cuStreamIsCapturing,
	(CUstream handle, CUstreamCaptureStatus *out), is_capturing(out))
