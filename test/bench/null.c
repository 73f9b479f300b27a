/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The null driver: a libcuda.so.1 whose every call succeeds at once.  It has
 * one device, gives out addresses that nothing lies behind, and is what the
 * benchmarks and the dispatch tests measure Ballast against.  It checks
 * nothing and is linked to no code of ours.  NULLCUDA_LAUNCH_NS makes a launch
 * take that long on the CPU, as a real one does.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/cuda_abi.h"

#define NULL_API __attribute__((visibility("default")))

#define DEVICE_BYTES (16ull << 30)
#define GRANULARITY (2ull << 20)
#define NR_PARAMS 8

static CUdeviceptr next_va = 0x700000000000ull;
static CUdeviceptr next_reserve = 0x200000000000ull;
static unsigned long long next_handle = 0x1000;

static void *new_handle(void)
{
	return (void *)(uintptr_t)__atomic_add_fetch(&next_handle, 16,
		__ATOMIC_RELAXED);
}

static CUdeviceptr new_range(CUdeviceptr *next, size_t size, size_t align)
{
	if (align < GRANULARITY)
		align = GRANULARITY;
	size = (size + align - 1) & ~(align - 1);
	/* Twice the alignment leaves room to round up. */
	return (__atomic_fetch_add(next, size + align, __ATOMIC_RELAXED) +
		align - 1) & ~(CUdeviceptr)(align - 1);
}

static CUcontext the_context(void)
{
	return (CUcontext)(uintptr_t)0xc0;
}

/* ---- entry points -------------------------------------------------------- */

struct name {
	const char *symbol;
	const char *base;
	int since;
	enum { PLAIN, PTSZ, PTDS } flavour;
	void *address;
};

/* The addresses, under names whose types do not clash with cuda_proto.h. */
#define EXPORT(sym, base, since, flavour) \
	extern char null_addr_##sym[] __asm__(#sym);
#include "test/softcuda/exports.def"
#undef EXPORT

static const struct name names[] = {
#define EXPORT(sym, base, since, flavour) \
	{ #sym, #base, since, flavour, null_addr_##sym },
#include "test/softcuda/exports.def"
#undef EXPORT
};

static void *look_up(const char *base, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status)
{
	const struct name *best = NULL;
	int known = 0, per_thread;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct name *n = &names[i];

		if (strcmp(n->base, base) != 0)
			continue;
		known = 1;
		per_thread = n->flavour != PLAIN;
		if (n->since > version || (per_thread &&
				flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))
			continue;
		/* A per-thread form goes before any other. */
		if (best == NULL || per_thread > (best->flavour != PLAIN) ||
				(per_thread == (best->flavour != PLAIN) &&
				n->since > best->since))
			best = n;
	}
	if (status != NULL)
		*status = best != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : known ?
			CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT :
			CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return best != NULL ? best->address : NULL;
}

