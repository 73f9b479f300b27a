/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialisation, contexts and streams.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuInit(unsigned int flags)
{
	CUresult r = REAL(cuInit)(flags);

	if (r == CUDA_SUCCESS && init_depth == 0)
		init_activate(issue_start);
	return r;
}

#define CREATE(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		CUresult r = REAL(symbol) pass; \
		\
		if (r == CUDA_SUCCESS && init_active()) \
			issue_context_created(*c, d); \
		return r; \
	}

CREATE(cuCtxCreate, (CUcontext *c, unsigned int flags, CUdevice d),
	(c, flags, d))
CREATE(cuCtxCreate_v2, (CUcontext *c, unsigned int flags, CUdevice d),
	(c, flags, d))
CREATE(cuCtxCreate_v3, (CUcontext *c, CUexecAffinityParam *affinity, int n,
	unsigned int flags, CUdevice d), (c, affinity, n, flags, d))
CREATE(cuCtxCreate_v4, (CUcontext *c, CUctxCreateParams *params,
	unsigned int flags, CUdevice d), (c, params, flags, d))

#define DESTROY(symbol, ends) \
	EXPORT CUresult symbol(CUcontext c) \
	{ \
		if (init_active()) \
			ends(c); \
		return REAL(symbol)(c); \
	}

DESTROY(cuCtxDestroy, issue_context_ends)
DESTROY(cuCtxDestroy_v2, issue_context_ends)
DESTROY(cuCtxDetach, issue_context_detaches)

EXPORT CUresult cuCtxAttach(CUcontext *c, unsigned int flags)
{
	CUresult r = REAL(cuCtxAttach)(c, flags);

	if (r == CUDA_SUCCESS && init_active())
		issue_context_attached(*c);
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	CUresult r = REAL(cuDevicePrimaryCtxRetain)(c, d);

	if (r == CUDA_SUCCESS && init_active())
		issue_primary_retained(d, *c);
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice d)
{
	if (init_active())
		issue_primary_resets(d);
	return REAL(cuDevicePrimaryCtxReset)(d);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice d)
{
	if (init_active())
		issue_primary_resets(d);
	return REAL(cuDevicePrimaryCtxReset_v2)(d);
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice d)
{
	CUresult r = REAL(cuDevicePrimaryCtxRelease)(d);

	if (r == CUDA_SUCCESS && init_active())
		issue_primary_released(d);
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d)
{
	CUresult r = REAL(cuDevicePrimaryCtxRelease_v2)(d);

	if (r == CUDA_SUCCESS && init_active())
		issue_primary_released(d);
	return r;
}

EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *c, CUdevResourceDesc desc,
	CUdevice d, unsigned int flags)
{
	CUresult r = REAL(cuGreenCtxCreate)(c, desc, d, flags);

	if (r == CUDA_SUCCESS && init_active())
		issue_green_created(d);
	return r;
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx c)
{
	CUdevice d = init_active() ? issue_green_ends(c) : -1;
	CUresult r = REAL(cuGreenCtxDestroy)(c);

	if (r == CUDA_SUCCESS && init_active())
		issue_green_ended(d);
	return r;
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *s, CUgreenCtx c,
	unsigned int flags, int priority)
{
	CUresult r = REAL(cuGreenCtxStreamCreate)(s, c, flags, priority);

	if (r == CUDA_SUCCESS && init_active())
		issue_green_stream_created(*s, c, flags);
	return r;
}

EXPORT CUresult cuStreamCreate(CUstream *s, unsigned int flags)
{
	CUresult r = REAL(cuStreamCreate)(s, flags);

	if (r == CUDA_SUCCESS && init_active())
		issue_stream_created(*s, flags);
	return r;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *s, unsigned int flags,
	int priority)
{
	CUresult r = REAL(cuStreamCreateWithPriority)(s, flags, priority);

	if (r == CUDA_SUCCESS && init_active())
		issue_stream_created(*s, flags);
	return r;
}

#define DESTROY_STREAM(symbol) \
	EXPORT CUresult symbol(CUstream s) \
	{ \
		if (init_active()) \
			issue_stream_destroyed(s); \
		return REAL(symbol)(s); \
	}

DESTROY_STREAM(cuStreamDestroy)
DESTROY_STREAM(cuStreamDestroy_v2)
