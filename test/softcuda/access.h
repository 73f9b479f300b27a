/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How operations reach memory: rights, translation, and what the race
 * detector and the strict checks are told.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_ACCESS_H
#define SOFTCUDA_ACCESS_H

#include "test/softcuda/sim.h"
#include "test/softcuda/space.h"

/* What lies at an address, on the device or in pinned host memory, or NULL. */
struct map *access_find(uint64_t address);
/* CUmemAccess_flags of a copy or memset that the driver does for `ctx`. */
unsigned access_by_copy(const struct map *m, const struct context *ctx);
/* All of [address, address + size) is there and a copy may use it so. */
bool access_usable(uint64_t address, uint64_t size, bool write,
	const struct context *ctx);

/* The operation's name in reports, made at first use; borrowed. */
struct race_stamp *access_stamp(struct op *op, const char *what);

/*
 * The longest stretch from `address` on, at most `size`, that is contiguous;
 * its length, 0 when there is no such memory.  Tells the race detector.
 */
uint64_t access_span(struct op *op, uint64_t address, uint64_t size,
	bool write, uint8_t **bytes);
/* The context is dead: `op` touched what it must not. */
void access_fault(struct op *op, uint64_t address, bool write,
	const char *what);

#endif
