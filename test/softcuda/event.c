/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: a mark in a stream, remembered.  A wait binds to the latest record
 * at the time of the call (an event never recorded is no wait); times are
 * virtual.  Guarded by the driver's lock.
 */
#include "test/softcuda/abi.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

struct event {
	struct object object;
	struct context *context;
	unsigned flags;
	struct op *op;			/* counted; the latest record, or NULL */
	struct event *prev, *next;
};

static const struct op_type record_type = {
	.name = "record", .engine = ENGINE_NONE,
};
static const struct op_type wait_type = {
	.name = "wait", .engine = ENGINE_NONE,
};

static unsigned nr_events;

unsigned event_count(void)
{
	return nr_events;
}

static void destroy(struct event *e)
{
	object_remove(e);
	DL_DELETE(e->context->events, e);
	op_put(e->op);
	free(e);
	nr_events--;
}

void event_context_end(struct context *ctx)
{
	while (ctx->events)
		destroy(ctx->events);
}

static CUresult create(struct context *ctx, CUevent *out, unsigned flags)
{
	const unsigned all = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING
		| CU_EVENT_INTERPROCESS;
	struct event *e;

	if (!out || flags & ~all || ((flags & CU_EVENT_INTERPROCESS)
	    && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	e = object_alloc(sizeof(*e));
	e->context = ctx;
	e->flags = flags;
	DL_APPEND(ctx->events, e);
	object_add(e, OBJECT_EVENT);
	nr_events++;
	*out = (CUevent)e;
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = create(c.context, out, flags);
	return call_end(&c);
}

/* Clocks of two processes have nothing in common, so nobody can open it. */
static CUresult ipc_handle(CUipcEventHandle *out, CUevent handle)
{
	struct event *e = object_find(handle, OBJECT_EVENT);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e || !(e->flags & CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_HANDLE;
	memset(out, 0, sizeof(*out));
	memcpy(out, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = ipc_handle(out, handle);
	return call_end(&c);
}

static CUresult destroy_handle(CUevent handle)
{
	struct event *e = object_find(handle, OBJECT_EVENT);

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	destroy(e);
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy_handle(handle);
	return call_end(&c);
}

CUresult cuEventDestroy(CUevent handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy_handle(handle);
	return call_end(&c);
}

static CUresult record(struct context *ctx, CUevent handle, CUstream stream,
	enum stream_default zero, unsigned flags)
{
	struct event *e = object_find(handle, OBJECT_EVENT);
	struct stream *s;
	struct op *op;
	CUresult r;

	/* 1 is CU_EVENT_RECORD_EXTERNAL, which only a capture may use. */
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	r = stream_find(ctx, stream, zero, &s);
	if (r)
		return r;
	if (s->context != e->context)
		return CUDA_ERROR_INVALID_HANDLE;
	op = op_create(&record_type, sizeof(*op));
	stream_submit(s, op);
	op_put(e->op);
	e->op = op;
	return CUDA_SUCCESS;
}

#define RECORD(name, zero) \
CUresult name(CUevent event, CUstream stream) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = record(c.context, event, stream, zero, 0); \
	return call_end(&c); \
}

#define RECORD_FLAGS(name, zero) \
CUresult name(CUevent event, CUstream stream, unsigned int flags) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = record(c.context, event, stream, zero, flags); \
	return call_end(&c); \
}

RECORD(cuEventRecord, STREAM_0_LEGACY)
RECORD(cuEventRecord_ptsz, STREAM_0_PER_THREAD)
RECORD_FLAGS(cuEventRecordWithFlags, STREAM_0_LEGACY)
RECORD_FLAGS(cuEventRecordWithFlags_ptsz, STREAM_0_PER_THREAD)

static CUresult wait_event(struct context *ctx, CUstream stream,
	CUevent handle, enum stream_default zero, unsigned flags)
{
	struct event *e = object_find(handle, OBJECT_EVENT);
	struct stream *s;
	struct op *op;
	CUresult r;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	r = stream_find(ctx, stream, zero, &s);
	if (r || !e->op)
		return r;
	op = op_create(&wait_type, sizeof(*op));
	op_after(op, e->op);
	if (knobs.race)
		race_clock_join(&op->clock, &e->op->clock);
	stream_submit(s, op);
	op_put(op);
	return CUDA_SUCCESS;
}

#define WAIT(name, zero) \
CUresult name(CUstream stream, CUevent event, unsigned int flags) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = wait_event(c.context, stream, event, zero, flags); \
	return call_end(&c); \
}

WAIT(cuStreamWaitEvent, STREAM_0_LEGACY)
WAIT(cuStreamWaitEvent_ptsz, STREAM_0_PER_THREAD)

static CUresult query(CUevent handle)
{
	struct event *e = object_find(handle, OBJECT_EVENT);

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	if (e->context->error || !e->op)
		return e->context->error;
	if (e->op->state != OP_DONE)
		return CUDA_ERROR_NOT_READY;
	call_learn(&e->op->clock);
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = query(event);
	return call_end(&c);
}

static CUresult synchronize(CUevent handle)
{
	struct event *e = object_find(handle, OBJECT_EVENT);
	struct context *ctx;
	struct op *op;

	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	ctx = e->context;
	op = e->op;
	if (op) {
		/* The event may be recorded anew, or die, meanwhile. */
		op_get(op);
		stats.syncs++;
		sim_wait(op);
		call_learn(&op->clock);
		op_put(op);
		mempool_synchronized();
	}
	return ctx->error;
}

CUresult cuEventSynchronize(CUevent event)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = synchronize(event);
	return call_end(&c);
}

static CUresult elapsed(float *ms, CUevent start, CUevent end)
{
	struct event *a = object_find(start, OBJECT_EVENT);
	struct event *b = object_find(end, OBJECT_EVENT);

	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	if (!a || !b || a->context->device != b->context->device
	    || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING
	    || !a->op || !b->op)
		return CUDA_ERROR_INVALID_HANDLE;
	if (a->context->error || b->context->error)
		return a->context->error ? a->context->error
			: b->context->error;
	if (a->op->state != OP_DONE || b->op->state != OP_DONE)
		return CUDA_ERROR_NOT_READY;
	*ms = (float)(((double)b->op->end_ns - (double)a->op->end_ns) / 1e6);
	return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = elapsed(ms, start, end);
	return call_end(&c);
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = elapsed(ms, start, end);
	return call_end(&c);
}
