/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Occupancy: the answers agree with each other and with what the device says
 * of itself; a cooperative launch runs when its grid fits and is refused when
 * it does not; limits, priorities and attributes are kept.
 */
#include "test/e2e/e2e_util.h"

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".extern .shared .align 4 .b8 dyn[];\n"
	".visible .entry work(.param .u64 p)\n"
	"{\n"
	"	.reg .u32 %i, %n, %t, %s;\n"
	"	.reg .u64 %p, %o;\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u64 %p, [p];\n"
	"	cvta.to.global.u64 %p, %p;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %p, %p, %o;\n"
	"	shl.b32 %s, %t, 2;\n"
	"	mov.u32 %n, dyn;\n"
	"	add.u32 %s, %s, %n;\n"
	"	st.shared.u32 [%s], %i;\n"
	"	bar.sync 0;\n"
	"	ld.shared.u32 %i, [%s];\n"
	"	st.global.u32 [%p], %i;\n"
	"	ret;\n"
	"}\n";

static size_t CUDA_CB four_bytes(int threads)
{
	return 4 * (size_t)threads;
}

static int attribute(CUdevice_attribute a, CUdevice dev)
{
	int v;

	CU(cuDeviceGetAttribute, &v, a, dev);
	return v;
}

static void answers(CUfunction f, CUdevice dev)
{
	int sm = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
		dev);
	int last = 1 << 30, n, m, grid, block;
	size_t shared;

	for (int threads = 32; threads <= 1024; threads += 32) {
		CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, f, threads,
			0);
		if (n < 1 || n * threads > sm || n > last)
			E2E_FAIL("%d blocks of %d threads", n, threads);
		last = n;
		CU(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &m, f,
			threads, 0, CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
		if (m != n)
			E2E_FAIL("%d blocks, with flags %d", n, m);
	}
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, f, 256, 40000);
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, &m, f, 256, 1000);
	if (n > m)
		E2E_FAIL("more blocks with more shared memory");
	CU(cuOccupancyAvailableDynamicSMemPerBlock, &shared, f, m, 256);
	if (shared < 1000)
		E2E_FAIL("%zu bytes for %d blocks", shared, m);
	CU(cuOccupancyMaxPotentialBlockSize, &grid, &block, f, four_bytes, 0,
		0);
	if (block < 32 || block > 1024 || grid < attribute(
	    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev))
		E2E_FAIL("a grid of %d blocks of %d", grid, block);
	CU(cuOccupancyMaxPotentialBlockSize, &grid, &block, f, NULL, 0, 100);
	if (block > 100)
		E2E_FAIL("%d threads where 100 were allowed", block);
}

static void cooperative(CUfunction f, CUdevice dev)
{
	int sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, dev);
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
		.value.cooperative = 1 };
	CUlaunchConfig config = { 4, 1, 1, 256, 1, 1, 1024, NULL, &attr, 1 };
	CUdeviceptr p;
	uint32_t got[1024];
	void *args[] = { &p };
	unsigned int many;
	CUresult r;
	int n;

	if (!attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, dev))
		return;
	p = e2e_alloc(sizeof(got));
	for (int ex = 0; ex < 2; ex++) {
		CU(cuMemsetD8, p, 0, sizeof(got));
		if (ex)
			CU(cuLaunchKernelEx, &config, f, args, NULL);
		else
			CU(cuLaunchCooperativeKernel, f, 4, 1, 1, 256, 1, 1,
				1024, NULL, args);
		CU(cuMemcpyDtoH, got, p, sizeof(got));
		for (uint32_t i = 0; i < 1024; i++)
			if (got[i] != i)
				E2E_FAIL("[%u] is %u", i, got[i]);
	}
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, f, 256, 1024);
	many = (unsigned int)(n * sms) + 1;
	r = cuLaunchCooperativeKernel(f, many, 1, 1, 256, 1, 1, 1024, NULL,
		args);
	if (r != CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
		E2E_FAIL("%u blocks at once: %s", many, e2e_error_name(r));
	CU(cuMemFree, p);
}

static void state(void)
{
	int least, greatest, p;
	size_t stack;
	CUstream a, b;
	CUstreamAttrValue v = { .priority = 0 };

	CU(cuCtxGetStreamPriorityRange, &least, &greatest);
	CU(cuStreamCreateWithPriority, &a, CU_STREAM_NON_BLOCKING, greatest);
	CU(cuStreamCreate, &b, CU_STREAM_DEFAULT);
	CU(cuStreamGetPriority, a, &p);
	if (p != greatest)
		E2E_FAIL("priority %d, not %d", p, greatest);
	CU(cuStreamCopyAttributes, b, a);
	CU(cuStreamGetAttribute, b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);
	if (v.priority != greatest)
		E2E_FAIL("copied priority %d", v.priority);
	CU(cuStreamDestroy, a);
	CU(cuStreamDestroy, b);
	CU(cuCtxSetLimit, CU_LIMIT_STACK_SIZE, 4096);
	CU(cuCtxGetLimit, &stack, CU_LIMIT_STACK_SIZE);
	if (stack < 4096)
		E2E_FAIL("a stack of %zu", stack);
}

int main(void)
{
	CUdevice dev = e2e_open();
	CUmodule mod = e2e_module(ptx);
	CUfunction f = e2e_kernel(mod, "work");

	answers(f, dev);
	cooperative(f, dev);
	state();
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("agreed\n");
	return 0;
}
