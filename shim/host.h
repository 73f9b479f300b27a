/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the GPU reaches at the very addresses of the window: one
 * driver handle a page, like chunks, and as much of it as the arena leaves.
 * Guarded by the device's pool_lock unless a function says otherwise.
 */
#ifndef BALLAST_HOST_H
#define BALLAST_HOST_H

#include <stdint.h>

#include "shim/compiler.h"
#include "shim/device.h"

/* What the driver says about it; no lock. */
bool host_supported(const struct device *d);
/* Whether there are reports that it does not work all the same. */
bool host_doubtful(const struct device *d);
/*
 * Whether the device can do that; tried out at `at`, a page of address space
 * that nothing is mapped to.  NULL: it can; or why not.  A context is current.
 * Once for each device.
 */
const char *host_start(struct device *d, CUdeviceptr at);

/* Up to `want` handles into out[]; returns how many.  After host_start(). */
uint32_t host_take(struct device *d, uint32_t want, uint32_t *out)
	REQUIRES(&d->pool_lock);
/* It is mapped nowhere. */
void host_give(struct device *d, uint32_t index) REQUIRES(&d->pool_lock);
/* Needs no lock for one that the caller owns. */
CUmemGenericAllocationHandle host_handle(const struct device *d,
	uint32_t index);

#endif
