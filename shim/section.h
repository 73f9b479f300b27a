/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issue sections: the stretch of a program's call between looking at page
 * words and the return of the driver's function.  A launch that touches only
 * resident memory opens one and takes no lock.  Who wants to take memory away
 * marks the page words first, then waits until every section that was open has
 * closed: after that, whoever looks sees the mark.
 */
#ifndef BALLAST_SECTION_H
#define BALLAST_SECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"

struct section {
	uint64_t seq;		/* odd while open; atomic */
	bool taken;		/* belongs to a living thread; atomic */
	struct section *next;	/* fixed once listed */
} __attribute__((aligned(CACHE_LINE)));

extern __thread struct section *section_self;

/* This thread's section; never NULL.  Without memory: one shared by many. */
struct section *section_register(void);

/* Not nested.  What is read after it is read after it. */
static inline void section_open(void)
{
#if !defined(MUTANT) || MUTANT != 2
	struct section *s = section_self;

	if (unlikely(s == NULL))
		s = section_register();
	__atomic_store_n(&s->seq, s->seq + 1, __ATOMIC_SEQ_CST);
#endif
}

static inline void section_close(void)
{
#if !defined(MUTANT) || MUTANT != 2
	struct section *s = section_self;

	__atomic_store_n(&s->seq, s->seq + 1, __ATOMIC_RELEASE);
#endif
}

/*
 * Waits until every section open now has closed.  The caller's own must be
 * closed, and no lock held.  false: the deadline (lock_now_ns) passed.
 */
bool section_wait_all(uint64_t deadline_ns);

#endif
