/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and launches of the software driver: what is found, what is refused,
 * how long a kernel takes, how a faulting one ends its context.
 */
#include "test/unit/softcuda.h"

static const char ptx[] =
	".version 7.0\n.target sm_75\n.address_size 64\n"
	".visible .global .align 4 .u32 counter = 41;\n"
	".visible .global .align 8 .b8 zeros[16];\n"
	/* put(p, byte, word): *p = word + counter */
	".visible .entry put(.param .u64 p, .param .u8 byte,\n"
	"	.param .u32 word)\n"
	"{\n"
	"	.reg .u32 %v, %w;\n"
	"	.reg .u64 %p;\n"
	"	ld.param.u64 %p, [p];\n"
	"	ld.param.u32 %v, [word];\n"
	"	ld.global.u32 %w, [counter];\n"
	"	add.u32 %v, %v, %w;\n"
	"	st.global.u32 [%p], %v;\n"
	"	ret;\n"
	"}\n"
	".visible .entry nothing()\n"
	"{\n"
	"	ret;\n"
	"}\n"
	".visible .entry small()\n"
	".maxntid 64, 1, 1\n"
	"{\n"
	"	.shared .align 4 .b8 room[1000];\n"
	"	.reg .u32 %a, %b;\n"
	"	mov.u32 %a, room;\n"
	"	mov.u32 %b, 1;\n"
	"	st.shared.u32 [%a], %b;\n"
	"	ret;\n"
	"}\n"
	".visible .entry stop()\n"
	"{\n"
	"	trap;\n"
	"	ret;\n"
	"}\n";

static CUmodule m;
static CUfunction put, nothing, small, stop;
static CUdeviceptr d;

static void open_all(void)
{
	soft_open();
	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&put, m, "put"));
	OK(cuModuleGetFunction(&nothing, m, "nothing"));
	OK(cuModuleGetFunction(&small, m, "small"));
	OK(cuModuleGetFunction(&stop, m, "stop"));
	d = soft_alloc(GRAIN);
}

static void setup(void)
{
	soft_env();
	open_all();
}

static void setup_old_device(void)
{
	soft_env();
	setenv("SOFTCUDA_CC", "70", 1);
	soft_open();
}

static CUresult launch_put(CUdeviceptr p, uint32_t word, CUstream s)
{
	unsigned char byte = 0;
	void *args[] = { &p, &byte, &word };

	return cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, s, args, NULL);
}

static uint32_t word_at(CUdeviceptr p)
{
	uint32_t w;

	OK(cuMemcpyDtoH_v2(&w, p, 4));
	return w;
}

