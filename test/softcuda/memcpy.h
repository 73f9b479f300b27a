/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets in flight.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MEMCPY_H
#define SOFTCUDA_MEMCPY_H

#include "test/softcuda/space.h"

/*
 * Reports under `rule` if a copy in flight or a running kernel uses bytes of
 * `m`, which `call` is about to take away.
 */
void memcpy_check_idle(const struct map *m, const char *rule,
	const char *call);

#endif
