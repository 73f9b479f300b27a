/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memsets in flight.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MEMSET_H
#define SOFTCUDA_MEMSET_H

#include <stdbool.h>
#include <stdint.h>

struct op;

/* Row i of what `op` will write; false when it has none, or is no memset. */
bool memset_row(const struct op *op, uint64_t i, uint64_t *address,
	uint64_t *size);

#endif
