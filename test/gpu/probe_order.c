/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of order: what the design stands on is that a kernel launched after a
 * wait for a copy's event reads the copy's bytes, through whatever alias and by
 * whatever way of loading.  Run by probe.c, each in its own process.
 */
#include <stdio.h>
#include <string.h>

#include "test/gpu/probe.h"
#include "test/gpu/probe_ptx.h"

void probe_refill(void);
void probe_pdl(void);

/* A module for compute capability 9.0 that did not load. */
static void not_compiled(const char *name, CUresult r)
{
	if (probe_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9)
		probe_error(name, r, "cuModuleLoadDataEx");
	else
		probe_status(name, PROBE_UNSUPPORTED,
			"it needs compute capability 9.0: %s", probe_result(r));
}

/* ---- d: two blocks, many layers ------------------------------------------------- */

#define BLOCKS 2
#define LAYERS 64

/* The program's addresses and ours, the arena, and what guards the blocks. */
static struct {
	size_t size;			/* of a layer and of a block */
	CUdeviceptr app[LAYERS], own[BLOCKS], bad;
	char *arena;
	CUstream compute, copy;
	CUevent ready[BLOCKS], done[BLOCKS];
} rig;

static uint32_t seed_of(unsigned int layer)
{
	return layer * 0x85ebca6bu + 1;
}

