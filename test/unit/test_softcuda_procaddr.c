/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which function a name, a version and a flavour give; knobs and the version
 * of the driver; names that only refuse.
 */
#include "test/unit/softcuda.h"

#include "test/softcuda/exports.h"
#include "test/softcuda/knobs.h"

static void setup(void)
{
	soft_env();
}

static void setup_old(void)
{
	soft_env();
	setenv("SOFTCUDA_VERSION", "11040", 1);
}

static const char *found(const char *name, int version, cuuint64_t flags)
{
	void *p = NULL;
	unsigned i;

	OK(cuGetProcAddress_v2(name, &p, version, flags, NULL));
	for (i = 0; i < exports_nr; i++)
		if (exports[i].address == p)
			return exports[i].symbol;
	return "none";
}

#define FOUND(name, version, flags, symbol) \
	ck_assert_str_eq(found(name, version, flags), symbol)

START_TEST(newest_that_fits)
{
	FOUND("cuMemcpyDtoDAsync", 3000, 0, "cuMemcpyDtoDAsync");
	FOUND("cuMemcpyDtoDAsync", 3019, 0, "cuMemcpyDtoDAsync");
	FOUND("cuMemcpyDtoDAsync", 3020, 0, "cuMemcpyDtoDAsync_v2");
	FOUND("cuMemcpyDtoDAsync", 13000, 2, "cuMemcpyDtoDAsync_v2_ptsz");
	FOUND("cuMemcpyDtoDAsync", 13000, 1, "cuMemcpyDtoDAsync_v2");
	FOUND("cuCtxCreate", 3020, 0, "cuCtxCreate_v2");
	FOUND("cuCtxCreate", 11040, 0, "cuCtxCreate_v3");
	FOUND("cuCtxCreate", 13000, 0, "cuCtxCreate_v4");
	FOUND("cuStreamGetCaptureInfo", 12030, 2,
		"cuStreamGetCaptureInfo_v3_ptsz");
	FOUND("cuStreamGetCaptureInfo", 11030, 0, "cuStreamGetCaptureInfo_v2");
	FOUND("cuStreamGetCaptureInfo", 10010, 0, "cuStreamGetCaptureInfo");
	FOUND("cuMemAlloc", 13000, 2, "cuMemAlloc_v2");
	FOUND("cuEventRecordWithFlags", 11010, 2, "cuEventRecordWithFlags_ptsz");
	FOUND("cuMemAlloc", 1000, 0, "none");
	FOUND("cuMemAlloc_v2", 13000, 0, "none");
	FOUND("", 0, 0, "none");
}
END_TEST

START_TEST(first_abi)
{
	CUdriverProcAddressQueryResult how;
	void *p;

	OK(cuGetProcAddress("cuInit", &p, 11030, 0));
	ck_assert_ptr_eq(p, (void *)(uintptr_t)cuInit);
	IS(cuGetProcAddress("cuNothing", &p, 11030, 0), CUDA_ERROR_NOT_FOUND);
	ck_assert_ptr_null(p);
	IS(cuGetProcAddress(NULL, &p, 11030, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuGetProcAddress("cuInit", NULL, 11030, 0),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuGetProcAddress("cuInit", &p, 11030, 8), CUDA_ERROR_INVALID_VALUE);
	OK(cuGetProcAddress_v2("cuMemMap", &p, 9000, 0, &how));
	ck_assert_ptr_null(p);
	ck_assert_int_eq(how, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	OK(cuGetProcAddress_v2("cuMemWarp", &p, 9000, 0, &how));
	ck_assert_int_eq(how, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}
END_TEST

START_TEST(old_driver)
{
	int version;

	OK(cuDriverGetVersion(&version));
	ck_assert_int_eq(version, 11040);
	FOUND("cuFuncGetParamInfo", 13000, 0, "none");
	FOUND("cuGetProcAddress", 13000, 0, "cuGetProcAddress");
	FOUND("cuCtxCreate", 13000, 0, "cuCtxCreate_v3");
}
END_TEST

START_TEST(refusal)
{
	void *p;

	OK(cuInit(0));
	OK(cuGetProcAddress("cuTexObjectCreate", &p, 13000, 0));
	ck_assert_int_eq(((int (*)(void))p)(), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(error_names)
{
	const char *text;

	OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
	ck_assert_str_eq(text, "CUDA_ERROR_OUT_OF_MEMORY");
	OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
	ck_assert_str_eq(text, "out of memory");
	OK(cuGetErrorString(CUDA_SUCCESS, &text));
	ck_assert_str_eq(text, "no error");
	IS(cuGetErrorName((CUresult)998, &text), CUDA_ERROR_INVALID_VALUE);
	ck_assert_ptr_null(text);
	IS(cuGetErrorString((CUresult)-5, &text), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Binary search is not used, but people read the list. */
START_TEST(list)
{
	unsigned i;

	ck_assert_uint_eq(exports_nr, 637);
	for (i = 1; i < exports_nr; i++)
		ck_assert_int_lt(strcmp(exports[i - 1].symbol,
			exports[i].symbol), 0);
}
END_TEST

START_TEST(no_export_tables)
{
	CUuuid id = { "fifteen letters" };
	const void *table = &id;

	IS(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
	ck_assert_ptr_null(table);
}
END_TEST

START_TEST(sizes)
{
	uint64_t n;

	ck_assert(knobs_parse_size("4G", &n));
	ck_assert_uint_eq(n, 4ull << 30);
	ck_assert(knobs_parse_size("64MiB", &n));
	ck_assert_uint_eq(n, 64 << 20);
	ck_assert(knobs_parse_size("100", &n));
	ck_assert_uint_eq(n, 100);
	ck_assert(!knobs_parse_size("-1", &n));
	ck_assert(!knobs_parse_size("4X", &n));
	ck_assert(!knobs_parse_size("", &n));
	ck_assert(!knobs_parse_size("99999999999999T", &n));
}
END_TEST

static void bad_knob(const char *name, const char *value)
{
	setenv(name, value, 1);
	IS(cuInit(0), CUDA_ERROR_INVALID_VALUE);
}

START_TEST(bad_value)
{
	bad_knob("SOFTCUDA_MEMORY", "much");
}
END_TEST

START_TEST(bad_granularity)
{
	bad_knob("SOFTCUDA_GRANULARITY", "100000");
}
END_TEST

START_TEST(bad_name)
{
	bad_knob("SOFTCUDA_MEMROY", "1G");
}
END_TEST

START_TEST(bad_text)
{
	bad_knob("SOFTCUDA_FAIL_CALL", "cuMemAlloc_v2");
}
END_TEST

START_TEST(no_device)
{
	setenv("SOFTCUDA_DEVICES", "0", 1);
	IS(cuInit(0), CUDA_ERROR_NO_DEVICE);
}
END_TEST

START_TEST(attributes)
{
	int value, i;

	OK(cuInit(0));
	for (i = 1; i < 148; i++)
		OK(cuDeviceGetAttribute(&value, i, 0));
	IS(cuDeviceGetAttribute(&value, 0, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuDeviceGetAttribute(&value, 148, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuDeviceGetAttribute(&value, 1, 3), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDeviceGetAttribute(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetAttribute(&value,
		CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	ck_assert_int_eq(value, 9);
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { newest_that_fits, first_abi, refusal, error_names,
			list, no_export_tables, sizes, bad_value,
			bad_granularity, bad_name, bad_text, no_device,
			attributes } },
		{ setup_old, { old_driver } },
	};

	return soft_run_cases("softcuda_procaddr", cases,
		sizeof(cases) / sizeof(cases[0]));
}
