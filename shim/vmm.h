/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own virtual memory management: reservations that lie in our
 * window, and handles of ours.  A handle of ours owns no GPU memory until it
 * is mapped; then its bytes are managed like those of any allocation.  What
 * only the driver can do with memory (two addresses at once, other devices)
 * turns it into a native handle behind the program's back.
 *
 * Called by issue_vmm.  Calls that change mappings want a context of the
 * device to be current.  Any thread; the tables are guarded by vmm_lock, which
 * is never held while the driver works.
 */
#ifndef BALLAST_VMM_H
#define BALLAST_VMM_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"
#include "shim/device.h"

/* ---- handles ---- */

/* Whether the number is one of ours, alive or not. */
bool vmm_is_handle(CUmemGenericAllocationHandle value);
/* The device of a handle of ours, NULL: there is no such handle. */
struct device *vmm_device(CUmemGenericAllocationHandle value);

/*
 * size is a multiple of d's page size, prop asks for plain memory of d.
 * CUDA_ERROR_OUT_OF_MEMORY: neither GPU nor arena could hold it.
 */
CUresult vmm_create(struct device *d, size_t size,
	const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *out);
CUresult vmm_release(CUmemGenericAllocationHandle value);
CUresult vmm_properties(CUmemGenericAllocationHandle value,
	CUmemAllocationProp *out);
/* The handle mapped at an address of the window. */
CUresult vmm_retain(CUdeviceptr p, CUmemGenericAllocationHandle *out);
/*
 * *h is a reference to a handle of the driver: where one of ours stands for
 * it, *h becomes a reference to that one instead.
 */
void vmm_translate(CUmemGenericAllocationHandle *h);

/* ---- reservations and mappings ---- */

/* 0: none could be had in the window; then the driver may serve it. */
CUdeviceptr vmm_reserve(struct device *d, size_t size, size_t align);
CUresult vmm_unreserve(CUdeviceptr p, size_t size);
/* The handle, the address, or both are ours. */
CUresult vmm_map(CUdeviceptr p, size_t size, size_t offset,
	CUmemGenericAllocationHandle value);
/* What follows is about addresses in the window. */
CUresult vmm_unmap(CUdeviceptr p, size_t size);
CUresult vmm_set_access(CUdeviceptr p, size_t size,
	const CUmemAccessDesc *desc, size_t n);
CUresult vmm_get_access(unsigned long long *flags, const CUmemLocation *where,
	CUdeviceptr p);

/* What there is to know of an address in a reservation. */
struct vmm_info {
	struct device *device;
	CUdeviceptr range;	/* the reservation */
	size_t range_size;
	CUdeviceptr base;	/* the mapping; size 0: nothing is mapped */
	size_t size;
	bool native;		/* it is the driver's own */
	/* Where it is ours: */
	uint64_t id;
	unsigned access;
	bool rdma;
};

/* false: p lies in no reservation of the window. */
bool vmm_info(CUdeviceptr p, struct vmm_info *info);
/*
 * Whether a copy may read, or write, [p, p + n), which lies in one reservation:
 * there are no holes in it, and the program gave the rights.  Of the driver's own
 * mappings the driver knows.
 */
bool vmm_usable(CUdeviceptr p, size_t n, bool write);

#endif
