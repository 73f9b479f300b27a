/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The period of a timeline as the largest mean cycle of its event graph: layers
 * and copies are nodes, "not before" is an arc, and an arc into a later
 * iteration counts one lap.  Newton's method on the period with a longest-path
 * relaxation; exact up to rounding, whatever the length of the transient.
 * Called by timeline.c and, many thousand times a plan, by the search.
 */
#ifndef BALLAST_PLANNER_CYCLE_H
#define BALLAST_PLANNER_CYCLE_H

#include "planner/timeline.h"

struct cycle;

/* Room for timelines up to this size; NULL when out of memory. */
struct cycle *cycle_create(uint32_t max_layers, uint32_t max_copies,
	struct plan_arena *arena);

/*
 * Takes over t (copies its arrays).  PLAN_CONFLICT if the copies wait for each
 * other for ever.
 */
enum plan_status cycle_load(struct cycle *c, const struct timeline *t);
/* The same for a caller that knows the timeline to be sound. */
void cycle_load_sound(struct cycle *c, const struct timeline *t);

/* The period, or INFINITY as soon as it is known to be above `limit`. */
double cycle_period(struct cycle *c, double limit);

/*
 * After cycle_period(): ends of layers and copies in the steady state of that
 * period, in time from some common zero.  Borrowed until the next call.
 */
void cycle_times(struct cycle *c, double period, const double **layer_end,
	const double **copy_end);

/*
 * The cycle that set the period: nodes below nr_layers are layers, the others
 * copies.  0 nodes: computing without waits set it.  Borrowed until the next
 * load.
 */
uint32_t cycle_critical(const struct cycle *c, const uint32_t **nodes);

#endif
