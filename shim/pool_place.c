/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which slot a missing page gets.  The layout may name one; otherwise the ring
 * or the longest unused has it.  The pages of the set at hand carry the newest
 * stamp: their slots are not for the taking.  Called by pool.c under pool_lock,
 * which is kept; nothing here moves a byte.
 */
#include "shim/chunk.h"
#include "shim/context.h"
#include "shim/mover.h"
#include "shim/pool_int.h"

static bool slot_usable(const struct device *d, uint32_t i)
{
	const struct tenancy *t = d->tenancy;
	const struct slot *slot = &t->slots[i];

	if (slot->busy || slot->pins > 0)
		return false;
	return slot->page == PAGE_NONE ||
		(d->pages[slot->page].stamp != t->stamp &&
		 slot_open_unit(d, slot) == NULL);
}

struct unit *unit_in_way(const struct device *d, const struct jobs *jobs)
{
	const struct tenancy *t = d->tenancy;
	struct unit *u, *far = NULL;
	uint32_t free = 0, any = 0;

	if (t->schedule == NULL)
		return NULL;
	for (uint32_t i = 0; i < jobs->nr; i++) {
		uint32_t want = t->layout->slot_of(d, jobs->at[i].page);

		if (want == SLOT_ANY || want >= t->nr_slots) {
			any++;
			continue;
		}
		u = slot_open_unit(d, &t->slots[want]);
		if (u != NULL && d->pages[t->slots[want].page].stamp !=
		    t->stamp)
			return u;
	}
	for (uint32_t i = 0; i < t->nr_slots && free < any; i++) {
		if (slot_usable(d, i)) {
			free++;
			continue;
		}
		u = slot_open_unit(d, &t->slots[i]);
		if (u != NULL && d->pages[t->slots[i].page].stamp != t->stamp &&
		    t->slots[i].pins == 0 && (far == NULL ||
		    schedule_distance(t->schedule, u) >
		    schedule_distance(t->schedule, far)))
			far = u;
	}
	return free < any ? far : NULL;
}

/* With host functions about, a reader may never finish without us. */
static bool slot_waits(const struct slot *slot)
{
	if (!context_has_host_functions())
		return false;
	for (uint32_t i = 0; i < slot->nr_readers; i++)
		if (!event_query(slot->readers[i].event))
			return true;
	return false;
}

/* An empty slot, or that of the page which sets have not named for longest. */
static uint32_t lru_next(const struct device *d)
{
	const struct tenancy *t = d->tenancy;
	uint32_t best[2] = { SLOT_NONE, SLOT_NONE }, most[2] = { 0, 0 };

	for (uint32_t i = 0; i < t->nr_slots; i++) {
		uint32_t page = t->slots[i].page, age = UINT32_MAX;
		bool waits;

		if (!slot_usable(d, i))
			continue;
		if (page != PAGE_NONE)
			age = t->stamp - d->pages[page].stamp;
		waits = slot_waits(&t->slots[i]);
		if (age > most[waits]) {
			most[waits] = age;
			best[waits] = i;
		}
	}
	return best[false] != SLOT_NONE ? best[false] : best[true];
}

/*
 * The next slot of the ring.  A tenant that was hit since the hand last came
 * by is passed over once: what every layer uses stays, what a cycle uses once
 * goes in order.
 */
static uint32_t ring_next(struct device *d)
{
	struct tenancy *t = d->tenancy;
	bool second = t->layout->order == ORDER_SECOND_CHANCE;

	if (t->layout->order == ORDER_LRU)
		return lru_next(d);
	for (uint32_t k = 0; k < 2 * t->nr_slots; k++) {
		uint32_t i = t->hand;

		t->hand = (i + 1) % t->nr_slots;
		if (!slot_usable(d, i))
			continue;
		if (k < t->nr_slots && slot_waits(&t->slots[i]))
			continue;
		if (second && t->slots[i].used && k < t->nr_slots) {
			t->slots[i].used = false;
			continue;
		}
		return i;
	}
	return SLOT_NONE;
}

static bool job_place(struct device *d, struct job *j)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint32_t want;

	j->slot = SLOT_NONE;
	j->chunk = CHUNK_NONE;
	j->old = PAGE_NONE;
	if (t->nr_slots >= pool_target(d) && !t->demoting &&
	    t->layout->stays(d, j->page) && chunk_nr_available(d) > 0 &&
	    chunk_take(d, 1, &j->chunk) == 1)
		return true;
	want = t->layout->slot_of(d, j->page);
	if (want == SLOT_ANY)
		want = ring_next(d);
	else if (want >= t->nr_slots || !slot_usable(d, want))
		want = ring_next(d);	/* another page of the set has it */
	if (want == SLOT_NONE)
		return false;
	j->slot = want;
	j->chunk = t->slots[want].chunk;
	t->slots[want].busy = true;
	return true;
}

uint32_t jobs_place(struct device *d, struct jobs *jobs)
{
	uint32_t i, lack;

	for (i = 0; i < jobs->nr; i++)
		if (!job_place(d, &jobs->at[i]))
			break;
	lack = jobs->nr - i;
	while (lack > 0 && i-- > 0) {
		struct job *j = &jobs->at[i];

		if (j->slot == SLOT_NONE)
			chunk_recycle(d, j->chunk);
		else
			d->tenancy->slots[j->slot].busy = false;
	}
	return lack;
}

uint32_t slots_held(const struct device *d)
{
	const struct tenancy *t = d->tenancy;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->nr_slots; i++)
		if (t->slots[i].busy || (t->slots[i].pins > 0 &&
		    (t->slots[i].page == PAGE_NONE ||
		     d->pages[t->slots[i].page].stamp != t->stamp)))
			n++;
	return n;
}
