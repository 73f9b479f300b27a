/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: primary and created, the stack of current ones of each thread.
 * Called by the program.  Guarded by the driver's lock.
 */
#include "test/softcuda/context.h"

#include <stdlib.h>
#include <utlist.h>

#include "test/softcuda/block.h"
#include "test/softcuda/call.h"
#include "test/softcuda/device.h"
#include "test/softcuda/hostmem.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memory.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/module.h"
#include "test/softcuda/report.h"
#include "test/softcuda/share.h"
#include "test/softcuda/sim.h"
#include "test/softcuda/stream.h"

static struct context *primaries[DEVICE_MAX];
static unsigned long long nr_contexts;

struct context *context_current(struct thread *t)
{
	return t->depth ? t->stack[t->depth - 1] : NULL;
}

CUresult context_check(struct context *ctx)
{
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->alive)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return ctx->error;
}

struct context *context_find(CUcontext handle)
{
	struct context *ctx = object_find(handle, OBJECT_CONTEXT);

	return ctx && ctx->alive ? ctx : NULL;
}

void context_kill(struct context *ctx, CUresult error)
{
	if (!ctx->error)
		ctx->error = error;
}

CUresult context_synchronize(struct context *ctx)
{
	struct race_clock seen = { 0 };
	struct stream *s;

	stats.syncs++;
	if (knobs.race) {
		race_clock_join(&seen, &ctx->retired);
		DL_FOREACH2(ctx->streams, s, ctx_next)
			race_clock_join(&seen, &s->clock);
	}
	sim_wait_context(ctx);
	call_learn(&seen);
	race_clock_free(&seen);
	mempool_synchronized();
	return ctx->error;
}

static CUresult bring_up(struct context *ctx, unsigned flags)
{
	static const size_t limits[CONTEXT_LIMITS] = {
		1024, 1048576, 8388608, 2, 2048, 64, 0
	};
	CUresult r = block_charge(ctx->device, knobs.context_bytes);
	unsigned i;

	if (r)
		return r;
	ctx->charged = knobs.context_bytes;
	ctx->flags = flags;
	ctx->error = CUDA_SUCCESS;
	ctx->alive = true;
	ctx->peers = 0;
	for (i = 0; i < CONTEXT_LIMITS; i++)
		ctx->limits[i] = limits[i];
	return CUDA_SUCCESS;
}

/* Everything that lives in the context goes with it. */
static void tear_down(struct context *ctx)
{
	context_synchronize(ctx);
	if (!ctx->alive)
		return;
	event_context_end(ctx);
	stream_context_end(ctx);
	module_context_end(ctx);
	mempool_context_end(ctx);
	share_context_end(ctx);
	memory_context_end(ctx);
	hostmem_context_end(ctx);
	block_uncharge(ctx->device, ctx->charged);
	ctx->charged = 0;
	ctx->alive = false;
	ctx->error = CUDA_SUCCESS;
}

static struct context *make(int device, bool primary, unsigned version)
{
	struct context *ctx = object_alloc(sizeof(*ctx));

	ctx->device = device;
	ctx->primary = primary;
	ctx->api_version = version;
	ctx->id = ++nr_contexts;
	object_add(ctx, OBJECT_CONTEXT);
	return ctx;
}

static void push(struct thread *t, struct context *ctx)
{
	t->stack = object_grow(t->stack, t->depth, &t->cap, sizeof(*t->stack));
	t->stack[t->depth++] = ctx;
}

bool context_good_flags(unsigned flags)
{
	unsigned sched = flags & CU_CTX_SCHED_MASK;

	/* 0x20 and 0x40: core dumps, accepted and without effect. */
	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		&& sched <= CU_CTX_SCHED_BLOCKING_SYNC
		&& sched != (CU_CTX_SCHED_SPIN | CU_CTX_SCHED_YIELD);
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice dev,
	unsigned version)
{
	struct context *ctx;
	CUresult r;

	if (!out || !context_good_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = make(dev, false, version);
	r = bring_up(ctx, flags);
	if (r) {
		object_remove(ctx);
		free(ctx);
		return r;
	}
	push(call_thread(), ctx);
	*out = (CUcontext)ctx;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = create(out, flags, dev, 3010);
	return call_end(&c);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = create(out, flags, dev, 3020);
	return call_end(&c);
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity,
	int nr_affinity, unsigned int flags, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = affinity || nr_affinity
			? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
			: create(out, flags, dev, 3020);
	return call_end(&c);
}

/* CUctxCreateParams as the header lays it out. */
struct create_params {
	void *affinity;
	int nr_affinity;
	void *graphics;		/* CUDA in graphics */
};

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params,
	unsigned int flags, CUdevice dev)
{
	const struct create_params *p = (const struct create_params *)params;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		/* A block that asks for nothing is as good as none. */
		if (p && (p->nr_affinity || p->graphics)) {
			report_log("cuCtxCreate_v4: execution affinity and "
				"graphics are not supported");
			c.result = CUDA_ERROR_NOT_SUPPORTED;
		} else {
			c.result = create(out, flags, dev, 3020);
		}
	}
	return call_end(&c);
}

