/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions and stream callbacks.  They run on one thread of the driver,
 * in the order in which their streams reach them, without the driver's lock;
 * the virtual clock waits for them (sim.c says how long).  Calls of the driver
 * from inside are refused.  Called by the program; guarded by the driver's
 * lock.
 */
#include "test/softcuda/stream.h"

#include <signal.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"

struct hostfn {
	struct op op;
	CUhostFn fn;			/* either this */
	CUstreamCallback callback;	/* or this, */
	CUstream handle;		/* of the stream, */
	CUresult status;		/* and what it is told */
	void *data;
	bool done;
	struct hostfn *next;		/* in the queue of the thread */
};

static struct hostfn *queue, **tail = &queue;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static bool has_thread;

static void *run(void *unused)
{
	struct hostfn *h;

	call_forbid();
	call_lock();
	for (;;) {
		while (!(h = queue))
			call_wait(&more, 0);
		queue = h->next;
		if (!queue)
			tail = &queue;
		call_unlock();
		if (h->fn)
			h->fn(h->data);
		else
			h->callback(h->handle, h->status, h->data);
		call_lock();
		h->done = true;
		sim_outside_done(&h->op);
		op_put(&h->op);
	}
	return unused;
}

/* Signals are for the program's own threads. */
static bool start_thread(void)
{
	sigset_t all, old;
	pthread_t t;

	if (has_thread)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	has_thread = !pthread_create(&t, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (has_thread)
		pthread_detach(t);
	return has_thread;
}

static uint64_t start(struct op *op)
{
	struct hostfn *h = (struct hostfn *)op;

	/* A dead context's host functions are not called, callbacks are. */
	h->status = op->context->error;
	if (h->fn && h->status) {
		h->done = true;
		return 0;
	}
	/* What it tells other threads, they may act upon. */
	if (knobs.race == 1)
		call_learn(&op->clock);
	op_get(op);
	*tail = h;
	tail = &h->next;
	pthread_cond_signal(&more);
	return (uint64_t)knobs.hostfn_ns;
}

static bool may_end(struct op *op)
{
	return ((struct hostfn *)op)->done;
}

static uint64_t ended_ns;

static void finish(struct op *op)
{
	ended_ns = op->end_ns;
}

uint64_t hostfn_ended_ns(void)
{
	return ended_ns;
}

static const struct op_type hostfn_type = {
	.name = "host function",
	.engine = ENGINE_HOST,
	.start = start,
	.may_end = may_end,
	.finish = finish,
};

static CUresult launch(struct context *ctx, CUstream stream,
	enum stream_default zero, CUhostFn fn, CUstreamCallback callback,
	void *data, unsigned flags)
{
	struct hostfn *h;
	struct stream *s;
	CUresult r;

	if ((!fn && !callback) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = stream_find(ctx, stream, zero, &s);
	if (r)
		return r;
	if (!start_thread())
		return CUDA_ERROR_OUT_OF_MEMORY;
	h = (struct hostfn *)op_create(&hostfn_type, sizeof(*h));
	h->fn = fn;
	h->callback = callback;
	h->handle = stream;
	h->data = data;
	stream_submit(s, &h->op);
	op_put(&h->op);
	return CUDA_SUCCESS;
}

#define LAUNCH_HOST(name, zero) \
CUresult name(CUstream stream, CUhostFn fn, void *data) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = launch(c.context, stream, zero, fn, NULL, data, 0); \
	return call_end(&c); \
}

#define ADD_CALLBACK(name, zero) \
CUresult name(CUstream stream, CUstreamCallback callback, void *data, \
	unsigned int flags) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = launch(c.context, stream, zero, NULL, callback, \
			data, flags); \
	return call_end(&c); \
}

LAUNCH_HOST(cuLaunchHostFunc, STREAM_0_LEGACY)
LAUNCH_HOST(cuLaunchHostFunc_ptsz, STREAM_0_PER_THREAD)
ADD_CALLBACK(cuStreamAddCallback, STREAM_0_LEGACY)
ADD_CALLBACK(cuStreamAddCallback_ptsz, STREAM_0_PER_THREAD)
