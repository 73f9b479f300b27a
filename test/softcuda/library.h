/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: code that belongs to no context and is loaded as a module in each
 * context that uses it.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_LIBRARY_H
#define SOFTCUDA_LIBRARY_H

#include "test/softcuda/device.h"
#include "test/softcuda/module.h"

struct library;

struct kernel {
	struct object object;
	struct library *library;	/* borrowed; it owns this */
	struct ptx_kernel_info info;
	/* By device; -1 where cuKernelSetAttribute was not called. */
	int max_dynamic_shared[DEVICE_MAX];
	int carveout[DEVICE_MAX];
	struct kernel *next;
};

/* The kernel's function in a context, whose module is loaded if need be. */
CUresult library_function(struct kernel *k, struct context *ctx,
	struct function **out);

#endif
