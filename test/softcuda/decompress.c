/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of compressed bytes, on devices that can do that (capability 10 and
 * up): LZ4 blocks only.  All of a batch is one operation of the compute engine.
 * Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/access.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/device.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/stream.h"

struct batch {
	struct op op;
	size_t nr;
	CUmemDecompressParams list[];
};

static uint64_t at(const void *p)
{
	return (uintptr_t)p;
}

static uint64_t start(struct op *op)
{
	const struct batch *b = (const struct batch *)op;
	double bytes = 0;

	for (size_t i = 0; i < b->nr; i++)
		bytes += (double)b->list[i].srcNumBytes
			+ (double)b->list[i].dstNumBytes;
	return (uint64_t)knobs.launch_ns + (uint64_t)(bytes / knobs.hbm_gbps);
}

/* Bytes to or from a buffer of our own; false: the context is dead. */
static bool move(struct op *op, uint64_t address, void *buffer, uint64_t size,
	bool write)
{
	uint64_t off = 0, n;
	uint8_t *bytes;

	while (off < size && !op->context->error) {
		n = access_span(op, address + off, size - off, write, &bytes);
		if (!n)
			access_fault(op, address + off, write,
				"decompression");
		else if (write)
			memcpy(bytes, (uint8_t *)buffer + off, n);
		else
			memcpy((uint8_t *)buffer + off, bytes, n);
		off += n;
	}
	return !op->context->error;
}

static void one(struct op *op, const CUmemDecompressParams *p)
{
	void *src = object_alloc(p->srcNumBytes);
	void *dst = object_alloc(p->dstNumBytes);
	cuuint32_t got;
	int n = -1;

	if (move(op, at(p->src), src, p->srcNumBytes, false))
		n = LZ4_decompress_safe(src, dst, (int)p->srcNumBytes,
			(int)p->dstNumBytes);
	/* What is no such block leaves nothing, and a length of 0. */
	got = n < 0 ? 0 : (cuuint32_t)n;
	if (!op->context->error && move(op, at(p->dst), dst, got, true)
	    && p->dstActBytes)
		move(op, at(p->dstActBytes), &got, sizeof(got), true);
	free(src);
	free(dst);
}

static void finish(struct op *op)
{
	struct batch *b = (struct batch *)op;

	for (size_t i = 0; i < b->nr && !op->context->error; i++)
		one(op, &b->list[i]);
}

static const struct op_type decompress_type = {
	.name = "decompression",
	.engine = ENGINE_COMPUTE,
	.start = start,
	.finish = finish,
};

static CUresult check(const CUmemDecompressParams *p,
	const struct context *ctx)
{
	const uint64_t most = 4 << 20;

	if (p->algo != CU_MEM_DECOMPRESS_ALGORITHM_LZ4)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!p->srcNumBytes || !p->dstNumBytes || p->srcNumBytes > most
	    || p->dstNumBytes > most
	    || !access_usable(at(p->src), p->srcNumBytes, false, ctx)
	    || !access_usable(at(p->dst), p->dstNumBytes, true, ctx)
	    || (p->dstActBytes && !access_usable(at(p->dstActBytes),
	    sizeof(*p->dstActBytes), true, ctx)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult decompress(struct stream *s, const CUmemDecompressParams *list,
	size_t nr, unsigned flags, size_t *failed)
{
	struct batch *b;
	CUresult r;

	if (!device_attribute(CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
	    s->context->device))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!list || !nr || nr > 1u << 20 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < nr; i++) {
		r = check(&list[i], s->context);
		if (r && failed)
			*failed = i;
		if (r)
			return r;
	}
	b = (struct batch *)op_create(&decompress_type, sizeof(*b)
		+ nr * sizeof(*list));
	b->nr = nr;
	memcpy(b->list, list, nr * sizeof(*list));
	stream_submit(s, &b->op);
	op_put(&b->op);
	return CUDA_SUCCESS;
}

#define DECOMPRESS(name, zero) \
CUresult name(CUmemDecompressParams *list, size_t nr, unsigned int flags, \
	size_t *failed, CUstream stream) \
{ \
	struct stream *s; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) { \
		c.result = stream_find(c.context, stream, zero, &s); \
		if (!c.result) \
			c.result = decompress(s, list, nr, flags, failed); \
	} \
	return call_end(&c); \
}

DECOMPRESS(cuMemBatchDecompressAsync, STREAM_0_LEGACY)
DECOMPRESS(cuMemBatchDecompressAsync_ptsz, STREAM_0_PER_THREAD)
