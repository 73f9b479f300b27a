/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for the GPU.  Before the program's thread blocks, the copies
 * that a plan can issue by now are issued: until it comes back there may be
 * nobody else to do it.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

#define WAITS(symbol, args, pass, s) \
	EXPORT CUresult symbol args \
	{ \
		if (init_active()) \
			issue_waits(s); \
		return REAL(symbol) pass; \
	}

WAITS(cuCtxSynchronize, (void), (), NULL)
WAITS(cuCtxSynchronize_v2, (CUcontext c), (c), NULL)
WAITS(cuEventSynchronize, (CUevent e), (e), NULL)
WAITS(cuStreamSynchronize, (CUstream s), (s), ISSUE_LEGACY(s))
WAITS(cuStreamSynchronize_ptsz, (CUstream s), (s), ISSUE_PTSZ(s))
