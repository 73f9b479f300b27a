/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools and stream-ordered allocation as the program calls them.  Guarded by
 * the driver's lock.  Pools of host memory are refused.
 */
#include "test/softcuda/mempool.h"

#include <string.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/report.h"

static struct mempool *current[DEVICE_MAX];	/* NULL: the default one */

static struct mempool *current_pool(int device)
{
	return current[device] ? current[device] : mempool_default(device);
}

static struct mempool *find(CUmemoryPool handle)
{
	return object_find(handle, OBJECT_MEMPOOL);
}

/* ---- allocation ------------------------------------------------------------------ */

static CUresult alloc(struct context *ctx, CUdeviceptr *out, size_t size,
	CUstream stream, enum stream_default zero)
{
	struct stream *s;
	CUresult r = stream_find(ctx, stream, zero, &s);

	return r ? r : mempool_alloc(current_pool(s->context->device), s, size,
		out);
}

static CUresult alloc_from(struct context *ctx, CUdeviceptr *out, size_t size,
	CUmemoryPool pool, CUstream stream, enum stream_default zero)
{
	struct mempool *p = find(pool);
	struct stream *s;
	CUresult r = stream_find(ctx, stream, zero, &s);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return r ? r : mempool_alloc(p, s, size, out);
}

static CUresult free_async(struct context *ctx, CUdeviceptr address,
	CUstream stream, enum stream_default zero)
{
	struct stream *s;
	CUresult r = stream_find(ctx, stream, zero, &s);

	if (r || !address)
		return r;
	return mempool_free(address, s);
}

#define CALL(name, need, action, ...) \
CUresult name(__VA_ARGS__) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, need)) \
		c.result = action; \
	return call_end(&c); \
}

CALL(cuMemAllocAsync, CALL_CONTEXT,
	alloc(c.context, out, size, stream, STREAM_0_LEGACY),
	CUdeviceptr *out, size_t size, CUstream stream)
CALL(cuMemAllocAsync_ptsz, CALL_CONTEXT,
	alloc(c.context, out, size, stream, STREAM_0_PER_THREAD),
	CUdeviceptr *out, size_t size, CUstream stream)
CALL(cuMemAllocFromPoolAsync, CALL_CONTEXT,
	alloc_from(c.context, out, size, pool, stream, STREAM_0_LEGACY),
	CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
CALL(cuMemAllocFromPoolAsync_ptsz, CALL_CONTEXT,
	alloc_from(c.context, out, size, pool, stream, STREAM_0_PER_THREAD),
	CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream)
CALL(cuMemFreeAsync, CALL_CONTEXT | CALL_FREES,
	free_async(c.context, address, stream, STREAM_0_LEGACY),
	CUdeviceptr address, CUstream stream)
CALL(cuMemFreeAsync_ptsz, CALL_CONTEXT | CALL_FREES,
	free_async(c.context, address, stream, STREAM_0_PER_THREAD),
	CUdeviceptr address, CUstream stream)

/* ---- pools of devices -------------------------------------------------------------- */

static CUresult give(CUmemoryPool *out, CUdevice dev, bool the_default)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = (CUmemoryPool)(the_default ? mempool_default(dev)
		: current_pool(dev));
	return CUDA_SUCCESS;
}

static CUresult set_pool(CUdevice dev, CUmemoryPool pool)
{
	struct mempool *p = find(pool);

	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!p || p->device != dev || p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	current[dev] = p;
	return CUDA_SUCCESS;
}

CALL(cuDeviceGetDefaultMemPool, CALL_INIT, give(out, dev, true),
	CUmemoryPool *out, CUdevice dev)
CALL(cuDeviceGetMemPool, CALL_INIT, give(out, dev, false),
	CUmemoryPool *out, CUdevice dev)
CALL(cuDeviceSetMemPool, CALL_INIT, set_pool(dev, pool),
	CUdevice dev, CUmemoryPool pool)

