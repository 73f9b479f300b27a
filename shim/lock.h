/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes with a rank.  A thread may take a lock only while it holds none of
 * the same or a later rank; builds with -DLOCK_DEBUG (all sanitizer variants
 * and the tests' build) check that and say so.  No lock of ours is held across
 * a driver call of the program or a wait for the GPU.
 */
#ifndef BALLAST_LOCK_H
#define BALLAST_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"

/* Taken in this order. */
enum lock_rank {
	LOCK_INIT,
	LOCK_PHASE,
	LOCK_PLANNER,
	LOCK_HANDLES,
	LOCK_ALLOC,
	LOCK_POOL,
	LOCK_MOVER,
	LOCK_EVENTS,
	LOCK_ARENA,
	LOCK_STATS,
	NR_LOCK_RANKS,
};

struct CAPABILITY("mutex") lock {
	pthread_mutex_t mutex;
	enum lock_rank rank;
	const char *name;
};

#define LOCK_INITIALIZER(rank_, name_) \
	{ PTHREAD_MUTEX_INITIALIZER, rank_, name_ }

void lock_init(struct lock *l, enum lock_rank rank, const char *name);
void lock_fini(struct lock *l);
void lock_acquire(struct lock *l) ACQUIRES(l);
/* false: another thread holds it. */
bool lock_try(struct lock *l) TRY_ACQUIRES(true, l) WARN_UNUSED;
void lock_release(struct lock *l) RELEASES(l);

/*
 * Waits for c with l released meanwhile.  deadline_ns is CLOCK_MONOTONIC; c
 * must come from cond_init().  false: the deadline passed.
 */
void cond_init(pthread_cond_t *c);
bool lock_wait(struct lock *l, pthread_cond_t *c, uint64_t deadline_ns)
	REQUIRES(l);
uint64_t lock_now_ns(void);

/* How many locks this thread holds; 0 without LOCK_DEBUG. */
int lock_nr_held(void);

#endif
