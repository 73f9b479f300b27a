/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of copies and of other operations, and streams that wait for values
 * or write them.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

/* ---- batches of one-dimensional copies ---- */

typedef CUresult batch_fn(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes,
	size_t n, CUmemcpyAttributes *attrs, size_t *first, size_t nr_attrs,
	size_t *failed, CUstream s);

/* The attributes of copy k: those of the last group that starts at or below. */
static CUmemcpyAttributes *attributes_of(CUmemcpyAttributes *attrs,
	const size_t *first, size_t nr_attrs, size_t k)
{
	size_t at = 0;

	while (at + 1 < nr_attrs && first[at + 1] <= k)
		at++;
	return &attrs[at];
}

/* As the driver wants them: from the first copy on, rising, all in the list. */
static bool groups_good(const size_t *first, size_t nr_attrs, size_t n)
{
	if (nr_attrs == 0 || nr_attrs > n || first[0] != 0)
		return false;
	for (size_t k = 1; k < nr_attrs; k++)
		if (first[k] <= first[k - 1] || first[k] >= n)
			return false;
	return true;
}

static CUresult batch(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes,
	size_t n, CUmemcpyAttributes *attrs, size_t *first, size_t nr_attrs,
	size_t *failed, CUstream s, CUstream order, batch_fn *fn)
{
	struct issue i;
	size_t zero = 0;
	CUresult r = CUDA_SUCCESS;

	issue_touches(&i, order);
	for (size_t k = 0; k < n; k++) {
		issue_touch(&i, src[k], sizes[k], false);
		issue_touch(&i, dst[k], sizes[k], true);
	}
	if (issue_go(&i)) {
		r = fn(dst, src, sizes, n, attrs, first, nr_attrs, failed, s);
		return issue_end(&i, r);
	}
	if (!i.too_big || n < 2)
		return i.result;
	if (!groups_good(first, nr_attrs, n))
		return CUDA_ERROR_INVALID_VALUE;
	/* One after the other is one of the orders a batch may take. */
	for (size_t k = 0; k < n && r == CUDA_SUCCESS; k++) {
		r = batch(&dst[k], &src[k], &sizes[k], 1, attributes_of(attrs,
			first, nr_attrs, k), &zero, 1, failed, s, order, fn);
		if (r != CUDA_SUCCESS && failed != NULL)
			*failed = k;
	}
	return r;
}

