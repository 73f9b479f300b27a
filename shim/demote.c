/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way out of residency: resident pages go to the arena, so that their
 * chunks can serve as pool slots or go back to the driver.  Rare: at the first
 * spill, when one launch needs a larger pool, when the program's own
 * allocations need room.  Pages of the host tier go the same way.
 */
#include <errno.h>
#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/host.h"
#include "shim/log.h"
#include "shim/mover.h"
#include "shim/schedule.h"
#include "shim/section.h"
#include "shim/stats.h"
#include "shim/tenancy_int.h"

/* Pages on their way out, by falling age. */
struct victims {
	uint32_t *pages;	/* owned */
	uint32_t nr;
	uint32_t nr_gone;	/* unmapped, from the first on */
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void mark(struct device *d, uint32_t page, bool leaving)
	REQUIRES(&d->pool_lock)
{
	uint64_t word = device_word(d, page);
	struct alloc *a = alloc_of_word(d, word);

	if (leaving) {
		alloc_unsettle(d, a, 1);
		page_word_set(d, page, word | PAGE_LEAVING);
	} else {
		page_word_set(d, page, word & ~(uint64_t)PAGE_LEAVING);
		alloc_settle(d, a, 1);
	}
}

/*
 * Chooses the newest residents (the oldest were there first and are the
 * program's main loop more likely), reserves their arena ranges, marks them.
 */
static void victims_choose(struct device *d, uint32_t want,
	const struct page_set *keep, struct victims *v)
	REQUIRES(&d->pool_lock)
{
	uint32_t page = d->tenancy->newest;

	while (v->nr < want && page != PAGE_NONE) {
		struct page *p = &d->pages[page];
		uint32_t older = p->older;

		if (!p->fixed && !page_set_has(keep, page)) {
			p->arena = arena_alloc(p->len);
			if (p->arena == ARENA_NONE)
				break;
			mark(d, page, true);
			v->pages[v->nr++] = page;
		}
		page = older;
	}
	/* Neighbours then move and unmap as one. */
	qsort(v->pages, v->nr, sizeof(*v->pages), by_number);
}

static CUresult victims_save(struct device *d, struct context *c,
	const struct victims *v, struct event **saved)
{
	struct move *moves = malloc(v->nr * sizeof(*moves));
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	*saved = NULL;
	if (moves == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < v->nr; i++) {
		const struct page *p = &d->pages[v->pages[i]];

		/*
		 * A page is "defined" only where a slow path saw it written;
		 * launches on resident memory leave no trace.  So all go.
		 */
		moves[n++] = (struct move){
			.device = device_address(d, v->pages[i]),
			.arena = p->arena,
			.size = p->len,
		};
	}
	r = mover_save(c, moves, n, saved);
	free(moves);
	if (r == CUDA_SUCCESS) {
		r = event_wait(*saved);
		/* The pages stay, and are in use again at once. */
		if (r != CUDA_SUCCESS)
			mover_drain(c, c->side);
	}
	return r;
}

static CUresult victims_unmap(struct device *d, struct victims *v)
{
	uint32_t i = 0, n;
	CUresult r = CUDA_SUCCESS;

	while (i < v->nr && r == CUDA_SUCCESS) {
		for (n = 1; i + n < v->nr &&
		     v->pages[i + n] == v->pages[i] + n; n++)
			;
		r = device_unmap(d, device_address(d, v->pages[i]), n);
		i += n;
		if (r == CUDA_SUCCESS)
			v->nr_gone = i;
	}
	return r;
}

/*
 * Of these pages all that are there and may leave, which those do not that
 * another thread holds (tenancy_part.c).
 */
static void victims_name(struct device *d, const uint32_t *pages, uint32_t n,
	enum page_tier tier, struct victims *v)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < n; i++) {
		struct page *p = &d->pages[pages[i]];

		if (page_tier(d, pages[i]) != tier || p->fixed ||
		    (device_word(d, pages[i]) & PAGE_LEAVING) != 0)
			continue;
		p->arena = arena_alloc(p->len);
		if (p->arena == ARENA_NONE)
			break;
		mark(d, pages[i], true);
		v->pages[v->nr++] = pages[i];
	}
	qsort(v->pages, v->nr, sizeof(*v->pages), by_number);
}

