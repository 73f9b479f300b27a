/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation: what may be given out again and when, what is
 * reported, what comes back to the device.
 */
#include "test/unit/softcuda.h"

static void *buf;

static void setup(void)
{
	soft_env();
	soft_open();
	buf = soft_pinned(GRAIN);
}

static CUdeviceptr get(size_t size, CUstream s)
{
	CUdeviceptr p;

	OK(cuMemAllocAsync(&p, size, s));
	return p;
}

START_TEST(same_stream_reuses_at_once)
{
	CUstream s = soft_stream();
	CUdeviceptr p = get(1000, s), q;

	OK(cuMemcpyHtoDAsync_v2(p, buf, 1000, s));
	OK(cuMemFreeAsync(p, s));
	q = get(900, s);
	ck_assert_uint_eq(p, q);
	OK(cuMemcpyHtoDAsync_v2(q, buf, 900, s));
	OK(cuMemFreeAsync(q, s));
	OK(cuStreamSynchronize(s));
	soft_expect_silence();
}
END_TEST

START_TEST(other_stream_gets_other_memory)
{
	CUstream a = soft_stream(), b = soft_stream();
	CUdeviceptr p = get(1000, a), q;

	OK(cuMemcpyHtoDAsync_v2(p, buf, 1000, a));
	OK(cuMemFreeAsync(p, a));
	q = get(1000, b);
	ck_assert_uint_ne(p, q);
	OK(cuStreamSynchronize(a));
	OK(cuMemFreeAsync(q, b));
	OK(cuStreamSynchronize(b));
	soft_expect_silence();
}
END_TEST

START_TEST(use_before_the_allocation)
{
	CUstream a = soft_stream(), b = soft_stream();
	CUdeviceptr busy = soft_alloc(GRAIN), p;

	/* The allocation's place in its stream is behind this copy. */
	OK(cuMemcpyHtoDAsync_v2(busy, buf, GRAIN, a));
	p = get(1000, a);
	OK(cuMemcpyHtoDAsync_v2(p, buf, 1000, b));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

START_TEST(use_behind_the_free)
{
	CUstream a = soft_stream(), b = soft_stream();
	CUdeviceptr p = get(1000, a);
	char text[512];

	OK(cuStreamSynchronize(a));
	OK(cuMemcpyHtoDAsync_v2(p, buf, 1000, b));
	OK(cuMemFreeAsync(p, a));
	OK(cuCtxSynchronize());
	/* The bytes are in no allocation any more, nor in any order. */
	ck_assert_uint_eq(softcuda_nr_reports(), 2);
	softcuda_last_report(text, sizeof(text));
	ck_assert_msg(strstr(text, "REPORT race:") != NULL, "%s", text);
}
END_TEST

START_TEST(use_behind_the_free_in_order)
{
	CUstream a = soft_stream();
	CUdeviceptr p = get(1000, a);

	OK(cuMemFreeAsync(p, a));
	IS(cuMemcpyHtoDAsync_v2(p, buf, 1000, a), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemFreeAsync(p, a), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(plain_memory_is_not_freed_so)
{
	IS(cuMemFreeAsync(soft_alloc(100), NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(0, NULL));
}
END_TEST

START_TEST(comes_back_at_synchronisation)
{
	size_t before, during, after, total;
	CUstream s = soft_stream();
	CUdeviceptr p;

	OK(cuMemGetInfo_v2(&before, &total));
	p = get(4 * GRAIN, s);
	OK(cuMemFreeAsync(p, s));
	OK(cuMemGetInfo_v2(&during, &total));
	ck_assert_uint_eq(before - during, 4 * GRAIN);
	OK(cuStreamSynchronize(s));
	OK(cuMemGetInfo_v2(&after, &total));
	ck_assert_uint_eq(before, after);
}
END_TEST

START_TEST(full_device)
{
	CUstream a = soft_stream(), b = soft_stream();
	CUdeviceptr p = get(10 << 20, a), q;

	OK(cuMemFreeAsync(p, a));
	/* Only what stream a has freed is large enough: b waits for it. */
	q = get(9 << 20, b);
	OK(cuMemsetD8Async(q, 1, 9 << 20, b));
	IS(cuMemAllocAsync(&p, 10 << 20, a), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(q, b));
	p = get(14 << 20, a);
	OK(cuMemFreeAsync(p, a));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(questions)
{
	CUdeviceptr p = get(1000, NULL), base;
	CUmemoryPool pool, want;
	size_t size;
	int ipc = 1;

	OK(cuMemGetAddressRange_v2(&base, &size, p + 999));
	ck_assert_uint_eq(base, p);
	ck_assert_uint_eq(size, 1000);
	OK(cuDeviceGetDefaultMemPool(&want, 0));
	OK(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
		p));
	ck_assert_ptr_eq(pool, want);
	OK(cuPointerGetAttribute(&ipc,
		CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p));
	ck_assert_int_eq(ipc & 0xff, 0);
	IS(cuMemPoolDestroy(want), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static CUcontext context_of(CUdeviceptr p)
{
	CUcontext c;

	OK(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	return c;
}

START_TEST(belongs_to_no_context)
{
	ck_assert_ptr_null(context_of(get(1000, NULL)));
}
END_TEST

static void setup_context(void)
{
	soft_env();
	setenv("SOFTCUDA_POOL_CONTEXT", "1", 1);
	soft_open();
}

START_TEST(belongs_to_its_context)
{
	CUdeviceptr p = get(1000, NULL), q;
	CUcontext first, second;

	OK(cuCtxGetCurrent(&first));
	OK(cuCtxCreate_v2(&second, 0, 0));
	q = get(1000, NULL);
	ck_assert_ptr_eq(context_of(p), first);
	ck_assert_ptr_eq(context_of(q), second);
	OK(cuCtxDestroy_v2(second));
	ck_assert_ptr_eq(context_of(p), first);
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { same_stream_reuses_at_once,
			other_stream_gets_other_memory,
			use_before_the_allocation, use_behind_the_free,
			use_behind_the_free_in_order,
			plain_memory_is_not_freed_so,
			comes_back_at_synchronisation, full_device,
			questions, belongs_to_no_context } },
		{ setup_context, { belongs_to_its_context } },
	};

	return soft_run_cases("pool", cases, sizeof(cases) / sizeof(cases[0]));
}
