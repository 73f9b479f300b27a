/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of boxes: rows at a pitch, slices of rows; a plain copy is one row.
 * A copy reads and writes at its end; one from pageable memory reads when it
 * is issued, one to pageable memory makes its caller wait.  The entry points
 * are in memcpy1d.c and memcpy2d.c; guarded by the driver's lock.
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
#include "test/softcuda/launch.h"
#include "test/softcuda/memset.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

#define FLIP_MIN 65536u

struct copy {
	struct op op;
	struct memcpy_box box;
	uint64_t size;		/* bytes in all */
	uint8_t *staged;	/* owned; a pageable source's rows, packed */
	bool raw_dst, raw_src;	/* pageable host memory */
	bool watched;		/* `sum` is of the source when it was issued */
	uint64_t sum;
};

/* Where row i of the box begins, on either side. */
static uint64_t row_at(const struct memcpy_box *b, uint64_t i, bool dst)
{
	uint64_t slice = i / b->height, row = i % b->height;

	return dst ? b->dst + slice * b->dst_slice + row * b->dst_pitch
		: b->src + slice * b->src_slice + row * b->src_pitch;
}

static uint64_t nr_rows(const struct memcpy_box *b)
{
	return b->height * b->depth;
}

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

static uint64_t link_cost(struct copy *c, enum link_direction way,
	double gbps)
{
	double most = gbps;

	if ((c->raw_src || c->raw_dst || c->staged)
	    && gbps > knobs.pageable_gbps)
		gbps = knobs.pageable_gbps;
	c->op.link.demand[way] = gbps / most;
	return (uint64_t)knobs.link_ns
		+ (uint64_t)((double)c->size / (gbps * link_share()));
}

static uint64_t start_h2d(struct op *op)
{
	return link_cost((struct copy *)op, LINK_IN, knobs.h2d_gbps);
}

