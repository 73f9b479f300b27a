/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between arena and GPU on our own streams.  Knows addresses, arena
 * offsets and events; nothing of allocations, pages or tenants.  A context
 * must be current and ready (context_ready).  Any thread; no lock of ours is
 * held by the callers.
 */
#ifndef BALLAST_MOVER_H
#define BALLAST_MOVER_H

#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/context.h"

struct move {
	CUdeviceptr device;
	uint64_t arena;
	size_t size;
};

/*
 * Queues the copies in order on the stream towards the GPU (fetch) or towards
 * the host (save); neighbours in both places become one copy.  *done gets a
 * reference to an event behind all of them.  On failure those that had been
 * queued have ended, so that both places are free again; *done is NULL.
 */
CUresult mover_fetch(struct context *c, const struct move *m, size_t n,
	struct event **done) WARN_UNUSED;
/*
 * The same where more will follow: the event is one that is recorded when
 * somebody asks for it.
 */
CUresult mover_fetch_more(struct context *c, const struct move *m, size_t n,
	struct event **done) WARN_UNUSED;
CUresult mover_save(struct context *c, const struct move *m, size_t n,
	struct event **done) WARN_UNUSED;

/* Waits for all that was queued on one of c's two streams, after a failure. */
void mover_drain(struct context *c, CUstream stream);

/* Later copies of that direction wait for e. */
CUresult mover_fetch_after(struct context *c, struct event *e);
CUresult mover_save_after(struct context *c, struct event *e);

#endif
