/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of reservations: memory that comes, goes and moves while the rest of
 * the reservation is in use.  Called by vmm.  A part is held first: its pages
 * are marked as in another thread's hands, so launches that reach over it wait
 * or, when it has gone, pass over it.  State is guarded by pool_lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

void tenancy_part(struct alloc *part, struct device *d,
	const struct alloc *whole, uint32_t first, uint64_t size)
{
	memset(part, 0, sizeof(*part));
	part->base = device_address(d, first);
	part->size = size;
	part->first = first;
	part->nr_pages = (uint32_t)(size >> d->page_shift);
	part->id = whole->id;
	part->sparse = whole->sparse;
}

static struct alloc *owner_of(struct device *d, const struct alloc *part)
{
	return alloc_of_word(d, page_word(part, TIER_STREAMED));
}

/* ---- holding ---- */

static void page_hold(struct device *d, struct alloc *owner, uint32_t page)
	REQUIRES(&d->pool_lock)
{
	struct page *p = &d->pages[page];

	if (page_tier(d, page) != TIER_STREAMED) {
		/* Nobody may choose it to leave. */
		if (!p->host)
			resident_remove(d, page);
		alloc_unsettle(d, owner, 1);
		page_word_set(d, page, device_word(d, page) | PAGE_LEAVING);
		return;
	}
	if (p->slot != SLOT_NONE)
		d->tenancy->slots[p->slot].busy = true;
	p->state = PAGE_MOVING;
}

static void page_unhold(struct device *d, struct alloc *owner, uint32_t page)
	REQUIRES(&d->pool_lock)
{
	struct page *p = &d->pages[page];

	if (page_tier(d, page) != TIER_STREAMED) {
		if (!p->host)
			resident_add(d, page);
		page_word_set(d, page, device_word(d, page) &
			~(uint64_t)PAGE_LEAVING);
		alloc_settle(d, owner, 1);
		return;
	}
	p->state = PAGE_ABSENT;
	if (p->slot != SLOT_NONE) {
		d->tenancy->slots[p->slot].busy = false;
		p->state = PAGE_PRESENT;
	}
}

void tenancy_unhold(struct device *d, const struct alloc *part)
{
	struct alloc *owner = owner_of(d, part);

	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < part->nr_pages; i++)
		page_unhold(d, owner, part->first + i);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
}

