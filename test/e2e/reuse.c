/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation churn: sizes around multiples of 2 MiB come and go in random
 * order, contents are checked by the GPU and by reading back, frees happen
 * while kernels on the memory are still queued.  In the middle memory is used
 * up: the allocation beyond the end must say CUDA_ERROR_OUT_OF_MEMORY and
 * everything must go on as before.
 */
#include <stdbool.h>

#include "test/e2e/e2e_digest.h"

static const char ptx[] = E2E_PTX_HEAD E2E_DIGEST_KERNEL
/* data[i] ^= mask over `words` */
	".visible .entry flip(.param .u64 data, .param .u32 words,\n"
	"	.param .u32 mask)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %t;\n"
	"	.reg .u64 %data, %o;\n"
	"\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u32 %n, [words];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %data, [data];\n"
	"	cvta.to.global.u64 %data, %data;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %data, %data, %o;\n"
	"	ld.global.u32 %t, [%data];\n"
	"	ld.param.u32 %n, [mask];\n"
	"	xor.b32 %t, %t, %n;\n"
	"	st.global.u32 [%data], %t;\n"
	"	ret;\n"
	"}\n";

enum { MAX_LIVE = 64, MIB = 1 << 20 };

struct block {
	CUdeviceptr data;	/* 0: not live */
	size_t size;
	uint32_t *host;		/* what must be there; owned */
};

struct run {
	struct block block[MAX_LIVE];
	CUfunction digest, flip;
	CUstream stream;
	CUdeviceptr out;
	size_t live, max_live;	/* bytes */
	uint64_t seed, hash;
};

static size_t random_below(struct run *r, size_t n)
{
	return e2e_random(&r->seed) % n;
}

/* Near 1 to 3 times 2 MiB, now and then tiny. */
static size_t random_size(struct run *r)
{
	static const int delta[] = {
		-512, -256, -4, -1, 0, 0, 0, 1, 4, 256, 512, MIB,
	};
	size_t base = 2 * MIB * (1 + random_below(r, 3));

	if (!random_below(r, 6))
		return 1 + random_below(r, 100000);
	return base + delta[random_below(r, E2E_LEN(delta))];
}

static void block_create(struct run *r, struct block *b)
{
	b->size = random_size(r);
	if (r->live + b->size > r->max_live)
		return;
	b->data = e2e_alloc(b->size);
	b->host = e2e_host(b->size + 16);
	r->live += b->size;
	if (random_below(r, 4)) {
		e2e_fill_random(b->host, b->size, &r->seed);
		CU(cuMemcpyHtoD, b->data, b->host, b->size);
		return;
	}
	memset(b->host, (int)b->size & 255, b->size);
	CU(cuMemsetD8, b->data, (unsigned char)b->size, b->size);
}

static void block_read_back(struct run *r, struct block *b)
{
	void *got = e2e_host(b->size);

	CU(cuMemcpyDtoH, got, b->data, b->size);
	if (memcmp(got, b->host, b->size))
		E2E_FAIL("block of %zu bytes: contents lost", b->size);
	r->hash = e2e_hash(r->hash, got, b->size);
	free(got);
}

static void block_digest(struct run *r, struct block *b)
{
	uint32_t seed = random_below(r, 1000);
	uint32_t got = e2e_digest_now(r->digest, r->stream, r->out, b->data,
		b->size, seed);

	if (got != e2e_digest(b->host, b->size, seed))
		E2E_FAIL("block of %zu bytes: wrong digest", b->size);
	r->hash = e2e_hash(r->hash, &got, sizeof(got));
}

static void block_flip(struct run *r, struct block *b)
{
	unsigned int words = b->size / 4;
	uint32_t mask = e2e_random(&r->seed);
	void *args[] = { &b->data, &words, &mask };

	if (!words)
		return;
	CU(cuLaunchKernel, r->flip, (words + 255) / 256, 1, 1, 256, 1, 1, 0,
		r->stream, args, NULL);
	for (size_t i = 0; i < words; i++)
		b->host[i] ^= mask;
}

