/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture.  A graph keeps addresses, so capturing is allowed while all
 * managed memory is on the GPU (it then stays there) and refused otherwise.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

#define BEGIN(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		CUresult r = CUDA_SUCCESS; \
		\
		issue_capture_begins(); \
		if (init_active() && !issue_may_capture(&r)) \
			return r; \
		return REAL(symbol) pass; \
	}

BEGIN(cuStreamBeginCapture, (CUstream s), (s))
BEGIN(cuStreamBeginCapture_ptsz, (CUstream s), (s))
BEGIN(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode),
	(s, mode))
BEGIN(cuStreamBeginCapture_v2_ptsz, (CUstream s, CUstreamCaptureMode mode),
	(s, mode))
BEGIN(cuStreamBeginCaptureToGraph, (CUstream s, CUgraph graph,
	const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t n,
	CUstreamCaptureMode mode), (s, graph, nodes, edges, n, mode))
BEGIN(cuStreamBeginCaptureToGraph_ptsz, (CUstream s, CUgraph graph,
	const CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t n,
	CUstreamCaptureMode mode), (s, graph, nodes, edges, n, mode))