NULL_API CUresult cuGetProcAddress_v2(const char *symbol, void **pfn,
	int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	*pfn = look_up(symbol, version, flags, status);
	return *pfn != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

NULL_API CUresult cuGetProcAddress(const char *symbol, void **pfn, int version,
	cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

NULL_API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

NULL_API CUresult cuGetErrorName(CUresult r, const char **out)
{
	*out = r == CUDA_SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR";
	return CUDA_SUCCESS;
}

NULL_API CUresult cuGetErrorString(CUresult r, const char **out)
{
	*out = r == CUDA_SUCCESS ? "no error" : "error";
	return CUDA_SUCCESS;
}

/* ---- device and context -------------------------------------------------- */

NULL_API CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = 0;
	return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

NULL_API CUresult cuDeviceGetCount(int *count)
{
	*count = 1;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDeviceGetName(char *name, int len, CUdevice device)
{
	if (len > 0)
		strncpy(name, "null", (size_t)len);
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	memset(uuid, 0x11, sizeof(*uuid));
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid(uuid, device);
}

NULL_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	*bytes = DEVICE_BYTES;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which,
	CUdevice device)
{
	switch (which) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = 0;
		break;
	case CU_DEVICE_ATTRIBUTE_INTEGRATED:
		*value = 0;
		break;
	default:
		*value = 1;
	}
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDevicePrimaryCtxRetain(CUcontext *ctx, CUdevice device)
{
	*ctx = the_context();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuDevicePrimaryCtxGetState(CUdevice device,
	unsigned int *flags, int *active)
{
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxCreate_v2(CUcontext *ctx, unsigned int flags,
	CUdevice device)
{
	*ctx = the_context();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxCreate_v4(CUcontext *ctx, CUctxCreateParams *params,
	unsigned int flags, CUdevice device)
{
	*ctx = the_context();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
	if (ctx != NULL)
		*ctx = the_context();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxGetCurrent(CUcontext *ctx)
{
	*ctx = the_context();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext ctx)
{
	*device = 0;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxGetFlags(unsigned int *flags)
{
	*flags = 0;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least != NULL)
		*least = 0;
	if (greatest != NULL)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* ---- memory -------------------------------------------------------------- */

NULL_API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t size)
{
	*out = new_range(&next_va, size, 0);
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch,
	size_t width, size_t height, unsigned int element)
{
	*pitch = (width + 511) & ~(size_t)511;
	return cuMemAlloc_v2(out, *pitch * height);
}

NULL_API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t size,
	unsigned int flags)
{
	return cuMemAlloc_v2(out, size);
}

NULL_API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t size,
	CUstream stream)
{
	return cuMemAlloc_v2(out, size);
}

NULL_API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size,
	CUstream stream)
{
	return cuMemAlloc_v2(out, size);
}

NULL_API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	if (free_bytes != NULL)
		*free_bytes = DEVICE_BYTES - (1ull << 30);
	if (total != NULL)
		*total = DEVICE_BYTES;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size,
	CUdeviceptr p)
{
	if (base != NULL)
		*base = p & ~(GRANULARITY - 1);
	if (size != NULL)
		*size = GRANULARITY;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)new_handle();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size,
	size_t align, CUdeviceptr hint, unsigned long long flags)
{
	*out = new_range(&next_reserve, size, align);
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemGetAllocationGranularity(size_t *out,
	const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags option)
{
	*out = GRANULARITY;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
	*out = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);
	return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

NULL_API CUresult cuMemAllocHost_v2(void **out, size_t size)
{
	return cuMemHostAlloc(out, size, 0);
}

NULL_API CUresult cuMemFreeHost(void *p)
{
	free(p);
	return CUDA_SUCCESS;
}

NULL_API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p,
	unsigned int flags)
{
	*out = (CUdeviceptr)(uintptr_t)p;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuPointerGetAttribute(void *out, CUpointer_attribute which,
	CUdeviceptr p)
{
	switch (which) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)out = the_context();
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)out = p;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)out = CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)out = 0;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* ---- modules, streams, events -------------------------------------------- */

NULL_API CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	*out = new_handle();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuModuleLoadDataEx(CUmodule *out, const void *image,
	unsigned int nr, CUjit_option *options, void **values)
{
	return cuModuleLoadData(out, image);
}

NULL_API CUresult cuModuleGetFunction(CUfunction *out, CUmodule module,
	const char *name)
{
	*out = new_handle();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *size,
	CUmodule module, const char *name)
{
	return CUDA_ERROR_NOT_FOUND;
}