CUresult tenancy_hold(struct device *d, const struct alloc *part)
{
	struct alloc *owner = owner_of(d, part);
	struct event **events = malloc((2 * (size_t)part->nr_pages + 1) *
		sizeof(*events));
	size_t n = 0;
	bool settled;
	CUresult r;

	if (events == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	schedule_leave(d, part->first, part->nr_pages);
	lock_acquire(&d->pool_lock);
	settled = drop_settle(d, part);
	if (settled) {
		for (uint32_t i = 0; i < part->nr_pages; i++)
			page_hold(d, owner, part->first + i);
		n = drop_events(d, part, events);
	}
	lock_release(&d->pool_lock);
	if (settled && !section_wait_all(tenancy_deadline())) {
		tenancy_unhold(d, part);
		settled = false;
	}
	r = settled ? context_quiesce(d) : CUDA_ERROR_LAUNCH_TIMEOUT;
	for (size_t i = 0; i < n; i++) {
		if (r != CUDA_ERROR_LAUNCH_TIMEOUT &&
		    event_wait(events[i]) == CUDA_ERROR_LAUNCH_TIMEOUT)
			r = CUDA_ERROR_LAUNCH_TIMEOUT;
		event_put(events[i]);
	}
	free(events);
	if (r == CUDA_ERROR_LAUNCH_TIMEOUT) {
		if (settled)
			tenancy_unhold(d, part);
		return r;
	}
	/* A context that has failed can still be cleared away. */
	if (r != CUDA_SUCCESS)
		log_dbg("waiting for work on a reservation: %s",
			api_result_name(r));
	return CUDA_SUCCESS;
}

/* ---- what is mapped where ---- */

/* The chunk that a held page is mapped to, or host.c's index, or CHUNK_NONE. */
static uint32_t held_chunk(const struct device *d, uint32_t page)
{
	const struct page *p = &d->pages[page];

	if (page_tier(d, page) != TIER_STREAMED)
		return p->chunk;
	return p->slot == SLOT_NONE ? CHUNK_NONE :
		d->tenancy->slots[p->slot].chunk;
}

static CUmemGenericAllocationHandle held_handle(const struct device *d,
	uint32_t page)
{
	return d->pages[page].host ? host_handle(d, d->pages[page].chunk) :
		chunk_handle(d, held_chunk(d, page));
}

/* The next mapped pages of the part from *i on: how many, 0 for none. */
static uint32_t mapped_run(const struct device *d, const struct alloc *part,
	uint32_t *i)
{
	uint32_t n = 0;

	while (*i < part->nr_pages &&
	       held_chunk(d, part->first + *i) == CHUNK_NONE)
		++*i;
	while (*i + n < part->nr_pages &&
	       held_chunk(d, part->first + *i + n) != CHUNK_NONE)
		n++;
	return n;
}

/* Unmaps at `at`, where the part's pages before `end` are mapped. */
static CUresult unmap_runs(struct device *d, const struct alloc *part,
	CUdeviceptr at, uint32_t end)
{
	CUresult r = CUDA_SUCCESS, u;
	uint32_t n;

	for (uint32_t i = 0; (n = mapped_run(d, part, &i)) > 0; i += n) {
		if (i >= end)
			break;
		u = device_unmap(d, at + ((uint64_t)i << d->page_shift), n);
		if (r == CUDA_SUCCESS)
			r = u;
	}
	return r;
}

static CUresult map_runs(struct device *d, const struct alloc *part,
	CUdeviceptr at)
{
	CUmemGenericAllocationHandle *handles =
		malloc(part->nr_pages * sizeof(*handles));
	CUresult r = CUDA_SUCCESS;
	uint32_t n, i;

	if (handles == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (i = 0; (n = mapped_run(d, part, &i)) > 0; i += n) {
		for (uint32_t k = 0; k < n; k++)
			handles[k] = held_handle(d, part->first + i + k);
		r = device_map(d, at + ((uint64_t)i << d->page_shift), n,
			handles);
		if (r != CUDA_SUCCESS)
			break;
	}
	free(handles);
	if (r != CUDA_SUCCESS)
		unmap_runs(d, part, at, i);
	return r;
}

/* ---- the ways out of a hold ---- */

CUresult tenancy_drop_held(struct device *d, const struct alloc *part)
{
	struct alloc *owner = owner_of(d, part);
	CUresult r = unmap_runs(d, part, part->base, part->nr_pages);

	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < part->nr_pages; i++) {
		drop_page(d, part->first + i, r != CUDA_SUCCESS);
		page_word_set(d, part->first + i, alloc_empty_word(owner));
		alloc_settle(d, owner, 1);
	}
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	return r;
}

static void page_move(struct device *d, uint32_t from, uint32_t to,
	const struct alloc *from_owner, const struct alloc *to_owner)
	REQUIRES(&d->pool_lock)
{
	struct page *p = &d->pages[to];
	enum page_tier tier = page_tier(d, from);

	*p = d->pages[from];
	p->fixed = false;	/* who held the old address has lost it */
	page_word_set(d, from, alloc_empty_word(from_owner));
	memset(&d->pages[from], 0, sizeof(d->pages[from]));
	if (tier == TIER_RESIDENT) {
		resident_add(d, to);
	} else if (tier == TIER_HOST) {
		p->state = PAGE_PRESENT;
	} else if (p->slot != SLOT_NONE) {
		d->tenancy->slots[p->slot].page = to;
		d->tenancy->slots[p->slot].busy = false;
		p->state = PAGE_PRESENT;
	} else {
		p->state = PAGE_ABSENT;
	}
	page_word_set(d, to, page_word(to_owner, tier));
}

/*
 * From one address to another.  At both first, so that a failure changes
 * nothing; where the driver allows a handle too few mappings for that, the old
 * one goes first, and comes back when the new one cannot be.
 */
static CUresult remap_runs(struct device *d, const struct alloc *part,
	CUdeviceptr to)
{
	CUresult r = map_runs(d, part, to);

	if (r == CUDA_SUCCESS) {
		r = unmap_runs(d, part, part->base, part->nr_pages);
		if (r != CUDA_SUCCESS)
			unmap_runs(d, part, to, part->nr_pages);
		return r;
	}
	if (unmap_runs(d, part, part->base, part->nr_pages) != CUDA_SUCCESS)
		return r;
	r = map_runs(d, part, to);
	if (r != CUDA_SUCCESS &&
	    map_runs(d, part, part->base) != CUDA_SUCCESS)
		log_err("memory at %#llx has lost its mapping", part->base);
	return r;
}

CUresult tenancy_move(struct device *d, const struct alloc *part,
	const struct alloc *to)
{
	struct alloc *from_owner = owner_of(d, part);
	struct alloc *to_owner = owner_of(d, to);
	CUresult r = remap_runs(d, part, to->base);
	uint32_t streamed = 0;

	if (r != CUDA_SUCCESS)
		return r;
	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < part->nr_pages; i++)
		streamed += page_tier(d, part->first + i) == TIER_STREAMED;
	alloc_unsettle(d, to_owner, streamed);
	for (uint32_t i = 0; i < part->nr_pages; i++)
		page_move(d, part->first + i, to->first + i, from_owner,
			to_owner);
	alloc_settle(d, from_owner, part->nr_pages);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	return CUDA_SUCCESS;
}

