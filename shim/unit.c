/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Units under way: entering, passing and closing them, and what their users
 * leave behind as readers of slots.  Called by issue (launches), pool.c and
 * prefetch.c (slots that are to get another tenant).
 */
#include "shim/unit.h"

#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/prefetch.h"
#include "shim/stats.h"
#include "shim/tenancy_int.h"
#include "shim/trace.h"

static void tell(struct device *d, struct unit *u)
{
	if (likely(!__atomic_load_n(&u->wanted, __ATOMIC_SEQ_CST)))
		return;
	lock_acquire(&d->pool_lock);
	__atomic_store_n(&u->wanted, 0, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
}

void unit_unpin(struct device *d, struct unit *u)
{
	if (__atomic_sub_fetch(&u->pins, 1, __ATOMIC_SEQ_CST) == 0)
		tell(d, u);
}

bool unit_launched(struct device *d, struct unit *u, CUstream s)
{
	uint32_t n = __atomic_load_n(&u->nr_users, __ATOMIC_ACQUIRE), count;
	uint32_t expect = __atomic_load_n(&u->expect, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < n; i++)
		if (u->users[i].stream == s)
			__atomic_store_n(&u->users[i].unrecorded, 1,
				__ATOMIC_SEQ_CST);
	count = __atomic_add_fetch(&u->launches, 1, __ATOMIC_RELAXED);
	unit_unpin(d, u);
	return count == expect;
}

/* ---- recording ---- */

/* false: no memory for some entry. */
static bool add_readers(struct device *d, struct unit *u,
	const struct reader *who)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	bool kept = true;

	for (uint32_t i = 0; i < u->nr; i++) {
		struct slot *slot = &t->slots[u->slots[i]];

		if (slot->page == u->pages[i])
			kept &= reader_add(slot, who);
	}
	return kept;
}

static struct event *record_user(const struct unit_user *user,
	struct reader *who)
{
	struct context *now = context_current();
	CUresult r = CUDA_SUCCESS;
	struct event *e = NULL;
	CUcontext popped;

	*who = (struct reader){
		.context = user->context,
		.stream = user->stream,
		.epoch = context_epoch(user->context),
	};
	if (now != user->context)
		r = real.cuCtxPushCurrent_v2(user->context->handle);
	if (r == CUDA_SUCCESS) {
		who->begun = reader_ticket();
		e = event_record(user->context, user->stream, &r);
		who->recorded = reader_ticket();
		if (e == NULL)
			real.cuStreamSynchronize(user->stream);
		if (now != user->context)
			real.cuCtxPopCurrent_v2(&popped);
	}
	who->event = e;
	return e;
}

/* Events for what the unit's users launched since the last ones. */
static void flush(struct device *d, struct unit *u)
	REQUIRES(&d->pool_lock)
{
	uint32_t n = u->nr_users;

	u->busy = true;
	for (uint32_t i = 0; i < n; i++) {
		struct unit_user user = u->users[i];
		struct reader who;

		/* Cleared first: a launch that comes meanwhile sets it. */
		if (!__atomic_exchange_n(&u->users[i].unrecorded, 0,
		    __ATOMIC_SEQ_CST))
			continue;
		lock_release(&d->pool_lock);
		record_user(&user, &who);
		lock_acquire(&d->pool_lock);
		if (who.event != NULL && !add_readers(d, u, &who)) {
			/* See it through; nobody closes it meanwhile. */
			lock_release(&d->pool_lock);
			event_wait(who.event);
			lock_acquire(&d->pool_lock);
		}
		event_put(who.event);
	}
	u->busy = false;
	pthread_cond_broadcast(&d->pool_cond);
}

static void wait_busy(struct device *d, struct unit *u)
	REQUIRES(&d->pool_lock)
{
	u->waiting++;
	while (u->busy)
		lock_wait(&d->pool_lock, &d->pool_cond,
			lock_now_ns() + UNIT_LOOK_NS);
	u->waiting--;
}

bool unit_close(struct device *d, struct unit *u)
{
	wait_busy(d, u);
	__atomic_store_n(&u->open, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&u->wanted, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&u->pins, __ATOMIC_SEQ_CST) != 0) {
		/* Who is on it may have to enter again; that is no harm. */
		return false;
	}
	__atomic_store_n(&u->wanted, 0, __ATOMIC_SEQ_CST);
	flush(d, u);
	/* Somebody may have entered while the lock was free. */
	if (__atomic_load_n(&u->pins, __ATOMIC_SEQ_CST) != 0 ||
	    __atomic_load_n(&u->open, __ATOMIC_SEQ_CST))
		return false;
	__atomic_store_n(&u->nr_users, 0, __ATOMIC_RELEASE);
	return true;
}

