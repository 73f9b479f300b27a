/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders that streams and events promise: a producer and a consumer joined by
 * an event, the legacy stream between blocking ones, a non-blocking stream
 * that only events tie.  Every step appends to a history that is checked.
 */
#include "test/e2e/e2e_util.h"

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
/* x[i] = x[i] * 3 + value, for all i < n: the order of steps shows. */
	".visible .entry step(.param .u64 x, .param .u32 n, .param .u32 value)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %t, %v;\n"
	"	.reg .u64 %x, %o;\n"
	"\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u32 %n, [n];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %x, [x];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %x, %x, %o;\n"
	"	ld.param.u32 %v, [value];\n"
	"	ld.global.u32 %t, [%x];\n"
	"	mad.lo.u32 %t, %t, 3, %v;\n"
	"	st.global.u32 [%x], %t;\n"
	"	ret;\n"
	"}\n";

enum { WORDS = 1 << 16, SIZE = WORDS * 4 };

static CUfunction step;
static CUdeviceptr x;
static uint32_t history;	/* what every word must be */

static void run_step(CUstream s, uint32_t value)
{
	unsigned int n = WORDS;
	void *args[] = { &x, &n, &value };

	CU(cuLaunchKernel, step, WORDS / 256, 1, 1, 256, 1, 1, 0, s, args,
		NULL);
	history = history * 3 + value;
}

static void check(const char *what)
{
	static uint32_t back[WORDS];

	CU(cuCtxSynchronize);
	CU(cuMemcpyDtoH, back, x, SIZE);
	for (size_t i = 0; i < WORDS; i++)
		if (back[i] != history)
			E2E_FAIL("%s: word %zu is %u, not %u", what, i,
				back[i], history);
}

/* Two streams hand the buffer to each other. */
static void ping_pong(CUstream a, CUstream b)
{
	CUevent done[2];

	CU(cuEventCreate, &done[0], CU_EVENT_DISABLE_TIMING);
	CU(cuEventCreate, &done[1], CU_EVENT_DISABLE_TIMING);
	for (uint32_t i = 0; i < 10; i++) {
		run_step(a, i);
		CU(cuEventRecord, done[0], a);
		CU(cuStreamWaitEvent, b, done[0], 0);
		run_step(b, 100 + i);
		CU(cuEventRecord, done[1], b);
		CU(cuStreamWaitEvent, a, done[1], 0);
	}
	check("ping pong");
	CU(cuEventDestroy, done[0]);
	CU(cuEventDestroy, done[1]);
}

/* The legacy stream waits for blocking streams and they for it. */
static void legacy(CUstream a, CUstream b)
{
	for (uint32_t i = 0; i < 10; i++) {
		run_step(a, i);
		run_step(NULL, 200 + i);
		run_step(b, 300 + i);
		run_step(CU_STREAM_LEGACY, 400 + i);
		run_step(CU_STREAM_PER_THREAD, 500 + i);
		CU(cuMemsetD32Async, x + SIZE - 4, history, 1, NULL);
	}
	check("legacy");
}

/* Wait binds to the record before it, not to one after it. */
static void wait_is_early(CUstream a, CUstream b)
{
	CUevent e, never;

	CU(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
	CU(cuEventCreate, &never, CU_EVENT_DISABLE_TIMING);
	CU(cuStreamWaitEvent, b, never, 0);
	CU(cuEventSynchronize, never);
	CU(cuEventQuery, never);
	run_step(a, 1);
	CU(cuEventRecord, e, a);
	CU(cuStreamWaitEvent, b, e, 0);
	run_step(b, 2);
	CU(cuEventRecord, e, b);
	CU(cuEventSynchronize, e);
	CU(cuEventQuery, e);
	check("wait");
	CU(cuEventDestroy, e);
	CU(cuEventDestroy, never);
}

static void timing(CUstream s)
{
	CUevent from, to, dull;
	float ms = -1;

	CU(cuEventCreate, &from, 0);
	CU(cuEventCreate, &to, 0);
	CU(cuEventCreate, &dull, CU_EVENT_DISABLE_TIMING);
	if (cuEventElapsedTime(&ms, from, to) != CUDA_ERROR_INVALID_HANDLE)
		E2E_FAIL("a time between events never recorded");
	CU(cuEventRecord, from, s);
	run_step(s, 7);
	CU(cuEventRecord, to, s);
	CU(cuEventRecord, dull, s);
	CU(cuEventSynchronize, to);
	CU(cuEventElapsedTime, &ms, from, to);
	if (!(ms > 0 && ms < 10000))
		E2E_FAIL("a kernel took %g ms", ms);
	if (cuEventElapsedTime(&ms, from, dull) != CUDA_ERROR_INVALID_HANDLE)
		E2E_FAIL("a time of an event without timing");
	check("timing");
	CU(cuEventDestroy, from);
	CU(cuEventDestroy, to);
	CU(cuEventDestroy, dull);
}

int main(void)
{
	CUdevice dev = e2e_open();
	CUmodule mod = e2e_module(ptx);
	CUstream a, b, loose;
	int least, greatest;

	step = e2e_kernel(mod, "step");
	x = e2e_alloc(SIZE);
	CU(cuMemsetD32, x, 0, WORDS);
	CU(cuCtxGetStreamPriorityRange, &least, &greatest);
	CU(cuStreamCreate, &a, CU_STREAM_DEFAULT);
	CU(cuStreamCreateWithPriority, &b, CU_STREAM_DEFAULT, greatest);
	CU(cuStreamCreate, &loose, CU_STREAM_NON_BLOCKING);
	ping_pong(a, b);
	legacy(a, b);
	ping_pong(loose, a);
	wait_is_early(loose, b);
	timing(loose);
	CU(cuStreamSynchronize, a);
	CU(cuStreamQuery, a);
	printf("checksum: %08x\n", history);
	CU(cuStreamDestroy, a);
	CU(cuStreamDestroy, b);
	CU(cuStreamDestroy, loose);
	CU(cuMemFree, x);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	return 0;
}
