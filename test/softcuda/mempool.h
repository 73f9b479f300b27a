/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation.  A pool has segments of device memory, each cut
 * into chunks; a chunk that was freed in a stream may be given out again in
 * that stream at once, elsewhere when the free has been reached.  Guarded by
 * the driver's lock.
 */
#ifndef SOFTCUDA_MEMPOOL_H
#define SOFTCUDA_MEMPOOL_H

#include "test/softcuda/memory.h"
#include "test/softcuda/object.h"
#include "test/softcuda/stream.h"

struct segment;

struct mempool {
	struct object object;
	int device;
	bool is_default;
	bool destroyed;			/* lives until its last chunk is freed */
	bool shared;			/* may be exported */
	bool imported;			/* another process's: nothing is made in it */
	int fd;				/* of its file, once exported; or -1 */
	uint64_t file;			/* the file's number, of imported ones too */
	uint64_t max_size;		/* 0: any */
	uint64_t threshold;		/* kept at synchronisations */
	int reuse[3];			/* by CUmemPool_attribute - 1 */
	uint64_t reserved, reserved_high;
	uint64_t used, used_high;
	uint8_t access[DEVICE_MAX];	/* CUmemAccess_flags */
	struct segment *segments;	/* owned */
	struct mempool *next;
};

struct mempool *mempool_default(int device);
struct mempool *mempool_create(int device, uint64_t max_size);
/* The handle dies; the memory when all of it has been freed. */
void mempool_destroy(struct mempool *p);

CUresult mempool_alloc(struct mempool *p, struct stream *s, size_t size,
	CUdeviceptr *out);
/*
 * The allocation [off, off + size) of another process's segment is live in an
 * imported pool; 0: no address is left.
 */
CUdeviceptr mempool_adopt(struct mempool *p, struct context *ctx,
	struct block *b, uint64_t off, uint64_t size);
CUresult mempool_free(CUdeviceptr address, struct stream *s);
/* Not in stream order: what uses it has ended. */
void mempool_free_now(CUdeviceptr address);
/* Gives back what is free, while more than `keep` bytes are reserved. */
void mempool_trim(struct mempool *p, uint64_t keep);
/* A synchronisation: every pool keeps its threshold. */
void mempool_synchronized(void);
void mempool_context_end(struct context *ctx);
/* Rights of a device from now on, for what is there too. */
void mempool_grant(struct mempool *p, int device, unsigned flags);

/* The live allocation at `address`, which lies in a segment. */
bool mempool_range(const struct map *m, uint64_t address,
	struct memory_range *out);
/*
 * Bytes from `address` on that operations on their way may still use: live, or
 * freed but not yet reached.
 */
uint64_t mempool_reach(const struct map *m, uint64_t address);
/* That of the allocation at `address`. */
struct context *mempool_context(const struct map *m, uint64_t address);
struct mempool *mempool_of(const struct map *m);

#endif