/* All steps that wait; no lock is held. */
static CUresult victims_move(struct device *d, struct victims *v,
	struct event **saved)
{
	struct context *c = context_current();
	CUresult r;

	*saved = NULL;
	if (c == NULL || !context_ready(c))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!section_wait_all(tenancy_deadline())) {
		log_warn("a call of the program did not return in time: "
			"memory stays where it is");
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	}
	r = context_quiesce(d);
	if (r == CUDA_SUCCESS)
		r = victims_save(d, c, v, saved);
	if (r == CUDA_SUCCESS)
		r = victims_unmap(d, v);
	return r;
}

static void victim_left(struct device *d, uint32_t page, struct event *saved)
	REQUIRES(&d->pool_lock)
{
	struct page *p = &d->pages[page];
	struct alloc *a = alloc_of_word(d, device_word(d, page));

	if (p->host)
		host_give(d, p->chunk);
	else
		resident_remove(d, page);
	p->host = false;
	p->chunk = CHUNK_NONE;
	p->slot = SLOT_NONE;
	p->state = PAGE_ABSENT;
	p->defined = true;
	p->launched = true;	/* perhaps; then uploads take the safe way */
	event_put(p->saved);
	p->saved = event_get(saved);
	page_word_set(d, page, page_word(a, TIER_STREAMED));
	d->tenancy->nr_streamed++;
	stat_add(streamed_bytes, d->page_size);
	stat_add(demotions, 1);
}

static void victims_stay(struct device *d, const struct victims *v)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = v->nr_gone; i < v->nr; i++) {
		struct page *p = &d->pages[v->pages[i]];

		mark(d, v->pages[i], false);
		arena_free(p->arena, p->len);
		p->arena = ARENA_NONE;
	}
}

/*
 * One thread at a time.  false: another one did not end in time, or no page may
 * leave.
 */
static bool demote_begin(struct device *d, uint32_t want, struct victims *v)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;

	while (t->demoting)
		if (!lock_wait(&d->pool_lock, &d->pool_cond,
		    tenancy_deadline()))
			return false;
	v->pages = malloc(want * sizeof(*v->pages));
	if (t->frozen || v->pages == NULL) {
		free(v->pages);
		return false;
	}
	t->demoting = true;
	lock_release(&d->pool_lock);
	arena_reserve((uint64_t)want << d->page_shift);
	lock_acquire(&d->pool_lock);
	return true;
}

/* Moves the victims and ends; how many have gone. */
static uint32_t demote_run(struct device *d, struct victims *v,
	uint32_t *chunks)
	REQUIRES(&d->pool_lock)
{
	struct event *saved;
	CUresult r;

	if (v->nr > 0) {
		for (uint32_t i = 0; i < v->nr; i++)
			chunks[i] = d->pages[v->pages[i]].chunk;
		device_reach_changed(d);
		lock_release(&d->pool_lock);
		r = victims_move(d, v, &saved);
		lock_acquire(&d->pool_lock);
		for (uint32_t i = 0; i < v->nr_gone; i++)
			victim_left(d, v->pages[i], saved);
		victims_stay(d, v);
		if (r != CUDA_SUCCESS)
			log_err("moving %u chunks to the arena failed: %s",
				v->nr - v->nr_gone, api_result_name(r));
		event_put(saved);
	}
	d->tenancy->demoting = false;
	pthread_cond_broadcast(&d->pool_cond);
	free(v->pages);
	return v->nr_gone;
}

uint32_t demote(struct device *d, uint32_t want, const struct page_set *keep,
	uint32_t *chunks)
{
	struct victims v = { 0 };

	if (!demote_begin(d, want, &v))
		return 0;
	victims_choose(d, want, keep, &v);
	return demote_run(d, &v, chunks);
}

uint32_t demote_pages(struct device *d, const uint32_t *pages, uint32_t n,
	enum page_tier tier, uint32_t *was)
{
	struct victims v = { 0 };

	if (!demote_begin(d, n, &v))
		return 0;
	victims_name(d, pages, n, tier, &v);
	return demote_run(d, &v, was);
}

/* ---- giving back ---- */

