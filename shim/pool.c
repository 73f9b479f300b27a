/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: slots through which streamed pages pass, acquire and release.
 *
 * An acquire runs in three parts.  Under pool_lock it decides: waits for pages
 * that others move, pins what is present, picks slots for what is missing, all
 * or nothing.  Without a lock fetch.c carries the decision out: waits for
 * readers, maps, copies.  Under the lock again it makes the result known.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/conf.h"
#include "shim/log.h"
#include "shim/mover.h"
#include "shim/section.h"
#include "shim/stats.h"
#include "shim/status.h"
#include "shim/pool_int.h"

/* ---- deciding ---- */

static bool in_hands(const struct device *d, uint32_t page)
{
	return d->pages[page].state == PAGE_MOVING ||
		(device_word(d, page) & PAGE_LEAVING) != 0;
}

/* Marks the set's pages; false when another thread is moving one of them. */
static bool set_stamp(struct device *d, struct page_set *s,
	uint32_t *nr_missing)
	REQUIRES(&d->pool_lock)
{
	uint32_t stamp = ++d->tenancy->stamp;
	bool quiet = true;

	*nr_missing = 0;
	for_each_page(s, r, page) {
		if (page_gone(d, page))
			continue;
		d->pages[page].stamp = stamp;
		if (in_hands(d, page))
			quiet = false;
		else if (d->pages[page].state == PAGE_ABSENT &&
			 page_tier(d, page) == TIER_STREAMED)
			++*nr_missing;
	}
	return quiet;
}

static void pin(struct device *d, struct page_set *s, uint32_t slot)
	REQUIRES(&d->pool_lock)
{
#if !defined(MUTANT) || MUTANT != 1
	d->tenancy->slots[slot].pins++;
	s->pins[s->nr_pins++] = slot;
#endif
}

/* Exactly what was pinned: pages may have found other slots since. */
void unpin_all(struct device *d, struct page_set *s)
{
	for (uint32_t i = 0; i < s->nr_pins; i++)
		d->tenancy->slots[s->pins[i]].pins--;
	s->nr_pins = 0;
	pthread_cond_broadcast(&d->pool_cond);
}

void job_take(struct device *d, struct job *j, struct slot *slot)
{
	j->old = slot->page;
	j->save = slot_must_save(d, slot);
	j->dirty = slot->dirty;
	j->touched = slot->touched;
	j->used = slot->used;
	j->readers = slot->readers;
	j->nr_readers = slot->nr_readers;
	j->before = slot->ready;
	slot->readers = NULL;
	slot->nr_readers = slot->max_readers = 0;
	slot->ready = NULL;
	if (j->old != PAGE_NONE)
		d->pages[j->old].state = PAGE_MOVING;
}

/* From here on the pages are this thread's until jobs_finish(). */
void jobs_commit(struct device *d, struct page_set *s, struct jobs *jobs)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;

	for (uint32_t i = 0; i < jobs->nr; i++) {
		struct job *j = &jobs->at[i];
		struct slot *slot;

		d->pages[j->page].state = PAGE_MOVING;
		j->stray = d->pages[j->page].alias == j->slot ? PAGE_NONE :
			d->pages[j->page].alias;
		if (j->slot == SLOT_NONE)
			continue;
		slot = &t->slots[j->slot];
		pin(d, s, j->slot);
		job_take(d, j, slot);
		j->keep = j->old != PAGE_NONE &&
			d->pages[j->old].alias == j->slot &&
			t->schedule != NULL && !t->schedule->unaliasing;
		j->aliased = d->pages[j->page].alias == j->slot;
		if (j->old != PAGE_NONE)
			unit_page_gone(d, j->old, j->slot);
		slot->page = j->page;
		slot->dirty = slot->touched = slot->used = false;
		d->pages[j->page].slot = j->slot;
	}
}

/* ---- making it known ---- */

static void old_leaves(struct device *d, const struct job *j)
	REQUIRES(&d->pool_lock)
{
	struct page *old = &d->pages[j->old];

	old->state = PAGE_ABSENT;
	old->slot = SLOT_NONE;
	if (!j->keep)
		old->alias = PAGE_NONE;
	stat_add(evictions, 1);
}

