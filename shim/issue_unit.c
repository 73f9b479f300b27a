/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short way of a launch under a plan: from its pointers to the units that
 * they reach, by a table of the thread's own, and a pin on each.  No lock and
 * no driver call where the stream has been on those units in this turn.
 */
#include <pthread.h>
#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/issue_int.h"
#include "shim/kernarg.h"
#include "shim/log.h"
#include "shim/phase.h"
#include "shim/prefetch.h"
#include "shim/schedule.h"
#include "shim/section.h"
#include "shim/stats.h"
#include "shim/tenancy_int.h"
#include "shim/trace.h"

#define TABLE_SHIFT 9		/* entries: a power of two */

static __thread struct unit_reach *table;
static pthread_key_t table_key;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;
static bool table_has_key;

static void table_free(void *arg)
{
	table = NULL;
	free(arg);
}

static void once(void)
{
	table_has_key = pthread_key_create(&table_key, table_free) == 0;
}

static NOINLINE struct unit_reach *table_make(void)
{
	struct unit_reach *t;

	pthread_once(&table_once, once);
	if (!table_has_key)
		return NULL;
	t = calloc(1u << TABLE_SHIFT, sizeof(*t));
	if (t != NULL && pthread_setspecific(table_key, t) != 0) {
		free(t);
		t = NULL;
	}
	table = t;
	return t;
}

static inline struct unit_reach *entry(uint64_t word)
{
	struct unit_reach *t = table;

	if (unlikely(t == NULL) && (t = table_make()) == NULL)
		return NULL;
	return &t[(word * 0x9e3779b97f4a7c15ull) >> (64 - TABLE_SHIFT)];
}

/*
 * Looks the pointer up the long way.  The generation is read first: what
 * changes meanwhile makes the entry void.
 */
static NOINLINE bool reach_find(struct device *d, struct unit_reach *e,
	uint64_t word)
{
	struct alloc *a = alloc_of_word(d, device_word(d,
		device_page(d, word)));
	uint32_t generation = __atomic_load_n(&d->reach_gen, __ATOMIC_SEQ_CST);
	CUdeviceptr from, to;
	uint32_t first;
	int n;

	e->word = 0;
	if (a == NULL)
		return false;
	alloc_reach(d, a, word, UINT64_MAX, &from, &to);
	first = device_page(d, from);
	lock_acquire(&d->pool_lock);
	n = unit_find(d, first, device_page(d, to - 1) + 1 - first, e->units,
		0, UNIT_REACH);
	lock_release(&d->pool_lock);
	if (n < 0)
		return false;
	e->nr = (uint32_t)n;
	e->generation = generation;
	e->word = word;
	return true;
}

static inline bool add_units(struct issue *i, uint64_t word)
{
	struct device *d = device_find(word);
	struct unit_reach *e;

	if (i->units_of == NULL)
		i->units_of = d;
	e = entry(word);
	if (e == NULL || i->units_of != d)
		return false;
	if (unlikely(e->word != word || e->generation !=
	    __atomic_load_n(&d->reach_gen, __ATOMIC_SEQ_CST)) &&
	    !reach_find(d, e, word))
		return false;
	i->units_gen = e->generation;
	for (uint32_t k = 0; k < e->nr; k++) {
		uint32_t j = 0;

		while (j < i->nr_units && i->units[j] != e->units[k])
			j++;
		if (j < i->nr_units)
			continue;
		if (j == ISSUE_UNITS)
			return false;
		i->units[i->nr_units++] = e->units[k];
	}
	return true;
}

static bool visit(void *arg, uint64_t word)
{
	return alloc_word_settled(word) || add_units(arg, word);
}

static inline bool collect(struct issue *i, const struct kernarg *k,
	void **params, void **extra)
{
	if (unlikely(params == NULL))
		return kernarg_walk(k, NULL, extra, visit, i);
	for (uint32_t j = 0; j < k->nr; j++) {
		const uint8_t *at = params[k->params[j].index];
		uint32_t last = k->params[j].size - 8;

		for (uint32_t off = 0; off <= last; off++) {
			uint64_t word = kernarg_word(at + off);

			if (!alloc_word_settled(word) && !add_units(i, word))
				return false;
		}
	}
	return true;
}

static void unpin(struct issue *i, uint32_t n)
{
	while (n-- > 0)
		unit_unpin(i->units_of, i->units[n]);
}

/* The first launch of this stream in the unit's turn. */
static NOINLINE bool enter(struct issue *i, struct unit *u, CUstream s)
{
	CUresult r = CUDA_SUCCESS;
	struct context *c = context_of_launch(s);
	bool entered;

	context_know(c);
	entered = c != NULL && !context_is_capturing(s) &&
		unit_enter(i->units_of, u, s, c, &r);
	context_know(NULL);
	if (entered)
		i->entered = true;
	else
		i->missed = u;
	return entered;
}

bool issue_units(struct issue *i, const struct kernarg *k, CUstream s,
	void **params, void **extra)
{
	struct device *d;

	i->nr_units = 0;
	i->units_of = NULL;
	i->missed = NULL;
	i->entered = false;
	/* Nobody but the thread itself can record its default stream. */
	if (s == CU_STREAM_PER_THREAD ||
	    (s == CU_STREAM_LEGACY && context_several()))
		return false;
	if (!collect(i, k, params, extra))
		return false;
	/*
	 * Only residents, of allocations that are not all resident: who wants
	 * to move one waits for this section.
	 */
	if (i->nr_units == 0)
		return i->units_of != NULL;
	d = i->units_of;
	for (uint32_t j = 0; j < i->nr_units; j++)
		if (unlikely(!unit_pin(i->units[j], s)) &&
		    !enter(i, i->units[j], s)) {
			unpin(i, j);
			return false;
		}
	if (unlikely(i->units_gen !=
	    __atomic_load_n(&d->reach_gen, __ATOMIC_SEQ_CST))) {
		unpin(i, i->nr_units);
		return false;
	}
	i->set.stream = s;
	i->kind = ISSUE_PLANNED;
	stat_add(launches_planned, 1);
	return true;
}

/* A careful launch is seen through, so that a fault names its kernel. */
static void see_through(struct issue *i)
{
	uint64_t begin = trace_begin();
	CUresult r;

	if (context_has_host_functions())
		return;
	r = real.cuStreamSynchronize(i->set.stream);
	trace_span(TRACE_CHECK, i->units_of->ordinal, TRACE_NO_LAYER, 0, begin);
	if (r != CUDA_SUCCESS)
		log_once(LOG_ERROR, "a launch failed while a new plan was being "
			"checked (guard = careful): %s; its kernel may reach "
			"memory that no parameter names", api_result_name(r));
}

void issue_units_end(struct issue *i)
{
	struct unit *pass = NULL;
	struct device *d = i->units_of;
	bool careful = !schedule_is_fast(d);

	for (uint32_t j = 0; j < i->nr_units; j++)
		if (unit_launched(d, i->units[j], i->set.stream))
			pass = i->units[j];
	section_close();
	if (unlikely(careful))
		see_through(i);
	if (pass != NULL || i->entered) {
		context_know(context_of_launch(i->set.stream));
		if (pass != NULL)
			unit_pass(d, pass);
		else
			prefetch_pump(d);
		context_know(NULL);
	}
	if (i->entered)
		phase_turn(d, i->set.stream, false);
}
