/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times on the GPU while layers are profiled.  A stretch is what one stream
 * does between two marks; marks stand at the border of steps, and on both
 * sides of a wait for swapped memory, which so belongs to no step.  Events
 * only; nothing waits for them.  The owner's lock guards it.
 */
#ifndef BALLAST_TIMING_H
#define BALLAST_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/context.h"

struct timing;

/* NULL: no memory. */
struct timing *timing_create(void);
/* Events are destroyed where their context still lives. */
void timing_destroy(struct timing *t);

/*
 * The stretch under way ends here; the next one, if any, begins.  step:
 * what the next one belongs to, or TIMING_NONE.  c is current, its stream s.
 */
#define TIMING_NONE UINT32_MAX
void timing_mark(struct timing *t, struct context *c, CUstream s,
	uint32_t step);
/* The stretch under way ends, where it is that stream's; a wait follows. */
void timing_pause(struct timing *t);

/* Before a stream is destroyed; its context is current.  NULL is fine. */
void timing_stream_ends(struct timing *t, CUstream s);

/*
 * A finished stretch, oldest first: its step and time.  false: none has
 * finished yet.
 */
bool timing_take(struct timing *t, uint32_t *step, double *ms);
/* Whether stretches are still out. */
bool timing_pending(const struct timing *t);

#endif
