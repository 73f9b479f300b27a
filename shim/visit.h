/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the program is in a plan.  A visit is a layer that streams something:
 * the units that it uses.  A unit is used by one layer, as a rule; what several
 * layers use (tied weights, a backward pass) is a unit of its own, with a use
 * for each of them.  Visits repeat as a ring, an iteration each time round.
 *
 * Pure bookkeeping; the owner's lock (pool_lock) guards it.
 */
#ifndef BALLAST_VISIT_H
#define BALLAST_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"

#define VISIT_NONE UINT32_MAX

/* A unit as one visit uses it. */
struct visit_use {
	uint32_t unit;
	uint32_t visit;
	uint32_t next;		/* the same unit's use that follows */
	uint32_t last, before;	/* launches in its last two turns */
};

struct visit {
	uint32_t layer;
	uint32_t first, nr;	/* uses */
};

/* A unit's place in it. */
struct visit_unit {
	uint32_t first;		/* its first use */
	uint32_t use;		/* whose turn it is, or was last */
	bool entered;		/* in a turn */
	bool done;		/* no more launches expected in this visit */
};

struct visits {
	struct visit *at;		/* owned */
	uint32_t nr;
	struct visit_use *uses;		/* owned; by visit */
	uint32_t nr_uses;
	struct visit_unit *units;	/* owned */
	uint32_t nr_units;
	uint32_t here;			/* the visit under way, or VISIT_NONE */
};

/*
 * An empty ring with room for so much.  false: no memory, nothing is owned.  The
 * owner then adds visits in order, each followed by its uses; every unit must
 * have one.
 */
bool visits_init(struct visits *v, uint32_t nr_units, uint32_t max_visits,
	uint32_t max_uses) WARN_UNUSED;
void visits_fini(struct visits *v);
void visits_add(struct visits *v, uint32_t layer);
void visits_add_use(struct visits *v, uint32_t unit);
/*
 * The ring is complete: uses of a unit find each other, and a visit that uses
 * what the one before it does becomes part of that.
 */
void visits_close(struct visits *v);

/* Visits until the unit is used; 0: it is being used. */
uint32_t visits_distance(const struct visits *v, uint32_t unit);
/* The first visit that is not over. */
uint32_t visits_from(const struct visits *v);
/* Whether the program was to come to this unit now. */
bool visits_in_order(const struct visits *v, uint32_t unit);

enum visit_move {
	VISIT_STAYS,
	VISIT_MOVES,
	VISIT_ROUND,		/* an iteration begins */
};

/* The program has come to the unit, perhaps in another visit. */
enum visit_move visits_arrive(struct visits *v, uint32_t unit);
/*
 * The unit's turn at this visit begins, after a turn with so many launches.
 * How many to expect in this one; 0: not known.
 */
uint32_t visits_turn(struct visits *v, uint32_t unit, uint32_t launches);
/* Whether the unit's turn at this visit has begun. */
bool visits_entered(const struct visits *v, uint32_t unit);
/* No more launches are expected.  true: that is news, and the program is there. */
bool visits_done(struct visits *v, uint32_t unit);
/* Whether the visit uses the unit. */
bool visits_has(const struct visits *v, uint32_t visit, uint32_t unit);

#endif