void page_settles(struct device *d, uint32_t page, enum page_tier tier,
	uint32_t where)
{
	struct page *p = &d->pages[page];
	struct alloc *a = alloc_of_word(d, device_word(d, page));

	p->chunk = where;
	p->host = tier == TIER_HOST;
	p->slot = SLOT_NONE;
	p->state = PAGE_PRESENT;
	arena_free(p->arena, p->len);
	p->arena = ARENA_NONE;
	event_put(p->saved);
	p->saved = NULL;
	page_word_set(d, page, page_word(a, tier));
	alloc_settle(d, a, 1);
	d->tenancy->nr_streamed--;
	stat_sub(streamed_bytes, d->page_size);
	if (tier == TIER_RESIDENT)
		resident_add(d, page);
}

void jobs_finish(struct device *d, struct page_set *s, struct jobs *jobs)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < jobs->nr; i++) {
		struct job *j = &jobs->at[i];

		d->pages[j->page].state = PAGE_PRESENT;
		if (j->stray != PAGE_NONE)
			d->pages[j->page].alias = PAGE_NONE;
		if (j->slot == SLOT_NONE) {
			page_settles(d, j->page, TIER_RESIDENT, j->chunk);
			continue;
		}
		unit_page_here(d, j->page, j->slot);
		if (schedule_keeps(d, j->page, j->slot))
			d->pages[j->page].alias = j->slot;
		if (j->old != PAGE_NONE)
			old_leaves(d, j);
		d->tenancy->slots[j->slot].busy = false;
		d->tenancy->slots[j->slot].ready = event_get(jobs->fetched);
	}
	pthread_cond_broadcast(&d->pool_cond);
}

void job_give_back(struct device *d, struct job *j)
{
	struct slot *slot = &d->tenancy->slots[j->slot];

	d->pages[j->old].state = PAGE_PRESENT;
	unit_page_here(d, j->old, j->slot);
	slot->page = j->old;
	slot->dirty = j->dirty;
	slot->touched = j->touched;
	slot->used = j->used;
	slot->readers = j->readers;
	slot->nr_readers = slot->max_readers = j->nr_readers;
	slot->ready = j->before;
	j->readers = NULL;
	j->nr_readers = 0;
	j->before = NULL;
}

void job_leave_behind(struct device *d, const struct job *j)
{
	struct event *saved = d->pages[j->old].saved;

	old_leaves(d, j);
	if (saved != NULL)
		d->tenancy->slots[j->slot].ready = event_get(saved);
}

/*
 * A step failed.  The incoming pages are absent, their bytes untouched in the
 * arena.  An old tenant that was not unmapped yet stays; one that was has its
 * bytes on the way to the arena, and the slot waits for that.
 */
void jobs_fail(struct device *d, struct jobs *jobs)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < jobs->nr; i++) {
		struct job *j = &jobs->at[i];
		struct slot *slot;

		if (j->mapped)
			device_unmap(d, device_address(d, j->page), 1);
		if (j->stray != PAGE_NONE && j->strayed)
			d->pages[j->page].alias = PAGE_NONE;
		d->pages[j->page].state = PAGE_ABSENT;
		d->pages[j->page].slot = SLOT_NONE;
		if (j->slot == SLOT_NONE) {
			chunk_recycle(d, j->chunk);
			continue;
		}
		slot = &d->tenancy->slots[j->slot];
		slot->page = PAGE_NONE;
		if (j->old != PAGE_NONE && !j->unmapped &&
		    !(j->keep && jobs->copying)) {
			job_give_back(d, j);
		} else if (j->old != PAGE_NONE) {
			job_leave_behind(d, j);
		}
		slot->busy = false;
	}
	pthread_cond_broadcast(&d->pool_cond);
}

void jobs_free(struct jobs *jobs)
{
	for (uint32_t i = 0; i < jobs->nr; i++) {
		struct job *j = &jobs->at[i];

		for (uint32_t k = 0; k < j->nr_readers; k++)
			event_put(j->readers[k].event);
		free(j->readers);
		event_put(j->before);
	}
	event_put(jobs->fetched);
	free(jobs->at);
	memset(jobs, 0, sizeof(*jobs));
}

/* ---- acquire ---- */

/* Fills in the missing pages; the marks of set_stamp() are fresh. */
static bool jobs_collect(struct device *d, struct page_set *s,
	struct jobs *jobs, uint32_t n)
	REQUIRES(&d->pool_lock)
{
	jobs->nr = 0;
	jobs->at = n == 0 ? NULL : calloc(n, sizeof(*jobs->at));
	if (n > 0 && jobs->at == NULL)
		return false;
	for_each_page(s, r, page)
		if (d->pages[page].state == PAGE_ABSENT &&
		    page_tier(d, page) == TIER_STREAMED)
			jobs->at[jobs->nr++].page = page;
	return true;
}

