/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-dimensional copies.  A copy reads and writes at its end; one from
 * pageable memory reads when it is issued, one to pageable memory makes its
 * caller wait.  Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/memcpy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/hostmem.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memset.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

#define FLIP_MIN 65536u

struct copy {
	struct op op;
	uint64_t dst, src;
	uint64_t size;
	uint8_t *staged;	/* owned; what a pageable source held */
	bool raw_dst, raw_src;	/* pageable host memory */
	bool watched;		/* `sum` is of the source when it was issued */
	uint64_t sum;
};

enum side { SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE, SIDE_CROSSING };

/* SOFTCUDA_DROP: the link's speed at this time, 1 when nothing is wrong. */
static double link_share(void)
{
	double from, to, percent;

	if (!knobs.drop || sscanf(knobs.drop, "%lf:%lf:%lf", &from, &to,
	    &percent) != 3 || percent <= 0)
		return 1;
	return (double)sim_now() >= from * 1e6 && (double)sim_now() < to * 1e6
		? percent / 100 : 1;
}

static uint64_t link_cost(struct copy *c, double gbps)
{
	if ((c->raw_src || c->raw_dst || c->staged)
	    && gbps > knobs.pageable_gbps)
		gbps = knobs.pageable_gbps;
	return (uint64_t)knobs.link_ns
		+ (uint64_t)((double)c->size / (gbps * link_share()));
}

static uint64_t start_h2d(struct op *op)
{
	return link_cost((struct copy *)op, knobs.h2d_gbps);
}

static uint64_t start_d2h(struct op *op)
{
	return link_cost((struct copy *)op, knobs.d2h_gbps);
}

static uint64_t start_d2d(struct op *op)
{
	struct copy *c = (struct copy *)op;

	return (uint64_t)knobs.launch_ns
		+ (uint64_t)(2 * (double)c->size / knobs.hbm_gbps);
}

/* Any changed bit changes it; four chains, to be as fast as memory is. */
static uint64_t sum_of(const void *data, uint64_t size)
{
	uint64_t h[4] = { 1, 2, 3, 4 }, w[4];
	const uint8_t *p = data;
	int i;

	for (; size >= sizeof(w); p += sizeof(w), size -= sizeof(w)) {
		memcpy(w, p, sizeof(w));
		for (i = 0; i < 4; i++)
			h[i] = (h[i] ^ w[i]) * 0x9e3779b97f4a7c15u;
	}
	for (; size; p++, size--)
		h[0] = (h[0] ^ *p) * 0x9e3779b97f4a7c15u;
	return h[0] ^ h[1] << 1 ^ h[2] << 2 ^ h[3] << 3;
}

/*
 * The CPU's own stores are seen by nobody, but a pinned source that is not
 * what it was when the copy was issued, and that no operation has written
 * since, was changed by the CPU too early.
 */
static void check_source(const struct copy *c)
{
	struct hostmem *h = c->watched ? hostmem_find(c->src) : NULL;

	/* The knob's own bit may lie in several copies' sources. */
	if (!h || knobs.flip_h2d || sum_of((void *)(uintptr_t)c->src, c->size) == c->sum
	    || race_last_write(h->map.block->shadow, c->src - h->map.address,
	    c->size) > c->op.submit_ns)
		return;
	report_rule("hostwrite", "the source of copy to device (operation "
		"%llu, stream %llu), %#llx, %llu bytes, was written by the CPU "
		"while the copy was in flight", (unsigned long long)c->op.number,
		(unsigned long long)c->op.stream_id,
		(unsigned long long)c->src, (unsigned long long)c->size);
}

/* SOFTCUDA_FLIP_H2D: one wrong bit, which the program's results must show. */
static void flip_source(const struct copy *c)
{
	static int64_t nr;

	if (c->raw_src || c->staged || c->size < FLIP_MIN
	    || ++nr != knobs.flip_h2d)
		return;
	((uint8_t *)(uintptr_t)c->src)[c->size / 2 | 3] ^= 0x40;
	report_log("bit flipped in the source of operation %llu",
		(unsigned long long)c->op.number);
}

/* A piece of one side at `off`; 0 and a dead context if it is not there. */
static uint64_t side_span(struct copy *c, uint64_t off, uint64_t n,
	bool write, uint8_t **bytes)
{
	uint64_t address = (write ? c->dst : c->src) + off;

	if (!write && c->staged) {
		*bytes = c->staged + off;
		return n;
	}
	if (write ? c->raw_dst : c->raw_src) {
		*bytes = (uint8_t *)(uintptr_t)address;
		return n;
	}
	n = access_span(&c->op, address, n, write, bytes);
	if (!n)
		access_fault(&c->op, address, write, c->op.type->name);
	return n;
}

static void move(struct copy *c)
{
	uint64_t off = 0, n;
	uint8_t *from, *to;

	if (c->op.context->error)
		return;
	while (off < c->size) {
		n = side_span(c, off, c->size - off, false, &from);
		if (n)
			n = side_span(c, off, n, true, &to);
		if (!n)
			return;
		memmove(to, from, n);
		off += n;
	}
}

static void finish_h2d(struct op *op)
{
	struct copy *c = (struct copy *)op;

	check_source(c);
	if (knobs.flip_h2d && !op->context->error)
		flip_source(c);
	move(c);
	stats.h2d_copies++;
	stats.h2d_bytes += c->size;
}

static void finish_d2h(struct op *op)
{
	struct copy *c = (struct copy *)op;

	move(c);
	stats.d2h_copies++;
	stats.d2h_bytes += c->size;
}

static void finish_d2d(struct op *op)
{
	struct copy *c = (struct copy *)op;

	move(c);
	stats.d2d_copies++;
	stats.d2d_bytes += c->size;
}

