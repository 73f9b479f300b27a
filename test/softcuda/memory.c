/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuMemAlloc and what belongs to it.  Requests below the granularity share
 * slabs of one granule in units of 512 bytes; a slab counts as used memory as
 * a whole.  Freeing waits for the device, as the real driver does, or with
 * SOFTCUDA_FREE_WAITS=0 is put off until what is under way has ended.
 */
#include "test/softcuda/memory.h"

#include <stdlib.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/object.h"
#include "test/softcuda/paging.h"
#include "test/softcuda/report.h"
#include "test/softcuda/sim.h"

#define UNIT 512u

struct slab {
	struct map *map;
	struct context *context;
	struct slab *next;
	unsigned nr_units, nr_used;
	/* By unit: 1 + index of the allocation's first unit, 0 when free. */
	uint32_t *owner;
	size_t *requested;	/* by first unit; 0: freed, but in use */
};

/* A free that waits for work in place of the host. */
struct late_free {
	struct op op;
	uint64_t address;
};

static struct slab *slabs;
static unsigned nr_late_frees;

static struct map *map_region(struct context *ctx, struct block *b,
	enum region_kind kind)
{
	struct region *r = space_reserve(b->size, 0, 0, kind);
	struct map *m;

	if (!r)
		return NULL;
	r->context = ctx;
	m = space_map(r, r->address, b->size, b);
	m->context = ctx;
	m->access[ctx->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return m;
}

static struct map *make_region(struct context *ctx, uint64_t size,
	enum region_kind kind)
{
	struct block *b;
	struct map *m;

	if (knobs.uvm)
		b = block_create_managed(ctx->device, size);
	else if (block_create(ctx->device, size, &b))
		b = NULL;
	if (!b)
		return NULL;
	m = map_region(ctx, b, kind);
	block_put(b);
	return m;
}

static void drop_region(struct map *m)
{
	struct region *r = m->region;

	space_unmap(m);
	space_release(r);
}

static struct slab *make_slab(struct context *ctx)
{
	struct map *m = make_region(ctx, knobs.granularity, REGION_SLAB);
	struct slab *s;

