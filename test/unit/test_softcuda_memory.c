/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain and pinned memory, pointers, contexts, streams and failure injection
 * of the software driver: accounting, and the codes of wrong calls.
 */
#include "test/unit/softcuda.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void setup(void)
{
	soft_env();
	soft_open();
}

static void setup_context(void)
{
	soft_env();
	setenv("SOFTCUDA_CONTEXT", "1M", 1);
	soft_open();
}

static void setup_fail(void)
{
	soft_env();
	setenv("SOFTCUDA_FAIL_CALL", "cuMemAlloc_v2:3:719", 1);
	soft_open();
}

static void setup_fail_nth(void)
{
	soft_env();
	/* Two calls of soft_open may fail before. */
	setenv("SOFTCUDA_FAIL_NTH", "4", 1);
	soft_open();
}

static void setup_flip(void)
{
	soft_env();
	setenv("SOFTCUDA_FLIP_H2D", "2", 1);
	soft_open();
}

static void setup_two_devices(void)
{
	soft_env();
	setenv("SOFTCUDA_DEVICES", "2", 1);
	soft_open();
}

static size_t free_bytes(void)
{
	size_t n;

	OK(cuMemGetInfo_v2(&n, NULL));
	return n;
}

START_TEST(small_and_large)
{
	size_t before = free_bytes();
	CUdeviceptr a = soft_alloc(1), b = soft_alloc(513), c, base;
	size_t size;

	ck_assert_uint_eq(a % 512, 0);
	ck_assert_uint_eq(b % 512, 0);
	ck_assert_uint_ge(b, a + 512);
	/* Both share one granule. */
	ck_assert_uint_eq(before - free_bytes(), GRAIN);
	c = soft_alloc(GRAIN + 1);
	ck_assert_uint_eq(before - free_bytes(), 3 * GRAIN);
	OK(cuMemGetAddressRange_v2(&base, &size, b + 100));
	ck_assert_uint_eq(base, b);
	ck_assert_uint_eq(size, 513);
	OK(cuMemGetAddressRange_v2(&base, &size, c + GRAIN));
	ck_assert_uint_eq(base, c);
	ck_assert_uint_eq(size, GRAIN + 1);
	IS(cuMemGetAddressRange_v2(&base, &size, 0x1234), CUDA_ERROR_NOT_FOUND);
	OK(cuMemFree_v2(a));
	OK(cuMemFree_v2(b));
	OK(cuMemFree_v2(c));
	ck_assert_uint_eq(free_bytes(), before);
	IS(cuMemFree_v2(c), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(0));
}
END_TEST

