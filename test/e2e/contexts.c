/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: the stack of current ones, primary and created, what dies with a
 * context, and the codes of calls without one.
 */
#include "test/e2e/e2e_util.h"

static void expect(CUresult got, CUresult want, const char *what)
{
	if (got != want)
		E2E_FAIL("%s: %s, not %s", what, e2e_error_name(got),
			e2e_error_name(want));
}

static void expect_current(CUcontext want, const char *what)
{
	CUcontext got;

	CU(cuCtxGetCurrent, &got);
	if (got != want)
		E2E_FAIL("%s: the wrong context is current", what);
}

static void before_init(void)
{
	CUdeviceptr p;
	int n;

	expect(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED, "count");
	expect(cuMemAlloc(&p, 4), CUDA_ERROR_NOT_INITIALIZED, "alloc");
	expect(cuInit(1), CUDA_ERROR_INVALID_VALUE, "flags of cuInit");
}

static void without_context(CUdevice dev)
{
	CUdeviceptr p;
	CUstream s;
	char name[64];
	size_t size;

	expect(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT, "alloc");
	expect(cuStreamCreate(&s, 0), CUDA_ERROR_INVALID_CONTEXT, "stream");
	expect(cuCtxGetDevice(&dev), CUDA_ERROR_INVALID_CONTEXT, "device");
	expect(cuCtxPopCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT, "pop");
	expect_current(NULL, "no context");
	CU(cuDeviceGetName, name, sizeof(name), 0);
	CU(cuDeviceTotalMem, &size, 0);
	expect(cuDeviceGet(&dev, 1000), CUDA_ERROR_INVALID_DEVICE, "get");
	expect(cuDeviceTotalMem(&size, -1), CUDA_ERROR_INVALID_DEVICE, "mem");
}

static void stack(CUdevice dev)
{
	CUcontext a, b, got;
	CUdevice d;

	CU(cuCtxCreate, &a, NULL, 0, dev);
	expect_current(a, "created");
	CU(cuCtxCreate, &b, NULL, CU_CTX_SCHED_SPIN, dev);
	expect_current(b, "created");
	CU(cuCtxPushCurrent, a);
	CU(cuCtxPopCurrent, &got);
	if (got != a)
		E2E_FAIL("popped another context");
	expect_current(b, "popped");
	CU(cuCtxSetCurrent, a);
	expect_current(a, "set");
	CU(cuCtxGetDevice, &d);
	if (d != dev)
		E2E_FAIL("device %d, not %d", d, dev);
	CU(cuCtxPopCurrent, NULL);
	/* Set replaced b: a is left below. */
	expect_current(a, "below");
	CU(cuCtxDestroy, b);
	CU(cuCtxDestroy, a);
	expect_current(NULL, "destroyed");
}

/* Memory of a destroyed context is free again. */
static void dies_with_context(CUdevice dev)
{
	size_t before, after, total;
	CUcontext keep, ctx;
	CUdeviceptr p;

	CU(cuCtxCreate, &keep, NULL, 0, dev);
	CU(cuMemGetInfo, &before, &total);
	CU(cuCtxCreate, &ctx, NULL, 0, dev);
	CU(cuMemAlloc, &p, 32 << 20);
	CU(cuMemsetD8, p, 1, 32 << 20);
	CU(cuCtxDestroy, ctx);
	CU(cuMemGetInfo, &after, &total);
	if (after < before)
		E2E_FAIL("%zu bytes stayed in use", before - after);
	CU(cuCtxDestroy, keep);
}

/* The calls of old, by number, since their names mean newer ones. */
static void dies_the_old_way(CUdevice dev)
{
	CUresult (*create)(CUcontext *, unsigned int, CUdevice);
	CUresult (*destroy)(CUcontext);
	size_t before, after, total;
	CUcontext keep, ctx, again;
	CUdeviceptr p;

	CU(cuGetProcAddress, "cuCtxCreate", (void **)&create, 2000, 0, NULL);
	CU(cuGetProcAddress, "cuCtxDestroy", (void **)&destroy, 2000, 0, NULL);
	CU(cuCtxCreate, &keep, NULL, 0, dev);
	CU(cuMemGetInfo, &before, &total);
	for (int way = 0; way < 3; way++) {
		CU(create, &ctx, 0, dev);
		CU(cuMemAlloc, &p, 32 << 20);
		CU(cuMemsetD8, p, 1, 32 << 20);
		if (way == 2) {
			CU(cuCtxAttach, &again, 0);
			CU(cuCtxDetach, ctx);
			CU(cuMemsetD8, p, 2, 32 << 20);
		}
		CU(cuCtxSynchronize);
		if (way == 0)
			CU(destroy, ctx);
		else
			CU(cuCtxDetach, ctx);
		expect_current(keep, "ended");
		CU(cuMemGetInfo, &after, &total);
		if (after < before)
			E2E_FAIL("way %d: %zu bytes stayed in use", way,
				before - after);
	}
	CU(cuCtxDestroy, keep);
}

static void primary(CUdevice dev)
{
	CUcontext a, b;
	unsigned int flags;
	CUdeviceptr p;
	int active;

	CU(cuDevicePrimaryCtxGetState, dev, &flags, &active);
	if (active)
		E2E_FAIL("the primary context is active");
	CU(cuDevicePrimaryCtxRetain, &a, dev);
	CU(cuDevicePrimaryCtxRetain, &b, dev);
	if (a != b)
		E2E_FAIL("two primary contexts");
	CU(cuCtxSetCurrent, a);
	CU(cuMemAlloc, &p, 100);
	CU(cuDevicePrimaryCtxRelease, dev);
	CU(cuMemsetD8, p, 1, 100);
	CU(cuCtxSynchronize);
	CU(cuDevicePrimaryCtxRelease, dev);
	CU(cuDevicePrimaryCtxGetState, dev, &flags, &active);
	if (active)
		E2E_FAIL("the primary context is still active");
	expect(cuMemAlloc(&p, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED, "alloc");
	CU(cuCtxSetCurrent, NULL);
}

int main(void)
{
	CUdevice dev;

	before_init();
	CU(cuInit, 0);
	CU(cuInit, 0);
	CU(cuDeviceGet, &dev, 0);
	without_context(dev);
	stack(dev);
	dies_with_context(dev);
	dies_the_old_way(dev);
	primary(dev);
	printf("checksum: ok\n");
	return 0;
}
