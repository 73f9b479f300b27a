/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: a device's multiprocessors, parts of them, and streams that
 * are to use such a part.  Here every kernel takes the time that it takes on all
 * of them; a green context's streams and memory are those of the primary
 * context, which it retains.  Called by the program; guarded by the driver's
 * lock.
 */
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/device.h"
#include "test/softcuda/stream.h"

#define LEAST 8u		/* multiprocessors in a part, and its steps */

/* What a descriptor names, or a green context has. */
struct green {
	struct object object;
	int device;
	unsigned sm_count;
	CUcontext primary;
};

/* Which device a resource is of is nobody else's business. */
static void describe(CUdevResource *r, int device, unsigned sm_count)
{
	memset(r, 0, sizeof(*r));
	r->type = sm_count ? CU_DEV_RESOURCE_TYPE_SM
		: CU_DEV_RESOURCE_TYPE_INVALID;
	r->_internal_padding[0] = (unsigned char)device;
	r->sm.smCount = sm_count;
	r->sm.minSmPartitionSize = LEAST;
	r->sm.smCoscheduledAlignment = LEAST;
}

static CUresult of_device(CUdevice dev, CUdevResource *out,
	CUdevResourceType type)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	describe(out, dev, (unsigned)device_attribute(
		CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev));
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *out,
	CUdevResourceType type)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = of_device(dev, out, type);
	return call_end(&c);
}

static CUresult split(CUdevResource *out, unsigned *nr,
	const CUdevResource *in, CUdevResource *rest, unsigned flags,
	unsigned least)
{
	unsigned size = least < LEAST ? LEAST : (least + LEAST - 1)
		/ LEAST * LEAST;
	unsigned n, i;
	int device;

	if (!nr || !in || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (in->type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (least > in->sm.smCount)
		return CUDA_ERROR_INVALID_VALUE;
	n = in->sm.smCount / size;
	if (out && *nr < n)
		n = *nr;
	device = in->_internal_padding[0];
	if (rest)
		describe(rest, device, in->sm.smCount - n * size);
	for (i = 0; out && i < n; i++)
		describe(&out[i], device, size);
	*nr = n;
	return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *out, unsigned int *nr,
	const CUdevResource *in, CUdevResource *rest, unsigned int flags,
	unsigned int least)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = split(out, nr, in, rest, flags, least);
	return call_end(&c);
}

/* Descriptors have no end. */
static CUresult generate(CUdevResourceDesc *out, const CUdevResource *r,
	unsigned nr)
{
	struct green *g;
	unsigned i, sum = 0;

	if (!out || !r || !nr)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < nr; i++) {
		if (r[i].type != CU_DEV_RESOURCE_TYPE_SM)
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (r[i]._internal_padding[0] != r[0]._internal_padding[0])
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		sum += r[i].sm.smCount;
	}
	g = object_alloc(sizeof(*g));
	g->device = r[0]._internal_padding[0];
	g->sm_count = sum;
	object_add(g, OBJECT_RESOURCES);
	*out = (CUdevResourceDesc)g;
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *r,
	unsigned int nr)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = generate(out, r, nr);
	return call_end(&c);
}

static CUresult create(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice dev,
	unsigned flags)
{
	const struct green *d = object_find(desc, OBJECT_RESOURCES);
	struct green *g;
	CUcontext primary;
	CUresult r;

	if (!out || !d || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev) || d->device != dev)
		return CUDA_ERROR_INVALID_DEVICE;
	r = context_primary_retain(&primary, dev);
	if (r)
		return r;
	g = object_alloc(sizeof(*g));
	g->device = dev;
	g->sm_count = d->sm_count;
	g->primary = primary;
	object_add(g, OBJECT_GREEN);
	*out = (CUgreenCtx)g;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc,
	CUdevice dev, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = create(out, desc, dev, flags);
	return call_end(&c);
}

static CUresult destroy(CUgreenCtx handle)
{
	struct green *g = object_find(handle, OBJECT_GREEN);
	int device;

	if (!g)
		return CUDA_ERROR_INVALID_CONTEXT;
	device = g->device;
	object_remove(g);
	free(g);
	return context_primary_release(device);
}

CUresult cuGreenCtxDestroy(CUgreenCtx handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy(handle);
	return call_end(&c);
}

static CUresult convert(CUcontext *out, CUgreenCtx handle)
{
	const struct green *g = object_find(handle, OBJECT_GREEN);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!g)
		return CUDA_ERROR_INVALID_CONTEXT;
	*out = g->primary;
	return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = convert(out, handle);
	return call_end(&c);
}

/* Whichever context is current, and if there is none. */
static CUresult create_stream(CUstream *out, CUgreenCtx handle, unsigned flags,
	int priority)
{
	const struct green *g = object_find(handle, OBJECT_GREEN);
	struct context *ctx = g ? context_find(g->primary) : NULL;

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return stream_create(ctx, out, flags, priority);
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx handle,
	unsigned int flags, int priority)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = create_stream(out, handle, flags, priority);
	return call_end(&c);
}
