/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planning thread: the only thread of ours.  It computes; it never calls
 * the driver, and has all signals blocked.  One order at a time; those that are
 * done wait for their devices.  Guarded by plan_lock.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/optimal.h"
#include "shim/convert.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/phase_file.h"
#include "shim/schedule.h"

static struct lock plan_lock = LOCK_INITIALIZER(LOCK_PLANNER, "planner");
static pthread_cond_t plan_cond;
static pthread_t plan_thread;
static pid_t plan_pid;		/* process of the thread; 0: none */
static struct plan_order *waiting GUARDED_BY(plan_lock);
static bool stopping GUARDED_BY(plan_lock);

void order_destroy(struct plan_order *o)
{
	if (o == NULL)
		return;
	schedule_destroy(o->schedule);
	plan_arena_destroy(o->arena);
	free(o);
}

/* ---- planning ---- */

static struct memory_stats stats_of(const struct plan_order *o)
{
	return (struct memory_stats){
		.points = o->gauge.points,
		.nr = o->gauge.nr,
	};
}

static struct plan_input input_of(const struct plan_order *o,
	const struct memory_stats *stats)
{
	return (struct plan_input){
		.layers = o->profile.layers,
		.nr_layers = o->profile.nr_layers,
		.memory_stats = stats,
		.max_gpu_mem_bytes = o->budget_used,
	};
}

enum plan_status order_convert(struct plan_order *o)
{
	struct memory_stats stats = stats_of(o);
	struct plan_input in = input_of(o, &stats);
	struct convert c = {
		.result = &o->result,
		.in = &in,
		.tensors = o->profile.tensors,
		.nr_tensors = o->profile.nr_tensors,
		.page_bytes = o->page_bytes,
		.budget = o->budget_used,
	};

	return convert_plan(&c, &o->schedule);
}

enum plan_status order_compute(struct plan_order *o, uint64_t budget)
{
	const struct plan_strategy *s = file_strategy(&o->params, o->message);
	struct memory_stats stats = stats_of(o);
	struct plan_input in;
	enum plan_status status;

	if (s == NULL)
		return PLAN_BAD_PARAM;
	/* What the user gives stands; chunks must be whole pages. */
	if (o->params.chunk_bytes == s->defaults.chunk_bytes ||
	    o->params.chunk_bytes % o->page_bytes != 0)
		o->params.chunk_bytes = o->page_bytes;
	if (o->params.release_ms == s->defaults.release_ms)
		o->params.release_ms = o->release_ms;
	o->strategy = s;
	o->budget_used = budget;
	in = input_of(o, &stats);
	memset(&o->result, 0, sizeof(o->result));
	status = plan_compute(s, &in, &o->params, o->arena, &o->result);
	if (status == PLAN_OK && o->result.over_budget)
		status = PLAN_INFEASIBLE;
	if (status == PLAN_OK)
		status = order_convert(o);
	if (status != PLAN_OK)
		snprintf(o->message, sizeof(o->message), "%s",
			o->result.message[0] != '\0' ? o->result.message :
			plan_status_message(status));
	return status;
}

/*
 * An iteration whose kernels read over the link what does not fit: each layer
 * takes as long as its computing or its bytes, whichever is longer.  What a
 * kernel reads twice it waits for twice; so this is a guess.
 */
static double in_place_ms(const struct plan_order *o)
{
	const struct transfer_time *last;
	double bytes = 0, all = 0, ms = 0, rest, link;

	if (o->gauge.nr == 0)
		return 0;
	last = &o->gauge.points[o->gauge.nr - 1];
	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		all += (double)o->profile.tensors[i].nr *
			(double)o->page_bytes;
	rest = all > (double)o->budget_used ?
		1 - (double)o->budget_used / all : 0;
	for (uint32_t i = 0; i < o->profile.nr_layers; i++) {
		const struct layer_statistics *l = &o->profile.layers[i];

		bytes = 0;
		for (uint32_t k = 0; k < l->nr; k++)
			bytes += (double)l->tensors[k].size_bytes;
		link = rest * bytes * last->ms / (double)last->bytes;
		ms += link > l->duration_ms ? link : l->duration_ms;
	}
	return ms;
}

