/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program does, in the planner's words.  Fed with launches and the
 * pages of weights that they name, it finds the order in which weights are
 * used, the period of that order (an iteration), layers and their times.  Pure
 * bookkeeping: no driver, no pages' contents, no lock; the owner (phase.c)
 * serialises the calls.
 *
 * A *step* is a maximal run of launches that name the same set of weights;
 * launches that name none belong to the step before.  The log of steps is
 * searched for its period while it grows: a distance to an earlier equal step is
 * a candidate, a step that differs from its counterpart one period before ends
 * it.  A set that some iterations lack (an expert, a branch) is left out of the
 * order once the rest has a period without it; launches that name it belong to
 * the step before, too.
 */
#ifndef BALLAST_OBSERVE_H
#define BALLAST_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "planner/planner.h"
#include "shim/compiler.h"
#include "shim/page_set.h"

#define OBSERVE_NONE UINT32_MAX

struct observer;

/* NULL: no memory. */
struct observer *observe_create(void);
void observe_destroy(struct observer *o);	/* NULL is fine */
/* Forgets everything but the names of functions. */
void observe_reset(struct observer *o);

enum observe_state {
	OBSERVE_SEARCHING,	/* no period yet */
	OBSERVE_CANDIDATE,	/* one iteration known, being confirmed */
	OBSERVE_PERIODIC,	/* at least one whole iteration repeated */
	OBSERVE_APERIODIC,	/* given up, until observe_reset() */
};

/*
 * A launch.  weights: page ranges, apart and rising (as in a struct page_set),
 * or none.  function tells kernels apart; name (borrowed for the call, may be
 * NULL) is read when the function is new.  Returns the number of the step it
 * belongs to, counted since the last reset, or OBSERVE_NONE: no step yet, or
 * given up (after `limit` steps, or without memory).
 */
uint32_t observe_launch(struct observer *o, uint64_t function,
	const char *name, const struct page_range *weights, uint32_t nr);
/* Time on the GPU that belongs to a step; steps already forgotten are fine. */
void observe_time(struct observer *o, uint32_t step, double ms);

enum observe_state observe_state(const struct observer *o);
/* Steps of one iteration; 0 without a candidate. */
uint32_t observe_period(const struct observer *o);
/*
 * Iterations seen with the present period, the first one included; the last
 * step of the last one may go on.
 */
uint32_t observe_iterations(const struct observer *o);
/*
 * Changes with every new candidate: what was derived from an older one is
 * void.
 */
uint32_t observe_generation(const struct observer *o);
/* Gives up after so many steps without a period (default 65536). */
void observe_set_limit(struct observer *o, uint32_t steps);

/* ---- the profile ---- */

struct observe_options {
	uint64_t page_bytes;
	/* Layers that add less to the one before merge with the next, */
	uint64_t min_layer_bytes;
	/* but not beyond this in all; 0: no limit. */
	uint64_t max_layer_bytes;
	uint32_t group_size;		/* layers planned as one; 0 or 1: none */
};

/*
 * A tensor as the planner sees it: neighbouring pages that the same layers
 * use.  Its tensor_statistics.id is its index.
 */
struct observe_tensor {
	uint32_t first, nr;	/* pages */
};

/*
 * Iterations of the same weights with other kernels, such as prefill and decode,
 * are phases of the program.
 */
struct observe_phase {
	uint64_t kernels;	/* hash of the functions, in order */
	uint32_t nr;		/* iterations that were timed */
	double iteration_ms;	/* sum of layer_ms */
	double *layer_ms;
};

struct observe_profile {
	struct layer_statistics *layers;	/* in order of use */
	uint32_t nr_layers;
	struct observe_tensor *tensors;
	uint32_t nr_tensors;
	/* By layer: its first step within the iteration, and the launches. */
	uint32_t *first_step;
	uint32_t *nr_launches;
	uint32_t period;		/* steps */
	double iteration_ms;		/* sum of the layers' times */
	uint64_t kernels;	/* of the last iteration, as in its phase */
	/*
	 * Of the iterations whose times are in: the first has the times of the
	 * layers.  None where no two iterations are alike.
	 */
	struct observe_phase *phases;
	uint32_t nr_phases;
};

/*
 * The last whole iteration as a profile.  A layer's time is the mean over those
 * of the last `iterations` timed ones (8 at most) that have a time for it, and
 * are of the phase that most of them are of, the last one of several.  An
 * iteration begins with the weights that the program used first.  Labels are
 * unique: position and the function that takes most time, or is launched most,
 * among those that name weights.  All in the arena.  PLAN_BAD_MODEL: there is
 * no period.
 */
enum plan_status observe_profile(const struct observer *o,
	const struct observe_options *opt, uint32_t iterations,
	struct plan_arena *arena, struct observe_profile *out);
/*
 * The layer of a step, counted as by observe_launch(); OBSERVE_NONE for a step
 * before the present period, or when the profile is of another one.
 */
uint32_t observe_layer_of(const struct observer *o,
	const struct observe_profile *p, uint32_t step);

#endif
