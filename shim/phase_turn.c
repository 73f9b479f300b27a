/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations under a plan: when it becomes fast, and when another one is worth
 * looking for.  Called by issue on the program's threads.
 */
#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/log.h"
#include "shim/phase_int.h"
#include "shim/schedule.h"
#include "shim/stats.h"
#include "shim/tenancy.h"

static void make_fast(struct phase *p) REQUIRES(&p->lock)
{
	CUresult r;

	p->busy = true;
	lock_release(&p->lock);
	r = schedule_make_fast(p->device);
	lock_acquire(&p->lock);
	p->busy = false;
	if (r != CUDA_SUCCESS)
		log_once(LOG_WARN, "memory cannot stay mapped (%s): the plan "
			"goes on carefully", api_result_name(r));
	phase_set(p, PHASE_FAST);
}

/* What the plan leaves idle, when all that is to stay has been fetched. */
static void room_begin(struct phase *p) REQUIRES(&p->lock)
{
	uint64_t idle = tenancy_idle(p->device);

	idle = idle > p->gained ? idle - p->gained : 0;
	if (idle < p->idle)
		p->idle = idle;
}

/*
 * An iteration is over.  Whether memory that the program has freed is still
 * there, and has been for as long as other reasons for a new plan take.
 */
static bool has_room(struct phase *p) REQUIRES(&p->lock)
{
	uint64_t idle = tenancy_idle(p->device);

	if (idle <= p->idle ||
	    idle - p->idle < stat_get(plan_streamed) / PHASE_ROOM)
		p->roomy = 0;
	else
		p->roomy++;
	p->freed = p->roomy > 0;
	return p->roomy >= p->patience;
}

static void watch_anew(struct phase *p, const char *why) REQUIRES(&p->lock)
{
	bool ended;

	p->busy = true;
	lock_release(&p->lock);
	ended = schedule_try_end(p->device, why);
	lock_acquire(&p->lock);
	p->busy = false;
	if (p->patience < 1024)
		p->patience *= 2;
	p->bad = 0;
	p->on_demand = 0;
	if (ended)
		phase_watch(p);
}

/* The n-th iteration of the plan begins; what it is at may change. */
static void iteration_ends(struct phase *p, CUstream s, uint64_t n)
	REQUIRES(&p->lock)
{
	if (n <= 2 || p->idle == UINT64_MAX)
		room_begin(p);
	if (p->bad >= p->patience)
		watch_anew(p, "the program goes another way");
	/* A plan of a file would be followed by itself. */
	else if (n > 2 && p->freed && !p->from_file && has_room(p))
		watch_anew(p, "memory has been freed: more can stay on the "
			"GPU");
	else if (p->id == PHASE_CAREFUL && conf.guard == GUARD_AUTO &&
		 n >= conf.verify_iters)
		make_fast(p);
	else if (p->id == PHASE_FAST && p->bad == 0 && n > 2)
		trial_turn(p, s);
}

void phase_turn(struct device *d, CUstream s, bool on_demand)
{
	struct phase *p = phase_of(d);
	uint64_t n;

	if (p == NULL)
		return;
	lock_acquire(&p->lock);
	if ((p->id == PHASE_CAREFUL || p->id == PHASE_FAST) && !p->busy) {
		n = schedule_iterations(d);
		p->on_demand += on_demand;
		if (!schedule_active(d)) {
			phase_watch(p);
		} else if (n > p->iterations) {
			/* The first two fetch what is to stay. */
			p->bad = n > 2 && p->on_demand > 0 ? p->bad + 1 : 0;
			p->iterations = n;
			p->on_demand = 0;
			iteration_ends(p, s, n);
		} else if (p->on_demand > 4096ull * p->patience) {
			watch_anew(p, "the program does something else");
		}
	}
	lock_release(&p->lock);
}
