/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain device memory: cuMemAlloc and its kin.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MEMORY_H
#define SOFTCUDA_MEMORY_H

#include "test/softcuda/space.h"

/* One allocation of cuMemAlloc, as the program sees it. */
struct memory_range {
	uint64_t address, size;
	struct map *map;
};

/* For a module's variables too. */
CUresult memory_alloc(struct context *ctx, CUdeviceptr *out, size_t size);
CUresult memory_free(CUdeviceptr address);
/* The cuMemAlloc allocation that holds `address`. */
bool memory_range(uint64_t address, struct memory_range *out);
/*
 * Bytes from `address` on that belong to the same live allocation (up to its
 * last unit of 512); 0 when it lies in none.  Mapped memory and host memory
 * have no such ends: all the bytes of the mapping.
 */
uint64_t memory_reach(const struct map *m, uint64_t address);
/*
 * The same for an operation that is under way: stream-ordered memory ends when
 * its free is reached, not when it is called.
 */
uint64_t memory_reach_running(const struct map *m, uint64_t address);
/* Has ends as above. */
static inline bool memory_has_ends(const struct map *m)
{
	return m->region && m->region->kind != REGION_RESERVED;
}
/* Another process's cuMemAlloc: a mapping of the block for `ctx`, or NULL. */
struct map *memory_open(struct context *ctx, struct block *b);
/* Ends such a mapping. */
void memory_close(struct map *m);
void memory_context_end(struct context *ctx);

#endif
