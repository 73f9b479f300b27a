/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-dimensional memsets, on the compute engine.  They return before they are
 * done even where their name says nothing of it, except on host memory, as the
 * real ones do.  Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/memset.h"

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

struct set {
	struct op op;
	uint64_t address, size;
	uint32_t value;
	unsigned width;
};

static uint64_t start(struct op *op)
{
	struct set *s = (struct set *)op;

	return (uint64_t)knobs.launch_ns
		+ (uint64_t)((double)s->size / knobs.hbm_gbps);
}

static void finish(struct op *op)
{
	struct set *s = (struct set *)op;
	uint64_t off = 0, n, i;
	uint8_t *to;

	stats.sets++;
	stats.set_bytes += s->size;
	while (off < s->size && !op->context->error) {
		n = access_span(op, s->address + off, s->size - off, true, &to);
		if (!n)
			access_fault(op, s->address + off, true, "memset");
		for (i = 0; i < n; i++)
			to[i] = (uint8_t)(s->value
				>> 8 * ((off + i) % s->width));
		off += n;
	}
}

static const struct op_type set_type = {
	"memset", ENGINE_COMPUTE, start, finish, NULL
};

bool memset_range(const struct op *op, uint64_t *address, uint64_t *size)
{
	const struct set *s = (const struct set *)op;

	if (op->type != &set_type)
		return false;
	*address = s->address;
	*size = s->size;
	return true;
}

static CUresult set(struct context *ctx, uint64_t address, uint32_t value,
	size_t n, unsigned width, CUstream stream, enum stream_default zero)
{
	struct stream *where;
	struct set *s;
	CUresult r = stream_find(ctx, stream, zero, &where);

	if (r || !n)
		return r;
	if (!address || address % width || n > SIZE_MAX / width
	    || !access_usable(address, n * width, true, where->context))
		return CUDA_ERROR_INVALID_VALUE;
	s = (struct set *)op_create(&set_type, sizeof(*s));
	s->address = address;
	s->size = n * width;
	s->value = value;
	s->width = width;
	stream_submit(where, &s->op);
	r = space_holds(address) ? CUDA_SUCCESS : stream_wait(where, &s->op);
	op_put(&s->op);
	return r;
}

#define SET_SYNC(name, zero, type, width) \
CUresult name(CUdeviceptr dst, type value, size_t n) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = set(c.context, dst, value, n, width, NULL, zero); \
	return call_end(&c); \
}

#define SET_ASYNC(name, zero, type, width) \
CUresult name(CUdeviceptr dst, type value, size_t n, CUstream stream) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = set(c.context, dst, value, n, width, stream, zero); \
	return call_end(&c); \
}

SET_SYNC(cuMemsetD8_v2, STREAM_0_LEGACY, unsigned char, 1)
SET_SYNC(cuMemsetD8_v2_ptds, STREAM_0_PER_THREAD, unsigned char, 1)
SET_SYNC(cuMemsetD16_v2, STREAM_0_LEGACY, unsigned short, 2)
SET_SYNC(cuMemsetD16_v2_ptds, STREAM_0_PER_THREAD, unsigned short, 2)
SET_SYNC(cuMemsetD32_v2, STREAM_0_LEGACY, unsigned int, 4)
SET_SYNC(cuMemsetD32_v2_ptds, STREAM_0_PER_THREAD, unsigned int, 4)
SET_ASYNC(cuMemsetD8Async, STREAM_0_LEGACY, unsigned char, 1)
SET_ASYNC(cuMemsetD8Async_ptsz, STREAM_0_PER_THREAD, unsigned char, 1)
SET_ASYNC(cuMemsetD16Async, STREAM_0_LEGACY, unsigned short, 2)
SET_ASYNC(cuMemsetD16Async_ptsz, STREAM_0_PER_THREAD, unsigned short, 2)
SET_ASYNC(cuMemsetD32Async, STREAM_0_LEGACY, unsigned int, 4)
SET_ASYNC(cuMemsetD32Async_ptsz, STREAM_0_PER_THREAD, unsigned int, 4)
