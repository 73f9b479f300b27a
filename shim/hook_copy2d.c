/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills in two and three dimensions, between devices, of arrays and
 * in batches.  A copy that is more than the GPU can hold at once is cut in
 * half until it fits.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

/* Bytes from the first to the last of `rows` rows, `layers` layers. */
static size_t extent(size_t width, size_t rows, size_t pitch, size_t layers,
	size_t layer_rows)
{
	size_t layer = pitch * (layer_rows == 0 ? rows : layer_rows);

	if (width == 0 || rows == 0 || layers == 0)
		return 0;
	return (layers - 1) * layer + (rows - 1) * pitch + width;
}

/*
 * One side of a copy: its box, and the byte that the base address names, since
 * a driver may look at that to learn what kind of memory it is.
 */
static void touch_side(struct issue *i, CUdeviceptr base, size_t off,
	size_t bytes, bool write)
{
	if (bytes == 0)
		return;
	issue_touch(i, base, 1, false);
	issue_touch(i, base + off, bytes, write);
}

static bool on_device(CUmemorytype t)
{
	return t == CU_MEMORYTYPE_DEVICE || t == CU_MEMORYTYPE_UNIFIED;
}

/* ---- two dimensions ---- */

static void touch_2d(struct issue *i, const CUDA_MEMCPY2D *c)
{
	size_t sp = c->srcPitch == 0 ? c->WidthInBytes : c->srcPitch;
	size_t dp = c->dstPitch == 0 ? c->WidthInBytes : c->dstPitch;

	if (on_device(c->srcMemoryType))
		touch_side(i, c->srcDevice, c->srcY * sp + c->srcXInBytes,
			extent(c->WidthInBytes, c->Height, sp, 1, 0), false);
	if (on_device(c->dstMemoryType))
		touch_side(i, c->dstDevice, c->dstY * dp + c->dstXInBytes,
			extent(c->WidthInBytes, c->Height, dp, 1, 0), true);
}

/* The second half of a copy too large; *c keeps the first.  false: one byte. */
static bool halve_2d(CUDA_MEMCPY2D *c, CUDA_MEMCPY2D *rest)
{
	*rest = *c;
	if (c->Height > 1) {
		c->Height /= 2;
		rest->Height -= c->Height;
		rest->srcY += c->Height;
		rest->dstY += c->Height;
		return true;
	}
	c->WidthInBytes /= 2;
	rest->WidthInBytes -= c->WidthInBytes;
	rest->srcXInBytes += c->WidthInBytes;
	rest->dstXInBytes += c->WidthInBytes;
	return c->WidthInBytes > 0;
}

typedef CUresult issue_2d_fn(const CUDA_MEMCPY2D *c, CUstream s);

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream s, CUstream order,
	issue_2d_fn *fn)
{
	struct issue i;
	CUDA_MEMCPY2D half = *c, rest;
	CUresult r;

	issue_touches(&i, order);
	touch_2d(&i, c);
	if (issue_go(&i)) {
		r = fn(c, s);
		return issue_end(&i, r);
	}
	if (!i.too_big || !halve_2d(&half, &rest))
		return i.result;
	r = copy_2d(&half, s, order, fn);
	return r != CUDA_SUCCESS ? r : copy_2d(&rest, s, order, fn);
}

