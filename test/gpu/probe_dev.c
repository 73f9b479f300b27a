/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes' way to the device: the driver by dlopen, one context, physical
 * memory at addresses of our choice, kernels from probe_ptx.h.  Called by the
 * one thread of a probe's process, which first calls probe_open.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/gpu/probe.h"
#include "test/gpu/probe_ptx.h"

#define SKIP 77

struct probe_api drv;
int probe_quick;

static CUdevice device;
static CUmodule base;			/* of probe_ptx_base, loaded on demand */
static CUdeviceptr scratch;		/* a word for kernels that want one */
/* Host memory that was given out; owned. */
static struct {
	void *p;
	int pinned;
} hosted[64];
static size_t nr_hosted;

static int find_functions(void)
{
	static const char *const names[] = { "libcuda.so.1", "libcuda.so" };
	void *lib = NULL;

	for (size_t i = 0; i < PROBE_LEN(names) && !lib; i++)
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		fprintf(stderr, "no driver: %s\n", dlerror());
		return SKIP;
	}
#define MORE(symbol, args) *(void **)&drv.symbol = dlsym(lib, #symbol);
#define CALL(symbol) MORE(symbol, )					\
	if (!drv.symbol) {						\
		fprintf(stderr, "the driver has no " #symbol "\n");	\
		return 1;						\
	}
#include "test/gpu/probe_api.def"
#undef CALL
#undef MORE
	return 0;
}

int probe_open(void)
{
	CUcontext ctx;
	CUresult r;
	int count = 0, rc = find_functions();

	if (rc)
		return rc;
	r = drv.cuInit(0);
	if (r == CUDA_SUCCESS)
		r = drv.cuDeviceGetCount(&count);
	if (r != CUDA_SUCCESS || !count) {
		fprintf(stderr, "no device: %s\n", probe_result(r));
		return SKIP;
	}
	r = drv.cuDeviceGet(&device, 0);
	if (r == CUDA_SUCCESS)
		r = drv.cuDevicePrimaryCtxRetain(&ctx, device);
	if (r == CUDA_SUCCESS)
		r = drv.cuCtxSetCurrent(ctx);
	if (r == CUDA_SUCCESS)
		return 0;
	fprintf(stderr, "no context: %s\n", probe_result(r));
	return 1;
}

void probe_close(void)
{
	while (nr_hosted) {
		nr_hosted--;
		/* Fails after a fault; the process ends anyway. */
		if (hosted[nr_hosted].pinned)
			(void)drv.cuMemFreeHost(hosted[nr_hosted].p);
		else
			free(hosted[nr_hosted].p);
	}
}

CUdevice probe_device(void)
{
	return device;
}

int probe_attribute(CUdevice_attribute a)
{
	int value = 0;

	if (drv.cuDeviceGetAttribute(&value, a, device))
		return 0;
	return value;
}

int probe_has_vmm(void)
{
	if (probe_attribute(
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
		return 1;
	probe_status("vmm", PROBE_UNSUPPORTED,
		"the device has no virtual memory management");
	return 0;
}

double probe_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* ---- memory ------------------------------------------------------------------- */

/* Takes ownership. */
static void *keep(void *p, int pinned)
{
	if (!p || nr_hosted == PROBE_LEN(hosted)) {
		fprintf(stderr, "no host memory, or too many pieces\n");
		exit(1);
	}
	hosted[nr_hosted].p = p;
	hosted[nr_hosted++].pinned = pinned;
	return p;
}

void *probe_host(size_t size)
{
	return keep(calloc(1, size), 0);
}

void *probe_pinned(size_t size)
{
	void *p = NULL;
	CUresult r = drv.cuMemHostAlloc(&p, size, CU_MEMHOSTALLOC_PORTABLE
		| CU_MEMHOSTALLOC_DEVICEMAP);

	if (r != CUDA_SUCCESS) {
		probe_error("pinned", r, "cuMemHostAlloc");
		return NULL;
	}
	memset(p, 0, size);
	return keep(p, 1);
}

CUmemAllocationProp probe_prop(void)
{
	CUmemAllocationProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	return prop;
}

size_t probe_grain(void)
{
	static size_t grain;
	CUmemAllocationProp prop = probe_prop();

	if (!grain && drv.cuMemGetAllocationGranularity(&grain, &prop,
		CU_MEM_ALLOC_GRANULARITY_MINIMUM))
		grain = 2 * PROBE_MIB;
	return grain;
}

CUresult probe_create(CUmemGenericAllocationHandle *h, size_t size)
{
	CUmemAllocationProp prop = probe_prop();

	return drv.cuMemCreate(h, size, &prop, 0);
}

CUresult probe_reserve(CUdeviceptr *va, size_t size)
{
	return drv.cuMemAddressReserve(va, size, 0, 0, 0);
}

CUresult probe_access(CUdeviceptr va, size_t size, CUmemAccess_flags flags)
{
	CUmemAccessDesc desc = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, device }, flags,
	};

	return drv.cuMemSetAccess(va, size, &desc, 1);
}

