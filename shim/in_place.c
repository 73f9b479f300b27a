/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In and out of the host tier, some pages at a time, so that little more than
 * one copy of the data exists.  Tables change under pool_lock; bytes move
 * without it, on pages that are marked as in this thread's hands.
 */
#include "shim/in_place.h"

#include <stdlib.h>
#include <string.h>

#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/host.h"
#include "shim/log.h"
#include "shim/mover.h"
#include "shim/stats.h"
#include "shim/tenancy_int.h"

#define BATCH 64u
/* Other threads fetch pages meanwhile; they are looked for again so often. */
#define ROUNDS 4

struct batch {
	uint32_t nr;
	uint32_t nr_chunks;	/* the first of them; the rest: host memory */
	uint32_t nr_mapped;	/* likewise */
	uint32_t pages[BATCH];
	uint32_t where[BATCH];	/* chunk or host.c's index */
};

bool in_place_possible(struct device *d)
{
	uint64_t bytes;

	lock_acquire(&d->pool_lock);
	bytes = (uint64_t)d->tenancy->nr_streamed << d->page_shift;
	lock_release(&d->pool_lock);
	return host_supported(d) && !host_doubtful(d) &&
		!context_has_host_functions() && arena_spare() >= bytes;
}

/* Nobody maps anything at the pool's last address meanwhile. */
static bool started(struct device *d)
{
	struct tenancy *t = d->tenancy;
	const char *why = "the pool is too large";
	bool tries;

	if (d->hosts != NULL)
		return true;
	lock_acquire(&d->pool_lock);
	tries = !t->growing && t->nr_slots < d->pool_max;
	t->growing |= tries;
	lock_release(&d->pool_lock);
	if (tries)
		why = host_start(d, slot_address(d, d->pool_max - 1));
	lock_acquire(&d->pool_lock);
	if (tries)
		t->growing = false;
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	if (why != NULL)
		log_info("device %d: data cannot be read in host memory: %s",
			d->ordinal, why);
	return why == NULL;
}

/* ---- in ---- */

/* The next absent pages from *at on, of `only` if given, are this thread's. */
static void batch_take(struct device *d, const struct page_set *only,
	uint32_t end, uint32_t *at, struct batch *b)
	REQUIRES(&d->pool_lock)
{
	for (; *at < end && b->nr < BATCH; ++*at)
		if (page_tier(d, *at) == TIER_STREAMED &&
		    d->pages[*at].state == PAGE_ABSENT &&
		    (only == NULL || page_set_has(only, *at))) {
			d->pages[*at].state = PAGE_MOVING;
			b->pages[b->nr++] = *at;
		}
}

static bool batch_back(struct device *d, struct batch *b, bool chunks)
	REQUIRES(&d->pool_lock)
{
	uint32_t n = chunks ? chunk_take(d, b->nr, b->where) : 0;

	b->nr_chunks = n;
	if (n < b->nr)
		n += host_take(d, b->nr - n, b->where + n);
	if (n == b->nr)
		return true;
	while (n > b->nr_chunks)
		host_give(d, b->where[--n]);
	while (n > 0)
		chunk_recycle(d, b->where[--n]);
	return false;
}

static CUresult batch_map(struct device *d, struct batch *b)
{
	CUmemGenericAllocationHandle handles[BATCH];
	CUresult r = CUDA_SUCCESS;
	uint32_t n;

	for (uint32_t i = 0; i < b->nr; i++)
		handles[i] = i < b->nr_chunks ? chunk_handle(d, b->where[i]) :
			host_handle(d, b->where[i]);
	while (b->nr_mapped < b->nr && r == CUDA_SUCCESS) {
		uint32_t i = b->nr_mapped;

		for (n = 1; i + n < b->nr &&
		     b->pages[i + n] == b->pages[i] + n; n++)
			;
		r = device_map(d, device_address(d, b->pages[i]), n,
			handles + i);
		if (r == CUDA_SUCCESS)
			b->nr_mapped += n;
	}
	return r;
}

static CUresult batch_fetch(struct device *d, struct context *c,
	const struct batch *b)
{
	struct move moves[BATCH];
	struct event *fetched = NULL;
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	for (uint32_t i = 0; i < b->nr && r == CUDA_SUCCESS; i++) {
		const struct page *p = &d->pages[b->pages[i]];

		if (!p->defined)
			continue;	/* nobody can expect its bytes */
		if (p->saved != NULL)
			r = mover_fetch_after(c, p->saved);
		moves[n++] = (struct move){
			.device = device_address(d, b->pages[i]),
			.arena = p->arena,
			.size = p->len,
		};
	}
	if (r == CUDA_SUCCESS)
		r = mover_fetch(c, moves, n, &fetched);
	if (r == CUDA_SUCCESS) {
		r = event_wait(fetched);
		if (r != CUDA_SUCCESS)
			mover_drain(c, c->copy);
	}
	event_put(fetched);
	return r;
}

