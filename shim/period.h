/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long iterations take, as the program's threads see them.  Pure; the
 * caller's lock guards it (pool_lock, for a schedule's).
 */
#ifndef BALLAST_PERIOD_H
#define BALLAST_PERIOD_H

#include <stdint.h>

#define PERIOD_KEPT 16

/* Begins as zeroes. */
struct period {
	uint64_t begun_ns;		/* of the iteration under way; 0: none */
	uint64_t last_ns;		/* how long the last one took */
	uint64_t ns[PERIOD_KEPT];	/* the last ones, as a ring */
	uint32_t nr;			/* ever */
};

/* An iteration begins.  The median of those that are kept; 0: none yet. */
uint64_t period_begins(struct period *p, uint64_t now_ns);

#endif
