/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: pinned host memory of fixed capacity for bytes that are off the
 * GPU.  One per process.  Its addresses are reserved at the first spill; it is
 * pinned in segments as they are first needed, so that a program that spills
 * little pins little, and never beyond the capacity.  No copy may cross a
 * segment's border, and no range given out does.
 */
#ifndef BALLAST_ARENA_H
#define BALLAST_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"

#define ARENA_NONE UINT64_MAX
#define ARENA_ALIGN 256u
#define ARENA_SEGMENT (64ull << 20)

/*
 * `size` bytes in one piece: the offset, or ARENA_NONE when there is no such
 * room.  Pins on demand, so a context must be current.  Any thread.
 */
uint64_t arena_alloc(size_t size);
void arena_free(uint64_t offset, size_t size);
/*
 * Pins until about `size` bytes are free, or there is no more.  The driver may
 * wait for the GPU when it pins, so who is about to allocate with a lock of
 * state held calls this before it takes that lock.
 */
void arena_reserve(uint64_t size);
/*
 * `size` bytes of the capacity for pinned memory that the caller makes himself;
 * false: there are not so many left.
 */
bool arena_lend(uint64_t size);
void arena_return(uint64_t size);
/* Whether a copy may not run from below `offset` to above it. */
static inline bool arena_border(uint64_t offset)
{
	return offset % ARENA_SEGMENT == 0;
}
/* Host address of an offset; stable for the life of the process. */
void *arena_ptr(uint64_t offset);

/* Bytes; capacity is 0 until the first spill has chosen it. */
uint64_t arena_capacity(void);
uint64_t arena_live(void);
/* What arena_alloc() could give in all; before the first spill an estimate. */
uint64_t arena_room(void);

/* What arena_lend() could give in all, once something has been spilled. */
uint64_t arena_spare(void);
/*
 * Unpins what is not in use at the end, for a program that will not need it
 * soon; it is pinned again on demand.
 */
void arena_trim(void);

/* Unpins; at exit, or when the last context has gone. */
void arena_stop(void);

#endif
