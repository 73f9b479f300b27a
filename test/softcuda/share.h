/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that others get hold of: other processes, and devices beside the GPU.
 * Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_SHARE_H
#define SOFTCUDA_SHARE_H

#include "test/softcuda/space.h"

/* Whether a network card may be given what is mapped there. */
bool share_can_dma(const struct map *m);
/* Lets go of device memory whose descriptors were closed. */
void share_sweep(void);
/*
 * The block that another process shares by its descriptor, one reference; NULL:
 * the process is gone, or the memory is.
 */
struct block *share_fetch(int pid, int fd, uint64_t file);
/* What `ctx` has opened of other processes is closed. */
void share_context_end(struct context *ctx);

#endif
