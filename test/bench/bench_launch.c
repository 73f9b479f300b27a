/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one cuLaunchKernel with eight pointers costs, in ns: the least of
 * several batches, since what other processes take is not its cost.  run.sh
 * runs it against the null driver alone, with Ballast switched off, and with
 * Ballast active, and subtracts.  The eight pointers go to eight allocations
 * that fit.
 */
#include "test/bench/bench_util.h"

#define NR_PTRS 8
#define BATCHES 15

static double batch(CUfunction f, CUstream stream, void **params, long calls)
{
	uint64_t begin = now_ns();
	CUresult r = CUDA_SUCCESS;
	long i;

	for (i = 0; i < calls && r == CUDA_SUCCESS; i++)
		r = cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, stream, params,
			NULL);
	check(r, "cuLaunchKernel");
	return (double)(now_ns() - begin) / (double)calls;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? strtol(argv[1], NULL, 10) : 200000;
	CUdeviceptr ptr[NR_PTRS];
	void *params[NR_PTRS];
	double best = 1e30, ns;
	CUdevice device;
	CUcontext ctx;
	CUmodule module;
	CUfunction f;
	CUstream stream;
	int i;

	if (calls < 1)
		return 2;
	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDevicePrimaryCtxRetain(&ctx, device), "retain");
	check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, ".version 7.0\n"), "cuModuleLoadData");
	check(cuModuleGetFunction(&f, module, "k"), "cuModuleGetFunction");
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
		"cuStreamCreate");
	for (i = 0; i < NR_PTRS; i++) {
		check(cuMemAlloc(&ptr[i], 4 << 20), "cuMemAlloc");
		params[i] = &ptr[i];
	}
	batch(f, stream, params, calls);
	for (i = 0; i < BATCHES; i++) {
		ns = batch(f, stream, params, calls);
		if (ns < best)
			best = ns;
	}
	printf("%.2f\n", best);
	return 0;
}
