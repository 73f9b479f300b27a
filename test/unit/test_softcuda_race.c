/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race detector of the software driver: true races are found, ordered
 * accesses are not reported, through aliases, legacy stream, events, kernels.
 */
#include "test/unit/softcuda.h"

#include <pthread.h>

#define SIZE (4 * GRAIN)

/* add(p, n): p[i] += 1 for i < n; get(p, q, n): q[i] = p[i]. */
#define ELEMENT(name) \
	".visible .entry " name "(.param .u64 p, .param .u64 q, " \
	".param .u32 n)\n{\n" \
	".reg .pred %c;\n.reg .u32 %i, %n, %t;\n.reg .u64 %p, %q, %o;\n" \
	"mov.u32 %i, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %t, %tid.x;\n" \
	"mad.lo.u32 %i, %i, %n, %t;\nld.param.u32 %n, [n];\n" \
	"setp.ge.u32 %c, %i, %n;\n@%c ret;\n" \
	"ld.param.u64 %p, [p];\nld.param.u64 %q, [q];\n" \
	"mul.wide.u32 %o, %i, 4;\nadd.u64 %p, %p, %o;\nadd.u64 %q, %q, %o;\n"

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	ELEMENT("get")
	"ld.global.u32 %t, [%p];\nst.global.u32 [%q], %t;\nret;\n}\n"
	ELEMENT("add")
	"ld.global.u32 %t, [%p];\nadd.u32 %t, %t, 1;\n"
	"st.global.u32 [%p], %t;\nret;\n}\n";

static CUdeviceptr d, e;
static unsigned char *pin;
static CUstream s1, s2;
static CUevent ev;
static CUfunction get, add;

static void setup(void)
{
	CUmodule m;

	soft_env();
	soft_open();
	d = soft_alloc(SIZE);
	e = soft_alloc(SIZE);
	pin = soft_pinned(SIZE);
	s1 = soft_stream();
	s2 = soft_stream();
	ev = soft_event();
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&get, m, "get"));
	OK(cuModuleGetFunction(&add, m, "add"));
	OK(cuMemsetD8_v2(d, 1, SIZE));
	OK(cuMemsetD8_v2(e, 1, SIZE));
	OK(cuCtxSynchronize());
}

static void run(CUfunction f, CUdeviceptr p, CUdeviceptr q, unsigned n,
	CUstream s)
{
	void *args[] = { &p, &q, &n };

	OK(cuLaunchKernel(f, (n + 63) / 64, 1, 1, 64, 1, 1, 0, s, args, NULL));
}

