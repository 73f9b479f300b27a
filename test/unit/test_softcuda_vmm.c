/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of virtual memory management, the page table behind it, and what
 * the strict checks say when a rule is broken.
 */
#include "test/unit/softcuda.h"

#define READ CU_MEM_ACCESS_FLAGS_PROT_READ
#define WRITE CU_MEM_ACCESS_FLAGS_PROT_READWRITE

static void setup(void)
{
	soft_env();
	soft_open();
}

static void setup_limit(void)
{
	soft_env();
	setenv("SOFTCUDA_ALIAS_LIMIT", "3", 1);
	soft_open();
}

static void setup_waits(void)
{
	soft_env();
	setenv("SOFTCUDA_UNMAP_WAITS", "1", 1);
	soft_open();
}

static void setup_without(void)
{
	soft_env();
	setenv("SOFTCUDA_VMM", "0", 1);
	soft_open();
}

static void setup_host(void)
{
	soft_env();
	setenv("SOFTCUDA_HOST_VMM", "1", 1);
	soft_open();
}

static void refused_map(CUdeviceptr p, size_t size, size_t off,
	CUmemGenericAllocationHandle h)
{
	IS(cuMemMap(p, size, off, h, 0), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("map");
}

START_TEST(map_rules)
{
	CUdeviceptr p = soft_reserve(4 * GRAIN);
	CUmemGenericAllocationHandle h = soft_create(2 * GRAIN);

	refused_map(p, 2 * GRAIN, GRAIN, h);		/* offset */
	refused_map(p, GRAIN, 0, h);			/* part of the handle */
	refused_map(p + 4096, 2 * GRAIN, 0, h);		/* alignment */
	refused_map(p + 3 * GRAIN, 2 * GRAIN, 0, h);	/* bounds */
	refused_map(p - GRAIN, 2 * GRAIN, 0, h);
	OK(cuMemMap(p, 2 * GRAIN, 0, h, 0));
	refused_map(p + GRAIN, 2 * GRAIN, 0, h);	/* taken */
	OK(cuMemMap(p + 2 * GRAIN, 2 * GRAIN, 0, h, 0));
	IS(cuMemMap(p, 2 * GRAIN, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemMap(p, 2 * GRAIN, 0, h, 1), CUDA_ERROR_INVALID_VALUE);
	soft_expect_silence();
}
END_TEST

START_TEST(unmap_rules)
{
	CUdeviceptr p = soft_reserve(4 * GRAIN);
	CUmemGenericAllocationHandle h = soft_create(2 * GRAIN);

	OK(cuMemMap(p, 2 * GRAIN, 0, h, 0));
	OK(cuMemMap(p + 2 * GRAIN, 2 * GRAIN, 0, h, 0));
	IS(cuMemUnmap(p, GRAIN), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("unmap");
	IS(cuMemUnmap(p + GRAIN, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("unmap");
	IS(cuMemAddressFree(p, 4 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("addressfree");
	OK(cuMemUnmap(p, 4 * GRAIN));
	IS(cuMemUnmap(p, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("unmap");
	IS(cuMemAddressFree(p, 2 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(p, 4 * GRAIN));
	IS(cuMemAddressFree(p, 4 * GRAIN), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRelease(h));
	IS(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
	soft_expect_silence();
}
END_TEST

START_TEST(rights)
{
	CUdeviceptr p = soft_reserve(2 * GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	CUmemLocation here = { CU_MEM_LOCATION_TYPE_DEVICE, 0 };
	unsigned long long flags;
	int word = 5;

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(cuMemMap(p + GRAIN, GRAIN, 0, h, 0));
	/* New mappings have none, and copies cannot use them. */
	IS(cuMemcpyHtoD_v2(p, &word, 4), CUDA_ERROR_INVALID_VALUE);
	OK(soft_access(p, GRAIN, WRITE));
	OK(soft_access(p + GRAIN, GRAIN, READ));
	OK(cuMemcpyHtoD_v2(p, &word, 4));
	word = 0;
	OK(cuMemcpyDtoH_v2(&word, p + GRAIN, 4));
	ck_assert_int_eq(word, 5);
	IS(cuMemcpyHtoD_v2(p + GRAIN, &word, 4), CUDA_ERROR_INVALID_VALUE);
	/* They go with the mapping. */
	OK(cuMemUnmap(p, GRAIN));
	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(cuMemGetAccess(&flags, &here, p));
	ck_assert_uint_eq(flags, 0);
	IS(cuMemcpyHtoD_v2(p, &word, 4), CUDA_ERROR_INVALID_VALUE);
	/* Half a mapping cannot have rights of its own. */
	IS(soft_access(p + 4096, GRAIN, READ), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("setaccess");
	IS(soft_access(p, GRAIN, 2), CUDA_ERROR_INVALID_VALUE);
	soft_expect_silence();
}
END_TEST

START_TEST(sizes)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle h;
	CUdeviceptr p, q;
	size_t grain;

	OK(cuMemGetAllocationGranularity(&grain, &prop, 0));
	ck_assert_uint_eq(grain, GRAIN);
	IS(cuMemCreate(&h, 0, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemCreate(&h, GRAIN + 1, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemCreate(&h, 32 << 20, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemCreate(NULL, GRAIN, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemCreate(&h, GRAIN, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	prop.location.id = 7;
	IS(cuMemCreate(&h, GRAIN, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	IS(cuMemCreate(&h, GRAIN, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuMemAddressReserve(&p, GRAIN / 2, 0, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	IS(cuMemAddressReserve(&p, GRAIN, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemAddressReserve(&p, 32ull << 40, 0, 0, 0),
		CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAddressReserve(&p, GRAIN, 1ull << 30, 0, 0));
	ck_assert_uint_eq(p % (1ull << 30), 0);
	OK(cuMemAddressReserve(&q, GRAIN, 0, p + (1ull << 40), 0));
	ck_assert_uint_eq(q, p + (1ull << 40));
}
END_TEST

/* A large window costs nothing; what is mapped in it is found. */
START_TEST(window)
{
	CUdeviceptr p = soft_reserve(1ull << 40);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	size_t spots[] = { 0, 1, 16383, 16384, 16777215, 9999999 };
	uint32_t word;
	size_t i;

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	OK(cuMemsetD32_v2(p, 77, GRAIN / 4));
	for (i = 1; i < sizeof(spots) / sizeof(spots[0]); i++) {
		OK(cuMemMap(p + spots[i] * GRAIN, GRAIN, 0, h, 0));
		OK(soft_access(p + spots[i] * GRAIN, GRAIN, READ));
		OK(cuMemcpyDtoH_v2(&word, p + spots[i] * GRAIN + 4, 4));
		ck_assert_uint_eq(word, 77);
	}
	IS(cuMemcpyDtoH_v2(&word, p + 5 * GRAIN, 4), CUDA_ERROR_INVALID_VALUE);
	soft_expect_silence();
}
END_TEST

/* Queued work finds its memory gone: reported, and the context is dead. */
START_TEST(unmap_in_flight)
{
	CUdeviceptr p = soft_reserve(GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	CUstream s = soft_stream();
	void *pin = soft_pinned(GRAIN);

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	OK(cuMemcpyHtoDAsync_v2(p, pin, GRAIN, s));
	OK(cuMemUnmap(p, GRAIN));
	soft_expect_report("unmap");
	IS(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
	soft_expect_report("access");
	IS(cuMemFreeHost(pin), CUDA_ERROR_ILLEGAL_ADDRESS);
	IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(unmap_that_waits)
{
	CUdeviceptr p = soft_reserve(GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	CUstream s = soft_stream();
	void *pin = soft_pinned(GRAIN);

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	OK(cuMemcpyHtoDAsync_v2(p, pin, GRAIN, s));
	OK(cuMemUnmap(p, GRAIN));
	ck_assert_uint_ge(softcuda_now_ns(), GRAIN);
	OK(cuStreamSynchronize(s));
	soft_expect_silence();
}
END_TEST

START_TEST(alias_limit)
{
	CUdeviceptr p = soft_reserve(8 * GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	int i;

	for (i = 0; i < 4; i++)
		OK(cuMemMap(p + i * GRAIN, GRAIN, 0, h, 0));
	for (i = 0; i < 3; i++)
		OK(soft_access(p + i * GRAIN, GRAIN, READ));
	IS(soft_access(p + 3 * GRAIN, GRAIN, READ), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemUnmap(p, GRAIN));
	OK(soft_access(p + 3 * GRAIN, GRAIN, READ));
}
END_TEST

START_TEST(accounting)
{
	size_t total, before, now;
	CUdeviceptr p = soft_reserve(GRAIN);
	CUmemGenericAllocationHandle h, again;

	OK(cuMemGetInfo_v2(&before, &total));
	ck_assert_uint_eq(total, 16 << 20);
	h = soft_create(GRAIN);
	OK(cuMemGetInfo_v2(&now, &total));
	ck_assert_uint_eq(before - now, GRAIN);
	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(cuMemRelease(h));
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 100)));
	OK(cuMemUnmap(p, GRAIN));
	OK(cuMemGetInfo_v2(&now, NULL));
	ck_assert_uint_eq(before - now, GRAIN);
	OK(cuMemRelease(again));
	OK(cuMemGetInfo_v2(&now, NULL));
	ck_assert_uint_eq(now, before);
}
END_TEST

/* New memory is no zeros. */
START_TEST(poison)
{
	CUdeviceptr p = soft_reserve(GRAIN);
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	uint32_t word;

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, READ));
	OK(cuMemcpyDtoH_v2(&word, p + 40, 4));
	ck_assert_uint_eq(word, 0x7fc0dead);
}
END_TEST

START_TEST(without)
{
	CUmemGenericAllocationHandle h;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUdeviceptr p;
	int can = -1;

	OK(cuDeviceGetAttribute(&can, 102, 0));
	ck_assert_int_eq(can, 0);
	IS(cuMemCreate(&h, GRAIN, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuMemAddressReserve(&p, GRAIN, 0, 0, 0), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(attributes)
{
	CUdeviceptr p = soft_reserve(4 * GRAIN), value;
	CUmemGenericAllocationHandle h = soft_create(GRAIN);
	uint64_t size, id, other;
	uint32_t flags;

	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(cuMemMap(p + GRAIN, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	OK(cuPointerGetAttribute(&value,
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + GRAIN + 7));
	ck_assert_uint_eq(value, p);
	OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
	ck_assert_uint_eq(size, 4 * GRAIN);
	OK(cuPointerGetAttribute(&value,
		CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, p + GRAIN + 7));
	ck_assert_uint_eq(value, p + GRAIN);
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, p));
	OK(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID,
		p + GRAIN));
	ck_assert_uint_eq(id, other);
	OK(cuPointerGetAttribute(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p));
	ck_assert_uint_eq(flags, WRITE);
	IS(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
		p + 3 * GRAIN), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* Host memory that the device and the CPU see at one address. */
START_TEST(host_memory)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 },
	};
	CUmemAccessDesc d = {
		.location = prop.location, .flags = WRITE,
	};
	CUdeviceptr p = soft_reserve(GRAIN), q = soft_alloc(GRAIN);
	CUmemGenericAllocationHandle h;
	struct softcuda_stats st;
	size_t before, after;

	OK(cuMemGetInfo_v2(&before, NULL));
	OK(cuMemCreate(&h, GRAIN, &prop, 0));
	OK(cuMemGetInfo_v2(&after, NULL));
	ck_assert_uint_eq(before, after);
	OK(cuMemMap(p, GRAIN, 0, h, 0));
	OK(soft_access(p, GRAIN, WRITE));
	OK(cuMemsetD8_v2(p, 5, GRAIN));
	OK(cuCtxSynchronize());
#ifdef __SANITIZE_THREAD__
	IS(cuMemSetAccess(p, GRAIN, &d, 1), CUDA_ERROR_NOT_SUPPORTED);
#else
	OK(cuMemSetAccess(p, GRAIN, &d, 1));
	ck_assert_int_eq(*(unsigned char *)(uintptr_t)(p + 9), 5);
	memset((void *)(uintptr_t)p, 6, GRAIN);
#endif
	OK(cuMemcpyDtoDAsync_v2(q, p, GRAIN, NULL));
	OK(cuCtxSynchronize());
	softcuda_get_stats(&st);
	ck_assert_uint_eq(st.h2d_bytes, GRAIN);
	OK(cuMemUnmap(p, GRAIN));
	OK(cuMemRelease(h));
	/* Device memory is out of the CPU's reach. */
	h = soft_create(GRAIN);
	OK(cuMemMap(p, GRAIN, 0, h, 0));
	ck_assert_int_ne(cuMemSetAccess(p, GRAIN, &d, 1), CUDA_SUCCESS);
	soft_expect_silence();
}
END_TEST

static void setup_other(void)
{
	soft_env();
	setenv("SOFTCUDA_MAP_PREFIX", "1", 1);
	setenv("SOFTCUDA_VMM_RANGE", "1", 1);
	setenv("SOFTCUDA_VMM_SYNC_MEMOPS", "1", 1);
	soft_open();
}

/* Two handles side by side, one of them in part, then a gap. */
static void map_two(CUdeviceptr p)
{
	OK(cuMemMap(p, GRAIN, 0, soft_create(GRAIN), 0));
	OK(cuMemMap(p + 3 * GRAIN, GRAIN, 0, soft_create(GRAIN), 0));
}

START_TEST(range_of_one_mapping)
{
	CUdeviceptr p = soft_reserve(4 * GRAIN), base;
	CUmemGenericAllocationHandle h = soft_create(2 * GRAIN);
	unsigned on = 1;
	size_t size;

	map_two(p);
	IS(cuMemMap(p + GRAIN, GRAIN, 0, h, 0), CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("map");
	OK(cuMemMap(p + GRAIN, 2 * GRAIN, 0, h, 0));
	OK(cuMemGetAddressRange_v2(&base, &size, p + GRAIN));
	ck_assert_uint_eq(base, p + GRAIN);
	ck_assert_uint_eq(size, 2 * GRAIN);
	IS(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p),
		CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(range_of_all_mappings)
{
	CUdeviceptr p = soft_reserve(4 * GRAIN), base;
	CUmemGenericAllocationHandle h = soft_create(2 * GRAIN);
	unsigned on = 1;
	size_t size;

	map_two(p);
	/* In part: the rest of the handle is mapped nowhere. */
	OK(cuMemMap(p + GRAIN, GRAIN, 0, h, 0));
	IS(cuMemMap(p + 2 * GRAIN, 3 * GRAIN, 0, h, 0),
		CUDA_ERROR_INVALID_VALUE);
	soft_expect_report("map");
	OK(cuMemGetAddressRange_v2(&base, &size, p + GRAIN + 1));
	ck_assert_uint_eq(base, p);
	ck_assert_uint_eq(size, 2 * GRAIN);
	OK(soft_access(p, 2 * GRAIN, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(cuMemsetD8_v2(p, 1, 2 * GRAIN));
	OK(cuCtxSynchronize());
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	OK(cuMemUnmap(p, 2 * GRAIN));
	soft_expect_silence();
}
END_TEST

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { map_rules, unmap_rules, rights, sizes, window,
			unmap_in_flight, accounting, poison, attributes } },
		{ setup_limit, { alias_limit } },
		{ setup_waits, { unmap_that_waits } },
		{ setup_without, { without } },
		{ setup_host, { host_memory } },
		{ setup, { range_of_one_mapping } },
		{ setup_other, { range_of_all_mappings } },
	};

	return soft_run_cases("softcuda_vmm", cases,
		sizeof(cases) / sizeof(cases[0]));
}
