/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency for good, page by page.  One that passes through the pool keeps the
 * chunk it is mapped to and gives the slot another one, so nothing is copied and
 * no reader has to be waited for.
 */
#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/log.h"
#include "shim/section.h"
#include "shim/schedule.h"
#include "shim/tenancy_int.h"

/* So often may other threads choose a page to leave, or take a chunk, first. */
#define TRIES 16

static void unmark_fixed(struct page_set *s, const bool *was, size_t n)
{
	struct device *d = s->device;
	size_t i = 0;

	lock_acquire(&d->pool_lock);
	for_each_page(s, r, page)
		if (i < n)
			d->pages[page].fixed = was[i++];
	lock_release(&d->pool_lock);
}

static void let_go(struct page_set *s)
{
	struct device *d = s->device;

	lock_acquire(&d->pool_lock);
	unpin_all(d, s);
	lock_release(&d->pool_lock);
	free(s->pins);
	s->pins = NULL;
}

/*
 * A page is there, marked and pinned; no section is open.  CUDA_ERROR_NOT_READY:
 * it has been chosen to leave.
 */
static CUresult hold_fixed(struct page_set *one, uint32_t page, bool *was)
{
	struct device *d = one->device;
	CUresult r = tenancy_acquire(one);

	if (r != CUDA_SUCCESS)
		return r;
	lock_acquire(&d->pool_lock);
	if ((device_word(d, page) & PAGE_LEAVING) != 0) {
		r = CUDA_ERROR_NOT_READY;
	} else {
		/* Marked pages stay although the section closes. */
		*was = d->pages[page].fixed;
		d->pages[page].fixed = true;
	}
	lock_release(&d->pool_lock);
	section_close();
	if (r != CUDA_SUCCESS)
		let_go(one);
	return r;
}

/*
 * Who is given the address is to find memory of the GPU there, so what a trial
 * put into host memory comes back.  Where that is the policy, it stays.
 */
static CUresult host_leaves(struct page_set *s)
{
	struct device *d = s->device;
	size_t most = page_set_pages(s) + 1;
	uint32_t *pages = malloc(most * sizeof(*pages));
	uint32_t *was = malloc(most * sizeof(*was));
	uint32_t n = 0, gone = 0;
	CUcontext popped;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (pages != NULL && was != NULL)
		r = s->context == s->caller ? CUDA_SUCCESS :
			real.cuCtxPushCurrent_v2(s->context->handle);
	if (r == CUDA_SUCCESS) {
		lock_acquire(&d->pool_lock);
		for_each_page(s, i, page)
			if (page_tier(d, page) == TIER_HOST)
				pages[n++] = page;
		if (n > 0 && !d->tenancy->layout->host)
			gone = demote_pages(d, pages, n, TIER_HOST, was);
		else
			n = 0;
		lock_release(&d->pool_lock);
		if (s->context != s->caller)
			real.cuCtxPopCurrent_v2(&popped);
		if (gone < n)
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(pages);
	free(was);
	return r;
}

/*
 * What calls need at once must fit into the pool that is left; else nothing is
 * taken from it.  c copies.
 */
static CUresult pool_give(struct device *d, struct context *c, uint32_t want)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint32_t least = t->floor < 2 ? 2 : t->floor;

	while (t->demoting || t->growing)
		if (!lock_wait(&d->pool_lock, &d->pool_cond,
		    tenancy_deadline()))
			return CUDA_ERROR_LAUNCH_TIMEOUT;
	if (t->nr_slots <= least)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (want > t->nr_slots - least)
		want = t->nr_slots - least;
	return pool_empty(d, c, t->nr_slots - want);
}

/*
 * A chunk from wherever one can be had: new, from a resident, or from the pool,
 * which then gives as many as the whole set still wants.  No pin is held.
 */
static CUresult chunk_find(const struct page_set *s, uint32_t *chunk)
{
	struct device *d = s->device;
	CUresult r = CUDA_SUCCESS;

	lock_acquire(&d->pool_lock);
	for (int i = 0; i < TRIES && r == CUDA_SUCCESS; i++) {
		uint32_t want = 0;

		if (chunk_take(d, 1, chunk) > 0 || demote(d, 1, s, chunk) > 0)
			break;
		for_each_page(s, j, page)
			want += page_tier(d, page) == TIER_STREAMED;
		r = pool_give(d, s->context, want);
	}
	lock_release(&d->pool_lock);
	return r == CUDA_SUCCESS && *chunk == CHUNK_NONE ?
		CUDA_ERROR_OUT_OF_MEMORY : r;
}

/* The same with the context current that moves the bytes. */
static CUresult chunk_find_there(const struct page_set *s, uint32_t *chunk)
{
	CUcontext popped;
	CUresult r = CUDA_SUCCESS;

	*chunk = CHUNK_NONE;
	if (s->context != s->caller)
		r = real.cuCtxPushCurrent_v2(s->context->handle);
	if (r != CUDA_SUCCESS)
		return r;
	r = context_ready(s->context) ? chunk_find(s, chunk) :
		CUDA_ERROR_OUT_OF_MEMORY;
	if (s->context != s->caller)
		real.cuCtxPopCurrent_v2(&popped);
	return r;
}

static void chunk_drop(struct device *d, uint32_t chunk)
{
	if (chunk == CHUNK_NONE)
		return;
	lock_acquire(&d->pool_lock);
	chunk_recycle(d, chunk);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
}

