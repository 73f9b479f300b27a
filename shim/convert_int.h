/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What convert.c (a plan's places to pages and slots, layer by layer) and
 * convert_unit.c (from there to units, pieces and visits) share.
 */
#ifndef BALLAST_CONVERT_INT_H
#define BALLAST_CONVERT_INT_H

#include <stdbool.h>

#include "shim/convert.h"

/* What one layer streams, as the plan's places or transfers add to it. */
struct convert_draft {
	uint32_t nr, max;
	struct convert_page {
		uint32_t page, slot;
		uint32_t tensor;
		uint32_t unit, at;	/* where it went */
	} *pages;			/* owned */
};

#define CONVERT_NOBODY UINT32_MAX

struct convert_piece {
	uint32_t layer;
	uint32_t first, nr;
};

struct convert_work {
	const struct convert *c;
	struct convert_draft *layers;	/* owned; nr_layers */
	struct convert_piece *pieces;	/* owned; in the order of issue */
	uint32_t nr_pieces, max_pieces;
	uint32_t *layer_of;		/* owned; by tensor id: the first user */
	uint64_t *users;		/* owned; by tensor id: hash of them all */
	bool shared;			/* some tensor has several users */
	/* Owned; by page from `low` on: the layer that has it, later its unit. */
	uint32_t *taken;
	uint32_t low, high;
	uint32_t nr_units, nr_slots;
	bool failed;			/* no memory */
};

/*
 * The schedule of what was drafted.  most: slots that there is room for.
 * PLAN_INFEASIBLE: they are too few.
 */
enum plan_status convert_units(struct convert_work *w, uint32_t most,
	struct schedule **out);

#endif