static void complain(struct page_set *s, uint32_t lack)
{
	struct device *d = s->device;
	uint64_t need = page_set_pages(s) << d->page_shift;
	bool arena = need <= d->budget;
	struct status_failure f = {
		.request = need,
		.gpu_used = stat_get(gpu_bytes),
		.gpu_budget = d->budget,
		.arena_used = arena_live(),
		.arena_capacity = arena_capacity(),
	};
	char text[4][16];

	snprintf(f.call, sizeof(f.call), "%s", s->launch ? "cuLaunchKernel" :
		"a copy");
	snprintf(f.key, sizeof(f.key), "%s", arena ? "arena" : "gpu_budget");
	status_note_failure(&f);
	if (need <= d->tenancy->complained)
		return;
	d->tenancy->complained = need;
	conf_size_text(need, text[0], sizeof(text[0]));
	conf_size_text(d->budget, text[1], sizeof(text[1]));
	conf_size_text(arena_live(), text[2], sizeof(text[2]));
	conf_size_text(arena_capacity(), text[3], sizeof(text[3]));
	if (arena)
		log_err("one %s needs %s on the GPU at once; %u chunks for it "
			"cannot be freed, since %s of the arena of %s (arena) "
			"are in use", s->launch ? "launch" : "copy", text[0],
			lack, text[2], text[3]);
	else
		log_err("one %s needs %s on the GPU at once; the budget is %s "
			"(gpu_budget)", s->launch ? "launch" : "copy",
			text[0], text[1]);
}

/*
 * Finds a place for every missing page; pool_lock may be dropped and retaken
 * on the way.
 */
static CUresult find_places(struct device *d, struct page_set *s,
	struct jobs *jobs, uint64_t *ticket)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint64_t deadline = tenancy_deadline(), patience = turn_patience();
	uint32_t missing, lack, held;
	struct unit *way;
	bool late = false;

	for (;;) {
		if (!set_stamp(d, s, &missing)) {
			if (late)
				return CUDA_ERROR_LAUNCH_TIMEOUT;
			late = !lock_wait(&d->pool_lock, &d->pool_cond,
				deadline);
			continue;
		}
		if (missing > 0 && turn_yield(d, *ticket, patience))
			continue;
		if (!jobs_collect(d, s, jobs, missing))
			return CUDA_ERROR_OUT_OF_MEMORY;
		way = unit_in_way(d, jobs);
		if (way != NULL) {
			jobs_free(jobs);
			/* The lock was free meanwhile: from the start. */
			if (!unit_close(d, way))
				lock_wait(&d->pool_lock, &d->pool_cond,
					lock_now_ns() + UNIT_LOOK_NS);
			if (lock_now_ns() > deadline)
				return CUDA_ERROR_LAUNCH_TIMEOUT;
			continue;
		}
		lack = jobs_place(d, jobs);
		if (lack == 0)
			return CUDA_SUCCESS;
		jobs_free(jobs);
		/* Others give slots back; if they take too long, add some. */
		held = late ? 0 : slots_held(d);
		if (held >= lack) {
			turn_first(d, ticket);
			late = !lock_wait(&d->pool_lock, &d->pool_cond,
				deadline);
		} else if (pool_grow(d, t->nr_slots + lack - held, s) == 0) {
			if (!late && hands_wait(d, deadline))
				continue;
			complain(s, lack);
			return late ? CUDA_ERROR_LAUNCH_TIMEOUT :
				CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
}

/*
 * Decides.  On success every page of the set is present, this thread's
 * (jobs) or pinned.  pool_lock may be dropped and retaken on the way.
 */
static CUresult decide(struct device *d, struct page_set *s, struct jobs *jobs)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint64_t ticket = 0;
	CUresult result = find_places(d, s, jobs, &ticket);

	turn_end(d, ticket);
	if (result != CUDA_SUCCESS)
		return result;
	if (!s->cut && page_set_pages(s) > t->floor)
		t->floor = (uint32_t)page_set_pages(s);
	for_each_page(s, r, page) {
		struct page *p = &d->pages[page];

		if (!page_gone(d, page) && p->state == PAGE_PRESENT &&
		    p->slot != SLOT_NONE) {
			pin(d, s, p->slot);
			t->slots[p->slot].used = true;
		}
	}
	jobs_commit(d, s, jobs);
	return CUDA_SUCCESS;
}

/*
 * With everything there: marks what the call may write, and lists the events
 * its stream must wait for.  false: a resident page is leaving; start over.
 */
