/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pump.  One thread at a time, piece by piece: looks under pool_lock
 * whether a piece's slots can be had without waiting, takes them, issues the
 * copies without a lock.  Everything is in the tables of tenancy; the pump
 * itself remembers nothing.
 */
#include "shim/prefetch.h"

#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/pool_int.h"
#include "shim/stats.h"
#include "shim/trace.h"

enum way {
	WAY_CLEAR,	/* the slots can be taken */
	WAY_AGAIN,	/* the lock was free meanwhile: look again */
	WAY_NOT_NOW,	/* something must happen first */
};

/* Whether all that used the slot has finished, as the host sees it. */
static bool slot_quiet(struct slot *slot)
{
	for (uint32_t i = 0; i < slot->nr_readers; i++)
		if (!event_query(slot->readers[i].event))
			return false;
	return slot->ready == NULL || event_query(slot->ready);
}

static enum way slot_way(struct device *d, struct schedule *sc, struct unit *u,
	uint32_t i)
	REQUIRES(&d->pool_lock)
{
	struct slot *slot = &d->tenancy->slots[i];
	struct unit *other;
	struct page *p;

	if (slot->busy || slot->pins > 0)
		return WAY_NOT_NOW;
	if (slot->page == PAGE_NONE)
		return WAY_CLEAR;
	p = &d->pages[slot->page];
	other = p->unit == PAGE_NONE ? NULL : &sc->units[p->unit];
	if (other != NULL && other != u && p->place == i &&
	    schedule_distance(sc, other) <= schedule_distance(sc, u))
		return WAY_NOT_NOW;
	if (slot_open_unit(d, slot) != NULL)
		return unit_close(d, other) ? WAY_AGAIN : WAY_NOT_NOW;
	/* Who loses the mapping must be done with it; we do not wait. */
	if (p->alias != i && !slot_quiet(slot))
		return WAY_NOT_NOW;
	return WAY_CLEAR;
}

/* Whether a page of the piece has to be fetched. */
static bool lacks(const struct device *d, uint32_t page)
{
	return page_tier(d, page) == TIER_STREAMED &&
		d->pages[page].state == PAGE_ABSENT;
}

static enum way piece_way(struct device *d, struct schedule *sc,
	const struct unit_piece *piece)
	REQUIRES(&d->pool_lock)
{
	struct unit *u = &sc->units[piece->unit];

	for (uint32_t i = piece->first; i < piece->first + piece->nr; i++) {
		enum way w;

		if (d->pages[u->pages[i]].state == PAGE_MOVING)
			return WAY_NOT_NOW;
		if (!lacks(d, u->pages[i]))
			continue;
		w = slot_way(d, sc, u, u->slots[i]);
		if (w != WAY_CLEAR)
			return w;
	}
	return WAY_CLEAR;
}

static const struct unit_piece *piece_lacking(const struct device *d,
	const struct schedule *sc, const struct unit *u)
{
	for (uint32_t j = 0; j < u->nr_pieces; j++) {
		const struct unit_piece *p = &sc->pieces[u->first_piece + j];

		for (uint32_t i = p->first; i < p->first + p->nr; i++)
			if (lacks(d, u->pages[i]))
				return p;
	}
	return NULL;
}

/* The next piece with an absent page, from where the program is. */
static const struct unit_piece *next_piece(const struct device *d,
	struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	const struct visits *v = &sc->visits;
	uint32_t from = visits_from(v);

	for (uint32_t k = 0; k < v->nr; k++) {
		const struct visit *at = &v->at[(from + k) % v->nr];

		for (uint32_t i = 0; i < at->nr; i++) {
			const struct unit *u =
				&sc->units[v->uses[at->first + i].unit];
			const struct unit_piece *p = NULL;

			if (u->nr_here < u->nr)
				p = piece_lacking(d, sc, u);
			if (p != NULL)
				return p;
		}
	}
	return NULL;
}

static bool jobs_make(struct device *d, struct schedule *sc,
	const struct unit_piece *piece, struct jobs *jobs)
	REQUIRES(&d->pool_lock)
{
	const struct unit *u = &sc->units[piece->unit];

	jobs->nr = 0;
	jobs->at = calloc(piece->nr, sizeof(*jobs->at));
	if (jobs->at == NULL)
		return false;
	for (uint32_t i = piece->first; i < piece->first + piece->nr; i++) {
		struct slot *slot = &d->tenancy->slots[u->slots[i]];

		if (!lacks(d, u->pages[i]))
			continue;
		slot->busy = true;
		jobs->at[jobs->nr++] = (struct job){
			.page = u->pages[i],
			.slot = u->slots[i],
			.chunk = slot->chunk,
			.old = PAGE_NONE,
		};
	}
	return true;
}

