/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many blocks fit on a multiprocessor.  Called by the program and by
 * launch.c; guarded by the driver's lock.  The formula, for all devices:
 *
 *	warps		threads of a block / 32, rounded up
 *	by threads	64 / warps
 *	by registers	registers of a thread, rounded up to 8, times 32, up to
 *			256: of a warp; 65536 / that, down to 4 warps; / warps
 *	by shared	(static + dynamic + 1024, up to 128): of a block;
 *			233472 / that
 *	blocks		the least of these and 32
 */
#include "test/softcuda/module.h"

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/device.h"
#include "test/softcuda/occupancy.h"

#define SM_WARPS 64
#define SM_BLOCKS 32
#define SM_REGISTERS 65536
#define SM_SHARED 233472
#define BLOCK_RESERVED 1024
#define WARP 32

static unsigned up(unsigned x, unsigned unit)
{
	return (x + unit - 1) / unit * unit;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned occupancy_blocks(const struct function *f, unsigned threads,
	size_t dynamic)
{
	unsigned warps = up(threads, WARP) / WARP;
	unsigned per_warp, blocks, shared;

	if (!threads || threads > f->info.max_threads
	    || dynamic > (size_t)f->max_dynamic_shared)
		return 0;
	per_warp = up(up((unsigned)function_registers(f), 8) * WARP, 256);
	shared = up(f->info.shared_size + (unsigned)dynamic + BLOCK_RESERVED,
		128);
	blocks = least(SM_BLOCKS, SM_WARPS / warps);
	blocks = least(blocks, SM_REGISTERS / per_warp / 4 * 4 / warps);
	return least(blocks, SM_SHARED / shared);
}

static CUresult find(CUfunction handle, struct context *ctx, const void *out,
	struct function *f)
{
	struct function *found;
	CUresult r = function_find(handle, ctx, &found);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	/* A copy: callbacks run without the lock. */
	if (!r)
		*f = *found;
	return r;
}

static CUresult max_blocks(struct context *ctx, int *out, CUfunction handle,
	int threads, size_t dynamic, unsigned flags)
{
	struct function f;
	CUresult r = find(handle, ctx, out, &f);

	if (r)
		return r;
	if (threads <= 0
	    || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (int)occupancy_blocks(&f, (unsigned)threads, dynamic);
	return CUDA_SUCCESS;
}

/* The block size that keeps the most threads; of several the largest. */
static CUresult best_block(struct context *ctx, int *grid, int *block,
	CUfunction handle, CUoccupancyB2DSize dynamic_of, size_t dynamic,
	int limit, unsigned flags)
{
	unsigned threads, n, most = 0;
	struct function f;
	CUresult r = find(handle, ctx, block, &f);

	if (r)
		return r;
	if (!grid || limit < 0
	    || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit || limit > (int)f.info.max_threads)
		limit = (int)f.info.max_threads;
	*block = *grid = 0;
	call_unlock();
	for (threads = up((unsigned)limit, WARP); threads; threads -= WARP) {
		n = least(threads, (unsigned)limit);
		if (dynamic_of)
			dynamic = dynamic_of((int)n);
		n = occupancy_blocks(&f, n, dynamic);
		if (n * threads <= most)
			continue;
		most = n * threads;
		*block = (int)least(threads, (unsigned)limit);
		*grid = (int)n * device_attribute(
			CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ctx->device);
	}
	call_lock();
	return CUDA_SUCCESS;
}

static CUresult available_shared(struct context *ctx, size_t *out,
	CUfunction handle, int blocks, int threads)
{
	struct function f;
	CUresult r = find(handle, ctx, out, &f);
	unsigned each;

	if (r)
		return r;
	if (blocks <= 0 || threads <= 0
	    || occupancy_blocks(&f, (unsigned)threads, 0) < (unsigned)blocks)
		return CUDA_ERROR_INVALID_VALUE;
	each = SM_SHARED / (unsigned)blocks / 128 * 128 - BLOCK_RESERVED
		- f.info.shared_size;
	*out = least(each, (unsigned)f.max_dynamic_shared);
	return CUDA_SUCCESS;
}

#define CALL(name, action, ...) \
CUresult name(__VA_ARGS__) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = action; \
	return call_end(&c); \
}

CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	max_blocks(c.context, out, f, threads, dynamic, 0),
	int *out, CUfunction f, int threads, size_t dynamic)
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	max_blocks(c.context, out, f, threads, dynamic, flags),
	int *out, CUfunction f, int threads, size_t dynamic,
	unsigned int flags)
CALL(cuOccupancyMaxPotentialBlockSize,
	best_block(c.context, grid, block, f, fn, dynamic, limit, 0),
	int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn,
	size_t dynamic, int limit)
CALL(cuOccupancyMaxPotentialBlockSizeWithFlags,
	best_block(c.context, grid, block, f, fn, dynamic, limit, flags),
	int *grid, int *block, CUfunction f, CUoccupancyB2DSize fn,
	size_t dynamic, int limit, unsigned int flags)
CALL(cuOccupancyAvailableDynamicSMemPerBlock,
	available_shared(c.context, out, f, blocks, threads),
	size_t *out, CUfunction f, int blocks, int threads)