START_TEST(parameters)
{
	size_t offset, size, size_before = 77;
	struct {
		CUdeviceptr p;
		unsigned char byte;
		uint32_t word;
	} packed = { .p = d + 4, .word = 9 };
	size_t packed_size = sizeof(packed);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
		CU_LAUNCH_PARAM_END };
	void *args[] = { &packed.p, &packed.byte, &packed.word };

	OK(cuFuncGetParamInfo(put, 2, &offset, &size));
	ck_assert_uint_eq(offset, 12);
	ck_assert_uint_eq(size, 4);
	OK(cuFuncGetParamInfo(put, 1, &offset, NULL));
	ck_assert_uint_eq(offset, 8);
	IS(cuFuncGetParamInfo(put, 3, &offset, &size_before),
		CUDA_ERROR_INVALID_VALUE);
	ck_assert_uint_eq(size_before, 77);
	IS(cuFuncGetParamInfo(nothing, 0, &offset, &size),
		CUDA_ERROR_INVALID_VALUE);
	OK(launch_put(d, 1, NULL));
	ck_assert_uint_eq(word_at(d), 42);
	OK(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	ck_assert_uint_eq(word_at(d + 4), 50);
	IS(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, args, extra),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	packed_size = 12;
	IS(cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}
END_TEST

START_TEST(shapes)
{
	static const struct {
		unsigned grid[3], block[3], shared;
		CUresult want;
	} t[] = {
		{ { 1, 1, 1 }, { 64, 1, 1 }, 0, CUDA_SUCCESS },
		{ { 1, 1, 1 }, { 65, 1, 1 }, 0,
			CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES },
		{ { 0, 1, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
		{ { 1, 1, 1 }, { 1, 0, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
		{ { 1, 1, 1 }, { 1025, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
		{ { 1, 1, 1 }, { 1, 1, 65 }, 0, CUDA_ERROR_INVALID_VALUE },
		{ { 1, 65536, 1 }, { 1, 1, 1 }, 0, CUDA_ERROR_INVALID_VALUE },
		{ { 1, 1, 1 }, { 1, 1, 1 }, 48152, CUDA_SUCCESS },
		{ { 1, 1, 1 }, { 1, 1, 1 }, 48153, CUDA_ERROR_INVALID_VALUE },
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		IS(cuLaunchKernel(small, t[i].grid[0], t[i].grid[1],
			t[i].grid[2], t[i].block[0], t[i].block[1],
			t[i].block[2], t[i].shared, NULL, NULL, NULL),
			t[i].want);
	OK(cuFuncSetAttribute(small,
		CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000));
	OK(cuLaunchKernel(small, 1, 1, 1, 1, 1, 1, 99000, NULL, NULL, NULL));
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(questions)
{
	const char *name;
	CUmodule where;
	size_t size;
	CUdeviceptr p;
	CUfunction f;
	int value;

	OK(cuFuncGetName(&name, small));
	ck_assert_str_eq(name, "small");
	OK(cuFuncGetModule(&where, small));
	ck_assert_ptr_eq(where, m);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
		small));
	ck_assert_int_eq(value, 1000);
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
		small));
	ck_assert_int_eq(value, 64);
	IS(cuFuncGetAttribute(&value, 99, small), CUDA_ERROR_INVALID_VALUE);
	IS(cuModuleGetFunction(&f, m, "missing"), CUDA_ERROR_NOT_FOUND);
	IS(cuModuleGetFunction(NULL, m, "put"), CUDA_ERROR_INVALID_VALUE);
	OK(cuModuleGetGlobal_v2(&p, &size, m, "counter"));
	ck_assert_uint_eq(size, 4);
	ck_assert_uint_eq(word_at(p), 41);
	OK(cuModuleGetGlobal_v2(&p, &size, m, "zeros"));
	ck_assert_uint_eq(size, 16);
	ck_assert_uint_eq(word_at(p + 12), 0);
	IS(cuModuleGetGlobal_v2(&p, &size, m, "put"), CUDA_ERROR_NOT_FOUND);
	OK(cuModuleUnload(m));
	IS(cuModuleUnload(m), CUDA_ERROR_INVALID_HANDLE);
	IS(launch_put(d, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(images)
{
	static const char elf[64] = "\177ELF";
	char log[200] = "", info[8];
	CUjit_option names[] = { CU_JIT_ERROR_LOG_BUFFER,
		CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
		CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES };
	void *values[] = { log, (void *)sizeof(log), info,
		(void *)sizeof(info) };
	CUmodule bad;

	ck_assert_int_ne(cuModuleLoadDataEx(&bad, ".version 7.0\n"
		".target sm_75\n.address_size 64\n.visible .entry k()\n{\n"
		"frobnicate.b32 %r1, %r2;\nret;\n}\n", 4, names, values),
		CUDA_SUCCESS);
	ck_assert_msg(strstr(log, "line 6") && strstr(log, "frobnicate"),
		"%s", log);
	ck_assert_uint_eq((uintptr_t)values[1], strlen(log));
	IS(cuModuleLoadData(&bad, elf), CUDA_ERROR_NO_BINARY_FOR_GPU);
	ck_assert_int_ne(cuModuleLoadData(&bad, "hello, world"), CUDA_SUCCESS);
	IS(cuModuleLoadData(&bad, NULL), CUDA_ERROR_INVALID_VALUE);
	IS(cuModuleLoad(&bad, "/nowhere/at.all"), CUDA_ERROR_FILE_NOT_FOUND);
}
END_TEST

START_TEST(target)
{
	IS(cuModuleLoadData(&m, ptx), CUDA_ERROR_NO_BINARY_FOR_GPU);
}
END_TEST

START_TEST(time)
{
	uint64_t t = softcuda_now_ns();

	OK(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	ck_assert_uint_eq(softcuda_now_ns(), t);
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(softcuda_now_ns(), t + 500);
}
END_TEST

static void expect_dead(CUresult code, const char *rule)
{
	CUdeviceptr p;
	CUcontext fresh;

	IS(cuCtxSynchronize(), code);
	soft_expect_report(rule);
	IS(cuMemAlloc_v2(&p, 1), code);
	IS(cuMemFree_v2(d), code);
	IS(cuStreamSynchronize(NULL), code);
	IS(launch_put(d, 1, NULL), code);
	/* Other contexts live. */
	OK(cuCtxCreate_v2(&fresh, 0, 0));
	OK(cuMemAlloc_v2(&p, 1));
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy_v2(fresh));
}

START_TEST(illegal_address)
{
	OK(launch_put(d, 1, NULL));
	OK(launch_put(0x123456780000, 1, NULL));
	expect_dead(CUDA_ERROR_ILLEGAL_ADDRESS, "kernel");
}
END_TEST

START_TEST(misaligned)
{
	OK(launch_put(d + 2, 1, NULL));
	expect_dead(CUDA_ERROR_MISALIGNED_ADDRESS, "kernel");
}
END_TEST

START_TEST(trapped)
{
	OK(cuLaunchKernel(stop, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	expect_dead(CUDA_ERROR_LAUNCH_FAILED, "kernel");
}
END_TEST

/* A mapping that may be read only, written by a kernel. */
START_TEST(read_only)
{
	CUdeviceptr p = soft_reserve(GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READ));
	OK(launch_put(p, 1, NULL));
	expect_dead(CUDA_ERROR_ILLEGAL_ADDRESS, "kernel");
}
END_TEST

/* No hardware notices, so a report and no error. */
START_TEST(out_of_bounds)
{
	CUdeviceptr p = soft_alloc(100), q = soft_alloc(2 * GRAIN + 16);

	OK(launch_put(p + 508, 1, NULL));
	OK(cuCtxSynchronize());
	soft_expect_silence();
	OK(launch_put(p + 512, 1, NULL));
	OK(cuCtxSynchronize());
	soft_expect_report("bounds");
	OK(launch_put(q + 2 * GRAIN + 512, 1, NULL));
	OK(cuCtxSynchronize());
	soft_expect_report("bounds");
	IS(cuMemsetD8_v2(p, 0, 513), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemsetD8_v2(q + GRAIN, 0, GRAIN + 513), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD8_v2(q + GRAIN, 0, GRAIN + 16));
}
END_TEST

/* Taken away while a kernel that used it is running. */
START_TEST(unmap_under_kernel)
{
	CUdeviceptr p = soft_reserve(2 * GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(cuMemMap(p + GRAIN, GRAIN, 0, h, 0));
	OK(soft_access(p, 2 * GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(launch_put(p, 1, NULL));
	/* The alias is not what it used. */
	OK(cuMemUnmap(p + GRAIN, GRAIN));
	soft_expect_silence();
	OK(cuMemUnmap(p, GRAIN));
	soft_expect_report("unmap");
	OK(cuCtxSynchronize());
}
END_TEST

/* Parameters are taken at the launch, the module lives until it has run. */
START_TEST(queued)
{
	CUstream s = soft_stream();
	int i;

	OK(cuMemcpyHtoDAsync_v2(d, soft_pinned(GRAIN), GRAIN, s));
	for (i = 0; i < 10; i++)
		OK(launch_put(d + 4 * (unsigned)i, (unsigned)i, s));
	OK(cuModuleUnload(m));
	OK(cuStreamSynchronize(s));
	ck_assert_uint_eq(word_at(d + 36), 50);
	soft_expect_silence();
}
END_TEST

START_TEST(extended)
{
	CUlaunchAttribute attr = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY };
	CUlaunchConfig c = { 1, 1, 1, 1, 1, 1, 0, NULL, &attr, 1 };
	unsigned char byte = 0;
	uint32_t word = 2;
	void *args[] = { &d, &byte, &word };

	OK(cuLaunchKernelEx(&c, put, args, NULL));
	ck_assert_uint_eq(word_at(d), 43);
	attr.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
	IS(cuLaunchKernelEx(&c, put, args, NULL), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuLaunchKernelEx(NULL, put, args, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { parameters, shapes, questions, images, time,
			illegal_address, misaligned, trapped, read_only,
			out_of_bounds, unmap_under_kernel, queued, extended } },
		{ setup_old_device, { target } },
	};

	return soft_run_cases("softcuda_kernel", cases,
		sizeof(cases) / sizeof(cases[0]));
}