static CUresult rig_make(void)
{
	CUmemGenericAllocationHandle h[BLOCKS];
	size_t grain = probe_grain();
	CUdeviceptr at;

	for (unsigned int b = 0; b < BLOCKS; b++) {
		PROBE_PASS(probe_create(&h[b], grain));
		PROBE_PASS(probe_reserve(&rig.own[b], grain));
		PROBE_PASS(probe_map(rig.own[b], grain, h[b],
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
		PROBE_PASS(probe_event(&rig.ready[b]));
		PROBE_PASS(probe_event(&rig.done[b]));
	}
	PROBE_PASS(probe_reserve(&at, LAYERS * grain));
	for (unsigned int l = 0; l < LAYERS; l++) {
		rig.app[l] = at + l * grain;
		PROBE_PASS(probe_map(rig.app[l], grain, h[l % BLOCKS],
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	}
	rig.size = probe_pick(grain, grain / 32);
	for (unsigned int l = 0; l < LAYERS; l++)
		probe_fill_host(rig.arena + l * rig.size, rig.size,
			seed_of(l));
	PROBE_PASS(drv.cuMemAlloc_v2(&rig.bad, 256));
	PROBE_PASS(drv.cuMemsetD32_v2(rig.bad, 0, 64));
	PROBE_PASS(probe_stream(&rig.compute));
	return probe_stream(&rig.copy);
}

/* One refill and its reader, as the mover would issue them. */
static CUresult rig_step(unsigned int step, CUfunction check)
{
	unsigned int l = step % LAYERS, b = l % BLOCKS;

	PROBE_PASS(drv.cuStreamWaitEvent(rig.copy, rig.done[b], 0));
	PROBE_PASS(drv.cuMemcpyHtoDAsync_v2(rig.own[b],
		rig.arena + l * rig.size, rig.size, rig.copy));
	PROBE_PASS(drv.cuEventRecord(rig.ready[b], rig.copy));
	PROBE_PASS(drv.cuStreamWaitEvent(rig.compute, rig.ready[b], 0));
	PROBE_PASS(probe_check(check, rig.app[l], rig.size, seed_of(l), rig.bad,
		rig.compute));
	return drv.cuEventRecord(rig.done[b], rig.compute);
}

static void rig_run(const char *how, CUfunction check, unsigned int steps,
	double seconds)
{
	double t0 = probe_now_us(), s;
	unsigned int i;
	uint32_t bad = 1;
	char name[64];

	PROBE_TRY(how, drv.cuMemsetD32_v2(rig.bad, 0, 64));
	for (i = 0; i < steps && probe_now_us() - t0 < seconds * 1e6; i++) {
		PROBE_TRY(how, rig_step(i, check));
		/* The time limit counts what is done, not what is queued. */
		if (i % 64 == 63)
			PROBE_TRY(how, drv.cuStreamSynchronize(rig.compute));
	}
	PROBE_TRY(how, drv.cuCtxSynchronize());
	s = (probe_now_us() - t0) / 1e6;
	PROBE_TRY(how, drv.cuMemcpyDtoH_v2(&bad, rig.bad, sizeof(bad)));
	snprintf(name, sizeof(name), "wrong_words_%s", how);
	probe_verdict(name, bad, "words", !bad && i > 0,
		"copy, event, wait, kernel through another alias is exact",
		"%u refills of %zu KiB in %.1f s", i, rig.size / PROBE_KIB, s);
}

/* Without the waits, words must be wrong: else the probe sees nothing. */
static void rig_unguarded(CUfunction check, unsigned int steps)
{
	uint32_t bad = 0;

	PROBE_TRY("unguarded", drv.cuMemsetD32_v2(rig.bad, 0, 64));
	for (unsigned int i = 0; i < steps; i++) {
		unsigned int l = i % LAYERS, b = l % BLOCKS;

		PROBE_TRY("unguarded", drv.cuMemcpyHtoDAsync_v2(rig.own[b],
			rig.arena + l * rig.size, rig.size, rig.copy));
		PROBE_TRY("unguarded", probe_check(check, rig.app[l], rig.size,
			seed_of(l), rig.bad, rig.compute));
	}
	PROBE_TRY("unguarded", drv.cuCtxSynchronize());
	PROBE_TRY("unguarded", drv.cuMemcpyDtoH_v2(&bad, rig.bad, sizeof(bad)));
	probe_verdict("wrong_words_unguarded", bad, "words", bad > 0,
		"without events the readers see other layers' bytes",
		"of %u refills", steps);
}

void probe_refill(void)
{
	unsigned int steps = (unsigned int)probe_pick(100000, 128);
	CUfunction check, nc, bulk;
	CUmodule mod;
	CUresult r;

	if (!probe_has_vmm())
		return;
	rig.arena = probe_pinned(LAYERS * probe_grain());
	if (!rig.arena)
		return;
	PROBE_TRY("rig", rig_make());
	PROBE_TRY("kernel", probe_kernel(&check, "check"));
	PROBE_TRY("kernel", probe_kernel(&nc, "check_nc"));
	rig_run("ld", check, steps, 8);
	rig_run("ld_nc", nc, steps, 6);
	r = probe_module(&mod, probe_ptx_bulk);
	if (r == CUDA_SUCCESS)
		r = drv.cuModuleGetFunction(&bulk, mod, "check_bulk");
	if (r != CUDA_SUCCESS)
		not_compiled("wrong_words_bulk", r);
	else
		rig_run("bulk", bulk, steps, 6);
	rig_unguarded(check, (unsigned int)probe_pick(256, 64));
}

/* ---- e: dependent launches --------------------------------------------------------- */

static struct {
	CUdeviceptr data, done, out;
	size_t size;
	uint32_t *host;
	CUstream compute, copy;
	CUevent ready;
	CUfunction early, late;
} pdl;

static CUresult pdl_make(void)
{
	CUmodule mod;

	PROBE_PASS(probe_module(&mod, probe_ptx_pdl));
	PROBE_PASS(drv.cuModuleGetFunction(&pdl.early, mod, "early"));
	PROBE_PASS(drv.cuModuleGetFunction(&pdl.late, mod, "late"));
	pdl.size = 32 * PROBE_MIB;
	PROBE_PASS(drv.cuMemAlloc_v2(&pdl.data, pdl.size));
	PROBE_PASS(drv.cuMemAlloc_v2(&pdl.done, 256));
	PROBE_PASS(drv.cuMemAlloc_v2(&pdl.out, 256));
	PROBE_PASS(probe_stream(&pdl.compute));
	PROBE_PASS(probe_stream(&pdl.copy));
	return probe_event(&pdl.ready);
}

static CUresult launch_late(void)
{
	CUdeviceptr last = pdl.data + pdl.size - 4;
	void *params[] = { &last, &pdl.done, &pdl.out };
	CUlaunchAttribute attr;
	CUlaunchConfig cfg;

	memset(&attr, 0, sizeof(attr));
	memset(&cfg, 0, sizeof(cfg));
	attr.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
	attr.value.programmaticStreamSerializationAllowed = 1;
	cfg.gridDimX = cfg.gridDimY = cfg.gridDimZ = 1;
	cfg.blockDimX = cfg.blockDimY = cfg.blockDimZ = 1;
	cfg.hStream = pdl.compute;
	cfg.attrs = &attr;
	cfg.numAttrs = 1;
	return drv.cuLaunchKernelEx(&cfg, pdl.late, params, NULL);
}

/*
 * A kernel that lets its successor start at once, a wait for the copy (or
 * none), the successor.  saw[0]: the successor saw the copied word; saw[1]: it
 * started after its predecessor had ended.
 */
static CUresult pdl_round(uint32_t round, int wait, uint32_t steps, int *saw)
{
	void *params[] = { &pdl.done, &steps };
	uint32_t got[2];

	PROBE_PASS(drv.cuMemsetD32_v2(pdl.done, 0, 2));
	PROBE_PASS(drv.cuCtxSynchronize());
	pdl.host[pdl.size / 4 - 1] = round;
	PROBE_PASS(drv.cuMemcpyHtoDAsync_v2(pdl.data, pdl.host, pdl.size,
		pdl.copy));
	PROBE_PASS(drv.cuEventRecord(pdl.ready, pdl.copy));
	PROBE_PASS(probe_launch(pdl.early, 1, 1, pdl.compute, params));
	if (wait)
		PROBE_PASS(drv.cuStreamWaitEvent(pdl.compute, pdl.ready, 0));
	PROBE_PASS(launch_late());
	PROBE_PASS(drv.cuCtxSynchronize());
	PROBE_PASS(drv.cuMemcpyDtoH_v2(got, pdl.out, sizeof(got)));
	saw[0] += got[0] == round;
	saw[1] += got[1] == 1;
	return CUDA_SUCCESS;
}

void probe_pdl(void)
{
	unsigned int rounds = (unsigned int)probe_pick(200, 10);
	int with[2] = { 0 }, without[2] = { 0 };
	CUresult r;

	PROBE_HAS(cuLaunchKernelEx);
	r = pdl_make();
	if (r != CUDA_SUCCESS) {
		not_compiled("kernels", r);
		return;
	}
	pdl.host = probe_pinned(pdl.size);
	if (!pdl.host)
		return;
	for (unsigned int i = 0; i < rounds; i++) {
		PROBE_TRY("wait", pdl_round(2 * i + 1, 1, 2000, with));
		PROBE_TRY("no_wait", pdl_round(2 * i + 2, 0, 100000, without));
	}
	probe_verdict("saw_the_copy", with[0], "count",
		with[0] == (int)rounds,
		"a wait holds a dependent launch back until the copy is done",
		"of %u", rounds);
	probe_value("after_its_predecessor", with[1], "count",
		"of %u with a wait: whether the overlap is lost", rounds);
	probe_value("no_wait_after_its_predecessor", without[1], "count",
		"of %u without one; 0 means that launches do overlap", rounds);
	probe_value("no_wait_saw_the_copy", without[0], "count", "of %u",
		rounds);
}
