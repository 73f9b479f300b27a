/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for the GPU or ask how far it is.  Before the program's thread blocks, the copies
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

/*
 * Calls that only look at the GPU, or put streams in order.  A program that
 * polls makes no other calls for a while.  Nothing is noted about streams and
 * events: work is waited for by events of our own, on every stream.
 */
#define COMES_BY(symbol, args, pass, s) \
	EXPORT CUresult symbol args \
	{ \
		if (init_active()) \
			issue_comes_by(s); \
		return REAL(symbol) pass; \
	}

WAITS(cuCtxSynchronize, (void), (), NULL)
WAITS(cuCtxSynchronize_v2, (CUcontext c), (c), NULL)
WAITS(cuEventSynchronize, (CUevent e), (e), NULL)
WAITS(cuStreamSynchronize, (CUstream s), (s), ISSUE_LEGACY(s))
WAITS(cuStreamSynchronize_ptsz, (CUstream s), (s), ISSUE_PTSZ(s))

COMES_BY(cuEventQuery, (CUevent e), (e), NULL)
COMES_BY(cuStreamQuery, (CUstream s), (s), ISSUE_LEGACY(s))
COMES_BY(cuStreamQuery_ptsz, (CUstream s), (s), ISSUE_PTSZ(s))
COMES_BY(cuEventRecord, (CUevent e, CUstream s), (e, s), ISSUE_LEGACY(s))
COMES_BY(cuEventRecord_ptsz, (CUevent e, CUstream s), (e, s), ISSUE_PTSZ(s))
COMES_BY(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned int flags),
	(e, s, flags), ISSUE_LEGACY(s))
COMES_BY(cuEventRecordWithFlags_ptsz,
	(CUevent e, CUstream s, unsigned int flags), (e, s, flags),
	ISSUE_PTSZ(s))
COMES_BY(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned int flags),
	(s, e, flags), ISSUE_LEGACY(s))
COMES_BY(cuStreamWaitEvent_ptsz, (CUstream s, CUevent e, unsigned int flags),
	(s, e, flags), ISSUE_PTSZ(s))

/*
 * Events that another process knows: from now on a stream may wait for that,
 * and that for this very thread, as with a host function.
 */
#define SHARES(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		CUresult r = REAL(symbol) pass; \
		\
		if (r == CUDA_SUCCESS && init_active()) \
			issue_host_function(); \
		return r; \
	}

SHARES(cuIpcGetEventHandle, (CUipcEventHandle *h, CUevent e), (h, e))
SHARES(cuIpcOpenEventHandle, (CUevent *e, CUipcEventHandle h), (e, h))
