/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of rectangles and boxes.  The three structs of the API are brought
 * into one form, checked, and become a struct memcpy_box.  Arrays are refused.
 * Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/memcpy.h"

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/report.h"

#define PITCH_MAX 2147483647u	/* CU_DEVICE_ATTRIBUTE_MAX_PITCH */

/* One side as the program gave it. */
struct side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	size_t x, y, z, lod;
	size_t pitch, height;		/* 0: as small as can be */
};

struct shape {
	struct side dst, src;
	size_t width, height, depth;
};

/* The address of the first byte; pitch and slice in bytes. */
static CUresult place(const char *call, const struct side *s,
	const struct shape *q, uint64_t *at, uint64_t *pitch, uint64_t *slice)
{
	size_t height = s->height ? s->height : s->y + q->height;
	uint64_t base = s->device, off;

	if (s->type == CU_MEMORYTYPE_ARRAY) {
		report_log("%s: arrays are not supported", call);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (s->type == CU_MEMORYTYPE_HOST)
		base = (uintptr_t)s->host;
	else if (s->type != CU_MEMORYTYPE_DEVICE
	    && s->type != CU_MEMORYTYPE_UNIFIED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!base || (s->type == CU_MEMORYTYPE_HOST && space_holds(base)
	    && !access_find(base)) || (s->type == CU_MEMORYTYPE_DEVICE
	    && !access_find(base)))
		return CUDA_ERROR_INVALID_VALUE;
	*pitch = s->pitch ? s->pitch : s->x + q->width;
	if (*pitch > PITCH_MAX || s->x > *pitch || q->width > *pitch - s->x
	    || s->y > height || q->height > height - s->y || s->lod)
		return CUDA_ERROR_INVALID_VALUE;
	/* A pitch says nothing where there is one row. */
	if (!s->pitch && (q->height > 1 || q->depth > 1 || s->y || s->z))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(*pitch, height, slice)
	    || __builtin_mul_overflow(*slice, s->z, &off)
	    || __builtin_add_overflow(off, s->y * *pitch + s->x, &off)
	    || __builtin_add_overflow(base, off, at))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy(struct call *c, const struct shape *q, CUstream stream,
	enum stream_default zero, bool async)
{
	struct memcpy_box b = {
		.width = q->width, .height = q->height, .depth = q->depth,
	};
	CUresult r;

	if (!b.width || !b.height || !b.depth)
		return CUDA_SUCCESS;
	r = place(c->name, &q->dst, q, &b.dst, &b.dst_pitch, &b.dst_slice);
	if (!r)
		r = place(c->name, &q->src, q, &b.src, &b.src_pitch,
			&b.src_slice);
	return r ? r : memcpy_copy(c->context, &b, stream, zero, async);
}

#define SIDE_2D(p, s) { .type = (p)->s##MemoryType, .host = (p)->s##Host, \
	.device = (p)->s##Device, .x = (p)->s##XInBytes, .y = (p)->s##Y, \
	.pitch = (p)->s##Pitch }
#define SIDE_3D(p, s) { .type = (p)->s##MemoryType, .host = (p)->s##Host, \
	.device = (p)->s##Device, .x = (p)->s##XInBytes, .y = (p)->s##Y, \
	.z = (p)->s##Z, .lod = (p)->s##LOD, .pitch = (p)->s##Pitch, \
	.height = (p)->s##Height }

static CUresult copy_2d(struct call *c, const CUDA_MEMCPY2D *p,
	CUstream stream, enum stream_default zero, bool async)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	return copy(c, &(struct shape) {
		.dst = SIDE_2D(p, dst), .src = SIDE_2D(p, src),
		.width = p->WidthInBytes, .height = p->Height, .depth = 1,
	}, stream, zero, async);
}

static CUresult copy_3d(struct call *c, const CUDA_MEMCPY3D *p,
	CUstream stream, enum stream_default zero, bool async)
{
	/* Where slices lie depends on the height of the whole. */
	if (!p || (p->Depth > 1 && !knobs.layer_rows
	    && ((p->srcMemoryType != CU_MEMORYTYPE_ARRAY && !p->srcHeight)
	    || (p->dstMemoryType != CU_MEMORYTYPE_ARRAY && !p->dstHeight))))
		return CUDA_ERROR_INVALID_VALUE;
	return copy(c, &(struct shape) {
		.dst = SIDE_3D(p, dst), .src = SIDE_3D(p, src),
		.width = p->WidthInBytes, .height = p->Height,
		.depth = p->Depth,
	}, stream, zero, async);
}

