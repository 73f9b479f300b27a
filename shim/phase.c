/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From watching to a plan and back.  Each device's record is guarded by its
 * lock (LOCK_PHASE); `busy` keeps others out while a thread moves memory
 * without it.  The planner's work is in phase_plan.c, what comes under a plan in
 * phase_turn.c and phase_trial.c.
 */
#include "shim/phase.h"

#include <stdio.h>
#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/in_place.h"
#include "shim/init.h"
#include "shim/log.h"
#include "shim/phase_file.h"
#include "shim/schedule.h"
#include "shim/stats.h"
#include "shim/tenancy.h"
#include "shim/trace.h"

/*
 * Where there was no plan a program may still come to repeat itself, or have
 * more room: so many launches that waited, and twice as many each time.
 */
#define RETRY_LAUNCHES 4096

/* How long an iteration may be held up for its plan. */
#define PLAN_WAIT_NS 500000000ull

uint32_t phase_watching;

const char *phase_name(enum phase_id p)
{
	return stats_phase_name(p);
}

static bool watches(enum phase_id id)
{
	return id == PHASE_DISCOVERY || id == PHASE_PROFILING ||
		id == PHASE_PLANNING || id == PHASE_TRIAL;
}

void phase_set(struct phase *p, enum phase_id id)
{
	if (watches(id) && !watches(p->id))
		__atomic_fetch_add(&phase_watching, 1, __ATOMIC_SEQ_CST);
	else if (!watches(id) && watches(p->id))
		__atomic_fetch_sub(&phase_watching, 1, __ATOMIC_SEQ_CST);
	if (id != p->id)
		log_dbg("device %d: %s; %u steps, %u iterations with a period "
			"of %u", p->device->ordinal, phase_name(id),
			p->step + 1, observe_iterations(p->observer),
			observe_period(p->observer));
	p->id = id;
	stat_set(phase, id);
}

/* Whether what copies and waits for the device can be done with c current. */
static bool is_here(const struct phase *p, const struct context *c)
{
	return c != NULL && c->ordinal == p->device->ordinal;
}

static struct phase *phase_make(struct device *d)
{
	struct phase *p = phase_of(d), *none = NULL;

	if (p != NULL)
		return p;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return NULL;
	p->device = d;
	p->patience = 3;
	p->retry = RETRY_LAUNCHES;
	lock_init(&p->lock, LOCK_PHASE, "phase");
	p->observer = observe_create();
	p->timing = timing_create();
	if (p->observer == NULL || p->timing == NULL ||
	    !__atomic_compare_exchange_n(&d->phase, &none, p, false,
	    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		observe_destroy(p->observer);
		timing_destroy(p->timing);
		free(p);
		return none;
	}
	init_at_exit(phase_stop);
	return p;
}

/* At exit; the rest of the summary is issue's. */
static void say_plans(void)
{
	uint64_t us = stat_get(period_ns) / 1000;
	uint64_t link = stat_get(plan_link_ns) / 1000;

	if (stat_get(iterations) == 0)
		return;
	log_info("by plans: %llu iterations, %llu prefetches in time and %llu "
		"missed (%llu in part); period %llu us, %llu expected, bound "
		"%llu; %llu ms of stalls; the link is busy for %llu %%",
		(unsigned long long)stat_get(iterations),
		(unsigned long long)stat_get(prefetch_hits),
		(unsigned long long)stat_get(prefetch_missed),
		(unsigned long long)stat_get(prefetch_late),
		(unsigned long long)us,
		(unsigned long long)(stat_get(plan_period_ns) / 1000),
		(unsigned long long)(stat_get(plan_bound_ns) / 1000),
		(unsigned long long)(stat_get(stall_ns) / 1000000),
		(unsigned long long)(us > 0 ? link * 100 / us : 0));
}

void phase_stop(void)
{
	static bool stopped;

	/* Each device asks for it. */
	if (__atomic_exchange_n(&stopped, true, __ATOMIC_RELAXED))
		return;
	planner_stop();
	say_plans();
	for (int n = 0; file_wants_profile() &&
	     n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE); n++) {
		struct phase *p = phase_of(device_list[n]);

		if (p != NULL && !p->profiled)
			log_warn("profile_out: device %d has none: the program "
				"ended before its layers were timed (%s)",
				device_list[n]->ordinal, phase_name(p->id));
	}
}

