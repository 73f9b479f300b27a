/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: handles and what is behind them.
 * Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_VMM_H
#define SOFTCUDA_VMM_H

#include "test/softcuda/block.h"

/* Handles of cuMemCreate not released. */
unsigned vmm_nr_handles(void);
/* A handle for the block, or one more reference to the one it has. */
uint64_t vmm_handle(struct block *b);
/* The block of a handle, NULL: there is no such handle. */
struct block *vmm_block(uint64_t value);
/* The one that has a handle and is shared by this file; NULL: none. */
struct block *vmm_block_of_file(uint64_t file);

#endif
