/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a network card was given: by descriptor, or with --address by
 * address after SYNC_MEMOPS.  From then on the card and kernels take turns at
 * it, while kernels walk through more memory than a small device holds.  The
 * card reaches physical memory, so the bytes must stay where they were when it
 * was given them.  With --walks N kernels have walked so often before; with
 * --one there is an allocation only, no mapped memory.  With --refused the card
 * need not get them, and then all else goes on.  Where no software driver plays
 * the card, kernels read and write alone.
 */
#include <dlfcn.h>
#include <unistd.h>

#include "test/e2e/e2e_vmm.h"

enum { MAX = 64 };

static int (*card_open)(uint64_t address, uint64_t size);
static int (*card_read)(int fd, uint64_t offset, void *to, uint64_t n);
static int (*card_write)(int fd, uint64_t offset, const void *from,
	uint64_t n);

static struct e2e_vmm v;
static CUdeviceptr out;
static CUstream stream;
static uint64_t size = 3 << 20, weights = 8, rounds = 3, seed = 11;
static uint64_t address, refused, walks, one;
static CUdeviceptr weight[MAX];
static uint32_t digest[MAX];

/* What the card was given, and what is in it. */
struct shared {
	const char *name;
	CUdeviceptr p;
	int fd;			/* -1: no card here can reach it */
	uint32_t *model;
};

static void expect(struct shared *s, const char *what)
{
	uint32_t *back = e2e_host(size);

	if (e2e_digest_now(v.digest, stream, out, s->p, size, 5)
	    != e2e_digest(s->model, size, 5))
		E2E_FAIL("%s: a kernel reads other bytes %s", s->name, what);
	CU(cuMemcpyDtoH, back, s->p, size);
	if (memcmp(back, s->model, size))
		E2E_FAIL("%s: a copy reads other bytes %s", s->name, what);
	memset(back, 0, size);
	if (s->fd >= 0 && (card_read(s->fd, 0, back, size)
	    || memcmp(back, s->model, size)))
		E2E_FAIL("%s: the card reads other bytes %s", s->name, what);
	free(back);
}

/* Kernels over all weights: on a small device other memory makes way. */
static void pressure(void)
{
	for (uint64_t i = 0; i < weights; i++)
		if (e2e_digest_now(v.digest, stream, out, weight[i], size, i)
		    != digest[i])
			E2E_FAIL("weights %d are wrong", (int)i);
}

static void turns(struct shared *s)
{
	size_t half = size / 2 & ~(size_t)15;

	expect(s, "at first");
	for (uint64_t r = 0; r < rounds; r++) {
		pressure();
		expect(s, "under pressure");
		e2e_vmm_add(&v, stream, s->p, size, (uint32_t)r + 1);
		for (size_t i = 0; i < size / 4; i++)
			s->model[i] += (uint32_t)r + 1;
		CU(cuStreamSynchronize, stream);
		expect(s, "after a kernel wrote");
		pressure();
		e2e_fill_random((char *)s->model + half, 4096, &seed);
		if (s->fd < 0)
			CU(cuMemcpyHtoD, s->p + half, (char *)s->model + half,
				4096);
		else if (card_write(s->fd, half, (char *)s->model + half,
			 4096))
			E2E_FAIL("%s: the card cannot write", s->name);
		expect(s, "after the card wrote");
	}
	if (s->fd >= 0)
		close(s->fd);
	free(s->model);
}

static void upload(struct shared *s)
{
	s->fd = -1;
	s->model = e2e_host(size);
	e2e_fill_random(s->model, size, &seed);
	CU(cuMemcpyHtoD, s->p, s->model, size);
	/* Out of sight, where there is not enough room for it. */
	pressure();
}

/* The request was not granted, which is an answer only with --refused. */
static void no(struct shared *s, CUresult r)
{
	if (!refused)
		E2E_FAIL("%s: the card cannot have it: %s", s->name,
			e2e_error_name(r));
	expect(s, "after it was refused");
}

