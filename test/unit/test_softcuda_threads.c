/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host threads and the software driver: preemption at the entry of calls,
 * default streams of threads, threads as actors of the race detector.
 */
#include "test/unit/softcuda.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

static atomic_uint progress;
static atomic_bool stop;
static CUcontext ctx;

static void setup_preempt(void)
{
	soft_env();
	setenv("SOFTCUDA_PREEMPT", "7,8", 1);
	ctx = soft_open();
}

static void setup(void)
{
	soft_env();
	ctx = soft_open();
}

static void setup_actors(void)
{
	soft_env();
	setenv("SOFTCUDA_RACE", "2", 1);
	ctx = soft_open();
}

static void *make_calls(void *arg)
{
	CUcontext current;

	while (!stop) {
		OK(cuCtxGetCurrent(&current));
		progress++;
	}
	return NULL;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Within one call of this thread the other one makes eight. */
START_TEST(preempted)
{
	unsigned before, most = 0, i;
	CUcontext current;
	pthread_t t;

	pthread_create(&t, NULL, make_calls, NULL);
	/* Until it runs there is no one to wait for. */
	while (progress == 0)
		sched_yield();
	for (i = 0; i < 60; i++) {
		before = progress;
		OK(cuCtxGetCurrent(&current));
		if (progress - before > most)
			most = progress - before;
	}
	stop = true;
	pthread_join(t, NULL);
	ck_assert_uint_ge(most, 7);
}
END_TEST

/* With no one to wait for, nobody waits. */
START_TEST(alone)
{
	double from = seconds();
	CUcontext current;
	int i;

	for (i = 0; i < 400; i++)
		OK(cuCtxGetCurrent(&current));
	ck_assert(seconds() - from < 1);
}
END_TEST

static void *own_stream(void *id)
{
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, id));
	OK(cuStreamSynchronize_ptsz(NULL));
	return NULL;
}

START_TEST(stream_of_thread)
{
	unsigned long long here, again, ptsz, there, legacy;
	pthread_t t;

	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &here));
	OK(cuStreamGetId(CU_STREAM_PER_THREAD, &again));
	OK(cuStreamGetId_ptsz(NULL, &ptsz));
	OK(cuStreamGetId(NULL, &legacy));
	pthread_create(&t, NULL, own_stream, &there);
	pthread_join(t, NULL);
	ck_assert_uint_eq(here, again);
	ck_assert_uint_eq(here, ptsz);
	ck_assert_uint_ne(here, there);
	ck_assert_uint_ne(here, legacy);
}
END_TEST

/* Current contexts belong to threads. */
static void *no_context(void *arg)
{
	CUcontext current;
	CUdeviceptr p;

	OK(cuCtxGetCurrent(&current));
	ck_assert_ptr_null(current);
	IS(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
	return NULL;
}

START_TEST(context_of_thread)
{
	pthread_t t;

	pthread_create(&t, NULL, no_context, NULL);
	pthread_join(t, NULL);
	soft_alloc(1);
}
END_TEST

static void *synchronize(void *stream)
{
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamSynchronize(stream));
	return NULL;
}

/* In this mode what another thread has waited for does not count. */
START_TEST(threads_as_actors)
{
	CUdeviceptr d = soft_alloc(GRAIN);
	CUstream a = soft_stream(), b = soft_stream();
	pthread_t t;

	OK(cuMemsetD8Async(d, 1, GRAIN, a));
	pthread_create(&t, NULL, synchronize, a);
	pthread_join(t, NULL);
	OK(cuMemsetD8Async(d, 2, GRAIN, b));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
	OK(cuMemsetD8Async(d, 1, GRAIN, a));
	OK(cuStreamSynchronize(a));
	OK(cuMemsetD8Async(d, 2, GRAIN, b));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup_preempt, { preempted, alone } },
		{ setup, { stream_of_thread, context_of_thread } },
		{ setup_actors, { threads_as_actors } },
	};

	return soft_run_cases("softcuda_threads", cases,
		sizeof(cases) / sizeof(cases[0]));
}
