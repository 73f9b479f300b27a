/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two devices: memory of each, copies between them in every spelling, kernels
 * on one that use memory of the other once peer access is enabled, or that of
 * its pool, mapped memory with rights for both, the same with more memory than small devices
 * have.  Ends with 77 where there is one device.
 */
#include "test/e2e/e2e_util.h"

#define N 8192

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry add(.param .u64 to, .param .u64 from)\n"
	"{\n"
	"	.reg .u32 %i, %n, %t, %x, %y;\n"
	"	.reg .u64 %p, %q, %o;\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u64 %p, [to];\n"
	"	ld.param.u64 %q, [from];\n"
	"	cvta.to.global.u64 %p, %p;\n"
	"	cvta.to.global.u64 %q, %q;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %p, %p, %o;\n"
	"	add.u64 %q, %q, %o;\n"
	"	ld.global.u32 %x, [%p];\n"
	"	ld.global.u32 %y, [%q];\n"
	"	add.u32 %x, %x, %y;\n"
	"	st.global.u32 [%p], %x;\n"
	"	ret;\n"
	"}\n";

struct gpu {
	CUdevice dev;
	CUcontext ctx;
	CUfunction add;
	CUdeviceptr data;
};

static struct gpu gpu_open(int ordinal)
{
	struct gpu g;

	CU(cuDeviceGet, &g.dev, ordinal);
	CU(cuDevicePrimaryCtxRetain, &g.ctx, g.dev);
	CU(cuCtxSetCurrent, g.ctx);
	g.add = e2e_kernel(e2e_module(ptx), "add");
	g.data = e2e_alloc(N * 4);
	return g;
}

static void launch(const struct gpu *g, CUdeviceptr to, CUdeviceptr from)
{
	void *args[] = { &to, &from };

	CU(cuCtxSetCurrent, g->ctx);
	CU(cuLaunchKernel, g->add, N / 256, 1, 1, 256, 1, 1, 0, NULL, args,
		NULL);
	CU(cuCtxSynchronize);
}

static void set(const struct gpu *g, CUdeviceptr p, uint32_t v)
{
	CU(cuCtxSetCurrent, g->ctx);
	CU(cuMemsetD32, p, v, N);
	CU(cuCtxSynchronize);
}

static void expect(const struct gpu *g, CUdeviceptr p, uint32_t want,
	const char *what)
{
	static uint32_t got[N];

	CU(cuCtxSetCurrent, g->ctx);
	CU(cuMemcpyDtoH, got, p, sizeof(got));
	for (int i = 0; i < N; i++)
		if (got[i] != want)
			E2E_FAIL("%s: [%d] is %u, not %u", what, i, got[i],
				want);
}

static void copies(const struct gpu *a, const struct gpu *b)
{
	CUDA_MEMCPY3D_PEER c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = a->data,
		.srcContext = a->ctx, .srcPitch = 256, .srcHeight = N * 4 / 256,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = b->data,
		.dstContext = b->ctx, .dstPitch = 256, .dstHeight = N * 4 / 256,
		.WidthInBytes = 256, .Height = N * 4 / 256, .Depth = 1,
	};
	CUstream s;

	set(a, a->data, 5);
	set(b, b->data, 0);
	CU(cuMemcpyPeer, b->data, b->ctx, a->data, a->ctx, N * 4);
	CU(cuCtxSynchronize);
	expect(b, b->data, 5, "cuMemcpyPeer");
	set(a, a->data, 6);
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	CU(cuMemcpyPeerAsync, b->data, b->ctx, a->data, a->ctx, N * 4, s);
	CU(cuStreamSynchronize, s);
	expect(b, b->data, 6, "cuMemcpyPeerAsync");
	set(a, a->data, 7);
	CU(cuMemcpyDtoDAsync, b->data, a->data, N * 4, s);
	CU(cuStreamSynchronize, s);
	expect(b, b->data, 7, "cuMemcpyDtoDAsync");
	set(a, a->data, 8);
	CU(cuMemcpy3DPeerAsync, &c, s);
	CU(cuStreamSynchronize, s);
	expect(b, b->data, 8, "cuMemcpy3DPeerAsync");
	CU(cuStreamDestroy, s);
}

