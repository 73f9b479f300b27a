/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One record per CUcontext that uses managed memory: our two streams, a pool
 * of events, and the program's streams, so that "everything issued so far" can
 * be waited for.  Records live until their context is destroyed.
 */
#ifndef BALLAST_CONTEXT_H
#define BALLAST_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"
#include "shim/lock.h"

struct device;

struct context {
	CUcontext handle;
	CUdevice ordinal;
	unsigned attached;	/* cuCtxAttach beyond the first; atomic */
	CUstream copy;		/* owned; towards the GPU; NULL until needed */
	CUstream side;		/* owned; towards the host; likewise */
	bool ready;		/* both exist; atomic */
	struct lock lock;	/* rank LOCK_EVENTS; guards what follows */
	struct event *idle;	/* GUARDED; events without a user */
	struct stream *streams;	/* GUARDED; the program's, owned */
	struct event **orphans;	/* GUARDED; referenced; ends of dead streams */
	size_t nr_orphans;
	size_t max_orphans;
	unsigned epoch;		/* GUARDED; counts destroyed streams */
	bool unlisted;		/* atomic; `streams` lacks one: no memory */
	bool dead;		/* its events count as complete */
	struct context *next;
};

/* Whether an event has been recorded; see event_later(). */
enum event_state {
	EVENT_RECORDED,
	EVENT_LATER,
	EVENT_RECORDING,	/* a thread is at it */
};

/*
 * A reference-counted CUDA event without timing.  Recorded once between
 * event_new() and the last event_put(); `done` is set when somebody has seen
 * it complete.  References may be taken and dropped by any thread.
 */
struct event {
	CUevent handle;
	struct context *context;
	int refs;
	bool done;
	uint32_t state;		/* atomic; enum event_state */
	CUstream stream;	/* where it will be recorded */
	/* Our streams that have waited for it already; atomic. */
	struct context *copy_after, *side_after;
	struct event *next;
};

/*
 * The record of the calling thread's current context, made on first use.
 * NULL: no current context, or no memory.  Records are never freed.
 */
struct context *context_current(void);
/*
 * Makes our two streams where they do not exist yet; c is current.  false:
 * the driver refused (logged).
 */
bool context_ready(struct context *c);
/* The record of a context if there is one. */
struct context *context_find(CUcontext handle);
/* Any living one of the device. */
struct context *context_of_device(CUdevice ordinal);
/* Makes one; work in a context that has none would not be waited for. */
struct context *context_note(CUcontext handle, CUdevice ordinal);
/* Whether it is some device's primary context. */
bool context_is_primary(CUcontext handle);
/* That of a device's primary context, if it was ever retained or used. */
struct context *context_primary(CUdevice ordinal);
void context_primary_retained(CUdevice ordinal, CUcontext handle);
/*
 * Before the driver destroys or resets a context: waits for our streams,
 * marks its events complete and drops our handles.  No managed allocation may
 * remain in it.  The caller has made it current where it could.
 */
void context_retire(struct context *c);
/* The same after the driver has destroyed it: its handles are gone already. */
void context_lost(struct context *c);

/*
 * The program made a stream in the current context, or is about to destroy it
 * (c, the stream's, is current).
 */
void context_stream_created(struct context *c, CUstream s, unsigned flags);
/* The same where the driver would not say which context is current. */
void context_stream_missed(void);
/* Whether more than one context is alive. */
bool context_several(void);
/* The context that a stream was made in, or NULL. */
struct context *context_of_stream(CUstream s);
void context_stream_destroyed(struct context *c, CUstream s);
/*
 * The context that a launch on s goes to; NULL: none.  It is the current one,
 * but kernels of libraries go to their stream's.  Asks the driver for default
 * streams only.
 */
struct context *context_of_launch(CUstream s);
/*
 * c is current in this thread, or is again, or is where its launch goes; the
 * driver need not be asked until context_know(NULL).  Nothing in between may
 * change that.
 */
void context_know(struct context *c);
/* Changes whenever a stream handle may start to mean another stream. */
unsigned context_epoch(struct context *c);

/*
 * A new event of c, recorded on `s`, a stream of c.  The caller owns one
 * reference.  NULL: the driver refused (*r says why).
 */
struct event *event_record(struct context *c, CUstream s, CUresult *r);
/*
 * The same, but recorded only when somebody first asks for it, on `s`, one of
 * our own streams: it then stands for what has come since, too.
 */
struct event *event_later(struct context *c, CUstream s, CUresult *r);
static inline bool event_is_later(const struct event *e)
{
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != EVENT_RECORDED;
}
struct event *event_get(struct event *e);
void event_put(struct event *e);	/* NULL is fine */
/* Whether somebody has seen it complete, or its context has ended. */
static inline bool event_is_done(const struct event *e)
{
	return __atomic_load_n(&e->done, __ATOMIC_ACQUIRE) ||
		__atomic_load_n(&e->context->dead, __ATOMIC_ACQUIRE);
}
/* Whether it is complete; never blocks. */
bool event_query(struct event *e);
/*
 * Blocks until complete.  No lock of ours may be held.  Once the program has
 * queued host functions, or shares events with another process, a stream may wait
 * for this very thread; then the wait ends after wait_ms with
 * CUDA_ERROR_LAUNCH_TIMEOUT.
 */
CUresult event_wait(struct event *e);
/* The program queued a host function, a wait for a value, or shares an event. */
void context_host_function(void);
bool context_has_host_functions(void);
/* The program captures, from now on perhaps; whether this stream does. */
void context_capture_begins(void);
bool context_is_capturing(CUstream s);
/* Makes stream s wait for e; nothing to do where it is complete. */
CUresult event_order(struct event *e, CUstream s);

/*
 * Blocks until everything issued so far on every stream of every context of
 * the device is complete.  No lock may be held.
 */
CUresult context_quiesce(struct device *d);

#endif
