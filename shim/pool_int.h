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
	bool used;		/* the old tenant's mark, for a rollback */
	bool unmapped;		/* the old tenant has lost its mapping */
	bool mapped;		/* the page got its mapping */
	struct reader *readers;	/* owned; of the old tenant */
	uint32_t nr_readers;
	struct event *before;	/* owned; the slot's former `ready` */
};

struct jobs {
	struct job *at;		/* owned */
	uint32_t nr;
	struct event *fetched;	/* owned; behind all copies */
};

/*
 * Carries out what was decided.  Without any lock: the pages belong to this
 * thread.  On failure each job says how far it came.
 */
CUresult jobs_run(struct page_set *s, struct jobs *jobs) WARN_UNUSED;

#endif
