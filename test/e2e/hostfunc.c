/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions and callbacks between copies and kernels, in stream order;
 * one that waits for another thread which itself uses CUDA; values in memory
 * that one stream writes and another, or the CPU, waits for.
 */
#include "test/e2e/e2e_util.h"

#include <pthread.h>
#include <stdatomic.h>

#define N 4096

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry add(.param .u64 p, .param .u32 v)\n"
	"{\n"
	"	.reg .u32 %i, %n, %t, %v, %x;\n"
	"	.reg .u64 %p, %o;\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u64 %p, [p];\n"
	"	ld.param.u32 %v, [v];\n"
	"	cvta.to.global.u64 %p, %p;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %p, %p, %o;\n"
	"	ld.global.u32 %x, [%p];\n"
	"	add.u32 %x, %x, %v;\n"
	"	st.global.u32 [%p], %x;\n"
	"	ret;\n"
	"}\n";

static CUfunction add;

static void launch(CUdeviceptr p, unsigned int v, CUstream s)
{
	void *args[] = { &p, &v };

	CU(cuLaunchKernel, add, N / 256, 1, 1, 256, 1, 1, 0, s, args, NULL);
}

/* The steps of one stream, each seeing what the one before did. */
struct steps {
	uint32_t *buf;		/* pinned */
	int nr;
	CUresult inside;	/* of a CUDA call made in a callback */
	CUresult status;
};

static void double_it(void *arg)
{
	struct steps *s = arg;

	for (int i = 0; i < N; i++)
		s->buf[i] *= 2;
	s->nr++;
}

static void CUDA_CB note(CUstream stream, CUresult status, void *arg)
{
	struct steps *s = arg;
	size_t free_bytes, total;

	(void)stream;
	s->status = status;
	s->inside = cuMemGetInfo(&free_bytes, &total);
	for (int i = 0; i < N; i++)
		s->buf[i] += 1;
	s->nr++;
}

static void in_order(CUdeviceptr p, CUstream stream)
{
	struct steps s = { 0 };
	uint32_t want = 0;

	CU(cuMemAllocHost, (void **)&s.buf, N * 4);
	memset(s.buf, 0, N * 4);
	CU(cuMemsetD32Async, p, 5, N, stream);
	want = 5;
	for (int i = 0; i < 4; i++) {
		launch(p, 3, stream);
		CU(cuMemcpyDtoHAsync, s.buf, p, N * 4, stream);
		CU(cuLaunchHostFunc, stream, double_it, &s);
		CU(cuStreamAddCallback, stream, note, &s, 0);
		CU(cuMemcpyHtoDAsync, p, s.buf, N * 4, stream);
		want = (want + 3) * 2 + 1;
	}
	CU(cuStreamSynchronize, stream);
	if (s.nr != 8)
		E2E_FAIL("%d of 8 host functions ran", s.nr);
	if (s.status != CUDA_SUCCESS || s.inside == CUDA_SUCCESS)
		E2E_FAIL("a callback saw status %d, a call in it gave %d",
			s.status, s.inside);
	CU(cuMemcpyDtoH, s.buf, p, N * 4);
	for (int i = 0; i < N; i++)
		if (s.buf[i] != want)
			E2E_FAIL("[%d] is %u, not %u", i, s.buf[i], want);
	printf("in order: %u\n", want);
	CU(cuMemFreeHost, s.buf);
}

/* ---- a host function that waits for a thread that uses CUDA -------------------- */

static atomic_int gate;
static CUdeviceptr other;

static void wait_for_gate(void *arg)
{
	(void)arg;
	while (!atomic_load(&gate))
		;
}

static void *open_gate(void *arg)
{
	CUstream s;

	CU(cuCtxSetCurrent, arg);
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	CU(cuMemsetD32Async, other, 70, N, s);
	launch(other, 7, s);
	CU(cuStreamSynchronize, s);
	CU(cuStreamDestroy, s);
	atomic_store(&gate, 1);
	return NULL;
}

static void waits_for_thread(CUdeviceptr p, CUstream stream)
{
	static uint32_t got[N];
	pthread_t t;
	CUcontext ctx;

	CU(cuCtxGetCurrent, &ctx);
	other = e2e_alloc(N * 4);
	CU(cuLaunchHostFunc, stream, wait_for_gate, NULL);
	CU(cuMemsetD32Async, p, 1, N, stream);
	if (cuStreamQuery(stream) != CUDA_ERROR_NOT_READY)
		E2E_FAIL("the stream did not wait for its host function");
	if (pthread_create(&t, NULL, open_gate, ctx))
		E2E_FAIL("no thread");
	CU(cuStreamSynchronize, stream);
	pthread_join(t, NULL);
	CU(cuMemcpyDtoH, got, other, N * 4);
	for (int i = 0; i < N; i++)
		if (got[i] != 77)
			E2E_FAIL("the other thread's [%d] is %u", i, got[i]);
	CU(cuMemFree, other);
	printf("gate opened\n");
}

/* ---- values --------------------------------------------------------------------- */

static void values(CUdeviceptr p, CUstream a, CUstream b)
{
	static uint32_t got[N];
	volatile uint64_t *flag;
	CUdeviceptr sem = e2e_alloc(16), host;
	CUdevice dev;
	int can = 0;

	CU(cuCtxGetDevice, &dev);
	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, dev);
	if (!can) {
		CU(cuMemFree, sem);
		return;
	}
	CU(cuMemsetD32, sem, 0, 4);
	CU(cuCtxSynchronize);
	/* b waits for a, although it was given its work first. */
	CU(cuStreamWaitValue32, b, sem, 3, CU_STREAM_WAIT_VALUE_GEQ);
	launch(p, 100, b);
	CU(cuMemsetD32Async, p, 11, N, a);
	launch(p, 1, a);
	CU(cuStreamWriteValue32, a, sem, 3, CU_STREAM_WRITE_VALUE_DEFAULT);
	CU(cuStreamSynchronize, b);
	CU(cuMemcpyDtoH, got, p, N * 4);
	for (int i = 0; i < N; i++)
		if (got[i] != 112)
			E2E_FAIL("behind the value: [%d] is %u", i, got[i]);
	/* The CPU gives the word. */
	CU(cuMemHostAlloc, (void **)&flag, 16, CU_MEMHOSTALLOC_DEVICEMAP);
	*flag = 1;
	CU(cuMemHostGetDevicePointer, &host, (void *)flag, 0);
	CU(cuStreamWaitValue64, a, host, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ);
	CU(cuStreamWriteValue64, a, host + 8, 9,
		CU_STREAM_WRITE_VALUE_DEFAULT);
	if (cuStreamQuery(a) != CUDA_ERROR_NOT_READY || flag[1] == 9)
		E2E_FAIL("the stream did not wait for the CPU");
	*flag = 1ull << 40;
	CU(cuStreamSynchronize, a);
	if (flag[1] != 9)
		E2E_FAIL("the stream wrote %llu", (unsigned long long)flag[1]);
	CU(cuMemFreeHost, (void *)flag);
	CU(cuMemFree, sem);
}

int main(void)
{
	CUdeviceptr p;
	CUstream a, b;
	CUmodule mod;
	CUdevice dev = e2e_open();

	mod = e2e_module(ptx);
	add = e2e_kernel(mod, "add");
	p = e2e_alloc(N * 4);
	CU(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
	CU(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
	in_order(p, a);
	waits_for_thread(p, a);
	values(p, a, b);
	CU(cuStreamDestroy, a);
	CU(cuStreamDestroy, b);
	CU(cuMemFree, p);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("done\n");
	return 0;
}
