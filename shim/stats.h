/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics page: counters in a file that other programs may map.  One
 * per process, mode 0600, in $XDG_RUNTIME_DIR or else /dev/shm, named
 * ballast-<pid>.stats; made after cuInit has succeeded, unlinked at exit.
 * Until it exists, and where it cannot be made, counters go to private memory.
 * Any thread; counters are relaxed atomics.
 */
#ifndef BALLAST_STATS_H
#define BALLAST_STATS_H

#include <stdint.h>

#include "shim/compiler.h"

#define STATS_MAGIC 0x31545354534c4142ull	/* "BALSTST1" in memory order */
#define STATS_VERSION 1

struct stats_page {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		/* of this struct */
	uint32_t pid;
	uint32_t nr_counters;
	uint64_t start_ns;	/* CLOCK_REALTIME when the page was made */
	char program[64];	/* NUL-terminated, cut where longer */
#define STAT(name, unit, help) uint64_t name;
#include "shim/stats.def"
#undef STAT
};

struct stats_row {
	const char *name;
	const char *unit;
	const char *help;
};

enum stats_id {
#define STAT(name, unit, help) STATS_ID_##name,
#include "shim/stats.def"
#undef STAT
	NR_STATS,
};

/* What the counter `phase` means, enum phase_id of phase.h; never NULL. */
const char *stats_phase_name(uint64_t phase);

extern const struct stats_row stats_rows[NR_STATS];
extern struct stats_page *stats;	/* never NULL */

/* Makes the file.  0 or -errno; counters keep their values either way. */
int stats_create(void);
/* Unlinks the file; counting goes on in private memory. */
void stats_destroy(void);
/*
 * In a forked child, whose page is the parent's: leaves the file alone, and
 * counting goes on in private memory.
 */
void stats_detach(void);
/* The path that process `pid` would use, or NULL where it does not fit. */
const char *stats_path(int pid, char *buf, size_t size);

#define stat_add(name, n) \
	((void)__atomic_fetch_add(&stats->name, (uint64_t)(n), __ATOMIC_RELAXED))
#define stat_sub(name, n) \
	((void)__atomic_fetch_sub(&stats->name, (uint64_t)(n), __ATOMIC_RELAXED))
#define stat_set(name, v) \
	__atomic_store_n(&stats->name, (uint64_t)(v), __ATOMIC_RELAXED)
#define stat_get(name) __atomic_load_n(&stats->name, __ATOMIC_RELAXED)
#define stat_max(name, v) stats_raise(&stats->name, (uint64_t)(v))
void stats_raise(uint64_t *counter, uint64_t value);

#endif
