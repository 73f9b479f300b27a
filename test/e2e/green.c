/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of green contexts: each has a part of the multiprocessors.  Kernels
 * there change all memory there is on a small device while more is allocated and
 * uploaded, and again when it is walked through from an ordinary stream.  What
 * they leave must be what the host makes of it.  At first and at last the green
 * contexts are all that keeps the device's context alive.
 */
#include "test/e2e/e2e_vmm.h"

enum { MAX = 64, PARTS = 2 };

static struct e2e_vmm v;
static CUdeviceptr out;
static CUstream stream;
static uint64_t size = 2 << 20, buffers = 12, rounds = 2, seed = 31;

/* A buffer and what is in it. */
struct buffer {
	CUdeviceptr p;
	uint32_t *model;
};

static struct buffer buffer_create(void)
{
	struct buffer b = { e2e_alloc(size), e2e_host(size) };

	e2e_fill_random(b.model, size, &seed);
	CU(cuMemcpyHtoD, b.p, b.model, size);
	return b;
}

static void buffer_add(struct buffer *b, CUstream s)
{
	uint32_t by = (uint32_t)e2e_random(&seed);

	e2e_vmm_add(&v, s, b->p, size, by);
	for (size_t i = 0; i < size / 4; i++)
		b->model[i] += by;
}

static void buffer_check(struct buffer *b, int nr)
{
	if (e2e_digest_now(v.digest, stream, out, b->p, size, 5)
	    != e2e_digest(b->model, size, 5))
		E2E_FAIL("buffer %d is wrong", nr);
}

/* The parts, of about as many multiprocessors each. */
static void open_parts(CUdevice dev, CUgreenCtx *part, CUstream *s)
{
	CUdevResource all, some[PARTS];
	CUdevResourceDesc desc;
	unsigned int nr = PARTS;

	CU(cuDeviceGetDevResource, dev, &all, CU_DEV_RESOURCE_TYPE_SM);
	CU(cuDevSmResourceSplitByCount, some, &nr, &all, NULL, 0,
		all.sm.smCount / PARTS / 2);
	if (nr != PARTS)
		E2E_FAIL("%u parts", nr);
	for (int i = 0; i < PARTS; i++) {
		CU(cuDevResourceGenerateDesc, &desc, &some[i], 1);
		CU(cuGreenCtxCreate, &part[i], desc, dev,
			CU_GREEN_CTX_DEFAULT_STREAM);
		CU(cuGreenCtxStreamCreate, &s[i], part[i],
			CU_STREAM_NON_BLOCKING, 0);
	}
}

/* All memory is used by green streams when more of it is wanted. */
static void pressure(struct buffer *b, CUstream *s)
{
	uint64_t n = 0;

	for (; n < buffers; n++) {
		b[n] = buffer_create();
		for (uint64_t i = 0; i <= n; i++)
			buffer_add(&b[i], s[i % PARTS]);
	}
	/* Each has had its turn in one stream only: no order is missing. */
	for (uint64_t r = 0; r < rounds; r++) {
		for (int i = 0; i < PARTS; i++)
			CU(cuStreamSynchronize, s[i]);
		for (uint64_t i = 0; i < n; i++)
			buffer_check(&b[i], (int)i);
		for (uint64_t i = 0; i < n; i++)
			buffer_add(&b[i], s[i % PARTS]);
	}
}

/*
 * Green contexts are all that keeps the device's context alive.  Its memory goes
 * with the last of them, and another time there is room again.
 */
static void alone(CUdevice dev, struct buffer *b)
{
	CUgreenCtx part[PARTS];
	CUstream s[PARTS];
	size_t room, total;
	CUcontext ctx;

	open_parts(dev, part, s);
	CU(cuCtxFromGreenCtx, &ctx, part[0]);
	CU(cuCtxSetCurrent, ctx);
	CU(cuMemGetInfo, &room, &total);
	if (room < total / 4)
		E2E_FAIL("%zu bytes of %zu are free", room, total);
	e2e_vmm_open(&v, dev);
	stream = s[0];
	out = e2e_alloc(E2E_DIGEST_SIZE);
	for (uint64_t i = 0; i < buffers; i++) {
		b[i] = buffer_create();
		buffer_add(&b[i], stream);
	}
	for (uint64_t i = 0; i < buffers; i++) {
		buffer_check(&b[i], (int)i);
		free(b[i].model);
	}
	CU(cuCtxSetCurrent, NULL);
	for (int i = 0; i < PARTS; i++) {
		CU(cuStreamDestroy, s[i]);
		CU(cuGreenCtxDestroy, part[i]);
	}
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "bytes", &size, 0 }, { "buffers", &buffers, 0 },
		{ "rounds", &rounds, 0 },
	};
	struct buffer b[MAX];
	CUgreenCtx part[PARTS];
	CUstream s[PARTS];
	uint64_t hash = E2E_HASH;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (buffers > MAX)
		E2E_FAIL("up to %d buffers", MAX);
	CU(cuInit, 0);
	CU(cuDeviceGet, &dev, 0);
	alone(dev, b);
	dev = e2e_open();
	e2e_vmm_open(&v, dev);
	CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	out = e2e_alloc(E2E_DIGEST_SIZE);
	open_parts(dev, part, s);
	pressure(b, s);
	/* Its work goes on when a stream has gone. */
	for (int i = 0; i < PARTS; i++)
		CU(cuStreamDestroy, s[i]);
	CU(cuCtxSynchronize);
	for (uint64_t i = 0; i < buffers; i++) {
		buffer_check(&b[i], (int)i);
		hash = e2e_hash(hash, b[i].model, size);
		free(b[i].model);
	}
	printf("checksum: %016llx\n", (unsigned long long)hash);
	CU(cuStreamDestroy, stream);
	e2e_close(dev);
	for (int i = 0; i < PARTS; i++)
		CU(cuGreenCtxDestroy, part[i]);
	alone(dev, b);
	return 0;
}
