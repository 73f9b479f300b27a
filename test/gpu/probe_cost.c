/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls cost: physical memory by size of chunk, launches, events, edges
 * of graphs.  Times are the host's, as far as they are not taken by events.
 * Run by probe.c, each in its own process.
 */
#include <stdio.h>

#include "test/gpu/probe.h"

void probe_vmm_cost(void);
void probe_host_cost(void);
void probe_event_cost(void);

/* ---- physical memory --------------------------------------------------------- */

enum { CREATE, MAP, ACCESS, UNMAP, RELEASE, NR_COSTS };

static const char *const cost_name[NR_COSTS] = {
	"create", "map", "set_access", "unmap", "release",
};

/* Adds the times of one round to us[]. */
static CUresult cost_round(double *us, CUdeviceptr va, size_t size)
{
	CUmemGenericAllocationHandle h;
	double t[NR_COSTS + 1];

	t[CREATE] = probe_now_us();
	PROBE_PASS(probe_create(&h, size));
	t[MAP] = probe_now_us();
	PROBE_PASS(drv.cuMemMap(va, size, 0, h, 0));
	t[ACCESS] = probe_now_us();
	PROBE_PASS(probe_access(va, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	t[UNMAP] = probe_now_us();
	PROBE_PASS(drv.cuMemUnmap(va, size));
	t[RELEASE] = probe_now_us();
	PROBE_PASS(drv.cuMemRelease(h));
	t[NR_COSTS] = probe_now_us();
	for (int i = 0; i < NR_COSTS; i++)
		us[i] += t[i + 1] - t[i];
	return CUDA_SUCCESS;
}

/* As cost_round, but the handle stays: the cost of a change of tenant. */
static CUresult remap_cost(double *us, CUdeviceptr va, size_t size,
	unsigned int rounds)
{
	CUmemGenericAllocationHandle h;
	double t0;

	PROBE_PASS(probe_create(&h, size));
	PROBE_PASS(probe_map(va, size, h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	t0 = probe_now_us();
	for (unsigned int i = 0; i < rounds; i++) {
		PROBE_PASS(drv.cuMemUnmap(va, size));
		PROBE_PASS(probe_map(va, size, h,
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	}
	*us = (probe_now_us() - t0) / rounds;
	PROBE_PASS(drv.cuMemUnmap(va, size));
	return drv.cuMemRelease(h);
}

void probe_vmm_cost(void)
{
	size_t most = probe_pick(512 * PROBE_MIB, 16 * PROBE_MIB);
	unsigned int rounds = (unsigned int)probe_pick(16, 4);
	double remap, per_2m = 0;
	char name[64];
	CUdeviceptr va;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("reserve", probe_reserve(&va, most));
	for (size_t size = 2 * PROBE_MIB; size <= most; size *= 2) {
		double us[NR_COSTS] = { 0 };

		for (unsigned int i = 0; i <= rounds; i++) {
			PROBE_TRY("cost", cost_round(us, va, size));
			/* The first round is a warm-up. */
			for (int c = 0; !i && c < NR_COSTS; c++)
				us[c] = 0;
		}
		for (int c = 0; c < NR_COSTS; c++) {
			snprintf(name, sizeof(name), "%s_%zuM", cost_name[c],
				size / PROBE_MIB);
			probe_value(name, us[c] / rounds, "us",
				"mean of %u", rounds);
		}
		PROBE_TRY("remap", remap_cost(&remap, va, size, rounds));
		if (!per_2m)
			per_2m = remap;
		snprintf(name, sizeof(name), "remap_%zuM", size / PROBE_MIB);
		probe_value(name, remap, "us", "unmap, map and set access; "
			"%.2f times that of 2M", remap / per_2m);
	}
	probe_verdict("remap_us_2M", per_2m, "us", per_2m > 20,
		"remapping is too dear for every layer, so plans alias",
		"%s", "");
}

/* ---- launches and queries ------------------------------------------------------- */

/* Launches that fit into the queue behind a kernel of `ms` milliseconds. */
static CUresult queue_depth(size_t *depth, CUfunction nop, CUstream s,
	double ms, size_t most)
{
	double t0;

	PROBE_PASS(probe_spin(s, ms));
	for (*depth = 0; *depth < most; ++*depth) {
		t0 = probe_now_us();
		PROBE_PASS(probe_launch(nop, 1, 1, s, NULL));
		if (probe_now_us() - t0 > 3000)
			break;
	}
	return drv.cuStreamSynchronize(s);
}

void probe_host_cost(void)
{
	CUdeviceptr a[8] = { 0 };
	void *params[] = { &a[0], &a[1], &a[2], &a[3], &a[4], &a[5], &a[6],
		&a[7] };
	unsigned int nr = (unsigned int)probe_pick(20000, 1000);
	CUfunction nop, nop8;
	size_t depth, free_bytes, total;
	CUstream s;
	double t0;

	PROBE_TRY("kernel", probe_kernel(&nop, "nop"));
	PROBE_TRY("kernel", probe_kernel(&nop8, "nop8"));
	PROBE_TRY("stream", probe_stream(&s));
	PROBE_TRY("launch", probe_launch(nop8, 1, 1, s, params));
	PROBE_TRY("launch", probe_launch(nop, 1, 1, s, NULL));
	PROBE_TRY("sync", drv.cuStreamSynchronize(s));
	t0 = probe_now_us();
	for (unsigned int i = 0; i < nr; i++) {
		PROBE_TRY("launch", probe_launch(nop8, 1, 1, s, params));
		/* Below the depth of the queue, or the device is measured. */
		if (i % 256 == 255)
			PROBE_TRY("sync", drv.cuStreamSynchronize(s));
	}
	probe_value("launch_8_pointers", (probe_now_us() - t0) / nr, "us",
		"with a wait for every 256");
	t0 = probe_now_us();
	for (unsigned int i = 0; i < nr; i++)
		(void)drv.cuStreamQuery(s);
	probe_value("stream_query", (probe_now_us() - t0) / nr, "us", "idle");
	t0 = probe_now_us();
	for (unsigned int i = 0; i < 1000; i++)
		PROBE_TRY("info", drv.cuMemGetInfo_v2(&free_bytes, &total));
	probe_value("mem_get_info", (probe_now_us() - t0) / 1000, "us", "%s",
		"");
	PROBE_TRY("depth", queue_depth(&depth, nop, s, probe_pick(300, 20),
		probe_pick(8192, 512)));
	probe_value("launch_queue_depth", (double)depth, "count",
		"launches behind a long kernel before one blocks for 3 ms");
}

/* ---- j: events ---------------------------------------------------------------------- */

/* Microseconds on the device for each of `nr` kernels, handed from a to b. */
static CUresult chain(double *us, CUstream a, CUstream b, CUevent *e,
	CUfunction nop, unsigned int nr)
{
	CUevent from, to;
	double ms;

	PROBE_PASS(probe_timer(&from));
	PROBE_PASS(probe_timer(&to));
	/* The device starts when all is queued, or the host is measured. */
	PROBE_PASS(probe_spin(a, 20));
	PROBE_PASS(drv.cuEventRecord(from, a));
	for (unsigned int i = 0; i < nr; i++) {
		CUstream s = i % 2 ? b : a, next = i % 2 ? a : b;

		PROBE_PASS(probe_launch(nop, 1, 1, s, NULL));
		if (a == b)
			continue;
		PROBE_PASS(drv.cuEventRecord(e[i % 2], s));
		PROBE_PASS(drv.cuStreamWaitEvent(next, e[i % 2], 0));
	}
	PROBE_PASS(drv.cuEventRecord(to, a));
	PROBE_PASS(probe_elapsed(&ms, from, to));
	*us = ms * 1000 / nr;
	PROBE_PASS(drv.cuEventDestroy_v2(from));
	return drv.cuEventDestroy_v2(to);
}

/* Microseconds on the device for a node of a captured chain of `nr` kernels. */
static CUresult graph_chain(double *us, CUstream a, CUstream b, CUevent *e,
	CUfunction nop, unsigned int nr)
{
	CUgraphExec exec;
	CUevent from, to;
	CUgraph graph;
	double ms = 0;

	PROBE_PASS(drv.cuStreamBeginCapture_v2(a,
		CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	for (unsigned int i = 0; i < nr; i++) {
		CUstream s = i % 2 ? b : a, next = i % 2 ? a : b;

		PROBE_PASS(probe_launch(nop, 1, 1, s, NULL));
		if (a == b)
			continue;
		PROBE_PASS(drv.cuEventRecord(e[i % 2], s));
		PROBE_PASS(drv.cuStreamWaitEvent(next, e[i % 2], 0));
	}
	PROBE_PASS(drv.cuStreamEndCapture(a, &graph));
	PROBE_PASS(drv.cuGraphInstantiateWithFlags(&exec, graph, 0));
	PROBE_PASS(probe_timer(&from));
	PROBE_PASS(probe_timer(&to));
	for (int i = 0; i < 3; i++) {
		PROBE_PASS(drv.cuEventRecord(from, a));
		PROBE_PASS(drv.cuGraphLaunch(exec, a));
		PROBE_PASS(drv.cuEventRecord(to, a));
		PROBE_PASS(probe_elapsed(&ms, from, to));
	}
	*us = ms * 1000 / nr;
	PROBE_PASS(drv.cuGraphExecDestroy(exec));
	return drv.cuGraphDestroy(graph);
}

void probe_event_cost(void)
{
	unsigned int nr = (unsigned int)probe_pick(400, 50);
	double t0, same, hop, us;
	CUfunction nop;
	CUstream a, b;
	CUevent e[2];

	PROBE_TRY("kernel", probe_kernel(&nop, "nop"));
	PROBE_TRY("stream", probe_stream(&a));
	PROBE_TRY("stream", probe_stream(&b));
	PROBE_TRY("event", probe_event(&e[0]));
	PROBE_TRY("event", probe_event(&e[1]));
	t0 = probe_now_us();
	for (unsigned int i = 0; i < 1000; i++)
		PROBE_TRY("record", drv.cuEventRecord(e[0], a));
	us = (probe_now_us() - t0) / 1000;
	probe_verdict("record", us, "us", us < 5,
		"recording an event costs the host a few us", "%s", "");
	PROBE_TRY("sync", drv.cuCtxSynchronize());
	t0 = probe_now_us();
	for (unsigned int i = 0; i < 1000; i++)
		PROBE_TRY("wait", drv.cuStreamWaitEvent(b, e[0], 0));
	us = (probe_now_us() - t0) / 1000;
	probe_verdict("wait_event", us, "us", us < 5,
		"a stream's wait costs the host a few us", "%s", "");
	PROBE_TRY("sync", drv.cuCtxSynchronize());
	t0 = probe_now_us();
	for (unsigned int i = 0; i < 1000; i++)
		PROBE_TRY("query", drv.cuEventQuery(e[0]));
	probe_value("event_query", (probe_now_us() - t0) / 1000, "us", "%s", "");
	PROBE_TRY("chain", chain(&same, a, a, e, nop, nr));
	PROBE_TRY("hops", chain(&hop, a, b, e, nop, nr));
	probe_value("kernel_in_one_stream", same, "us", "on the device");
	probe_verdict("hop_between_streams", hop - same, "us", hop - same < 10,
		"an event between streams costs the device a few us",
		"beyond a kernel in one stream");
	PROBE_HAS(cuGraphInstantiateWithFlags);
	PROBE_TRY("graph", graph_chain(&us, a, a, e, nop, nr));
	probe_value("node_in_a_chain", us, "us", "on the device");
	PROBE_TRY("graph", graph_chain(&us, a, b, e, nop, nr));
	probe_value("node_across_streams", us, "us", "on the device");
}
