/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program's threads see of a plan, for chrome://tracing and Perfetto:
 * layers, copies as they are issued, waits.  Times of the host's clock, kept in
 * a ring and written at exit (the key trace_out).  No lock: any thread may add,
 * and who adds what overwrites the oldest.
 */
#ifndef BALLAST_TRACE_H
#define BALLAST_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/planner.h"
#include "shim/compiler.h"

enum trace_kind {
	TRACE_LAYER,		/* the program has come to it */
	TRACE_MISSED,		/* likewise, and its data is not there */
	TRACE_PASSED,		/* its last launch has been issued */
	TRACE_COPY,		/* copies of a layer were issued */
	TRACE_FETCH,		/* a launch had to have its data fetched */
	TRACE_CHECK,		/* a careful launch was seen through */
};

#define TRACE_NO_LAYER UINT32_MAX

extern bool trace_on;		/* set before the first thread can ask */

/* Reads the configuration; once, when Ballast becomes active. */
void trace_start(void);
/* A plan comes into force: its layers' names, copied. */
void trace_plan(int device, const struct layer_statistics *layers,
	uint32_t nr);

void trace_add(enum trace_kind kind, int device, uint32_t layer,
	uint64_t bytes, uint64_t begin_ns);
uint64_t trace_clock(void);

/* When something begins that trace_span() will end. */
static inline uint64_t trace_begin(void)
{
	return unlikely(trace_on) ? trace_clock() : 0;
}

static inline void trace_span(enum trace_kind kind, int device,
	uint32_t layer, uint64_t bytes, uint64_t begin_ns)
{
	if (unlikely(trace_on))
		trace_add(kind, device, layer, bytes, begin_ns);
}

static inline void trace_mark(enum trace_kind kind, int device,
	uint32_t layer)
{
	if (unlikely(trace_on))
		trace_add(kind, device, layer, 0, 0);
}

#endif
