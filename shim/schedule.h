/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan put into force, made fast, and taken out of force again.  Called by
 * phase.c on the program's threads; tenancy.c ends a plan whose memory goes
 * away.
 */
#ifndef BALLAST_SCHEDULE_H
#define BALLAST_SCHEDULE_H

#include "shim/observe.h"
#include "shim/unit.h"

/*
 * An empty schedule for so many units, or NULL.  The caller fills in units
 * (layer, pages, slots, nr), pieces and visits (all malloc'ed), in the order of
 * use, then owns it until schedule_install() has succeeded.
 */
struct schedule *schedule_create(uint32_t nr_units);
void schedule_destroy(struct schedule *sc);

/*
 * Puts a plan into force: pages of units leave the GPU, the pool gets
 * sc->nr_slots slots, each unit's bytes become neighbours in the arena where
 * there is room.  Waits for the GPU.  On failure everything goes on on demand.
 * c is current and its copy stream will be used; no section open.
 */
CUresult schedule_install(struct device *d, struct schedule *sc,
	struct context *c) WARN_UNUSED;
/*
 * From now on pages stay mapped to their slots: each is mapped once, here or
 * when it next comes.
 */
CUresult schedule_make_fast(struct device *d);
/*
 * Ends the plan in force, if there is one; everything goes on on demand.  why:
 * for the log.  No section may be open and no lock held.
 */
void schedule_end(struct device *d, const char *why);
/*
 * The same where it can wait: false, and the plan goes on, where a stream may be
 * waiting for this very thread (host functions) and did not come to its end
 * within wait_ms.
 */
bool schedule_try_end(struct device *d, const char *why) WARN_UNUSED;
/* As schedule_end(), where one of these pages is in a unit. */
void schedule_leave(struct device *d, uint32_t first, uint32_t nr);
/*
 * GPU memory for a plan whose tensors have the pages [first, first + nr):
 * *most, when everything else that launches use stays on the GPU; *least, when
 * only what is there now does.  Bytes.
 */
void schedule_room(struct device *d, const struct observe_tensor *tensors,
	uint32_t nr, uint64_t *most, uint64_t *least);
/* Iterations since the plan came into force; 0 without one. */
uint64_t schedule_iterations(struct device *d);
/* A context is about to end: a plan that copies through it ends. */
void schedule_context_ends(struct device *d, const struct context *c);
/* Whether pages stay mapped.  A section is open, or no plan can end. */
bool schedule_is_fast(const struct device *d);
/* Whether a plan is in force.  Any thread. */
bool schedule_active(const struct device *d);

#endif
