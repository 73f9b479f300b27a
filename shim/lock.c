/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranked mutexes and monotonic waits; see lock.h.  With LOCK_DEBUG every
 * thread keeps a list of the locks it holds, and taking one out of order is
 * reported as an error line.  The lock is taken all the same: a wrong order is
 * a bug to be found by tests, not a reason to break the program.
 */
#include "shim/lock.h"

#include <errno.h>
#include <time.h>

#include "shim/log.h"

#ifdef LOCK_DEBUG

#define MAX_HELD 16

static __thread const struct lock *held[MAX_HELD];
static __thread int nr_held;

static void check_acquire(const struct lock *l)
{
	int i;

	for (i = 0; i < nr_held && i < MAX_HELD; i++)
		if (held[i]->rank >= l->rank)
			log_err("lock order: %s (rank %d) wanted while %s "
				"(rank %d) is held", l->name, (int)l->rank,
				held[i]->name, (int)held[i]->rank);
}

static void note_acquire(const struct lock *l)
{
	if (nr_held < MAX_HELD)
		held[nr_held] = l;
	nr_held++;
}

static void note_release(const struct lock *l)
{
	int i;

	for (i = nr_held - 1; i >= 0; i--) {
		if (i >= MAX_HELD || held[i] != l)
			continue;
		for (; i + 1 < nr_held && i + 1 < MAX_HELD; i++)
			held[i] = held[i + 1];
		nr_held--;
		return;
	}
	log_err("lock order: %s is released but not held", l->name);
}

int lock_nr_held(void)
{
	return nr_held;
}

#else

static inline void check_acquire(const struct lock *l) { }
static inline void note_acquire(const struct lock *l) { }
static inline void note_release(const struct lock *l) { }

int lock_nr_held(void)
{
	return 0;
}

#endif

void lock_init(struct lock *l, enum lock_rank rank, const char *name)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->rank = rank;
	l->name = name;
}

void lock_fini(struct lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

void lock_acquire(struct lock *l) NO_THREAD_SAFETY
{
	check_acquire(l);
	pthread_mutex_lock(&l->mutex);
	note_acquire(l);
}

bool lock_try(struct lock *l) NO_THREAD_SAFETY
{
	check_acquire(l);
	if (pthread_mutex_trylock(&l->mutex) != 0)
		return false;
	note_acquire(l);
	return true;
}

void lock_release(struct lock *l) NO_THREAD_SAFETY
{
	note_release(l);
	pthread_mutex_unlock(&l->mutex);
}

void cond_init(pthread_cond_t *c)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(c, &attr);
	pthread_condattr_destroy(&attr);
}

bool lock_wait(struct lock *l, pthread_cond_t *c, uint64_t deadline_ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / 1000000000),
		.tv_nsec = (long)(deadline_ns % 1000000000),
	};

	return pthread_cond_timedwait(c, &l->mutex, &ts) != ETIMEDOUT;
}

uint64_t lock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}