/* Whether plans are made at all; a wrong strategy is told once. */
static bool plans(void)
{
	static int verdict;	/* atomic; 0: not known */
	int v = __atomic_load_n(&verdict, __ATOMIC_RELAXED);
	struct plan_params params;
	char message[PLAN_MESSAGE];

	if (conf.policy != POLICY_PLAN)
		return false;
	if (v == 0) {
		v = file_strategy(&params, message) != NULL ? 1 : -1;
		if (__atomic_exchange_n(&verdict, v, __ATOMIC_RELAXED) == 0 &&
		    v < 0)
			log_err("strategy: %s; data is moved on demand",
				message);
	}
	return v > 0;
}

void phase_start(void)
{
	trace_start();
	(void)plans();
}

void phase_watch(struct phase *p)
{
	bool mixed = p->mixed;

	p->mixed = false;
	/* Layers would be timed with what they wait for the link. */
	if (mixed && is_here(p, context_current())) {
		p->busy = true;
		lock_release(&p->lock);
		in_place_leave(p->device);
		lock_acquire(&p->lock);
		p->busy = false;
	}
	observe_reset(p->observer);
	p->step = OBSERVE_NONE;
	p->bad = 0;
	p->iterations = p->on_demand = 0;
	trial_drop(p);
	planner_forget(p->order);
	p->order = NULL;
	phase_set(p, PHASE_DISCOVERY);
}

void phase_allocated(struct device *d)
{
	struct phase *p;

	/* Layers are counted from where watching began: always the same. */
	if (!file_keys() || (!file_wants_profile() &&
	    tenancy_all_resident(d)) || !plans() ||
	    (p = phase_make(d)) == NULL)
		return;
	lock_acquire(&p->lock);
	if (p->id == PHASE_IDLE && !p->profiled)
		phase_watch(p);
	lock_release(&p->lock);
}

/* ---- watching ---- */

/* The weights among a launch's pages: memory that the host has filled. */
static uint32_t weights_of(const struct device *d, const struct page_set *set,
	struct page_range **out)
{
	uint32_t max = 0, n = 0;
	struct page_range *list = NULL, *grown;

	for_each_page(set, r, page) {
		if (!__atomic_load_n(&d->pages[page].uploaded,
		    __ATOMIC_RELAXED) || d->pages[page].fixed)
			continue;
		if (n > 0 && list[n - 1].first + list[n - 1].nr == page) {
			list[n - 1].nr++;
			continue;
		}
		if (n == max) {
			grown = realloc(list, (max * 2 + 16) * sizeof(*list));
			if (grown == NULL)
				continue;	/* seen without it */
			list = grown;
			max = max * 2 + 16;
		}
		list[n++] = (struct page_range){ page, 1 };
	}
	*out = list;
	return n;
}

/* A name for people; asked for once per function. */
static const char *name_of(struct phase *p, CUfunction f)
{
	CUfunction *seen = &p->named[((uintptr_t)f >> 4) % PHASE_NAMED];
	const char *name = NULL;

	if (*seen == f)
		return NULL;
	*seen = f;
	return real.cuFuncGetName(&name, f) == CUDA_SUCCESS ? name : NULL;
}

static void harvest(struct phase *p) REQUIRES(&p->lock)
{
	uint32_t step;
	double ms;

	while (timing_take(p->timing, &step, &ms))
		observe_time(p->observer, step, ms);
}

/* ---- planning ---- */