/* Freed with its reader still queued; cuMemFree has to wait for that. */
static void block_destroy(struct run *r, struct block *b)
{
	uint32_t part[E2E_DIGEST_WORDS];
	bool queued = random_below(r, 2);

	CU(cuStreamSynchronize, r->stream);
	if (queued)
		e2e_digest_launch(r->digest, r->stream, r->out, b->data,
			b->size, 7);
	CU(cuMemFree, b->data);
	if (queued) {
		CU(cuStreamSynchronize, r->stream);
		CU(cuMemcpyDtoH, part, r->out, sizeof(part));
		if (e2e_digest_sum(part) != e2e_digest(b->host, b->size, 7))
			E2E_FAIL("freed under a queued kernel: wrong digest");
	}
	r->live -= b->size;
	free(b->host);
	memset(b, 0, sizeof(*b));
}

static void step(struct run *r)
{
	struct block *b = &r->block[random_below(r, MAX_LIVE)];

	if (!b->data) {
		block_create(r, b);
		return;
	}
	switch (random_below(r, 4)) {
	case 0:
		block_destroy(r, b);
		break;
	case 1:
		CU(cuStreamSynchronize, r->stream);
		block_read_back(r, b);
		break;
	case 2:
		block_flip(r, b);
		break;
	default:
		block_digest(r, b);
	}
}

static void check_all(struct run *r)
{
	CU(cuStreamSynchronize, r->stream);
	for (int i = 0; i < MAX_LIVE; i++)
		if (r->block[i].data)
			block_read_back(r, &r->block[i]);
}

/* No memory for that: the answer, and everything as it was. */
static void ask_for_too_much(struct run *r)
{
	CUdeviceptr p = 0;
	CUresult got = cuMemAlloc(&p, (size_t)1 << 50);

	if (got != CUDA_ERROR_OUT_OF_MEMORY)
		E2E_FAIL("cuMemAlloc of 1 PiB: %s", e2e_error_name(got));
	check_all(r);
}

/* Takes all there is in pieces, then gives it back. */
static void use_up(struct run *r, CUdevice dev)
{
	enum { MOST = 4096 };
	CUdeviceptr *p = e2e_host(MOST * sizeof(*p));
	CUresult got = CUDA_SUCCESS;
	size_t total, size;
	int nr = 0;

	CU(cuDeviceTotalMem, &total, dev);
	size = total / 16 > 2 * MIB ? total / 16 : 2 * MIB;
	while (nr < MOST && (got = cuMemAlloc(&p[nr], size)) == CUDA_SUCCESS)
		nr++;
	if (got != CUDA_ERROR_OUT_OF_MEMORY)
		E2E_FAIL("%d allocations of %zu bytes, then: %s", nr, size,
			e2e_error_name(got));
	check_all(r);
	while (nr)
		CU(cuMemFree, p[--nr]);
	free(p);
}

int main(int argc, char **argv)
{
	uint64_t steps = 300, live = 24 << 20, seed = 1, no_fill = 0;
	const struct e2e_option opts[] = {
		{ "steps", &steps, 0 }, { "live", &live, 0 },
		{ "seed", &seed, 0 }, { "no-fill", &no_fill, 1 },
	};
	static struct run r;
	CUdevice dev;
	CUmodule mod;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	mod = e2e_module(ptx);
	r.digest = e2e_kernel(mod, "digest");
	r.flip = e2e_kernel(mod, "flip");
	/* A blocking stream: the plain copies keep their place in it. */
	CU(cuStreamCreate, &r.stream, CU_STREAM_DEFAULT);
	r.out = e2e_alloc(E2E_DIGEST_SIZE);
	r.max_live = live;
	r.seed = seed;
	r.hash = E2E_HASH;
	for (uint64_t i = 0; i < steps; i++) {
		step(&r);
		if (i == steps / 3)
			ask_for_too_much(&r);
		if (i == steps / 2 && !no_fill)
			use_up(&r, dev);
	}
	check_all(&r);
	for (int i = 0; i < MAX_LIVE; i++)
		if (r.block[i].data)
			block_destroy(&r, &r.block[i]);
	CU(cuMemFree, r.out);
	CU(cuStreamDestroy, r.stream);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("checksum: %016llx\n", (unsigned long long)r.hash);
	return 0;
}
