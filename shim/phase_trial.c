/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether data is better read where it is.  A plan with room for little more
 * than the layer at work copies and computes in turn; kernels that read host
 * memory do both at once.  How fast they are only a trial can tell: so many
 * iterations of the plan are timed, then as many in place, and the faster way
 * is kept.  Where that is in place, as many again of a plan for a part of the
 * data, while the rest stays where it is.  Called by phase.c, whose lock guards
 * all of it.
 */
#include <string.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/conf.h"
#include "shim/in_place.h"
#include "shim/log.h"
#include "shim/phase_int.h"
#include "shim/schedule.h"
#include "shim/stats.h"
#include "shim/tenancy.h"

/* Laps that are timed on either side, after one that is not. */
#define LAPS 3
/* So many are begun; they do not come in if their stream has gone, say. */
#define LAPS_MOST 64u
/* Each costs a copy of all that is streamed, there and back. */
#define TRIES 3
/* What it must promise, and then keep. */
#define PROMISE 0.97
#define GAIN 0.99
/* So much slower is not looked at for long. */
#define HOPELESS 1.5

bool trial_wanted(struct phase *p, const struct plan_order *o)
{
	/* Who names a plan or a strategy wants that. */
	return conf.in_place != IN_PLACE_OFF &&
		/* What launches are counted by is the process's. */
		__atomic_load_n(&device_nr, __ATOMIC_ACQUIRE) == 1 && p->trial.tried < TRIES &&
		!o->from_file && o->place_ms == 0 && strcmp(o->strategy->name, "optimal") == 0 &&
		conf.guard != GUARD_CAREFUL && o->in_place_ms > 0 &&
		o->in_place_ms < PROMISE * o->predicted_ms &&
		in_place_possible(p->device);
}

void trial_drop(struct phase *p)
{
	order_destroy(p->trial.kept);
	p->trial.kept = NULL;
	p->trial.state = TRIAL_NONE;
}

static unsigned long long microseconds(double ms)
{
	return (unsigned long long)(ms * 1000);
}

static void laps_begin(struct trial *t)
{
	uint32_t step;
	double ms;

	/* What is still out counts for nobody. */
	timing_pause(t->laps);
	while (timing_take(t->laps, &step, &ms))
		;
	t->first = t->lap + 1;
	t->nr = 0;
	t->ms = 0;
	t->at = 0;
}

void trial_prepare(struct phase *p, struct plan_order *o)
{
	struct trial *t = &p->trial;

	trial_drop(p);
	if (t->laps == NULL)
		t->laps = timing_create();
	if (t->laps == NULL) {
		order_destroy(o);
		return;
	}
	t->kept = o;
	t->state = TRIAL_WANTED;
	laps_begin(t);
}

/* An iteration ends and the next begins; which have come in counts. */
static void lap(struct trial *t, struct context *c, CUstream s)
{
	uint32_t step;
	double ms;

	t->at = stat_get(launches);
	if (t->lap == t->first)
		t->since = t->at;
	if (t->lap == t->first + LAPS)
		t->each = (t->at - t->since) / LAPS;
	timing_mark(t->laps, c, s, t->lap++);
	while (timing_take(t->laps, &step, &ms)) {
		if (step < t->first || ms <= 0)
			continue;
		t->nr++;
		/* Of several phases, the same one on either side. */
		if (t->nr == 1 || ms < t->ms)
			t->ms = ms;
	}
}

/* ---- in place ---- */

static void trim(struct phase *p) REQUIRES(&p->lock)
{
	p->busy = true;
	lock_release(&p->lock);
	arena_trim();
	lock_acquire(&p->lock);
	p->busy = false;
}

static void keep(struct phase *p) REQUIRES(&p->lock)
{
	double ms = p->trial.place_ms;

	log_info("kernels read host memory where it is: %llu us an iteration, "
		"%llu by the plan", microseconds(ms),
		microseconds(p->trial.plan_ms));
	trial_drop(p);
	phase_set(p, PHASE_IN_PLACE);
	stat_set(plan_streamed, 0);
	stat_set(plan_period_ns, (uint64_t)(ms * 1e6));
	trim(p);
	/* Nobody looked while that was tried. */
	trial_freed(p);
}

