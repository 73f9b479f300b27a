/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocating, freeing, and questions about memory.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size)
{
	CUresult r;
	bool native;

	if (!init_active())
		return REAL(cuMemAlloc_v2)(p, size);
	r = issue_alloc(p, size, &native);
	if (!native)
		return r;
	r = real.cuMemAlloc_v2(p, size);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && issue_make_room(size))
		r = real.cuMemAlloc_v2(p, size);
	issue_native(r, p, size);
	return r;
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width,
	size_t height, unsigned int element)
{
	CUresult r;
	bool native;

	if (!init_active() || height == 0 || width > SIZE_MAX / height)
		return REAL(cuMemAllocPitch_v2)(p, pitch, width, height,
			element);
	r = issue_alloc_pitch(p, pitch, width, height, element, &native);
	if (!native)
		return r;
	r = real.cuMemAllocPitch_v2(p, pitch, width, height, element);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && issue_make_room(width * height))
		r = real.cuMemAllocPitch_v2(p, pitch, width, height, element);
	issue_native(r, p, width * height);
	return r;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
	CUresult r;
	bool native;

	if (!init_active())
		return REAL(cuMemFree_v2)(p);
	r = issue_free(p, &native);
	if (!native)
		return r;
	r = real.cuMemFree_v2(p);
	if (r == CUDA_SUCCESS && p != 0)
		issue_native_freed();
	return r;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	size_t f, t;
	CUresult r;

	if (!init_active())
		return REAL(cuMemGetInfo_v2)(free_bytes, total);
	/* The driver takes NULL for what is not wanted. */
	r = real.cuMemGetInfo_v2(&f, &t);
	if (r != CUDA_SUCCESS)
		return r;
	issue_memory_info(&f, t);
	if (free_bytes != NULL)
		*free_bytes = f;
	if (total != NULL)
		*total = t;
	return r;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
	CUdeviceptr p)
{
	CUdeviceptr b;
	CUresult r;
	size_t n;

	if (!init_active() || !issue_address_range(p, &b, &n, &r))
		return REAL(cuMemGetAddressRange_v2)(base, size, p);
	if (r != CUDA_SUCCESS)
		return r;
	if (base != NULL)
		*base = b;
	if (size != NULL)
		*size = n;
	return CUDA_SUCCESS;
}

/* ---- in stream order ---- */

#define ALLOC_ASYNC(symbol, order) \
	EXPORT CUresult symbol(CUdeviceptr *p, size_t size, CUstream s) \
	{ \
		CUresult r; \
		bool native; \
		\
		if (!init_active()) \
			return REAL(symbol)(p, size, s); \
		r = issue_alloc_async(p, size, order, &native); \
		if (!native) \
			return r; \
		r = real.symbol(p, size, s); \
		if (r == CUDA_ERROR_OUT_OF_MEMORY && issue_make_room(size)) \
			r = real.symbol(p, size, s); \
		issue_native(r, p, size); \
		return r; \
	}
#define FREE_ASYNC(symbol, order) \
	EXPORT CUresult symbol(CUdeviceptr p, CUstream s) \
	{ \
		CUresult r; \
		bool native; \
		\
		if (!init_active()) \
			return REAL(symbol)(p, s); \
		r = issue_free_async(p, order, &native); \
		return native ? real.symbol(p, s) : r; \
	}
/* Memory of a pool the program made itself may be shared; it is not ours. */
#define ALLOC_POOL(symbol) \
	EXPORT CUresult symbol(CUdeviceptr *p, size_t size, \
		CUmemoryPool pool, CUstream s) \
	{ \
		CUresult r = REAL(symbol)(p, size, pool, s); \
		\
		if (r == CUDA_ERROR_OUT_OF_MEMORY && init_active() && \
		    issue_make_room(size)) \
			r = real.symbol(p, size, pool, s); \
		return r; \
	}

ALLOC_ASYNC(cuMemAllocAsync, ISSUE_LEGACY(s))
ALLOC_ASYNC(cuMemAllocAsync_ptsz, ISSUE_PTSZ(s))
FREE_ASYNC(cuMemFreeAsync, ISSUE_LEGACY(s))
FREE_ASYNC(cuMemFreeAsync_ptsz, ISSUE_PTSZ(s))
ALLOC_POOL(cuMemAllocFromPoolAsync)
ALLOC_POOL(cuMemAllocFromPoolAsync_ptsz)

EXPORT CUresult cuDeviceSetMemPool(CUdevice d, CUmemoryPool pool)
{
	CUresult r = REAL(cuDeviceSetMemPool)(d, pool);

	if (r == CUDA_SUCCESS && init_active())
		issue_pool_set();
	return r;
}

EXPORT CUresult cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type,
	CUmemoryPool pool)
{
	CUresult r = REAL(cuMemSetMemPool)(where, type, pool);

	if (r == CUDA_SUCCESS && init_active())
		issue_pool_set();
	return r;
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool,
	CUmemPool_attribute attr, void *value)
{
	CUresult r = REAL(cuMemPoolGetAttribute)(pool, attr, value);

	if (r == CUDA_SUCCESS && init_active())
		issue_pool_attribute(pool, attr, value);
	return r;
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool,
	CUmemPool_attribute attr, void *value)
{
	CUresult r = REAL(cuMemPoolSetAttribute)(pool, attr, value);

	if (r == CUDA_SUCCESS && init_active())
		issue_pool_attribute_set(pool, attr);
	return r;
}

EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool pool,
	const CUmemAccessDesc *desc, size_t n)
{
	CUresult r = REAL(cuMemPoolSetAccess)(pool, desc, n);

	if (r == CUDA_SUCCESS && init_active())
		r = issue_pool_shared(pool, desc, n);
	return r;
}