START_TEST(two_writes)
{
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemsetD8Async(d + SIZE - 1, 0, 1, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

START_TEST(neighbours)
{
	OK(cuMemcpyHtoDAsync_v2(d, pin, 1000, s1));
	OK(cuMemsetD8Async(d + 1000, 0, 1000, s2));
	OK(cuMemsetD8Async(d + 2000, 0, 1000, s1));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(two_reads)
{
	void *other = soft_pinned(SIZE);

	OK(cuMemcpyDtoHAsync_v2(pin, d, SIZE, s1));
	OK(cuMemcpyDtoHAsync_v2(other, d, SIZE, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(read_then_write)
{
	OK(cuMemcpyDtoHAsync_v2(pin, d, SIZE, s1));
	OK(cuMemsetD8Async(d + 7, 0, 1, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

START_TEST(event_orders)
{
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuEventRecord(ev, s1));
	OK(cuStreamWaitEvent(s2, ev, 0));
	OK(cuMemsetD8Async(d, 0, SIZE, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

/* The record is after the work that the wait would be needed for. */
START_TEST(event_too_early)
{
	OK(cuEventRecord(ev, s1));
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamWaitEvent(s2, ev, 0));
	OK(cuMemsetD8Async(d, 0, SIZE, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

START_TEST(host_orders)
{
	void *other = soft_pinned(SIZE);

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	OK(cuMemsetD8Async(d, 0, SIZE, s2));
	OK(cuEventRecord(ev, s2));
	OK(cuEventSynchronize(ev));
	/* Time goes by with another stream; then the question is a wait. */
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE / 2, s1));
	IS(cuStreamQuery(s1), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync_v2(other, e, SIZE, s2));
	OK(cuStreamSynchronize(s2));
	OK(cuStreamQuery(s1));
	OK(cuMemsetD8Async(d, 0, SIZE, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(legacy_orders)
{
	CUstream b1, b2;

	OK(cuStreamCreate(&b1, 0));
	OK(cuStreamCreate(&b2, 0));
	OK(cuMemsetD8Async(d, 1, SIZE, b1));
	OK(cuMemsetD8Async(d, 2, SIZE, NULL));
	OK(cuMemsetD8Async(d, 3, SIZE, b2));
	OK(cuMemsetD8Async(d, 4, SIZE, CU_STREAM_LEGACY));
	OK(cuMemsetD8Async(d, 5, SIZE, CU_STREAM_PER_THREAD));
	OK(cuCtxSynchronize());
	soft_expect_silence();
	/* Without the legacy stream between them they race. */
	OK(cuMemsetD8Async(d, 1, SIZE, b1));
	OK(cuMemsetD8Async(d, 3, SIZE, b2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

START_TEST(legacy_exempts_non_blocking)
{
	OK(cuMemsetD8Async(d, 1, SIZE, s1));
	OK(cuMemsetD8Async(d, 2, SIZE, NULL));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

/* The bytes are the same though the addresses differ. */
START_TEST(alias)
{
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	CUdeviceptr a = soft_reserve(GRAIN), b = soft_reserve(GRAIN);

	OK(cuMemMap(a, GRAIN, 0, h, 0));
	OK(cuMemMap(b, GRAIN, 0, h, 0));
	OK(soft_access(a, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(soft_access(b, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READ));
	OK(cuMemcpyHtoDAsync_v2(a, pin, GRAIN, s1));
	run(get, b, e, 16, s2);
	OK(cuCtxSynchronize());
	soft_expect_report("race");
	OK(cuMemcpyHtoDAsync_v2(a, pin, GRAIN, s1));
	OK(cuEventRecord(ev, s1));
	OK(cuStreamWaitEvent(s2, ev, 0));
	run(get, b, e, 16, s2);
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(kernel_reads)
{
	run(get, d, e, SIZE / 4, s1);
	run(get, d, e + 64, 1, s2);
	OK(cuCtxSynchronize());
	soft_expect_report("race");	/* both write e */
	run(get, d, e, SIZE / 8, s1);
	run(get, d, e + SIZE / 2, SIZE / 8, s2);
	OK(cuCtxSynchronize());
	soft_expect_silence();
	/* The slot is refilled while its reader has not been waited for. */
	run(get, d, e, SIZE / 4, s1);
	OK(cuMemcpyHtoDAsync_v2(d + SIZE - 4, pin, 4, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

START_TEST(kernel_writes)
{
	run(add, d, d, 100, s1);
	OK(cuMemsetD8Async(d + 400, 0, 4, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
	run(add, d, d, 100, s1);
	OK(cuMemcpyDtoHAsync_v2(pin, d + 396, 4, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

/* The host's side of a copy is watched too, where it is pinned. */
START_TEST(pinned_memory)
{
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemcpyDtoHAsync_v2(pin + 100, e, 4, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

/* Changed between issue and end: by the CPU that is an error. */
START_TEST(source_changes)
{
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	pin[SIZE - 1] ^= 1;
	OK(cuStreamSynchronize(s1));
	soft_expect_report("hostwrite");
	pin[0] ^= 1;
	OK(cuMemsetD8Async(e, 77, SIZE, s1));
	OK(cuMemcpyDtoHAsync_v2(pin, e, SIZE, s1));
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	soft_expect_silence();
}
END_TEST

static void CUDA_CB double_source(void *data)
{
	unsigned char *p = data;

	for (unsigned i = 0; i < SIZE; i++)
		p[i] *= 2;
}

/* A host function before the copy may write its source: that is its order. */
START_TEST(host_function_writes_source)
{
	OK(cuMemcpyDtoHAsync_v2(pin, d, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	OK(cuLaunchHostFunc(s1, double_source, pin));
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	soft_expect_silence();
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	pin[5] ^= 1;
	OK(cuStreamSynchronize(s1));
	soft_expect_report("hostwrite");
}
END_TEST

START_TEST(kernel_reads_pinned_memory)
{
	run(get, (uintptr_t)pin, e, 64, s1);
	OK(cuMemcpyDtoHAsync_v2(pin, d, 4, s2));
	OK(cuCtxSynchronize());
	soft_expect_report("race");
}
END_TEST

/* New memory in an old place has no past. */
START_TEST(freed)
{
	CUdeviceptr keep = soft_alloc(512), p = soft_alloc(512), q;

	OK(cuMemsetD8Async(p, 1, 512, s1));
	OK(cuMemFree_v2(p));
	q = soft_alloc(512);
	ck_assert_uint_eq(p, q);
	ck_assert_uint_eq(p, keep + 512);
	OK(cuMemsetD8Async(q, 1, 512, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

/* A wait of one stream for two, and order through a third. */
START_TEST(transitive)
{
	CUstream s3 = soft_stream();
	CUevent ev2 = soft_event();

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuEventRecord(ev, s1));
	OK(cuStreamWaitEvent(s2, ev, 0));
	OK(cuEventRecord(ev2, s2));
	OK(cuStreamWaitEvent(s3, ev2, 0));
	OK(cuMemsetD8Async(d, 0, SIZE, s3));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

static void *wait_in_thread(void *ctx)
{
	OK(cuCtxSetCurrent(ctx));
	OK(cuStreamSynchronize(s1));
	return NULL;
}

/* Host threads synchronise in ways that a driver cannot see. */
START_TEST(host_threads)
{
	pthread_t t;
	CUcontext ctx;

	OK(cuCtxGetCurrent(&ctx));
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	pthread_create(&t, NULL, wait_in_thread, ctx);
	pthread_join(t, NULL);
	OK(cuMemsetD8Async(d, 0, SIZE, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

/* A stream's last work is known to the context, its handle gone or not. */
START_TEST(destroyed_stream)
{
	CUstream s = soft_stream();

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s));
	OK(cuStreamDestroy_v2(s));
	OK(cuCtxSynchronize());
	OK(cuMemsetD8Async(d, 0, SIZE, s2));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { two_writes, neighbours, two_reads, read_then_write,
			event_orders, event_too_early, host_orders,
			legacy_orders, legacy_exempts_non_blocking, alias } },
		{ setup, { kernel_reads, kernel_writes, pinned_memory,
			source_changes, host_function_writes_source,
			kernel_reads_pinned_memory, freed, transitive,
			host_threads, destroyed_stream } },
	};

	return soft_run_cases("softcuda_race", cases,
		sizeof(cases) / sizeof(cases[0]));
}