/*
 * A whole unit has one event that stands for all its copies.  Those of its
 * pieces that have not been recorded need not be any more.
 */
static void unit_whole(struct device *d, struct schedule *sc, struct unit *u,
	struct event *fetched)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < u->nr; i++) {
		const struct event *e = d->tenancy->slots[u->slots[i]].ready;

		if (e != NULL && e->context != sc->context)
			return;	/* another stream's */
	}
	for (uint32_t i = 0; i < u->nr; i++) {
		struct slot *slot = &d->tenancy->slots[u->slots[i]];

		if (slot->ready == NULL || !event_is_later(slot->ready))
			continue;
		event_put(slot->ready);
		slot->ready = event_get(fetched);
	}
	event_put(u->ready);
	u->ready = event_get(fetched);
}

/* pool_lock is free while copies are issued.  false: it failed. */
static bool piece_run(struct device *d, struct schedule *sc,
	const struct unit_piece *piece)
	REQUIRES(&d->pool_lock)
{
	struct unit *u = &sc->units[piece->unit];
	struct jobs jobs = { 0 };
	struct page_set s;
	uint32_t changes;
	uint64_t begin;
	CUresult r;

	if (!jobs_make(d, sc, piece, &jobs))
		return false;
	page_set_init(&s, d, NULL);
	s.context = s.caller = sc->context;
	s.pins = malloc((jobs.nr + 1) * sizeof(*s.pins));
	if (s.pins == NULL) {
		for (uint32_t i = 0; i < jobs.nr; i++)
			d->tenancy->slots[jobs.at[i].slot].busy = false;
		jobs_free(&jobs);
		return false;
	}
	jobs.more = u->nr_here + jobs.nr < u->nr;
	jobs_commit(d, &s, &jobs);
	changes = u->changes;
	lock_release(&d->pool_lock);
	begin = trace_begin();
	r = jobs_run(&s, &jobs);
	trace_span(TRACE_COPY, d->ordinal, u->layer,
		(uint64_t)jobs.nr << d->page_shift, begin);
	lock_acquire(&d->pool_lock);
	if (r != CUDA_SUCCESS) {
		jobs_fail(d, &jobs);
	} else {
		jobs_finish(d, &s, &jobs);
		stat_add(prefetches, 1);
		/* What another thread brought meanwhile may come after it. */
		if (u->nr_here == u->nr && u->changes == changes + jobs.nr)
			unit_whole(d, sc, u, jobs.fetched);
	}
	unpin_all(d, &s);
	free(s.pins);
	jobs_free(&jobs);
	return r == CUDA_SUCCESS;
}

static void pump(struct device *d, struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	const struct unit_piece *piece;
	bool ready = false;

	while ((piece = next_piece(d, sc)) != NULL) {
		enum way w = piece_way(d, sc, piece);

		if (w == WAY_AGAIN)
			continue;
		if (w == WAY_NOT_NOW)
			break;
		if (!ready) {
			lock_release(&d->pool_lock);
			ready = context_current() == sc->context;
			lock_acquire(&d->pool_lock);
			if (!ready)
				break;	/* another thread's call will do */
			continue;
		}
		if (!piece_run(d, sc, piece))
			break;
	}
}

/* One thread at a time; the others leave it a word. */
static void pump_alone(struct device *d)
	REQUIRES(&d->pool_lock)
{
	struct schedule *sc = d->tenancy->schedule;

	if (sc != NULL && sc->pumping) {
		sc->again = true;
	} else if (sc != NULL && !sc->held) {
		sc->pumping = true;
		do {
			sc->again = false;
			pump(d, sc);
		} while (sc->again && !sc->held);
		sc->pumping = false;
		pthread_cond_broadcast(&d->pool_cond);
	}
}

void prefetch_pump(struct device *d)
{
	if (__atomic_load_n(&d->tenancy->schedule, __ATOMIC_RELAXED) == NULL)
		return;
	lock_acquire(&d->pool_lock);
	pump_alone(d);
	lock_release(&d->pool_lock);
}

void prefetch_try(struct device *d)
{
	if (__atomic_load_n(&d->tenancy->schedule, __ATOMIC_RELAXED) == NULL ||
	    !lock_try(&d->pool_lock))
		return;
	pump_alone(d);
	lock_release(&d->pool_lock);
}
