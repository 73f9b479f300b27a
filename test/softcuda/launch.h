/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches in flight.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_LAUNCH_H
#define SOFTCUDA_LAUNCH_H

struct op;

/* The kernel's name, NULL when `op` is no launch; borrowed from it. */
const char *launch_kernel_name(const struct op *op);

#endif
