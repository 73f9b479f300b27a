/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture and nodes of graphs.  A graph keeps addresses, so they are
 * allowed while all managed memory is on the GPU (it then stays there) and
 * refused otherwise.
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

/* ---- nodes ---- */

#define NODE(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		CUresult r = CUDA_SUCCESS; \
		\
		if (init_active() && !issue_may_capture(&r)) \
			return r; \
		return REAL(symbol) pass; \
	}
#define ADD_NODE(symbol, type) \
	NODE(symbol, (CUgraphNode *node, CUgraph g, const CUgraphNode *after, \
		size_t n, type *p), (node, g, after, n, p))
#define ADD_NODE_IN(symbol, type) \
	NODE(symbol, (CUgraphNode *node, CUgraph g, const CUgraphNode *after, \
		size_t n, type *p, CUcontext c), (node, g, after, n, p, c))
#define SET_NODE(symbol, type) \
	NODE(symbol, (CUgraphNode node, type *p), (node, p))
#define SET_EXEC(symbol, type) \
	NODE(symbol, (CUgraphExec e, CUgraphNode node, type *p), (e, node, p))
#define SET_EXEC_IN(symbol, type) \
	NODE(symbol, (CUgraphExec e, CUgraphNode node, type *p, CUcontext c), \
		(e, node, p, c))

ADD_NODE(cuGraphAddKernelNode, const CUDA_KERNEL_NODE_PARAMS_v1)
ADD_NODE(cuGraphAddKernelNode_v2, const CUDA_KERNEL_NODE_PARAMS)
ADD_NODE(cuGraphAddBatchMemOpNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS)
ADD_NODE(cuGraphAddNode, CUgraphNodeParams)
ADD_NODE_IN(cuGraphAddMemcpyNode, const CUDA_MEMCPY3D)
ADD_NODE_IN(cuGraphAddMemsetNode, const CUDA_MEMSET_NODE_PARAMS)
NODE(cuGraphAddNode_v2, (CUgraphNode *node, CUgraph g,
	const CUgraphNode *after, const CUgraphEdgeData *edges, size_t n,
	CUgraphNodeParams *p), (node, g, after, edges, n, p))
SET_NODE(cuGraphKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1)
SET_NODE(cuGraphKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS)
SET_NODE(cuGraphMemcpyNodeSetParams, const CUDA_MEMCPY3D)
SET_NODE(cuGraphMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS)
SET_NODE(cuGraphBatchMemOpNodeSetParams, const CUDA_BATCH_MEM_OP_NODE_PARAMS)
SET_NODE(cuGraphNodeSetParams, CUgraphNodeParams)
SET_EXEC(cuGraphExecKernelNodeSetParams, const CUDA_KERNEL_NODE_PARAMS_v1)
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, const CUDA_KERNEL_NODE_PARAMS)
SET_EXEC(cuGraphExecBatchMemOpNodeSetParams,
	const CUDA_BATCH_MEM_OP_NODE_PARAMS)
SET_EXEC(cuGraphExecNodeSetParams, CUgraphNodeParams)
SET_EXEC_IN(cuGraphExecMemcpyNodeSetParams, const CUDA_MEMCPY3D)
SET_EXEC_IN(cuGraphExecMemsetNodeSetParams, const CUDA_MEMSET_NODE_PARAMS)