/* A waiting symbol and a queued one, as one shape each. */
#define COPY_2D(symbol, order) \
	static CUresult run_##symbol(const CUDA_MEMCPY2D *c, CUstream s) \
	{ \
		return real.symbol(c); \
	} \
	EXPORT CUresult symbol(const CUDA_MEMCPY2D *c) \
	{ \
		if (!init_active() || c == NULL) \
			return REAL(symbol)(c); \
		return copy_2d(c, NULL, order, run_##symbol); \
	}
#define COPY_2D_ASYNC(symbol, order) \
	static CUresult run_##symbol(const CUDA_MEMCPY2D *c, CUstream s) \
	{ \
		return real.symbol(c, s); \
	} \
	EXPORT CUresult symbol(const CUDA_MEMCPY2D *c, CUstream s) \
	{ \
		if (!init_active() || c == NULL) \
			return REAL(symbol)(c, s); \
		return copy_2d(c, s, order, run_##symbol); \
	}

COPY_2D(cuMemcpy2D_v2, CU_STREAM_LEGACY)
COPY_2D(cuMemcpy2D_v2_ptds, CU_STREAM_PER_THREAD)
COPY_2D(cuMemcpy2DUnaligned_v2, CU_STREAM_LEGACY)
COPY_2D(cuMemcpy2DUnaligned_v2_ptds, CU_STREAM_PER_THREAD)
COPY_2D_ASYNC(cuMemcpy2DAsync_v2, ISSUE_LEGACY(s))
COPY_2D_ASYNC(cuMemcpy2DAsync_v2_ptsz, ISSUE_PTSZ(s))

/* ---- three dimensions; CUDA_MEMCPY3D and _PEER have the same fields ---- */

#define TOUCH_3D(i, c) \
	do { \
		size_t sp = (c)->srcPitch == 0 ? (c)->WidthInBytes : \
			(c)->srcPitch; \
		size_t dp = (c)->dstPitch == 0 ? (c)->WidthInBytes : \
			(c)->dstPitch; \
		size_t sh = (c)->srcHeight == 0 ? (c)->srcY + (c)->Height : \
			(c)->srcHeight; \
		size_t dh = (c)->dstHeight == 0 ? (c)->dstY + (c)->Height : \
			(c)->dstHeight; \
		\
		if (on_device((c)->srcMemoryType)) \
			touch_side(i, (c)->srcDevice, ((c)->srcZ * sh + \
				(c)->srcY) * sp + (c)->srcXInBytes, \
				extent((c)->WidthInBytes, (c)->Height, sp, \
				(c)->Depth, sh), false); \
		if (on_device((c)->dstMemoryType)) \
			touch_side(i, (c)->dstDevice, ((c)->dstZ * dh + \
				(c)->dstY) * dp + (c)->dstXInBytes, \
				extent((c)->WidthInBytes, (c)->Height, dp, \
				(c)->Depth, dh), true); \
	} while (0)

/*
 * As halve_2d().  A layer's height of 0 means what the copy's own rows take,
 * from which follows where layer Z lies: cut, they would say something else.
 */
#define HALVE_3D(c, rest, whole) \
	do { \
		if ((c)->srcHeight == 0) \
			(c)->srcHeight = (c)->srcY + (c)->Height; \
		if ((c)->dstHeight == 0) \
			(c)->dstHeight = (c)->dstY + (c)->Height; \
		*(rest) = *(c); \
		*(whole) = true; \
		if ((c)->Depth > 1) { \
			(c)->Depth /= 2; \
			(rest)->Depth -= (c)->Depth; \
			(rest)->srcZ += (c)->Depth; \
			(rest)->dstZ += (c)->Depth; \
		} else if ((c)->Height > 1) { \
			(c)->Height /= 2; \
			(rest)->Height -= (c)->Height; \
			(rest)->srcY += (c)->Height; \
			(rest)->dstY += (c)->Height; \
		} else { \
			(c)->WidthInBytes /= 2; \
			(rest)->WidthInBytes -= (c)->WidthInBytes; \
			(rest)->srcXInBytes += (c)->WidthInBytes; \
			(rest)->dstXInBytes += (c)->WidthInBytes; \
			*(whole) = (c)->WidthInBytes > 0; \
		} \
	} while (0)

#define COPY_3D_BODY(name, type) \
	typedef CUresult name##_fn(const type *c, CUstream s); \
	static CUresult name(const type *c, CUstream s, CUstream order, \
		name##_fn *fn) \
	{ \
		struct issue i; \
		type half = *c, rest; \
		bool ok; \
		CUresult r; \
		\
		issue_touches(&i, order); \
		TOUCH_3D(&i, c); \
		if (issue_go(&i)) { \
			r = fn(c, s); \
			return issue_end(&i, r); \
		} \
		if (!i.too_big) \
			return i.result; \
		if (c->Depth > 1 && (c->srcHeight == 0 || \
		    c->dstHeight == 0) && !issue_layers_follow()) \
			return CUDA_ERROR_INVALID_VALUE; \
		HALVE_3D(&half, &rest, &ok); \
		if (!ok) \
			return i.result; \
		r = name(&half, s, order, fn); \
		return r != CUDA_SUCCESS ? r : name(&rest, s, order, fn); \
	}

COPY_3D_BODY(copy_3d, CUDA_MEMCPY3D)
COPY_3D_BODY(copy_3d_peer, CUDA_MEMCPY3D_PEER)

#define COPY_3D(symbol, body, type, order) \
	static CUresult run_##symbol(const type *c, CUstream s) \
	{ \
		return real.symbol(c); \
	} \
	EXPORT CUresult symbol(const type *c) \
	{ \
		if (!init_active() || c == NULL) \
			return REAL(symbol)(c); \
		return body(c, NULL, order, run_##symbol); \
	}
#define COPY_3D_ASYNC(symbol, body, type, order) \
	static CUresult run_##symbol(const type *c, CUstream s) \
	{ \
		return real.symbol(c, s); \
	} \
	EXPORT CUresult symbol(const type *c, CUstream s) \
	{ \
		if (!init_active() || c == NULL) \
			return REAL(symbol)(c, s); \
		return body(c, s, order, run_##symbol); \
	}

COPY_3D(cuMemcpy3D_v2, copy_3d, CUDA_MEMCPY3D, CU_STREAM_LEGACY)
COPY_3D(cuMemcpy3D_v2_ptds, copy_3d, CUDA_MEMCPY3D, CU_STREAM_PER_THREAD)
COPY_3D_ASYNC(cuMemcpy3DAsync_v2, copy_3d, CUDA_MEMCPY3D, ISSUE_LEGACY(s))
COPY_3D_ASYNC(cuMemcpy3DAsync_v2_ptsz, copy_3d, CUDA_MEMCPY3D, ISSUE_PTSZ(s))
COPY_3D(cuMemcpy3DPeer, copy_3d_peer, CUDA_MEMCPY3D_PEER, CU_STREAM_LEGACY)
COPY_3D(cuMemcpy3DPeer_ptds, copy_3d_peer, CUDA_MEMCPY3D_PEER,
	CU_STREAM_PER_THREAD)
COPY_3D_ASYNC(cuMemcpy3DPeerAsync, copy_3d_peer, CUDA_MEMCPY3D_PEER,
	ISSUE_LEGACY(s))
COPY_3D_ASYNC(cuMemcpy3DPeerAsync_ptsz, copy_3d_peer, CUDA_MEMCPY3D_PEER,
	ISSUE_PTSZ(s))

/* ---- between devices, one dimension ---- */

#define COPY_PEER(symbol, args, pass, piece, stream, how) \
	EXPORT CUresult symbol args \
	{ \
		struct issue i; \
		CUresult r = CUDA_SUCCESS; \
		\
		if (!init_active()) \
			return REAL(symbol) pass; \
		if (!issue_copy(&i, dst, src, n, stream, how)) \
			return i.result; \
		while (issue_next(&i, r)) \
			r = real.symbol piece; \
		return issue_end(&i, r); \
	}

COPY_PEER(cuMemcpyPeer, (CUdeviceptr dst, CUcontext to, CUdeviceptr src,
	CUcontext from, size_t n), (dst, to, src, from, n),
	(i.dst, to, i.src, from, i.n), CU_STREAM_LEGACY, ISSUE_SYNC)
COPY_PEER(cuMemcpyPeer_ptds, (CUdeviceptr dst, CUcontext to, CUdeviceptr src,
	CUcontext from, size_t n), (dst, to, src, from, n),
	(i.dst, to, i.src, from, i.n), CU_STREAM_PER_THREAD, ISSUE_SYNC)
COPY_PEER(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext to, CUdeviceptr src,
	CUcontext from, size_t n, CUstream s), (dst, to, src, from, n, s),
	(i.dst, to, i.src, from, i.n, s), ISSUE_LEGACY(s), 0)
COPY_PEER(cuMemcpyPeerAsync_ptsz, (CUdeviceptr dst, CUcontext to,
	CUdeviceptr src, CUcontext from, size_t n, CUstream s),
	(dst, to, src, from, n, s), (i.dst, to, i.src, from, i.n, s),
	ISSUE_PTSZ(s), 0)

/* ---- arrays: the linear side ---- */

#define COPY_ARRAY(symbol, args, pass, pointer, write, stream) \
	EXPORT CUresult symbol args \
	{ \
		struct issue i; \
		CUresult r; \
		\
		if (!init_active()) \
			return REAL(symbol) pass; \
		issue_touches(&i, stream); \
		issue_touch(&i, pointer, n, write); \
		if (!issue_go(&i)) \
			return i.result; \
		r = real.symbol pass; \
		return issue_end(&i, r); \
	}

COPY_ARRAY(cuMemcpyDtoA_v2, (CUarray dst, size_t off, CUdeviceptr src,
	size_t n), (dst, off, src, n), src, false, CU_STREAM_LEGACY)
COPY_ARRAY(cuMemcpyDtoA_v2_ptds, (CUarray dst, size_t off, CUdeviceptr src,
	size_t n), (dst, off, src, n), src, false, CU_STREAM_PER_THREAD)
COPY_ARRAY(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t off,
	size_t n), (dst, src, off, n), dst, true, CU_STREAM_LEGACY)
COPY_ARRAY(cuMemcpyAtoD_v2_ptds, (CUdeviceptr dst, CUarray src, size_t off,
	size_t n), (dst, src, off, n), dst, true, CU_STREAM_PER_THREAD)

/* ---- fills in two dimensions ---- */

#define FILL_2D(symbol, type, size, order, call, params, pass, ...) \
	static CUresult fill_##symbol(CUdeviceptr dst, size_t pitch, \
		type value, size_t width, size_t height, CUstream s) \
	{ \
		struct issue i; \
		size_t half = height > 1 ? height / 2 : width / 2; \
		CUresult r; \
		\
		issue_touches(&i, order); \
		issue_touch(&i, dst, extent(width * (size), height, pitch, \
			1, 0), true); \
		if (issue_go(&i)) { \
			r = call; \
			return issue_end(&i, r); \
		} \
		if (!i.too_big || half == 0) \
			return i.result; \
		if (height > 1) { \
			r = fill_##symbol(dst, pitch, value, width, half, s); \
			return r != CUDA_SUCCESS ? r : fill_##symbol(dst + \
				half * pitch, pitch, value, width, \
				height - half, s); \
		} \
		r = fill_##symbol(dst, pitch, value, half, 1, s); \
		return r != CUDA_SUCCESS ? r : fill_##symbol(dst + \
			half * (size), pitch, value, width - half, 1, s); \
	} \
	EXPORT CUresult symbol(CUdeviceptr dst, size_t pitch, type value, \
		size_t width, size_t height params) \
	{ \
		if (!init_active() || width > SIZE_MAX / (size)) \
			return REAL(symbol)(dst, pitch, value, width, height \
				pass); \
		return fill_##symbol(dst, pitch, value, width, height, \
			__VA_ARGS__); \
	}

