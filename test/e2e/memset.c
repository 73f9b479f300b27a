/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memsets of all widths, at odd places, sync and async, against a model of the
 * memory on the host.
 */
#include "test/e2e/e2e_util.h"

enum { SIZE = 3 << 20, ROUNDS = 60 };

static unsigned char model[SIZE], got[SIZE];

static void set_model(size_t at, const void *value, unsigned int width,
	size_t n)
{
	for (size_t i = 0; i < n; i++)
		memcpy(model + at + i * width, value, width);
}

static void one(CUdeviceptr p, uint64_t *seed, CUstream s)
{
	unsigned int width = 1u << e2e_random(seed) % 3;
	size_t at = e2e_random(seed) % (SIZE - 8) / width * width;
	size_t n = e2e_random(seed) % ((SIZE - at) / width) + 1;
	uint32_t v = (uint32_t)e2e_random(seed);
	int async = (int)(e2e_random(seed) & 1);

	set_model(at, &v, width, n);
	if (width == 1 && async)
		CU(cuMemsetD8Async, p + at, (unsigned char)v, n, s);
	else if (width == 1)
		CU(cuMemsetD8, p + at, (unsigned char)v, n);
	else if (width == 2 && async)
		CU(cuMemsetD16Async, p + at, (unsigned short)v, n, s);
	else if (width == 2)
		CU(cuMemsetD16, p + at, (unsigned short)v, n);
	else if (async)
		CU(cuMemsetD32Async, p + at, v, n, s);
	else
		CU(cuMemsetD32, p + at, v, n);
}

int main(void)
{
	CUdevice dev = e2e_open();
	CUdeviceptr p = e2e_alloc(SIZE);
	uint64_t seed = 11;
	CUstream s;

	CU(cuStreamCreate, &s, CU_STREAM_DEFAULT);
	CU(cuMemsetD8, p, 0, SIZE);
	for (int i = 0; i < ROUNDS; i++) {
		one(p, &seed, s);
		if (i % 10 != 9)
			continue;
		CU(cuCtxSynchronize);
		CU(cuMemcpyDtoH, got, p, SIZE);
		for (size_t j = 0; j < SIZE; j++)
			if (got[j] != model[j])
				E2E_FAIL("round %d: byte %zu is %#x, not %#x",
					i, j, got[j], model[j]);
	}
	if (cuMemsetD32(p + 2, 0, 1) != CUDA_ERROR_INVALID_VALUE
	    || cuMemsetD16(p + 1, 0, 1) != CUDA_ERROR_INVALID_VALUE)
		E2E_FAIL("a memset at a wrong alignment was taken");
	CU(cuMemsetD8, p, 0, 0);
	printf("checksum: %016llx\n",
		(unsigned long long)e2e_hash(E2E_HASH, got, SIZE));
	CU(cuStreamDestroy, s);
	CU(cuMemFree, p);
	e2e_close(dev);
	return 0;
}
