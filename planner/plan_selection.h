/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of GlobalTensorSelectionStrategy share: a set of tensors, what
 * it is worth, and the best set so far.  Only plan_selection*.c include it.
 */
#ifndef BALLAST_PLANNER_PLAN_SELECTION_H
#define BALLAST_PLANNER_PLAN_SELECTION_H

#include "planner/plan_int.h"
#include "planner/plan_search.h"

#define SELECTION_SLACK 1.001	/* on a window, as published */
#define SELECTION_LEVELS 16

struct plan_variable {
	const struct tensor_statistics *t;
	uint32_t layer;
	uint32_t place;		/* among all variables, in the given order */
};

struct plan_selector {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	const struct memory_transfer_interpolator *ip;
	struct plan_assignment assignment;
	struct plan_window window;
	struct plan_groups g;
	struct plan_random random;
	double lo, hi;		/* of scale */
	double limit;		/* 0: none */
	uint64_t fixed_bytes;
	bool *fixed;		/* by layer */
	double *duration;
	uint64_t *possible;	/* eligible bytes by layer, 0 for layer 0 */
	uint64_t *base;		/* fixed bytes by layer */
	uint32_t nr;
	struct plan_variable *vars;	/* by layer */
	uint32_t *first;	/* a layer's first in vars; n + 1 entries */
	struct plan_variable *large;	/* the same, larger ones of a layer first */
	uint32_t nr_levels;
	uint64_t levels[SELECTION_LEVELS + 1];
	/* The set at hand */
	bool *on;
	uint64_t *off;		/* by layer */
	uint64_t chosen;	/* bytes, without the fixed ones */
	uint64_t *timed;	/* off that ms is for */
	double *ms;
	bool fits;		/* the limit, when last judged */
	uint64_t *sizes;
	uint32_t *block;
	/* The best one */
	bool *best_on;
	double best, best_scale;
	enum plan_status err;
};

/* ---- plan_selection.c ---- */

/*
 * What the set at hand is worth at this scale, less being better: below 0 if it
 * is valid.  Keeps it if it is the best.
 */
double plan_selector_judge(struct plan_selector *s, double scale);
void plan_selector_set(struct plan_selector *s, const struct plan_variable *v,
	bool on);

/* ---- plan_selection_start.c ---- */

/* Levels up to which the starts fill windows. */
enum plan_status plan_selector_levels(struct plan_selector *s);
/* Judges sets that fill windows: at the smallest scale that fits the limit. */
void plan_selector_start(struct plan_selector *s);

#endif
