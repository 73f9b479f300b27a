/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device as managed memory sees it: its address window, the flat table with
 * one entry per page of the window, and how many bytes of GPU memory may be
 * taken.  Leftmost state module: everything else finds its device here.
 *
 * Words used throughout: a *page* is a chunk-sized, chunk-aligned piece of the
 * window, an address; a *chunk* is the same amount of GPU memory, a driver
 * handle.  Pages are numbered from the window's start.
 */
#ifndef BALLAST_DEVICE_H
#define BALLAST_DEVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"
#include "shim/lock.h"

#define DEVICE_MAX 16
#define PAGE_NONE UINT32_MAX

/*
 * Where a page's bytes live.
 */
enum page_tier {
	TIER_NONE = 0,		/* no allocation here */
	TIER_RESIDENT = 1,	/* mapped to a chunk of its own */
	TIER_STREAMED = 2,	/* passes through the pool */
	TIER_HOST = 3,		/* mapped to host memory */
};

/*
 * The word a launch reads without any lock: tier in bits 0-1, PAGE_LEAVING
 * where a resident page is about to lose its chunk; the number of the
 * allocation above.  PAGE_RESERVED: no memory of ours here now, but the page
 * belongs to a reservation of the program's own.
 */
#define PAGE_TIER_MASK 0x3u
#define PAGE_LEAVING 0x4u
#define PAGE_RESERVED 0x8u
#define PAGE_ALLOC_SHIFT 8

struct device {
	CUdevice ordinal;
	CUdeviceptr window;
	uint64_t window_size;
	unsigned page_shift;
	uint64_t page_size;
	uint32_t nr_pages;
	uint64_t *words;	/* owned; nr_pages, atomic access */
	uint32_t *unsettled;	/* owned by alloc.c; by allocation, atomic */
	struct page *pages;	/* owned; guarded by pool_lock */
	CUdeviceptr pool_base;	/* private addresses of the pool's slots */
	uint32_t pool_max;	/* slots that fit there */

	uint64_t total;		/* of the device, bytes */
	uint64_t budget;	/* most bytes of chunks; guarded by pool_lock */
	uint64_t budget_most;	/* what it was at the start */

	struct lock alloc_lock;	/* allocations and their spans */
	struct lock pool_lock;	/* pages, chunks, slots */
	pthread_cond_t pool_cond;
	struct chunks *chunks;	/* owned by chunk.c */
	struct hosts *hosts;	/* owned by host.c; NULL: no host tier */
	struct phase *phase;	/* owned by phase.c; atomic, set once */
	struct tenancy *tenancy;/* owned by tenancy.c */
	/*
	 * Counts changes of what a pointer may reach: spans, allocations, pages
	 * that stop being plainly resident, plans.  Atomic.
	 */
	uint32_t reach_gen;
	struct allocs *allocs;	/* owned by alloc.c */
};

/* State of a streamed page's bytes; resident pages stay PAGE_PRESENT. */
enum page_state {
	PAGE_ABSENT,		/* the arena has the bytes */
	PAGE_MOVING,		/* a thread is moving them; wait on pool_cond */
	PAGE_PRESENT,		/* mapped */
};

struct page {
	uint32_t chunk;		/* resident: its chunk; host: host.c's index */
	uint32_t slot;		/* streamed and present or coming: pool slot */
	uint64_t arena;		/* arena offset, ARENA_NONE: no place there */
	uint32_t len;		/* bytes of the allocation in this page */
	uint8_t state;		/* enum page_state */
	bool defined;		/* something has been written here */
	bool launched;		/* some launch has named it */
	bool host;		/* in the host tier */
	bool fixed;		/* resident for good: others hold its address */
	uint8_t uploaded;	/* atomic; the host has written here */
	uint32_t unit;		/* of the schedule, or PAGE_NONE */
	uint32_t place;		/* the slot a schedule gives it, or PAGE_NONE */
	uint32_t alias;		/* slot it stays mapped to, or PAGE_NONE */
	struct event *saved;	/* referenced; last copy to the arena */
	uint32_t stamp;		/* of the last set that named it */
	uint32_t older;		/* resident: neighbours by age, or PAGE_NONE */
	uint32_t newer;
};

/* Devices with a window; fixed once entered.  Reads need no lock. */
extern struct device *device_list[DEVICE_MAX];
extern int device_nr;

/* The device whose window holds the address, or NULL.  No lock. */
static inline struct device *device_find(CUdeviceptr p)
{
	int n = __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE);

	for (int i = 0; i < n; i++) {
		struct device *d = device_list[i];

		if (p - d->window < d->window_size)
			return d;
	}
	return NULL;
}

static inline uint32_t device_page(const struct device *d, CUdeviceptr p)
{
	return (uint32_t)((p - d->window) >> d->page_shift);
}

static inline CUdeviceptr device_address(const struct device *d, uint32_t page)
{
	return d->window + ((uint64_t)page << d->page_shift);
}

static inline uint64_t device_word(const struct device *d, uint32_t page)
{
	return __atomic_load_n(&d->words[page], __ATOMIC_RELAXED);
}

/* Whoever looked up what a pointer reaches has to do it again. */
static inline void device_reach_changed(struct device *d)
{
	__atomic_fetch_add(&d->reach_gen, 1, __ATOMIC_SEQ_CST);
}

/*
 * The device of the current context, its window reserved on first use.  NULL:
 * no context, or the device cannot be managed (said once in the log); the
 * caller passes the call through.
 */
struct device *device_current(void);

/*
 * Maps [va, va + n pages) to the chunks' handles and grants read and write.
 * All or nothing: what was mapped is unmapped again on failure.
 */
CUresult device_map(struct device *d, CUdeviceptr va, uint32_t n,
	const CUmemGenericAllocationHandle *handles) WARN_UNUSED;
/*
 * Device `by` may use the memory of device `of`, which need not be managed yet:
 * what is mapped from now on is granted to it.
 */
void device_peer_add(CUdevice of, CUdevice by);
/* Grants every peer access to mapped pages; device_map() does it by itself. */
CUresult device_grant(struct device *d, CUdeviceptr va, uint32_t n)
	WARN_UNUSED;
/* Unmaps whole pages that are mapped.  Nobody may be using them. */
CUresult device_unmap(struct device *d, CUdeviceptr va, uint32_t n);

#endif
