/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills.  Every symbol of a family has its own wrapper; all share
 * one body.  What differs is the default stream and whether the call waits.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

/*
 * One family of symbols: `args` is the parameter list, `pass` the arguments as
 * they came, `piece` those of one piece.
 */
#define COPY(symbol, args, pass, piece, dst, src, n, stream, how) \
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

#define HOST(p) ((CUdeviceptr)(uintptr_t)(p))

/* What does not fit, or is not aligned, is left to the driver to refuse. */
#define BYTES(n, size) \
	((n) <= SIZE_MAX / (size) && dst % (size) == 0 ? (n) * (size) : 0)

/* ---- one dimension, waiting ---- */

COPY(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n),
	(dst, src, n), (i.dst, i.src, i.n),
	dst, src, n, CU_STREAM_LEGACY, ISSUE_SYNC)

COPY(cuMemcpyHtoD_v2, (CUdeviceptr dst, const void *src, size_t n),
	(dst, src, n), (i.dst, (const void *)(uintptr_t)i.src, i.n),
	dst, HOST(src), n, CU_STREAM_LEGACY, ISSUE_SYNC | ISSUE_FROM_HOST)

COPY(cuMemcpyDtoH_v2, (void *dst, CUdeviceptr src, size_t n),
	(dst, src, n), ((void *)(uintptr_t)i.dst, i.src, i.n),
	HOST(dst), src, n, CU_STREAM_LEGACY, ISSUE_SYNC)

COPY(cuMemcpyDtoD_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n),
	(dst, src, n), (i.dst, i.src, i.n),
	dst, src, n, CU_STREAM_LEGACY, ISSUE_SYNC)

COPY(cuMemcpy_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n),
	(dst, src, n), (i.dst, i.src, i.n),
	dst, src, n, CU_STREAM_PER_THREAD, ISSUE_SYNC)

COPY(cuMemcpyHtoD_v2_ptds, (CUdeviceptr dst, const void *src, size_t n),
	(dst, src, n), (i.dst, (const void *)(uintptr_t)i.src, i.n),
	dst, HOST(src), n, CU_STREAM_PER_THREAD, ISSUE_SYNC | ISSUE_FROM_HOST)

COPY(cuMemcpyDtoH_v2_ptds, (void *dst, CUdeviceptr src, size_t n),
	(dst, src, n), ((void *)(uintptr_t)i.dst, i.src, i.n),
	HOST(dst), src, n, CU_STREAM_PER_THREAD, ISSUE_SYNC)

COPY(cuMemcpyDtoD_v2_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n),
	(dst, src, n), (i.dst, i.src, i.n),
	dst, src, n, CU_STREAM_PER_THREAD, ISSUE_SYNC)

/* ---- one dimension, queued ---- */

COPY(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s),
	(dst, src, n, s), (i.dst, i.src, i.n, s),
	dst, src, n, ISSUE_LEGACY(s), 0)

COPY(cuMemcpyHtoDAsync_v2, (CUdeviceptr dst, const void *src, size_t n,
	CUstream s),
	(dst, src, n, s), (i.dst, (const void *)(uintptr_t)i.src, i.n, s),
	dst, HOST(src), n, ISSUE_LEGACY(s), ISSUE_FROM_HOST)

COPY(cuMemcpyDtoHAsync_v2, (void *dst, CUdeviceptr src, size_t n, CUstream s),
	(dst, src, n, s), ((void *)(uintptr_t)i.dst, i.src, i.n, s),
	HOST(dst), src, n, ISSUE_LEGACY(s), 0)

COPY(cuMemcpyDtoDAsync_v2, (CUdeviceptr dst, CUdeviceptr src, size_t n,
	CUstream s),
	(dst, src, n, s), (i.dst, i.src, i.n, s),
	dst, src, n, ISSUE_LEGACY(s), 0)

COPY(cuMemcpyAsync_ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t n,
	CUstream s),
	(dst, src, n, s), (i.dst, i.src, i.n, s),
	dst, src, n, ISSUE_PTSZ(s), 0)

COPY(cuMemcpyHtoDAsync_v2_ptsz, (CUdeviceptr dst, const void *src, size_t n,
	CUstream s),
	(dst, src, n, s), (i.dst, (const void *)(uintptr_t)i.src, i.n, s),
	dst, HOST(src), n, ISSUE_PTSZ(s), ISSUE_FROM_HOST)

