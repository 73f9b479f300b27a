/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software driver makes kernels pay for memory off the device: host
 * memory over the link, and pages that they fault in (SOFTCUDA_UVM).
 */
#include "test/unit/softcuda.h"

#define PAGE (2u << 20)
#define LAUNCH 500u		/* as soft_env() has it */
#define FAULT 30000u

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	/* Words at p, p + stride, ...: *p += add; nothing is stored for 0. */
	".visible .entry walk(.param .u64 p, .param .u32 stride,\n"
	"	.param .u32 n, .param .u32 add)\n"
	"{\n"
	"	.reg .pred %q;\n"
	"	.reg .u32 %v, %n, %s, %a;\n"
	"	.reg .u64 %p, %d;\n"
	"	ld.param.u64 %p, [p];\n"
	"	ld.param.u32 %s, [stride];\n"
	"	ld.param.u32 %n, [n];\n"
	"	ld.param.u32 %a, [add];\n"
	"	cvt.u64.u32 %d, %s;\n"
	"NEXT:\n"
	"	ld.global.u32 %v, [%p];\n"
	"	setp.eq.u32 %q, %a, 0;\n"
	"	@%q bra READ;\n"
	"	add.u32 %v, %v, %a;\n"
	"	st.global.u32 [%p], %v;\n"
	"READ:\n"
	"	add.u64 %p, %p, %d;\n"
	"	sub.u32 %n, %n, 1;\n"
	"	setp.ne.u32 %q, %n, 0;\n"
	"	@%q bra NEXT;\n"
	"	ret;\n"
	"}\n";

static CUfunction walk;

static void open_all(void)
{
	CUmodule m;

	soft_open();
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&walk, m, "walk"));
}

static void setup(void)
{
	soft_env();
	open_all();
}

static void setup_uvm(void)
{
	soft_env();
	setenv("SOFTCUDA_UVM", "1", 1);
	setenv("SOFTCUDA_MEMORY", "4M", 1);
	open_all();
}

static void setup_host_vmm(void)
{
	soft_env();
	setenv("SOFTCUDA_HOST_VMM", "1", 1);
	open_all();
}

