/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device address space, see space.h: an array of regions sorted by
 * address, and a page table of two levels for what is mapped.  Called by
 * memory.c and vmm.c, and for every stretch that a kernel or copy touches.
 */
#include "test/softcuda/space.h"

#include <stdlib.h>
#include <string.h>

#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"

#define LEAF_SIZE (1ull << 30)
#define NR_LEAVES (SPACE_SIZE / LEAF_SIZE)

static struct region **regions;
static size_t nr_regions, cap_regions;
static struct map **leaves[NR_LEAVES];
static uint64_t next_buffer_id = 1;
/* An address just below the first is still the device's, and invalid. */
#define SPACE_FIRST (SPACE_BASE + (1ull << 30))

static uint64_t cursor = SPACE_FIRST;

/* Index of the first region that ends behind `address`. */
static size_t lower_bound(uint64_t address)
{
	size_t lo = 0, hi = nr_regions, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (regions[mid]->address + regions[mid]->size <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct region *space_region(uint64_t address)
{
	size_t i = lower_bound(address);

	return i < nr_regions && regions[i]->address <= address
		? regions[i] : NULL;
}

static bool is_free(uint64_t address, uint64_t size, size_t *at)
{
	*at = lower_bound(address);
	return address >= SPACE_BASE && size <= SPACE_SIZE
		&& address - SPACE_BASE <= SPACE_SIZE - size
		&& (*at == nr_regions || regions[*at]->address >= address + size);
}

static uint64_t align_up(uint64_t x, uint64_t align)
{
	return (x + align - 1) & ~(align - 1);
}

/* First fit from `from` on; 0 when there is none. */
static uint64_t find_gap(uint64_t from, uint64_t size, uint64_t align,
	size_t *at)
{
	uint64_t address = align_up(from, align);

	while (address - SPACE_BASE < SPACE_SIZE) {
		if (is_free(address, size, at))
			return address;
		if (*at == nr_regions)
			return 0;
		address = align_up(regions[*at]->address + regions[*at]->size,
			align);
	}
	return 0;
}

struct region *space_reserve(uint64_t size, uint64_t align, uint64_t hint,
	enum region_kind kind)
{
	struct region *r;
	uint64_t address = 0;
	size_t at = 0;

	if (align < knobs.granularity)
		align = knobs.granularity;
	if (hint && hint % align == 0 && is_free(hint, size, &at))
		address = hint;
	/* Onwards first: addresses are used again as late as possible. */
	if (!address)
		address = find_gap(cursor, size, align, &at);
	if (!address)
		address = find_gap(SPACE_FIRST, size, align, &at);
	if (!address)
		return NULL;
	cursor = address + size;
	r = object_alloc(sizeof(*r));
	r->address = address;
	r->size = size;
	r->kind = kind;
	regions = object_grow(regions, nr_regions, &cap_regions,
		sizeof(*regions));
	memmove(&regions[at + 1], &regions[at],
		(nr_regions - at) * sizeof(*regions));
	regions[at] = r;
	nr_regions++;
	return r;
}

void space_release(struct region *r)
{
	size_t at = lower_bound(r->address);

	memmove(&regions[at], &regions[at + 1],
		(nr_regions - at - 1) * sizeof(*regions));
	nr_regions--;
	free(r);
}

void space_for_each(void (*fn)(struct region *r, void *arg), void *arg)
{
	size_t i;

	for (i = nr_regions; i-- > 0; )
		if (i < nr_regions)
			fn(regions[i], arg);
}

unsigned space_count(enum region_kind kind)
{
	unsigned nr = 0;
	size_t i;

	for (i = 0; i < nr_regions; i++)
		nr += regions[i]->kind == kind;
	return nr;
}

static struct map **entry(uint64_t address, bool make)
{
	uint64_t off = address - SPACE_BASE;
	struct map ***leaf = &leaves[off / LEAF_SIZE];

	if (!*leaf) {
		if (!make)
			return NULL;
		*leaf = object_alloc(LEAF_SIZE / knobs.granularity
			* sizeof(**leaf));
	}
	return &(*leaf)[off % LEAF_SIZE / knobs.granularity];
}

struct map *space_map(struct region *r, uint64_t address, uint64_t size,
	struct block *b)
{
	struct map *m = object_alloc(sizeof(*m));
	uint64_t at;

	m->address = address;
	m->size = size;
	m->block = b;
	m->region = r;
	m->buffer_id = next_buffer_id++;
	block_get(b);
	for (at = address; at < address + size; at += knobs.granularity)
		*entry(at, true) = m;
	r->nr_maps++;
	return m;
}

void space_unmap(struct map *m)
{
	uint64_t at;

	for (at = m->address; at < m->address + m->size;
	     at += knobs.granularity)
		*entry(at, true) = NULL;
	m->region->nr_maps--;
	block_put(m->block);
	free(m);
}

struct map *space_find(uint64_t address)
{
	struct map **e;

	if (!space_holds(address))
		return NULL;
	e = entry(address, false);
	return e ? *e : NULL;
}

unsigned space_access(const struct map *m, const struct context *ctx)
{
	if (m->access[ctx->device] || !m->context)
		return m->access[ctx->device];
	/* A peer's plain allocation, once peer access is enabled. */
	return ctx->peers & 1u << m->context->device
		? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
}