void unit_stream_ends(struct device *d, CUstream s)
{
	uint64_t deadline = tenancy_deadline();
	struct schedule *sc;

	if (__atomic_load_n(&d->tenancy->schedule, __ATOMIC_RELAXED) == NULL)
		return;
	lock_acquire(&d->pool_lock);
	sc = d->tenancy->schedule;
	for (uint32_t i = 0; sc != NULL && i < sc->nr_units; i++) {
		struct unit *u = &sc->units[i];
		bool uses = false;

		for (uint32_t k = 0; k < u->nr_users; k++)
			uses |= u->users[k].stream == s;
		/* Its handle may come back as another stream. */
		while (uses && sc == d->tenancy->schedule &&
		       !unit_close(d, u) && lock_now_ns() < deadline)
			lock_wait(&d->pool_lock, &d->pool_cond,
				lock_now_ns() + UNIT_LOOK_NS);
		if (sc != d->tenancy->schedule)
			break;
	}
	lock_release(&d->pool_lock);
}

/* ---- pages ---- */

void unit_page_here(struct device *d, uint32_t page, uint32_t slot)
{
	struct page *p = &d->pages[page];
	struct unit *u;

	if (p->unit == PAGE_NONE || p->place != slot)
		return;
	u = &d->tenancy->schedule->units[p->unit];
	u->nr_here++;
	u->changes++;
}

void unit_page_gone(struct device *d, uint32_t page, uint32_t slot)
{
	struct page *p = &d->pages[page];
	struct unit *u;

	if (p->unit == PAGE_NONE || p->place != slot)
		return;
	u = &d->tenancy->schedule->units[p->unit];
	u->nr_here--;
	u->changes++;
	event_put(u->ready);
	u->ready = NULL;
}

int unit_find(struct device *d, uint32_t first, uint32_t nr,
	struct unit **out, int n, int most)
{
	struct schedule *sc = d->tenancy->schedule;
	uint32_t last = PAGE_NONE;

	for (uint32_t page = first; page < first + nr; page++) {
		uint64_t word = device_word(d, page);
		struct unit *u;
		int i;

		if ((word & PAGE_TIER_MASK) == TIER_NONE)
			continue;
		if ((word & PAGE_TIER_MASK) != TIER_STREAMED) {
			if (word & PAGE_LEAVING)
				return -1;
			continue;
		}
		if (sc == NULL || d->pages[page].unit == PAGE_NONE)
			return -1;
		if (d->pages[page].unit == last)
			continue;
		last = d->pages[page].unit;
		u = &sc->units[last];
		for (i = 0; i < n && out[i] != u; i++)
			;
		if (i < n)
			continue;
		if (n == most)
			return -1;
		out[n++] = u;
	}
	return n;
}

/*
 * Whether the unit is of the plan in force.  Who has neither pin nor section may
 * ask with one that is freed: then another plan's can begin anywhere in it.
 */
static bool current_plan(const struct device *d, const struct unit *u)
	REQUIRES(&d->pool_lock)
{
	const struct schedule *sc = d->tenancy->schedule;

	return sc != NULL && !sc->ending && u >= sc->units &&
		u < sc->units + sc->nr_units &&
		((uintptr_t)u - (uintptr_t)sc->units) % sizeof(*u) == 0;
}

/* ---- where the program is ---- */

/* A turn begins: what was expected is right if it was so twice. */
static void turn_begins(struct schedule *sc, struct unit *u)
{
	uint32_t n = __atomic_exchange_n(&u->launches, 0, __ATOMIC_RELAXED);

	__atomic_store_n(&u->expect, visits_turn(&sc->visits, u->index, n),
		__ATOMIC_RELAXED);
}

static void iteration_begins(struct schedule *sc)
{
	uint64_t median = period_begins(&sc->period, lock_now_ns());

	if (median == 0)
		return;
	stat_set(period_ns, median);
	if (sc->compute_ns > 0 && sc->period.last_ns > sc->compute_ns)
		stat_add(stall_ns, sc->period.last_ns - sc->compute_ns);
}

/*
 * The units of a visit that was left are closed, but for those that are used
 * now or have been closed as done.  Drops and retakes pool_lock.
 */
static void leave(struct device *d, struct schedule *sc, uint32_t visit)
	REQUIRES(&d->pool_lock)
{
	const struct visit *at = &sc->visits.at[visit];

	for (uint32_t i = 0; i < at->nr && d->tenancy->schedule == sc; i++) {
		uint32_t unit = sc->visits.uses[at->first + i].unit;

		if (!sc->visits.units[unit].done &&
		    visits_distance(&sc->visits, unit) > 0)
			unit_close(d, &sc->units[unit]);
	}
}

/*
 * The program has come to u.  Drops and retakes pool_lock; what keeps the
 * schedule alive is the caller's pin on u, or its open section.
 */