static CUresult copy_3d_peer(struct call *c, const CUDA_MEMCPY3D_PEER *p,
	CUstream stream, enum stream_default zero, bool async)
{
	if (!p || (p->Depth > 1 && !knobs.layer_rows
	    && (!p->srcHeight || !p->dstHeight)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context_find(p->srcContext) || !context_find(p->dstContext))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy(c, &(struct shape) {
		.dst = SIDE_3D(p, dst), .src = SIDE_3D(p, src),
		.width = p->WidthInBytes, .height = p->Height,
		.depth = p->Depth,
	}, stream, zero, async);
}

#define COPY_SYNC(name, type, fn, zero) \
CUresult name(const type *p) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = fn(&c, p, NULL, zero, false); \
	return call_end(&c); \
}

#define COPY_ASYNC(name, type, fn, zero) \
CUresult name(const type *p, CUstream stream) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = fn(&c, p, stream, zero, true); \
	return call_end(&c); \
}

COPY_SYNC(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_2d, STREAM_0_LEGACY)
COPY_SYNC(cuMemcpy2D_v2_ptds, CUDA_MEMCPY2D, copy_2d, STREAM_0_PER_THREAD)
COPY_SYNC(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy_2d, STREAM_0_LEGACY)
COPY_SYNC(cuMemcpy2DUnaligned_v2_ptds, CUDA_MEMCPY2D, copy_2d,
	STREAM_0_PER_THREAD)
COPY_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d, STREAM_0_LEGACY)
COPY_ASYNC(cuMemcpy2DAsync_v2_ptsz, CUDA_MEMCPY2D, copy_2d,
	STREAM_0_PER_THREAD)
COPY_SYNC(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_3d, STREAM_0_LEGACY)
COPY_SYNC(cuMemcpy3D_v2_ptds, CUDA_MEMCPY3D, copy_3d, STREAM_0_PER_THREAD)
COPY_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d, STREAM_0_LEGACY)
COPY_ASYNC(cuMemcpy3DAsync_v2_ptsz, CUDA_MEMCPY3D, copy_3d,
	STREAM_0_PER_THREAD)
COPY_SYNC(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER, copy_3d_peer, STREAM_0_LEGACY)
COPY_SYNC(cuMemcpy3DPeer_ptds, CUDA_MEMCPY3D_PEER, copy_3d_peer,
	STREAM_0_PER_THREAD)
COPY_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER, copy_3d_peer,
	STREAM_0_LEGACY)
COPY_ASYNC(cuMemcpy3DPeerAsync_ptsz, CUDA_MEMCPY3D_PEER, copy_3d_peer,
	STREAM_0_PER_THREAD)

/* ---- batches --------------------------------------------------------------------- */

static struct side operand(const CUmemcpy3DOperand *o)
{
	struct side s = {
		.type = o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY
			? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED,
	};

	if (o->type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
		s.device = o->op.ptr.ptr;
		s.pitch = o->op.ptr.rowLength;
		s.height = o->op.ptr.layerHeight;
	}
	return s;
}

/* Lengths of 0 mean that rows and slices follow each other. */
static void pack(struct side *s, const CUextent3D *e)
{
	if (!s->pitch)
		s->pitch = e->width;
	if (!s->height)
		s->height = e->height;
}

static CUresult batch(struct call *c, size_t n, CUDA_MEMCPY3D_BATCH_OP *op,
	size_t *failed, unsigned long long flags, CUstream stream,
	enum stream_default zero)
{
	struct shape q;
	CUresult r;
	size_t i;

	if (failed)
		*failed = SIZE_MAX;
	if (!n || !op || flags || !stream || stream == CU_STREAM_LEGACY)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++) {
		q = (struct shape) {
			.dst = operand(&op[i].dst), .src = operand(&op[i].src),
			.width = op[i].extent.width,
			.height = op[i].extent.height,
			.depth = op[i].extent.depth,
		};
		pack(&q.dst, &op[i].extent);
		pack(&q.src, &op[i].extent);
		r = copy(c, &q, stream, zero, true);
		if (r && failed)
			*failed = i;
		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}

#define BATCH_V1(name, zero) \
CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP *op, size_t *failed, \
	unsigned long long flags, CUstream stream) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = batch(&c, n, op, failed, flags, stream, zero); \
	return call_end(&c); \
}

#define BATCH_V2(name, zero) \
CUresult name(size_t n, CUDA_MEMCPY3D_BATCH_OP *op, \
	unsigned long long flags, CUstream stream) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = batch(&c, n, op, NULL, flags, stream, zero); \
	return call_end(&c); \
}

BATCH_V1(cuMemcpy3DBatchAsync, STREAM_0_LEGACY)
BATCH_V1(cuMemcpy3DBatchAsync_ptsz, STREAM_0_PER_THREAD)
BATCH_V2(cuMemcpy3DBatchAsync_v2, STREAM_0_LEGACY)
BATCH_V2(cuMemcpy3DBatchAsync_v2_ptsz, STREAM_0_PER_THREAD)
