/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What phase.c, phase_order.c, phase_trial.c, phase_turn.c (the program's
 * threads), phase_plan.c and phase_mix.c (the planning thread) share.
 */
#ifndef BALLAST_PHASE_INT_H
#define BALLAST_PHASE_INT_H

#include "planner/plan_io.h"
#include "planner/timeline.h"
#include "shim/gauge.h"
#include "shim/observe.h"
#include "shim/phase.h"
#include "shim/timing.h"
#include "shim/unit.h"

#define PHASE_NAMED 256u

/* One order for the planner, and what came of it. */
struct plan_order {
	/* In: */
	uint32_t device;		/* ordinal, for messages */
	struct plan_arena *arena;	/* owned; holds profile and result */
	struct observe_profile profile;
	struct gauge gauge;
	uint64_t page_bytes;
	uint64_t budget;		/* for layers and pool */
	uint64_t budget_least;		/* with other data streamed as well */
	double release_ms;
	bool profile_only;		/* everything fits: no plan is made */
	/* For files. */
	char device_name[96];
	uint64_t device_bytes;
	struct plan_program program;
	/* Out: */
	struct schedule *schedule;	/* owned; NULL: nothing to stream */
	struct strategy_result result;
	enum plan_status status;
	char message[PLAN_MESSAGE];
	double predicted_ms, bound_ms;
	uint64_t peak_bytes, streamed_bytes;
	const struct plan_strategy *strategy;
	struct plan_params params;
	uint64_t budget_used;
	double in_place_ms;		/* period without moving; an estimate */
	struct timeline_times times;	/* of the steady state; 0: not known */
	/*
	 * For a plan that leaves a part in host memory: the period in place, as
	 * it was measured (0: no such plan is wanted), and that part, which is
	 * no longer in the profile.
	 */
	double place_ms;
	struct page_range *host;	/* in the arena; apart */
	uint32_t nr_host;
	bool from_file;			/* plan_in's */
	bool done;			/* guarded by phase_plan.c's lock */
	bool unwanted;			/* likewise: the thread destroys it */
};

/*
 * A plan that cannot hide its copies, against data that stays in host memory
 * and is read there: that is tried out, and kept where it is faster.  Then a
 * mixture of both is, against that.
 */
struct trial {
	enum {
		TRIAL_NONE,
		TRIAL_WANTED,		/* the plan's iterations are timed */
		TRIAL_ON,		/* in place; those are timed */
		TRIAL_ORDERED,		/* in place; a mixture is being planned */
		TRIAL_MIXED,		/* a mixture's iterations are timed */
		TRIAL_OVER,		/* in place no more, from the next launch */
	} state;
	struct plan_order *kept;	/* owned; to go back to its plan */
	struct timing *laps;		/* owned; made for the first one */
	uint32_t lap;			/* number of the next mark */
	uint32_t first;			/* the first lap that counts */
	uint32_t nr;			/* laps that have counted */
	double ms;			/* the shortest of them */
	double plan_ms;			/* of an iteration by the plan */
	double place_ms;		/* and in place */
	uint64_t at;			/* launches at the last mark */
	uint64_t since;			/* and at the first of the plan's */
	uint64_t each;			/* launches in an iteration */
	uint32_t tried;			/* times on this device */
};

/* What a device is at; guarded by its lock (LOCK_PHASE). */
struct phase {
	struct device *device;
	struct lock lock;
	enum phase_id id;
	bool busy;			/* a thread is moving memory */
	struct observer *observer;	/* owned */
	struct timing *timing;		/* owned */
	struct plan_order *order;	/* owned by the planner until it is done */
	struct gauge gauge;
	uint32_t generation;		/* of the period that is profiled */
	uint32_t step;			/* of the launch under way */
	struct file_plan *file;		/* owned; being looked for, or NULL */
	bool file_asked;		/* `file` has been opened, if it can */
	bool profiled;			/* a complete profile has been made */
	/* Without a plan: launches that waited, and how many before it is tried. */
	uint64_t waited;
	uint64_t retry;
	CUfunction named[PHASE_NAMED];	/* functions whose names are known */
	/* Under a plan. */
	uint64_t iterations;		/* seen by phase_turn() */
	uint64_t on_demand;		/* launches in this iteration */
	uint32_t bad;			/* iterations in a row with any */
	uint32_t patience;		/* of those, before it is watched anew */
	bool mixed;			/* the plan left some in host memory */
	bool from_file;			/* it is plan_in's */
	uint64_t idle;			/* bytes, before any was freed */
	uint64_t gained;		/* bytes freed between order and plan */
	bool freed;			/* memory has been, since the order */
	uint32_t roomy;			/* iterations in a row with room for more */
	struct trial trial;
};