static CUresult destroy(CUcontext handle)
{
	struct context *ctx = context_find(handle);
	struct thread *t = call_thread();

	if (!ctx)
		return object_find(handle, OBJECT_CONTEXT)
			? CUDA_ERROR_CONTEXT_IS_DESTROYED
			: CUDA_ERROR_INVALID_CONTEXT;
	if (ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	tear_down(ctx);
	if (context_current(t) == ctx)
		t->depth--;
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy(handle);
	return call_end(&c);
}

CUresult cuCtxDestroy(CUcontext handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = destroy(handle);
	return call_end(&c);
}

/* The old way: a context ends with its last user. */
static CUresult attach(struct context *ctx, CUcontext *out, unsigned flags)
{
	if (!out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	ctx->attached++;
	*out = (CUcontext)ctx;
	return CUDA_SUCCESS;
}

static CUresult detach(CUcontext handle)
{
	struct context *ctx = context_find(handle);

	if (!ctx || ctx != context_current(call_thread()))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->attached)
		return destroy(handle);
	ctx->attached--;
	return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext *out, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = attach(c.context, out, flags);
	return call_end(&c);
}

CUresult cuCtxDetach(CUcontext handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = detach(handle);
	return call_end(&c);
}

/* ---- primary contexts --------------------------------------------------------- */

static struct context *primary_of(int dev)
{
	if (!primaries[dev])
		primaries[dev] = make(dev, true, 3020);
	return primaries[dev];
}

CUresult context_primary_retain(CUcontext *out, CUdevice dev)
{
	struct context *ctx;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = primary_of(dev);
	if (!ctx->alive) {
		r = bring_up(ctx, ctx->flags);
		if (r)
			return r;
	}
	ctx->retains++;
	*out = (CUcontext)ctx;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = context_primary_retain(out, dev);
	return call_end(&c);
}

CUresult context_primary_release(CUdevice dev)
{
	struct context *ctx;

	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = primary_of(dev);
	if (!ctx->retains)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!--ctx->retains && ctx->alive)
		tear_down(ctx);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = context_primary_release(dev);
	return call_end(&c);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = context_primary_release(dev);
	return call_end(&c);
}

static CUresult reset(CUdevice dev)
{
	struct context *ctx;

	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = primary_of(dev);
	if (!ctx->alive)
		return CUDA_SUCCESS;
	tear_down(ctx);
	/* Retained or not: the next retain brings it up anew. */
	ctx->retains = 0;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = reset(dev);
	return call_end(&c);
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = reset(dev);
	return call_end(&c);
}

static CUresult get_state(CUdevice dev, unsigned *flags, int *active)
{
	struct context *ctx;

	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	ctx = primary_of(dev);
	*flags = ctx->flags;
	*active = ctx->alive;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
	int *active)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_state(dev, flags, active);
	return call_end(&c);
}

static CUresult set_primary_flags(CUdevice dev, unsigned flags)
{
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!context_good_flags(flags))
		return CUDA_ERROR_INVALID_VALUE;
	primary_of(dev)->flags = flags;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = set_primary_flags(dev, flags);
	return call_end(&c);
}

/* The first ABI refused while the context was active. */
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = device_valid(dev) && primary_of(dev)->alive
			? CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE
			: set_primary_flags(dev, flags);
	return call_end(&c);
}

/* ---- the current context -------------------------------------------------------- */

static CUresult set_current(CUcontext handle)
{
	struct thread *t = call_thread();
	struct context *ctx;

	if (!handle) {
		if (t->depth)
			t->depth--;
		return CUDA_SUCCESS;
	}
	ctx = object_find(handle, OBJECT_CONTEXT);
	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->alive && !ctx->primary)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (t->depth)
		t->stack[t->depth - 1] = ctx;
	else
		push(t, ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = set_current(handle);
	return call_end(&c);
}

static CUresult get_current(CUcontext *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = (CUcontext)context_current(call_thread());
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_current(out);
	return call_end(&c);
}

static CUresult push_current(CUcontext handle)
{
	struct context *ctx = object_find(handle, OBJECT_CONTEXT);

	if (!ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!ctx->alive && !ctx->primary)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	push(call_thread(), ctx);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = push_current(handle);
	return call_end(&c);
}

static CUresult pop_current(CUcontext *out)
{
	struct thread *t = call_thread();

	if (!t->depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	t->depth--;
	if (out)
		*out = (CUcontext)t->stack[t->depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = pop_current(out);
	return call_end(&c);
}

CUresult context_named(CUcontext handle, struct context **out)
{
	*out = handle ? object_find(handle, OBJECT_CONTEXT)
		: context_current(call_thread());
	return context_check(*out);
}

static CUresult get_device(CUdevice *out, CUcontext handle)
{
	struct context *ctx;
	CUresult r = context_named(handle, &ctx);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = ctx->device;
	return r;
}

CUresult cuCtxGetDevice(CUdevice *out)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_device(out, NULL);
	return call_end(&c);
}

CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_device(out, handle);
	return call_end(&c);
}

CUresult cuCtxSynchronize(void)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = context_synchronize(c.context);
	return call_end(&c);
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	struct context *ctx;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = context_named(handle, &ctx);
		if (!c.result)
			c.result = context_synchronize(ctx);
	}
	return call_end(&c);
}
