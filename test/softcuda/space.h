/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device address space: ranges that belong to something, and what is
 * mapped where.  Addresses are numbers; nothing of the process lies there.
 * One space for all devices, and for the host ranges that devices can reach.
 * Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_SPACE_H
#define SOFTCUDA_SPACE_H

#include <stdbool.h>

#include "test/softcuda/abi.h"
#include "test/softcuda/block.h"
#include "test/softcuda/device.h"

#define SPACE_BASE 0x200000000000ull
#define SPACE_SIZE (16ull << 40)

enum region_kind {
	REGION_RESERVED,	/* cuMemAddressReserve */
	REGION_ALLOC,		/* one cuMemAlloc of its own blocks */
	REGION_SLAB,		/* many small cuMemAllocs */
	REGION_POOL,		/* chunks of stream-ordered allocations */
	REGION_OPENED,		/* another process's cuMemAlloc */
};

struct context;
struct segment;
struct slab;

struct region {
	uint64_t address, size;
	enum region_kind kind;
	struct context *context;	/* of an allocation */
	struct slab *slab;		/* of a slab, owned by memory.c */
	struct segment *segment;	/* of a pool, owned by mempool.c */
	uint64_t requested;		/* bytes asked for by cuMemAlloc; 0:
					 * freed, but in use (memory.c) */
	unsigned nr_maps;
};

/* Bytes of one block at one place. */
struct map {
	uint64_t address, size;
	struct block *block;		/* counted */
	struct region *region;		/* NULL for host memory */
	struct context *context;	/* of plain allocations, for peers */
	uint8_t access[DEVICE_MAX];	/* CUmemAccess_flags by device */
	uint8_t host_access;
	uint64_t buffer_id;
};

static inline bool space_holds(uint64_t address)
{
	return address - SPACE_BASE < SPACE_SIZE;
}

/*
 * A free range; size and align are multiples of the granularity.  `hint` is
 * taken when it is free.  NULL when the space is full.
 */
struct region *space_reserve(uint64_t size, uint64_t align, uint64_t hint,
	enum region_kind kind);
/* Nothing may be mapped in it any more. */
void space_release(struct region *r);
struct region *space_region(uint64_t address);
/* Calls `fn` for every region; it may release the one it is given. */
void space_for_each(void (*fn)(struct region *r, void *arg), void *arg);
unsigned space_count(enum region_kind kind);

/* Takes a reference to the block; address and size lie within the region. */
struct map *space_map(struct region *r, uint64_t address, uint64_t size,
	struct block *b);
void space_unmap(struct map *m);
/* What is mapped at a device address, NULL when nothing is. */
struct map *space_find(uint64_t address);

/* The right of `ctx`'s device to use `m`: CUmemAccess_flags. */
unsigned space_access(const struct map *m, const struct context *ctx);

#endif