/* By descriptor. */
static void by_descriptor(struct shared *s, CUdevice dev)
{
	int can = 0, fd = -1;
	CUresult r;

	CU(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
		dev);
	if (!can)
		return;
	r = cuMemGetHandleForAddressRange(&fd, s->p, size,
		CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
	if (r != CUDA_SUCCESS)
		no(s, r);
	else if (card_read)
		s->fd = fd;
	else
		close(fd);
}

/* By address, as a kernel module does it that was told only that. */
static void by_address(struct shared *s, size_t unit)
{
	unsigned int on = 1;
	CUresult r;

	for (size_t at = 0; at < size; at += unit) {
		r = cuPointerSetAttribute(&on,
			CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, s->p + at);
		/* Drivers refuse this for memory of cuMemCreate. */
		if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_SUPPORTED) {
			no(s, r);
			return;
		}
	}
	pressure();
	if (!card_open)
		return;
	s->fd = card_open(s->p, size);
	if (s->fd < 0)
		no(s, CUDA_ERROR_NOT_SUPPORTED);
}

static CUdeviceptr map(CUmemGenericAllocationHandle *h, size_t unit)
{
	CUdeviceptr p = e2e_vmm_reserve(size);

	for (size_t i = 0; i < size / unit; i++) {
		h[i] = e2e_vmm_create(&v, unit);
		e2e_vmm_map(&v, p + i * unit, unit, h[i]);
	}
	return p;
}

static void unmap(CUdeviceptr p, CUmemGenericAllocationHandle *h, size_t unit)
{
	for (size_t i = 0; i < size / unit; i++) {
		CU(cuMemUnmap, p + i * unit, unit);
		CU(cuMemRelease, h[i]);
	}
	CU(cuMemAddressFree, p, size);
}

static void open_card(CUdevice dev)
{
	int rdma = 0;

	card_open = (int (*)(uint64_t, uint64_t))
		dlsym(RTLD_DEFAULT, "softcuda_dma_open");
	card_read = (int (*)(int, uint64_t, void *, uint64_t))
		dlsym(RTLD_DEFAULT, "softcuda_dma_read");
	card_write = (int (*)(int, uint64_t, const void *, uint64_t))
		dlsym(RTLD_DEFAULT, "softcuda_dma_write");
	CU(cuDeviceGetAttribute, &rdma,
		CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
		dev);
	v.prop.allocFlags.gpuDirectRDMACapable = rdma != 0;
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "bytes", &size, 0 }, { "weights", &weights, 0 },
		{ "rounds", &rounds, 0 }, { "address", &address, 1 },
		{ "refused", &refused, 1 },
		{ "walks", &walks, 0 }, { "one", &one, 1 },
	};
	struct shared plain = { "an allocation", 0, -1, NULL };
	struct shared mapped = { "mapped memory", 0, -1, NULL };
	CUmemGenericAllocationHandle handle[MAX];
	CUdevice dev;
	size_t unit;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	open_card(dev);
	unit = v.grain > 1 << 20 ? v.grain : 1 << 20;
	size = (size + unit - 1) / unit * unit;
	if (weights > MAX || size / unit > MAX)
		E2E_FAIL("too many weights, or too large");
	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (uint64_t i = 0; i < weights; i++) {
		weight[i] = e2e_alloc(size);
		digest[i] = e2e_upload_random(weight[i], size, i, &seed);
	}
	plain.p = e2e_alloc(size);
	upload(&plain);
	if (!one) {
		mapped.p = map(handle, unit);
		upload(&mapped);
	}
	for (uint64_t i = 0; i < walks; i++)
		pressure();
	if (address) {
		by_address(&plain, size);
		if (!one)
			by_address(&mapped, unit);
	} else {
		by_descriptor(&plain, dev);
		if (!one)
			by_descriptor(&mapped, dev);
	}
	turns(&plain);
	if (!one)
		turns(&mapped);
	CU(cuMemFree, plain.p);
	if (!one)
		unmap(mapped.p, handle, unit);
	for (uint64_t i = 0; i < weights; i++) {
		CU(cuMemFree, weight[i]);
		printf("weights %d: %08x\n", (int)i, digest[i]);
	}
	CU(cuMemFree, out);
	e2e_close(dev);
	return 0;
}
