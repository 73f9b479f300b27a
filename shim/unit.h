/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A unit is what a plan streams for a layer, or for several that share it:
 * pages, each with a pool slot of its own for as long as the plan lasts.  A
 * schedule is the units of a plan and the order in which layers visit them.
 *
 * Units make a planned launch cheap: it pins the units that it names with one
 * atomic step each, and needs no lock where its stream has already waited for
 * their copies.  Slots and pages (tenancy_int.h) stay the truth; who takes a
 * slot from a unit closes the unit first.
 *
 * What is atomic says so; the rest is guarded by the device's pool_lock.  A
 * schedule that was replaced is freed once every issue section that could have
 * seen it has closed, so units may be looked at in an open section.
 */
#ifndef BALLAST_UNIT_H
#define BALLAST_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/context.h"
#include "shim/device.h"
#include "shim/period.h"
#include "shim/visit.h"

#define UNIT_USERS 4
/* Who waits for a unit's pins looks again after this long at the latest. */
#define UNIT_LOOK_NS 2000000ull

/* A stream that has waited for the unit's copies, in this turn. */
struct unit_user {
	CUstream stream;
	struct context *context;
	uint32_t unrecorded;	/* atomic; it launched since the last event */
};

struct unit {
	uint32_t open;		/* atomic; all pages are there */
	uint32_t pins;		/* atomic; launches between pin and unpin */
	uint32_t nr_users;	/* atomic; entries below it do not change */
	uint32_t launches;	/* atomic; in this turn */
	uint32_t expect;	/* atomic; launches in a turn, 0: not known */
	uint32_t wanted;	/* atomic; somebody waits for pins to go */
	struct unit_user users[UNIT_USERS];

	uint32_t layer;
	uint32_t index;
	uint32_t nr;
	uint32_t nr_here;	/* pages present in their slots */
	uint32_t changes;	/* pages that came or went, counted */
	uint32_t *pages;	/* in the order of the copy */
	uint32_t *slots;
	uint32_t first_piece, nr_pieces;
	struct event *ready;	/* referenced; behind all its copies, or NULL */
	bool busy;		/* a thread is recording its users */
	uint32_t waiting;	/* threads that wait for that; keeps it alive */
} __attribute__((aligned(CACHE_LINE)));

/* Pages [first, first + nr) of a unit's list, issued as one. */
struct unit_piece {
	uint32_t unit;
	uint32_t first, nr;
};

struct schedule {
	uint32_t nr_layers;
	uint32_t nr_slots;
	uint32_t nr_units;
	struct unit *units;	/* owned */
	uint32_t nr_pieces;
	struct unit_piece *pieces;	/* owned; in the order of issue */
	struct context *context;	/* whose copy stream is used */
	struct visits visits;	/* owned; where the program is */
	bool fast;		/* atomic; pages stay mapped to their slots */
	bool pumping;		/* a thread is issuing copies */
	bool again;		/* somebody wanted to meanwhile */
	bool held;		/* no new copies: it is being changed */
	bool changing;		/* a thread maps or unmaps aliases */
	bool aliases;		/* there may be some */
	bool unaliasing;	/* who leaves a slot loses its alias */
	bool ending;		/* a thread is taking it out of force */
	uint64_t iterations;	/* since it was installed */
	struct period period;
	uint64_t compute_ns;	/* of an iteration, without waits; 0: unknown */
};

/*
 * The calling thread's short cut: which units a pointer reaches.  false: not
 * known, or not only units and resident memory.  A section is open.  At most
 * UNIT_REACH of them; the generation is that of d->reach_gen.
 */
#define UNIT_REACH 4
struct unit_reach {
	uint64_t word;
	uint32_t generation;
	uint32_t nr;
	struct unit *units[UNIT_REACH];
};

/* A section is open.  false: not open for this stream; nothing is pinned. */
static inline bool unit_pin(struct unit *u, CUstream s)
{
	__atomic_fetch_add(&u->pins, 1, __ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(&u->open, __ATOMIC_SEQ_CST))) {
		uint32_t n = __atomic_load_n(&u->nr_users, __ATOMIC_ACQUIRE);

		for (uint32_t i = 0; i < n; i++)
			if (u->users[i].stream == s)
				return true;
	}
	__atomic_fetch_sub(&u->pins, 1, __ATOMIC_SEQ_CST);
	return false;
}

/* Takes back a pin without a launch. */
void unit_unpin(struct device *d, struct unit *u);
/*
 * The launch has been issued.  true: it was the last one expected of this
 * turn, so the caller calls unit_pass() when its section is closed.
 */
bool unit_launched(struct device *d, struct unit *u, CUstream s) WARN_UNUSED;

/*
 * The first launch of a stream in this turn: makes the stream wait for the
 * copies, and pins.  false: not all pages are there (or too many streams use
 * it), the launch goes the long way; *r: the driver's refusal otherwise
 * CUDA_SUCCESS.  A section is open; no lock held; s's context is current.
 */
bool unit_enter(struct device *d, struct unit *u, CUstream s,
	struct context *c, CUresult *r) WARN_UNUSED;
/*
 * The program is at this unit, and some of its pages are not there.  Whether it
 * was to be there now: then the plan is right, only late.  A section is open.
 */
bool unit_missed(struct device *d, struct unit *u);
/*
 * The launch that missed it has been issued, and counts for its turn.  No
 * section is open.
 */
void unit_missed_launched(struct device *d, struct unit *u);
/* No more launches are expected on it for now.  No section may be open. */
void unit_pass(struct device *d, struct unit *u);

/*
 * The units of pages [first, first + nr): how many, or -1 where a page is
 * neither resident nor in a unit, or there are more than `most`.  Those found
 * are added to out[0..n).
 */
int unit_find(struct device *d, uint32_t first, uint32_t nr,
	struct unit **out, int n, int most) REQUIRES(&d->pool_lock);

/*
 * Nobody launches on the unit after this without entering it anew; its users
 * are recorded as readers of its slots.  Drops and retakes pool_lock.  false:
 * a launch is under way; u->wanted is set and pool_cond told later.
 */
bool unit_close(struct device *d, struct unit *u) REQUIRES(&d->pool_lock);
/* Before a stream is destroyed: its launches are recorded. */
void unit_stream_ends(struct device *d, CUstream s);

/* A page has come to or left its slot. */
void unit_page_here(struct device *d, uint32_t page, uint32_t slot)
	REQUIRES(&d->pool_lock);
void unit_page_gone(struct device *d, uint32_t page, uint32_t slot)
	REQUIRES(&d->pool_lock);

#endif