/* ---- a mixture ---- */

/* It begins as an order like others; false: it cannot be. */
static bool mixture_order(struct phase *p) REQUIRES(&p->lock)
{
	struct plan_order *o = p->trial.kept;

	o->done = false;
	o->place_ms = p->trial.place_ms;
	if (planner_submit(o) != 0)
		return false;
	p->order = o;
	p->trial.kept = NULL;
	p->trial.state = TRIAL_ORDERED;
	return true;
}

/* Everything in place again, for good. */
static void place_again(struct phase *p, struct context *c)
	REQUIRES(&p->lock)
{
	CUresult r;

	p->mixed = false;
	p->busy = true;
	lock_release(&p->lock);
	r = in_place_enter(p->device, c);
	lock_acquire(&p->lock);
	p->busy = false;
	if (r == CUDA_SUCCESS)
		keep(p);
	else
		trial_leave(p);
}

static void mixture_begin(struct phase *p, struct context *c)
	REQUIRES(&p->lock)
{
	struct plan_order *o = p->order;
	struct page_set host;
	CUresult r = CUDA_SUCCESS;

	page_set_init(&host, p->device, NULL);
	for (uint32_t i = 0; i < o->nr_host && r == CUDA_SUCCESS; i++)
		if (!page_set_add(&host, o->host[i].first,
		    o->host[i].first + o->host[i].nr - 1))
			r = CUDA_ERROR_OUT_OF_MEMORY;
	p->mixed = p->busy = true;
	lock_release(&p->lock);
	if (r == CUDA_SUCCESS)
		r = in_place_part(p->device, c, &host);
	page_set_clear(&host);
	lock_acquire(&p->lock);
	p->busy = false;
	if (r != CUDA_SUCCESS) {
		log_dbg("data cannot be parted: %s", api_result_name(r));
		p->order = NULL;
		order_destroy(o);
		place_again(p, c);
		return;
	}
	p->trial.state = TRIAL_MIXED;
	laps_begin(&p->trial);
	phase_install(p, c);
	if (p->id == PHASE_ON_DEMAND)
		place_again(p, c);
}

/* The planner may be done; until then everything stays in place. */
static void mixture_check(struct phase *p, struct context *c)
	REQUIRES(&p->lock)
{
	struct trial *t = &p->trial;
	bool boundary = stat_get(launches) - t->at >= t->each;
	struct plan_order *o = phase_order(p, boundary);

	if (boundary)
		t->at = stat_get(launches);
	if (o == NULL)
		return;
	/* Iterations of a single visit cannot be told apart, so not timed. */
	if (o->status == PLAN_OK && o->schedule->visits.nr > 1 &&
	    o->predicted_ms < PROMISE * o->place_ms) {
		mixture_begin(p, c);
		return;
	}
	log_info("a part of the data in host memory while the rest is copied "
		"promises no gain");
	p->order = NULL;
	order_destroy(o);
	keep(p);
}

/* Enough of its iterations have been timed, or none could be. */
static void mixture_end(struct phase *p, struct context *c, double ms)
	REQUIRES(&p->lock)
{
	struct trial *t = &p->trial;
	bool ended;

	if (ms > 0 && ms < GAIN * t->place_ms) {
		log_info("a part of the data is read in host memory while the "
			"rest is copied: %llu us an iteration, %llu with all "
			"of it there, %llu by the plan", microseconds(ms),
			microseconds(t->place_ms), microseconds(t->plan_ms));
		trial_drop(p);
		trim(p);
		return;
	}
	log_dbg("a part in host memory: %llu us an iteration, %llu with all of "
		"it there", microseconds(ms), microseconds(t->place_ms));
	p->busy = true;
	lock_release(&p->lock);
	ended = schedule_try_end(p->device, NULL);
	lock_acquire(&p->lock);
	p->busy = false;
	if (ended)
		place_again(p, c);
	else
		trial_drop(p);
}

/* ---- from the plan to the trial, and back ---- */

