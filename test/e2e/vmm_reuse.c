/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes belong to the handle: it is unmapped and mapped elsewhere, its old
 * place taken by others or given back; it is released while mapped and found
 * again by its address; it is mapped at two addresses.  With --handles of
 * --unit bytes the total is more than a small device holds.
 */
#include "test/e2e/e2e_vmm.h"

enum { MAX = 32 };

static struct e2e_vmm v;
static CUdeviceptr out;
static CUstream stream;
static size_t unit;
static int nr;
static CUmemGenericAllocationHandle handle[MAX];
static unsigned char *model[MAX];

static void expect(CUdeviceptr p, int i, const char *what)
{
	uint32_t got = e2e_digest_now(v.digest, stream, out, p, unit, 7);
	unsigned char *back = e2e_host(unit);

	if (got != e2e_digest(model[i], unit, 7))
		E2E_FAIL("%s: a kernel reads other bytes in handle %d", what,
			i);
	CU(cuMemcpyDtoH, back, p, unit);
	if (memcmp(back, model[i], unit))
		E2E_FAIL("%s: handle %d has other bytes", what, i);
	free(back);
}

static void change(CUdeviceptr p, int i, uint32_t by)
{
	uint32_t *w = (uint32_t *)model[i];

	e2e_vmm_add(&v, stream, p, unit, by);
	for (size_t k = 0; k < unit / 4; k++)
		w[k] += by;
	CU(cuStreamSynchronize, stream);
}

static void expect_attribute(CUdeviceptr p, CUpointer_attribute attr,
	uint64_t want)
{
	uint64_t got = 0;

	CU(cuPointerGetAttribute, &got, attr, p);
	if (got != want)
		E2E_FAIL("pointer attribute %d is %#llx, not %#llx", (int)attr,
			(unsigned long long)got, (unsigned long long)want);
}

/* A pointer tells its reservation and its mapping apart. */
static void attributes(CUdeviceptr a)
{
	for (int i = 0; i < nr; i++) {
		CUdeviceptr p = a + unit * (size_t)i;

		expect_attribute(p + 5, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
			a);
		expect_attribute(p + 5, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
			unit * (size_t)nr);
		expect_attribute(p + 5, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
			p);
		expect_attribute(p + 5, CU_POINTER_ATTRIBUTE_MAPPING_SIZE,
			unit);
		expect_attribute(p, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			CU_MEMORYTYPE_DEVICE);
		expect_attribute(p, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
			(uint64_t)v.prop.location.id);
	}
}

/* All handles in a row, written there. */
static CUdeviceptr fill(void)
{
	CUdeviceptr a = e2e_vmm_reserve(unit * (size_t)nr);
	uint64_t seed = 3;

	for (int i = 0; i < nr; i++) {
		handle[i] = e2e_vmm_create(&v, unit);
		model[i] = e2e_host(unit);
		e2e_vmm_map(&v, a + unit * (size_t)i, unit, handle[i]);
		e2e_fill_random(model[i], unit, &seed);
		CU(cuMemcpyHtoD, a + unit * (size_t)i, model[i], unit);
		change(a + unit * (size_t)i, i, (uint32_t)i + 1);
	}
	return a;
}

/* In the reverse order, in place: every handle takes another's place. */
static void reverse(CUdeviceptr a)
{
	CU(cuMemUnmap, a, unit * (size_t)nr);
	for (int i = 0; i < nr; i++)
		e2e_vmm_map(&v, a + unit * (size_t)(nr - 1 - i), unit,
			handle[i]);
	for (int i = 0; i < nr; i++)
		expect(a + unit * (size_t)(nr - 1 - i), i, "reversed");
	for (int i = 0; i < nr; i++)
		change(a + unit * (size_t)(nr - 1 - i), i, 5);
}

