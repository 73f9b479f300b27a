/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of cuMemCreate belongs to no context: it is written in one that is
 * destroyed then, unmapped while there is none, and read in the next.
 */
#include "test/e2e/e2e_vmm.h"

enum { NR = 10 };

static struct e2e_vmm v;
static CUdevice dev;
static CUdeviceptr base;
static size_t size = 2u << 20;
static CUmemGenericAllocationHandle handle[NR];
static unsigned char *model[NR];

static CUcontext open_context(void)
{
	CUcontext ctx;

	CU(cuCtxCreate, &ctx, NULL, 0, dev);
	e2e_vmm_open(&v, dev);
	return ctx;
}

static void expect(int i, CUdeviceptr out, const char *when)
{
	CUdeviceptr p = base + size * (size_t)i;
	uint32_t got = e2e_digest_now(v.digest, 0, out, p, size, 3);

	if (got != e2e_digest(model[i], size, 3))
		E2E_FAIL("handle %d has other bytes %s", i, when);
}

int main(void)
{
	uint64_t seed = 5, hash = E2E_HASH;
	CUdeviceptr out;
	CUcontext ctx;

	CU(cuInit, 0);
	CU(cuDeviceGet, &dev, 0);
	ctx = open_context();
	size = (size + v.grain - 1) / v.grain * v.grain;
	base = e2e_vmm_reserve(size * NR);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (int i = 0; i < NR; i++) {
		handle[i] = e2e_vmm_create(&v, size);
		model[i] = e2e_host(size);
		e2e_fill_random(model[i], size, &seed);
		e2e_vmm_map(&v, base + size * (size_t)i, size, handle[i]);
		CU(cuMemcpyHtoD, base + size * (size_t)i, model[i], size);
		expect(i, out, "at first");
	}
	CU(cuCtxDestroy, ctx);
	CU(cuMemUnmap, base, size);
	ctx = open_context();
	out = e2e_alloc(E2E_DIGEST_SIZE);
	e2e_vmm_map(&v, base, size, handle[0]);
	for (int i = 0; i < NR; i++) {
		expect(i, out, "in the second context");
		CU(cuMemcpyDtoH, model[i], base + size * (size_t)i, size);
		hash = e2e_hash(hash, model[i], size);
		free(model[i]);
	}
	CU(cuCtxDestroy, ctx);
	CU(cuMemUnmap, base, size * NR);
	for (int i = 0; i < NR; i++)
		CU(cuMemRelease, handle[i]);
	CU(cuMemAddressFree, base, size * NR);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	return 0;
}
