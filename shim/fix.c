/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residency for good.  A page that passes through the pool keeps the chunk it
 * is mapped to and gives the slot another one, so nothing is copied and no
 * reader has to be waited for.
 */
#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/log.h"
#include "shim/section.h"
#include "shim/schedule.h"
#include "shim/tenancy_int.h"

/* So often may other threads choose pages of the set to leave meanwhile. */
#define TRIES 16

/*
 * Marks the pages; was: what they were before.  false: one has been chosen to
 * leave, and nothing is marked.
 */
static bool mark_fixed(struct page_set *s, bool *was)
{
	struct device *d = s->device;
	bool leaving = false;
	size_t n = 0;

	lock_acquire(&d->pool_lock);
	for_each_page(s, r, page)
		leaving |= (device_word(d, page) & PAGE_LEAVING) != 0;
	if (!leaving)
		for_each_page(s, r, page) {
			was[n++] = d->pages[page].fixed;
			d->pages[page].fixed = true;
		}
	lock_release(&d->pool_lock);
	return !leaving;
}

static void unmark_fixed(struct page_set *s, const bool *was)
{
	struct device *d = s->device;
	size_t n = 0;

	lock_acquire(&d->pool_lock);
	for_each_page(s, r, page)
		d->pages[page].fixed = was[n++];
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

/* All pages are there, marked and pinned; no section is open. */
static CUresult hold_fixed(struct page_set *s, bool *was)
{
	CUresult r = CUDA_ERROR_LAUNCH_TIMEOUT;
	bool marked = false;

	for (int i = 0; i < TRIES && !marked; i++) {
		r = tenancy_acquire(s);
		if (r != CUDA_SUCCESS)
			return r;
		/* Marked pages stay although the section closes. */
		marked = mark_fixed(s, was);
		section_close();
		if (!marked)
			let_go(s);
	}
	return marked ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_TIMEOUT;
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

/* A chunk from wherever one can be had. */
static uint32_t chunk_find(struct device *d, const struct page_set *keep)
{
	uint32_t chunk = CHUNK_NONE;

	lock_acquire(&d->pool_lock);
	if (chunk_take(d, 1, &chunk) == 0)
		demote(d, 1, keep, &chunk);
	lock_release(&d->pool_lock);
	return chunk;
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

static CUresult fix_page(struct page_set *s, uint32_t page)
{
	struct device *d = s->device;
	uint32_t chunk;
	CUresult r;

	if (page_tier(d, page) != TIER_STREAMED)
		return CUDA_SUCCESS;
	chunk = chunk_find(d, s);
	if (chunk == CHUNK_NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = slot_swap(d, page, chunk);
	if (r != CUDA_SUCCESS) {
		lock_acquire(&d->pool_lock);
		chunk_recycle(d, chunk);
		lock_release(&d->pool_lock);
	}
	return r;
}

CUresult tenancy_fix(struct page_set *s)
{
	struct device *d = s->device;
	bool *was;
	CUresult r;

	/* A slot is about to change its memory. */
	if (!schedule_try_end(d, "memory is needed at a fixed place"))
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	was = malloc((page_set_pages(s) + 1) * sizeof(*was));
	r = was == NULL ? CUDA_ERROR_OUT_OF_MEMORY : host_leaves(s);
	if (r == CUDA_SUCCESS)
		r = hold_fixed(s, was);
	if (r != CUDA_SUCCESS) {
		free(was);
		return r;
	}
	for_each_page(s, i, page)
		if (r == CUDA_SUCCESS)
			r = fix_page(s, page);
	if (r != CUDA_SUCCESS)
		unmark_fixed(s, was);
	free(was);
	let_go(s);
	return r;
}
