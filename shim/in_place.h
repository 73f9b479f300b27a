/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streamed data where kernels reach it without being moved: in chunks of its
 * own as far as they go, the rest in host memory that is mapped at its
 * addresses.  What a plan can fall back on where it cannot hide its copies.
 * Called by phase_trial.c on the program's threads.
 */
#ifndef BALLAST_IN_PLACE_H
#define BALLAST_IN_PLACE_H

#include "shim/compiler.h"
#include "shim/context.h"
#include "shim/device.h"
#include "shim/page_set.h"

/*
 * Whether the driver offers it and host memory for all that is streamed may be
 * had besides the arena's.  No lock of tenancy held.
 */
bool in_place_possible(struct device *d);
/*
 * Everything that is streamed leaves the pool and the arena.  No plan is in
 * force; c is current; no section open, no lock held.  Waits for the GPU.  On
 * failure what has moved stays where it is, which in_place_leave() undoes.
 */
CUresult in_place_enter(struct device *d, struct context *c) WARN_UNUSED;
/*
 * After in_place_enter(): these pages are in host memory from here on, none of
 * them in a chunk, and all others leave it.  The same conditions; a failure may
 * leave any of them swapped.
 */
CUresult in_place_part(struct device *d, struct context *c,
	const struct page_set *host) WARN_UNUSED;
/*
 * What lies in host memory goes back to the arena.  The same conditions.
 * false: not all of it could; the rest goes on as it is.
 */
bool in_place_leave(struct device *d);

#endif
