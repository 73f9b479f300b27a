/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory: made by the driver, or the program's and registered.
 * Devices reach all of it at the host's own address.  Guarded by the driver's
 * lock.
 */
#ifndef SOFTCUDA_HOSTMEM_H
#define SOFTCUDA_HOSTMEM_H

#include "test/softcuda/space.h"

enum hostmem_reach {
	HOSTMEM_PAGEABLE,	/* no byte is pinned */
	HOSTMEM_PINNED,		/* all bytes, in one range */
	HOSTMEM_CROSSING,	/* the border of a pinned range lies within */
};

struct hostmem {
	struct map map;		/* address, size, block; rights of devices */
	bool registered;	/* rather than allocated */
	unsigned flags;
	struct context *context;
};

/* The pinned range that holds `address`, or NULL. */
struct hostmem *hostmem_find(uint64_t address);
enum hostmem_reach hostmem_reach(uint64_t address, uint64_t size);
void hostmem_context_end(struct context *ctx);
unsigned hostmem_count(void);

#endif