#define BATCH_V1(symbol, order) \
	static CUresult run_##symbol(CUdeviceptr *dst, CUdeviceptr *src, \
		size_t *sizes, size_t n, CUmemcpyAttributes *attrs, \
		size_t *first, size_t nr_attrs, size_t *failed, CUstream s) \
	{ \
		return real.symbol(dst, src, sizes, n, attrs, first, \
			nr_attrs, failed, s); \
	} \
	EXPORT CUresult symbol(CUdeviceptr *dst, CUdeviceptr *src, \
		size_t *sizes, size_t n, CUmemcpyAttributes *attrs, \
		size_t *first, size_t nr_attrs, size_t *failed, CUstream s) \
	{ \
		if (!init_active() || dst == NULL || src == NULL || \
		    sizes == NULL || attrs == NULL || first == NULL) \
			return REAL(symbol)(dst, src, sizes, n, attrs, first, \
				nr_attrs, failed, s); \
		return batch(dst, src, sizes, n, attrs, first, nr_attrs, \
			failed, s, order, run_##symbol); \
	}
#define BATCH_V2(symbol, order) \
	static CUresult run_##symbol(CUdeviceptr *dst, CUdeviceptr *src, \
		size_t *sizes, size_t n, CUmemcpyAttributes *attrs, \
		size_t *first, size_t nr_attrs, size_t *failed, CUstream s) \
	{ \
		return real.symbol(dst, src, sizes, n, attrs, first, \
			nr_attrs, s); \
	} \
	EXPORT CUresult symbol(CUdeviceptr *dst, CUdeviceptr *src, \
		size_t *sizes, size_t n, CUmemcpyAttributes *attrs, \
		size_t *first, size_t nr_attrs, CUstream s) \
	{ \
		if (!init_active() || dst == NULL || src == NULL || \
		    sizes == NULL || attrs == NULL || first == NULL) \
			return REAL(symbol)(dst, src, sizes, n, attrs, first, \
				nr_attrs, s); \
		return batch(dst, src, sizes, n, attrs, first, nr_attrs, \
			NULL, s, order, run_##symbol); \
	}

BATCH_V1(cuMemcpyBatchAsync, ISSUE_LEGACY(s))
BATCH_V1(cuMemcpyBatchAsync_ptsz, ISSUE_PTSZ(s))
BATCH_V2(cuMemcpyBatchAsync_v2, ISSUE_LEGACY(s))
BATCH_V2(cuMemcpyBatchAsync_v2_ptsz, ISSUE_PTSZ(s))

/* ---- batches of three-dimensional copies ---- */

static void touch_operand(struct issue *i, const CUmemcpy3DOperand *o,
	const CUextent3D *e, bool write)
{
	size_t row = o->op.ptr.rowLength == 0 ? e->width :
		o->op.ptr.rowLength;
	size_t rows = o->op.ptr.layerHeight == 0 ? e->height :
		o->op.ptr.layerHeight;

	if (o->type != CU_MEMCPY_OPERAND_TYPE_POINTER || e->width == 0 ||
	    e->height == 0 || e->depth == 0)
		return;
	issue_touch(i, o->op.ptr.ptr, ((e->depth - 1) * rows + e->height - 1) *
		row + e->width, write);
}

static bool batch_3d_go(struct issue *i, size_t n,
	const CUDA_MEMCPY3D_BATCH_OP *ops, CUstream order)
{
	issue_touches(i, order);
	for (size_t k = 0; k < n; k++) {
		touch_operand(i, &ops[k].src, &ops[k].extent, false);
		touch_operand(i, &ops[k].dst, &ops[k].extent, true);
	}
	return issue_go(i);
}

/* A batch too large goes in halves; v1 tells which copy failed. */
#define BATCH_3D_V1(symbol, order) \
	EXPORT CUresult symbol(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, \
		size_t *failed, unsigned long long flags, CUstream s) \
	{ \
		struct issue i; \
		CUresult r; \
		\
		if (!init_active() || ops == NULL) \
			return REAL(symbol)(n, ops, failed, flags, s); \
		if (batch_3d_go(&i, n, ops, order)) { \
			r = real.symbol(n, ops, failed, flags, s); \
			return issue_end(&i, r); \
		} \
		if (!i.too_big || n < 2) \
			return i.result; \
		r = symbol(n / 2, ops, failed, flags, s); \
		if (r != CUDA_SUCCESS) \
			return r; \
		r = symbol(n - n / 2, ops + n / 2, failed, flags, s); \
		if (r != CUDA_SUCCESS && failed != NULL) \
			*failed += n / 2; \
		return r; \
	}
#define BATCH_3D_V2(symbol, order) \
	EXPORT CUresult symbol(size_t n, CUDA_MEMCPY3D_BATCH_OP *ops, \
		unsigned long long flags, CUstream s) \
	{ \
		struct issue i; \
		CUresult r; \
		\
		if (!init_active() || ops == NULL) \
			return REAL(symbol)(n, ops, flags, s); \
		if (batch_3d_go(&i, n, ops, order)) { \
			r = real.symbol(n, ops, flags, s); \
			return issue_end(&i, r); \
		} \
		if (!i.too_big || n < 2) \
			return i.result; \
		r = symbol(n / 2, ops, flags, s); \
		return r != CUDA_SUCCESS ? r : \
			symbol(n - n / 2, ops + n / 2, flags, s); \
	}

BATCH_3D_V1(cuMemcpy3DBatchAsync, ISSUE_LEGACY(s))
BATCH_3D_V1(cuMemcpy3DBatchAsync_ptsz, ISSUE_PTSZ(s))
BATCH_3D_V2(cuMemcpy3DBatchAsync_v2, ISSUE_LEGACY(s))
BATCH_3D_V2(cuMemcpy3DBatchAsync_v2_ptsz, ISSUE_PTSZ(s))

/* ---- batches of compressed bytes ---- */

#define AT(p) ((CUdeviceptr)(uintptr_t)(p))

static bool decompress_go(struct issue *i, const CUmemDecompressParams *ops,
	size_t n, CUstream order)
{
	issue_touches(i, order);
	for (size_t k = 0; k < n; k++) {
		issue_touch(i, AT(ops[k].src), ops[k].srcNumBytes, false);
		issue_touch(i, AT(ops[k].dst), ops[k].dstNumBytes, true);
		issue_touch(i, AT(ops[k].dstActBytes),
			ops[k].dstActBytes == NULL ? 0 : 4, true);
	}
	return issue_go(i);
}

/* One too large goes in halves. */
#define DECOMPRESS(symbol, order) \
	EXPORT CUresult symbol(CUmemDecompressParams *ops, size_t n, \
		unsigned int flags, size_t *failed, CUstream s) \
	{ \
		struct issue i; \
		CUresult r; \
		\
		if (!init_active() || ops == NULL) \
			return REAL(symbol)(ops, n, flags, failed, s); \
		if (decompress_go(&i, ops, n, order)) { \
			r = real.symbol(ops, n, flags, failed, s); \
			return issue_end(&i, r); \
		} \
		if (!i.too_big || n < 2) \
			return i.result; \
		r = symbol(ops, n / 2, flags, failed, s); \
		if (r != CUDA_SUCCESS) \
			return r; \
		r = symbol(ops + n / 2, n - n / 2, flags, failed, s); \
		if (r != CUDA_SUCCESS && failed != NULL) \
			*failed += n / 2; \
		return r; \
	}

DECOMPRESS(cuMemBatchDecompressAsync, ISSUE_LEGACY(s))
DECOMPRESS(cuMemBatchDecompressAsync_ptsz, ISSUE_PTSZ(s))

/* ---- values that streams wait for or write ---- */

/*
 * The GPU polls the address for as long as it likes, and others may write it:
 * such memory stays on the GPU.
 */
#define VALUE(symbol, type) \
	EXPORT CUresult symbol(CUstream s, CUdeviceptr p, type value, \
		unsigned int flags) \
	{ \
		CUresult r = init_active() ? issue_fix(p, sizeof(value)) : \
			CUDA_SUCCESS; \
		\
		issue_host_function(); \
		return r != CUDA_SUCCESS ? r : REAL(symbol)(s, p, value, \
			flags); \
	}

VALUE(cuStreamWaitValue32, cuuint32_t)
VALUE(cuStreamWaitValue32_ptsz, cuuint32_t)
VALUE(cuStreamWaitValue32_v2, cuuint32_t)
VALUE(cuStreamWaitValue32_v2_ptsz, cuuint32_t)
VALUE(cuStreamWaitValue64, cuuint64_t)
VALUE(cuStreamWaitValue64_ptsz, cuuint64_t)
VALUE(cuStreamWaitValue64_v2, cuuint64_t)
VALUE(cuStreamWaitValue64_v2_ptsz, cuuint64_t)
VALUE(cuStreamWriteValue32, cuuint32_t)
VALUE(cuStreamWriteValue32_ptsz, cuuint32_t)
VALUE(cuStreamWriteValue32_v2, cuuint32_t)
VALUE(cuStreamWriteValue32_v2_ptsz, cuuint32_t)
VALUE(cuStreamWriteValue64, cuuint64_t)
VALUE(cuStreamWriteValue64_ptsz, cuuint64_t)
VALUE(cuStreamWriteValue64_v2, cuuint64_t)
VALUE(cuStreamWriteValue64_v2_ptsz, cuuint64_t)

#define MEM_OPS(symbol) \
	EXPORT CUresult symbol(CUstream s, unsigned int n, \
		CUstreamBatchMemOpParams *ops, unsigned int flags) \
	{ \
		CUresult r = CUDA_SUCCESS; \
		\
		if (init_active() && ops != NULL) \
			r = issue_fix_values(ops, n); \
		issue_host_function(); \
		return r != CUDA_SUCCESS ? r : REAL(symbol)(s, n, ops, flags); \
	}

MEM_OPS(cuStreamBatchMemOp)
MEM_OPS(cuStreamBatchMemOp_ptsz)
MEM_OPS(cuStreamBatchMemOp_v2)
MEM_OPS(cuStreamBatchMemOp_v2_ptsz)
