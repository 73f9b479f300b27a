/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches in flight.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_LAUNCH_H
#define SOFTCUDA_LAUNCH_H

#include <stdbool.h>

struct map;
struct op;

/* The kernel's name, NULL when `op` is no launch; borrowed from it. */
const char *launch_kernel_name(const struct op *op);

/*
 * It is a kernel that has begun, has not yet ended, and was let at `m`.  What
 * a kernel will use is not known before it runs.
 */
bool launch_uses(const struct op *op, const struct map *m);

#endif