static void finish_h2h(struct op *op)
{
	move((struct copy *)op);
}

static void release(struct op *op)
{
	free(((struct copy *)op)->staged);
}

static const struct op_type h2d_type = {
	"copy to device", ENGINE_H2D, start_h2d, finish_h2d, release
};
static const struct op_type d2h_type = {
	"copy to host", ENGINE_D2H, start_d2h, finish_d2h, release
};
static const struct op_type d2d_type = {
	"copy on device", ENGINE_COMPUTE, start_d2d, finish_d2d, release
};
static const struct op_type peer_type = {
	"copy between devices", ENGINE_D2H, start_d2h, finish_d2d, release
};
static const struct op_type h2h_type = {
	"copy on host", ENGINE_NONE, NULL, finish_h2h, release
};

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

static bool uses(const struct op *op, const struct map *m)
{
	const struct copy *c = (const struct copy *)op;
	uint64_t address, size;

	if (memset_range(op, &address, &size))
		return overlaps(address, size, m->address, m->size);
	if (op->type->release != release)
		return false;
	return overlaps(c->dst, c->size, m->address, m->size)
		|| (!c->staged && overlaps(c->src, c->size, m->address,
		m->size));
}

void memcpy_check_idle(const struct map *m, const char *rule,
	const char *call)
{
	struct op *op;

	if (m->busy_until > sim_now()) {
		report_rule(rule, "%s of %#llx while kernel %s, which uses it, "
			"is running", call, (unsigned long long)m->address,
			m->busy_with);
		return;
	}
	for (op = sim_pending(); op; op = op->pend_next) {
		if (!uses(op, m))
			continue;
		report_rule(rule, "%s of %#llx while %s (operation %llu, "
			"stream %llu) is in flight", call,
			(unsigned long long)m->address, op->type->name,
			(unsigned long long)op->number,
			(unsigned long long)op->stream_id);
		return;
	}
}

/* ---- issue --------------------------------------------------------------------- */

static enum side side_of(uint64_t address, uint64_t size)
{
	if (space_holds(address))
		return SIDE_DEVICE;
	switch (hostmem_reach(address, size)) {
	case HOSTMEM_PINNED:
		return SIDE_PINNED;
	case HOSTMEM_CROSSING:
		return SIDE_CROSSING;
	case HOSTMEM_PAGEABLE:
		break;
	}
	return SIDE_PAGEABLE;
}

struct request {
	uint64_t dst, src;
	uint64_t size;
	enum side dst_side, src_side;
	bool async;
};

static CUresult check(struct request *q, struct context *ctx)
{
	if (!q->dst || !q->src || q->dst + q->size < q->dst
	    || q->src + q->size < q->src)
		return CUDA_ERROR_INVALID_VALUE;
	q->dst_side = side_of(q->dst, q->size);
	q->src_side = side_of(q->src, q->size);
	if (q->dst_side == SIDE_CROSSING || q->src_side == SIDE_CROSSING) {
		report_note("a copy crosses the border of pinned memory");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if ((q->dst_side != SIDE_PAGEABLE
	    && !access_usable(q->dst, q->size, true, ctx))
	    || (q->src_side != SIDE_PAGEABLE
	    && !access_usable(q->src, q->size, false, ctx)))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The device whose memory it is; mapped host memory is the host's. */
static int device_of(uint64_t address)
{
	struct map *m = access_find(address);

	return m ? m->block->device : BLOCK_HOST;
}

static const struct op_type *choose(const struct request *q)
{
	int dst = device_of(q->dst), src = device_of(q->src);

	if (dst == BLOCK_HOST)
		return src == BLOCK_HOST ? &h2h_type : &d2h_type;
	if (src == BLOCK_HOST)
		return &h2d_type;
	return dst == src ? &d2d_type : &peer_type;
}

/* Whether the call returns only when the copy is done. */
static bool waits(const struct request *q, const struct op_type *type)
{
	if (type == &h2h_type)
		return true;
	if (type == &d2d_type || type == &peer_type)
		return false;
	return !q->async || q->dst_side == SIDE_PAGEABLE;
}

static CUresult issue(struct stream *s, struct request *q)
{
	const struct op_type *type;
	struct copy *c;
	CUresult r;

	if (!q->size)
		return CUDA_SUCCESS;
	r = check(q, s->context);
	if (r)
		return r;
	type = choose(q);
	c = (struct copy *)op_create(type, sizeof(*c));
	c->dst = q->dst;
	c->src = q->src;
	c->size = q->size;
	c->raw_dst = q->dst_side == SIDE_PAGEABLE;
	c->raw_src = q->src_side == SIDE_PAGEABLE;
	if (c->raw_src && !waits(q, type)) {
		c->staged = object_alloc(q->size);
		memcpy(c->staged, (void *)(uintptr_t)q->src, q->size);
	}
	if (knobs.race && type == &h2d_type && q->src_side == SIDE_PINNED
	    && !waits(q, type)) {
		c->watched = true;
		c->sum = sum_of((void *)(uintptr_t)q->src, q->size);
	}
	stream_submit(s, &c->op);
	r = waits(q, type) ? stream_wait(s, &c->op) : CUDA_SUCCESS;
	op_put(&c->op);
	return r;
}

static CUresult copy(struct context *ctx, uint64_t dst, uint64_t src,
	size_t size, CUstream stream, enum stream_default zero, bool async)
{
	struct request q = { .dst = dst, .src = src, .size = size,
		.async = async };
	struct stream *s;
	CUresult r = stream_find(ctx, stream, zero, &s);

	return r ? r : issue(s, &q);
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
