/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the driver calls that Ballast makes for itself; see
 * probe_calls.c.  Used by one thread at a time.
 */
#ifndef GPU_PROBE_CALLS_H
#define GPU_PROBE_CALLS_H

#include "test/gpu/probe.h"

struct probe_call {
	const char *name;
	CUresult (*set)(void);	/* makes what the call works on */
	CUresult (*call)(void);
	/* Whether the design expects it to wait: -1 no opinion, -2 not asked. */
	int waits;
	/* Whether Ballast makes it while the program captures. */
	int in_capture;
};

extern const struct probe_call probe_calls[];
extern const size_t probe_nr_calls;

/* Forgets the objects of the call before and makes those for `c`. */
CUresult probe_call_set(const struct probe_call *c);

#endif
