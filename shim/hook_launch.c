/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy,
	unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
	unsigned int shared, CUstream s, void **params, void **extra)
{
	struct issue i;
	CUresult r;

	if (!init_active())
		return REAL(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared,
			s, params, extra);
	if (!issue_launch(&i, f, ISSUE_LEGACY(s), params, extra))
		return i.result;
	r = real.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, s, params,
		extra);
	return issue_end(&i, r);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx,
	unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream s, void **params,
	void **extra)
{
	struct issue i;
	CUresult r;

	if (!init_active())
		return REAL(cuLaunchKernel_ptsz)(f, gx, gy, gz, bx, by, bz,
			shared, s, params, extra);
	if (!issue_launch(&i, f, ISSUE_PTSZ(s), params, extra))
		return i.result;
	r = real.cuLaunchKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, s,
		params, extra);
	return issue_end(&i, r);
}

EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f,
	void **params, void **extra)
{
	struct issue i;
	CUresult r;

	if (!init_active() || c == NULL)
		return REAL(cuLaunchKernelEx)(c, f, params, extra);
	if (!issue_launch(&i, f, ISSUE_LEGACY(c->hStream), params, extra))
		return i.result;
	r = real.cuLaunchKernelEx(c, f, params, extra);
	return issue_end(&i, r);
}

EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *c, CUfunction f,
	void **params, void **extra)
{
	struct issue i;
	CUresult r;

	if (!init_active() || c == NULL)
		return REAL(cuLaunchKernelEx_ptsz)(c, f, params, extra);
	if (!issue_launch(&i, f, ISSUE_PTSZ(c->hStream), params, extra))
		return i.result;
	r = real.cuLaunchKernelEx_ptsz(c, f, params, extra);
	return issue_end(&i, r);
}

EXPORT CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned int gx,
	unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream s, void **params)
{
	struct issue i;
	CUresult r;

	if (!init_active())
		return REAL(cuLaunchCooperativeKernel)(f, gx, gy, gz, bx, by,
			bz, shared, s, params);
	if (!issue_launch(&i, f, ISSUE_LEGACY(s), params, NULL))
		return i.result;
	r = real.cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared,
		s, params);
	return issue_end(&i, r);
}

EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned int gx,
	unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream s, void **params)
{
	struct issue i;
	CUresult r;

	if (!init_active())
		return REAL(cuLaunchCooperativeKernel_ptsz)(f, gx, gy, gz, bx,
			by, bz, shared, s, params);
	if (!issue_launch(&i, f, ISSUE_PTSZ(s), params, NULL))
		return i.result;
	r = real.cuLaunchCooperativeKernel_ptsz(f, gx, gy, gz, bx, by, bz,
		shared, s, params);
	return issue_end(&i, r);
}

/* ---- launches whose parameters are not looked at ---- */

#define LAUNCH_BLIND(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		if (init_active() && !issue_launch_blind()) \
			return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; \
		return REAL(symbol) pass; \
	}

LAUNCH_BLIND(cuLaunch, (CUfunction f), (f))
LAUNCH_BLIND(cuLaunchGrid, (CUfunction f, int w, int h), (f, w, h))
LAUNCH_BLIND(cuLaunchGridAsync, (CUfunction f, int w, int h, CUstream s),
	(f, w, h, s))
LAUNCH_BLIND(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS *list,
	unsigned int n, unsigned int flags), (list, n, flags))

/* ---- host functions: a stream may wait for the program's own threads ---- */

#define HOST_FUNCTION(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		if (init_active()) \
			issue_host_function(); \
		return REAL(symbol) pass; \
	}

HOST_FUNCTION(cuLaunchHostFunc, (CUstream s, CUhostFn fn, void *data),
	(s, fn, data))
HOST_FUNCTION(cuLaunchHostFunc_ptsz, (CUstream s, CUhostFn fn, void *data),
	(s, fn, data))
HOST_FUNCTION(cuStreamAddCallback, (CUstream s, CUstreamCallback fn,
	void *data, unsigned int flags), (s, fn, data, flags))
HOST_FUNCTION(cuStreamAddCallback_ptsz, (CUstream s, CUstreamCallback fn,
	void *data, unsigned int flags), (s, fn, data, flags))