/* The plan again; data may still be in place where it could not go back. */
static void go_back(struct phase *p, struct context *c) REQUIRES(&p->lock)
{
	struct plan_order *o = p->trial.kept;
	bool all;

	p->trial.kept = NULL;
	p->trial.state = TRIAL_NONE;
	p->busy = true;
	lock_release(&p->lock);
	all = in_place_leave(p->device);
	if (all && order_convert(o) != PLAN_OK)
		all = false;
	lock_acquire(&p->lock);
	p->busy = false;
	if (!all) {
		order_destroy(o);
		phase_watch(p);
		return;
	}
	p->order = o;
	phase_install(p, c);
	/* Something has changed meanwhile. */
	if (!schedule_active(p->device))
		phase_watch(p);
}

static void begin(struct phase *p, struct context *c) REQUIRES(&p->lock)
{
	struct trial *t = &p->trial;
	CUresult r;

	t->plan_ms = t->ms;
	t->tried++;
	p->busy = true;
	lock_release(&p->lock);
	if (!schedule_try_end(p->device, NULL)) {
		lock_acquire(&p->lock);
		p->busy = false;
		trial_drop(p);
		return;
	}
	r = in_place_enter(p->device, c);
	lock_acquire(&p->lock);
	p->busy = false;
	if (r != CUDA_SUCCESS) {
		t->tried = TRIES;
		go_back(p, c);
		return;
	}
	t->state = TRIAL_ON;
	laps_begin(t);
	phase_set(p, PHASE_TRIAL);
}

void trial_turn(struct phase *p, CUstream s)
{
	struct trial *t = &p->trial;
	struct context *c;

	if (t->state != TRIAL_WANTED && t->state != TRIAL_MIXED)
		return;
	c = context_current();
	if (c == NULL || c->ordinal != p->device->ordinal)
		return;
	lap(t, c, s);
	if (t->state == TRIAL_MIXED) {
		if (t->nr >= LAPS)
			mixture_end(p, c, t->ms);
		else if (t->lap - t->first > LAPS_MOST)
			mixture_end(p, c, 0);
	} else if (t->nr >= LAPS && t->each > 0) {
		begin(p, c);
	}
}

/* ---- the program's launches in place ---- */

void trial_launch(struct phase *p, struct context *c, CUstream s, bool waits)
{
	struct trial *t = &p->trial;
	double ms;

	if (t->state == TRIAL_OVER)
		log_info("memory has been freed: data in host memory may go "
			"back");
	if (waits || t->state == TRIAL_OVER) {
		trial_leave(p);
		return;
	}
	if (t->state == TRIAL_ORDERED)
		mixture_check(p, c);
	if (t->state != TRIAL_ON)
		return;
	if (t->at == 0 || stat_get(launches) - t->at >= t->each)
		lap(t, c, s);
	if (t->nr < LAPS && t->lap - t->first > LAPS_MOST) {
		log_info("iterations in place cannot be timed: the plan goes "
			"on");
		t->tried = TRIES;
		go_back(p, c);
		return;
	}
	ms = t->ms;
	if (t->nr >= LAPS && ms < GAIN * t->plan_ms) {
		t->place_ms = ms;
		if (conf.in_place == IN_PLACE_WHOLE || !mixture_order(p))
			keep(p);
	} else if (t->nr >= LAPS || (t->nr > 1 &&
		   ms > HOPELESS * t->plan_ms)) {
		log_info("kernels that read host memory are slower: %llu us an "
			"iteration, %llu by the plan, which goes on",
			microseconds(ms), microseconds(t->plan_ms));
		t->tried = TRIES;
		go_back(p, c);
	}
}

void trial_freed(struct phase *p)
{
	uint64_t idle = tenancy_idle(p->device);
	enum phase_id was;

	if (idle == 0 || idle < stat_get(host_bytes) / PHASE_ROOM)
		return;
	/* Perhaps the program only clears up: a launch will tell. */
	p->trial.state = TRIAL_OVER;
	was = p->id;
	phase_set(p, PHASE_TRIAL);
	stat_set(phase, was);
}

void trial_leave(struct phase *p)
{
	bool all;

	p->busy = true;
	lock_release(&p->lock);
	all = in_place_leave(p->device);
	lock_acquire(&p->lock);
	p->busy = false;
	if (!all)
		log_info("device %d: some data stays in host memory",
			p->device->ordinal);
	phase_watch(p);
}
