/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discrete-event simulation, see sim.h.  An engine has a queue in order of
 * ready time (ties: order of submission) and serves the head of it.  All
 * completions of one instant are handled before anything starts at it, so the
 * order depends on nothing but the program's calls.
 */
#include "test/softcuda/sim.h"

#include <stdlib.h>
#include <utlist.h>

#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/trace.h"

#define MAX_DEVICES 8
#define MAX_SERVERS 4

struct engine {
	struct op *queue, *tail;
	struct op *running[MAX_SERVERS];
};

static struct engine engines[MAX_DEVICES][NR_ENGINES];
static struct op *pending;
static uint64_t now_ns;
static uint64_t next_number;
static uint64_t jitter_state;

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
	return kind == ENGINE_COMPUTE ? 1 : (unsigned)knobs.copy_engines;
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
	finish(op);
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
	count_busy(op);
	trace_op(op);
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

/* The server whose operation ends first, or NULL when all are idle. */
static struct op **next_end(void)
{
	struct op **best = NULL, **slot;
	int d, k;
	unsigned s;

	for (d = 0; d < MAX_DEVICES; d++) {
		for (k = 0; k < NR_ENGINES; k++) {
			for (s = 0; s < nr_servers(k); s++) {
				slot = &engines[d][k].running[s];
				if (*slot && (!best
				    || (*slot)->end_ns < (*best)->end_ns
				    || ((*slot)->end_ns == (*best)->end_ns
				    && (*slot)->number < (*best)->number)))
					best = slot;
			}
		}
	}
	return best;
}

/* One instant: everything that ends then.  False when nothing is running. */
static bool step(uint64_t until)
{
	struct op **slot = next_end();
	struct op *op;

	if (!slot || (*slot)->end_ns > until)
		return false;
	now_ns = (*slot)->end_ns;
	while (slot && (*slot)->end_ns == now_ns) {
		op = *slot;
		*slot = NULL;
		finish(op);
		slot = next_end();
	}
	start_ready();
	return true;
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
	start_ready();
}

void sim_spend(uint64_t ns)
{
	uint64_t until = now_ns + ns;

	while (step(until))
		continue;
	now_ns = until;
	start_ready();
}

void sim_wait(struct op *op)
{
	while (op->state != OP_DONE && step(UINT64_MAX))
		continue;
	if (op->state != OP_DONE)
		report_rule("driver", "operation %llu can never complete",
			(unsigned long long)op->number);
}

void sim_wait_context(struct context *ctx)
{
	struct op *op;
	bool found;

	do {
		found = false;
		for (op = pending; op && !found; op = op->pend_next)
			found = !ctx || op->context == ctx;
	} while (found && step(UINT64_MAX));
}
