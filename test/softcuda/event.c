/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: a mark in a stream, remembered.  A wait binds to the latest record
 * at the time of the call (an event never recorded is no wait); times are
 * virtual.  Guarded by the driver's lock.
 */
#include "test/softcuda/abi.h"

#include <stdlib.h>
#include <time.h>
#include <utlist.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/ipcevent.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

struct event {
	struct object object;
	struct context *context;
	unsigned flags;
	struct op *op;			/* counted; the latest record, or NULL */
	struct ipc_event *ipc;		/* counted; NULL: of this process only */
	uint64_t number;		/* of that record among those of all */
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
	ipc_event_put(e->ipc);
	free(e);
	nr_events--;
}

void event_context_end(struct context *ctx)
{
	while (ctx->events)
		destroy(ctx->events);
}

/* Takes the reference. */
static struct event *make(struct context *ctx, unsigned flags,
	struct ipc_event *ipc)
{
	struct event *e = object_alloc(sizeof(*e));

	e->context = ctx;
	e->flags = flags;
	e->ipc = ipc;
	DL_APPEND(ctx->events, e);
	object_add(e, OBJECT_EVENT);
	nr_events++;
	return e;
}

/* The latest record is one of another process: its number, else 0. */
static uint64_t foreign(const struct event *e)
{
	uint64_t latest = e->ipc ? ipc_event_latest(e->ipc) : 0;

	return latest == e->number ? 0 : latest;
}

static CUresult create(struct context *ctx, CUevent *out, unsigned flags)
{
	const unsigned all = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING
		| CU_EVENT_INTERPROCESS;
	struct ipc_event *ipc = NULL;

	if (!out || flags & ~all || ((flags & CU_EVENT_INTERPROCESS)
	    && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS) {
		ipc = ipc_event_create();
		if (!ipc)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = (CUevent)make(ctx, flags, ipc);
	return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = create(c.context, out, flags);
	return call_end(&c);
}

static CUresult ipc_handle(CUipcEventHandle *out, CUevent handle)
{
	struct event *e = object_find(handle, OBJECT_EVENT);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e || !e->ipc)
		return CUDA_ERROR_INVALID_HANDLE;
	ipc_event_handle(e->ipc, out);
	return CUDA_SUCCESS;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = ipc_handle(out, handle);
	return call_end(&c);
}

static CUresult ipc_open(struct context *ctx, CUevent *out,
	const CUipcEventHandle *handle)
{
	struct ipc_event *ipc;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	ipc = ipc_event_open(handle, &r);
	if (!ipc)
		return r;
	*out = (CUevent)make(ctx, CU_EVENT_INTERPROCESS
		| CU_EVENT_DISABLE_TIMING, ipc);
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = ipc_open(c.context, out, &handle);
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
	op = e->ipc ? ipc_event_record(e->ipc, &e->number)
		: op_create(&record_type, sizeof(*op));
	stream_submit(s, op);
	if (e->ipc)
		ipc_event_watch(op);
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
	uint64_t number;
	struct stream *s;
	struct op *op;
	CUresult r;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!e)
		return CUDA_ERROR_INVALID_HANDLE;
	number = foreign(e);
	r = stream_find(ctx, stream, zero, &s);
	if (r || (!e->op && !number))
		return r;
	op = number ? ipc_event_wait(e->ipc, number)
		: op_create(&wait_type, sizeof(*op));
	if (!number) {
		op_after(op, e->op);
		if (knobs.race)
			race_clock_join(&op->clock, &e->op->clock);
	}
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
	if (e->context->error)
		return e->context->error;
	if (foreign(e))
		return ipc_event_reached(e->ipc, foreign(e)) ? CUDA_SUCCESS
			: CUDA_ERROR_NOT_READY;
	if (!e->op)
		return CUDA_SUCCESS;
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

/* Without the lock, so that this process's own work goes on. */
static void wait_foreign(struct ipc_event *ipc, uint64_t number)
{
	struct timespec pause = { 0, 100000 };

	ipc_event_get(ipc);
	while (!ipc_event_reached(ipc, number)) {
		call_unlock();
		nanosleep(&pause, NULL);
		call_lock();
		sim_spend(0);
	}
	ipc_event_put(ipc);
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
	if (foreign(e)) {
		stats.syncs++;
		wait_foreign(e->ipc, foreign(e));
	} else if (op) {
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
