/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of sections.  Entries are added without a lock and never removed;
 * a dead thread's entry goes to the next new thread.
 */
#include "shim/section.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "shim/lock.h"
#include "shim/log.h"

__thread struct section *section_self;

static struct section *sections;	/* atomic head */
static pthread_key_t section_key;
static pthread_once_t section_once = PTHREAD_ONCE_INIT;
static bool section_has_key;
static bool section_lost;	/* atomic; a thread has no listed record */

static void thread_ends(void *arg)
{
	struct section *s = arg;

	/* A thread may end inside a call, where a driver lets it. */
	if ((s->seq & 1) != 0)
		section_close();
	section_self = NULL;
	__atomic_store_n(&s->taken, false, __ATOMIC_RELEASE);
}

static void once(void)
{
	section_has_key = pthread_key_create(&section_key, thread_ends) == 0;
}

static struct section *reuse(void)
{
	struct section *s = __atomic_load_n(&sections, __ATOMIC_ACQUIRE);

	for (; s != NULL; s = s->next) {
		bool expected = false;

		if (__atomic_compare_exchange_n(&s->taken, &expected, true,
		    false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return s;
	}
	return NULL;
}

struct section *section_register(void)
{
	struct section *s;
	void *p;

	pthread_once(&section_once, once);
	s = reuse();
	if (s == NULL) {
		if (posix_memalign(&p, CACHE_LINE, sizeof(*s)) != 0) {
			/*
			 * An unlisted record would not be waited for.  So
			 * nothing may be waited for successfully any more:
			 * memory then stays where it is.
			 */
			static __thread struct section own;

			log_once(LOG_ERROR, "no memory for a thread's record: "
				"memory stays where it is from now on");
			__atomic_store_n(&section_lost, true,
				__ATOMIC_SEQ_CST);
			section_self = &own;
			return section_self;
		}
		s = p;
		s->seq = 0;
		s->taken = true;
		s->next = __atomic_load_n(&sections, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n(&sections, &s->next, s,
		       true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			;
	}
	if (section_has_key)
		pthread_setspecific(section_key, s);
	section_self = s;
	return s;
}

static void pause_ns(long ns)
{
	struct timespec ts = { 0, ns };

	nanosleep(&ts, NULL);
}

bool section_wait_all(uint64_t deadline_ns)
{
	struct section *s;
	long ns = 1000;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&section_lost, __ATOMIC_SEQ_CST))
		return false;
	s = __atomic_load_n(&sections, __ATOMIC_SEQ_CST);
	for (; s != NULL; s = s->next) {
		uint64_t seq = __atomic_load_n(&s->seq, __ATOMIC_SEQ_CST);

		while ((seq & 1) != 0 && __atomic_load_n(&s->seq,
		       __ATOMIC_ACQUIRE) == seq) {
			if (lock_now_ns() > deadline_ns)
				return false;
			pause_ns(ns);
			if (ns < 500000)
				ns *= 2;
		}
	}
	return true;
}