static void arrive(struct device *d, struct unit *u)
	REQUIRES(&d->pool_lock)
{
	struct schedule *sc = d->tenancy->schedule;
	struct visits *v = &sc->visits;
	uint32_t old = v->here;
	enum visit_move move = visits_arrive(v, u->index);

	if (!visits_entered(v, u->index))
		turn_begins(sc, u);
	if (move == VISIT_ROUND)
		iteration_begins(sc);
	/* The one in which the plan came into force counts, too. */
	if (move == VISIT_ROUND && old != VISIT_NONE) {
		sc->iterations++;
		stat_add(iterations, 1);
	}
	if (old != VISIT_NONE && old != v->here)
		leave(d, sc, old);
}

/* Events that a stream has to wait for before it uses the unit. */
static struct event **unit_events(struct device *d, struct unit *u, uint32_t *n)
	REQUIRES(&d->pool_lock)
{
	struct event **list = malloc((u->nr + 1) * sizeof(*list));
	struct event *last = NULL;

	*n = 0;
	if (list == NULL)
		return NULL;
	if (u->ready != NULL) {
		list[(*n)++] = event_get(u->ready);
		return list;
	}
	for (uint32_t i = 0; i < u->nr; i++) {
		struct event *e = d->tenancy->slots[u->slots[i]].ready;

		if (e == NULL || e == last)
			continue;
		last = e;
		list[(*n)++] = event_get(e);
	}
	return list;
}

static void mark_used(struct device *d, struct unit *u)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < u->nr; i++)
		d->tenancy->slots[u->slots[i]].touched = true;
}

static bool user_add(struct device *d, struct unit *u, CUstream s,
	struct context *c)
	REQUIRES(&d->pool_lock)
{
	uint32_t n = u->nr_users;

	for (uint32_t i = 0; i < n; i++)
		if (u->users[i].stream == s)
			return true;
	if (n == UNIT_USERS)
		return false;
	u->users[n] = (struct unit_user){ .stream = s, .context = c };
	__atomic_store_n(&u->nr_users, n + 1, __ATOMIC_RELEASE);
	return true;
}

bool unit_enter(struct device *d, struct unit *u, CUstream s,
	struct context *c, CUresult *r)
{
	struct event **events;
	uint32_t n = 0;
	bool ok;

	*r = CUDA_SUCCESS;
	lock_acquire(&d->pool_lock);
	if (current_plan(d, u))
		wait_busy(d, u);
	if (!current_plan(d, u) || u->nr_here < u->nr ||
	    u->nr_users == UNIT_USERS) {
		lock_release(&d->pool_lock);
		return false;
	}
	/* From here on nobody closes it. */
	__atomic_fetch_add(&u->pins, 1, __ATOMIC_SEQ_CST);
	trace_mark(TRACE_LAYER, d->ordinal, u->layer);
	stat_add(prefetch_hits, 1);
	arrive(d, u);
	events = unit_events(d, u, &n);
	mark_used(d, u);
	lock_release(&d->pool_lock);
	if (events == NULL)
		*r = CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < n; i++) {
		if (*r == CUDA_SUCCESS)
			*r = event_order(events[i], s);
		event_put(events[i]);
	}
	free(events);
	lock_acquire(&d->pool_lock);
	ok = *r == CUDA_SUCCESS && user_add(d, u, s, c);
	if (ok)
		__atomic_store_n(&u->open, 1, __ATOMIC_SEQ_CST);
	lock_release(&d->pool_lock);
	if (!ok)
		unit_unpin(d, u);
	return ok;
}

bool unit_missed(struct device *d, struct unit *u)
{
	bool in_order = false;

	lock_acquire(&d->pool_lock);
	if (current_plan(d, u)) {
		in_order = visits_in_order(&d->tenancy->schedule->visits,
			u->index);
		trace_mark(TRACE_MISSED, d->ordinal, u->layer);
		stat_add(prefetch_missed, 1);
		stat_add(prefetch_late, u->nr_here > 0);
		arrive(d, u);
	}
	lock_release(&d->pool_lock);
	return in_order;
}

void unit_missed_launched(struct device *d, struct unit *u)
{
	bool last = false;

	lock_acquire(&d->pool_lock);
	if (current_plan(d, u))
		last = __atomic_add_fetch(&u->launches, 1, __ATOMIC_RELAXED) ==
			__atomic_load_n(&u->expect, __ATOMIC_RELAXED);
	lock_release(&d->pool_lock);
	if (last)
		unit_pass(d, u);
}

void unit_pass(struct device *d, struct unit *u)
{
	lock_acquire(&d->pool_lock);
	if (current_plan(d, u) &&
	    visits_done(&d->tenancy->schedule->visits, u->index)) {
		trace_mark(TRACE_PASSED, d->ordinal, u->layer);
		unit_close(d, u);
	}
	lock_release(&d->pool_lock);
	prefetch_pump(d);
}
