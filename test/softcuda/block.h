/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory.  A block's bytes live in host memory that is made, and
 * filled with a poison pattern, when they are first looked at.  Device memory
 * is accounted exactly.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_BLOCK_H
#define SOFTCUDA_BLOCK_H

#include <stdbool.h>

#include "test/softcuda/abi.h"
#include "test/softcuda/race.h"

#define BLOCK_HOST (-1)		/* as a device: host memory, not accounted */

struct block {
	int device;
	unsigned refs;
	uint64_t id;
	uint64_t size;
	uint8_t *bytes;		/* NULL before first use */
	bool borrowed;		/* bytes are the program's */
	int fd;			/* of memory that can be mapped again, or -1 */
	uint64_t file;		/* number of fd's file; 0: not shared yet */
	bool imported;		/* another process's: not accounted here */
	bool *filled;		/* per BLOCK_FILL bytes */
	struct shadow *shadow;
	uint64_t handle;	/* of cuMemCreate, 0 for others or released */
	unsigned accessible;	/* mappings with a right, for the alias limit */
	CUmemAllocationProp prop;	/* of cuMemCreate */
	struct uvm_page *uvm;	/* owned by paging.c; of managed memory */
	struct seen *seen;	/* of paging.c, while a kernel runs */
};

#define BLOCK_FILL (2u << 20)

/* Accounts for device memory without a block. */
CUresult block_charge(int device, uint64_t size);
void block_uncharge(int device, uint64_t size);
uint64_t block_used(int device);

/* One reference, the caller's; OUT_OF_MEMORY when the device has no room. */
CUresult block_create(int device, uint64_t size, struct block **out);
/* Pages need not be on the device, see paging.h; NULL: no memory. */
struct block *block_create_managed(int device, uint64_t size);
/* The program's own host memory, which must outlive the block. */
struct block *block_borrow(void *bytes, uint64_t size);
void block_get(struct block *b);
void block_put(struct block *b);
/* Host memory of cuMemCreate, shown to the CPU at `address` too. */
bool block_show(struct block *b, uint64_t address);
void block_hide(struct block *b, uint64_t address);
/*
 * Puts the bytes into a file that other processes can map: b->fd, b->file.
 * false: such memory cannot be shared.
 */
bool block_share(struct block *b);
/* The memory of such a file, one reference; the file stays the caller's. */
struct block *block_import(int fd);
/* Bytes [off, off + size), filled if they never were. */
uint8_t *block_bytes(struct block *b, uint64_t off, uint64_t size);

#endif
