/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Ballast is at, per device: watching the program (discovery, profiling),
 * planning, running a plan carefully, then fast; or on demand, where nothing
 * repeats.  Fed by issue with the launches of the program; calls the planner
 * on a thread of its own and puts plans into force on the program's threads.
 */
#ifndef BALLAST_PHASE_H
#define BALLAST_PHASE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/device.h"
#include "shim/page_set.h"

/* Named in stats_phase_name(), which other programs use. */
enum phase_id {
	PHASE_IDLE,		/* everything fits so far */
	PHASE_DISCOVERY,
	PHASE_PROFILING,
	PHASE_PLANNING,
	PHASE_CAREFUL,
	PHASE_FAST,
	PHASE_ON_DEMAND,	/* no plan: by the user's wish, or no period */
	PHASE_TRIAL,		/* what it is like in place is being measured */
	PHASE_IN_PLACE,		/* kernels read host memory: faster than a plan */
};

const char *phase_name(enum phase_id p);

/* Whether launches on any device are to be shown to phase_launch().  Atomic. */
extern uint32_t phase_watching;

static inline bool phase_watching_now(void)
{
	return unlikely(__atomic_load_n(&phase_watching, __ATOMIC_RELAXED) !=
		0);
}

/*
 * A launch needs swapped memory of d, and no plan helps: watching begins, if
 * it should.  No lock held.
 */
void phase_needed(struct device *d);

/* Ballast is active: what the configuration says wrong is told. */
void phase_start(void);
/*
 * Managed memory of d was made: watching begins, where files are wanted and not
 * everything fits; for profile_out also where it does.  No lock held.
 */
void phase_allocated(struct device *d);
/*
 * A launch of f, about to be issued on s; set: all managed pages that it may
 * touch (perhaps none); waits: some of them are to be fetched first.  May put a
 * plan into force, so no section is open and no lock held.  false: d is not
 * watched, another device is.
 */
bool phase_launch(struct device *d, CUfunction f, CUstream s,
	const struct page_set *set, bool waits);
/* The launch has waited. */
void phase_wait_ends(struct device *d, CUstream s);

/*
 * Under a plan: a unit's turn began with a launch on s, or one had to be served
 * on demand.  No section open, no lock held.
 */
void phase_turn(struct device *d, CUstream s, bool on_demand);

/* Before a stream is destroyed; its context is current, no lock held. */
void phase_stream_ends(struct device *d, CUstream s);
/* Managed memory of d has been freed.  No lock held. */
void phase_freed(struct device *d);

/* At exit: the planning thread ends. */
void phase_stop(void);

#endif
