/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of stream-ordered memory, see mempool.h.  Allocation and free are
 * operations of their streams that the race detector takes for writes of the
 * whole range: a use that is not ordered behind the one and before the other
 * is a race.  Called by mempool_api.c, memory.c and at synchronisations.
 */
#include "test/softcuda/mempool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/report.h"

#define UNIT 512u
#define OPPORTUNISTIC 1		/* index into reuse */
#define INTERNAL 2

/* A piece of a segment, live or free; the pieces fill it. */
struct chunk {
	uint64_t off, size;
	uint64_t requested;		/* when live */
	bool live;			/* as the calls say */
	struct op *freed_by;		/* counted; NULL: free for anyone */
	struct context *context;	/* of the allocation */
	struct chunk *prev, *next;	/* by address */
};

struct segment {
	struct mempool *pool;
	struct map *map;
	struct chunk *chunks;		/* owned */
	struct segment *prev, *next;
};

/* An allocation or free, as an operation. */
struct poolop {
	struct op op;
	uint64_t address, size;
};

static struct mempool *pools;		/* all, with the default ones */
static struct mempool *defaults[DEVICE_MAX];

/* The range begins, or ends, its life here. */
static void mark(struct op *op)
{
	struct poolop *p = (struct poolop *)op;
	struct map *m = space_find(p->address);

	if (knobs.race && m && !op->context->error)
		race_access(&m->block->shadow, p->address - m->address,
			p->size, true, access_stamp(op, op->type->name),
			&op->clock, p->address);
}

static const struct op_type alloc_type = {
	.name = "allocation", .engine = ENGINE_NONE, .finish = mark,
};
static const struct op_type free_type = {
	.name = "free", .engine = ENGINE_NONE, .finish = mark,
};

/* ---- pools ---------------------------------------------------------------------- */

struct mempool *mempool_create(int device, uint64_t max_size)
{
	struct mempool *p = object_alloc(sizeof(*p));
	int i;

	p->device = device;
	p->fd = -1;
	p->max_size = max_size;
	for (i = 0; i < 3; i++)
		p->reuse[i] = 1;
	p->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	LL_PREPEND(pools, p);
	object_add(p, OBJECT_MEMPOOL);
	return p;
}

struct mempool *mempool_default(int device)
{
	if (!defaults[device]) {
		defaults[device] = mempool_create(device, 0);
		defaults[device]->is_default = true;
	}
	return defaults[device];
}

static bool is_settled(const struct chunk *c)
{
	return !c->live && !c->freed_by;
}

static void drop_chunk(struct segment *s, struct chunk *c)
{
	DL_DELETE(s->chunks, c);
	op_put(c->freed_by);
	free(c);
}

/* Frees that have been reached; neighbours become one. */
static void settle(struct segment *s)
{
	struct chunk *c, *next;

	DL_FOREACH(s->chunks, c) {
		if (c->live || !c->freed_by || c->freed_by->state != OP_DONE)
			continue;
		op_put(c->freed_by);
		c->freed_by = NULL;
		race_forget(s->map->block->shadow, c->off, c->size);
	}
	for (c = s->chunks; c; c = next) {
		next = c->next;
		if (!next || !is_settled(c) || !is_settled(next))
			continue;
		c->size += next->size;
		drop_chunk(s, next);
		next = c;
	}
}

static void drop_segment(struct segment *s)
{
	struct mempool *p = s->pool;
	struct region *r = s->map->region;

	while (s->chunks)
		drop_chunk(s, s->chunks);
	p->reserved -= s->map->size;
	DL_DELETE(p->segments, s);
	space_unmap(s->map);
	space_release(r);
	free(s);
}

