/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and the device they belong to.  A context's record is never freed,
 * so a dead handle in some thread's stack is still recognised.  Guarded by the
 * driver's lock.
 */
#ifndef SOFTCUDA_CONTEXT_H
#define SOFTCUDA_CONTEXT_H

#include "test/softcuda/abi.h"
#include "test/softcuda/object.h"
#include "test/softcuda/race.h"

struct stream;
struct event;
struct module;
struct thread;

/* CUlimit values that are known. */
#define CONTEXT_LIMITS 7

struct context {
	struct object object;
	int device;
	bool alive;
	bool primary;
	unsigned retains;		/* of the primary context */
	unsigned attached;		/* beyond the first user */
	unsigned flags;
	unsigned api_version;
	CUresult error;			/* sticky; 0 while all is well */
	struct stream *streams;		/* all, counted; utlist by ctx_next */
	struct stream *legacy;		/* among them */
	struct race_clock retired;	/* of streams that are gone */
	struct event *events;		/* owned */
	struct module *modules;		/* owned */
	uint64_t charged;		/* bytes of SOFTCUDA_CONTEXT */
	uint32_t peers;			/* devices whose memory it may use */
	size_t limits[CONTEXT_LIMITS];
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	unsigned long long id;		/* from 1, in order of creation */
};

/* The context on top of the thread's stack; NULL when there is none. */
struct context *context_current(struct thread *t);
/* 0, or the error that every call gets in this context. */
CUresult context_check(struct context *ctx);
/* The live context behind a handle, NULL if there is none. */
struct context *context_find(CUcontext handle);
/* The named one, NULL meaning the current one; 0 or its error. */
CUresult context_named(CUcontext handle, struct context **out);
/* As the program's calls; the primary context of a device. */
CUresult context_primary_retain(CUcontext *out, CUdevice dev);
CUresult context_primary_release(CUdevice dev);
bool context_good_flags(unsigned flags);
/* The first failure wins and stays. */
void context_kill(struct context *ctx, CUresult error);
/* Waits for its work; the host learns of all of it. */
CUresult context_synchronize(struct context *ctx);

#endif
