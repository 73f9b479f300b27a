/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages that one launch or copy touches, as ranges in order, with the
 * stream that will touch them.  Lives on the caller's stack; not copied, since
 * it may point into itself.  No lock: one thread's.
 */
#ifndef BALLAST_PAGE_SET_H
#define BALLAST_PAGE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"

#define PAGE_SET_FEW 16

struct context;
struct device;

struct page_range {
	uint32_t first;
	uint32_t nr;
};

struct page_set {
	struct device *device;
	struct context *caller;		/* current; the stream's */
	struct context *context;	/* of the device; moves the bytes */
	CUstream stream;		/* 0x1 and 0x2 for the default ones */
	bool writes;			/* the call may change the pages */
	bool launch;			/* it is a kernel */
	bool cut;			/* made as large as fits, not needed */
	uint32_t nr;
	uint32_t max;
	struct page_range *ranges;	/* `few`, or owned; apart, rising */
	/* While acquired: what exactly was pinned for it. */
	uint32_t *pins;			/* owned; pool slots */
	uint32_t nr_pins;
	struct page_range few[PAGE_SET_FEW];
};

void page_set_init(struct page_set *s, struct device *d, CUstream stream);
/* Empties it; it can be filled again. */
void page_set_clear(struct page_set *s);
/* Adds pages [first, last].  false: no memory; the set is as before. */
bool page_set_add(struct page_set *s, uint32_t first, uint32_t last)
	WARN_UNUSED;
/* s may be NULL: an empty set. */
bool page_set_has(const struct page_set *s, uint32_t page);
uint64_t page_set_pages(const struct page_set *s);

#define for_each_page(s, r, page) \
	for (uint32_t r = 0; r < (s)->nr; r++) \
		for (uint32_t page = (s)->ranges[r].first; \
		     page < (s)->ranges[r].first + (s)->ranges[r].nr; page++)

#endif
