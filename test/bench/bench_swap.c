/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one cuLaunchKernel costs whose eight pointers are streamed by a plan, in
 * ns, with all that a plan does in an iteration shared among its launches: the
 * least of several batches.  run.sh runs it against the null driver alone and
 * with Ballast, and subtracts.  Four layers of eight tensors in turn.
 */
#include "test/bench/bench_util.h"

#define NR_LAYERS 4
#define NR_PTRS 8
#define SIZE (2u << 20)
#define LAUNCHES 1000		/* of a layer */
#define WARM_UP 16
#define BATCHES 15
#define ITERATIONS 10		/* of a batch */

static CUfunction function;
static CUstream stream;
static CUdeviceptr ptr[NR_LAYERS][NR_PTRS];

static void iteration(void)
{
	void *params[NR_PTRS];
	CUresult r = CUDA_SUCCESS;

	for (int l = 0; l < NR_LAYERS; l++) {
		for (int i = 0; i < NR_PTRS; i++)
			params[i] = &ptr[l][i];
		for (int n = 0; n < LAUNCHES && r == CUDA_SUCCESS; n++)
			r = cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0,
				stream, params, NULL);
	}
	check(r, "cuLaunchKernel");
}

static void set_up(void)
{
	char *bytes = calloc(1, SIZE);
	CUdevice device;
	CUcontext ctx;
	CUmodule module;

	if (bytes == NULL)
		exit(1);
	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDevicePrimaryCtxRetain(&ctx, device), "retain");
	check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, ".version 7.0\n"), "cuModuleLoadData");
	check(cuModuleGetFunction(&function, module, "k"),
		"cuModuleGetFunction");
	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING),
		"cuStreamCreate");
	for (int l = 0; l < NR_LAYERS; l++)
		for (int i = 0; i < NR_PTRS; i++) {
			check(cuMemAlloc(&ptr[l][i], SIZE), "cuMemAlloc");
			check(cuMemcpyHtoD(ptr[l][i], bytes, SIZE),
				"cuMemcpyHtoD");
		}
	free(bytes);
}

int main(void)
{
	double best = 1e30;

	set_up();
	for (int i = 0; i < WARM_UP; i++)
		iteration();
	for (int b = 0; b < BATCHES; b++) {
		uint64_t begin = now_ns();
		double ns;

		for (int i = 0; i < ITERATIONS; i++)
			iteration();
		ns = (double)(now_ns() - begin) /
			(ITERATIONS * NR_LAYERS * LAUNCHES);
		if (ns < best)
			best = ns;
	}
	printf("%.2f\n", best);
	return 0;
}
