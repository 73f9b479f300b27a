/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management as allocators use it: a reservation tiled by many
 * handles, one handle at two addresses, rights that go with the mapping, copies
 * that they forbid, handles released while they are mapped.
 */
#include "test/e2e/e2e_util.h"

static size_t grain;
static CUmemAllocationProp prop;
static CUmemAccessDesc rights;

static CUmemGenericAllocationHandle create(size_t size)
{
	CUmemGenericAllocationHandle h;

	CU(cuMemCreate, &h, size, &prop, 0);
	return h;
}

static CUdeviceptr reserve(size_t size)
{
	CUdeviceptr p;

	CU(cuMemAddressReserve, &p, size, 0, 0, 0);
	if (p % grain)
		E2E_FAIL("a reservation at %#llx", p);
	return p;
}

static void expect_word(CUdeviceptr p, uint32_t want, const char *what)
{
	uint32_t got;

	CU(cuMemcpyDtoH, &got, p, sizeof(got));
	if (got != want)
		E2E_FAIL("%s: %#x, not %#x", what, got, want);
}

/* Four handles side by side look like one allocation to a copy. */
static uint64_t tiled(void)
{
	size_t size = 4 * grain;
	CUdeviceptr p = reserve(size);
	CUmemGenericAllocationHandle h[4];
	unsigned char *to = e2e_host(size), *back = e2e_host(size);
	uint64_t seed = 5, hash;

	for (size_t i = 0; i < 4; i++) {
		h[i] = create(grain);
		CU(cuMemMap, p + i * grain, grain, 0, h[i], 0);
	}
	CU(cuMemSetAccess, p, size, &rights, 1);
	e2e_fill_random(to, size, &seed);
	CU(cuMemcpyHtoD, p, to, size);
	CU(cuMemcpyDtoH, back, p, size);
	if (memcmp(to, back, size))
		E2E_FAIL("a tiled range lost its bytes");
	CU(cuMemcpyDtoH, back, p + grain - 100, 200);
	if (memcmp(to + grain - 100, back, 200))
		E2E_FAIL("a copy across two handles is wrong");
	hash = e2e_hash(E2E_HASH, to, size);
	CU(cuMemUnmap, p, 2 * grain);
	CU(cuMemUnmap, p + 2 * grain, 2 * grain);
	for (size_t i = 0; i < 4; i++)
		CU(cuMemRelease, h[i]);
	CU(cuMemAddressFree, p, size);
	free(to);
	free(back);
	return hash;
}

/* One handle, two addresses, one set of bytes. */
static void aliased(void)
{
	CUmemGenericAllocationHandle h = create(grain);
	CUdeviceptr a = reserve(grain), b = reserve(grain);

	CU(cuMemMap, a, grain, 0, h, 0);
	CU(cuMemMap, b, grain, 0, h, 0);
	CU(cuMemSetAccess, a, grain, &rights, 1);
	CU(cuMemSetAccess, b, grain, &rights, 1);
	CU(cuMemsetD32, a, 0x12345678, grain / 4);
	CU(cuCtxSynchronize);
	expect_word(b + grain - 4, 0x12345678, "alias");
	CU(cuMemUnmap, a, grain);
	/* The memory lives as long as a mapping does. */
	CU(cuMemRelease, h);
	expect_word(b, 0x12345678, "released handle");
	CU(cuMemRetainAllocationHandle, &h, (void *)(uintptr_t)b);
	CU(cuMemUnmap, b, grain);
	/* Back at another address, without rights at first. */
	CU(cuMemMap, a, grain, 0, h, 0);
	CU(cuMemSetAccess, a, grain, &rights, 1);
	expect_word(a + 8, 0x12345678, "mapped again");
	CU(cuMemUnmap, a, grain);
	CU(cuMemRelease, h);
	CU(cuMemAddressFree, a, grain);
	CU(cuMemAddressFree, b, grain);
}

/* Memory is given back when it was both released and unmapped. */
static void accounted(void)
{
	size_t before, during, after, total;
	CUdeviceptr p = reserve(8 * grain);
	CUmemGenericAllocationHandle h;

	CU(cuMemGetInfo, &before, &total);
	h = create(8 * grain);
	CU(cuMemMap, p, 8 * grain, 0, h, 0);
	CU(cuMemRelease, h);
	CU(cuMemGetInfo, &during, &total);
	CU(cuMemUnmap, p, 8 * grain);
	CU(cuMemGetInfo, &after, &total);
	if (during > before || after < during)
		E2E_FAIL("free memory: %zu, %zu, %zu", before, during, after);
	CU(cuMemAddressFree, p, 8 * grain);
}

