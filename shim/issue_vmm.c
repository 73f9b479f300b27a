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
#include "shim/phase.h"
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
	if (r == CUDA_SUCCESS)
		phase_allocated(d);
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

/* ---- what lasts ---- */

static bool held(bool ours)
{
	if (ours) {
		stat_add(refused, 1);
		log_once(LOG_ERROR, "a multicast object or a sparse array over "
			"managed memory is refused; manage_vmm = false leaves "
			"the program's own mappings to the driver, a larger "
			"min_alloc its allocations");
	}
	return ours;
}

bool issue_vmm_held(CUmemGenericAllocationHandle value)
{
	return held(vmm_is_handle(value));
}

bool issue_vmm_held_at(CUdeviceptr p)
{
	struct vmm_info v;

	/* What is the driver's own in a reservation of ours cannot move. */
	return device_find(p) != NULL && !(vmm_info(p, &v) && v.native) &&
		held(true);
}

/* ---- questions ---- */

static CUresult put(void *data, uint64_t v, size_t size)
{
	memcpy(data, &v, size);		/* the low bytes */
	return CUDA_SUCCESS;
}

/* What is mapped at p; some questions have no answer where nothing is. */
static CUresult answer_mapping(void *data, CUpointer_attribute attr,
	const struct vmm_info *v)
{
	if (v->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return put(data, v->id, 8);
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return put(data, v->base, 8);
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		return put(data, v->size, 8);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult answer(void *data, CUpointer_attribute attr, CUdeviceptr p,
	const struct vmm_info *v)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		return put(data, p, 8);
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		return put(data, v->range, 8);
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return put(data, v->range_size, 8);
	/* Such memory belongs to no context, no pool, no other process. */
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		return put(data, 0, 8);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return put(data, CU_MEMORYTYPE_DEVICE, 4);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return put(data, (uint64_t)v->device->ordinal, 4);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return put(data, v->access, 4);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return put(data, v->size > 0, 1);
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return put(data, v->rdma, 1);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		return put(data, 0, 1);
	default:
		return answer_mapping(data, attr, v);
	}
}

/* Of the driver's mappings it knows all but the reservation. */
static bool is_ours(const struct vmm_info *v, CUpointer_attribute attr)
{
	return !v->native || attr == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
		attr == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

bool issue_vmm_attribute(void *data, CUpointer_attribute attr, CUdeviceptr p,
	CUresult *r)
{
	struct vmm_info v;

	if (data == NULL || !vmm_info(p, &v) || !is_ours(&v, attr))
		return false;
	*r = answer(data, attr, p, &v);
	return true;
}

bool issue_vmm_attributes(unsigned int n, const CUpointer_attribute *attrs,
	void **data, CUdeviceptr p, CUresult *r)
{
	struct vmm_info v;

	if (n == 0 || attrs == NULL || data == NULL || !vmm_info(p, &v))
		return false;
	*r = CUDA_SUCCESS;
	if (v.native)
		*r = real.cuPointerGetAttributes(n,
			(CUpointer_attribute *)attrs, data, p);
	for (unsigned int i = 0; i < n && *r == CUDA_SUCCESS; i++)
		if (data[i] != NULL && is_ours(&v, attrs[i]) &&
		    answer(data[i], attrs[i], p, &v) != CUDA_SUCCESS &&
		    attrs[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
			put(data[i], 0, 8);
	return true;
}

bool issue_vmm_range(CUdeviceptr p, CUdeviceptr *base, size_t *size)
{
	struct vmm_info v;

	if (!vmm_info(p, &v) || v.size == 0)
		return false;
	*base = v.base;
	*size = v.size;
	return true;
}