/* Gives the slot of a pinned, present page another chunk. */
static CUresult slot_swap(struct device *d, uint32_t page, uint32_t chunk)
{
	CUmemGenericAllocationHandle handle = chunk_handle(d, chunk);
	struct slot *slot;
	struct event *ready;
	CUdeviceptr alias;
	uint32_t own;
	CUresult r;

	lock_acquire(&d->pool_lock);
	slot = &d->tenancy->slots[d->pages[page].slot];
	own = slot->chunk;
	alias = slot_address(d, d->pages[page].slot);
	ready = slot->ready == NULL ? NULL : event_get(slot->ready);
	lock_release(&d->pool_lock);

	/* The copy into the slot goes through the alias. */
	r = ready == NULL ? CUDA_SUCCESS : event_wait(ready);
	event_put(ready);
	if (r == CUDA_SUCCESS)
		r = device_unmap(d, alias, 1);
	if (r != CUDA_SUCCESS)
		return r;
	r = device_map(d, alias, 1, &handle);
	if (r != CUDA_SUCCESS) {
		handle = chunk_handle(d, own);
		if (device_map(d, alias, 1, &handle) != CUDA_SUCCESS)
			log_err("a pool slot is lost: it cannot be mapped");
		return r;
	}
	lock_acquire(&d->pool_lock);
	slot_clear(slot);
	slot->chunk = chunk;
	page_settles(d, page, TIER_RESIDENT, own);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	return CUDA_SUCCESS;
}

static bool is_streamed(struct device *d, uint32_t page)
{
	return (device_word(d, page) & PAGE_TIER_MASK) == TIER_STREAMED;
}

/*
 * Holds a page and gives it the memory that it has; the slot gets *chunk, which
 * is CHUNK_NONE then.  CUDA_ERROR_NOT_READY: once more.
 */
static CUresult fix_held(struct page_set *one, uint32_t page, bool *was,
	uint32_t *chunk)
{
	struct device *d = one->device;
	CUresult r = hold_fixed(one, page, was);

	if (r != CUDA_SUCCESS)
		return r;
	if (is_streamed(d, page)) {
		r = *chunk == CHUNK_NONE ? CUDA_ERROR_NOT_READY :
			slot_swap(d, page, *chunk);
		if (r == CUDA_SUCCESS)
			*chunk = CHUNK_NONE;
	}
	let_go(one);
	if (r != CUDA_SUCCESS)
		unmark_fixed(one, was, 1);
	return r;
}

/* One page of the set, for good; was: its mark before. */
static CUresult fix_page(struct page_set *s, uint32_t page, bool *was)
{
	struct device *d = s->device;
	CUresult r = CUDA_ERROR_NOT_READY;
	uint32_t chunk = CHUNK_NONE;
	struct page_set one;

	page_set_init(&one, d, s->stream);
	one.caller = s->caller;
	one.context = s->context;
	if (!page_set_add(&one, page, page))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (int i = 0; i < TRIES && r == CUDA_ERROR_NOT_READY; i++) {
		/* Before it has a slot: a pinned one could not be given up. */
		r = chunk == CHUNK_NONE && is_streamed(d, page) ?
			chunk_find_there(s, &chunk) : CUDA_SUCCESS;
		if (r == CUDA_SUCCESS)
			r = fix_held(&one, page, was, &chunk);
	}
	chunk_drop(d, chunk);
	page_set_clear(&one);
	return r == CUDA_ERROR_NOT_READY ? CUDA_ERROR_LAUNCH_TIMEOUT : r;
}

/*
 * Whether what a call of the program was seen to need at once still fits beside
 * what is fixed then.  A pool keeps that much (pool_give); but there is none
 * while everything is in place.
 */
static bool leaves_enough(const struct page_set *s)
{
	struct device *d = s->device;
	struct tenancy *t = d->tenancy;
	uint32_t end = alloc_end_page(d), fixed = 0, most;
	bool enough;

	lock_acquire(&d->pool_lock);
	for (uint32_t page = 0; page < end; page++)
		fixed += page_tier(d, page) != TIER_NONE &&
			d->pages[page].fixed;
	for_each_page(s, i, page)
		fixed += !d->pages[page].fixed;
	most = (uint32_t)(d->budget >> d->page_shift);
	enough = t->nr_streamed > 0 || t->floor == 0 ||
		(fixed <= most && t->floor <= most - fixed);
	lock_release(&d->pool_lock);
	return enough;
}

CUresult tenancy_fix(struct page_set *s)
{
	struct device *d = s->device;
	size_t n = 0;
	bool *was;
	CUresult r;

	if (!leaves_enough(s))
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* A slot is about to change its memory. */
	if (!schedule_try_end(d, "memory is needed at a fixed place"))
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	was = malloc((page_set_pages(s) + 1) * sizeof(*was));
	r = was == NULL ? CUDA_ERROR_OUT_OF_MEMORY : host_leaves(s);
	for_each_page(s, i, page) {
		if (r == CUDA_SUCCESS)
			r = fix_page(s, page, &was[n]);
		n += r == CUDA_SUCCESS;
	}
	if (r != CUDA_SUCCESS)
		unmark_fixed(s, was, n);
	free(was);
	return r;
}
