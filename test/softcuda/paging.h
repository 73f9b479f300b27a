/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels pay for memory that is not on their device: host memory that
 * they read over the link, and with SOFTCUDA_UVM=1 pages that they fault in.
 * Called by launch.c around a kernel, by access.c for copies, by block.c.
 * Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_PAGING_H
#define SOFTCUDA_PAGING_H

#include <stdbool.h>
#include <stdint.h>

#include "test/softcuda/link.h"

struct block;
struct uvm_page;

/* What a kernel did off its device. */
struct paging_cost {
	uint64_t host_bytes;	/* all accesses to host memory */
	uint64_t link_ns;	/* what they take on the link */
	/* Of that, by direction, how long copies of as much would take. */
	uint64_t ways_ns[NR_LINK_DIRECTIONS];
	uint64_t fault_ns;	/* the kernel stood still so long */
};

/* Whether kernels' accesses must be shown to paging_touch(). */
bool paging_wanted(void);
/* The running kernel accesses [off, off + size) of a block. */
void paging_touch(struct block *b, uint64_t off, uint64_t size, bool write);
/* The kernel is over: what its accesses cost. */
struct paging_cost paging_end(void);
/* A copy or memset writes or reads there; it moves no pages. */
void paging_copy(struct block *b, uint64_t off, uint64_t size, bool write);

/*
 * The block's pages are managed: on the device as far as there is room.  false:
 * the host has none for so many.
 */
bool paging_manage(struct block *b);
/* The block's bytes are gone. */
void paging_forget(struct block *b);
/* Bytes of managed pages on a device. */
uint64_t paging_used(int device);

#endif
