/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: made, recorded, waited for.  Idle ones are kept by their context and
 * guarded by its lock, which is not held across driver calls.  Called from
 * wherever work is put in order.
 */
#include <stdlib.h>
#include <time.h>

#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/context.h"
#include "shim/log.h"
#include "shim/stats.h"

/*
 * In c, whichever context is current: what context_know() says holds for where
 * a launch goes, and an event of another context would come back from `idle` for
 * ever.
 */
static CUresult create_in(struct context *c, CUevent *out)
{
	CUcontext now = NULL, popped;
	CUresult r = real.cuCtxGetCurrent(&now);

	if (r == CUDA_SUCCESS && now == c->handle)
		return real.cuEventCreate(out, CU_EVENT_DISABLE_TIMING);
	r = real.cuCtxPushCurrent_v2(c->handle);
	if (r != CUDA_SUCCESS)
		return r;
	r = real.cuEventCreate(out, CU_EVENT_DISABLE_TIMING);
	real.cuCtxPopCurrent_v2(&popped);
	return r;
}

static struct event *event_new(struct context *c, CUresult *r)
{
	struct event *e;

	lock_acquire(&c->lock);
	e = c->idle;
	if (e != NULL)
		c->idle = e->next;
	lock_release(&c->lock);
	if (e == NULL) {
		e = calloc(1, sizeof(*e));
		*r = CUDA_ERROR_OUT_OF_MEMORY;
		if (e == NULL)
			return NULL;
		*r = create_in(c, &e->handle);
		if (*r != CUDA_SUCCESS) {
			free(e);
			return NULL;
		}
		e->context = c;
	}
	e->refs = 1;
	e->done = false;
	e->state = EVENT_RECORDED;
	e->copy_after = e->side_after = NULL;
	e->next = NULL;
	return e;
}

struct event *event_record(struct context *c, CUstream s, CUresult *r)
{
	struct event *e = event_new(c, r);

	if (e == NULL)
		return NULL;
	*r = real.cuEventRecord(e->handle, s);
	if (*r != CUDA_SUCCESS) {
		event_put(e);
		return NULL;
	}
	return e;
}

struct event *event_later(struct context *c, CUstream s, CUresult *r)
{
	struct event *e = event_new(c, r);

	if (e == NULL)
		return NULL;
	e->stream = s;
	__atomic_store_n(&e->state, EVENT_LATER, __ATOMIC_RELEASE);
	*r = CUDA_SUCCESS;
	return e;
}

/* The stream says where it goes, so any context may be current. */
static CUresult record_now(struct event *e)
{
	struct timespec pause = { 0, 1000 };
	uint32_t state;
	CUresult r;

	for (;;) {
		state = EVENT_LATER;
		if (__atomic_compare_exchange_n(&e->state, &state,
		    EVENT_RECORDING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			break;
		if (state == EVENT_RECORDED)
			return CUDA_SUCCESS;
		nanosleep(&pause, NULL);
	}
	r = real.cuEventRecord(e->handle, e->stream);
	__atomic_store_n(&e->state, r == CUDA_SUCCESS ? EVENT_RECORDED :
		EVENT_LATER, __ATOMIC_RELEASE);
	return r;
}

/* Before the driver is asked about it. */
static inline CUresult settle(struct event *e)
{
	return likely(!event_is_later(e)) ? CUDA_SUCCESS : record_now(e);
}

struct event *event_get(struct event *e)
{
	__atomic_fetch_add(&e->refs, 1, __ATOMIC_RELAXED);
	return e;
}

void event_put(struct event *e)
{
	struct context *c;

	if (e == NULL ||
	    __atomic_sub_fetch(&e->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	c = e->context;
	lock_acquire(&c->lock);
	if (c->dead) {
		/* The driver destroyed the handle with the context. */
		lock_release(&c->lock);
		free(e);
		return;
	}
	e->next = c->idle;
	c->idle = e;
	lock_release(&c->lock);
}

bool event_query(struct event *e)
{
	if (event_is_done(e))
		return true;
	if (settle(e) != CUDA_SUCCESS ||
	    real.cuEventQuery(e->handle) != CUDA_SUCCESS)
		return false;
	__atomic_store_n(&e->done, true, __ATOMIC_RELEASE);
	return true;
}

static bool host_functions;	/* atomic; there were some */

void context_host_function(void)
{
	__atomic_store_n(&host_functions, true, __ATOMIC_RELEASE);
}

bool context_has_host_functions(void)
{
	return __atomic_load_n(&host_functions, __ATOMIC_ACQUIRE);
}

static CUresult poll_done(struct event *e)
{
	uint64_t deadline = lock_now_ns() + conf.wait_ms * 1000000ull;
	struct timespec pause = { 0, 1000 };

	while (!event_query(e)) {
		if (lock_now_ns() > deadline) {
			log_once(LOG_WARN, "work did not finish within "
				"wait_ms = %llu", (unsigned long long)
				conf.wait_ms);
			return CUDA_ERROR_LAUNCH_TIMEOUT;
		}
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < 200000)
			pause.tv_nsec *= 2;
	}
	return CUDA_SUCCESS;
}

CUresult event_wait(struct event *e)
{
	CUresult r;
	uint64_t start;

	if (event_is_done(e))
		return CUDA_SUCCESS;
	r = settle(e);
	if (r != CUDA_SUCCESS)
		return r;
	start = lock_now_ns();
	if (context_has_host_functions()) {
		r = poll_done(e);
	} else {
		r = real.cuEventSynchronize(e->handle);
		/* Memory is given away on this word: ask again. */
		if (r != CUDA_SUCCESS)
			r = real.cuEventSynchronize(e->handle);
	}
	stat_add(wait_ns, lock_now_ns() - start);
	if (r == CUDA_SUCCESS)
		__atomic_store_n(&e->done, true, __ATOMIC_RELEASE);
	return r;
}

CUresult event_order(struct event *e, CUstream s)
{
	CUresult r;

	/*
	 * Also where another thread has seen it complete: then the wait costs
	 * next to nothing, and the order stands in the stream for every tool
	 * that looks.
	 */
	if (__atomic_load_n(&e->context->dead, __ATOMIC_ACQUIRE))
		return CUDA_SUCCESS;
	r = settle(e);
	return r != CUDA_SUCCESS ? r :
		real.cuStreamWaitEvent(s, e->handle, 0);
}

/* ---- capture ---- */

/* Atomic; set for good by the first one, so that the others need not ask. */
static bool captures;

void context_capture_begins(void)
{
	__atomic_store_n(&captures, true, __ATOMIC_SEQ_CST);
}

bool context_is_capturing(CUstream s)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return __atomic_load_n(&captures, __ATOMIC_RELAXED) &&
		real.cuStreamIsCapturing(s, &status) == CUDA_SUCCESS &&
		status != CU_STREAM_CAPTURE_STATUS_NONE;
}