/* Until it is full, and all of it again after freeing. */
START_TEST(exhaustion)
{
	CUdeviceptr p[300], last = 1;
	int round, n = 0, i;

	for (round = 0; round < 2; round++) {
		for (n = 0; n < 300; n++)
			if (cuMemAlloc_v2(&p[n], GRAIN) != CUDA_SUCCESS)
				break;
		ck_assert_int_eq(n, 256);
		IS(cuMemAlloc_v2(&last, 1), CUDA_ERROR_OUT_OF_MEMORY);
		ck_assert_uint_eq(last, 1);
		for (i = 0; i < n; i++)
			OK(cuMemFree_v2(p[i]));
	}
	IS(cuMemAlloc_v2(&last, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemAlloc_v2(&last, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAlloc_v2(NULL, 5), CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(free_bytes(), 16 << 20);
}
END_TEST

START_TEST(slab_reuse)
{
	CUdeviceptr p[400];
	int i;

	for (i = 0; i < 400; i++)
		p[i] = soft_alloc(1000 + (size_t)i);
	for (i = 0; i < 400; i += 2)
		OK(cuMemFree_v2(p[i]));
	IS(cuMemFree_v2(p[1] + 512), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemFree_v2(p[0]), CUDA_ERROR_INVALID_VALUE);
	for (i = 0; i < 400; i += 2)
		p[i] = soft_alloc(1000);
	for (i = 0; i < 400; i++)
		OK(cuMemFree_v2(p[i]));
	ck_assert_uint_eq(free_bytes(), 16 << 20);
}
END_TEST

START_TEST(context_bytes)
{
	CUcontext c;
	size_t before = free_bytes();

	ck_assert_uint_eq(before, (16 << 20) - (1 << 20));
	OK(cuCtxCreate_v2(&c, 0, 0));
	ck_assert_uint_eq(free_bytes(), before - (1 << 20));
	OK(cuCtxDestroy_v2(c));
	ck_assert_uint_eq(free_bytes(), before);
}
END_TEST

START_TEST(registration)
{
	unsigned char *p = mmap(NULL, 8 * GRAIN, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr d = soft_alloc(2 * GRAIN), alias;
	CUstream s = soft_stream();

	OK(cuMemHostRegister_v2(p, GRAIN, 0));
	OK(cuMemHostRegister_v2(p + GRAIN, GRAIN, 0));
	IS(cuMemHostRegister_v2(p + GRAIN - 1, 2, 0),
		CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	IS(cuMemHostRegister_v2(p, 0, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemHostRegister_v2((void *)8, 4096, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostGetDevicePointer_v2(&alias, p + 5, 0));
	/* A copy lies within one range, or outside all. */
	IS(cuMemcpyHtoD_v2(d, p, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemcpyHtoD_v2(d, p + 2 * GRAIN - 8, 16), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyHtoD_v2(d, p + GRAIN, GRAIN));
	OK(cuMemcpyHtoD_v2(d, p + 2 * GRAIN, GRAIN));
	IS(cuMemHostUnregister(p + GRAIN + 4),
		CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	OK(cuMemHostUnregister(p + GRAIN));
	soft_expect_silence();
	/* The device loses its mapping under a copy in flight. */
	OK(cuMemcpyHtoDAsync_v2(d, p, GRAIN, s));
	OK(cuMemHostUnregister(p));
	soft_expect_report("unregister");
	IS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	soft_expect_report("access");
}
END_TEST

START_TEST(pinned)
{
	void *p = soft_pinned(1000), *q;
	unsigned flags;

	OK(cuMemHostAlloc(&q, 1000, CU_MEMHOSTALLOC_WRITECOMBINED));
	OK(cuMemHostGetFlags(&flags, q));
	ck_assert_uint_eq(flags, CU_MEMHOSTALLOC_WRITECOMBINED);
	IS(cuMemHostAlloc(&q, 1000, 64), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemFreeHost((char *)p + 1), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	OK(cuMemFreeHost(p));
	IS(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(q));
}
END_TEST

START_TEST(pointers)
{
	CUdeviceptr p = soft_alloc(700), start;
	void *pin = soft_pinned(100), *host;
	CUmemorytype type;
	CUcontext ctx, want;
	uint64_t a, b;
	int ordinal = -1;
	bool managed = true;
	CUpointer_attribute names[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR };
	void *out[] = { &type, &start };

	OK(cuCtxGetCurrent(&want));
	OK(cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p + 1));
	ck_assert_ptr_eq(ctx, want);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	ck_assert_int_eq(type, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		p));
	ck_assert_int_eq(ordinal, 0);
	OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
	ck_assert(!managed);
	OK(cuPointerGetAttribute(&a, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	OK(cuPointerGetAttribute(&b, CU_POINTER_ATTRIBUTE_BUFFER_ID,
		soft_alloc(700)));
	ck_assert_uint_ne(a, b);
	IS(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, p),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER,
		(uintptr_t)pin + 9));
	ck_assert_ptr_eq(host, (char *)pin + 9);
	IS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		(uintptr_t)&type), CUDA_ERROR_INVALID_VALUE);
	/* The plural form answers zeros instead. */
	OK(cuPointerGetAttributes(2, names, out, (uintptr_t)&type));
	ck_assert_int_eq(type, 0);
	OK(cuPointerGetAttributes(2, names, out, p + 600));
	ck_assert_uint_eq(start, p);
}
END_TEST

START_TEST(dead_handles)
{
	CUstream s = soft_stream();
	CUevent e = soft_event();
	CUmodule m = (CUmodule)e;
	CUfunction f;

	OK(cuStreamDestroy_v2(s));
	OK(cuEventDestroy_v2(e));
	IS(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
	IS(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventRecord(e, NULL), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
	IS(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
	IS(cuModuleGetFunction(&f, m, "x"), CUDA_ERROR_INVALID_HANDLE);
	IS(cuLaunchKernel((CUfunction)e, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	IS(cuCtxSetCurrent((CUcontext)e), CUDA_ERROR_INVALID_CONTEXT);
	IS(cuStreamCreate(&s, 4), CUDA_ERROR_INVALID_VALUE);
	IS(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(named_failure)
{
	CUdeviceptr p = soft_alloc(1), q;

	q = soft_alloc(1);
	IS(cuMemAlloc_v2(&p, 1), 719);
	OK(cuMemFree_v2(q));
	soft_alloc(1);
}
END_TEST

START_TEST(nth_failure)
{
	CUdeviceptr p = soft_alloc(1);

	OK(cuMemFree_v2(p));		/* frees do not count */
	IS(cuMemAlloc_v2(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
	soft_alloc(1);
}
END_TEST

START_TEST(next_failure)
{
	CUdeviceptr p;

	softcuda_fail_next("cuMemAlloc_v2", 1, CUDA_ERROR_LAUNCH_FAILED);
	soft_alloc(1);
	OK(cuCtxSynchronize());
	IS(cuMemAlloc_v2(&p, 1), CUDA_ERROR_LAUNCH_FAILED);
	soft_alloc(1);
}
END_TEST

START_TEST(flipped_bit)
{
	size_t i, size = 1 << 16, wrong = 0;
	unsigned char *pin = soft_pinned(size), *out = malloc(size);
	CUdeviceptr d = soft_alloc(size);
	int round;

	for (round = 0; round < 3; round++) {
		memset(pin, 9, size);
		OK(cuMemcpyHtoD_v2(d, pin, 100));	/* too short */
		OK(cuMemcpyHtoD_v2(d, pin, size));
		OK(cuMemcpyDtoH_v2(out, d, size));
		for (i = 0, wrong = 0; i < size; i++)
			wrong += out[i] != 9;
		ck_assert_uint_eq(wrong, round == 1);
	}
	free(out);
}
END_TEST

/* Codes that a child reports by its exit status. */
START_TEST(forked)
{
	CUdeviceptr p = soft_alloc(64);
	int status;
	pid_t pid = fork();

	if (!pid) {
		status = cuMemFree_v2(p) == CUDA_ERROR_NOT_INITIALIZED
			&& cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
			&& cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED;
		_exit(status ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	OK(cuMemFree_v2(p));
}
END_TEST

START_TEST(two_devices)
{
	CUcontext here, there;
	CUdeviceptr a = soft_alloc(GRAIN), b;
	unsigned char out = 0;
	int can;

	OK(cuCtxGetCurrent(&here));
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	ck_assert_int_eq(can, 1);
	OK(cuDevicePrimaryCtxRetain(&there, 1));
	OK(cuCtxPushCurrent_v2(there));
	b = soft_alloc(GRAIN);
	OK(cuMemsetD8_v2(b, 8, GRAIN));
	OK(cuMemcpyPeer(a, here, b, there, GRAIN));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(&out, a + GRAIN - 1, 1));
	ck_assert_int_eq(out, 8);
	IS(cuCtxEnablePeerAccess(there, 0), CUDA_ERROR_INVALID_DEVICE);
	OK(cuCtxEnablePeerAccess(here, 0));
	IS(cuCtxEnablePeerAccess(here, 0),
		CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	OK(cuCtxDisablePeerAccess(here));
	IS(cuCtxDisablePeerAccess(here), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	soft_expect_silence();
}
END_TEST

START_TEST(free_that_does_not_wait)
{
	CUstream s = soft_stream();
	CUdeviceptr p = soft_alloc(4 * GRAIN), q = soft_alloc(100), base;
	void *from = soft_pinned(4 * GRAIN);
	size_t before, after, total, size;
	uint64_t now;

	OK(cuMemcpyHtoDAsync_v2(p, from, 4 * GRAIN, s));
	OK(cuMemcpyHtoDAsync_v2(q, from, 100, s));
	OK(cuMemGetInfo_v2(&before, &total));
	now = softcuda_now_ns();
	OK(cuMemFree_v2(p));
	OK(cuMemFree_v2(q));
	ck_assert_uint_eq(softcuda_now_ns(), now);
	IS(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemGetAddressRange_v2(&base, &size, p), CUDA_ERROR_NOT_FOUND);
	IS(cuMemGetAddressRange_v2(&base, &size, q), CUDA_ERROR_NOT_FOUND);
	IS(cuMemsetD8_v2(p, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemGetInfo_v2(&after, &total));
	ck_assert_uint_eq(before, after);
	OK(cuStreamSynchronize(s));
	OK(cuMemGetInfo_v2(&after, &total));
	ck_assert_uint_eq(after - before, 5 * GRAIN);
	soft_expect_silence();
}
END_TEST

/* An allocation waits for memory that is about to come back. */
START_TEST(late_free_makes_room)
{
	CUstream s = soft_stream();
	CUdeviceptr p = soft_alloc(12 << 20);

	OK(cuMemsetD8Async(p, 1, 12 << 20, s));
	OK(cuMemFree_v2(p));
	p = soft_alloc(14 << 20);
	OK(cuMemFree_v2(p));
	soft_expect_silence();
}
END_TEST

/* Two layers of two rows of four bytes, below a row that is left out. */
static CUDA_MEMCPY3D two_layers(CUdeviceptr p, unsigned char *host)
{
	return (CUDA_MEMCPY3D) {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host,
		.srcPitch = 4, .srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p,
		.dstPitch = 4, .dstHeight = 2,
		.WidthInBytes = 4, .Height = 2, .Depth = 2,
	};
}

START_TEST(layers_say_their_rows)
{
	unsigned char host[24] = { 0 };
	CUDA_MEMCPY3D c = two_layers(soft_alloc(16), host);

	IS(cuMemcpy3D_v2(&c), CUDA_ERROR_INVALID_VALUE);
	c.srcHeight = 3;
	OK(cuMemcpy3D_v2(&c));
	c.dstHeight = 0;
	IS(cuMemcpy3D_v2(&c), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static void setup_layer_rows(void)
{
	soft_env();
	setenv("SOFTCUDA_LAYER_ROWS", "1", 1);
	soft_open();
}

START_TEST(layers_need_not_say_rows)
{
	unsigned char host[24], got[16];
	CUdeviceptr p = soft_alloc(16);
	CUDA_MEMCPY3D c = two_layers(p, host);

	for (int i = 0; i < 24; i++)
		host[i] = (unsigned char)i;
	OK(cuMemcpy3D_v2(&c));
	OK(cuMemcpyDtoH_v2(got, p, 16));
	for (int i = 0; i < 16; i++)
		ck_assert_uint_eq(got[i], i < 8 ? 4 + i : 8 + i);
}
END_TEST

static void setup_free_does_not_wait(void)
{
	soft_env();
	setenv("SOFTCUDA_FREE_WAITS", "0", 1);
	soft_open();
}

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { small_and_large, exhaustion, slab_reuse,
			registration, pinned, pointers, dead_handles,
			next_failure, forked, layers_say_their_rows } },
		{ setup_layer_rows, { layers_need_not_say_rows } },
		{ setup_context, { context_bytes } },
		{ setup_fail, { named_failure } },
		{ setup_fail_nth, { nth_failure } },
		{ setup_flip, { flipped_bit } },
		{ setup_two_devices, { two_devices } },
		{ setup_free_does_not_wait, { free_that_does_not_wait,
			late_free_makes_room } },
	};

	return soft_run_cases("softcuda_memory", cases,
		sizeof(cases) / sizeof(cases[0]));
}
