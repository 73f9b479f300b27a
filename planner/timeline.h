/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact steady state of a plan.  One copy engine takes copies in a fixed
 * order; layers compute in order; a layer waits for its bytes, a copy for the
 * last reader of the memory it overwrites.  Everything starts as early as that
 * allows.  All strategies are judged by the period found here; the tools draw
 * the times.  Pure; no locks.
 */
#ifndef BALLAST_PLANNER_TIMELINE_H
#define BALLAST_PLANNER_TIMELINE_H

#include "planner/planner.h"

/* ---- the link ------------------------------------------------------------- */

/* A copy of n bytes keeps the engine busy for latency_ms + n * ms_per_byte. */
struct timeline_link {
	double latency_ms;
	double ms_per_byte;
	/* NULL, or what is used instead: linear between its points, ascending. */
	const struct transfer_time *points;	/* borrowed */
	uint32_t nr_points;
	uint64_t piece_bytes;	/* copies are issued in pieces of this; 0 whole */
};

double timeline_copy_ms(const struct timeline_link *link, uint64_t bytes);
/*
 * The latency and rate that fit the table best; a table that is not affine is
 * kept in points (in the arena).  Without a table the tensors' load times serve;
 * PLAN_NEEDS_TABLE without those.
 */
enum plan_status timeline_link_of(const struct plan_input *in,
	struct plan_arena *arena, struct timeline_link *link);
/*
 * An affine cost that is nowhere above the link's: for bounds.
 */
void timeline_link_below(const struct timeline_link *link, double *latency_ms,
	double *ms_per_byte);

/* ---- the pool of a plan of `optimal` ---------------------------------------- */

/*
 * A ring of nr_chunks chunks.  The streamed bytes of the layers, in layer order,
 * each beginning a chunk, have positions 0, 1, ... of an iteration; a position
 * lies in chunk (position mod nr_chunks).  Unused positions ("pads") before some
 * layers make the number of positions a multiple of nr_chunks, so that a layer's
 * place is the same in every iteration.  With nearly a turn of pads a layer
 * begins before the end of the last one: any address can be had.  One chunk:
 * serial operation.  As many chunks as blocks and one position for each layer:
 * equal blocks in turn.
 */
#define PLAN_MOST_PADS 16	/* for each position that is used */

struct plan_place {
	uint32_t layer;
	uint32_t chunks;	/* positions it takes */
	uint64_t position;
	uint64_t bytes;		/* the first ones of the layer's streamable bytes */
};

/*
 * One copy: bytes [offset, offset + length) of a place.  Those of a place follow
 * each other, in any order.
 */
struct plan_piece {
	uint32_t place;
	uint64_t offset, length;
};

struct plan_pool {
	uint64_t chunk_bytes;
	uint32_t nr_chunks;
	uint64_t positions;	/* a multiple of nr_chunks */
	uint64_t pad_positions;	/* of these */
	uint32_t nr_places;
	const struct plan_place *places;	/* in layer order */
	uint32_t nr_pieces;
	const struct plan_piece *pieces;	/* in the order of issue */
	uint64_t peak_bytes;	/* residents and pool */
	uint64_t streamed_bytes;
};

/* ---- a timeline ------------------------------------------------------------- */

#define TIMELINE_ANY INT32_MIN	/* no such condition */

/*
 * Layers as seen from the copy's iteration: -1 is the last layer of the one
 * before, nr_layers the first of the next.
 */
struct timeline_copy {
	uint64_t bytes;
	double ms;	/* on the link */
	int32_t use;	/* >= 0; the layer that waits for it */
	int32_t after;	/* < use; the last reader of what it overwrites, or ANY */
	int32_t slot;	/* < use; the layer it is planned for, or ANY */
	uint32_t layer;	/* use mod nr_layers */
};

struct timeline {
	uint32_t nr_layers, nr_copies;
	const double *duration_ms;
	const struct timeline_copy *copies;	/* in the order of issue */
	double release_ms;	/* from a reader's end to the reuse */
	bool wrap;	/* copies may start before their iteration does */
	bool in_slot;	/* copies do not start before their slot does */
};

struct timeline_options {
	struct timeline_link link;
	double release_ms;
	bool wrap, in_slot;
};

/*
 * PLAN_CONFLICT: memory is reused while still needed, so the plan cannot run;
 * PLAN_BAD_PLAN: it names layers that do not exist.
 */
enum plan_status timeline_of_result(const struct strategy_result *result,
	const struct plan_input *in, const struct timeline_options *opt,
	struct plan_arena *arena, struct timeline *out);

struct timeline_times {
	double period_ms;	/* of the steady state */
	double compute_ms, stall_ms;	/* of it; stall: no layer computes */
	double link_busy_ms;	/* of it */
	double cold_ms;		/* first iteration, from an empty pool */
	/* With want_times, in the arena; one steady iteration, from 0: */
	double *layer_start_ms;
	double *copy_start_ms;	/* may be negative: before the iteration */
};

enum plan_status plan_timeline(const struct timeline *t, bool want_times,
	struct plan_arena *arena, struct timeline_times *out);

#endif
