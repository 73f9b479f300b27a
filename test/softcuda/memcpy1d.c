/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of one run of bytes, in every spelling.  Called by the program;
 * guarded by the driver's lock.
 */
#include "test/softcuda/memcpy.h"

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/report.h"

static CUresult copy(struct context *ctx, uint64_t dst, uint64_t src,
	size_t size, CUstream stream, enum stream_default zero, bool async)
{
	const struct memcpy_box box = {
		.dst = dst, .src = src, .width = size, .height = 1, .depth = 1,
	};

	return memcpy_copy(ctx, &box, stream, zero, async);
}

#define HOST(p) ((uintptr_t)(p))

/* A copy as four functions: sync and async, plain and per-thread. */
#define COPY_SYNC(name, zero, params, dst, src) \
CUresult name params \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = copy(c.context, dst, src, size, NULL, zero, false); \
	return call_end(&c); \
}

#define COPY_ASYNC(name, zero, params, dst, src) \
CUresult name params \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = copy(c.context, dst, src, size, stream, zero, true); \
	return call_end(&c); \
}

#define ARGS(...) (__VA_ARGS__)

COPY_SYNC(cuMemcpy, STREAM_0_LEGACY,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size), dst, src)
COPY_SYNC(cuMemcpy_ptds, STREAM_0_PER_THREAD,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size), dst, src)
COPY_ASYNC(cuMemcpyAsync, STREAM_0_LEGACY,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
	dst, src)
COPY_ASYNC(cuMemcpyAsync_ptsz, STREAM_0_PER_THREAD,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
	dst, src)

COPY_SYNC(cuMemcpyHtoD_v2, STREAM_0_LEGACY,
	ARGS(CUdeviceptr dst, const void *src, size_t size), dst, HOST(src))
COPY_SYNC(cuMemcpyHtoD_v2_ptds, STREAM_0_PER_THREAD,
	ARGS(CUdeviceptr dst, const void *src, size_t size), dst, HOST(src))
COPY_ASYNC(cuMemcpyHtoDAsync_v2, STREAM_0_LEGACY,
	ARGS(CUdeviceptr dst, const void *src, size_t size, CUstream stream),
	dst, HOST(src))
COPY_ASYNC(cuMemcpyHtoDAsync_v2_ptsz, STREAM_0_PER_THREAD,
	ARGS(CUdeviceptr dst, const void *src, size_t size, CUstream stream),
	dst, HOST(src))

COPY_SYNC(cuMemcpyDtoH_v2, STREAM_0_LEGACY,
	ARGS(void *dst, CUdeviceptr src, size_t size), HOST(dst), src)
COPY_SYNC(cuMemcpyDtoH_v2_ptds, STREAM_0_PER_THREAD,
	ARGS(void *dst, CUdeviceptr src, size_t size), HOST(dst), src)
COPY_ASYNC(cuMemcpyDtoHAsync_v2, STREAM_0_LEGACY,
	ARGS(void *dst, CUdeviceptr src, size_t size, CUstream stream),
	HOST(dst), src)
COPY_ASYNC(cuMemcpyDtoHAsync_v2_ptsz, STREAM_0_PER_THREAD,
	ARGS(void *dst, CUdeviceptr src, size_t size, CUstream stream),
	HOST(dst), src)

COPY_SYNC(cuMemcpyDtoD_v2, STREAM_0_LEGACY,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size), dst, src)
COPY_SYNC(cuMemcpyDtoD_v2_ptds, STREAM_0_PER_THREAD,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size), dst, src)
COPY_ASYNC(cuMemcpyDtoDAsync_v2, STREAM_0_LEGACY,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
	dst, src)
COPY_ASYNC(cuMemcpyDtoDAsync_v2_ptsz, STREAM_0_PER_THREAD,
	ARGS(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
	dst, src)

static CUresult peer_copy(struct context *ctx, CUdeviceptr dst,
	CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t size,
	CUstream stream, enum stream_default zero)
{
	if (!context_find(dst_ctx) || !context_find(src_ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(ctx, dst, src, size, stream, zero, true);
}

#define PEER(name, zero, the_stream, params) \
CUresult name params \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = peer_copy(c.context, dst, dst_ctx, src, src_ctx, \
			size, the_stream, zero); \
	return call_end(&c); \
}

PEER(cuMemcpyPeer, STREAM_0_LEGACY, NULL, ARGS(CUdeviceptr dst,
	CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t size))
PEER(cuMemcpyPeer_ptds, STREAM_0_PER_THREAD, NULL, ARGS(CUdeviceptr dst,
	CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t size))
PEER(cuMemcpyPeerAsync, STREAM_0_LEGACY, stream, ARGS(CUdeviceptr dst,
	CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t size,
	CUstream stream))
PEER(cuMemcpyPeerAsync_ptsz, STREAM_0_PER_THREAD, stream, ARGS(CUdeviceptr dst,
	CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t size,
	CUstream stream))

/* ---- batches --------------------------------------------------------------------- */

/*
 * The copies of a batch have no order among themselves; here they have that
 * of the list, which is one of those allowed.  Sources are read in stream
 * order, or before the call returns where an attribute asks for that.
 */
static CUresult batch(struct context *ctx, CUdeviceptr *dst, CUdeviceptr *src,
	size_t *size, size_t n, CUmemcpyAttributes *attrs, size_t *first,
	size_t nr_attrs, size_t *failed, CUstream stream,
	enum stream_default zero)
{
	size_t i, a = 0;
	CUresult r;

	if (failed)
		*failed = SIZE_MAX;
	if (!dst || !src || !size || !n || !attrs || !first || !nr_attrs
	    || nr_attrs > n || first[0])
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 1; i < nr_attrs; i++)
		if (first[i] <= first[i - 1] || first[i] >= n)
			return CUDA_ERROR_INVALID_VALUE;
	/* The default streams are not for batches. */
	if (!stream || stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++) {
		while (a + 1 < nr_attrs && first[a + 1] <= i)
			a++;
		if (attrs[a].srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
		    || attrs[a].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (i = 0; i < n; i++) {
		r = copy(ctx, dst[i], src[i], size[i], stream, zero, true);
		if (r && failed)
			*failed = i;
		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}

#define BATCH(name, zero, failed, params) \
CUresult name params \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = batch(c.context, dst, src, size, n, attrs, first, \
			nr_attrs, failed, stream, zero); \
	return call_end(&c); \
}

#define BATCH_V1 ARGS(CUdeviceptr *dst, CUdeviceptr *src, size_t *size, \
	size_t n, CUmemcpyAttributes *attrs, size_t *first, size_t nr_attrs, \
	size_t *failed, CUstream stream)
#define BATCH_V2 ARGS(CUdeviceptr *dst, CUdeviceptr *src, size_t *size, \
	size_t n, CUmemcpyAttributes *attrs, size_t *first, size_t nr_attrs, \
	CUstream stream)

BATCH(cuMemcpyBatchAsync, STREAM_0_LEGACY, failed, BATCH_V1)
BATCH(cuMemcpyBatchAsync_ptsz, STREAM_0_PER_THREAD, failed, BATCH_V1)
BATCH(cuMemcpyBatchAsync_v2, STREAM_0_LEGACY, NULL, BATCH_V2)
BATCH(cuMemcpyBatchAsync_v2_ptsz, STREAM_0_PER_THREAD, NULL, BATCH_V2)