void order_judge(struct plan_order *o)
{
	struct memory_stats stats = stats_of(o);
	struct plan_input in = input_of(o, &stats);
	struct timeline_options opt = { .wrap = true,
		.release_ms = o->params.release_ms };
	struct bound_model m;
	struct timeline line;
	double pool;

	o->streamed_bytes = plan_offloaded_bytes(&o->result);
	o->in_place_ms = in_place_ms(o);
	if (timeline_link_of(&in, o->arena, &opt.link) != PLAN_OK ||
	    timeline_of_result(&o->result, &in, &opt, o->arena, &line) !=
	    PLAN_OK || plan_timeline(&line, false, o->arena, &o->times) !=
	    PLAN_OK)
		memset(&o->times, 0, sizeof(o->times));
	o->predicted_ms = o->result.period_ms > 0 && !o->from_file ?
		o->result.period_ms : o->times.period_ms;
	if (o->bound_ms == 0)
		o->bound_ms = o->result.bound_ms;
	/* Strategies other than `optimal` give none. */
	if (o->bound_ms == 0 && optimal_bound_model(&in, o->arena, &m) ==
	    PLAN_OK && bound_strong(&m, o->arena, &o->bound_ms, NULL,
	    &pool) != PLAN_OK)
		o->bound_ms = bound_simple(&m);
}

void order_run(struct plan_order *o)
{
	if (o->place_ms > 0) {
		mix_run(o);
		return;
	}
	file_save_profile(o);
	if (o->profile_only)
		return;
	if (!file_take_plan(o)) {
		o->status = order_compute(o, o->budget);
		/* Rather everything through the pool than nothing by a plan. */
		if ((o->status == PLAN_INFEASIBLE || o->budget == 0) &&
		    o->budget_least > o->budget)
			o->status = order_compute(o, o->budget_least);
	}
	if (o->status != PLAN_OK)
		return;
	order_judge(o);
	file_save_plan(o);
}

/* ---- the thread ---- */

static void *run(void *arg)
{
	struct plan_order *o;

	lock_acquire(&plan_lock);
	/* At exit what was ordered is still written, where a file is wanted. */
	while (!stopping || (waiting != NULL && file_wants_profile())) {
		o = waiting;
		if (o == NULL) {
			lock_wait(&plan_lock, &plan_cond, UINT64_MAX);
			continue;
		}
		waiting = NULL;
		lock_release(&plan_lock);
		order_run(o);
		lock_acquire(&plan_lock);
		o->done = true;
		if (o->unwanted)
			order_destroy(o);
		pthread_cond_broadcast(&plan_cond);
	}
	lock_release(&plan_lock);
	return NULL;
}

static int start(void) REQUIRES(&plan_lock)
{
	sigset_t all, before;
	int err;

	if (plan_pid == getpid())
		return 0;
	cond_init(&plan_cond);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&plan_thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err == 0)
		plan_pid = getpid();
	return -err;
}

int planner_submit(struct plan_order *o)
{
	int r;

	lock_acquire(&plan_lock);
	r = stopping || waiting != NULL ? -EBUSY : start();
	if (r == 0) {
		waiting = o;
		pthread_cond_broadcast(&plan_cond);
	}
	lock_release(&plan_lock);
	return r;
}

struct plan_order *planner_take(struct plan_order *o, uint64_t wait_ns)
{
	uint64_t deadline = lock_now_ns() + wait_ns;
	struct plan_order *done = NULL;

	lock_acquire(&plan_lock);
	while (!o->done && !stopping)
		if (wait_ns == 0 ||
		    !lock_wait(&plan_lock, &plan_cond, deadline))
			break;
	if (o->done)
		done = o;
	lock_release(&plan_lock);
	return done;
}

void planner_forget(struct plan_order *o)
{
	if (o == NULL)
		return;
	lock_acquire(&plan_lock);
	/* What a file may still be made of is made. */
	if (o->done)
		order_destroy(o);
	else
		o->unwanted = true;
	lock_release(&plan_lock);
}

void planner_stop(void)
{
	bool join;

	lock_acquire(&plan_lock);
	stopping = true;
	join = plan_pid == getpid();
	if (join)
		pthread_cond_broadcast(&plan_cond);
	lock_release(&plan_lock);
	if (join)
		pthread_join(plan_thread, NULL);
}