/* The profile is complete: measures the link once, and orders a plan. */
static void order_plan(struct phase *p, struct context *c) REQUIRES(&p->lock)
{
	struct plan_order *o;
	uint64_t most;
	CUresult r = CUDA_SUCCESS;

	harvest(p);
	o = order_make(p);
	if (o == NULL)
		return;		/* times are missing: one more iteration */
	most = order_largest(o);
	order_say_phases(o);
	file_close(p->file);
	p->file = NULL;
	p->busy = true;
	lock_release(&p->lock);
	file_describe(o, p->device);
	if (p->gauge.nr == 0 && !context_ready(c))
		r = CUDA_ERROR_NOT_READY;
	else if (p->gauge.nr == 0)
		r = gauge_measure(c, most, &p->gauge);
	/* A small GPU may be full to the last page. */
	if (r == CUDA_ERROR_OUT_OF_MEMORY &&
	    tenancy_reclaim(p->device, p->device->page_size) > 0)
		r = gauge_measure(c, most, &p->gauge);
	lock_acquire(&p->lock);
	p->busy = false;
	if (r != CUDA_SUCCESS || p->gauge.nr == 0) {
		log_once(LOG_WARN, "the link cannot be measured (%s): data is "
			"moved on demand", api_result_name(r));
		order_destroy(o);
		phase_set(p, PHASE_ON_DEMAND);
		return;
	}
	o->gauge = p->gauge;
	o->release_ms = order_release_ms(o);
	/* Measuring may have cost memory. */
	schedule_room(p->device, o->profile.tensors, o->profile.nr_tensors,
		&o->budget, &o->budget_least);
	if (planner_submit(o) != 0) {
		order_destroy(o);
		return;
	}
	p->order = o;
	p->profiled = true;
	phase_set(p, PHASE_PLANNING);
}

static void say_plan(const struct plan_order *o, uint32_t nr_slots)
{
	char streamed[16], pool[16], size[16], host[48] = "";
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < o->nr_host; i++)
		bytes += o->host[i].nr * o->page_bytes;
	if (bytes > 0)
		snprintf(host, sizeof(host), ", %s read in host memory",
			conf_size_text(bytes, size, sizeof(size)));

	stat_set(plan_streamed, o->streamed_bytes);
	stat_set(plan_period_ns, (uint64_t)(o->predicted_ms * 1e6));
	stat_set(plan_bound_ns, (uint64_t)(o->bound_ms * 1e6));
	stat_set(plan_compute_ns, (uint64_t)(o->times.compute_ms * 1e6));
	stat_set(plan_link_ns, (uint64_t)(o->times.link_busy_ms * 1e6));
	log_info("plan %s%s: %u layers, %s streamed in each iteration through "
		"%s%s; %llu us expected, bound %llu us", o->strategy->name,
		o->from_file ? " (plan_in)" : "", o->profile.nr_layers,
		conf_size_text(o->streamed_bytes, streamed,
		sizeof(streamed)), conf_size_text(
		(uint64_t)nr_slots * o->page_bytes, pool,
		sizeof(pool)), host, (unsigned long long)(o->predicted_ms * 1000),
		(unsigned long long)(o->bound_ms * 1000));
}

/*
 * A plan with one visit has no second one for which anything would be unmapped,
 * nor iterations that could be counted: there is nothing to be careful about.
 */
static bool fast_at_once(const struct schedule *sc)
{
	return conf.guard == GUARD_FAST || (conf.guard == GUARD_AUTO &&
		(conf.verify_iters == 0 || sc->visits.nr < 2));
}

/* Bytes that plans may use since the order was made, and could not before. */
static uint64_t room_gained(const struct phase *p, const struct plan_order *o)
{
	uint64_t most, least;

	schedule_room(p->device, o->profile.tensors, o->profile.nr_tensors,
		&most, &least);
	return most > o->budget ? most - o->budget : 0;
}