NULL_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuFuncGetModule(CUmodule *out, CUfunction f)
{
	*out = (CUmodule)(uintptr_t)0xd0;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuFuncGetName(const char **out, CUfunction f)
{
	*out = "null";
	return CUDA_SUCCESS;
}

NULL_API CUresult cuFuncGetAttribute(int *out, CUfunction_attribute which,
	CUfunction f)
{
	*out = 0;
	return CUDA_SUCCESS;
}

/* Every kernel has eight pointers. */
NULL_API CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *off,
	size_t *size)
{
	if (index >= NR_PARAMS)
		return CUDA_ERROR_INVALID_VALUE;
	*off = index * sizeof(CUdeviceptr);
	if (size != NULL)
		*size = sizeof(CUdeviceptr);
	return CUDA_SUCCESS;
}

NULL_API CUresult cuKernelGetParamInfo(CUkernel k, size_t index, size_t *off,
	size_t *size)
{
	return cuFuncGetParamInfo((CUfunction)k, index, off, size);
}

NULL_API CUresult cuKernelGetFunction(CUfunction *out, CUkernel k)
{
	*out = (CUfunction)k;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
	*out = new_handle();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags,
	int priority)
{
	*out = new_handle();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamGetCtx(CUstream stream, CUcontext *ctx)
{
	*ctx = the_context();
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamGetFlags(CUstream stream, unsigned int *flags)
{
	*flags = 0;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamGetId(CUstream stream, unsigned long long *id)
{
	*id = (uintptr_t)stream;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamIsCapturing(CUstream stream,
	CUstreamCaptureStatus *status)
{
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuStreamIsCapturing_ptsz(CUstream stream,
	CUstreamCaptureStatus *status)
{
	return cuStreamIsCapturing(stream, status);
}

/*
 * Events with timing know when they were recorded, as nothing takes time on the
 * device; the others are numbers only.
 */
struct null_event {
	uint64_t ns;
};

#define TIMED 1u		/* in the handle: a struct null_event */

NULL_API CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct null_event *e = NULL;

	if (!(flags & CU_EVENT_DISABLE_TIMING))
		e = calloc(1, sizeof(*e));
	*out = e == NULL ? new_handle() : (CUevent)((uintptr_t)e | TIMED);
	return CUDA_SUCCESS;
}

static struct null_event *event_of(CUevent e)
{
	return (uintptr_t)e & TIMED ?
		(struct null_event *)((uintptr_t)e - TIMED) : NULL;
}

NULL_API CUresult cuEventRecord(CUevent event, CUstream s)
{
	struct null_event *e = event_of(event);
	struct timespec ts;

	if (e != NULL) {
		clock_gettime(CLOCK_MONOTONIC, &ts);
		e->ns = (uint64_t)ts.tv_sec * 1000000000 +
			(uint64_t)ts.tv_nsec;
	}
	return CUDA_SUCCESS;
}

NULL_API CUresult cuEventDestroy_v2(CUevent event)
{
	free(event_of(event));
	return CUDA_SUCCESS;
}

NULL_API CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
	const struct null_event *a = event_of(start), *b = event_of(end);

	*ms = a == NULL || b == NULL || b->ns < a->ns ? 0 :
		(float)(b->ns - a->ns) / 1e6f;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
	return cuEventElapsedTime(ms, start, end);
}

/* ---- launches ------------------------------------------------------------ */

static unsigned long launch_ns;

static __attribute__((constructor)) void read_knobs(void)
{
	const char *text = getenv("NULLCUDA_LAUNCH_NS");

	launch_ns = text != NULL ? strtoul(text, NULL, 10) : 0;
}

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000u +
		(unsigned long long)t.tv_nsec;
}

NULL_API CUresult cuLaunchKernel(CUfunction f, unsigned int gx,
	unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream stream, void **params,
	void **extra)
{
	unsigned long long end;

	if (__builtin_expect(launch_ns == 0, 1))
		return CUDA_SUCCESS;
	end = now_ns() + launch_ns;
	while (now_ns() < end)
		;
	return CUDA_SUCCESS;
}

NULL_API CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned int gx,
	unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
	unsigned int bz, unsigned int shared, CUstream stream, void **params,
	void **extra)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream,
		params, extra);
}