static uint64_t start_d2h(struct op *op)
{
	return link_cost((struct copy *)op, LINK_OUT, knobs.d2h_gbps);
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

static uint64_t sum_of_source(const struct memcpy_box *b)
{
	uint64_t i, sum = 0;

	for (i = 0; i < nr_rows(b); i++)
		sum = sum * 31 + sum_of((void *)(uintptr_t)row_at(b, i, false),
			b->width);
	return sum;
}

/*
 * An operation wrote the source since the copy was issued, or a host function,
 * whose stores nobody sees; or it is gone.
 */
static bool source_is_excused(const struct copy *c)
{
	const struct memcpy_box *b = &c->box;
	struct hostmem *h;
	uint64_t i, at;

	if (hostfn_ended_ns() > c->op.submit_ns)
		return true;
	for (i = 0; i < nr_rows(b); i++) {
		at = row_at(b, i, false);
		h = hostmem_find(at);
		if (!h || race_last_write(h->map.block->shadow,
		    at - h->map.address, b->width) > c->op.submit_ns)
			return true;
	}
	return false;
}

/*
 * The CPU's own stores are seen by nobody, but a pinned source that is not
 * what it was when the copy was issued, and that no operation has written
 * since, was changed by the CPU too early.
 */
static void check_source(const struct copy *c)
{
	/* The knob's own bit may lie in several copies' sources. */
	if (!c->watched || knobs.flip_h2d || !hostmem_find(c->box.src)
	    || sum_of_source(&c->box) == c->sum || source_is_excused(c))
		return;
	report_rule("hostwrite", "the source of copy to device (operation "
		"%llu, stream %llu), %#llx, %llu bytes, was written by the CPU "
		"while the copy was in flight", (unsigned long long)c->op.number,
		(unsigned long long)c->op.stream_id,
		(unsigned long long)c->box.src, (unsigned long long)c->size);
}

/* SOFTCUDA_FLIP_H2D: one wrong bit, which the program's results must show. */
static void flip_source(const struct copy *c)
{
	static int64_t nr;

	if (c->raw_src || c->staged || c->size < FLIP_MIN
	    || ++nr != knobs.flip_h2d)
		return;
	((uint8_t *)(uintptr_t)row_at(&c->box, nr_rows(&c->box) / 2,
		false))[c->box.width > 3 ? c->box.width / 2 | 3 : 0] ^= 0x40;
	report_log("bit flipped in the source of operation %llu",
		(unsigned long long)c->op.number);
}

/* A piece of row i at `off`; 0 and a dead context if it is not there. */
static uint64_t side_span(struct copy *c, uint64_t i, uint64_t off, uint64_t n,
	bool write, uint8_t **bytes)
{
	uint64_t address = row_at(&c->box, i, write) + off;

	if (!write && c->staged) {
		*bytes = c->staged + i * c->box.width + off;
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

static bool move_row(struct copy *c, uint64_t i)
{
	uint64_t off = 0, n;
	uint8_t *from, *to;

	while (off < c->box.width) {
		n = side_span(c, i, off, c->box.width - off, false, &from);
		if (n)
			n = side_span(c, i, off, n, true, &to);
		if (!n)
			return false;
		memmove(to, from, n);
		off += n;
	}
	return true;
}

static void move(struct copy *c)
{
	uint64_t i;

	for (i = 0; i < nr_rows(&c->box) && !c->op.context->error; i++)
		if (!move_row(c, i))
			return;
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

#define COPY_TYPE(id, text, eng, begin, end) \
static const struct op_type id = { .name = text, .engine = eng, \
	.start = begin, .finish = end, .release = release }

COPY_TYPE(h2d_type, "copy to device", ENGINE_H2D, start_h2d, finish_h2d);
COPY_TYPE(d2h_type, "copy to host", ENGINE_D2H, start_d2h, finish_d2h);
COPY_TYPE(d2d_type, "copy on device", ENGINE_COMPUTE, start_d2d, finish_d2d);
COPY_TYPE(peer_type, "copy between devices", ENGINE_D2H, start_d2h,
	finish_d2d);
COPY_TYPE(h2h_type, "copy on host", ENGINE_NONE, NULL, finish_h2h);

static bool overlaps(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

static bool uses(const struct op *op, const struct map *m)
{
	const struct copy *c = (const struct copy *)op;
	uint64_t i, address, size;

	if (launch_uses(op, m))
		return true;
	for (i = 0; memset_row(op, i, &address, &size); i++)
		if (overlaps(address, size, m->address, m->size))
			return true;
	if (op->type->release != release)
		return false;
	for (i = 0; i < nr_rows(&c->box); i++)
		if (overlaps(row_at(&c->box, i, true), c->box.width,
		    m->address, m->size) || (!c->staged
		    && overlaps(row_at(&c->box, i, false), c->box.width,
		    m->address, m->size)))
			return true;
	return false;
}

void memcpy_check_idle(const struct map *m, const char *rule,
	const char *call)
{
	struct op *op;

	for (op = sim_pending(); op; op = op->pend_next) {
		if (!uses(op, m))
			continue;
		report_rule(rule, "%s of %#llx while %s%s%s (operation %llu, "
			"stream %llu) is in flight", call,
			(unsigned long long)m->address, op->type->name,
			launch_kernel_name(op) ? " " : "",
			launch_kernel_name(op) ? launch_kernel_name(op) : "",
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
	struct memcpy_box box;
	enum side dst_side, src_side;
	bool async;
};

/* The bytes from the first to behind the last; false when they wrap. */
static bool extent(const struct memcpy_box *b, bool dst, uint64_t *end)
{
	uint64_t pitch = dst ? b->dst_pitch : b->src_pitch;
	uint64_t slice = dst ? b->dst_slice : b->src_slice;
	uint64_t rows, slices;

	if (__builtin_mul_overflow(b->height - 1, pitch, &rows)
	    || __builtin_mul_overflow(b->depth - 1, slice, &slices)
	    || __builtin_add_overflow(rows, slices, end)
	    || __builtin_add_overflow(*end, b->width, end)
	    || __builtin_add_overflow(*end, dst ? b->dst : b->src, end))
		return false;
	return true;
}

/* One kind of memory, and all of it usable; the kind is in *side. */
static CUresult check_side(const struct memcpy_box *b, bool dst,
	struct context *ctx, enum side *side)
{
	uint64_t i, end, at;

	if (!(dst ? b->dst : b->src) || !extent(b, dst, &end))
		return CUDA_ERROR_INVALID_VALUE;
	*side = side_of(row_at(b, 0, dst), b->width);
	for (i = 0; i < nr_rows(b); i++) {
		at = row_at(b, i, dst);
		if (*side == SIDE_CROSSING || side_of(at, b->width) != *side) {
			report_note("a copy crosses the border of pinned memory");
			return CUDA_ERROR_INVALID_VALUE;
		}
		if (*side != SIDE_PAGEABLE
		    && !access_usable(at, b->width, dst, ctx))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static CUresult check(struct request *q, struct context *ctx)
{
	CUresult r = check_side(&q->box, true, ctx, &q->dst_side);

	return r ? r : check_side(&q->box, false, ctx, &q->src_side);
}

/* The device whose memory it is; mapped host memory is the host's. */
static int device_of(uint64_t address)
{
	struct map *m = access_find(address);

	return m ? m->block->device : BLOCK_HOST;
}

static const struct op_type *choose(const struct request *q)
{
	int dst = device_of(q->box.dst), src = device_of(q->box.src);

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

/* Rows, or slices, that follow each other on both sides are one. */
static void join_rows(struct memcpy_box *b)
{
	uint64_t whole;

	if (b->src_pitch == b->width && b->dst_pitch == b->width
	    && !__builtin_mul_overflow(b->width, b->height, &whole)) {
		b->width = whole;
		b->height = 1;
		b->src_pitch = b->dst_pitch = whole;
		if ((b->depth == 1 || (b->src_slice == whole
		    && b->dst_slice == whole))
		    && !__builtin_mul_overflow(whole, b->depth, &whole)) {
			b->width = whole;
			b->depth = 1;
		}
	}
}

static uint8_t *stage(const struct memcpy_box *b)
{
	uint8_t *to = object_alloc(b->width * nr_rows(b));
	uint64_t i;

	for (i = 0; i < nr_rows(b); i++)
		memcpy(to + i * b->width,
			(void *)(uintptr_t)row_at(b, i, false), b->width);
	return to;
}

static CUresult issue(struct stream *s, struct request *q)
{
	const struct op_type *type;
	struct copy *c;
	CUresult r;

	if (!q->box.width || !q->box.height || !q->box.depth)
		return CUDA_SUCCESS;
	join_rows(&q->box);
	r = check(q, s->context);
	if (r)
		return r;
	type = choose(q);
	c = (struct copy *)op_create(type, sizeof(*c));
	c->box = q->box;
	c->size = q->box.width * nr_rows(&q->box);
	c->raw_dst = q->dst_side == SIDE_PAGEABLE;
	c->raw_src = q->src_side == SIDE_PAGEABLE;
	if (c->raw_src && !waits(q, type))
		c->staged = stage(&q->box);
	if (knobs.race && type == &h2d_type && q->src_side == SIDE_PINNED
	    && !waits(q, type)) {
		c->watched = true;
		c->sum = sum_of_source(&q->box);
	}
	stream_submit(s, &c->op);
	r = waits(q, type) ? stream_wait(s, &c->op) : CUDA_SUCCESS;
	op_put(&c->op);
	return r;
}

CUresult memcpy_copy(struct context *ctx, const struct memcpy_box *box,
	CUstream stream, enum stream_default zero, bool async)
{
	struct request q = { .box = *box, .async = async };
	struct stream *s;
	CUresult r = stream_find(ctx, stream, zero, &s);

	return r ? r : issue(s, &q);
}
