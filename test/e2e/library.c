/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries: loaded without a context, kernels found and counted, launched as
 * kernels and as functions in two contexts; each context has its own copy of
 * the variables.  Attributes and parameters by kernel.
 */
#include "test/e2e/e2e_util.h"

#define N 256

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 step = 3;\n"
	".visible .entry count(.param .u64 p, .param .u32 by)\n"
	"{\n"
	"	.reg .u32 %t, %v, %s, %b;\n"
	"	.reg .u64 %p, %o, %g;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	ld.param.u64 %p, [p];\n"
	"	ld.param.u32 %b, [by];\n"
	"	cvta.to.global.u64 %p, %p;\n"
	"	mul.wide.u32 %o, %t, 4;\n"
	"	add.u64 %p, %p, %o;\n"
	"	mov.u64 %g, step;\n"
	"	ld.global.u32 %s, [%g];\n"
	"	ld.global.u32 %v, [%p];\n"
	"	mad.lo.u32 %v, %s, %b, %v;\n"
	"	st.global.u32 [%p], %v;\n"
	"	ret;\n"
	"}\n"
	".visible .entry clear(.param .u64 p)\n"
	"{\n"
	"	.reg .u32 %t, %z;\n"
	"	.reg .u64 %p, %o;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	ld.param.u64 %p, [p];\n"
	"	cvta.to.global.u64 %p, %p;\n"
	"	mul.wide.u32 %o, %t, 4;\n"
	"	add.u64 %p, %p, %o;\n"
	"	mov.u32 %z, 0;\n"
	"	st.global.u32 [%p], %z;\n"
	"	ret;\n"
	"}\n";

static void run(CUfunction f, CUdeviceptr p, unsigned int by)
{
	void *args[] = { &p, &by };

	CU(cuLaunchKernel, f, 1, 1, 1, N, 1, 1, 0, NULL, args, NULL);
}

static void expect(CUdeviceptr p, uint32_t want, const char *what)
{
	uint32_t got[N];

	CU(cuMemcpyDtoH, got, p, sizeof(got));
	for (int i = 0; i < N; i++)
		if (got[i] != want)
			E2E_FAIL("%s: [%d] is %u, not %u", what, i, got[i],
				want);
	printf("%s: %u\n", what, want);
}

static void questions(CUlibrary lib, CUkernel count, CUdevice dev)
{
	unsigned int nr = 0, found = 0;
	size_t off, size;
	const char *name;
	CUkernel all[2];
	CUlibrary of;
	CUkernel none;
	int v;

	CU(cuLibraryGetKernelCount, &nr, lib);
	CU(cuLibraryEnumerateKernels, all, 2, lib);
	for (int i = 0; i < 2; i++)
		found += all[i] == count;
	if (nr != 2 || found != 1)
		E2E_FAIL("%u kernels, %u of them right", nr, found);
	CU(cuKernelGetParamInfo, count, 1, &off, &size);
	if (off != 8 || size != 4)
		E2E_FAIL("parameter 1 at %zu, %zu bytes", off, size);
	if (cuKernelGetParamInfo(count, 2, &off, &size)
	    != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("a third parameter");
	CU(cuKernelGetName, &name, count);
	if (strcmp(name, "count"))
		E2E_FAIL("the kernel's name is %s", name);
	CU(cuKernelGetLibrary, &of, count);
	if (of != lib)
		E2E_FAIL("the kernel is of another library");
	CU(cuKernelGetAttribute, &v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
		count, dev);
	if (v < N)
		E2E_FAIL("at most %d threads", v);
	CU(cuKernelSetAttribute,
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, count,
		dev);
	CU(cuKernelGetAttribute, &v,
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, count, dev);
	if (v != 50000)
		E2E_FAIL("dynamic shared memory up to %d", v);
	CU(cuKernelSetCacheConfig, count, CU_FUNC_CACHE_PREFER_L1, dev);
	if (cuLibraryGetKernel(&none, lib, "none") != CUDA_ERROR_NOT_FOUND)
		E2E_FAIL("a kernel that is not there");
}

/* In the current context: as kernel, as function, with its variable. */
static void in_context(CUlibrary lib, CUkernel count, CUkernel clear,
	uint32_t step)
{
	CUdeviceptr p = e2e_alloc(N * 4), var;
	CUfunctionLoadingState state;
	CUfunction f, g;
	CUmodule mod;
	unsigned int nr;
	size_t size;

	CU(cuLibraryGetGlobal, &var, &size, lib, "step");
	if (size != 4)
		E2E_FAIL("the variable has %zu bytes", size);
	CU(cuMemcpyHtoD, var, &step, 4);
	run((CUfunction)clear, p, 0);
	run((CUfunction)count, p, 2);
	CU(cuKernelGetFunction, &f, count);
	CU(cuFuncLoad, f);
	CU(cuFuncIsLoaded, &state, f);
	if (state != CU_FUNCTION_LOADING_STATE_LOADED)
		E2E_FAIL("the function is not loaded");
	run(f, p, 5);
	CU(cuLibraryGetModule, &mod, lib);
	CU(cuModuleGetFunctionCount, &nr, mod);
	CU(cuModuleGetFunction, &g, mod, "count");
	if (nr != 2 || g != f)
		E2E_FAIL("the module has %u functions, or another", nr);
	expect(p, 7 * step, "in a context");
	CU(cuMemFree, p);
}

int main(void)
{
	CUkernel count, clear;
	CUlibrary lib;
	CUcontext other;
	CUdeviceptr p;
	CUdevice dev;

	CU(cuInit, 0);
	CU(cuDeviceGet, &dev, 0);
	CU(cuLibraryLoadData, &lib, ptx, NULL, NULL, 0, NULL, NULL, 0);
	CU(cuLibraryGetKernel, &count, lib, "count");
	CU(cuLibraryGetKernel, &clear, lib, "clear");
	questions(lib, count, dev);
	dev = e2e_open();
	in_context(lib, count, clear, 10);
	CU(cuCtxCreate, &other, NULL, 0, dev);
	in_context(lib, count, clear, 100);
	CU(cuCtxDestroy, other);
	CU(cuCtxSynchronize);
	/* The first context's variable is what it was. */
	p = e2e_alloc(N * 4);
	run((CUfunction)clear, p, 0);
	run((CUfunction)count, p, 1);
	expect(p, 10, "back again");
	CU(cuMemFree, p);
	CU(cuLibraryUnload, lib);
	e2e_close(dev);
	return 0;
}
