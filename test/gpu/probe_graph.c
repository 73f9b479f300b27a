/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies put into a live capture from outside: the node is added to the graph
 * that is being captured, after the last user of the block, and the next kernel
 * is made to depend on it; no stream of ours enters the capture.  Then whether
 * two executable graphs run side by side.  Run by probe.c in its own process.
 */
#include <string.h>

#include "test/gpu/probe.h"

void probe_inject(void);

#define LAYERS 4
#define SET_DEPENDENCIES 1

static struct {
	size_t size;
	CUdeviceptr app[LAYERS], own, bad;
	char *arena;
	CUstream s;
	CUfunction check;
	CUcontext ctx;
} rig;

static CUresult rig_make(void)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr at;

	rig.size = probe_grain();
	PROBE_PASS(probe_create(&h, rig.size));
	PROBE_PASS(probe_reserve(&rig.own, rig.size));
	PROBE_PASS(probe_map(rig.own, rig.size, h,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	PROBE_PASS(probe_reserve(&at, LAYERS * rig.size));
	for (unsigned int l = 0; l < LAYERS; l++) {
		rig.app[l] = at + l * rig.size;
		PROBE_PASS(probe_map(rig.app[l], rig.size, h,
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	}
	PROBE_PASS(drv.cuMemAlloc_v2(&rig.bad, 256));
	PROBE_PASS(drv.cuMemsetD32_v2(rig.bad, 0, 64));
	PROBE_PASS(drv.cuCtxGetCurrent(&rig.ctx));
	PROBE_PASS(probe_stream(&rig.s));
	PROBE_PASS(probe_kernel(&rig.check, "check"));
	/* Loads the code before the capture. */
	PROBE_PASS(probe_check(rig.check, rig.own, 0, 0, rig.bad, rig.s));
	return drv.cuStreamSynchronize(rig.s);
}

static void fill_arena(uint32_t salt)
{
	for (unsigned int l = 0; l < LAYERS; l++)
		probe_fill_host(rig.arena + l * rig.size, rig.size, salt + l);
}

/* A copy of layer l into the block, before all that is captured next. */
static CUresult put_copy(unsigned int l)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	const CUgraphNode *deps = NULL;
	CUgraphNode node, after[8];
	CUDA_MEMCPY3D copy;
	CUgraph graph;
	cuuint64_t id;
	size_t nr = 0;

	PROBE_PASS(drv.cuStreamGetCaptureInfo_v2(rig.s, &status, &id, &graph,
		&deps, &nr));
	if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || nr > PROBE_LEN(after))
		return CUDA_ERROR_UNKNOWN;
	/* The driver's array is good until the next call only. */
	if (nr)
		memcpy(after, deps, nr * sizeof(*after));
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = rig.arena + l * rig.size;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = rig.own;
	copy.srcPitch = copy.dstPitch = copy.WidthInBytes = rig.size;
	copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
	PROBE_PASS(drv.cuGraphAddMemcpyNode(&node, graph, after, nr, &copy,
		rig.ctx));
	return drv.cuStreamUpdateCaptureDependencies(rig.s, &node, 1,
		SET_DEPENDENCIES);
}

/* The program's capture: a kernel a layer; the seeds are fixed by it. */
static CUresult capture(CUgraphExec *exec, uint32_t salt)
{
	CUgraph graph;

	PROBE_PASS(drv.cuStreamBeginCapture_v2(rig.s,
		CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (unsigned int l = 0; l < LAYERS; l++) {
		PROBE_PASS(put_copy(l));
		PROBE_PASS(probe_check(rig.check, rig.app[l], rig.size,
			salt + l, rig.bad, rig.s));
	}
	PROBE_PASS(drv.cuStreamEndCapture(rig.s, &graph));
	PROBE_PASS(drv.cuGraphInstantiateWithFlags(exec, graph, 0));
	return drv.cuGraphDestroy(graph);
}

static CUresult replay(CUgraphExec exec, unsigned int rounds, uint32_t *bad)
{
	PROBE_PASS(drv.cuMemsetD32_v2(rig.bad, 0, 64));
	PROBE_PASS(drv.cuCtxSynchronize());
	for (unsigned int i = 0; i < rounds; i++)
		PROBE_PASS(drv.cuGraphLaunch(exec, rig.s));
	PROBE_PASS(drv.cuStreamSynchronize(rig.s));
	return drv.cuMemcpyDtoH_v2(bad, rig.bad, sizeof(*bad));
}

/* A graph of one kernel of some 20 ms. */
static CUresult slow_graph(CUgraphExec *exec)
{
	CUgraph graph;

	PROBE_PASS(drv.cuStreamBeginCapture_v2(rig.s,
		CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	PROBE_PASS(probe_spin(rig.s, 20));
	PROBE_PASS(drv.cuStreamEndCapture(rig.s, &graph));
	PROBE_PASS(drv.cuGraphInstantiateWithFlags(exec, graph, 0));
	return drv.cuGraphDestroy(graph);
}

/* How long `nr` slow graphs take that are launched into streams of their own. */
static CUresult side_by_side(double *ms, const CUgraphExec *exec, unsigned nr)
{
	CUstream s[2];
	double t0;

	for (unsigned int i = 0; i < nr; i++) {
		PROBE_PASS(probe_stream(&s[i]));
		/* The first launch of a graph uploads it. */
		PROBE_PASS(drv.cuGraphLaunch(exec[i], s[i]));
	}
	PROBE_PASS(drv.cuCtxSynchronize());
	t0 = probe_now_us();
	for (unsigned int i = 0; i < nr; i++)
		PROBE_PASS(drv.cuGraphLaunch(exec[i], s[i]));
	PROBE_PASS(drv.cuCtxSynchronize());
	*ms = (probe_now_us() - t0) / 1000;
	return CUDA_SUCCESS;
}

void probe_inject(void)
{
	unsigned int rounds = (unsigned int)probe_pick(200, 5);
	CUgraphExec exec, slow[2];
	double one, two;
	uint32_t bad = 1;

	PROBE_HAS(cuStreamGetCaptureInfo_v2);
	PROBE_HAS(cuStreamUpdateCaptureDependencies);
	PROBE_HAS(cuGraphAddMemcpyNode);
	PROBE_HAS(cuGraphInstantiateWithFlags);
	if (!probe_has_vmm())
		return;
	rig.arena = probe_pinned(LAYERS * probe_grain());
	if (!rig.arena)
		return;
	PROBE_TRY("rig", rig_make());
	fill_arena(100);
	PROBE_TRY("capture", capture(&exec, 100));
	probe_verdict("capture_survives", 1, "", 1,
		"nodes may be added to a live capture from outside",
		"%d copies, %d kernels", LAYERS, LAYERS);
	PROBE_TRY("replay", replay(exec, rounds, &bad));
	probe_verdict("wrong_words", bad, "words", bad == 0,
		"kernels that depend on such a copy see its bytes",
		"%u replays", rounds);
	/* Other bytes in the arena: every word must now be wrong. */
	fill_arena(900);
	PROBE_TRY("replay", replay(exec, 1, &bad));
	probe_verdict("words_read_at_replay", bad, "words",
		bad == LAYERS * rig.size / 4,
		"the host's bytes are read at each replay", "%s", "");
	PROBE_TRY("spin", probe_spin(rig.s, 1));
	PROBE_TRY("spin", drv.cuStreamSynchronize(rig.s));
	PROBE_TRY("slow", slow_graph(&slow[0]));
	PROBE_TRY("slow", slow_graph(&slow[1]));
	PROBE_TRY("alone", side_by_side(&one, slow, 1));
	PROBE_TRY("two", side_by_side(&two, slow, 2));
	probe_verdict("two_graphs_by_one", two / one, "ratio", two < 1.6 * one,
		"two executable graphs run side by side, so the pool must be "
		"guarded between them", "%.1f and %.1f ms", two, one);
}