static void free_if_done(struct mempool *p)
{
	if (!p->destroyed || p->segments)
		return;
	LL_DELETE(pools, p);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

void mempool_trim(struct mempool *p, uint64_t keep)
{
	struct segment *s, *next;

	for (s = p->segments; s && p->reserved > keep; s = next) {
		next = s->next;
		settle(s);
		if (is_settled(s->chunks) && !s->chunks->next)
			drop_segment(s);
	}
}

void mempool_synchronized(void)
{
	struct mempool *p, *next;

	for (p = pools; p; p = next) {
		next = p->next;
		mempool_trim(p, p->destroyed ? 0 : p->threshold);
		free_if_done(p);
	}
}

void mempool_destroy(struct mempool *p)
{
	object_remove(p);
	p->destroyed = true;
	mempool_trim(p, 0);
	free_if_done(p);
}

void mempool_context_end(struct context *ctx)
{
	struct mempool *p;
	struct segment *s;
	struct chunk *c;

	LL_FOREACH(pools, p) {
		DL_FOREACH(p->segments, s) {
			DL_FOREACH(s->chunks, c) {
				if (c->context != ctx)
					continue;
				if (c->live)
					p->used -= c->size;
				c->live = false;
				op_put(c->freed_by);
				c->freed_by = NULL;
				race_forget(s->map->block->shadow, c->off,
					c->size);
			}
		}
	}
	mempool_synchronized();
}

void mempool_grant(struct mempool *p, int device, unsigned flags)
{
	struct segment *s;

	p->access[device] = (uint8_t)flags;
	DL_FOREACH(p->segments, s)
		s->map->access[device] = (uint8_t)flags;
}

/* ---- allocation ------------------------------------------------------------------ */

/* A segment that is one free chunk. */
static struct segment *add_segment(struct mempool *p, struct block *b)
{
	struct region *r = space_reserve(b->size, 0, 0, REGION_POOL);
	uint64_t size = b->size;
	struct segment *s;

	if (!r)
		return NULL;
	s = object_alloc(sizeof(*s));
	s->pool = p;
	s->map = space_map(r, r->address, size, b);
	memcpy(s->map->access, p->access, sizeof(p->access));
	r->segment = s;
	s->chunks = NULL;
	DL_APPEND(s->chunks, (struct chunk *)object_alloc(sizeof(struct chunk)));
	s->chunks->size = size;
	DL_APPEND(p->segments, s);
	p->reserved += size;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return s;
}

static struct segment *make_segment(struct mempool *p, uint64_t need)
{
	uint64_t size = (need + knobs.granularity - 1)
		& ~(knobs.granularity - 1);
	struct segment *s;
	struct block *b;

	if (size < need || (p->max_size && p->reserved + size > p->max_size)
	    || block_create(p->device, size, &b))
		return NULL;
	s = add_segment(p, b);
	block_put(b);
	return s;
}

/* Whether the chunk may be given out in stream `s` without a wait. */
static bool is_ready(const struct mempool *p, const struct chunk *c,
	const struct stream *s)
{
	if (c->live)
		return false;
	return !c->freed_by || c->freed_by->stream_id == s->id
		|| (p->reuse[OPPORTUNISTIC] && c->freed_by->state == OP_DONE);
}

/* The smallest chunk that will do; `wait`: one that must be waited for. */
static struct chunk *find_chunk(struct mempool *p, uint64_t need,
	const struct stream *s, bool wait, struct segment **where)
{
	struct chunk *best = NULL, *c;
	struct segment *g;

	DL_FOREACH(p->segments, g) {
		settle(g);
		DL_FOREACH(g->chunks, c) {
			if (c->live || c->size < need
			    || (!wait && !is_ready(p, c, s))
			    || (best && best->size <= c->size))
				continue;
			best = c;
			*where = g;
		}
	}
	return best;
}

/* Everything that is free anywhere on the device goes back. */
static void trim_device(int device)
{
	struct mempool *p;

	sim_wait_context(NULL);
	LL_FOREACH(pools, p)
		if (p->device == device)
			mempool_trim(p, 0);
}

static struct chunk *get_chunk(struct mempool *p, uint64_t need,
	const struct stream *s, struct segment **where)
{
	struct chunk *c = find_chunk(p, need, s, false, where);

	if (c)
		return c;
	*where = make_segment(p, need);
	if (*where)
		return (*where)->chunks;
	if (p->reuse[INTERNAL]) {
		c = find_chunk(p, need, s, true, where);
		if (c)
			return c;
	}
	trim_device(p->device);
	*where = make_segment(p, need);
	return *where ? (*where)->chunks : NULL;
}

/* The rest becomes a chunk of its own, free as this one was. */
static void split(struct segment *s, struct chunk *c, uint64_t need)
{
	struct chunk *rest;

	if (c->size == need)
		return;
	rest = object_alloc(sizeof(*rest));
	rest->off = c->off + need;
	rest->size = c->size - need;
	rest->context = c->context;
	rest->freed_by = c->freed_by;
	if (rest->freed_by)
		op_get(rest->freed_by);
	c->size = need;
	DL_APPEND_ELEM(s->chunks, c, rest);
}

static struct poolop *make_op(const struct op_type *type, uint64_t address,
	uint64_t size)
{
	struct poolop *o = (struct poolop *)op_create(type, sizeof(*o));

	o->address = address;
	o->size = size;
	return o;
}

CUresult mempool_alloc(struct mempool *p, struct stream *s, size_t size,
	CUdeviceptr *out)
{
	uint64_t need = (size + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	struct segment *g;
	struct poolop *o;
	struct chunk *c;

	if (!out || !size || p->imported)
		return CUDA_ERROR_INVALID_VALUE;
	if (need < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	c = get_chunk(p, need, s, &g);
	if (!c)
		return CUDA_ERROR_OUT_OF_MEMORY;
	split(g, c, need);
	o = make_op(&alloc_type, g->map->address + c->off, need);
	op_after(&o->op, c->freed_by);
	if (c->freed_by && knobs.race)
		race_clock_join(&o->op.clock, &c->freed_by->clock);
	op_put(c->freed_by);
	c->freed_by = NULL;
	c->live = true;
	c->requested = size;
	c->context = s->context;
	p->used += need;
	if (p->used > p->used_high)
		p->used_high = p->used;
	stats.allocs++;
	*out = o->address;
	stream_submit(s, &o->op);
	op_put(&o->op);
	return CUDA_SUCCESS;
}

CUdeviceptr mempool_adopt(struct mempool *p, struct context *ctx,
	struct block *b, uint64_t off, uint64_t size)
{
	uint64_t need = (size + UNIT - 1) & ~(uint64_t)(UNIT - 1);
	struct segment *g = add_segment(p, b);
	struct chunk *c;

	if (!g)
		return 0;
	c = g->chunks;
	if (off) {
		split(g, c, off);
		c = c->next;
	}
	split(g, c, need);
	c->live = true;
	c->requested = size;
	c->context = ctx;
	p->used += need;
	if (p->used > p->used_high)
		p->used_high = p->used;
	return g->map->address + off;
}

/* ---- free ---------------------------------------------------------------------- */

static struct chunk *chunk_at(const struct map *m, uint64_t address)
{
	uint64_t off = address - m->address;
	struct chunk *c;

	DL_FOREACH(m->region->segment->chunks, c)
		if (off - c->off < c->size)
			return c;
	return NULL;
}

static struct chunk *live_chunk(uint64_t address, struct segment **where)
{
	struct map *m = space_find(address);
	struct chunk *c;

	if (!m || m->region->kind != REGION_POOL)
		return NULL;
	c = chunk_at(m, address);
	*where = m->region->segment;
	return c && c->live && m->address + c->off == address ? c : NULL;
}

CUresult mempool_free(CUdeviceptr address, struct stream *s)
{
	struct segment *g;
	struct chunk *c = live_chunk(address, &g);
	struct poolop *o;

	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	o = make_op(&free_type, address, c->size);
	c->live = false;
	c->freed_by = &o->op;		/* takes the reference */
	g->pool->used -= c->size;
	stats.frees++;
	stream_submit(s, &o->op);
	return CUDA_SUCCESS;
}

void mempool_free_now(CUdeviceptr address)
{
	struct segment *g;
	struct chunk *c = live_chunk(address, &g);

	if (!c)
		return;
	c->live = false;
	g->pool->used -= c->size;
	race_forget(g->map->block->shadow, c->off, c->size);
	stats.frees++;
	mempool_synchronized();
}

/* ---- lookup ---------------------------------------------------------------------- */

bool mempool_range(const struct map *m, uint64_t address,
	struct memory_range *out)
{
	struct chunk *c = chunk_at(m, address);

	if (!c || !c->live)
		return false;
	out->address = m->address + c->off;
	out->size = c->requested;
	return true;
}

uint64_t mempool_reach(const struct map *m, uint64_t address)
{
	struct chunk *c = chunk_at(m, address);
	uint64_t end = address;

	for (; c && (c->live || (c->freed_by
	     && c->freed_by->state != OP_DONE)); c = c->next)
		end = m->address + c->off + c->size;
	return end - address;
}

struct context *mempool_context(const struct map *m, uint64_t address)
{
	struct chunk *c = chunk_at(m, address);

	return c ? c->context : NULL;
}

struct mempool *mempool_of(const struct map *m)
{
	return m->region->segment->pool;
}
