/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memsets of a run or of rows at a pitch, on the compute engine.  They return
 * before they are done even where their name says nothing of it, except on
 * host memory, as the real ones do.  Called by the program; guarded by the
 * driver's lock.
 */
#include "test/softcuda/memset.h"

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

/* What is to be set: `height` rows of `size` bytes. */
struct area {
	uint64_t address, size, pitch, height;
	uint32_t value;
	unsigned width;			/* of the value, in bytes */
};

struct set {
	struct op op;
	struct area area;
};

static uint64_t start(struct op *op)
{
	const struct area *a = &((struct set *)op)->area;

	return (uint64_t)knobs.launch_ns
		+ (uint64_t)((double)(a->size * a->height) / knobs.hbm_gbps);
}

static void fill_row(struct op *op, const struct area *a, uint64_t address)
{
	uint64_t off = 0, n, i;
	uint8_t *to;

	while (off < a->size && !op->context->error) {
		n = access_span(op, address + off, a->size - off, true, &to);
		if (!n)
			access_fault(op, address + off, true, "memset");
		for (i = 0; i < n; i++)
			to[i] = (uint8_t)(a->value
				>> 8 * ((off + i) % a->width));
		off += n;
	}
}

static void finish(struct op *op)
{
	const struct area *a = &((struct set *)op)->area;
	uint64_t i;

	stats.sets++;
	stats.set_bytes += a->size * a->height;
	for (i = 0; i < a->height; i++)
		fill_row(op, a, a->address + i * a->pitch);
}

static const struct op_type set_type = {
	.name = "memset",
	.engine = ENGINE_COMPUTE,
	.start = start,
	.finish = finish,
};

bool memset_row(const struct op *op, uint64_t i, uint64_t *address,
	uint64_t *size)
{
	const struct area *a = &((const struct set *)op)->area;

	if (op->type != &set_type || i >= a->height)
		return false;
	*address = a->address + i * a->pitch;
	*size = a->size;
	return true;
}

static CUresult check(const struct area *a, struct context *ctx)
{
	uint64_t i, end;

	if (!a->address || a->address % a->width || (a->height > 1
	    && (a->pitch < a->size || a->pitch % a->width))
	    || __builtin_mul_overflow(a->height - 1, a->pitch, &end)
	    || __builtin_add_overflow(end, a->address, &end)
	    || __builtin_add_overflow(end, a->size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < a->height; i++)
		if (!access_usable(a->address + i * a->pitch, a->size, true,
		    ctx))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* `n` values in each row. */
static CUresult set(struct context *ctx, struct area *a, size_t n,
	CUstream stream, enum stream_default zero)
{
	struct stream *where;
	struct set *s;
	CUresult r = stream_find(ctx, stream, zero, &where);

	if (r || !n || !a->height)
		return r;
	if (__builtin_mul_overflow(n, (size_t)a->width, &a->size))
		return CUDA_ERROR_INVALID_VALUE;
	r = check(a, where->context);
	if (r)
		return r;
	s = (struct set *)op_create(&set_type, sizeof(*s));
	s->area = *a;
	stream_submit(where, &s->op);
	r = space_holds(a->address) ? CUDA_SUCCESS
		: stream_wait(where, &s->op);
	op_put(&s->op);
	return r;
}

#define SET(name, zero, the_stream, type, bytes, the_pitch, rows, ...) \
CUresult name(__VA_ARGS__) \
{ \
	struct area a = { .address = dst, .pitch = the_pitch, \
		.height = rows, .value = value, .width = bytes }; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = set(c.context, &a, n, the_stream, zero); \
	return call_end(&c); \
}

/* A width as eight functions: run or rows, sync or async, both streams 0. */
#define SETS(bits, type, bytes) \
SET(cuMemsetD##bits##_v2, STREAM_0_LEGACY, NULL, type, bytes, 0, 1, \
	CUdeviceptr dst, type value, size_t n) \
SET(cuMemsetD##bits##_v2_ptds, STREAM_0_PER_THREAD, NULL, type, bytes, 0, 1, \
	CUdeviceptr dst, type value, size_t n) \
SET(cuMemsetD##bits##Async, STREAM_0_LEGACY, stream, type, bytes, 0, 1, \
	CUdeviceptr dst, type value, size_t n, CUstream stream) \
SET(cuMemsetD##bits##Async_ptsz, STREAM_0_PER_THREAD, stream, type, bytes, 0, \
	1, CUdeviceptr dst, type value, size_t n, CUstream stream) \
SET(cuMemsetD2D##bits##_v2, STREAM_0_LEGACY, NULL, type, bytes, pitch, \
	height, CUdeviceptr dst, size_t pitch, type value, size_t n, \
	size_t height) \
SET(cuMemsetD2D##bits##_v2_ptds, STREAM_0_PER_THREAD, NULL, type, bytes, \
	pitch, height, CUdeviceptr dst, size_t pitch, type value, size_t n, \
	size_t height) \
SET(cuMemsetD2D##bits##Async, STREAM_0_LEGACY, stream, type, bytes, pitch, \
	height, CUdeviceptr dst, size_t pitch, type value, size_t n, \
	size_t height, CUstream stream) \
SET(cuMemsetD2D##bits##Async_ptsz, STREAM_0_PER_THREAD, stream, type, bytes, \
	pitch, height, CUdeviceptr dst, size_t pitch, type value, size_t n, \
	size_t height, CUstream stream)

SETS(8, unsigned char, 1)
SETS(16, unsigned short, 2)
SETS(32, unsigned int, 4)
