/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the driver says of pointers: of the start and the middle of device
 * memory, of pinned, registered and plain host memory, of freed memory; ranges
 * of allocations; several attributes at once.
 */
#include "test/e2e/e2e_util.h"

#define SIZE (3 << 20)

static uint64_t get(CUdeviceptr p, CUpointer_attribute a, const char *what)
{
	uint64_t v = 0;
	CUresult r = cuPointerGetAttribute(&v, a, p);

	if (r != CUDA_SUCCESS)
		E2E_FAIL("%s: attribute %d: %s", what, a, e2e_error_name(r));
	return v;
}

static void expect(CUdeviceptr p, CUpointer_attribute a, uint64_t want,
	const char *what)
{
	uint64_t v = get(p, a, what);

	if (v != want)
		E2E_FAIL("%s: attribute %d is %#llx, not %#llx", what, a,
			(unsigned long long)v, (unsigned long long)want);
}

static void device_memory(CUdevice dev)
{
	CUdeviceptr p = e2e_alloc(SIZE), q = e2e_alloc(SIZE), base;
	CUcontext ctx;
	size_t size;

	CU(cuCtxGetCurrent, &ctx);
	for (size_t off = 0; off < SIZE; off += SIZE / 3 + 1) {
		const char *what = off ? "inside" : "at the start";

		expect(p + off, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			CU_MEMORYTYPE_DEVICE, what);
		expect(p + off, CU_POINTER_ATTRIBUTE_CONTEXT, (uintptr_t)ctx,
			what);
		expect(p + off, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + off,
			what);
		expect(p + off, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
			(uint64_t)dev, what);
		expect(p + off, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p,
			what);
		expect(p + off, CU_POINTER_ATTRIBUTE_RANGE_SIZE, SIZE, what);
		expect(p + off, CU_POINTER_ATTRIBUTE_IS_MANAGED, 0, what);
		expect(p + off, CU_POINTER_ATTRIBUTE_MAPPED, 1, what);
		CU(cuMemGetAddressRange, &base, &size, p + off);
		if (base != p || size != SIZE)
			E2E_FAIL("%s: range of %zu bytes at %+lld", what, size,
				(long long)(base - p));
	}
	if (get(p, CU_POINTER_ATTRIBUTE_BUFFER_ID, "first")
	    == get(q, CU_POINTER_ATTRIBUTE_BUFFER_ID, "second"))
		E2E_FAIL("two allocations of one number");
	CU(cuMemGetAddressRange, NULL, &size, p);
	CU(cuMemGetAddressRange, &base, NULL, p);
	CU(cuMemFree, q);
	CU(cuMemFree, p);
	if (cuMemGetAddressRange(&base, &size, p) == CUDA_SUCCESS)
		E2E_FAIL("freed memory has a range");
}

static void host_memory(void)
{
	size_t n = 65536;
	unsigned int flags;
	char *pinned, *plain = e2e_host(n);
	CUdeviceptr p;
	uint64_t v;

	CU(cuMemHostAlloc, (void **)&pinned, n, CU_MEMHOSTALLOC_PORTABLE
		| CU_MEMHOSTALLOC_DEVICEMAP);
	p = (uintptr_t)pinned;
	expect(p + 100, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_MEMORYTYPE_HOST,
		"pinned");
	expect(p + 100, CU_POINTER_ATTRIBUTE_HOST_POINTER, p + 100, "pinned");
	CU(cuMemHostGetFlags, &flags, pinned);
	if (!(flags & CU_MEMHOSTALLOC_PORTABLE))
		E2E_FAIL("flags %#x", flags);
	CU(cuMemFreeHost, pinned);
	if (cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	    (uintptr_t)plain) != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("plain memory has a type");
	CU(cuMemHostRegister, plain, n, CU_MEMHOSTREGISTER_DEVICEMAP);
	expect((uintptr_t)plain, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_MEMORYTYPE_HOST, "registered");
	CU(cuMemHostUnregister, plain);
	free(plain);
}

/* As a runtime library asks, of any pointer: unknown ones are no error. */
static void several(void)
{
	CUpointer_attribute attr[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_CONTEXT,
	};
	unsigned int type = 99;
	CUdeviceptr dptr = 99, p = e2e_alloc(1000);
	void *host = &type;
	unsigned char managed = 9;
	CUcontext ctx = NULL, want;
	void *out[] = { &type, &dptr, &host, &managed, &ctx };

	CU(cuPointerGetAttributes, 5, attr, out, p + 10);
	CU(cuCtxGetCurrent, &want);
	if (type != CU_MEMORYTYPE_DEVICE || dptr != p + 10 || host || managed
	    || ctx != want)
		E2E_FAIL("of device memory: type %u, managed %d", type,
			managed);
	CU(cuPointerGetAttributes, 5, attr, out, (uintptr_t)&type);
	if (type || dptr || host || managed || ctx)
		E2E_FAIL("of a variable: type %u", type);
	CU(cuMemFree, p);
}

/*
 * The same questions in a thread without a context.  Which of them a driver
 * answers is not written down, so runs are compared.
 */
static void nowhere(void)
{
	CUpointer_attribute attr[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE,
	};
	unsigned int type = 0;
	size_t range = 0, size = 0;
	void *out[] = { &type, &range };
	CUdeviceptr p = e2e_alloc(SIZE), base = 0;
	CUcontext ctx;
	CUresult r;

	CU(cuCtxPopCurrent, &ctx);
	r = cuMemGetAddressRange(&base, &size, p + 5);
	printf("range: %s, %zu bytes at %+lld\n", e2e_error_name(r), size,
		base ? (long long)(base - p) : 0);
	r = cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
	printf("one: %s, %zu bytes\n", e2e_error_name(r), size);
	r = cuPointerGetAttributes(2, attr, out, p);
	printf("two: %s, type %u, %zu bytes\n", e2e_error_name(r), type,
		range);
	CU(cuCtxPushCurrent, ctx);
	CU(cuMemFree, p);
}

int main(void)
{
	CUdevice dev = e2e_open();

	device_memory(dev);
	host_memory();
	several();
	nowhere();
	e2e_close(dev);
	printf("as expected\n");
	return 0;
}
