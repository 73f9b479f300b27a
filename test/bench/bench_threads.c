/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_threads THREADS [MS]: launches per second of so many threads together,
 * each with a stream and eight allocations of its own, for MS milliseconds.
 * Launches use the first four and the last four in turn.
 * run.sh compares one thread and eight, with Ballast and without, on a null
 * driver whose launch takes some time.  The GPU budget decides whether the
 * allocations are resident or pass through the pool.
 */
#include <pthread.h>

#include "test/bench/bench_util.h"

#define NR_PTRS 8
#define MAX_THREADS 64

struct worker {
	pthread_t thread;
	CUdeviceptr ptr[NR_PTRS];
	CUstream stream;
	uint64_t launches;
};

static struct worker workers[MAX_THREADS];
static CUfunction kernel;
static CUcontext ctx;
static pthread_barrier_t barrier;
static int stop;

static void launch(struct worker *w, uint64_t n)
{
	void *params[NR_PTRS];

	for (unsigned i = 0; i < NR_PTRS; i++)
		params[i] = &w->ptr[n % 2 * 4 + i % 4];
	check(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, w->stream, params,
		NULL), "cuLaunchKernel");
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t n = 0;

	check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	while (n < 16)
		launch(w, n++);
	n = 0;
	pthread_barrier_wait(&barrier);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		launch(w, n++);
	w->launches = n;
	return NULL;
}

static void setup(int threads)
{
	CUdevice device;
	CUmodule module;

	check(cuInit(0), "cuInit");
	check(cuDeviceGet(&device, 0), "cuDeviceGet");
	check(cuDevicePrimaryCtxRetain(&ctx, device), "retain");
	check(cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
	check(cuModuleLoadData(&module, ".version 7.0\n"), "cuModuleLoadData");
	check(cuModuleGetFunction(&kernel, module, "k"), "cuModuleGetFunction");
	for (int t = 0; t < threads; t++) {
		check(cuStreamCreate(&workers[t].stream,
			CU_STREAM_NON_BLOCKING), "cuStreamCreate");
		for (int i = 0; i < NR_PTRS; i++)
			check(cuMemAlloc(&workers[t].ptr[i], 2 << 20),
				"cuMemAlloc");
	}
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	int ms = argc > 2 ? atoi(argv[2]) : 200;
	struct timespec nap = { ms / 1000, ms % 1000 * 1000000L };
	uint64_t sum = 0;

	if (threads < 1 || threads > MAX_THREADS || ms < 1)
		return 2;
	setup(threads);
	pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
	for (int t = 0; t < threads; t++)
		if (pthread_create(&workers[t].thread, NULL, work,
		    &workers[t]) != 0)
			return 1;
	pthread_barrier_wait(&barrier);
	nanosleep(&nap, NULL);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int t = 0; t < threads; t++) {
		pthread_join(workers[t].thread, NULL);
		sum += workers[t].launches;
	}
	printf("%.0f\n", (double)sum * 1000 / ms);
	return 0;
}
