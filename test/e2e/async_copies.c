/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies: from pageable memory that is overwritten at once, from
 * and to pinned and registered memory, chained on the device, by the calls
 * that find out the direction themselves.
 */
#include "test/e2e/e2e_util.h"

#include <sys/mman.h>

enum { SIZE = 1 << 20, PARTS = 8 };

static CUstream stream;
static CUdeviceptr dev_a, dev_b;
static uint64_t hash = E2E_HASH;

static void same(const void *got, const void *want, size_t size,
	const char *what)
{
	if (memcmp(got, want, size))
		E2E_FAIL("%s: the bytes differ", what);
	hash = e2e_hash(hash, got, size);
}

/* The driver takes pageable bytes before the call returns. */
static void pageable(void)
{
	unsigned char *part = e2e_host(SIZE / PARTS);
	unsigned char *want = e2e_host(SIZE), *got = e2e_host(SIZE);
	uint64_t seed = 1;

	for (size_t i = 0; i < PARTS; i++) {
		e2e_fill_random(part, SIZE / PARTS, &seed);
		memcpy(want + i * (SIZE / PARTS), part, SIZE / PARTS);
		CU(cuMemcpyHtoDAsync, dev_a + i * (SIZE / PARTS), part,
			SIZE / PARTS, stream);
	}
	CU(cuMemcpyDtoHAsync, got, dev_a, SIZE, stream);
	CU(cuStreamSynchronize, stream);
	same(got, want, SIZE, "pageable");
	free(part);
	free(want);
	free(got);
}

static void pinned(void)
{
	unsigned char *in, *out;
	uint64_t seed = 2;
	CUdeviceptr alias;
	unsigned int flags;

	CU(cuMemAllocHost, (void **)&in, SIZE);
	CU(cuMemHostAlloc, (void **)&out, SIZE, CU_MEMHOSTALLOC_PORTABLE);
	CU(cuMemHostGetDevicePointer, &alias, out, 0);
	CU(cuMemHostGetFlags, &flags, out);
	if (!(flags & CU_MEMHOSTALLOC_PORTABLE))
		E2E_FAIL("flags of pinned memory are %#x", flags);
	e2e_fill_random(in, SIZE, &seed);
	CU(cuMemcpyHtoDAsync, dev_a, in, SIZE, stream);
	CU(cuMemcpyDtoDAsync, dev_b + 64, dev_a, SIZE - 64, stream);
	CU(cuMemcpyHtoDAsync, dev_b, in, 64, stream);
	CU(cuMemcpyDtoHAsync, out, dev_b, SIZE, stream);
	CU(cuStreamSynchronize, stream);
	same(out, in, 64, "pinned, start");
	same(out + 64, in, SIZE - 64, "pinned");
	CU(cuMemFreeHost, in);
	CU(cuMemFreeHost, out);
}

static void registered(void)
{
	unsigned char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *want = e2e_host(SIZE);
	uint64_t seed = 3;

	if (p == MAP_FAILED)
		E2E_FAIL("no memory");
	e2e_fill_random(p, SIZE, &seed);
	memcpy(want, p, SIZE);
	CU(cuMemHostRegister, p, SIZE, CU_MEMHOSTREGISTER_PORTABLE);
	if (cuMemHostRegister(p, SIZE, 0)
	    != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		E2E_FAIL("registered twice");
	CU(cuMemcpyHtoDAsync, dev_a, p, SIZE, stream);
	CU(cuStreamSynchronize, stream);
	memset(p, 0, SIZE);
	CU(cuMemcpyDtoHAsync, p, dev_a, SIZE, stream);
	CU(cuStreamSynchronize, stream);
	same(p, want, SIZE, "registered");
	CU(cuMemHostUnregister, p);
	if (cuMemHostUnregister(p) != CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
		E2E_FAIL("unregistered twice");
	munmap(p, SIZE);
	free(want);
}

/* cuMemcpy looks at the addresses. */
static void unified(void)
{
	unsigned char *in = e2e_host(SIZE), *out = e2e_host(SIZE);
	uint64_t seed = 4;

	e2e_fill_random(in, SIZE, &seed);
	CU(cuMemcpy, dev_a, (CUdeviceptr)(uintptr_t)in, SIZE);
	CU(cuMemcpyAsync, dev_b, dev_a, SIZE, stream);
	CU(cuStreamSynchronize, stream);
	CU(cuMemcpy, (CUdeviceptr)(uintptr_t)out, dev_b, SIZE);
	same(out, in, SIZE, "unified");
	CU(cuMemcpyHtoD, dev_a, in, 0);
	free(in);
	free(out);
}

static void refused(void)
{
	unsigned char byte = 0;

	if (cuMemcpyHtoD(dev_a, NULL, 1) != CUDA_ERROR_INVALID_VALUE
	    || cuMemcpyHtoD(0, &byte, 1) != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("a copy from or to nowhere was taken");
}

int main(void)
{
	CUdevice dev = e2e_open();

	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	dev_a = e2e_alloc(SIZE);
	dev_b = e2e_alloc(SIZE);
	pageable();
	pinned();
	registered();
	unified();
	refused();
	printf("checksum: %016llx\n", (unsigned long long)hash);
	CU(cuMemFree, dev_a);
	CU(cuMemFree, dev_b);
	CU(cuMemFree, 0);
	CU(cuStreamDestroy, stream);
	e2e_close(dev);
	return 0;
}
