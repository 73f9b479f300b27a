/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From "so many bytes of each layer through a ring of so many chunks" to copies
 * in order, each with the layer whose end it must wait for.  Called by the
 * timeline for finished plans and by the search of `optimal` for trial plans.
 * Pure; no locks.
 */
#ifndef BALLAST_PLANNER_RING_H
#define BALLAST_PLANNER_RING_H

#include "planner/timeline.h"

/* Bytes [offset, offset + length) of a place, copied when `after` has ended. */
struct ring_piece {
	uint64_t offset, length;
	uint32_t place;
	int32_t after;
};

/*
 * Cuts each place's bytes where the bytes that they overwrite pass from one
 * layer to the next (split), or not at all; in the order of the releases.  pieces: room for
 * ring_max_pieces().  Returns how many were written.
 */
uint32_t ring_pieces(const struct plan_pool *pool, uint32_t nr_layers,
	bool split, struct ring_piece *pieces);
uint32_t ring_max_pieces(uint32_t nr_places);

/*
 * The last reader of what positions [first, end) of an iteration overwrite,
 * counted from that iteration; end - first <= nr_chunks.
 */
int32_t ring_after(const struct plan_pool *pool, uint32_t nr_layers,
	int64_t first, int64_t end);

/*
 * Joins neighbouring pieces of one place where waiting for the second costs less
 * than the latency that it saves, judged by a short simulation.  t: without
 * copies.  scratch: 3 * nr_layers.  Returns the new number of pieces.
 */
uint32_t ring_join(const struct plan_pool *pool, const struct timeline *t,
	const struct timeline_link *link, struct ring_piece *pieces,
	uint32_t nr, double *scratch);

#endif