static inline struct phase *phase_of(struct device *d)
{
	return __atomic_load_n(&d->phase, __ATOMIC_ACQUIRE);
}

/*
 * Memory that was freed is only worth a change if this part of what is off the
 * GPU could be on it.
 */
#define PHASE_ROOM 8

/* ---- phase.c, for phase_trial.c and phase_turn.c ---- */

void phase_set(struct phase *p, enum phase_id id) REQUIRES(&p->lock);
/* Begins anew; the lock is free meanwhile where memory has to move for that. */
void phase_watch(struct phase *p) REQUIRES(&p->lock);
/*
 * p->order, done, or NULL.  wait: an iteration begins, so that it may be held up
 * for a while; the lock is free meanwhile.
 */
struct plan_order *phase_order(struct phase *p, bool wait) REQUIRES(&p->lock);
/* Puts p->order into force, which ends it; the lock is free meanwhile. */
void phase_install(struct phase *p, struct context *c) REQUIRES(&p->lock);

/* ---- phase_order.c ---- */

/* NULL: times are missing, or no memory. */
struct plan_order *order_make(struct phase *p) REQUIRES(&p->lock);
/* Bytes of its largest layer. */
uint64_t order_largest(const struct plan_order *o);
/*
 * What a slot's way back to the arena costs: a layer's bytes towards the host,
 * which is taken to be as fast as the other way.
 */
double order_release_ms(const struct plan_order *o);
/* Where phases of the program differ. */
void order_say_phases(const struct plan_order *o);

/* ---- phase_trial.c ---- */

/* Whether an order whose plan is about to begin is kept, for a trial. */
bool trial_wanted(struct phase *p, const struct plan_order *o)
	REQUIRES(&p->lock);
/* Its plan is in force: the trial has the order from here on. */
void trial_prepare(struct phase *p, struct plan_order *o) REQUIRES(&p->lock);
/* An iteration begins by the fast plan, with a launch on s. */
void trial_turn(struct phase *p, CUstream s) REQUIRES(&p->lock);
/* In place, on trial or kept: a launch on s; waits: something is swapped again. */
void trial_launch(struct phase *p, struct context *c, CUstream s, bool waits)
	REQUIRES(&p->lock);
/* Whatever it was at is over; the plan may go on. */
void trial_drop(struct phase *p) REQUIRES(&p->lock);
/* In place, memory has been freed: the GPU may have room again. */
void trial_freed(struct phase *p) REQUIRES(&p->lock);
/* From data in place back to swapping, and watching. */
void trial_leave(struct phase *p) REQUIRES(&p->lock);

/* ---- phase_plan.c ---- */

void order_destroy(struct plan_order *o);	/* NULL is fine */
/* Fills in times, bound and bytes of a result, whichever strategy made it. */
void order_judge(struct plan_order *o);
/*
 * A plan for the budget, and its schedule.  On failure o->message says why.
 * Planning thread.
 */
enum plan_status order_compute(struct plan_order *o, uint64_t budget);
/* Makes o->schedule anew from the result. */
enum plan_status order_convert(struct plan_order *o) WARN_UNUSED;
/*
 * Of an order whose data has been in place for a while: the best plan for a
 * part of it, where there is any (o->status).  Planning thread.  phase_mix.c.
 */
void mix_run(struct plan_order *o);
/* Plans; on the planning thread, without any lock. */
void order_run(struct plan_order *o);

/*
 * Gives an order to the thread, which is started if need be.  -errno where
 * there can be none; then the order is the caller's still.
 */
int planner_submit(struct plan_order *o) WARN_UNUSED;
/* The order, done; NULL: not yet.  Waits up to wait_ns for it. */
struct plan_order *planner_take(struct plan_order *o, uint64_t wait_ns);
/* Nobody will take it: it is destroyed, now or when it is done.  NULL is fine. */
void planner_forget(struct plan_order *o);
/* Ends the thread after what it is at. */
void planner_stop(void);

#endif