#define COMMA ,
#define FILL_2D_SYNC(symbol, type, size, order) \
	FILL_2D(symbol, type, size, order, \
		real.symbol(dst, pitch, value, width, height), , , NULL)
#define FILL_2D_ASYNC(symbol, type, size, order) \
	FILL_2D(symbol, type, size, order, \
		real.symbol(dst, pitch, value, width, height, s), \
		COMMA CUstream s, COMMA s, s)

FILL_2D_SYNC(cuMemsetD2D8_v2, unsigned char, 1, CU_STREAM_LEGACY)
FILL_2D_SYNC(cuMemsetD2D8_v2_ptds, unsigned char, 1, CU_STREAM_PER_THREAD)
FILL_2D_ASYNC(cuMemsetD2D8Async, unsigned char, 1, ISSUE_LEGACY(s))
FILL_2D_ASYNC(cuMemsetD2D8Async_ptsz, unsigned char, 1, ISSUE_PTSZ(s))
FILL_2D_SYNC(cuMemsetD2D16_v2, unsigned short, 2, CU_STREAM_LEGACY)
FILL_2D_SYNC(cuMemsetD2D16_v2_ptds, unsigned short, 2, CU_STREAM_PER_THREAD)
FILL_2D_ASYNC(cuMemsetD2D16Async, unsigned short, 2, ISSUE_LEGACY(s))
FILL_2D_ASYNC(cuMemsetD2D16Async_ptsz, unsigned short, 2, ISSUE_PTSZ(s))
FILL_2D_SYNC(cuMemsetD2D32_v2, unsigned int, 4, CU_STREAM_LEGACY)
FILL_2D_SYNC(cuMemsetD2D32_v2_ptds, unsigned int, 4, CU_STREAM_PER_THREAD)
FILL_2D_ASYNC(cuMemsetD2D32Async, unsigned int, 4, ISSUE_LEGACY(s))
FILL_2D_ASYNC(cuMemsetD2D32Async_ptsz, unsigned int, 4, ISSUE_PTSZ(s))
