/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long copies from the arena to the GPU take.  Measured once per device,
 * with events on our copy stream, before the first plan is made.
 */
#ifndef BALLAST_GAUGE_H
#define BALLAST_GAUGE_H

#include <stdint.h>

#include "shim/compiler.h"
#include "shim/context.h"
#include "planner/planner.h"

#define GAUGE_POINTS 16

struct gauge {
	uint32_t nr;		/* 0: not measured */
	struct transfer_time points[GAUGE_POINTS];	/* by rising size */
};

/*
 * Sizes from 64 KiB to `most` or what there is room for; sizes above that are
 * computed from the largest one measured, as copies go in pieces.  Waits for
 * the copies.  c is current; no lock held.  CUDA_ERROR_OUT_OF_MEMORY: no GPU
 * memory to copy to, or no pinned memory to copy from.
 */
CUresult gauge_measure(struct context *c, uint64_t most, struct gauge *g)
	WARN_UNUSED;

#endif