CUresult probe_map(CUdeviceptr va, size_t size, CUmemGenericAllocationHandle h,
	CUmemAccess_flags flags)
{
	PROBE_PASS(drv.cuMemMap(va, size, 0, h, 0));
	return probe_access(va, size, flags);
}

CUresult probe_tile(CUdeviceptr *va, size_t nr, size_t size,
	CUmemGenericAllocationHandle *h)
{
	PROBE_PASS(probe_reserve(va, nr * size));
	for (size_t i = 0; i < nr; i++) {
		PROBE_PASS(probe_create(&h[i], size));
		PROBE_PASS(drv.cuMemMap(*va + i * size, size, 0, h[i], 0));
	}
	return probe_access(*va, nr * size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

/* ---- streams and events --------------------------------------------------------- */

CUresult probe_stream(CUstream *s)
{
	return drv.cuStreamCreate(s, CU_STREAM_NON_BLOCKING);
}

CUresult probe_event(CUevent *e)
{
	return drv.cuEventCreate(e, CU_EVENT_DISABLE_TIMING);
}

CUresult probe_timer(CUevent *e)
{
	return drv.cuEventCreate(e, CU_EVENT_DEFAULT);
}

CUresult probe_elapsed(double *ms, CUevent from, CUevent to)
{
	float f = 0;

	PROBE_PASS(drv.cuEventSynchronize(to));
	PROBE_PASS(drv.cuEventElapsedTime(&f, from, to));
	*ms = (double)f;
	return CUDA_SUCCESS;
}

int probe_idle(CUstream s)
{
	CUresult r = drv.cuStreamQuery(s);

	if (r == CUDA_SUCCESS)
		return 1;
	return r == CUDA_ERROR_NOT_READY ? 0 : -1;
}

/* ---- kernels ---------------------------------------------------------------------- */

CUresult probe_module(CUmodule *mod, const char *ptx)
{
	char log[2048] = "";
	CUjit_option names[] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
	};
	void *values[] = { log, (void *)(uintptr_t)sizeof(log) };
	CUresult r = drv.cuModuleLoadDataEx(mod, ptx, 2, names, values);

	if (r != CUDA_SUCCESS && log[0])
		fprintf(stderr, "module: %s\n", log);
	return r;
}

CUresult probe_kernel(CUfunction *f, const char *name)
{
	if (!base) {
		PROBE_PASS(probe_module(&base, probe_ptx_base));
		PROBE_PASS(drv.cuMemAlloc_v2(&scratch, 256));
	}
	return drv.cuModuleGetFunction(f, base, name);
}

CUresult probe_launch(CUfunction f, unsigned int grid, unsigned int block,
	CUstream s, void **params)
{
	return drv.cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, s, params,
		NULL);
}

/* Blocks for a kernel over that many elements: at most enough to fill it. */
static unsigned int grid_for(size_t elements)
{
	size_t blocks = (elements + 255) / 256;
	size_t most = 16 * (size_t)probe_attribute(
		CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);

	if (blocks > most)
		blocks = most;
	return blocks ? (unsigned int)blocks : 1;
}

