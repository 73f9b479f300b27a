/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame around every driver call: preemption, fork check, the one lock,
 * virtual time, failure injection, current context.  Used by each function
 * that the library exports:
 *
 *	if (!call_begin(&c, __func__, CALL_CONTEXT))
 *		c.result = what(c.context, ...);
 *	return call_end(&c);
 */
#ifndef SOFTCUDA_CALL_H
#define SOFTCUDA_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "test/softcuda/abi.h"
#include "test/softcuda/race.h"

struct context;
struct stream;

enum call_need {
	CALL_ANY = 0,		/* works before cuInit, cannot be made to fail */
	CALL_INIT = 1,		/* needs cuInit */
	CALL_CONTEXT = 2,	/* and a current context that is alive */
	CALL_FREES = 4,		/* with the above: no injected failure */
};

/* One host thread. */
struct thread {
	unsigned number;	/* from 1, in order of first call */
	struct context **stack;	/* borrowed; contexts are never freed */
	size_t depth, cap;
	struct race_clock own_clock;	/* with SOFTCUDA_RACE=2 */
	uint32_t own_actor;
	uint64_t preempt_state;
	struct stream *streams;		/* per-thread default streams */
};

struct call {
	CUresult result;
	const char *name;
	struct thread *thread;
	struct context *context;
	uint64_t start_ns;
};

/* 0 when the call may go on; the lock is held afterwards in any case. */
CUresult call_begin(struct call *c, const char *name, unsigned need);
/* Drops the lock and returns c->result. */
CUresult call_end(struct call *c);

/* The calling thread; valid between call_begin and call_end. */
struct thread *call_thread(void);
/* Its vector clock and actor. */
struct race_clock *call_clock(void);
uint32_t call_actor(void);
/* The host knows that what has clock `c` is done. */
void call_learn(const struct race_clock *c);

/*
 * Drops the lock until `cond` is signalled, or for `ns` of real time (0: any
 * time); false when that is over.
 */
bool call_wait(pthread_cond_t *cond, uint64_t ns);
/* The calling thread runs the program's host functions: it may not call us. */
void call_forbid(void);

/* cuInit has succeeded; the process is ending (both device.c). */
void call_set_initialized(void);
void call_set_ended(void);
/* This is the child of a process that had called cuInit. */
bool call_is_forked(void);
/* The lock alone, for softcuda_ctl.h's functions. */
void call_lock(void);
void call_unlock(void);

#endif
