/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete-event simulation, see sim.h.  An engine has a queue in order of
 * ready time (ties: order of submission) and serves the head of it.  All
 * completions of one instant are handled before anything starts at it, so the
 * order depends on nothing but the program's calls.
 */
#include "test/softcuda/sim.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#include "test/softcuda/call.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/trace.h"

#define MAX_DEVICES 8
#define MAX_SERVERS 4
/*
 * How long the clock stands still for a host function, in real time.  One that
 * waits for another thread of the program must not stop that thread's calls.
 */
#define PATIENCE_NS 100000000u
#define POLL_NS 100000u

struct engine {
	struct op *queue, *tail;
	struct op *running[MAX_SERVERS];
};

static struct engine engines[MAX_DEVICES][NR_ENGINES];
static struct op *pending;
static uint64_t now_ns;
static uint64_t next_number;
static uint64_t jitter_state;
static struct op *waiters;		/* for a value in memory */
static unsigned nr_late;
static pthread_cond_t outside = PTHREAD_COND_INITIALIZER;

struct op *op_create(const struct op_type *type, size_t size)
{
	struct op *op = object_alloc(size);

	op->type = type;
	op->refs = 1;
	return op;
}

void op_get(struct op *op)
{
	op->refs++;
}

void op_put(struct op *op)
{
	if (!op || --op->refs)
		return;
	if (op->type->release)
		op->type->release(op);
	race_stamp_put(op->stamp);
	race_clock_free(&op->clock);
	free(op->followers);
	free(op);
}

void op_after(struct op *op, struct op *dep)
{
	if (!dep || dep->state == OP_DONE)
		return;
	dep->followers = object_grow(dep->followers, dep->nr_followers,
		&dep->cap_followers, sizeof(*dep->followers));
	op_get(op);
	dep->followers[dep->nr_followers++] = op;
	op->nr_blockers++;
}

uint64_t sim_now(void)
{
	return now_ns;
}

struct op *sim_pending(void)
{
	return pending;
}

static unsigned nr_servers(enum engine_kind kind)
{
	return kind == ENGINE_COMPUTE || kind == ENGINE_HOST ? 1
		: (unsigned)knobs.copy_engines;
}

/* xorshift64*; durations vary evenly within the knob's bounds. */
static uint64_t with_jitter(uint64_t ns)
{
	double unit;

	if (knobs.jitter == 0)
		return ns;
	if (!jitter_state)
		jitter_state = 0x9e3779b97f4a7c15u * ((uint64_t)knobs.seed + 1);
	jitter_state ^= jitter_state >> 12;
	jitter_state ^= jitter_state << 25;
	jitter_state ^= jitter_state >> 27;
	unit = (double)((jitter_state * 0x2545f4914f6cdd1du) >> 11)
		/ (double)(1ull << 53);
	return (uint64_t)((double)ns
		* (1 + (2 * unit - 1) * knobs.jitter / 100));
}

static void enqueue(struct engine *e, struct op *op)
{
	struct op **at = &e->queue;

	/* Ready times only grow: mostly the place is behind the last. */
	if (*at && (e->tail->ready_ns < op->ready_ns
	    || e->tail->number < op->number))
		at = &e->tail->next;
	while (*at && ((*at)->ready_ns < op->ready_ns
	    || (*at)->number < op->number))
		at = &(*at)->next;
	op->next = *at;
	*at = op;
	if (!op->next)
		e->tail = op;
}

static void finish(struct op *op);

/* No blockers are left. */
static void make_ready(struct op *op)
{
	op->state = OP_READY;
	op->ready_ns = now_ns;
	if (op->type->engine != ENGINE_NONE) {
		enqueue(&engines[op->device][op->type->engine], op);
		return;
	}
	op->start_ns = now_ns;
	op->end_ns = now_ns;
	if (op->type->start)
		op->type->start(op);
	if (op->type->may_end && !op->type->may_end(op)) {
		op->state = OP_RUNNING;
		op->next = NULL;
		LL_APPEND(waiters, op);
		return;
	}
	finish(op);
}

/* Values that have come; each may let something write the next one. */
static void poll_waiters(void)
{
	struct op *op, *next;
	bool again;

	do {
		again = false;
		for (op = waiters; op && !again; op = next) {
			next = op->next;
			if (!op->type->may_end(op))
				continue;
			LL_DELETE(waiters, op);
			op->end_ns = now_ns;
			finish(op);
			again = true;
		}
	} while (again);
}

/*
 * Completion of an operation that takes no time can make others complete, in
 * chains as long as a program likes: hence a list and no recursion.
 */
static void finish(struct op *op)
{
	static struct op *work;
	static bool active;
	struct op *f;
	size_t i;

	op->next = NULL;
	LL_APPEND(work, op);
	if (active)
		return;
	active = true;
	while (work) {
		op = work;
		LL_DELETE(work, op);
		if (op->type->finish)
			op->type->finish(op);
		op->state = OP_DONE;
		DL_DELETE2(pending, op, pend_prev, pend_next);
		for (i = 0; i < op->nr_followers; i++) {
			f = op->followers[i];
			if (op->acquired) {
				race_clock_join(&f->clock, &op->clock);
				f->acquired = true;
			}
			if (!--f->nr_blockers && f->state == OP_BLOCKED
			    && f->number)
				make_ready(f);
			op_put(f);
		}
		op->nr_followers = 0;
		stream_op_done(op);
		op_put(op);
	}
	active = false;
}