CUresult tenancy_copy_held(struct device *d, const struct alloc *part,
	CUdeviceptr to)
{
	struct context *c = context_current();
	struct move *moves = malloc(part->nr_pages * sizeof(*moves));
	struct event *fetched = NULL;
	CUresult r = CUDA_SUCCESS, w;
	size_t n = 0;

	if (moves == NULL || c == NULL || !context_ready(c)) {
		free(moves);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (uint32_t i = 0; i < part->nr_pages && r == CUDA_SUCCESS; i++) {
		const struct page *p = &d->pages[part->first + i];
		uint64_t off = (uint64_t)i << d->page_shift;

		if (held_chunk(d, part->first + i) != CHUNK_NONE)
			r = real.cuMemcpyDtoDAsync_v2(to + off,
				part->base + off, d->page_size, c->side);
		else if (p->defined)
			moves[n++] = (struct move){ .device = to + off,
				.arena = p->arena, .size = p->len };
	}
	if (r == CUDA_SUCCESS && n > 0)
		r = mover_fetch(c, moves, n, &fetched);
	free(moves);
	/* Also after a failure: the pages may change when the hold ends. */
	w = real.cuStreamSynchronize(c->side);
	if (w == CUDA_SUCCESS && fetched != NULL)
		w = event_wait(fetched);
	event_put(fetched);
	return r != CUDA_SUCCESS ? r : w;
}

/* ---- questions ---- */

bool tenancy_fits(struct device *d, uint64_t bytes)
{
	uint64_t gpu, lacking, arena;

	lock_acquire(&d->pool_lock);
	gpu = (uint64_t)chunk_nr_available(d) << d->page_shift;
	lacking = d->tenancy->nr_slots < pool_target(d) ?
		(uint64_t)(pool_target(d) - d->tenancy->nr_slots) <<
		d->page_shift : 0;
	lock_release(&d->pool_lock);
	/* Either all of it stays on the GPU, or there must be a pool. */
	if (bytes <= gpu)
		return true;
	arena = arena_room();
	return arena > lacking && bytes <= gpu + arena - lacking;
}