/* Slots at the pool's end without a tenant, where no page needs a pool. */
static uint32_t slots_spare(const struct device *d)
{
	const struct tenancy *t = d->tenancy;
	uint32_t n = t->nr_slots;

	if (t->nr_streamed + t->backing > 0 || t->growing || t->demoting)
		return 0;
	while (n > 0 && t->slots[n - 1].page == PAGE_NONE &&
	       !t->slots[n - 1].busy && t->slots[n - 1].pins == 0)
		n--;
	return t->nr_slots - n;
}

uint32_t tenancy_idle_locked(const struct device *d)
{
	return chunk_nr_idle(d) + slots_spare(d);
}

/* Makes idle chunks of such slots.  Drops and retakes pool_lock. */
static void pool_dissolve(struct device *d)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint32_t n = slots_spare(d);
	CUresult r;

	if (n == 0)
		return;
	/* Who needs a pool from now on waits until the addresses are free. */
	t->growing = true;
	t->nr_slots -= n;
	t->hand = 0;
	lock_release(&d->pool_lock);
	r = device_unmap(d, slot_address(d, t->nr_slots), n);
	lock_acquire(&d->pool_lock);
	if (r != CUDA_SUCCESS) {
		t->nr_slots += n;
	} else {
		for (uint32_t i = 0; i < n; i++) {
			struct slot *slot = &t->slots[t->nr_slots + i];

			slot_clear(slot);
			free(slot->readers);
			slot->readers = NULL;
			slot->max_readers = 0;
			chunk_recycle(d, slot->chunk);
		}
		stat_sub(pool_bytes, (uint64_t)n << d->page_shift);
	}
	t->growing = false;
	pthread_cond_broadcast(&d->pool_cond);
}

/*
 * Where no resident is left the pool gives up `want` slots, but not what one
 * call needs; c copies, if any does.  A plan whose slots they are ends.  Drops
 * and retakes pool_lock.
 */
static void pool_shrink(struct device *d, struct context *c, uint32_t want)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint32_t least = t->floor < 2 ? 2 : t->floor;
	bool ended = true;
	CUresult r;

	/* A cache is all there is, and its pages need no pool. */
	if (t->layout->order == ORDER_LRU)
		least = 0;
	if (c == NULL || t->nr_slots <= least)
		return;
	if (t->schedule != NULL) {
		lock_release(&d->pool_lock);
		ended = schedule_try_end(d, "the program needs memory itself");
		lock_acquire(&d->pool_lock);
	}
	if (!ended || t->demoting || t->growing || t->nr_slots <= least)
		return;
	if (want > t->nr_slots - least)
		want = t->nr_slots - least;
	r = pool_empty(d, c, t->nr_slots - want);
	if (r != CUDA_SUCCESS)
		log_dbg("the pool cannot shrink: %s", api_result_name(r));
}

uint64_t tenancy_reclaim(struct device *d, uint64_t bytes)
{
	uint32_t want = (uint32_t)((bytes + d->page_size - 1) >>
		d->page_shift);
	uint32_t *chunks = malloc(want * sizeof(*chunks));
	uint32_t got, given, most, floor = alloc_largest(d);
	struct context *c = context_current();

	if (chunks == NULL)
		return 0;
	/* It asks the driver, so before the lock is taken. */
	if (c != NULL && !context_ready(c))
		c = NULL;
	lock_acquire(&d->pool_lock);
	/*
	 * What one call of the program needs at once must stay possible.  An
	 * allocation larger than the GPU is never needed at once.
	 */
	if (floor > d->budget_most >> d->page_shift || floor <
	    d->tenancy->floor)
		floor = d->tenancy->floor;
	most = chunk_nr_live(d) > floor ? chunk_nr_live(d) - floor : 0;
	if (d->tenancy->nr_resident + d->tenancy->nr_streamed == 0)
		most = chunk_nr_live(d);
	if (want > most)
		want = most;
	if (chunk_nr_idle(d) < want)
		pool_dissolve(d);
	if (chunk_nr_idle(d) < want) {
		got = demote(d, want - chunk_nr_idle(d), NULL, chunks);
		for (uint32_t i = 0; i < got; i++)
			chunk_recycle(d, chunks[i]);
	}
	if (chunk_nr_idle(d) < want)
		pool_shrink(d, c, want - chunk_nr_idle(d));
	given = chunk_surrender(d, want);
	lock_release(&d->pool_lock);
	free(chunks);
	return (uint64_t)given << d->page_shift;
}
