/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What observe*.c share: the log of steps, the sets of weights that occur in
 * it, the functions.  Nobody else looks inside.
 */
#ifndef BALLAST_OBSERVE_INT_H
#define BALLAST_OBSERVE_INT_H

#include "shim/observe.h"

/* Iterations whose times are kept. */
#define OBSERVE_TIMED 8
/* Kernels that are counted by step. */
#define OBSERVE_TOP 3

/* Hash to index; open addressing. */
struct observe_table {
	struct observe_slot {
		uint64_t hash;
		uint32_t index;		/* OBSERVE_NONE: free */
	} *slots;			/* owned; NULL while empty */
	uint32_t room;			/* a power of two, or 0 */
	uint32_t nr;
};

/* Weights that launches name together.  Numbered in order of first use. */
struct observe_set {
	uint64_t last;		/* its last step; void before the log's base */
	uint32_t first, nr;	/* in ranges */
	uint32_t pages;
	uint32_t glitches;	/* times it broke a period that came back */
	bool used;		/* last is set */
	bool optional;		/* left out of the order */
	bool kept;		/* for the backbone, as is what follows */
	uint32_t mark, trial;
	uint32_t count, want, agreed;
};

struct observe_step {
	double ms;
	uint64_t kernels;	/* hash of the functions, in order */
	uint32_t nr_launches;
	bool timed;
	bool varied;		/* an optional set came; kernels is closed */
	/* The most frequent functions that name weights. */
	struct observe_top {
		uint32_t function, nr;
	} top[OBSERVE_TOP];
};

struct observe_function {
	char *name;		/* owned; NULL: unknown */
};

struct observer {
	enum observe_state state;
	uint32_t limit;

	/* The log.  Steps are numbered since the reset; [base, next) are here. */
	uint64_t base, next;
	uint32_t *seq;			/* owned; set of each step */
	uint32_t *back;			/* owned; distance to its last use, or 0 */
	struct observe_step *steps;	/* owned */
	uint32_t room;

	/* The candidate; period 0: none. */
	uint32_t period;
	uint64_t run;		/* steps that equal those one period before */
	uint64_t need;		/* a run so long confirms it */
	uint64_t origin;	/* where its first iteration begins */
	uint64_t start;		/* as origin, in the canonical rotation */
	uint32_t generation;

	/* The search. */
	uint64_t since;		/* step at which it began */
	uint64_t next_try;	/* for a backbone, at this step */
	uint32_t fails;		/* candidates that broke */
	/* The last period that broke, to see whether it comes back. */
	uint32_t lost_period;
	uint64_t lost_sum, lost_at, lost_run;
	uint32_t comebacks;
	bool filter;		/* sets never seen before are optional */
	uint32_t nr_optional;
	uint64_t skipped;	/* launches of optional sets since the step */

	struct observe_set *sets;	/* owned */
	uint32_t nr_sets, room_sets;
	struct page_range *ranges;	/* owned; of all sets */
	uint32_t nr_ranges, room_ranges;
	struct observe_table set_table;
	uint32_t stamp;			/* for mark and trial */

	struct observe_function *functions;	/* owned */
	uint32_t nr_functions, room_functions;
	struct observe_table function_table;
	uint64_t last_key;		/* the function looked up last */
	uint32_t last_function;
};

uint64_t observe_mix(uint64_t x);
/* Room for one more element.  false: no memory. */
bool observe_grow(void **array, uint32_t *room, uint32_t nr, size_t size)
	WARN_UNUSED;

/* observe_set.c: OBSERVE_NONE: not there, or no memory. */
uint32_t observe_set_find(const struct observer *o,
	const struct page_range *weights, uint32_t nr, uint64_t *hash);
uint32_t observe_set_add(struct observer *o, const struct page_range *weights,
	uint32_t nr, uint64_t hash);
bool observe_set_is(const struct observer *o, uint32_t set,
	const struct page_range *weights, uint32_t nr);
void observe_sets_clear(struct observer *o);
uint32_t observe_function(struct observer *o, uint64_t key, const char *name);
void observe_functions_clear(struct observer *o);
/* The index at or after *pos whose hash is this; *pos goes on behind it. */
uint32_t observe_table_next(const struct observe_table *t, uint64_t hash,
	uint32_t *pos);

/*
 * observe_backbone.c: sets that the iterations in the log have in common.
 * true: the others are optional now, and the log must begin anew.
 */
bool observe_backbone(struct observer *o);

/* What observe_profile() works with. */
struct profile_work {
	const struct observer *o;
	const struct observe_options *opt;
	struct plan_arena *arena;	/* of the result */
	struct plan_arena *scratch;	/* owned */
	struct observe_profile *out;
	const uint32_t *seq;		/* one iteration: sets, */
	const struct observe_step *steps; /* and what was seen */
	uint64_t first;			/* its first step */
	uint32_t period;
	struct cell *cells;
	uint32_t nr_cells, stamp;
	uint32_t *first_step;		/* by layer, and one more */
	uint32_t nr_layers;
	double *weight;			/* by function */
	double *step_ms;		/* by step: over all timed iterations */
};

/* observe_times.c: hash of an iteration's functions, in order. */
uint64_t profile_kernels(const struct profile_work *w,
	const struct observe_step *s);
/* Fills in the times of layers, steps and phases. */
enum plan_status profile_times(struct profile_work *w, uint32_t iterations);

static inline uint32_t observe_len(const struct observer *o)
{
	return (uint32_t)(o->next - o->base);
}

#endif