static void rights_of_range(CUdevice dev)
{
	CUmemGenericAllocationHandle h = create(grain);
	CUmemLocation where = { CU_MEM_LOCATION_TYPE_DEVICE, dev };
	CUdeviceptr p = reserve(grain);
	unsigned long long flags = 9;
	CUmemAllocationProp back;

	CU(cuMemMap, p, grain, 0, h, 0);
	CU(cuMemGetAccess, &flags, &where, p);
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
		E2E_FAIL("a new mapping has rights %llu", flags);
	CU(cuMemSetAccess, p, grain, &rights, 1);
	CU(cuMemGetAccess, &flags, &where, p);
	if (flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		E2E_FAIL("rights are %llu", flags);
	CU(cuMemGetAllocationPropertiesFromHandle, &back, h);
	if (back.location.type != CU_MEM_LOCATION_TYPE_DEVICE
	    || back.location.id != dev)
		E2E_FAIL("a handle forgot where it is");
	CU(cuMemUnmap, p, grain);
	CU(cuMemRelease, h);
	CU(cuMemAddressFree, p, grain);
}

static void refused(CUresult r, const char *what)
{
	if (r != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("%s: %s", what, e2e_error_name(r));
}

/* What no copy or memset may do with a part of a range, one kind each. */
static void forbidden(CUdeviceptr p, size_t size, int readable,
	void *host, CUdeviceptr other)
{
	CUDA_MEMCPY2D rows = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = other,
		.srcPitch = size / 4,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = p,
		.dstPitch = size / 4, .WidthInBytes = 64, .Height = 4,
	};

	refused(cuMemcpyHtoD(p, host, size), "written by the host");
	refused(cuMemcpyHtoDAsync(p, host, size, NULL), "the same, queued");
	refused(cuMemcpyDtoD(p, other, size), "written by a copy");
	refused(cuMemsetD8(p, 1, size), "filled");
	refused(cuMemsetD2D32(p, size / 4, 1, 8, 4), "filled by rows");
	refused(cuMemcpy2D(&rows), "written by rows");
	if (readable)
		return;
	refused(cuMemcpyDtoH(host, p, size), "read by the host");
	refused(cuMemcpyDtoD(other, p, size), "read by a copy");
}

/*
 * Three mappings side by side: the one in the middle has no rights, then may
 * be read, then is not there.  What is refused must not have been done in part.
 */
static void guarded(void)
{
	const size_t size = 3 * grain;
	CUmemAccessDesc look = rights, none = rights;
	CUmemGenericAllocationHandle h[3];
	CUdeviceptr p = reserve(size), other = e2e_alloc(size);
	void *host = e2e_host(size);

	look.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	none.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	for (int i = 0; i < 3; i++) {
		h[i] = create(grain);
		CU(cuMemMap, p + i * grain, grain, 0, h[i], 0);
	}
	CU(cuMemSetAccess, p, size, &rights, 1);
	CU(cuMemsetD32, p, 0x77777777, size / 4);
	CU(cuMemsetD32, other, 0x55555555, size / 4);
	CU(cuCtxSynchronize);
	CU(cuMemSetAccess, p + grain, grain, &none, 1);
	forbidden(p, size, 0, host, other);
	/* Some drivers have no such rights. */
	if (cuMemSetAccess(p + grain, grain, &look, 1) == CUDA_SUCCESS) {
		forbidden(p, size, 1, host, other);
		expect_word(p + grain, 0x77777777, "read only");
		CU(cuMemcpyDtoD, other, p, size);
		expect_word(other + size - 4, 0x77777777, "a copy of it");
		CU(cuCtxSynchronize);
	}
	CU(cuMemUnmap, p + grain, grain);
	forbidden(p, size, 0, host, other);
	CU(cuCtxSynchronize);
	expect_word(p, 0x77777777, "before the hole");
	expect_word(p + size - 4, 0x77777777, "behind the hole");
	CU(cuMemUnmap, p, grain);
	CU(cuMemUnmap, p + 2 * grain, grain);
	for (int i = 0; i < 3; i++)
		CU(cuMemRelease, h[i]);
	CU(cuMemAddressFree, p, size);
	CU(cuMemFree, other);
	free(host);
}

int main(void)
{
	CUdevice dev = e2e_open();
	uint64_t hash;
	int vmm;

	CU(cuDeviceGetAttribute, &vmm,
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, dev);
	if (!vmm) {
		fprintf(stderr, "no virtual memory management here\n");
		return 77;
	}
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = dev;
	rights.location = prop.location;
	rights.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CU(cuMemGetAllocationGranularity, &grain, &prop,
		CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	hash = tiled();
	aliased();
	accounted();
	rights_of_range(dev);
	guarded();
	printf("checksum: %016llx\n", (unsigned long long)hash);
	e2e_close(dev);
	return 0;
}