static bool settle(struct device *d, struct page_set *s,
	struct event **events, uint32_t *n)
	REQUIRES(&d->pool_lock)
{
	struct event *last = NULL;

	/* Whoever was resident may have left, or be leaving. */
	for_each_page(s, r, page)
		if (!page_gone(d, page) &&
		    (d->pages[page].state != PAGE_PRESENT || in_hands(d, page)))
			return false;
	*n = 0;
	for_each_page(s, r, page) {
		struct page *p = &d->pages[page];
		struct slot *slot;

		if (page_gone(d, page))
			continue;
		p->defined |= s->writes;
		p->launched |= s->launch;
		if (p->slot == SLOT_NONE)
			continue;
		slot = &d->tenancy->slots[p->slot];
		if (s->launch)
			slot->touched |= s->writes;
		else
			slot->dirty |= s->writes;
		if (slot->ready != NULL && slot->ready != last) {
			last = slot->ready;
			events[(*n)++] = event_get(last);
		}
	}
	return true;
}

static CUresult order_after(struct page_set *s, struct event **events,
	uint32_t n)
{
	CUresult r = CUDA_SUCCESS;

	for (uint32_t i = 0; i < n; i++) {
		if (r == CUDA_SUCCESS)
			r = event_order(events[i], s->stream);
		event_put(events[i]);
	}
	return r;
}

/*
 * A driver that limits the mappings of a handle refuses one where aliases have
 * used them up.  They go where it refused one of them, too: whether they have
 * gone since, or do so now.
 */
static bool aliases_go(struct device *d, uint32_t unaliased)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint64_t deadline = tenancy_deadline();

	while (t->unaliased == unaliased && t->schedule != NULL &&
	       t->schedule->changing)
		if (!lock_wait(&d->pool_lock, &d->pool_cond, deadline))
			return false;
	return t->unaliased != unaliased;
}

/*
 * One round; *again is set where a page got away and all must be redone.
 * Otherwise, on success, the section is open and the first *n of events are
 * what the stream must wait for.
 */
static CUresult acquire_once(struct page_set *s, struct event **events,
	uint32_t *n, bool *again)
{
	struct device *d = s->device;
	struct jobs jobs = { 0 };
	uint32_t unaliased;
	CUresult r;

	*again = false;
	lock_acquire(&d->pool_lock);
	unaliased = d->tenancy->unaliased;
	r = decide(d, s, &jobs);
	lock_release(&d->pool_lock);
	if (r != CUDA_SUCCESS)
		return r;
	if (jobs.nr > 0)
		r = jobs_run(s, &jobs);
	lock_acquire(&d->pool_lock);
	if (r != CUDA_SUCCESS) {
		jobs_fail(d, &jobs);
		unpin_all(d, s);
		if (r == CUDA_ERROR_OUT_OF_MEMORY && aliases_go(d, unaliased)) {
			*again = true;
			r = CUDA_SUCCESS;
		}
	} else {
		jobs_finish(d, s, &jobs);
		section_open();
		*again = !settle(d, s, events, n);
		if (*again) {
			section_close();
			unpin_all(d, s);
		}
	}
	lock_release(&d->pool_lock);
	jobs_free(&jobs);
	return r;
}

/* All rounds, with the context that moves the bytes current. */
static CUresult acquire(struct page_set *s, struct event **events, uint32_t *n)
{
	bool again = true;
	CUcontext popped;
	CUresult r = CUDA_SUCCESS;

	if (s->context != s->caller)
		r = real.cuCtxPushCurrent_v2(s->context->handle);
	if (r != CUDA_SUCCESS)
		return r;
	if (!context_ready(s->context))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	while (again && r == CUDA_SUCCESS)
		r = acquire_once(s, events, n, &again);
	if (s->context != s->caller)
		real.cuCtxPopCurrent_v2(&popped);
	return r;
}

CUresult tenancy_acquire(struct page_set *s)
{
	uint64_t pages = page_set_pages(s);
	struct event **events;
	uint32_t n = 0;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	events = malloc((pages + 1) * sizeof(*events));
	s->pins = malloc((pages + 1) * sizeof(*s->pins));
	s->nr_pins = 0;
	if (events != NULL && s->pins != NULL)
		r = acquire(s, events, &n);
	if (r == CUDA_SUCCESS) {
		r = order_after(s, events, n);
		if (r != CUDA_SUCCESS) {
			lock_acquire(&s->device->pool_lock);
			unpin_all(s->device, s);
			lock_release(&s->device->pool_lock);
			section_close();
		}
	}
	free(events);
	if (r != CUDA_SUCCESS) {
		free(s->pins);
		s->pins = NULL;
	}
	return r;
}