CUresult probe_fill(CUdeviceptr p, size_t size, uint32_t seed, CUstream s)
{
	uint32_t words = (uint32_t)(size / 4);
	void *params[] = { &p, &words, &seed };
	CUfunction f;

	PROBE_PASS(probe_kernel(&f, "fill"));
	return probe_launch(f, grid_for(words), 256, s, params);
}

void probe_fill_host(void *p, size_t size, uint32_t seed)
{
	uint32_t *w = p;

	for (size_t i = 0; i < size / 4; i++)
		w[i] = (uint32_t)i * 0x9e3779b1u + seed;
}

CUresult probe_check(CUfunction check, CUdeviceptr p, size_t size,
	uint32_t seed, CUdeviceptr bad, CUstream s)
{
	uint32_t words = (uint32_t)(size / 4);
	void *params[] = { &p, &words, &seed, &bad };

	return probe_launch(check, grid_for(words), 256, s, params);
}

CUresult probe_read(CUdeviceptr p, size_t size, unsigned int rounds,
	CUstream s)
{
	uint32_t pieces = (uint32_t)(size / 16);
	CUfunction f;

	PROBE_PASS(probe_kernel(&f, "read"));
	void *params[] = { &p, &pieces, &rounds, &scratch };
	return probe_launch(f, grid_for(pieces), 256, s, params);
}

CUresult probe_read_rate(double *gbps, CUdeviceptr p, size_t size,
	unsigned int tries)
{
	CUevent from, to;
	CUstream s;
	double ms;

	*gbps = 0;
	PROBE_PASS(probe_stream(&s));
	PROBE_PASS(probe_timer(&from));
	PROBE_PASS(probe_timer(&to));
	for (unsigned int i = 0; i < tries; i++) {
		PROBE_PASS(drv.cuEventRecord(from, s));
		PROBE_PASS(probe_read(p, size, 1, s));
		PROBE_PASS(drv.cuEventRecord(to, s));
		PROBE_PASS(probe_elapsed(&ms, from, to));
		if (ms > 0 && (double)size / ms / 1e6 > *gbps)
			*gbps = (double)size / ms / 1e6;
	}
	PROBE_PASS(drv.cuEventDestroy_v2(from));
	PROBE_PASS(drv.cuEventDestroy_v2(to));
	return drv.cuStreamDestroy_v2(s);
}

/* Milliseconds that `steps` steps of a spinning thread take. */
static CUresult spin_time(double *ms, CUfunction f, uint32_t steps)
{
	void *params[] = { &scratch, &steps };
	CUevent from, to;
	CUstream s;

	PROBE_PASS(probe_stream(&s));
	PROBE_PASS(probe_timer(&from));
	PROBE_PASS(probe_timer(&to));
	PROBE_PASS(drv.cuEventRecord(from, s));
	PROBE_PASS(probe_launch(f, 1, 1, s, params));
	PROBE_PASS(drv.cuEventRecord(to, s));
	PROBE_PASS(probe_elapsed(ms, from, to));
	PROBE_PASS(drv.cuEventDestroy_v2(from));
	PROBE_PASS(drv.cuEventDestroy_v2(to));
	return drv.cuStreamDestroy_v2(s);
}

CUresult probe_spin(CUstream s, double ms)
{
	static double steps_per_ms;
	uint32_t steps = 1000;
	CUfunction f;
	double took = 0;

	PROBE_PASS(probe_kernel(&f, "spin"));
	/* The first launch loads the code, so that its time says little. */
	if (!steps_per_ms)
		PROBE_PASS(spin_time(&took, f, steps));
	while (!steps_per_ms) {
		PROBE_PASS(spin_time(&took, f, steps));
		if (took >= 0.5 || steps >= 1u << 26)
			steps_per_ms = steps / (took > 0 ? took : 1e-3);
		else
			steps *= 4;
	}
	if (ms * steps_per_ms > 4e9)
		ms = 4e9 / steps_per_ms;
	steps = (uint32_t)(ms * steps_per_ms) + 1;
	void *params[] = { &scratch, &steps };
	return probe_launch(f, 1, 1, s, params);
}
