/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What pool.c decides and fetch.c carries out: pages on their way into the
 * pool, or to chunks of their own, and the tenants that make way for them.
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
	bool copying;		/* copies may have overwritten the slots */
};

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
