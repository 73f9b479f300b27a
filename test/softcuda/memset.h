/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memsets in flight.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MEMSET_H
#define SOFTCUDA_MEMSET_H

#include <stdbool.h>
#include <stdint.h>

struct op;

/* The bytes that `op` will write; false when it is no memset. */
bool memset_range(const struct op *op, uint64_t *address, uint64_t *size);

#endif
