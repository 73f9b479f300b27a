/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many blocks fit on a multiprocessor.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_OCCUPANCY_H
#define SOFTCUDA_OCCUPANCY_H

#include <stddef.h>

struct function;

/* 0 when not even one block can run. */
unsigned occupancy_blocks(const struct function *f, unsigned threads,
	size_t dynamic);

#endif