	if (!m)
		return NULL;
	s = object_alloc(sizeof(*s));
	s->map = m;
	s->context = ctx;
	s->nr_units = (unsigned)(knobs.granularity / UNIT);
	s->owner = object_alloc(s->nr_units * sizeof(*s->owner));
	s->requested = object_alloc(s->nr_units * sizeof(*s->requested));
	s->next = slabs;
	slabs = s;
	m->region->slab = s;
	return s;
}

static void drop_slab(struct slab *s)
{
	struct slab **at = &slabs;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	drop_region(s->map);
	free(s->owner);
	free(s->requested);
	free(s);
}

/* First fit; false when no run of free units is long enough. */
static bool carve(struct slab *s, size_t size, uint64_t *out)
{
	unsigned need = (unsigned)((size + UNIT - 1) / UNIT);
	unsigned i, run = 0;

	if (s->nr_units - s->nr_used < need)
		return false;
	for (i = 0; i < s->nr_units && run < need; i++)
		run = s->owner[i] ? 0 : run + 1;
	if (run < need)
		return false;
	s->nr_used += need;
	s->requested[i - need] = size;
	*out = s->map->address + (uint64_t)(i - need) * UNIT;
	for (run = i - need; run < i; run++)
		s->owner[run] = i - need + 1;
	return true;
}

static CUresult alloc_small(struct context *ctx, uint64_t *out, size_t size)
{
	struct slab *s;

	for (s = slabs; s; s = s->next)
		if (s->context == ctx && carve(s, size, out))
			return CUDA_SUCCESS;
	s = make_slab(ctx);
	if (!s || !carve(s, size, out))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

static CUresult alloc_large(struct context *ctx, uint64_t *out, size_t size)
{
	uint64_t rounded = (size + knobs.granularity - 1)
		& ~(knobs.granularity - 1);
	struct map *m;

	if (rounded < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m = make_region(ctx, rounded, REGION_ALLOC);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->region->requested = size;
	*out = m->address;
	return CUDA_SUCCESS;
}

static CUresult alloc(struct context *ctx, uint64_t *out, size_t size)
{
	return size < knobs.granularity ? alloc_small(ctx, out, size)
		: alloc_large(ctx, out, size);
}

CUresult memory_alloc(struct context *ctx, CUdeviceptr *out, size_t size)
{
	uint64_t address = 0;
	CUresult r;

	if (!out || !size)
		return CUDA_ERROR_INVALID_VALUE;
	r = alloc(ctx, &address, size);
	if (r && nr_late_frees) {
		sim_wait_context(NULL);
		r = alloc(ctx, &address, size);
	}
	if (r)
		return r;
	stats.allocs++;
	*out = address;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = memory_alloc(c.context, out, size);
	return call_end(&c);
}

static CUresult alloc_pitch(struct context *ctx, CUdeviceptr *out,
	size_t *pitch, size_t width, size_t height, unsigned element)
{
	size_t p = (width + 511) & ~(size_t)511;
	CUresult r;

	if (!out || !pitch || !width || !height || (element != 4
	    && element != 8 && element != 16))
		return CUDA_ERROR_INVALID_VALUE;
	if (p < width || p > SIZE_MAX / height)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = memory_alloc(ctx, out, p * height);
	if (!r)
		*pitch = p;
	return r;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width,
	size_t height, unsigned int element)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = alloc_pitch(c.context, out, pitch, width, height,
			element);
	return call_end(&c);
}

static void free_small(struct slab *s, uint64_t address)
{
	unsigned first = (unsigned)((address - s->map->address) / UNIT), i;

	for (i = first; i < s->nr_units && s->owner[i] == first + 1; i++) {
		s->owner[i] = 0;
		s->nr_used--;
	}
	race_forget(s->map->block->shadow, (uint64_t)first * UNIT,
		(uint64_t)(i - first) * UNIT);
	if (!s->nr_used)
		drop_slab(s);
}

static void free_range(const struct map *m, uint64_t address)
{
	if (m->region->kind == REGION_SLAB)
		free_small(m->region->slab, address);
	else
		drop_region((struct map *)m);
}

static void finish_late_free(struct op *op)
{
	uint64_t address = ((struct late_free *)op)->address;

	nr_late_frees--;
	free_range(space_find(address), address);
}

static const struct op_type late_free_type = {
	.name = "late free",
	.engine = ENGINE_NONE,
	.finish = finish_late_free,
};

/* Nobody finds it any more, but what is under way may still use it. */
static void put_off(const struct memory_range *range)
{
	struct region *r = range->map->region;
	struct late_free *f;
	struct op *op;

	if (r->kind == REGION_SLAB)
		r->slab->requested[(range->address - r->address) / UNIT] = 0;
	else
		r->requested = 0;
	f = (struct late_free *)op_create(&late_free_type, sizeof(*f));
	f->address = range->address;
	f->op.context = range->map->context;
	f->op.device = range->map->context->device;
	for (op = sim_pending(); op; op = op->pend_next)
		op_after(&f->op, op);
	nr_late_frees++;
	sim_submit(&f->op);
	op_put(&f->op);
}

CUresult memory_free(CUdeviceptr address)
{
	struct memory_range range;

	if (!memory_range(address, &range) || range.address != address
	    || range.map->region->kind == REGION_OPENED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!knobs.free_waits && range.map->region->kind != REGION_POOL) {
		stats.frees++;
		put_off(&range);
		return CUDA_SUCCESS;
	}
	if (range.map->context)
		context_synchronize(range.map->context);
	sim_wait_context(NULL);
	/* Others may have been here meanwhile. */
	if (!memory_range(address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	if (range.map->region->kind == REGION_POOL) {
		mempool_free_now(address);
		return CUDA_SUCCESS;
	}
	stats.frees++;
	free_range(range.map, address);
	return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT | CALL_FREES) && address)
		c.result = memory_free(address);
	return call_end(&c);
}

struct map *memory_open(struct context *ctx, struct block *b)
{
	struct map *m = map_region(ctx, b, REGION_OPENED);

	if (m)
		m->region->requested = b->size;
	return m;
}

void memory_close(struct map *m)
{
	drop_region(m);
}

/* ---- lookup ------------------------------------------------------------------- */

/* Size 0: freed, but still in use. */
static bool find_range(uint64_t address, struct memory_range *out)
{
	struct map *m = space_find(address);
	struct slab *s;
	unsigned unit, first;

	if (!m || m->region->kind == REGION_RESERVED)
		return false;
	out->map = m;
	if (m->region->kind == REGION_ALLOC
	    || m->region->kind == REGION_OPENED) {
		out->address = m->address;
		out->size = m->region->requested;
		return true;
	}
	if (m->region->kind == REGION_POOL)
		return mempool_range(m, address, out);
	s = m->region->slab;
	unit = (unsigned)((address - m->address) / UNIT);
	if (!s->owner[unit])
		return false;
	first = s->owner[unit] - 1;
	out->address = m->address + (uint64_t)first * UNIT;
	out->size = s->requested[first];
	return true;
}

bool memory_range(uint64_t address, struct memory_range *out)
{
	return find_range(address, out) && out->size;
}

uint64_t memory_reach(const struct map *m, uint64_t address)
{
	struct memory_range range;
	uint64_t end;

	if (!memory_has_ends(m))
		return m->address + m->size - address;
	if (!memory_range(address, &range))
		return 0;
	end = range.address + ((range.size + UNIT - 1) & ~(uint64_t)(UNIT - 1));
	return end > address ? end - address : 0;
}

uint64_t memory_reach_running(const struct map *m, uint64_t address)
{
	struct memory_range range;

	if (m->region && m->region->kind == REGION_POOL)
		return mempool_reach(m, address);
	/* How long it was is not known any more, nor does it matter. */
	if (memory_has_ends(m) && find_range(address, &range) && !range.size)
		return m->address + m->size - address;
	return memory_reach(m, address);
}

static void drop_alloc(struct region *r, void *ctx)
{
	if (r->kind == REGION_ALLOC && r->context == ctx)
		drop_region(space_find(r->address));
}

void memory_context_end(struct context *ctx)
{
	struct slab *s, *next;

	for (s = slabs; s; s = next) {
		next = s->next;
		if (s->context == ctx)
			drop_slab(s);
	}
	space_for_each(drop_alloc, ctx);
}

/* ---- questions ------------------------------------------------------------------ */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (total)
			*total = knobs.memory;
		if (free_bytes)
			*free_bytes = knobs.memory
				- block_used(c.context->device)
				- paging_used(c.context->device);
	}
	return call_end(&c);
}

/* For mapped memory: the one mapping, or all that adjoin it (F-2.1). */
static bool mapped_range(uint64_t address, struct memory_range *out)
{
	struct map *m = access_find(address), *n;

	if (!m || memory_has_ends(m))
		return false;
	out->address = m->address;
	out->size = m->size;
	while (m->region && knobs.vmm_range && (n = space_find(out->address - 1))
	       && n->region == m->region) {
		out->address -= n->size;
		out->size += n->size;
	}
	while (m->region && knobs.vmm_range
	       && (n = space_find(out->address + out->size))
	       && n->region == m->region)
		out->size += n->size;
	return true;
}

static CUresult address_range(CUdeviceptr *base, size_t *size,
	CUdeviceptr address)
{
	struct memory_range range;

	if (!memory_range(address, &range) && !mapped_range(address, &range))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = range.address;
	if (size)
		*size = range.size;
	return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
	CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = address_range(base, size, address);
	return call_end(&c);
}
