/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets in flight.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MEMCPY_H
#define SOFTCUDA_MEMCPY_H

#include "test/softcuda/space.h"
#include "test/softcuda/stream.h"

/*
 * What one copy moves: `depth` slices of `height` rows of `width` bytes.  A
 * pitch is the distance of rows, a slice that of slices, in bytes.
 */
struct memcpy_box {
	uint64_t dst, src;
	uint64_t width, height, depth;
	uint64_t dst_pitch, dst_slice;
	uint64_t src_pitch, src_slice;
};

/* `async`: as the function without "Async" in its name would not be. */
CUresult memcpy_copy(struct context *ctx, const struct memcpy_box *box,
	CUstream stream, enum stream_default zero, bool async);

/*
 * Reports under `rule` if a copy in flight or a running kernel uses bytes of
 * `m`, which `call` is about to take away.
 */
void memcpy_check_idle(const struct map *m, const char *rule,
	const char *call);

#endif
