/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When Ballast may act.  It is cold until the program's own cuInit succeeds,
 * then active, or passive for good: switched off, in a forked child, or after
 * something that it cannot follow.  Passive wrappers call the driver at once.
 */
#ifndef BALLAST_INIT_H
#define BALLAST_INIT_H

#include <stdbool.h>

#include "shim/compiler.h"

enum init_state { INIT_COLD, INIT_ACTIVE, INIT_PASSIVE };

extern int init_state_now;	/* enum init_state; use init_active() */
extern __thread int init_depth;

/*
 * True where a wrapper may do more than pass on: Ballast is active and this
 * thread is not inside one of our own driver calls (a driver that is not
 * linked -Bsymbolic calls its own exported symbols, and so us).
 */
static inline bool init_active(void)
{
	return __atomic_load_n(&init_state_now, __ATOMIC_ACQUIRE) ==
		INIT_ACTIVE && init_depth == 0;
}

static inline void init_enter(void) { init_depth++; }
static inline void init_leave(void) { init_depth--; }

/*
 * Called by the cuInit wrapper after every success.  The first call, of any
 * thread, loads the configuration, opens log and statistics, and runs start();
 * others wait for it.  start() returning false, enabled = false or, under
 * strict, a bad configuration leave Ballast passive.
 */
void init_activate(bool (*start)(void));

/* Passive from now on; says why once.  Calls in progress end as they began. */
void init_passive(const char *why);

/*
 * Run at exit (once, newest first): summaries, files.  At most 8.  Not run in
 * a forked child.
 */
void init_at_exit(void (*fn)(void));

#endif