static void count_busy(struct op *op)
{
	uint64_t ns = op->end_ns - op->start_ns;

	switch (op->type->engine) {
	case ENGINE_H2D:
		stats.h2d_busy_ns += ns;
		break;
	case ENGINE_D2H:
		stats.d2h_busy_ns += ns;
		break;
	case ENGINE_COMPUTE:
		stats.compute_busy_ns += ns;
		break;
	default:
		break;
	}
}

static bool start_one(struct engine *e, unsigned server, enum engine_kind kind)
{
	struct op *op = e->queue;
	uint64_t ns;
	unsigned i, busy = 1;

	if (!op || e->running[server])
		return false;
	e->queue = op->next;
	for (i = 0; i < nr_servers(kind); i++)
		busy += e->running[i] != NULL;
	op->state = OP_RUNNING;
	op->start_ns = now_ns;
	/* Copies that overlap share one link. */
	ns = op->type->start ? op->type->start(op) * busy : 0;
	op->end_ns = now_ns + with_jitter(ns);
	e->running[server] = op;
	link_join(op);
	return true;
}

static void start_ready(void)
{
	int d, k;
	unsigned s;

	for (d = 0; d < MAX_DEVICES; d++)
		for (k = 0; k < NR_ENGINES; k++)
			for (s = 0; engines[d][k].queue && s < nr_servers(k); s++)
				start_one(&engines[d][k], s, k);
}

/*
 * The server whose operation ends first, or NULL when all are idle or wait for
 * something outside whose time was up long ago.
 */
static struct op **next_end(void)
{
	struct op **best = NULL, **slot;
	int d, k;
	unsigned s;

	for (d = 0; d < MAX_DEVICES; d++) {
		for (k = 0; k < NR_ENGINES; k++) {
			for (s = 0; s < nr_servers(k); s++) {
				slot = &engines[d][k].running[s];
				if (*slot && !(*slot)->late && (!best
				    || (*slot)->end_ns < (*best)->end_ns
				    || ((*slot)->end_ns == (*best)->end_ns
				    && (*slot)->number < (*best)->number)))
					best = slot;
			}
		}
	}
	return best;
}

/* Waits for what `op` waits for, not longer than is good for the others. */
static void be_patient(struct op *op)
{
	op_get(op);
	if (!call_wait(&outside, PATIENCE_NS) && op->state == OP_RUNNING
	    && !op->late && !op->type->may_end(op)) {
		op->late = true;
		nr_late++;
	}
	op_put(op);
}

/* One instant: everything that ends then.  False when nothing is running. */
static bool step(uint64_t until)
{
	struct op **slot = next_end();
	struct op *op;

	if (!slot || (*slot)->end_ns > until)
		return false;
	if ((*slot)->type->may_end && !(*slot)->type->may_end(*slot)) {
		be_patient(*slot);
		return true;
	}
	now_ns = (*slot)->end_ns;
	while (slot && (*slot)->end_ns == now_ns && (!(*slot)->type->may_end
	    || (*slot)->type->may_end(*slot))) {
		op = *slot;
		*slot = NULL;
		link_leave(op);
		count_busy(op);
		trace_op(op);
		finish(op);
		slot = next_end();
	}
	poll_waiters();
	start_ready();
	return true;
}

/* False when nothing will ever happen. */
static bool advance(void)
{
	if (step(UINT64_MAX))
		return true;
	if (!nr_late && !waiters)
		return false;
	call_wait(&outside, POLL_NS);
	poll_waiters();
	start_ready();
	return true;
}

void sim_outside_done(struct op *op)
{
	if (op->late) {
		op->late = false;
		nr_late--;
		if (op->end_ns < now_ns)
			op->end_ns = now_ns;
	}
	pthread_cond_broadcast(&outside);
}

void sim_submit(struct op *op)
{
	op->number = ++next_number;
	op->submit_ns = now_ns;
	op->state = OP_BLOCKED;
	op_get(op);
	DL_APPEND2(pending, op, pend_prev, pend_next);
	if (!op->nr_blockers)
		make_ready(op);
	poll_waiters();
	start_ready();
}

void sim_spend(uint64_t ns)
{
	uint64_t until = now_ns + ns;

	poll_waiters();
	start_ready();
	while (step(until))
		continue;
	/* Another thread may have been here meanwhile. */
	if (now_ns < until)
		now_ns = until;
	poll_waiters();
	start_ready();
}

void sim_wait(struct op *op)
{
	while (op->state != OP_DONE && advance())
		continue;
	if (op->state != OP_DONE)
		report_rule("driver", "operation %llu can never complete",
			(unsigned long long)op->number);
}

void sim_wait_context(struct context *ctx)
{
	uint64_t last = next_number;
	struct op *op;
	bool found;

	do {
		found = false;
		for (op = pending; op && !found; op = op->pend_next)
			found = op->number <= last
				&& (!ctx || op->context == ctx);
	} while (found && advance());
}