COPY(cuMemcpyDtoHAsync_v2_ptsz, (void *dst, CUdeviceptr src, size_t n,
	CUstream s),
	(dst, src, n, s), ((void *)(uintptr_t)i.dst, i.src, i.n, s),
	HOST(dst), src, n, ISSUE_PTSZ(s), 0)

COPY(cuMemcpyDtoDAsync_v2_ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t n,
	CUstream s),
	(dst, src, n, s), (i.dst, i.src, i.n, s),
	dst, src, n, ISSUE_PTSZ(s), 0)

/* ---- fills ---- */

COPY(cuMemsetD8_v2, (CUdeviceptr dst, unsigned char value, size_t n),
	(dst, value, n), (i.dst, value, i.left == 0 ? n : i.n),
	dst, 0, n, CU_STREAM_LEGACY, ISSUE_SYNC | ISSUE_FILL)

COPY(cuMemsetD8_v2_ptds, (CUdeviceptr dst, unsigned char value, size_t n),
	(dst, value, n), (i.dst, value, i.left == 0 ? n : i.n),
	dst, 0, n, CU_STREAM_PER_THREAD, ISSUE_SYNC | ISSUE_FILL)

COPY(cuMemsetD8Async, (CUdeviceptr dst, unsigned char value, size_t n,
	CUstream s),
	(dst, value, n, s), (i.dst, value, i.left == 0 ? n : i.n, s),
	dst, 0, n, ISSUE_LEGACY(s), ISSUE_FILL)

COPY(cuMemsetD8Async_ptsz, (CUdeviceptr dst, unsigned char value, size_t n,
	CUstream s),
	(dst, value, n, s), (i.dst, value, i.left == 0 ? n : i.n, s),
	dst, 0, n, ISSUE_PTSZ(s), ISSUE_FILL)

COPY(cuMemsetD16_v2, (CUdeviceptr dst, unsigned short value, size_t n),
	(dst, value, n), (i.dst, value, i.left == 0 ? n : i.n / 2),
	dst, 0, BYTES(n, 2), CU_STREAM_LEGACY, ISSUE_SYNC | ISSUE_FILL)

COPY(cuMemsetD16_v2_ptds, (CUdeviceptr dst, unsigned short value, size_t n),
	(dst, value, n), (i.dst, value, i.left == 0 ? n : i.n / 2),
	dst, 0, BYTES(n, 2), CU_STREAM_PER_THREAD, ISSUE_SYNC | ISSUE_FILL)

COPY(cuMemsetD16Async, (CUdeviceptr dst, unsigned short value, size_t n,
	CUstream s),
	(dst, value, n, s), (i.dst, value, i.left == 0 ? n : i.n / 2, s),
	dst, 0, BYTES(n, 2), ISSUE_LEGACY(s), ISSUE_FILL)

COPY(cuMemsetD16Async_ptsz, (CUdeviceptr dst, unsigned short value, size_t n,
	CUstream s),
	(dst, value, n, s), (i.dst, value, i.left == 0 ? n : i.n / 2, s),
	dst, 0, BYTES(n, 2), ISSUE_PTSZ(s), ISSUE_FILL)

COPY(cuMemsetD32_v2, (CUdeviceptr dst, unsigned int value, size_t n),
	(dst, value, n), (i.dst, value, i.left == 0 ? n : i.n / 4),
	dst, 0, BYTES(n, 4), CU_STREAM_LEGACY, ISSUE_SYNC | ISSUE_FILL)

COPY(cuMemsetD32_v2_ptds, (CUdeviceptr dst, unsigned int value, size_t n),
	(dst, value, n), (i.dst, value, i.left == 0 ? n : i.n / 4),
	dst, 0, BYTES(n, 4), CU_STREAM_PER_THREAD, ISSUE_SYNC | ISSUE_FILL)

COPY(cuMemsetD32Async, (CUdeviceptr dst, unsigned int value, size_t n,
	CUstream s),
	(dst, value, n, s), (i.dst, value, i.left == 0 ? n : i.n / 4, s),
	dst, 0, BYTES(n, 4), ISSUE_LEGACY(s), ISSUE_FILL)

COPY(cuMemsetD32Async_ptsz, (CUdeviceptr dst, unsigned int value, size_t n,
	CUstream s),
	(dst, value, n, s), (i.dst, value, i.left == 0 ? n : i.n / 4, s),
	dst, 0, BYTES(n, 4), ISSUE_PTSZ(s), ISSUE_FILL)
