/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose memory nobody can see in time: launches by the first functions
 * for that, by one call on several devices (--launches), and nodes of graphs
 * (--graphs).  Where not all memory is on the GPU they have to be refused, all
 * of them, or they would read what lies there instead; otherwise they are the
 * driver's matter.  Kernels see the right bytes before and after.
 */
#include "test/e2e/e2e_vmm.h"

enum { NR = 10, SIZE = 2 << 20 };

static uint64_t launches, graphs;

static int refusals, calls;

static void answer(CUresult r, CUresult refused, const char *call)
{
	refusals += r == refused;
	calls++;
	if (refusals != 0 && refusals != calls)
		E2E_FAIL("%s alone: %s", call, e2e_error_name(r));
}

#define LAUNCH(fn, ...) answer(fn(__VA_ARGS__),				\
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, #fn)
#define GRAPH(fn, ...) answer(fn(__VA_ARGS__),				\
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, #fn)

/* There is no such graph, node or list: a driver refuses in any case. */
static void by_graph(void)
{
	CUgraphNode node = NULL;

	GRAPH(cuGraphAddKernelNode, &node, NULL, NULL, 0, NULL);
	GRAPH(cuGraphAddMemcpyNode, &node, NULL, NULL, 0, NULL, NULL);
	GRAPH(cuGraphAddMemsetNode, &node, NULL, NULL, 0, NULL, NULL);
	GRAPH(cuGraphAddBatchMemOpNode, &node, NULL, NULL, 0, NULL);
	GRAPH(cuGraphAddNode, &node, NULL, NULL, NULL, 0, NULL);
	GRAPH(cuGraphKernelNodeSetParams, NULL, NULL);
	GRAPH(cuGraphMemcpyNodeSetParams, NULL, NULL);
	GRAPH(cuGraphMemsetNodeSetParams, NULL, NULL);
	GRAPH(cuGraphBatchMemOpNodeSetParams, NULL, NULL);
	GRAPH(cuGraphNodeSetParams, NULL, NULL);
	GRAPH(cuGraphExecKernelNodeSetParams, NULL, NULL, NULL);
	GRAPH(cuGraphExecMemcpyNodeSetParams, NULL, NULL, NULL, NULL);
	GRAPH(cuGraphExecMemsetNodeSetParams, NULL, NULL, NULL, NULL);
	GRAPH(cuGraphExecBatchMemOpNodeSetParams, NULL, NULL, NULL);
	GRAPH(cuGraphExecNodeSetParams, NULL, NULL, NULL);
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "launches", &launches, 1 }, { "graphs", &graphs, 1 },
	};
	uint32_t digest[NR];
	uint64_t seed = 8;
	CUdeviceptr p[NR], out;
	struct e2e_vmm v;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (int i = 0; i < NR; i++) {
		p[i] = e2e_alloc(SIZE);
		digest[i] = e2e_upload_random(p[i], SIZE, 1, &seed);
		printf("buffer %d: %08x\n", i, digest[i]);
	}
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < NR; i++)
			if (e2e_digest_now(v.digest, NULL, out, p[i], SIZE, 1)
			    != digest[i])
				E2E_FAIL("buffer %d has other bytes", i);
		if (round == 0 && !graphs) {
			LAUNCH(cuLaunch, NULL);
			LAUNCH(cuLaunchGrid, NULL, 1, 1);
			LAUNCH(cuLaunchGridAsync, NULL, 1, 1, NULL);
			LAUNCH(cuLaunchCooperativeKernelMultiDevice, NULL, 0,
				0);
		}
		if (round == 0 && !launches)
			by_graph();
	}
	for (int i = 0; i < NR; i++)
		CU(cuMemFree, p[i]);
	CU(cuMemFree, out);
	e2e_close(dev);
	return 0;
}
