/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pool.c and pool_place.c decide and fetch.c carries out: pages on their
 * way into the pool, or to chunks of their own, and the tenants that make way.
 */
#ifndef BALLAST_POOL_INT_H
#define BALLAST_POOL_INT_H

#include "shim/tenancy_int.h"

/* One missing page on its way in. */
struct job {
	uint32_t page;
	uint32_t slot;		/* or SLOT_NONE: a chunk of its own */
	uint32_t chunk;
	uint32_t old;		/* tenant that leaves, or PAGE_NONE */
	bool save;		/* its bytes go to the arena first */
	bool used;		/* the old tenant's marks, for a rollback */
	bool dirty, touched;
	bool keep;		/* the old tenant stays mapped (an alias) */
	bool aliased;		/* the page is mapped to the slot already */
	uint32_t stray;		/* the slot it is an alias of instead, or none */
	bool unmapped;		/* the old tenant has lost its mapping */
	bool strayed;		/* that alias has been unmapped */
	bool mapped;		/* the page got its mapping */
	struct reader *readers;	/* owned; of the old tenant */
	uint32_t nr_readers;
	struct event *before;	/* owned; the slot's former `ready` */
};

struct jobs {
	struct job *at;		/* owned */
	uint32_t nr;
	struct event *fetched;	/* owned; behind all copies */
	bool more;		/* the rest of their unit is to follow */
	bool copying;		/* copies may have overwritten the slots */
};

/* A hole of a reservation, or freed since the set was made. */
static inline bool page_gone(const struct device *d, uint32_t page)
{
	return page_tier(d, page) == TIER_NONE;
}

/* ---- pool_place.c ---- */

/*
 * A unit that has to be closed before the set can have the slots it needs, or
 * NULL.  Of several the one that the program comes to last.
 */
struct unit *unit_in_way(const struct device *d, const struct jobs *jobs)
	REQUIRES(&d->pool_lock);
/*
 * Picks a slot, or a chunk of its own, for each job's page, and makes the slots
 * busy.  Returns how many got none; then no job keeps one.
 */
uint32_t jobs_place(struct device *d, struct jobs *jobs)
	REQUIRES(&d->pool_lock);
/* Slots that will be usable once other threads are done with them. */
uint32_t slots_held(const struct device *d) REQUIRES(&d->pool_lock);

/* ---- pool.c ---- */

/*
 * The slot's tenant, if any, its readers and its `ready` are the job's, for it
 * to leave.  The slot must be busy; its page and marks stay for the caller.
 */
void job_take(struct device *d, struct job *j, struct slot *slot)
	REQUIRES(&d->pool_lock);
/* The old tenant is still mapped: its slot is as it was before job_take(). */
void job_give_back(struct device *d, struct job *j)
	REQUIRES(&d->pool_lock);
/*
 * The old tenant has left; its bytes may still be on the way to the arena, and
 * the slot is ready when they have arrived.
 */
void job_leave_behind(struct device *d, const struct job *j)
	REQUIRES(&d->pool_lock);

/*
 * From here on the pages are this thread's until jobs_finish() or
 * jobs_fail(); the jobs' slots are busy, and pinned for the set.
 */
void jobs_commit(struct device *d, struct page_set *s, struct jobs *jobs)
	REQUIRES(&d->pool_lock);
void jobs_finish(struct device *d, struct page_set *s, struct jobs *jobs)
	REQUIRES(&d->pool_lock);
void jobs_fail(struct device *d, struct jobs *jobs)
	REQUIRES(&d->pool_lock);
void jobs_free(struct jobs *jobs);

/*
 * Carries out what was decided.  Without any lock: the pages belong to this
 * thread.  On failure each job says how far it came.
 */
CUresult jobs_run(struct page_set *s, struct jobs *jobs) WARN_UNUSED;

#endif
