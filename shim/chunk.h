/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU physical memory: driver handles of one size per device, made once and
 * recycled.  A chunk is known by its index.  Guarded by the device's
 * pool_lock unless a function says otherwise.
 */
#ifndef BALLAST_CHUNK_H
#define BALLAST_CHUNK_H

#include <stdint.h>

#include "shim/compiler.h"
#include "shim/device.h"

#define CHUNK_NONE UINT32_MAX

/* 0 or -ENOMEM.  Before the device's first chunk. */
int chunk_start(struct device *d) WARN_UNUSED;

/*
 * Up to `want` chunks into out[]: recycled ones first, then new ones while
 * the budget and the driver allow.  Returns how many.  Calls the driver with
 * pool_lock held: cuMemCreate waits for no work on the GPU.
 */
uint32_t chunk_take(struct device *d, uint32_t want, uint32_t *out)
	REQUIRES(&d->pool_lock);
/* Back to the recycled ones.  It is mapped nowhere. */
void chunk_recycle(struct device *d, uint32_t chunk)
	REQUIRES(&d->pool_lock);
/*
 * Gives up to n recycled chunks back to the driver, so that the program's own
 * allocations find room.  Returns how many.
 */
uint32_t chunk_surrender(struct device *d, uint32_t n)
	REQUIRES(&d->pool_lock);

/* The driver's handle; needs no lock for a chunk that the caller owns. */
CUmemGenericAllocationHandle chunk_handle(const struct device *d,
	uint32_t chunk);
/* Chunks that chunk_take() could give now, by budget and recycling. */
uint32_t chunk_nr_available(const struct device *d)
	REQUIRES(&d->pool_lock);
/* Chunks that exist. */
uint32_t chunk_nr_live(const struct device *d) REQUIRES(&d->pool_lock);
/* Recycled chunks that nobody uses. */
uint32_t chunk_nr_idle(const struct device *d) REQUIRES(&d->pool_lock);

#endif
