/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver calls that Ballast makes for itself, each with what it needs to be
 * made once.  probe_wait.c asks which of them wait for the device,
 * probe_capture.c which are legal while a stream captures.  One call is under
 * test at a time; its objects are not given back, a probe's process is short.
 */
#include <string.h>
#include <sys/mman.h>

#include "test/gpu/probe_calls.h"
#include "test/gpu/probe_ptx.h"

/* What the calls under test work on; made anew for each. */
static struct {
	CUdeviceptr va, plain;
	CUmemGenericAllocationHandle h;
	void *pinned, *pages;
	size_t size;
	CUstream stream;
	CUevent event;
	CUmodule mod;
	CUfunction nop;
} at;

static CUresult set_none(void)
{
	return CUDA_SUCCESS;
}

static CUresult set_va(void)
{
	at.size = probe_grain();
	PROBE_PASS(probe_create(&at.h, at.size));
	return probe_reserve(&at.va, at.size);
}

static CUresult set_mapped(void)
{
	PROBE_PASS(set_va());
	return drv.cuMemMap(at.va, at.size, 0, at.h, 0);
}

static CUresult set_usable(void)
{
	PROBE_PASS(set_mapped());
	return probe_access(at.va, at.size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult set_plain(void)
{
	return drv.cuMemAlloc_v2(&at.plain, 8 * PROBE_MIB);
}

static CUresult set_small(void)
{
	return drv.cuMemAlloc_v2(&at.plain, 256);
}

static CUresult set_pinned(void)
{
	return drv.cuMemHostAlloc(&at.pinned, PROBE_MIB, 0);
}

static CUresult set_pages(void)
{
	at.pages = mmap(NULL, PROBE_MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at.pages == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult set_registered(void)
{
	PROBE_PASS(set_pages());
	return drv.cuMemHostRegister_v2(at.pages, PROBE_MIB, 0);
}

static CUresult set_stream(void)
{
	return probe_stream(&at.stream);
}

static CUresult set_event(void)
{
	return probe_event(&at.event);
}

static CUresult set_recorded(void)
{
	PROBE_PASS(set_event());
	PROBE_PASS(set_stream());
	PROBE_PASS(drv.cuEventRecord(at.event, at.stream));
	return drv.cuStreamSynchronize(at.stream);
}

static CUresult set_kernel(void)
{
	PROBE_PASS(set_stream());
	return probe_kernel(&at.nop, "nop");
}

static CUresult set_copy(void)
{
	PROBE_PASS(set_plain());
	PROBE_PASS(set_stream());
	return set_pinned();
}

static CUresult set_module(void)
{
	return probe_module(&at.mod, probe_ptx_base);
}

static CUresult call_create(void)
{
	return probe_create(&at.h, probe_grain());
}

static CUresult call_release(void)
{
	return drv.cuMemRelease(at.h);
}

static CUresult call_map(void)
{
	return drv.cuMemMap(at.va, at.size, 0, at.h, 0);
}

static CUresult call_access(void)
{
	return probe_access(at.va, at.size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult call_readonly(void)
{
	return probe_access(at.va, at.size, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

static CUresult call_unmap(void)
{
	return drv.cuMemUnmap(at.va, at.size);
}

static CUresult call_reserve(void)
{
	return probe_reserve(&at.va, probe_grain());
}

static CUresult call_alloc(void)
{
	return drv.cuMemAlloc_v2(&at.plain, 8 * PROBE_MIB);
}

static CUresult call_free(void)
{
	return drv.cuMemFree_v2(at.plain);
}

static CUresult call_hostalloc(void)
{
	return set_pinned();
}

static CUresult call_freehost(void)
{
	return drv.cuMemFreeHost(at.pinned);
}

static CUresult call_register(void)
{
	return drv.cuMemHostRegister_v2(at.pages, PROBE_MIB, 0);
}

static CUresult call_unregister(void)
{
	return drv.cuMemHostUnregister(at.pages);
}

static CUresult call_upload(void)
{
	return drv.cuMemcpyHtoD_v2(at.plain, at.pinned, PROBE_MIB);
}

static CUresult call_upload_async(void)
{
	return drv.cuMemcpyHtoDAsync_v2(at.plain, at.pinned, PROBE_MIB,
		at.stream);
}

static CUresult call_load(void)
{
	return set_module();
}

static CUresult call_unload(void)
{
	return drv.cuModuleUnload(at.mod);
}

static CUresult call_new_stream(void)
{
	return set_stream();
}

static CUresult call_end_stream(void)
{
	return drv.cuStreamDestroy_v2(at.stream);
}

static CUresult call_end_event(void)
{
	return drv.cuEventDestroy_v2(at.event);
}

static CUresult call_meminfo(void)
{
	size_t a, b;

	return drv.cuMemGetInfo_v2(&a, &b);
}

static CUresult call_download_async(void)
{
	return drv.cuMemcpyDtoHAsync_v2(at.pinned, at.plain, PROBE_MIB,
		at.stream);
}

static CUresult call_memset_async(void)
{
	return drv.cuMemsetD8Async(at.plain, 0, PROBE_MIB, at.stream);
}

static CUresult call_launch(void)
{
	return probe_launch(at.nop, 1, 1, at.stream, NULL);
}

static CUresult call_param_info(void)
{
	size_t off, size;
	CUresult r;

	if (!drv.cuFuncGetParamInfo)
		return CUDA_ERROR_NOT_FOUND;
	r = drv.cuFuncGetParamInfo(at.nop, 0, &off, &size);
	/* The kernel has no parameters, which is the answer. */
	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : r;
}

static CUresult call_new_event(void)
{
	return set_event();
}

static CUresult call_record(void)
{
	return drv.cuEventRecord(at.event, at.stream);
}

static CUresult call_wait_event(void)
{
	return drv.cuStreamWaitEvent(at.stream, at.event, 0);
}

static CUresult call_event_query(void)
{
	return drv.cuEventQuery(at.event);
}

static CUresult call_event_sync(void)
{
	return drv.cuEventSynchronize(at.event);
}

static CUresult call_stream_query(void)
{
	return drv.cuStreamQuery(at.stream);
}

static CUresult call_stream_sync(void)
{
	return drv.cuStreamSynchronize(at.stream);
}

static CUresult call_ctx_sync(void)
{
	return drv.cuCtxSynchronize();
}

static CUresult call_attribute(void)
{
	CUdeviceptr start;

	return drv.cuPointerGetAttribute(&start,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at.plain);
}

/* set, call, waits: 1, 0, -1 no opinion, -2 not asked; wanted in captures. */
const struct probe_call probe_calls[] = {
	{ "cuMemUnmap", set_usable, call_unmap, -1, 1 },
	{ "cuMemSetAccess", set_mapped, call_access, -1, 1 },
	{ "cuMemSetAccess_again", set_usable, call_readonly, -1, 1 },
	{ "cuMemMap", set_va, call_map, 0, 1 },
	{ "cuMemCreate", set_none, call_create, 0, 1 },
	{ "cuMemRelease", set_va, call_release, 0, 1 },
	{ "cuMemRelease_mapped", set_usable, call_release, 0, 1 },
	{ "cuMemAddressReserve", set_none, call_reserve, 0, 1 },
	{ "cuMemAlloc", set_none, call_alloc, -1, 1 },
	{ "cuMemFree", set_plain, call_free, 1, 0 },
	{ "cuMemFree_small", set_small, call_free, 1, 0 },
	{ "cuMemHostAlloc", set_none, call_hostalloc, -1, 1 },
	{ "cuMemFreeHost", set_pinned, call_freehost, -1, 0 },
	{ "cuMemHostRegister", set_pages, call_register, -1, 1 },
	{ "cuMemHostUnregister", set_registered, call_unregister, -1, 0 },
	{ "cuMemcpyHtoD", set_copy, call_upload, 0, 0 },
	{ "cuMemcpyHtoDAsync", set_copy, call_upload_async, 0, 1 },
	{ "cuMemcpyDtoHAsync", set_copy, call_download_async, 0, 1 },
	{ "cuMemsetD8Async", set_copy, call_memset_async, 0, 1 },
	{ "cuLaunchKernel", set_kernel, call_launch, 0, 1 },
	{ "cuFuncGetParamInfo", set_kernel, call_param_info, 0, 1 },
	{ "cuModuleLoadData", set_none, call_load, -1, 1 },
	{ "cuModuleUnload", set_module, call_unload, -1, 0 },
	{ "cuStreamCreate", set_none, call_new_stream, 0, 1 },
	{ "cuStreamDestroy", set_stream, call_end_stream, 0, 0 },
	{ "cuStreamQuery", set_stream, call_stream_query, 0, 1 },
	{ "cuStreamSynchronize", set_stream, call_stream_sync, 0, 1 },
	{ "cuStreamWaitEvent", set_recorded, call_wait_event, 0, 1 },
	{ "cuEventCreate", set_none, call_new_event, 0, 1 },
	{ "cuEventRecord", set_recorded, call_record, 0, 1 },
	{ "cuEventQuery", set_recorded, call_event_query, 0, 1 },
	{ "cuEventSynchronize", set_recorded, call_event_sync, 0, 1 },
	{ "cuEventDestroy", set_event, call_end_event, 0, 0 },
	{ "cuMemGetInfo", set_none, call_meminfo, 0, 1 },
	{ "cuPointerGetAttribute", set_plain, call_attribute, 0, 1 },
	{ "cuCtxSynchronize", set_none, call_ctx_sync, -2, 0 },
};

const size_t probe_nr_calls = PROBE_LEN(probe_calls);

CUresult probe_call_set(const struct probe_call *c)
{
	memset(&at, 0, sizeof(at));
	return c->set();
}