static void access(const struct gpu *a, const struct gpu *b)
{
	CUdeviceptr later;
	int can;

	CU(cuDeviceCanAccessPeer, &can, a->dev, b->dev);
	if (!can)
		return;
	CU(cuCtxSetCurrent, a->ctx);
	CU(cuCtxEnablePeerAccess, b->ctx, 0);
	if (cuCtxEnablePeerAccess(b->ctx, 0)
	    != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		E2E_FAIL("peer access was enabled twice");
	set(a, a->data, 1);
	set(b, b->data, 20);
	launch(a, a->data, b->data);
	expect(a, a->data, 21, "reads from a peer");
	launch(a, b->data, a->data);
	expect(b, b->data, 41, "writes to a peer");
	/* Memory that the peer allocates from now on counts too. */
	CU(cuCtxSetCurrent, b->ctx);
	later = e2e_alloc(N * 4);
	set(b, later, 300);
	launch(a, a->data, later);
	expect(a, a->data, 321, "reads newer memory of a peer");
	CU(cuMemFree, later);
	CU(cuCtxSetCurrent, a->ctx);
	CU(cuCtxDisablePeerAccess, b->ctx);
	if (cuCtxDisablePeerAccess(b->ctx)
	    != CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
		E2E_FAIL("peer access was disabled twice");
}

static void mapped(const struct gpu *a, const struct gpu *b)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, b->dev },
	};
	CUmemAccessDesc both[2] = {
		{ { CU_MEM_LOCATION_TYPE_DEVICE, a->dev },
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
		{ { CU_MEM_LOCATION_TYPE_DEVICE, b->dev },
			CU_MEM_ACCESS_FLAGS_PROT_READWRITE },
	};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	size_t size;
	int can = 0;

	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
		b->dev);
	if (!can)
		return;
	CU(cuMemGetAllocationGranularity, &size, &prop,
		CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	CU(cuMemCreate, &h, size, &prop, 0);
	CU(cuMemAddressReserve, &p, size, 0, 0, 0);
	CU(cuMemMap, p, size, 0, h, 0);
	CU(cuMemSetAccess, p, size, both, 2);
	set(b, p, 9);
	set(a, a->data, 1);
	launch(a, p, a->data);
	launch(b, p, p);
	expect(a, p, 20, "mapped for both");
	CU(cuMemUnmap, p, size);
	CU(cuMemAddressFree, p, size);
	CU(cuMemRelease, h);
}

/* ---- many large buffers on both, copied across and used across --------------- */

enum { BUFFERS = 6, LARGE = 2 << 20 };

struct large {
	CUdeviceptr p[BUFFERS];
	uint32_t v[BUFFERS];	/* what every word of it is */
};

static void large_open(const struct gpu *g, struct large *l, uint32_t v)
{
	CU(cuCtxSetCurrent, g->ctx);
	for (int i = 0; i < BUFFERS; i++) {
		l->p[i] = e2e_alloc(LARGE);
		l->v[i] = v + (uint32_t)i;
		CU(cuMemsetD32, l->p[i], l->v[i], LARGE / 4);
	}
	CU(cuCtxSynchronize);
}

static void large_check(const struct gpu *g, const struct large *l,
	const char *what)
{
	uint32_t *got = e2e_host(LARGE);

	CU(cuCtxSetCurrent, g->ctx);
	for (int i = 0; i < BUFFERS; i++) {
		CU(cuMemcpyDtoH, got, l->p[i], LARGE);
		for (int k = 0; k < LARGE / 4; k++)
			if (got[k] != l->v[i])
				E2E_FAIL("%s: buffer %d, [%d] is %u, not %u",
					what, i, k, got[k], l->v[i]);
	}
	free(got);
}

static void large_copy(const struct gpu *a, CUdeviceptr from,
	const struct gpu *b, CUdeviceptr to, int how, CUstream s)
{
	CUDA_MEMCPY3D_PEER c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from,
		.srcContext = a->ctx, .srcPitch = 4096, .srcHeight = 512,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to,
		.dstContext = b->ctx, .dstPitch = 4096, .dstHeight = 512,
		.WidthInBytes = 4096, .Height = 512, .Depth = 1,
	};

	switch (how) {
	case 0:
		CU(cuMemcpyPeer, to, b->ctx, from, a->ctx, LARGE);
		break;
	case 1:
		CU(cuMemcpyPeerAsync, to, b->ctx, from, a->ctx, LARGE, s);
		break;
	case 2:
		CU(cuMemcpyDtoDAsync, to, from, LARGE, s);
		break;
	case 3:
		CU(cuMemcpy3DPeerAsync, &c, s);
		break;
	case 4:
		CU(cuMemcpy3DPeer, &c);
		break;
	default:
		CU(cuMemcpyAsync, to, from, LARGE, s);
		break;
	}
}

static void large_across(const struct gpu *a, struct large *la,
	const struct gpu *b, struct large *lb)
{
	CUstream s;

	CU(cuCtxSetCurrent, a->ctx);
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	for (int i = 0; i < BUFFERS; i++) {
		int to = (i + 2) % BUFFERS;

		large_copy(a, la->p[i], b, lb->p[to], i, s);
		lb->v[to] = la->v[i];
	}
	CU(cuStreamSynchronize, s);
	CU(cuCtxSynchronize);
	large_check(b, lb, "across");
	CU(cuCtxSetCurrent, a->ctx);
	CU(cuStreamDestroy, s);
}

static void large_launch(const struct gpu *a, struct large *la,
	const struct gpu *b, struct large *lb)
{
	for (int i = 0; i < BUFFERS; i++) {
		void *args[] = { &la->p[i], &lb->p[BUFFERS - 1 - i] };

		CU(cuCtxSetCurrent, a->ctx);
		CU(cuLaunchKernel, a->add, LARGE / 4 / 256, 1, 1, 256, 1, 1, 0,
			NULL, args, NULL);
		la->v[i] += lb->v[BUFFERS - 1 - i];
	}
	CU(cuCtxSynchronize);
	large_check(a, la, "kernels");
}

