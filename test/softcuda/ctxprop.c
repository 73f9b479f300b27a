/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program can ask of a context, and set: flags, limits, peer access.
 * Called by the program.  Guarded by the driver's lock.
 */
#include "test/softcuda/context.h"

#include "test/softcuda/call.h"

CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (flags)
			*flags = c.context->flags;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
	struct context *ctx;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = context_named(handle, &ctx);
		if (!version)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else if (!c.result)
			*version = ctx->api_version;
	}
	return call_end(&c);
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (!value)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else if ((unsigned)limit >= CONTEXT_LIMITS)
			c.result = CUDA_ERROR_UNSUPPORTED_LIMIT;
		else
			*value = c.context->limits[limit];
	}
	return call_end(&c);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if ((unsigned)limit >= CONTEXT_LIMITS)
			c.result = CUDA_ERROR_UNSUPPORTED_LIMIT;
		else
			c.context->limits[limit] = value;
	}
	return call_end(&c);
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (config)
			*config = c.context->cache_config;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else
			c.context->cache_config = config;
	}
	return call_end(&c);
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (config)
			*config = c.context->shared_config;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if ((unsigned)config
		    > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else
			c.context->shared_config = config;
	}
	return call_end(&c);
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct context *ctx;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = context_named(handle, &ctx);
		if (!id)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else if (!c.result)
			*id = ctx->id;
	}
	return call_end(&c);
}

CUresult cuCtxSetFlags(unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		if (context_good_flags(flags))
			c.context->flags = flags;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

/* There is no such cache here to be reset. */
CUresult cuCtxResetPersistingL2Cache(void)
{
	struct call c;

	call_begin(&c, __func__, CALL_CONTEXT);
	return call_end(&c);
}

static CUresult peer_access(struct context *ctx, CUcontext handle, bool enable)
{
	struct context *peer = context_find(handle);
	uint32_t bit;

	if (!peer)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (peer->device == ctx->device)
		return CUDA_ERROR_INVALID_DEVICE;
	bit = 1u << peer->device;
	if (enable && ctx->peers & bit)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	if (!enable && !(ctx->peers & bit))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	ctx->peers ^= bit;
	return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = flags ? CUDA_ERROR_INVALID_VALUE
			: peer_access(c.context, peer, true);
	return call_end(&c);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = peer_access(c.context, peer, false);
	return call_end(&c);
}
