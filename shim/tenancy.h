/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is where: the tier of every page, the tenant of every pool slot and that
 * tenant's readers.  One pair of calls, acquire before a launch or copy and
 * release after it, serves every case.
 *
 * Rules (each has a test that fails without it):
 *  - A pinned slot never gets a new tenant.  acquire() pins, release() unpins.
 *  - A resident page loses its chunk only after every issue section that was
 *    open when it was marked has closed, and all issued work has finished.
 *  - A slot's new contents wait for the old tenant's readers and for its way
 *    back to the arena; a reader waits for the slot's `ready` event.
 *  - Nothing is held while waiting for slots that others hold: an acquire gets
 *    all it needs at once, or starts over.
 *  - No lock is held across a call that can wait for the GPU.
 */
#ifndef BALLAST_TENANCY_H
#define BALLAST_TENANCY_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/alloc.h"
#include "shim/compiler.h"
#include "shim/context.h"
#include "shim/device.h"
#include "shim/page_set.h"

#define SLOT_NONE UINT32_MAX
#define SLOT_ANY (UINT32_MAX - 1)

/* Which tenant makes way for a page that may go to any slot. */
enum layout_order {
	ORDER_SECOND_CHANCE,	/* the ring's next that was not hit since */
	ORDER_RING,		/* the ring's next */
	ORDER_LRU,		/* the one that no call has named for longest */
};

/*
 * Where pages go.  Each policy is a layout; a plan is another.  The functions
 * are called with pool_lock held and must not block.
 */
struct layout {
	const char *name;
	/* GPU memory the pool should have before anything is made resident. */
	uint64_t (*pool_bytes)(const struct device *d);
	/* The slot that a missing page goes to, or SLOT_ANY: the next free one. */
	uint32_t (*slot_of)(const struct device *d, uint32_t page);
	/* Whether a missing page may take a chunk of its own, if one is free. */
	bool (*stays)(const struct device *d, uint32_t page);
	enum layout_order order;
	/* New pages that find no chunk go to the host tier. */
	bool host;
};

extern const struct layout layout_on_demand;
/*
 * That of the configured policy, while no plan is in force.  Before the device
 * has any page; a context is current.
 */
const struct layout *policy_layout(struct device *d);

/* 0 or -ENOMEM; after chunk_start and alloc_start. */
int tenancy_start(struct device *d) WARN_UNUSED;
/* Takes effect for pages that are placed from now on. */
void tenancy_apply(struct device *d, const struct layout *l);

/*
 * Gives every page of a new allocation a place: a chunk while the budget
 * lasts, then the arena.  CUDA_ERROR_OUT_OF_MEMORY when both are full; then
 * nothing is changed.  The allocation is published on success.
 */
CUresult tenancy_back(struct device *d, struct alloc *a) WARN_UNUSED;
/*
 * Takes all of it back: waits for everything issued on the device (unless
 * `quiet`: the caller knows that all its users have finished), unmaps, frees
 * arena ranges.  The caller has claimed the allocation.
 */
CUresult tenancy_drop(struct device *d, struct alloc *a, bool quiet);

/*
 * Makes the set present and ordered before what the stream does next, pins it
 * and opens this thread's issue section; s->context is current.  On failure
 * nothing is pinned and the section is closed.  CUDA_ERROR_OUT_OF_MEMORY: the
 * set is more than the GPU can hold, or the arena is full (logged once per
 * size).
 */
CUresult tenancy_acquire(struct page_set *s) WARN_UNUSED;
/* Undoes acquire after the driver's function has returned. */
void tenancy_release(struct page_set *s);

/* The same for sets of two devices, all or nothing. */
CUresult tenancy_acquire_pair(struct page_set *a, struct page_set *b)
	WARN_UNUSED;
void tenancy_release_pair(struct page_set *a, struct page_set *b);

/* After device_peer_add(): what is mapped already is granted to all peers. */
CUresult tenancy_peer(struct device *d);

/*
 * Makes the set resident for good, for memory whose address somebody else
 * holds: textures, other processes, network cards, other GPUs.  Ends a plan, and
 * makes the pool smaller where nothing else can give a chunk.  On failure pages
 * may leave that could before.  No section may be open, no lock held.
 */
CUresult tenancy_fix(struct page_set *s) WARN_UNUSED;

/*
 * Writes n bytes at p straight to the arena, where all pages of the range are
 * streamed, absent and never named by a launch.  false: they are not, or still
 * being saved after wait_ms; nothing was written.  Blocks until the bytes are
 * there.
 */
bool tenancy_upload(struct device *d, CUdeviceptr p, const void *src,
	size_t n);

/*
 * Makes room for the program's own allocation of `bytes`: idle chunks, a pool
 * that no page needs, then residents go to the arena, and their memory to the
 * driver.  Bytes given back.
 */
uint64_t tenancy_reclaim(struct device *d, uint64_t bytes);

/*
 * Parts of a sparse allocation.  A part is a struct alloc on the caller's
 * stack with the whole's number; tenancy_back() gives it memory, publishing is
 * not for it.  What follows needs it held: no other thread touches its pages
 * then, launches and copies wait, nothing issued before is still at work.
 */
void tenancy_part(struct alloc *part, struct device *d,
	const struct alloc *whole, uint32_t first, uint64_t size);
/* On failure nothing is held. */
CUresult tenancy_hold(struct device *d, const struct alloc *part) WARN_UNUSED;
void tenancy_unhold(struct device *d, const struct alloc *part);
/* Ends the hold: the part's memory is free again. */
CUresult tenancy_drop_held(struct device *d, const struct alloc *part);
/*
 * Ends the hold: the bytes are those of `to` from now on, a part of the same
 * size without memory.  On failure nothing has changed, and it is still held.
 */
CUresult tenancy_move(struct device *d, const struct alloc *part,
	const struct alloc *to) WARN_UNUSED;
/*
 * Copies the bytes to other memory of the device, and waits until they are
 * there.  A context of the device is current.
 */
CUresult tenancy_copy_held(struct device *d, const struct alloc *part,
	CUdeviceptr to) WARN_UNUSED;
/* Whether new allocations could get so many bytes now. */
bool tenancy_fits(struct device *d, uint64_t bytes);

/* Bytes that we hold for nobody: they go back when they are asked for. */
uint64_t tenancy_idle(struct device *d);
/* Those, and bytes that could leave the GPU now. */
uint64_t tenancy_evictable(struct device *d);
/*
 * GPU memory that exists and belongs to no page, no slot and no list: 0, or
 * something was lost on the way.  For the time when no call is under way.
 */
uint64_t tenancy_lost(struct device *d);
/* GPU memory that one set may take at most, in pages. */
uint32_t tenancy_most_pages(struct device *d);
/*
 * No resident page leaves from now on (captured graphs hold addresses).  false:
 * not every page is resident; nothing was done.
 */
bool tenancy_freeze(struct device *d);
/* Whether every page on the device is resident. */
bool tenancy_all_resident(struct device *d);

#endif