/* The device that a location names; host pools are refused. */
static CUresult locate(const CUmemLocation *where, CUmemAllocationType type,
	CUdevice *dev)
{
	if (!where || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (where->type != CU_MEM_LOCATION_TYPE_DEVICE) {
		report_log("pools of host memory are not supported");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	*dev = where->id;
	return device_valid(*dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult give_located(CUmemoryPool *out, const CUmemLocation *where,
	CUmemAllocationType type, bool the_default)
{
	CUdevice dev;
	CUresult r = locate(where, type, &dev);

	return r ? r : give(out, dev, the_default);
}

static CUresult set_located(const CUmemLocation *where,
	CUmemAllocationType type, CUmemoryPool pool)
{
	CUdevice dev;
	CUresult r = locate(where, type, &dev);

	return r ? r : set_pool(dev, pool);
}

CALL(cuMemGetDefaultMemPool, CALL_INIT, give_located(out, where, type, true),
	CUmemoryPool *out, CUmemLocation *where, CUmemAllocationType type)
CALL(cuMemGetMemPool, CALL_INIT, give_located(out, where, type, false),
	CUmemoryPool *out, CUmemLocation *where, CUmemAllocationType type)
CALL(cuMemSetMemPool, CALL_INIT, set_located(where, type, pool),
	CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)

/* ---- pools of the program ----------------------------------------------------------- */

static CUresult create(CUmemoryPool *out, const CUmemPoolProps *props)
{
	struct mempool *p;
	CUdevice dev;
	CUresult r;

	if (!out || !props)
		return CUDA_ERROR_INVALID_VALUE;
	r = locate(&props->location, props->allocType, &dev);
	if (r)
		return r;
	if (props->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		report_log("pools are shared by file descriptors only");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	p = mempool_create(dev, props->maxSize);
	p->shared = props->handleTypes != 0;
	*out = (CUmemoryPool)p;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUmemoryPool pool)
{
	struct mempool *p = find(pool);

	if (!p || p->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (current[p->device] == p)
		current[p->device] = NULL;
	mempool_destroy(p);
	return CUDA_SUCCESS;
}

static CUresult trim(CUmemoryPool pool, size_t keep)
{
	struct mempool *p = find(pool);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	mempool_trim(p, keep);
	return CUDA_SUCCESS;
}

static CUresult get_attribute(CUmemoryPool pool, CUmemPool_attribute attr,
	void *out)
{
	struct mempool *p = find(pool);

	if (!p || !out)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)out = p->reuse[attr - 1];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)out = p->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)out = p->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)out = p->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)out = p->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)out = p->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* High marks can only be set to 0, which means to where they are now. */
static CUresult set_attribute(CUmemoryPool pool, CUmemPool_attribute attr,
	const void *value)
{
	struct mempool *p = find(pool);

	if (!p || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		p->reuse[attr - 1] = *(const int *)value != 0;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		p->threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		p->reserved_high = p->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		p->used_high = p->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult set_access(CUmemoryPool pool, const CUmemAccessDesc *d,
	size_t n)
{
	struct mempool *p = find(pool);
	size_t i;

	if (!p || !d || !n)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++) {
		if (d[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE
		    || (d[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE
		    && d[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
			return CUDA_ERROR_INVALID_VALUE;
		if (!device_valid(d[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (d[i].location.id == p->device && !d[i].flags)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (i = 0; i < n; i++)
		mempool_grant(p, d[i].location.id, d[i].flags);
	return CUDA_SUCCESS;
}

static CUresult get_access(CUmemAccess_flags *flags, CUmemoryPool pool,
	const CUmemLocation *where)
{
	struct mempool *p = find(pool);

	if (!flags || !p || !where
	    || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(where->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = (CUmemAccess_flags)p->access[where->id];
	return CUDA_SUCCESS;
}

CALL(cuMemPoolCreate, CALL_INIT, create(out, props),
	CUmemoryPool *out, const CUmemPoolProps *props)
CALL(cuMemPoolDestroy, CALL_INIT | CALL_FREES, destroy(pool),
	CUmemoryPool pool)
CALL(cuMemPoolTrimTo, CALL_INIT, trim(pool, keep),
	CUmemoryPool pool, size_t keep)
CALL(cuMemPoolGetAttribute, CALL_INIT, get_attribute(pool, attr, out),
	CUmemoryPool pool, CUmemPool_attribute attr, void *out)
CALL(cuMemPoolSetAttribute, CALL_INIT, set_attribute(pool, attr, value),
	CUmemoryPool pool, CUmemPool_attribute attr, void *value)
CALL(cuMemPoolSetAccess, CALL_INIT, set_access(pool, desc, n),
	CUmemoryPool pool, const CUmemAccessDesc *desc, size_t n)
CALL(cuMemPoolGetAccess, CALL_INIT, get_access(flags, pool, where),
	CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