/* Elsewhere, after the reservation they were in is gone. */
static CUdeviceptr elsewhere(CUdeviceptr a)
{
	CUdeviceptr b;

	for (int i = 0; i < nr; i++)
		CU(cuMemUnmap, a + unit * (size_t)i, unit);
	CU(cuMemAddressFree, a, unit * (size_t)nr);
	b = e2e_vmm_reserve(2 * unit * (size_t)nr);
	for (int i = 0; i < nr; i++)
		e2e_vmm_map(&v, b + 2 * unit * (size_t)i, unit, handle[i]);
	for (int i = 0; i < nr; i++)
		expect(b + 2 * unit * (size_t)i, i, "elsewhere");
	/* Off and back to the same place. */
	for (int i = 0; i < nr; i += 2) {
		CU(cuMemUnmap, b + 2 * unit * (size_t)i, unit);
		e2e_vmm_map(&v, b + 2 * unit * (size_t)i, unit, handle[i]);
	}
	for (int i = 0; i < nr; i++)
		expect(b + 2 * unit * (size_t)i, i, "back again");
	return b;
}

/* The mapping keeps released memory alive, and gives its handle again. */
static void released(CUdeviceptr b)
{
	CUmemGenericAllocationHandle again, more;
	CUmemAllocationProp back;

	for (int i = 0; i < nr; i++)
		CU(cuMemRelease, handle[i]);
	for (int i = 0; i < nr; i++)
		expect(b + 2 * unit * (size_t)i, i, "released");
	for (int i = 0; i < nr; i += 2) {
		CUdeviceptr p = b + 2 * unit * (size_t)i;

		CU(cuMemRetainAllocationHandle, &again,
			(void *)(uintptr_t)(p + unit - 1));
		CU(cuMemRetainAllocationHandle, &more, (void *)(uintptr_t)p);
		if (more != again)
			E2E_FAIL("two handles for one mapping");
		CU(cuMemRelease, more);
		CU(cuMemGetAllocationPropertiesFromHandle, &back, again);
		if (back.location.id != v.prop.location.id)
			E2E_FAIL("a handle forgot its device");
		CU(cuMemUnmap, p, unit);
		e2e_vmm_map(&v, p + unit, unit, again);
		expect(p + unit, i, "retained");
		CU(cuMemRelease, again);
	}
}

/* One handle at two addresses; what one writes the other reads. */
static void twice(void)
{
	CUdeviceptr p = e2e_vmm_reserve(3 * unit);
	CUmemGenericAllocationHandle h = e2e_vmm_create(&v, unit);

	e2e_vmm_map(&v, p, unit, h);
	CU(cuMemcpyHtoD, p, model[0], unit);
	e2e_vmm_map(&v, p + 2 * unit, unit, h);
	expect(p, 0, "first address");
	expect(p + 2 * unit, 0, "second address");
	change(p + 2 * unit, 0, 9);
	expect(p, 0, "written through the other address");
	CU(cuMemUnmap, p, unit);
	expect(p + 2 * unit, 0, "first address gone");
	e2e_vmm_map(&v, p + unit, unit, h);
	CU(cuMemRelease, h);
	expect(p + unit, 0, "third address");
	CU(cuMemUnmap, p + unit, 2 * unit);
	CU(cuMemAddressFree, p, 3 * unit);
}

int main(int argc, char **argv)
{
	uint64_t handles = 8, size = 2u << 20, hash = E2E_HASH;
	struct e2e_option opts[] = {
		{ "handles", &handles, 0 }, { "unit", &size, 0 },
	};
	CUdevice dev;
	CUdeviceptr a;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (handles < 2 || handles > MAX)
		E2E_FAIL("--handles is from 2 to %d", MAX);
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	nr = (int)handles;
	unit = (size + v.grain - 1) / v.grain * v.grain;
	out = e2e_alloc(E2E_DIGEST_SIZE);
	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	a = fill();
	attributes(a);
	reverse(a);
	a = elsewhere(a);
	released(a);
	twice();
	/* None of this is memory of cuMemAlloc. */
	if (cuMemFree(a + unit) != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("cuMemFree took a mapping");
	for (int i = 0; i < nr; i++) {
		hash = e2e_hash(hash, model[i], unit);
		CU(cuMemUnmap, a + 2 * unit * (size_t)i +
			(i % 2 ? 0 : unit), unit);
		free(model[i]);
	}
	CU(cuMemAddressFree, a, 2 * unit * (size_t)nr);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	CU(cuMemFree, out);
	CU(cuStreamDestroy, stream);
	e2e_close(dev);
	return 0;
}
