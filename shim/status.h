/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ballast run` learns from the processes it started.  The launcher makes
 * a sealed memory file and names it in BALLAST_STATUS ("pid:fd:nonce"); a
 * process in which Ballast becomes active opens it through /proc/<pid>/fd, so
 * no descriptor is inherited, closing descriptors or exec cannot lose it, and
 * nothing is left behind when the launcher is killed.  Optional throughout:
 * without a launcher every call here does nothing.
 *
 * Callers: init (active, passive), the state modules (managed, failure).  Any
 * thread, no lock: counters are atomics, records are claimed by a counter.
 */
#ifndef BALLAST_STATUS_H
#define BALLAST_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"

#define STATUS_ENV "BALLAST_STATUS"
#define STATUS_MAGIC 0x3154415453534c42ull	/* "BLSSTAT1" in memory order */
#define STATUS_VERSION 2
#define STATUS_PIDS 64
#define STATUS_FAILURES 8
#define STATUS_BUSY UINT32_MAX	/* a record while it is written */

/* One request that could not be met.  Text is NUL-terminated, cut if long. */
struct status_failure {
	uint64_t request;	/* bytes asked for */
	uint64_t gpu_used;	/* managed bytes on the GPU, pool included */
	uint64_t gpu_budget;
	uint64_t arena_used;
	uint64_t arena_capacity;
	char call[40];		/* "cuMemAlloc" */
	char key[24];		/* conf.def key to change: "arena" */
};

/* Shared between processes: fixed widths, layout checked by a unit test. */
struct launch_status {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		/* of this struct */
	uint64_t nonce;		/* as in BALLAST_STATUS */
	uint32_t nr_active;	/* processes in which Ballast became active */
	uint32_t nr_passive;	/* processes in which it gave up */
	uint32_t nr_managed;	/* processes with a managed allocation */
	uint32_t nr_failures;	/* counts on when the records wrap around */
	uint32_t pids[STATUS_PIDS];	/* the first active ones */
	char passive_why[128];	/* of the last one that gave up */
	struct status_record {
		uint32_t seq;	/* its number + 1, 0, or STATUS_BUSY */
		uint32_t pid;
		struct status_failure failure;
	} records[STATUS_FAILURES];
	uint32_t keep_stats;	/* statistics pages stay; the launcher's task */
	uint32_t reserved;
};

/*
 * Maps the launcher's page: 0, -ENOENT without a launcher, or -errno when what
 * BALLAST_STATUS names is not such a page.  The calls below do it themselves.
 */
int status_open(void);
/* Unmaps it; for tests. */
void status_close(void);

/* This process: Ballast is active; counted once. */
void status_set_active(void);
/* Ballast does nothing here (any more); `why` in a few words. */
void status_set_passive(const char *why);
/* Whether the launcher wants to read this process's statistics at its end. */
bool status_keeps_stats(void);
/* A managed allocation was made; cheap after the first time. */
void status_note_managed(void);
/* A request failed that Ballast would have managed; copies *f. */
void status_note_failure(const struct status_failure *f);

#endif