/* Puts a finished plan into force; the lock is free meanwhile. */
void phase_install(struct phase *p, struct context *c)
{
	struct plan_order *o = p->order;
	uint32_t nr_slots = o->schedule->nr_slots;
	bool fast = fast_at_once(o->schedule);
	bool wanted = false, installed;
	CUresult r;

	o->schedule->compute_ns = (uint64_t)(o->times.compute_ms * 1e6);
	p->busy = true;
	lock_release(&p->lock);
	/* What could not leave host memory after a trial gets another chance. */
	if (!p->mixed && p->device->hosts != NULL)
		in_place_leave(p->device);
	r = schedule_install(p->device, o->schedule, c);
	installed = r == CUDA_SUCCESS;
	/* The device's now, and gone where another thread ends it. */
	if (installed)
		o->schedule = NULL;
	if (installed && fast)
		r = schedule_make_fast(p->device);
	lock_acquire(&p->lock);
	p->busy = false;
	p->order = NULL;
	if (installed && schedule_active(p->device)) {
		say_plan(o, nr_slots);
		trace_plan(p->device->ordinal, o->profile.layers,
			o->profile.nr_layers);
		wanted = trial_wanted(p, o);
		p->iterations = p->on_demand = 0;
		p->bad = p->roomy = 0;
		p->gained = p->freed ? room_gained(p, o) : 0;
		p->idle = UINT64_MAX;
		p->from_file = o->from_file;
		phase_set(p, fast ? PHASE_FAST : PHASE_CAREFUL);
	} else if (installed) {
		phase_watch(p);		/* another thread has ended it */
	} else {
		log_once(LOG_WARN, "a plan could not be put into force: %s",
			api_result_name(r));
		phase_set(p, PHASE_ON_DEMAND);
	}
	if (wanted)
		trial_prepare(p, o);
	else
		order_destroy(o);
}

struct plan_order *phase_order(struct phase *p, bool wait)
{
	struct plan_order *o = planner_take(p->order, 0);

	if (o != NULL || !wait)
		return o;
	/* Other threads go on meanwhile. */
	o = p->order;
	p->busy = true;
	lock_release(&p->lock);
	o = planner_take(o, PLAN_WAIT_NS);
	lock_acquire(&p->lock);
	p->busy = false;
	return o;
}

/* The planner may be done. */
static void order_check(struct phase *p, struct context *c, bool boundary)
	REQUIRES(&p->lock)
{
	struct plan_order *o = phase_order(p, boundary);

	if (o == NULL)
		return;
	if (observe_generation(p->observer) != p->generation) {
		order_destroy(o);
		p->order = NULL;
		phase_set(p, PHASE_DISCOVERY);
	} else if (o->status != PLAN_OK || o->schedule == NULL) {
		if (o->status != PLAN_OK)
			log_once(LOG_WARN, "no plan, data is moved on demand: "
				"%s", o->message);
		phase_set(p, o->profile_only ? PHASE_IDLE : PHASE_ON_DEMAND);
		order_destroy(o);
		p->order = NULL;
	} else {
		phase_install(p, c);
	}
}

/* ---- a plan from a file, before anything was observed ---- */

/* Called for launches that need swapped memory, until it is known. */
static void try_file(struct phase *p, struct context *c) REQUIRES(&p->lock)
{
	struct plan_order *o = NULL;
	enum file_match m = FILE_LATER;

	if (p->busy || !is_here(p, c))
		return;
	p->busy = true;
	lock_release(&p->lock);
	if (!p->file_asked)
		p->file = file_open(p->device);
	p->file_asked = true;
	if (p->file != NULL)
		m = file_match(p->file, p->device, &o);
	lock_acquire(&p->lock);
	p->busy = false;
	if (m == FILE_LATER)
		return;
	file_close(p->file);
	p->file = NULL;
	if (m == FILE_MATCHES && o->schedule != NULL) {
		p->order = o;
		phase_install(p, c);
		if (!schedule_active(p->device))
			phase_watch(p);
	} else {
		order_destroy(o);
	}
}

void phase_needed(struct device *d)
{
	struct phase *p;

	if (!plans() || (p = phase_make(d)) == NULL)
		return;
	lock_acquire(&p->lock);
	if (p->id == PHASE_IDLE) {
		phase_watch(p);
		if (!p->file_asked)
			try_file(p, context_current());
	} else if (p->id == PHASE_IN_PLACE && !p->busy &&
		   is_here(p, context_current())) {
		trial_leave(p);
	} else if ((p->id == PHASE_CAREFUL || p->id == PHASE_FAST) &&
		   !p->busy && !schedule_active(d)) {
		phase_watch(p);		/* its memory has gone, say */
	} else if (p->id == PHASE_ON_DEMAND && !p->busy &&
		   ++p->waited >= p->retry) {
		p->waited = 0;
		p->retry *= 2;
		phase_watch(p);
	}
	lock_release(&p->lock);
}

/* ---- the program's launches ---- */

