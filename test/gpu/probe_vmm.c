/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of what mapped physical memory allows: aliases of one handle, rights,
 * parts of mappings, and what other calls say about such memory.  Run by
 * probe.c, each in its own process.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/gpu/probe.h"

void probe_alias(void);
void probe_readonly(void);
void probe_readonly_write(void);
void probe_unmapped_read(void);
void probe_partial(void);
void probe_queries(void);

/* ---- a: aliases of one handle ------------------------------------------------- */

/*
 * Maps `h` at `nr` more places from `at` on and gives them rights, in one call
 * for all or in one each.  How many could be used, and the time of a call.
 */
static size_t alias_more(CUdeviceptr at, size_t nr, size_t grain,
	CUmemGenericAllocationHandle h, int joint, double *map_us,
	double *access_us, CUresult *r)
{
	double t0 = probe_now_us();
	size_t mapped, done = 0;

	for (mapped = 0; mapped < nr; mapped++) {
		*r = drv.cuMemMap(at + mapped * grain, grain, 0, h, 0);
		if (*r != CUDA_SUCCESS)
			break;
	}
	*map_us = (probe_now_us() - t0) / (double)(mapped ? mapped : 1);
	if (!mapped)
		return 0;
	t0 = probe_now_us();
	if (joint) {
		CUresult all = probe_access(at, mapped * grain,
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

		*access_us = (probe_now_us() - t0) / (double)mapped;
		if (all == CUDA_SUCCESS)
			return mapped;
		/* One by one, to find out where it ends. */
		t0 = probe_now_us();
	}
	for (done = 0; done < mapped; done++) {
		CUresult one = probe_access(at + done * grain, grain,
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

		if (one != CUDA_SUCCESS) {
			*r = one;
			break;
		}
	}
	*access_us = (probe_now_us() - t0) / (double)(done ? done : 1);
	return done;
}

/* A word written through the first address is read through the last. */
static CUresult alias_seen(CUdeviceptr first, CUdeviceptr last, int *seen)
{
	uint32_t got = 0, want = 0x600dda7a;

	PROBE_PASS(drv.cuMemcpyHtoD_v2(first, &want, sizeof(want)));
	PROBE_PASS(drv.cuMemcpyDtoH_v2(&got, last, sizeof(got)));
	*seen = got == want;
	return CUDA_SUCCESS;
}

void probe_alias(void)
{
	size_t grain = probe_grain(), most = probe_pick(65536, 1024), step = 8;
	size_t total = 0, got;
	CUmemGenericAllocationHandle h;
	CUdeviceptr va;
	CUresult r = CUDA_SUCCESS;
	double map_us, access_us;
	char name[64];
	int seen = 0;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("reserve", probe_reserve(&va, most * grain));
	PROBE_TRY("create", probe_create(&h, grain));
	for (int round = 0; total < most; round++) {
		size_t nr = step < most - total ? step : most - total;

		/* Every second time in one call, to compare. */
		got = alias_more(va + total * grain, nr, grain, h, round % 2,
			&map_us, &access_us, &r);
		total += got;
		snprintf(name, sizeof(name), "set_access_us_to_%zu%s", total,
			round % 2 ? "_joint" : "");
		if (got)
			probe_value(name, access_us, "us",
				"for one alias; mapping it %.2f us", map_us);
		if (got < nr)
			break;
		step = total;
	}
	probe_verdict("aliases_of_one_handle", (double)total, "count",
		total >= (size_t)probe_pick(4096, 1024),
		"a pool slot can have thousands of addresses",
		"%s", total < most ? probe_result(r) : "none was refused");
	if (total < 2)
		return;
	PROBE_TRY("same_bytes", alias_seen(va, va + (total - 1) * grain, &seen));
	probe_verdict("same_bytes", seen, "", seen,
		"the first and the last alias show the same bytes", "%s", "");
}

/* ---- b: rights ------------------------------------------------------------------ */

struct pair {
	CUdeviceptr app, own;	/* the program's address, ours */
	size_t size;
	CUdeviceptr out;
	CUfunction peek, poke;
};

static CUresult pair_make(struct pair *p, CUmemAccess_flags flags)
{
	CUmemGenericAllocationHandle h;

	p->size = probe_grain();
	PROBE_PASS(probe_create(&h, p->size));
	PROBE_PASS(probe_reserve(&p->app, p->size));
	PROBE_PASS(probe_reserve(&p->own, p->size));
	PROBE_PASS(probe_map(p->own, p->size, h,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	PROBE_PASS(drv.cuMemMap(p->app, p->size, 0, h, 0));
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		PROBE_PASS(probe_access(p->app, p->size, flags));
	PROBE_PASS(drv.cuMemAlloc_v2(&p->out, 256));
	PROBE_PASS(probe_kernel(&p->peek, "peek"));
	return probe_kernel(&p->poke, "poke");
}

static CUresult peek(struct pair *p, CUdeviceptr at, uint32_t *word)
{
	void *params[] = { &at, &p->out };

	PROBE_PASS(probe_launch(p->peek, 1, 1, NULL, params));
	return drv.cuMemcpyDtoH_v2(word, p->out, sizeof(*word));
}

void probe_readonly(void)
{
	uint32_t word = 0x1234abcd, got = 0;
	struct pair p;
	CUresult r;

	if (!probe_has_vmm())
		return;
	r = pair_make(&p, CU_MEM_ACCESS_FLAGS_PROT_READ);
	probe_verdict("read_alias_accepted", r, "code", r == CUDA_SUCCESS,
		"a device may map memory PROT_READ beside a writable alias",
		"%s", probe_result(r));
	if (r != CUDA_SUCCESS)
		return;
	PROBE_TRY("write_by_own", drv.cuMemcpyHtoD_v2(p.own, &word,
		sizeof(word)));
	r = peek(&p, p.app, &got);
	probe_verdict("kernel_reads_it", got == word, "",
		r == CUDA_SUCCESS && got == word,
		"a kernel reads through it what the writable alias wrote",
		"%s", probe_result(r));
	got = 0;
	r = drv.cuMemcpyDtoH_v2(&got, p.app, sizeof(got));
	probe_verdict("copy_reads_it", got == word, "",
		r == CUDA_SUCCESS && got == word,
		"a copy may read through it", "%s", probe_result(r));
	r = drv.cuMemcpyHtoD_v2(p.app, &got, sizeof(got));
	probe_value("copy_writes_it", r, "code", "%s", probe_result(r));
	r = drv.cuCtxSynchronize();
	probe_value("context_after_that", r, "code", "%s", probe_result(r));
}

void probe_readonly_write(void)
{
	uint32_t word = 7, got = 0;
	struct pair p;
	CUresult r;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("read_alias", pair_make(&p, CU_MEM_ACCESS_FLAGS_PROT_READ));
	void *params[] = { &p.app, &word };
	PROBE_TRY("launch", probe_launch(p.poke, 1, 1, NULL, params));
	r = drv.cuCtxSynchronize();
	probe_verdict("kernel_writes_it", r, "code", r != CUDA_SUCCESS,
		"a kernel's write is a fault, not lost", "%s", probe_result(r));
	if (r == CUDA_SUCCESS) {
		PROBE_TRY("after", drv.cuMemcpyDtoH_v2(&got, p.own,
			sizeof(got)));
		probe_value("bytes_changed", got == word, "", "%s", "");
		return;
	}
	r = drv.cuMemcpyDtoH_v2(&got, p.own, sizeof(got));
	probe_verdict("context_is_lost", r, "code", r != CUDA_SUCCESS,
		"after a fault every call of the process fails", "%s",
		probe_result(r));
}

void probe_unmapped_read(void)
{
	uint32_t got = 0;
	struct pair p;
	CUresult r;

	if (!probe_has_vmm())
		return;
	/* Mapped without rights first: what the careful mode may leave. */
	PROBE_TRY("pair", pair_make(&p, CU_MEM_ACCESS_FLAGS_PROT_NONE));
	r = drv.cuMemcpyDtoH_v2(&got, p.app, sizeof(got));
	probe_verdict("copy_without_rights", r, "code", r != CUDA_SUCCESS,
		"a copy from memory without rights fails", "%s",
		probe_result(r));
	if (drv.cuCtxSynchronize() != CUDA_SUCCESS) {
		probe_value("context_after_that", 0, "",
			"it is lost, so the kernel was not tried");
		return;
	}
	PROBE_TRY("unmap", drv.cuMemUnmap(p.app, p.size));
	r = peek(&p, p.app, &got);
	probe_verdict("kernel_reads_unmapped", r, "code", r != CUDA_SUCCESS,
		"a hidden access to an unmapped range is a fault",
		"%s", probe_result(r));
}

/* ---- g: parts of mappings --------------------------------------------------------- */

void probe_partial(void)
{
	size_t grain = probe_grain();
	CUmemGenericAllocationHandle two, h[3];
	CUdeviceptr va, run;
	CUresult r;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("create", probe_create(&two, 2 * grain));
	PROBE_TRY("reserve", probe_reserve(&va, 4 * grain));
	r = drv.cuMemMap(va, grain, 0, two, 0);
	probe_verdict("prefix_of_a_handle", r, "code", r != CUDA_SUCCESS,
		"a handle is mapped whole", "%s", probe_result(r));
	if (r == CUDA_SUCCESS)
		PROBE_TRY("unmap", drv.cuMemUnmap(va, grain));
	r = drv.cuMemMap(va, grain, grain, two, 0);
	probe_verdict("offset_in_a_handle", r, "code", r != CUDA_SUCCESS,
		"the offset must be 0", "%s", probe_result(r));
	if (r == CUDA_SUCCESS)
		PROBE_TRY("unmap", drv.cuMemUnmap(va, grain));
	PROBE_TRY("map", probe_map(va, 2 * grain, two,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	r = drv.cuMemMap(va, 2 * grain, 0, two, 0);
	probe_verdict("map_over_a_mapping", r, "code", r != CUDA_SUCCESS,
		"an address is unmapped before it is mapped anew",
		"%s", probe_result(r));
	r = probe_access(va, grain, CU_MEM_ACCESS_FLAGS_PROT_READ);
	probe_value("rights_of_half_a_mapping", r, "code", "%s",
		probe_result(r));
	r = drv.cuMemUnmap(va, grain);
	probe_verdict("unmap_half", r, "code", r != CUDA_SUCCESS,
		"only whole mappings are unmapped", "%s", probe_result(r));
	PROBE_TRY("tile", probe_tile(&run, 3, grain, h));
	r = probe_access(run, 3 * grain, CU_MEM_ACCESS_FLAGS_PROT_READ);
	probe_verdict("rights_of_a_run", r, "code", r == CUDA_SUCCESS,
		"one call gives rights to a run of mappings",
		"%s", probe_result(r));
	r = drv.cuMemUnmap(run, 2 * grain);
	probe_verdict("unmap_a_run", r, "code", r == CUDA_SUCCESS,
		"one call unmaps a run of mappings", "%s", probe_result(r));
	r = drv.cuMemUnmap(run, 3 * grain);
	probe_value("unmap_over_a_gap", r, "code", "%s", probe_result(r));
	r = drv.cuMemAddressFree(run, 3 * grain);
	probe_value("free_a_reservation_with_mappings", r, "code", "%s",
		probe_result(r));
}

/* ---- l: what other calls say -------------------------------------------------------- */

static void attribute(const char *name, CUpointer_attribute which,
	CUdeviceptr at, CUdeviceptr base)
{
	unsigned long long value = 0;
	CUresult r = drv.cuPointerGetAttribute(&value, which, at);

	if (r != CUDA_SUCCESS)
		probe_value(name, r, "code", "%s", probe_result(r));
	else if (value >= base && value < base + PROBE_GIB)
		probe_value(name, (double)(value - base), "bytes",
			"from the start of the range");
	else
		probe_value(name, (double)value, "", "%s", "");
}

void probe_queries(void)
{
	size_t grain = probe_grain(), size = 0;
	CUmemGenericAllocationHandle h[3], back = 0;
	CUdeviceptr va, base = 0;
	CUipcMemHandle ipc;
	unsigned int on = 1;
	int fd = -1;
	CUresult r;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("tile", probe_tile(&va, 3, grain, h));
	r = drv.cuMemGetAddressRange_v2(&base, &size, va + grain + 5);
	if (r != CUDA_SUCCESS)
		probe_value("address_range", r, "code", "%s", probe_result(r));
	else
		probe_verdict("address_range", (double)size, "bytes",
			base == va + grain && size == grain,
			"it is the one mapping's, so the call must be wrapped",
			"base at %lld", (long long)(base - va));
	attribute("range_start", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		va + grain + 5, va);
	attribute("range_size", CU_POINTER_ATTRIBUTE_RANGE_SIZE,
		va + grain + 5, va);
	attribute("mapping_base", CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
		va + grain + 5, va);
	attribute("mapping_size", CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
		va + grain + 5, va);
	attribute("buffer_id", CU_POINTER_ATTRIBUTE_BUFFER_ID, va, va);
	attribute("memory_type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va, va);
	attribute("legacy_ipc_capable",
		CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, va, va);
	attribute("rdma_capable",
		CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, va, va);
	r = drv.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
		va);
	probe_value("sync_memops", r, "code", "%s", probe_result(r));
	r = drv.cuIpcGetMemHandle(&ipc, va);
	probe_verdict("ipc_handle", r, "code", r != CUDA_SUCCESS,
		"there is no IPC handle of mapped memory", "%s",
		probe_result(r));
	r = drv.cuMemRetainAllocationHandle(&back, (void *)(uintptr_t)va);
	probe_value("retained_handle", r, "code", "%s%s", probe_result(r),
		r == CUDA_SUCCESS && back == h[0] ? ", the same number" : "");
	PROBE_HAS(cuMemGetHandleForAddressRange);
	r = drv.cuMemGetHandleForAddressRange(&fd, va, grain,
		CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	probe_value("dma_buf", r, "code", "%s", probe_result(r));
	if (r == CUDA_SUCCESS)
		close(fd);
}
