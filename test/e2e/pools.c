/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered allocation: scratch buffers that live between two calls in
 * one stream, memory handed from one stream to another by an event, many sizes
 * at once, a pool of the program's own with its attributes, and all of it
 * given back at the end.
 */
#include "test/e2e/e2e_util.h"

#define N 20000
#define LARGE ((size_t)3 << 20)

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry axpy(.param .u64 y, .param .u64 x, .param .u32 a,\n"
	"	.param .u32 n)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %t, %a, %v, %w;\n"
	"	.reg .u64 %y, %x, %o;\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u32 %n, [n];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %y, [y];\n"
	"	ld.param.u64 %x, [x];\n"
	"	ld.param.u32 %a, [a];\n"
	"	cvta.to.global.u64 %y, %y;\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %y, %y, %o;\n"
	"	add.u64 %x, %x, %o;\n"
	"	ld.global.u32 %v, [%x];\n"
	"	ld.global.u32 %w, [%y];\n"
	"	mad.lo.u32 %w, %v, %a, %w;\n"
	"	st.global.u32 [%y], %w;\n"
	"	ret;\n"
	"}\n";

static CUfunction axpy;

static void launch(CUdeviceptr y, CUdeviceptr x, unsigned int a, CUstream s)
{
	unsigned int n = N;
	void *args[] = { &y, &x, &a, &n };

	CU(cuLaunchKernel, axpy, (N + 255) / 256, 1, 1, 256, 1, 1, 0, s, args,
		NULL);
}

static uint64_t pool_value(CUmemoryPool pool, CUmemPool_attribute attr)
{
	cuuint64_t v = 0;

	CU(cuMemPoolGetAttribute, pool, attr, &v);
	return v;
}

static void expect(CUdeviceptr p, uint32_t want, const char *what)
{
	static uint32_t got[N];

	CU(cuMemcpyDtoH, got, p, sizeof(got));
	for (int i = 0; i < N; i++)
		if (got[i] != want)
			E2E_FAIL("%s: [%d] is %u, not %u", what, i, got[i],
				want);
}

/* A scratch buffer in every round; the pool must not grow with the rounds. */
static void scratch(CUdeviceptr out, CUstream s, CUmemoryPool pool)
{
	uint64_t first = 0, last;
	CUdeviceptr t;
	uint32_t want = 0;

	CU(cuMemsetD32Async, out, 0, N, s);
	for (uint32_t i = 1; i <= 20; i++) {
		CU(cuMemAllocAsync, &t, N * 4, s);
		CU(cuMemsetD32Async, t, i, N, s);
		launch(out, t, 2, s);
		CU(cuMemFreeAsync, t, s);
		want += 2 * i;
		if (i == 1)
			first = pool_value(pool,
				CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	}
	last = pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	if (last > first)
		E2E_FAIL("the pool grew from %llu to %llu bytes",
			(unsigned long long)first, (unsigned long long)last);
	CU(cuStreamSynchronize, s);
	expect(out, want, "scratch");
	printf("scratch: %u\n", want);
}

/* Made in one stream, used in another, freed in a third. */
static void handed_on(CUdeviceptr out, CUstream a, CUstream b)
{
	CUdeviceptr t;
	CUstream c;
	CUevent e, f;

	CU(cuStreamCreate, &c, CU_STREAM_NON_BLOCKING);
	CU(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
	CU(cuEventCreate, &f, CU_EVENT_DISABLE_TIMING);
	CU(cuMemsetD32Async, out, 1, N, b);
	CU(cuMemAllocAsync, &t, N * 4, a);
	CU(cuMemsetD32Async, t, 21, N, a);
	CU(cuEventRecord, e, a);
	CU(cuStreamWaitEvent, b, e, 0);
	launch(out, t, 2, b);
	CU(cuEventRecord, f, b);
	CU(cuStreamWaitEvent, c, f, 0);
	CU(cuMemFreeAsync, t, c);
	CU(cuCtxSynchronize);
	expect(out, 43, "handed on");
	CU(cuEventDestroy, e);
	CU(cuEventDestroy, f);
	CU(cuStreamDestroy, c);
}

/* Many at once, freed in another order; none may overlap another. */
static void many(CUstream s)
{
	enum { NR = 40 };
	static unsigned char got[NR * 9000];
	CUdeviceptr p[NR];
	size_t size[NR];

	for (int i = 0; i < NR; i++) {
		size[i] = 1 + (size_t)i * 7919 % 9000;
		CU(cuMemAllocAsync, &p[i], size[i], s);
		CU(cuMemsetD8Async, p[i], (unsigned char)i, size[i], s);
		if (i % 3 == 2) {
			CU(cuMemFreeAsync, p[i - 1], s);
			p[i - 1] = 0;
		}
	}
	for (int i = 0; i < NR; i++) {
		if (!p[i])
			continue;
		CU(cuMemcpyDtoHAsync, got, p[i], size[i], s);
		CU(cuStreamSynchronize, s);
		for (size_t j = 0; j < size[i]; j++)
			if (got[j] != i)
				E2E_FAIL("allocation %d, byte %zu is %d", i, j,
					got[j]);
	}
	for (int i = NR - 1; i >= 0; i--)
		if (p[i])
			CU(cuMemFreeAsync, p[i], s);
	CU(cuStreamSynchronize, s);
}

/*
 * Whose memory it is: that of a pool, and of no context or of this one.  Which
 * of the two is not written down, so runs are compared.
 */
static void belongs_to(CUmemoryPool pool, CUdeviceptr p)
{
	CUmemoryPool of = NULL;
	CUcontext ctx, now;

	CU(cuPointerGetAttribute, &of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p);
	CU(cuPointerGetAttribute, &ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	if (of != pool)
		E2E_FAIL("memory is of another pool");
	CU(cuCtxGetCurrent, &now);
	if (ctx != NULL && ctx != now)
		E2E_FAIL("memory of a pool belongs to another context");
	printf("memory of a pool has %s context\n", ctx ? "a" : "no");
}

static void expect_used(CUmemoryPool pool, uint64_t want, const char *what)
{
	uint64_t now = pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);

	if (now != want)
		E2E_FAIL("%s: %llu bytes of the pool are used, not %llu", what,
			(unsigned long long)now, (unsigned long long)want);
}

/* Large allocations count as small ones do, and so do their high marks. */
static void large(CUmemoryPool pool, CUstream s)
{
	uint64_t before = pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	CUdeviceptr t, u, small;
	cuuint64_t zero = 0;

	CU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
	CU(cuMemAllocAsync, &t, LARGE, s);
	belongs_to(pool, t);
	expect_used(pool, before + LARGE, "one");
	CU(cuMemAllocAsync, &small, 512, s);
	CU(cuMemAllocAsync, &u, LARGE, s);
	expect_used(pool, before + 2 * LARGE + 512, "two and a small one");
	if (pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
	    < before + 2 * LARGE)
		E2E_FAIL("more is used than reserved");
	CU(cuMemFreeAsync, t, s);
	expect_used(pool, before + LARGE + 512, "one and a small one");
	CU(cuMemFree, u);
	CU(cuMemFreeAsync, small, s);
	expect_used(pool, before, "none");
	if (pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH)
	    != before + 2 * LARGE + 512)
		E2E_FAIL("the high mark of what is used");
	CU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero);
	if (pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) != before)
		E2E_FAIL("the high mark was not taken back");
	CU(cuStreamSynchronize, s);
	CU(cuMemPoolTrimTo, pool, 0);
	if (pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < before)
		E2E_FAIL("less is reserved than used");
}

