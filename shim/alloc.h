/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed allocations: ranges of the window and what the program did with
 * them.  Knows addresses only; which bytes are where is tenancy's matter.
 *
 * A *span* starts where an upload started.  The reach of a pointer is what a
 * kernel given that pointer may touch: from the span it lies in up to the next
 * address that both starts a span and was itself passed as a pointer.
 */
#ifndef BALLAST_ALLOC_H
#define BALLAST_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/context.h"
#include "shim/device.h"

struct alloc {
	CUdeviceptr base;
	uint64_t size;		/* as the program asked */
	uint32_t first;		/* page */
	uint32_t nr_pages;
	uint32_t id;
	struct context *context;
	CUdeviceptr twin;	/* owned native allocation, freed with us */
	bool live;		/* guarded by alloc_lock */
	bool sync_memops;	/* the program set that attribute */
	bool lost;		/* perhaps still mapped: its addresses stay out */
	uint64_t serial;	/* never given twice */
	bool async;		/* from cuMemAllocAsync; has no twin */
	bool used;		/* counts as memory of a pool that is in use */
	struct event *freed;	/* referenced; cuMemFreeAsync's place */
	struct alloc *next_freed;	/* alloc_lock */
	/*
	 * A reservation of the program's own: some of its pages hold memory,
	 * others do not.  Never live: it is freed as a reservation only.
	 */
	bool sparse;
	uint32_t top;		/* sparse: pages from here on never held any */
	struct reservation *reservation;	/* sparse; borrowed, of vmm */
	struct span *spans;	/* owned, by rising offset; alloc_lock */
	uint32_t nr_spans;
	uint32_t max_spans;
};

/*
 * Bytes that hold data: what was asked for, rounded as the driver rounds its
 * own, since copies may go that far.
 */
static inline uint64_t alloc_bytes(const struct alloc *a)
{
	return (a->size + 511) & ~511ull;
}

/*
 * Pages of an allocation that are not plainly resident: streamed or leaving.
 * While it is 0 a launch needs to know nothing else of the range.  Atomic, and
 * in an array of their own, since launches look at nothing else of a record.
 */
static inline uint32_t alloc_unsettled(const struct device *d, uint32_t id)
{
	return __atomic_load_n(&d->unsettled[id], __ATOMIC_RELAXED);
}

static inline void alloc_unsettle(struct device *d, const struct alloc *a,
	uint32_t n)
{
	__atomic_fetch_add(&d->unsettled[a->id], n, __ATOMIC_SEQ_CST);
}

static inline void alloc_settle(struct device *d, const struct alloc *a,
	uint32_t n)
{
	__atomic_fetch_sub(&d->unsettled[a->id], n, __ATOMIC_SEQ_CST);
}

/*
 * What a launch asks of every word of its parameters: true where it points
 * into no memory of ours that needs care.  No lock.
 */
static inline bool alloc_word_settled(uint64_t word)
{
	struct device *d = device_find(word);
	uint64_t w;

	if (d == NULL)
		return true;
	w = device_word(d, device_page(d, word));
	return (w & PAGE_TIER_MASK) == TIER_NONE ||
		alloc_unsettled(d, (uint32_t)(w >> PAGE_ALLOC_SHIFT)) == 0;
}

/* 0 or -ENOMEM.  Once per device. */
int alloc_start(struct device *d) WARN_UNUSED;

/*
 * Reserves addresses for `size` bytes and makes the record; no page has any
 * memory yet.  NULL: no addresses or no host memory.
 */
struct alloc *alloc_create(struct device *d, struct context *c, uint64_t size);
/* Whether addresses for `size` bytes are free; no lock is held. */
bool alloc_fits(struct device *d, uint64_t size);
/* The record must hold no page any more. */
void alloc_destroy(struct device *d, struct alloc *a);
/* It has its place: from now on it may be claimed. */
void alloc_publish(struct device *d, struct alloc *a);

/*
 * A sparse allocation of whole pages, `align` a power of two; its first page
 * may lie below the first aligned address.  NULL as for alloc_create().
 */
struct alloc *alloc_reserve(struct device *d, uint64_t size, uint64_t align);
/* No page of it holds memory any more. */
void alloc_unreserve(struct device *d, struct alloc *a);
/* What the word of a page without memory is. */
static inline uint64_t alloc_empty_word(const struct alloc *a)
{
	return a->sparse ? (uint64_t)a->id << PAGE_ALLOC_SHIFT |
		PAGE_RESERVED : 0;
}

/*
 * The next pages of `a` with memory in [*page, end): *page and how many, or
 * 0.  For an allocation that is not sparse, all.  No lock.
 */
uint32_t alloc_run(struct device *d, const struct alloc *a, uint32_t *page,
	uint32_t end);

/* Pages of the largest live allocation. */
uint32_t alloc_largest(struct device *d);
/* The page behind the last that was ever given out. */
uint32_t alloc_end_page(struct device *d);

/* The live allocation that holds an address of d's window, or NULL.  No lock. */
struct alloc *alloc_find(struct device *d, CUdeviceptr p);
/* The same; also where the address is reserved and without memory. */
struct alloc *alloc_at(struct device *d, CUdeviceptr p);
struct alloc *alloc_of_word(struct device *d, uint64_t word);
/*
 * The allocation that was made as number `serial` and still is, or NULL; *made:
 * how many there have been.
 */
struct alloc *alloc_by_serial(struct device *d, uint64_t serial,
	uint64_t *made);
/*
 * Takes the allocation that starts at p out of use, so that only the caller
 * may free it.  NULL: there is none (an interior pointer, freed already).
 */
struct alloc *alloc_claim(struct device *d, CUdeviceptr p);
/* Likewise any live one of that context; NULL when none is left. */
struct alloc *alloc_claim_of(struct device *d, const struct context *c);

/*
 * Freed in stream order, behind e (takes the reference); a is claimed.  Its
 * memory is taken back by whoever takes it off the list.
 */
void alloc_freed_add(struct device *d, struct alloc *a, struct event *e);
/*
 * One such allocation whose event is complete, or any where `wait`; the caller
 * waits for a->freed.  NULL: there is none.
 */
struct alloc *alloc_freed_take(struct device *d, bool wait);

/* The host writes [p, p + n): what is there counts as weights.  No lock. */
void alloc_uploaded(struct device *d, CUdeviceptr p, uint64_t n);
/* An upload started at p. */
void alloc_span_add(struct device *d, struct alloc *a, CUdeviceptr p);
/* Forgets the spans that start in [p, p + n): the bytes there are gone. */
void alloc_span_drop(struct device *d, struct alloc *a, CUdeviceptr p,
	uint64_t n);
/* The bytes at [p, p + n) are at q of allocation b now, and so their spans. */
void alloc_span_move(struct device *d, struct alloc *a, CUdeviceptr p,
	uint64_t n, struct alloc *b, CUdeviceptr q);
/*
 * The reach of a pointer that a launch got: [*from, *to).  For launches whose
 * reach is more than the GPU can hold, it is cut, wide rather than narrow: more
 * than `most` bytes below p begin where p's span does; more than `most` bytes
 * above p end at the last span start of any kind within them, or where there is
 * none at the first one beyond, so that no cut goes through one upload.  A
 * sparse allocation, of which much may never have been uploaded, is cut at
 * `most` there instead.  A larger `most` never gives less.
 */
void alloc_reach(struct device *d, struct alloc *a, CUdeviceptr p,
	uint64_t most, CUdeviceptr *from, CUdeviceptr *to);

#endif
