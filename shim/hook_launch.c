/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel launches.
 */
#include "shim/api_table.h"
#include "shim/init.h"

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy,
	unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
	unsigned int shared, CUstream stream, void **params, void **extra)
{
	return REAL(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, stream,
		params, extra);
}

EXPORT CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx,
	unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream stream, void **params,
	void **extra)
{
	return REAL(cuLaunchKernel_ptsz)(f, gx, gy, gz, bx, by, bz, shared,
		stream, params, extra);
}
