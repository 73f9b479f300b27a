/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time.  One clock for the host and all devices; operations wait for
 * other operations, then for an engine of their device, take the time their
 * cost model says, and have their effect.  The simulation runs only inside
 * driver calls, which makes a single-threaded program exactly repeatable.
 * While it waits for something outside, sim_spend and sim_wait drop the lock:
 * what a caller looked up before must be looked up again.
 * Knows nothing of memory, streams or kernels.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_SIM_H
#define SOFTCUDA_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/softcuda/link.h"
#include "test/softcuda/race.h"

enum engine_kind {
	ENGINE_H2D,
	ENGINE_D2H,
	ENGINE_COMPUTE,
	ENGINE_HOST,			/* host functions, one at a time */
	NR_ENGINES,
	ENGINE_NONE = NR_ENGINES,	/* takes no time */
};

enum op_state {
	OP_BLOCKED,
	OP_READY,
	OP_RUNNING,
	OP_DONE,
};

struct op;
struct stream;
struct context;

struct op_type {
	const char *name;
	enum engine_kind engine;
	/* Begins now; returns its duration.  May be NULL. */
	uint64_t (*start)(struct op *op);
	/* Ends now.  May be NULL. */
	void (*finish)(struct op *op);
	/* Frees what the subtype owns.  May be NULL. */
	void (*release)(struct op *op);
	/*
	 * Something outside the simulation has let it end: a host function
	 * has returned, a value has come.  NULL: nothing is waited for.
	 */
	bool (*may_end)(struct op *op);
};

/* Embedded first in the operations of memcpy.c and launch.c. */
struct op {
	const struct op_type *type;
	unsigned refs;
	enum op_state state;
	int device;
	struct stream *stream;		/* counted while not done */
	struct context *context;	/* never freed */
	uint64_t number;		/* in order of submission */
	uint64_t stream_id;
	uint64_t submit_ns, ready_ns, start_ns, end_ns;
	bool late;			/* its time is up, but see may_end */
	bool acquired;			/* `clock` grew after submission */
	unsigned nr_blockers;
	struct op **followers;		/* counted */
	size_t nr_followers, cap_followers;
	struct op *next;		/* in an engine's queue or the work list */
	struct op *pend_prev, *pend_next;
	struct link_use link;
	struct race_clock clock;
	uint32_t actor, tick;
	struct race_stamp *stamp;	/* counted; NULL before first use */
};

/* A new operation with one reference, the caller's; size >= sizeof(op). */
struct op *op_create(const struct op_type *type, size_t size);
void op_get(struct op *op);
void op_put(struct op *op);

/* `op` must not start before `dep`, which may be NULL or done. */
void op_after(struct op *op, struct op *dep);

uint64_t sim_now(void);
/* Hands `op` over; the simulation keeps its own reference until it is done. */
void sim_submit(struct op *op);
/* Lets the host spend time; what ends meanwhile has its effect. */
void sim_spend(uint64_t ns);
/* Runs until `op` is done; the clock goes on to then. */
void sim_wait(struct op *op);
/* All of a context's operations up to now; NULL means everything. */
void sim_wait_context(struct context *ctx);

/* The operations not yet done, oldest first: op->pend_next until NULL. */
struct op *sim_pending(void);

/* What `op` waits for has come; anyone who waits looks again. */
void sim_outside_done(struct op *op);

/* Told by sim.c when an operation is done (stream.c defines it). */
void stream_op_done(struct op *op);

#endif
