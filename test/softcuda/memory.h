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
void memory_context_end(struct context *ctx);

#endif