static void own_pool(CUdevice dev, CUdeviceptr out, CUstream s)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, dev },
	};
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, dev };
	CUmemAccess_flags flags;
	cuuint64_t keep = UINT64_MAX, high;
	CUmemoryPool pool, now;
	CUdeviceptr t;

	CU(cuMemPoolCreate, &pool, &props);
	CU(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
		&keep);
	CU(cuMemPoolGetAccess, &flags, pool, &here);
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		E2E_FAIL("the pool's own device has access %d", flags);
	CU(cuMemAllocFromPoolAsync, &t, N * 4, pool, s);
	CU(cuMemsetD32Async, t, 6, N, s);
	CU(cuMemsetD32Async, out, 0, N, s);
	launch(out, t, 7, s);
	if (pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) < N * 4)
		E2E_FAIL("the pool does not know what is used");
	CU(cuMemFreeAsync, t, s);
	CU(cuStreamSynchronize, s);
	expect(out, 42, "own pool");
	if (!pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))
		E2E_FAIL("the pool gave back what it was to keep");
	CU(cuMemPoolTrimTo, pool, 0);
	if (pool_value(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))
		E2E_FAIL("the pool kept what it was to give back");
	high = pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
	if (high < N * 4)
		E2E_FAIL("the high mark is %llu", (unsigned long long)high);
	CU(cuDeviceSetMemPool, dev, pool);
	CU(cuDeviceGetMemPool, &now, dev);
	if (now != pool)
		E2E_FAIL("the device has another pool");
	CU(cuMemAllocAsync, &t, 100, s);
	CU(cuMemFree, t);
	CU(cuMemAllocAsync, &t, LARGE, s);
	belongs_to(pool, t);
	if (pool_value(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) < LARGE)
		E2E_FAIL("memory that the pool does not know");
	CU(cuMemFreeAsync, t, s);
	CU(cuStreamSynchronize, s);
	CU(cuMemPoolDestroy, pool);
}

int main(void)
{
	size_t before, after, total;
	CUmemoryPool pool;
	CUdeviceptr out;
	CUstream a, b;
	CUmodule mod;
	int can = 0;
	CUdevice dev = e2e_open();

	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, dev);
	if (!can) {
		printf("no pools\n");
		return 77;
	}
	mod = e2e_module(ptx);
	axpy = e2e_kernel(mod, "axpy");
	out = e2e_alloc(N * 4);
	CU(cuStreamCreate, &a, CU_STREAM_NON_BLOCKING);
	CU(cuStreamCreate, &b, CU_STREAM_NON_BLOCKING);
	CU(cuDeviceGetDefaultMemPool, &pool, dev);
	/* What is said to be free may change with the first large one. */
	CU(cuMemFree, e2e_alloc(LARGE));
	CU(cuMemGetInfo, &before, &total);
	scratch(out, a, pool);
	handed_on(out, a, b);
	many(a);
	large(pool, a);
	own_pool(dev, out, b);
	CU(cuCtxSynchronize);
	CU(cuMemPoolTrimTo, pool, 0);
	CU(cuMemGetInfo, &after, &total);
	if (after != before)
		E2E_FAIL("%zu bytes were free, now %zu", before, after);
	CU(cuMemFree, out);
	CU(cuStreamDestroy, a);
	CU(cuStreamDestroy, b);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("done\n");
	return 0;
}
