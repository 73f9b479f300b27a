/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's virtual memory calls on their way to vmm: which reservations
 * and handles are ours, and a context of the device for those that change
 * mappings.
 */
#include <string.h>

#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/init.h"
#include "shim/issue_int.h"
#include "shim/log.h"
#include "shim/stats.h"
#include "shim/vmm.h"

/*
 * The managed device that an allocation is to lie on, NULL: none.  The first
 * call brings up the current device only; others stay with the driver.
 */
static struct device *device_of(const CUmemAllocationProp *prop)
{
	struct device *d;

	if (!conf.manage_vmm || prop == NULL ||
	    prop->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return NULL;
	issue_device();
	for (int n = 0; n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE);
	     n++) {
		d = device_list[n];
		if (d->ordinal == prop->location.id &&
		    __atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) != NULL)
			return d;
	}
	return NULL;
}

/* Makes a context of d current where none is; false: there is no such. */
static bool enter(struct device *d, bool *pushed)
{
	struct context *c = context_current();

	*pushed = false;
	if (c != NULL && c->ordinal == d->ordinal)
		return true;
	c = context_of_device(d->ordinal);
	*pushed = c != NULL &&
		real.cuCtxPushCurrent_v2(c->handle) == CUDA_SUCCESS;
	return *pushed;
}

static void leave(bool pushed)
{
	CUcontext popped;

	if (pushed)
		real.cuCtxPopCurrent_v2(&popped);
}

/* ---- handles ---- */

CUresult issue_vmm_create(CUmemGenericAllocationHandle *out, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags,
	bool *native)
{
	struct device *d;
	CUresult r = CUDA_SUCCESS;

	init_enter();
	d = device_of(prop);
	/* What others shall share, and what only the driver can make. */
	*native = d == NULL || out == NULL || flags != 0 || size == 0 ||
		(size & (d->page_size - 1)) != 0 ||
		prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE ||
		prop->allocFlags.compressionType != 0 ||
		prop->allocFlags.usage != 0;
	if (!*native) {
		r = vmm_create(d, size, prop, out);
		if (r == CUDA_ERROR_OUT_OF_MEMORY)
			issue_say_full(d, size, "cuMemCreate");
	}
	init_leave();
	return r;
}

CUresult issue_vmm_release(CUmemGenericAllocationHandle value, bool *native)
{
	struct device *d;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	bool pushed;

	*native = !vmm_is_handle(value);
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	d = vmm_device(value);
	if (d != NULL) {
		/* Without a context there is no work to wait for. */
		enter(d, &pushed);
		r = vmm_release(value);
		leave(pushed);
	}
	init_leave();
	return r;
}

CUresult issue_vmm_retain(CUmemGenericAllocationHandle *out, CUdeviceptr p,
	bool *native)
{
	CUresult r;

	*native = device_find(p) == NULL;
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	r = vmm_retain(p, out);
	init_leave();
	return r;
}

void issue_vmm_retained(CUmemGenericAllocationHandle *h)
{
	init_enter();
	vmm_translate(h);
	init_leave();
}

CUresult issue_vmm_properties(CUmemAllocationProp *out,
	CUmemGenericAllocationHandle value, bool *native)
{
	*native = !vmm_is_handle(value);
	return *native ? CUDA_SUCCESS : vmm_properties(value, out);
}

CUresult issue_vmm_export(CUmemGenericAllocationHandle value, bool *native)
{
	*native = !vmm_is_handle(value);
	/* None of ours was created to be exported. */
	return CUDA_ERROR_INVALID_VALUE;
}

void issue_vmm_granularity(size_t *out, const CUmemAllocationProp *prop)
{
	struct device *d;

	init_enter();
	d = device_of(prop);
	if (d != NULL && *out < d->page_size)
		*out = d->page_size;
	init_leave();
}

/* ---- addresses ---- */

CUresult issue_vmm_reserve(CUdeviceptr *out, size_t size, size_t align,
	CUdeviceptr hint, unsigned long long flags, bool *native)
{
	struct device *d;
	CUdeviceptr p = 0;

	*native = true;
	if (!conf.manage_vmm || out == NULL || hint != 0 || flags != 0 ||
	    (align & (align - 1)) != 0)
		return CUDA_SUCCESS;
	init_enter();
	d = issue_device();
	if (d != NULL && size >= d->page_size &&
	    (size & (d->page_size - 1)) == 0)
		p = vmm_reserve(d, size, align);
	init_leave();
	if (p != 0) {
		*native = false;
		*out = p;
	}
	return CUDA_SUCCESS;
}

CUresult issue_vmm_unreserve(CUdeviceptr p, size_t size, bool *native)
{
	struct device *d = device_find(p);
	CUresult r;
	bool pushed;

	*native = d == NULL;
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	enter(d, &pushed);
	r = vmm_unreserve(p, size);
	leave(pushed);
	init_leave();
	return r;
}

CUresult issue_vmm_map(CUdeviceptr p, size_t size, size_t offset,
	CUmemGenericAllocationHandle value, unsigned long long flags,
	bool *native)
{
	struct device *d = device_find(p);
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	bool pushed;

	*native = d == NULL && !vmm_is_handle(value);
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	if (d == NULL)
		d = vmm_device(value);
	if (d == NULL || flags != 0)
		goto out;
	r = CUDA_ERROR_INVALID_CONTEXT;
	if (!enter(d, &pushed))
		goto out;
	r = vmm_map(p, size, offset, value);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		issue_say_full(d, size, "cuMemMap");
	leave(pushed);
out:
	init_leave();
	return r;
}

CUresult issue_vmm_unmap(CUdeviceptr p, size_t size, bool *native)
{
	struct device *d = device_find(p);
	CUresult r;
	bool pushed;

	*native = d == NULL;
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	enter(d, &pushed);
	r = vmm_unmap(p, size);
	leave(pushed);
	init_leave();
	return r;
}

CUresult issue_vmm_set_access(CUdeviceptr p, size_t size,
	const CUmemAccessDesc *desc, size_t n, bool *native)
{
	struct device *d = device_find(p);
	CUresult r;
	bool pushed;

	*native = d == NULL;
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	enter(d, &pushed);
	r = vmm_set_access(p, size, desc, n);
	leave(pushed);
	init_leave();
	return r;
}

CUresult issue_vmm_get_access(unsigned long long *flags,
	const CUmemLocation *where, CUdeviceptr p, bool *native)
{
	CUresult r;

	*native = device_find(p) == NULL;
	if (*native)
		return CUDA_SUCCESS;
	init_enter();
	r = vmm_get_access(flags, where, p);
	init_leave();
	return r;
}