/* Access that is enabled before the other device has any such memory. */
static void early(const struct gpu *a, const struct gpu *b)
{
	struct large la, lb;
	int can;

	CU(cuDeviceCanAccessPeer, &can, a->dev, b->dev);
	if (!can)
		return;
	CU(cuCtxSetCurrent, a->ctx);
	CU(cuCtxEnablePeerAccess, b->ctx, 0);
	large_open(a, &la, 10);
	large_open(b, &lb, 20);
	large_launch(a, &la, b, &lb);
	for (int i = 0; i < BUFFERS; i++) {
		CU(cuMemFree, la.p[i]);
		CU(cuMemFree, lb.p[i]);
	}
	CU(cuCtxSetCurrent, a->ctx);
	CU(cuCtxDisablePeerAccess, b->ctx);
}

/* Memory of b's default pool, before and after a is given access to it. */
static void pooled(const struct gpu *a, const struct gpu *b)
{
	CUmemAccessDesc desc = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, a->dev },
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUdeviceptr p[2];
	CUmemoryPool pool;
	int can, pools;

	CU(cuDeviceCanAccessPeer, &can, a->dev, b->dev);
	CU(cuDeviceGetAttribute, &pools,
		CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, b->dev);
	if (!can || !pools)
		return;
	CU(cuDeviceGetDefaultMemPool, &pool, b->dev);
	for (int i = 0; i < 2; i++) {
		CU(cuCtxSetCurrent, b->ctx);
		CU(cuMemAllocAsync, &p[i], LARGE, NULL);
		CU(cuCtxSynchronize);
		CU(cuMemPoolSetAccess, pool, &desc, 1);
	}
	for (int i = 0; i < 2; i++) {
		set(b, p[i], 5 + (uint32_t)i);
		set(a, a->data, 100);
		launch(a, p[i], a->data);
		launch(a, a->data, p[i]);
		expect(a, a->data, 205 + (uint32_t)i, "memory of a pool");
	}
	CU(cuCtxSetCurrent, b->ctx);
	CU(cuMemFreeAsync, p[0], NULL);
	CU(cuMemFreeAsync, p[1], NULL);
	CU(cuCtxSynchronize);
	CU(cuMemPoolTrimTo, pool, 0);
	/* Not for the rest of the program. */
	desc.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	CU(cuMemPoolSetAccess, pool, &desc, 1);
}

static void large(const struct gpu *a, const struct gpu *b)
{
	struct large la, lb;
	int can;

	large_open(a, &la, 100);
	large_open(b, &lb, 2000);
	for (int round = 0; round < 2; round++) {
		large_across(a, &la, b, &lb);
		for (int i = 0; i < BUFFERS; i++)
			lb.v[i] += 7000 * (uint32_t)(i + 1);
		CU(cuCtxSetCurrent, b->ctx);
		for (int i = 0; i < BUFFERS; i++)
			CU(cuMemsetD32, lb.p[i], lb.v[i], LARGE / 4);
		CU(cuCtxSynchronize);
		large_across(b, &lb, a, &la);
	}
	CU(cuDeviceCanAccessPeer, &can, a->dev, b->dev);
	if (can) {
		CU(cuCtxSetCurrent, a->ctx);
		CU(cuCtxEnablePeerAccess, b->ctx, 0);
		large_launch(a, &la, b, &lb);
		CU(cuCtxDisablePeerAccess, b->ctx);
	}
	for (int i = 0; i < BUFFERS; i++) {
		CU(cuMemFree, la.p[i]);
		CU(cuMemFree, lb.p[i]);
	}
}

int main(void)
{
	size_t before[2], after[2], total;
	struct gpu a, b;
	int nr;

	CU(cuInit, 0);
	CU(cuDeviceGetCount, &nr);
	if (nr < 2) {
		printf("one device\n");
		return 77;
	}
	a = gpu_open(0);
	b = gpu_open(1);
	pooled(&a, &b);
	early(&b, &a);
	copies(&a, &b);
	copies(&b, &a);
	access(&a, &b);
	mapped(&a, &b);
	large(&a, &b);
	/* Each device has its own memory. */
	CU(cuCtxSetCurrent, a.ctx);
	CU(cuMemGetInfo, &before[0], &total);
	CU(cuCtxSetCurrent, b.ctx);
	CU(cuMemGetInfo, &before[1], &total);
	CUdeviceptr p = e2e_alloc(8 << 20);

	CU(cuMemGetInfo, &after[1], &total);
	CU(cuCtxSetCurrent, a.ctx);
	CU(cuMemGetInfo, &after[0], &total);
	if (after[0] != before[0] || after[1] >= before[1])
		E2E_FAIL("memory of the wrong device was taken");
	CU(cuMemFree, p);
	CU(cuMemFree, a.data);
	CU(cuMemFree, b.data);
	CU(cuDevicePrimaryCtxRelease, a.dev);
	CU(cuDevicePrimaryCtxRelease, b.dev);
	printf("two devices\n");
	return 0;
}