static void batch_fail(struct device *d, struct batch *b)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < b->nr; i++) {
		bool lost = i < b->nr_mapped && device_unmap(d,
			device_address(d, b->pages[i]), 1) != CUDA_SUCCESS;

		d->pages[b->pages[i]].state = PAGE_ABSENT;
		if (lost) {
			log_err("a page stays mapped to memory that it lost");
			d->tenancy->nr_lost += i < b->nr_chunks;
		} else if (i < b->nr_chunks) {
			chunk_recycle(d, b->where[i]);
		} else {
			host_give(d, b->where[i]);
		}
	}
}

/* Carries out a batch; drops and retakes pool_lock. */
static CUresult batch_run(struct device *d, struct context *c, struct batch *b,
	bool chunks)
	REQUIRES(&d->pool_lock)
{
	CUresult r;

	if (!batch_back(d, b, chunks)) {
		for (uint32_t i = 0; i < b->nr; i++)
			d->pages[b->pages[i]].state = PAGE_ABSENT;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	lock_release(&d->pool_lock);
	r = batch_map(d, b);
	if (r == CUDA_SUCCESS)
		r = batch_fetch(d, c, b);
	lock_acquire(&d->pool_lock);
	if (r != CUDA_SUCCESS) {
		batch_fail(d, b);
		return r;
	}
	for (uint32_t i = 0; i < b->nr; i++)
		page_settles(d, b->pages[i], i < b->nr_chunks ? TIER_RESIDENT :
			TIER_HOST, b->where[i]);
	return CUDA_SUCCESS;
}

/* only: these pages, to host memory; NULL: all, to chunks as far as they go. */
static CUresult enter_round(struct device *d, struct context *c,
	const struct page_set *only, uint32_t end)
	REQUIRES(&d->pool_lock)
{
	CUresult r = pool_empty(d, c, 0);
	uint32_t at = 0;

	while (r == CUDA_SUCCESS) {
		struct batch b = { 0 };

		batch_take(d, only, end, &at, &b);
		if (b.nr == 0)
			break;
		r = batch_run(d, c, &b, only == NULL);
		pthread_cond_broadcast(&d->pool_cond);
	}
	return r;
}

CUresult in_place_enter(struct device *d, struct context *c)
{
	uint32_t end = alloc_end_page(d);
	CUresult r = CUDA_SUCCESS;

	if (!context_ready(c) || !started(d))
		return CUDA_ERROR_NOT_SUPPORTED;
	lock_acquire(&d->pool_lock);
	for (int i = 0; i < ROUNDS && r == CUDA_SUCCESS &&
	     d->tenancy->nr_streamed > 0; i++)
		r = enter_round(d, c, NULL, end);
	if (r == CUDA_SUCCESS && d->tenancy->nr_streamed > 0)
		r = CUDA_ERROR_NOT_READY;
	device_reach_changed(d);
	lock_release(&d->pool_lock);
	return r;
}

/* ---- out ---- */

/*
 * Pages of a tier that are in the set (inside) or not in it go to the arena;
 * false: not all of them could.
 */
static bool leave(struct device *d, enum page_tier tier,
	const struct page_set *set, bool inside, uint32_t end)
	REQUIRES(&d->pool_lock)
{
	uint32_t at = 0;
	uint32_t pages[BATCH], was[BATCH], n, gone;
	bool all = true;

	for (;;) {
		n = 0;
		for (; at < end && n < BATCH; at++) {
			if (page_tier(d, at) != tier ||
			    page_set_has(set, at) != inside)
				continue;
			if (d->pages[at].fixed ||
			    (device_word(d, at) & PAGE_LEAVING) != 0)
				all = false;
			else
				pages[n++] = at;
		}
		if (n == 0)
			return all;
		gone = demote_pages(d, pages, n, tier, was);
		for (uint32_t i = 0; i < gone && tier == TIER_RESIDENT; i++)
			chunk_recycle(d, was[i]);
		/* What they waited for in vain the next would wait for, too. */
		if (gone < n)
			return false;
	}
}

bool in_place_leave(struct device *d)
{
	uint32_t end = alloc_end_page(d);
	bool all;

	lock_acquire(&d->pool_lock);
	all = leave(d, TIER_HOST, NULL, false, end);
	lock_release(&d->pool_lock);
	return all;
}

/* ---- a part of it ---- */

CUresult in_place_part(struct device *d, struct context *c,
	const struct page_set *host)
{
	CUresult r = CUDA_ERROR_NOT_READY;
	uint32_t end = alloc_end_page(d);

	if (!context_ready(c))
		return CUDA_ERROR_NOT_SUPPORTED;
	lock_acquire(&d->pool_lock);
	if (leave(d, TIER_HOST, host, false, end) &&
	    leave(d, TIER_RESIDENT, host, true, end))
		r = enter_round(d, c, host, end);
	for_each_page(host, i, page)
		if (r == CUDA_SUCCESS && page_tier(d, page) != TIER_HOST)
			r = CUDA_ERROR_NOT_READY;
	device_reach_changed(d);
	lock_release(&d->pool_lock);
	return r;
}
