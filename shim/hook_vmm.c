/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own virtual memory management.  `native`: neither the handle
 * nor the address is ours, so the call is the driver's.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult r;
	bool native;

	if (!init_active())
		return REAL(cuMemCreate)(out, size, prop, flags);
	r = issue_vmm_create(out, size, prop, flags, &native);
	if (!native)
		return r;
	r = real.cuMemCreate(out, size, prop, flags);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && issue_make_room(size))
		r = real.cuMemCreate(out, size, prop, flags);
	return r;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle h)
{
	CUresult r;
	bool native;

	if (!init_active())
		return REAL(cuMemRelease)(h);
	r = issue_vmm_release(h, &native);
	if (!native)
		return r;
	r = real.cuMemRelease(h);
	if (r == CUDA_SUCCESS)
		issue_native_freed();
	return r;
}

EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out,
	void *p)
{
	CUresult r;
	bool native;

	if (!init_active())
		return REAL(cuMemRetainAllocationHandle)(out, p);
	r = issue_vmm_retain(out, (CUdeviceptr)(uintptr_t)p, &native);
	if (!native)
		return r;
	r = real.cuMemRetainAllocationHandle(out, p);
	if (r == CUDA_SUCCESS)
		issue_vmm_retained(out);
	return r;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
	CUmemGenericAllocationHandle h)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_properties(out, h, &native);
	return native ? REAL(cuMemGetAllocationPropertiesFromHandle)(out, h) :
		r;
}

EXPORT CUresult cuMemExportToShareableHandle(void *out,
	CUmemGenericAllocationHandle h, CUmemAllocationHandleType type,
	unsigned long long flags)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_export(h, &native);
	return native ? REAL(cuMemExportToShareableHandle)(out, h, type,
		flags) : r;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *out,
	const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags flags)
{
	CUresult r = REAL(cuMemGetAllocationGranularity)(out, prop, flags);

	/* Our pages may be larger; what fits them fits the driver. */
	if (r == CUDA_SUCCESS && init_active())
		issue_vmm_granularity(out, prop);
	return r;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size,
	size_t align, CUdeviceptr hint, unsigned long long flags)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_reserve(out, size, align, hint, flags, &native);
	return native ? REAL(cuMemAddressReserve)(out, size, align, hint,
		flags) : r;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr p, size_t size)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_unreserve(p, size, &native);
	return native ? REAL(cuMemAddressFree)(p, size) : r;
}

EXPORT CUresult cuMemMap(CUdeviceptr p, size_t size, size_t offset,
	CUmemGenericAllocationHandle h, unsigned long long flags)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_map(p, size, offset, h, flags, &native);
	return native ? REAL(cuMemMap)(p, size, offset, h, flags) : r;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr p, size_t size)
{
	CUresult r;
	bool native;

	if (!init_active())
		return REAL(cuMemUnmap)(p, size);
	r = issue_vmm_unmap(p, size, &native);
	if (!native)
		return r;
	r = real.cuMemUnmap(p, size);
	if (r == CUDA_SUCCESS)
		issue_native_freed();
	return r;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr p, size_t size,
	const CUmemAccessDesc *desc, size_t n)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_set_access(p, size, desc, n, &native);
	return native ? REAL(cuMemSetAccess)(p, size, desc, n) : r;
}

EXPORT CUresult cuMemGetAccess(unsigned long long *flags,
	const CUmemLocation *where, CUdeviceptr p)
{
	CUresult r = CUDA_SUCCESS;
	bool native = true;

	if (init_active())
		r = issue_vmm_get_access(flags, where, p, &native);
	return native ? REAL(cuMemGetAccess)(flags, where, p) : r;
}

/* ---- what keeps hold of a handle ---- */

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle group,
	size_t at, CUmemGenericAllocationHandle h, size_t offset, size_t size,
	unsigned long long flags)
{
	if (init_active() && issue_vmm_held(h))
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuMulticastBindMem)(group, at, h, offset, size, flags);
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle group,
	size_t at, CUdeviceptr p, size_t size, unsigned long long flags)
{
	if (init_active() && issue_vmm_held_at(p))
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuMulticastBindAddr)(group, at, p, size, flags);
}

#define MAP_ARRAY(symbol) \
	EXPORT CUresult symbol(CUarrayMapInfo *list, unsigned int n, \
		CUstream s) \
	{ \
		if (init_active() && list != NULL) \
			for (unsigned int k = 0; k < n; k++) \
				if (issue_vmm_held(list[k].memHandle.memHandle)) \
					return CUDA_ERROR_NOT_SUPPORTED; \
		return REAL(symbol)(list, n, s); \
	}

MAP_ARRAY(cuMemMapArrayAsync)
MAP_ARRAY(cuMemMapArrayAsync_ptsz)