static void advance(struct phase *p, struct context *c, bool boundary)
	REQUIRES(&p->lock)
{
	enum observe_state state = observe_state(p->observer);
	uint32_t n = observe_iterations(p->observer);

	if (state == OBSERVE_APERIODIC) {
		log_once(LOG_INFO, "the program's launches do not repeat: data "
			"is moved on demand");
		planner_forget(p->order);
		p->order = NULL;
		phase_set(p, PHASE_ON_DEMAND);
		return;
	}
	if (p->id == PHASE_PROFILING &&
	    p->generation != observe_generation(p->observer))
		phase_set(p, PHASE_DISCOVERY);
	if (p->id == PHASE_DISCOVERY && state != OBSERVE_SEARCHING &&
	    n >= conf.discovery_iters) {
		p->generation = observe_generation(p->observer);
		phase_set(p, PHASE_PROFILING);
	}
	/* What follows copies; on a launch of another device it has to wait. */
	if (!is_here(p, c))
		return;
	if (p->id == PHASE_PROFILING && boundary &&
	    n >= conf.discovery_iters + conf.profiling_iters &&
	    state == OBSERVE_PERIODIC)
		order_plan(p, c);
	if (p->id == PHASE_PLANNING && p->order != NULL)
		order_check(p, c, boundary);
}

/* Whether d is watched, or in place: what comes of its launches is seen here. */
static bool is_watched(struct phase *p)
{
	bool is;

	if (p == NULL)
		return false;
	lock_acquire(&p->lock);
	is = watches(p->id) || p->id == PHASE_IN_PLACE;
	lock_release(&p->lock);
	return is;
}

bool phase_launch(struct device *d, CUfunction f, CUstream s,
	const struct page_set *set, bool waits)
{
	struct phase *p = phase_of(d);
	struct context *c;
	struct page_range *weights;
	uint32_t n, step, before;
	bool boundary;

	if (!is_watched(p))
		return false;
	c = context_current();
	n = weights_of(d, set, &weights);
	lock_acquire(&p->lock);
	if (waits && (p->file != NULL || !p->file_asked) && watches(p->id))
		try_file(p, c);
	if (p->id == PHASE_TRIAL || p->id == PHASE_IN_PLACE) {
		if (!p->busy && is_here(p, c))
			trial_launch(p, c, s, waits);
	} else if (watches(p->id) && !p->busy) {
		before = observe_iterations(p->observer);
		step = observe_launch(p->observer, (uint64_t)(uintptr_t)f,
			name_of(p, f), weights, n);
		boundary = observe_iterations(p->observer) != before;
		p->step = step;
		if (p->id == PHASE_PROFILING) {
			harvest(p);
			if (waits || c == NULL)
				timing_pause(p->timing);
			else
				timing_mark(p->timing, c, s, step);
		}
		advance(p, c, boundary);
	}
	lock_release(&p->lock);
	free(weights);
	return true;
}

void phase_wait_ends(struct device *d, CUstream s)
{
	struct phase *p = phase_of(d);
	struct context *c;

	if (p == NULL || !__atomic_load_n(&phase_watching, __ATOMIC_RELAXED))
		return;
	c = context_current();
	lock_acquire(&p->lock);
	if (p->id == PHASE_PROFILING && !p->busy && c != NULL)
		timing_mark(p->timing, c, s, p->step);
	lock_release(&p->lock);
}

/* ---- what else the program does ---- */

void phase_stream_ends(struct device *d, CUstream s)
{
	struct phase *p = phase_of(d);

	if (p == NULL)
		return;
	lock_acquire(&p->lock);
	timing_stream_ends(p->timing, s);
	timing_stream_ends(p->trial.laps, s);
	lock_release(&p->lock);
}

void phase_freed(struct device *d)
{
	struct phase *p = phase_of(d);

	if (p == NULL)
		return;
	lock_acquire(&p->lock);
	/* Of a mixture without its plan no launch may wait, and so ask. */
	if (!p->busy && (p->id == PHASE_IN_PLACE ||
	    (p->mixed && !watches(p->id) && !schedule_active(d))))
		trial_freed(p);
	p->freed = true;
	lock_release(&p->lock);
}