/* How long a launch takes, in virtual ns. */
static uint64_t walked(CUdeviceptr p, uint32_t stride, uint32_t n,
	uint32_t add)
{
	void *args[] = { &p, &stride, &n, &add };
	uint64_t t = softcuda_now_ns();

	OK(cuLaunchKernel(walk, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	OK(cuCtxSynchronize());
	return softcuda_now_ns() - t;
}

static CUdeviceptr filled(uint32_t word)
{
	CUdeviceptr p = soft_alloc(PAGE);
	uint32_t *host = soft_pinned(PAGE);

	for (uint32_t i = 0; i < PAGE / 4; i++)
		host[i] = word + i;
	OK(cuMemcpyHtoD_v2(p, host, PAGE));
	OK(cuMemFreeHost(host));
	return p;
}

static uint32_t word_at(CUdeviceptr p)
{
	uint32_t w;

	OK(cuMemcpyDtoH_v2(&w, p, 4));
	return w;
}

START_TEST(pinned)
{
	CUdeviceptr p = (uintptr_t)soft_pinned(GRAIN);
	struct softcuda_stats s;

	/* A sector is fetched once, whoever needs it how often. */
	ck_assert_uint_eq(walked(p, 32, 1024, 0), LAUNCH + 51200);
	ck_assert_uint_eq(walked(p, 8, 4096, 0), LAUNCH + 51200);
	softcuda_get_stats(&s);
	ck_assert_uint_eq(s.mapped_bytes, 2 * 32768);
	/* Both directions at once: the slower one counts. */
	ck_assert_uint_eq(walked(p, 32, 1024, 1), LAUNCH + 51200);
	ck_assert_uint_eq(*(uint32_t *)(uintptr_t)(p + 32), 0x01010102);
	/* Device memory as ever. */
	ck_assert_uint_eq(walked(soft_alloc(GRAIN), 8, 4096, 0),
		LAUNCH + 4096 * 4 / 10);
}
END_TEST

/*
 * With a copy beside it, which takes 1000 + 32768 ns alone: half of the link is
 * less than the kernel asks for.  It ends after twice its bytes' time; the copy
 * then has the link for itself.
 */
START_TEST(shared)
{
	CUdeviceptr p = (uintptr_t)soft_pinned(GRAIN), q = soft_alloc(GRAIN);
	uint32_t stride = 32, n = 1024, add = 0;
	void *args[] = { &p, &stride, &n, &add };
	uint64_t t = softcuda_now_ns();
	CUstream s = soft_stream();
	void *host = soft_pinned(GRAIN);

	OK(cuLaunchKernel(walk, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	OK(cuMemcpyHtoDAsync_v2(q, host, 32768, s));
	OK(cuStreamSynchronize(NULL));
	ck_assert_uint_eq((softcuda_now_ns() - t + 1) / 4, 65536 / 4);
	OK(cuStreamSynchronize(s));
	ck_assert_uint_eq((softcuda_now_ns() - t + 2) / 4, 66536 / 4);
	/* Writes go the other way. */
	t = softcuda_now_ns();
	OK(cuLaunchKernel(walk, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
	OK(cuMemcpyDtoHAsync_v2(host, q, 32768, s));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(softcuda_now_ns() - t, LAUNCH + 51200);
}
END_TEST

START_TEST(mapped)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
	};
	CUmemAccessDesc desc = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;

	OK(cuMemCreate(&h, GRAIN, &prop, 0));
	OK(cuMemAddressReserve(&p, GRAIN, 0, 0, 0));
	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(cuMemSetAccess(p, GRAIN, &desc, 1));
	OK(cuMemsetD8_v2(p, 0, GRAIN));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(walked(p, 32, 1024, 0), LAUNCH + 51200);
	ck_assert_uint_eq(walked(p, 32, 1024, 7), LAUNCH + 51200);
	ck_assert_uint_eq(word_at(p + 32), 7);
}
END_TEST

START_TEST(no_more)
{
	CUdeviceptr p;

	soft_alloc(8 * PAGE);
	IS(cuMemAlloc_v2(&p, PAGE), CUDA_ERROR_OUT_OF_MEMORY);
}
END_TEST

START_TEST(faults)
{
	CUdeviceptr a = filled(100), b = filled(200), c = filled(300);
	struct softcuda_stats s;
	uint64_t some = LAUNCH;

	/* Two fit, and the third is in host memory. */
	ck_assert_uint_eq(walked(a, 4, 1, 0), some);
	ck_assert_uint_eq(walked(b, 4, 1, 0), some);
	/* The first makes way; all of it was written. */
	ck_assert_uint_eq(walked(c, 4, 1, 0), some + FAULT + PAGE + GRAIN);
	ck_assert_uint_eq(walked(c + 4, 4, 8, 0), some + 3);
	/* Half of a subtree is not enough, three quarters are. */
	ck_assert_uint_eq(walked(c + GRAIN, 4, 1, 0), some + FAULT + GRAIN);
	ck_assert_uint_eq(walked(c + 2 * GRAIN, 4, 1, 0),
		some + FAULT + 2 * GRAIN);
	ck_assert_uint_eq(walked(c + 3 * GRAIN, 4, 1, 0), some);
	/* b has been unused for longest. */
	ck_assert_uint_eq(walked(a, 4, 1, 0), some + FAULT + PAGE + GRAIN);
	/* What came back and was only read need not be copied again. */
	ck_assert_uint_eq(walked(b, 4, 1, 0), some + FAULT + GRAIN);
	ck_assert_uint_eq(walked(a, 4, 1, 1), some);
	ck_assert_uint_eq(walked(c, 4, 1, 0), some + FAULT + GRAIN);
	ck_assert_uint_eq(walked(b, 4, 1, 0), some + FAULT + GRAIN + GRAIN);
	softcuda_get_stats(&s);
	ck_assert_uint_eq(s.uvm_faults, 7);
	ck_assert_uint_eq(s.uvm_out_bytes, 2 * PAGE + GRAIN);
	ck_assert_uint_eq(s.uvm_in_bytes, 8 * GRAIN);
	ck_assert_uint_eq(word_at(a), 101);
	ck_assert_uint_eq(word_at(b), 200);
	ck_assert_uint_eq(word_at(c + 4), 301);
	soft_expect_silence();
}
END_TEST

START_TEST(dense)
{
	CUdeviceptr p[3];

	for (int i = 0; i < 3; i++)
		p[i] = filled(0);
	/* One fault for all that a kernel needs of a page. */
	ck_assert_uint_eq(walked(p[2], GRAIN / 2, 64, 0),
		LAUNCH + 25 + FAULT + 2 * PAGE);
	/* The space of an allocation that is gone is free. */
	OK(cuMemFree_v2(p[1]));
	ck_assert_uint_eq(walked(p[0], GRAIN, 32, 0), LAUNCH + 12 + FAULT +
		PAGE);
}
END_TEST

START_TEST(fresh)
{
	CUdeviceptr a = soft_alloc(2 * PAGE), b = soft_alloc(2 * PAGE);
	CUdeviceptr c;
	size_t left, total;

	IS(cuMemAlloc_v2(&c, 17ull << 30), CUDA_ERROR_OUT_OF_MEMORY);
	/* Nothing is there to be copied, but the pages have to be made. */
	ck_assert_uint_eq(walked(a, PAGE, 2, 5), LAUNCH + 1 + 2 * FAULT);
	OK(cuMemGetInfo_v2(&left, &total));
	ck_assert_uint_eq(left, 0);
	OK(cuMemsetD8_v2(b, 1, 2 * PAGE));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(walked(b, 4, 1, 0), LAUNCH + FAULT + 2 * GRAIN);
	ck_assert_uint_eq(word_at(a), 0x7fc0deb2);
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { pinned, no_more, shared } },
		{ setup_host_vmm, { mapped } },
		{ setup_uvm, { faults, dense, fresh } },
	};

	return soft_run_cases("softcuda_paging", cases,
		sizeof(cases) / sizeof(cases[0]));
}
