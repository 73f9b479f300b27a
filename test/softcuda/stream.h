/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events: in what order operations run.  Guarded by the driver's
 * lock.
 */
#ifndef SOFTCUDA_STREAM_H
#define SOFTCUDA_STREAM_H

#include "test/softcuda/abi.h"
#include "test/softcuda/object.h"
#include "test/softcuda/sim.h"

struct context;
struct thread;

enum stream_kind {
	STREAM_LEGACY,
	STREAM_PER_THREAD,
	STREAM_BLOCKING,
	STREAM_NON_BLOCKING,
};

#define STREAM_ATTRS 4

struct stream {
	struct object object;
	enum stream_kind kind;
	unsigned refs;
	struct context *context;
	struct thread *thread;		/* of a per-thread stream */
	uint64_t id;
	int priority;
	unsigned flags;
	CUstreamAttrValue attr[STREAM_ATTRS];	/* see streamprop.c */
	struct op *last;		/* counted */
	struct race_clock clock;	/* of everything submitted so far */
	uint32_t actor;
	struct stream *ctx_prev, *ctx_next;
	struct stream *thread_next;
};

/* What stream handle 0 means in the entry point at hand. */
enum stream_default { STREAM_0_LEGACY, STREAM_0_PER_THREAD };

/* The stream behind a handle, in context `ctx` for the special ones. */
CUresult stream_find(struct context *ctx, CUstream handle,
	enum stream_default zero, struct stream **out);
/* Orders `op` behind what the stream's rules say and submits it. */
void stream_submit(struct stream *s, struct op *op);
/* Waits for the stream, and for `op` which is in it. */
CUresult stream_wait(struct stream *s, struct op *op);
CUresult stream_synchronize(struct stream *s);
CUresult stream_create(struct context *ctx, CUstream *out, unsigned flags,
	int priority);
/* Brought into the range that devices have. */
int stream_priority(int priority);
/* A context's end and a thread's end. */
void stream_context_end(struct context *ctx);
void stream_thread_exit(struct thread *t);
void event_context_end(struct context *ctx);
unsigned event_count(void);
/* When the last host function was done, in virtual time; 0: never. */
uint64_t hostfn_ended_ns(void);

#endif
