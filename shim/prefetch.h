/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies ahead of the launches that need them: the next unit that is not whole,
 * in the order of the schedule, as soon as its slots' tenants are needed later
 * than it.  Called by the program's own threads after launches: those that begin
 * or end a unit's turn, and those that went the long way.
 */
#ifndef BALLAST_PREFETCH_H
#define BALLAST_PREFETCH_H

#include "shim/device.h"

/*
 * Issues what can be issued now; never waits for the GPU.  No lock held, no
 * section open.  At once where no plan is in force, or another thread is at it.
 */
void prefetch_pump(struct device *d);
/*
 * The same, but not at all where another thread is at work on the pool.  For
 * calls that come often, and that nobody waits in.
 */
void prefetch_try(struct device *d);

#endif
