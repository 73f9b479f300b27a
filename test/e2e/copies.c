/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and memsets of every one-dimensional kind, synchronous and not, into,
 * out of and between several allocations at odd offsets, with kernels in
 * between, against a model of the memory on the host.  All work is in the
 * default stream or in one blocking stream, so the order is the program's.
 */
#include <stdbool.h>

#include "test/e2e/e2e_util.h"

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
/* to[i] += from[i] over `size` bytes */
	".visible .entry addto(.param .u64 to, .param .u64 from,\n"
	"	.param .u32 size)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %t;\n"
	"	.reg .u64 %to, %from, %o;\n"
	"\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u32 %n, [size];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %to, [to];\n"
	"	cvta.to.global.u64 %to, %to;\n"
	"	ld.param.u64 %from, [from];\n"
	"	cvta.to.global.u64 %from, %from;\n"
	"	cvt.u64.u32 %o, %i;\n"
	"	add.u64 %to, %to, %o;\n"
	"	add.u64 %from, %from, %o;\n"
	"	ld.global.u8 %t, [%to];\n"
	"	ld.global.u8 %n, [%from];\n"
	"	add.u32 %t, %t, %n;\n"
	"	st.global.u8 [%to], %t;\n"
	"	ret;\n"
	"}\n";

enum { NR = 6, STAGE = 1 << 20 };

struct memory {
	CUdeviceptr data;
	size_t size;
	unsigned char *host;	/* what must be there; owned */
};

/* A stretch of one of the allocations. */
struct range {
	struct memory *m;
	size_t off, size;
};

struct run {
	struct memory mem[NR];
	CUfunction addto;
	CUstream stream;
	unsigned char *stage;	/* pinned, STAGE bytes */
	unsigned char *plain;	/* pageable, the largest size */
	uint64_t seed, hash;
};

static size_t below(struct run *r, size_t n)
{
	return e2e_random(&r->seed) % n;
}

/* Anywhere, offset and size multiples of `unit`; short ones and long ones. */
static struct range any_range(struct run *r, size_t most, size_t unit)
{
	struct range g = { .m = &r->mem[below(r, NR)] };
	size_t left;

	g.off = below(r, g.m->size - unit + 1) / unit * unit;
	left = g.m->size - g.off;
	left = left < most ? left : most;
	if (below(r, 2) && left > 8192)
		left = 8192;
	g.size = (1 + below(r, left)) / unit * unit;
	if (!g.size)
		g.size = unit;
	return g;
}

static CUdeviceptr range_device(struct range g)
{
	return g.m->data + g.off;
}

static unsigned char *range_host(struct range g)
{
	return g.m->host + g.off;
}

/* A range of the same size elsewhere; in one allocation they do not meet. */
static bool other_range(struct run *r, struct range g, struct range *o)
{
	o->m = &r->mem[below(r, NR)];
	o->size = g.size;
	if (o->m->size < g.size)
		return false;
	o->off = below(r, o->m->size - g.size + 1);
	return o->m != g.m || o->off + g.size <= g.off ||
		g.off + g.size <= o->off;
}

static void to_device(struct run *r)
{
	struct range g = any_range(r, SIZE_MAX, 1);

	e2e_fill_random(r->plain, g.size, &r->seed);
	if (below(r, 2))
		CU(cuMemcpyHtoD, range_device(g), r->plain, g.size);
	else
		CU(cuMemcpyHtoDAsync, range_device(g), r->plain, g.size,
			r->stream);
	memcpy(range_host(g), r->plain, g.size);
	/* Neither call may need the pageable source any longer. */
	memset(r->plain, 0x5a, g.size);
}

static void to_device_pinned(struct run *r)
{
	struct range g = any_range(r, STAGE, 1);

	CU(cuStreamSynchronize, r->stream);
	e2e_fill_random(r->stage, g.size, &r->seed);
	CU(cuMemcpyHtoDAsync, range_device(g), r->stage, g.size, r->stream);
	memcpy(range_host(g), r->stage, g.size);
}

static void check(struct run *r, struct range g, const void *got,
	const char *how)
{
	if (memcmp(got, range_host(g), g.size))
		E2E_FAIL("%s of %zu bytes at %zu of allocation %td is wrong",
			how, g.size, g.off, g.m - r->mem);
	r->hash = e2e_hash(r->hash, got, g.size);
}

static void to_host(struct run *r)
{
	struct range g = any_range(r, SIZE_MAX, 1);

	if (below(r, 2)) {
		CU(cuMemcpyDtoH, r->plain, range_device(g), g.size);
	} else {
		CU(cuMemcpyDtoHAsync, r->plain, range_device(g), g.size,
			r->stream);
		CU(cuStreamSynchronize, r->stream);
	}
	check(r, g, r->plain, "copy to pageable memory");
}

static void to_host_pinned(struct run *r)
{
	struct range g = any_range(r, STAGE, 1);

	CU(cuStreamSynchronize, r->stream);
	CU(cuMemcpyDtoHAsync, r->stage, range_device(g), g.size, r->stream);
	CU(cuStreamSynchronize, r->stream);
	check(r, g, r->stage, "copy to pinned memory");
}

static void on_device(struct run *r)
{
	struct range from = any_range(r, SIZE_MAX, 1), to;

	if (!other_range(r, from, &to))
		return;
	if (below(r, 2))
		CU(cuMemcpyDtoD, range_device(to), range_device(from),
			from.size);
	else
		CU(cuMemcpyDtoDAsync, range_device(to), range_device(from),
			from.size, r->stream);
	memcpy(range_host(to), range_host(from), from.size);
}

/* Size and value in units of 1, 2 or 4 bytes. */
static void fill(struct run *r)
{
	size_t unit = (size_t)1 << below(r, 3);
	struct range g = any_range(r, SIZE_MAX, unit);
	CUdeviceptr p = range_device(g);
	uint32_t v = e2e_random(&r->seed);
	size_t n = g.size / unit;
	bool now = below(r, 2);

	if (unit == 1 && now)
		CU(cuMemsetD8, p, v, n);
	else if (unit == 1)
		CU(cuMemsetD8Async, p, v, n, r->stream);
	else if (unit == 2 && now)
		CU(cuMemsetD16, p, v, n);
	else if (unit == 2)
		CU(cuMemsetD16Async, p, v, n, r->stream);
	else if (now)
		CU(cuMemsetD32, p, v, n);
	else
		CU(cuMemsetD32Async, p, v, n, r->stream);
	for (size_t i = 0; i < g.size; i++)
		range_host(g)[i] = v >> 8 * (i % unit);
}

static void add(struct run *r)
{
	struct range from = any_range(r, 256 << 10, 1), to;
	unsigned int size = from.size;
	CUdeviceptr p, q;
	void *args[] = { &p, &q, &size };

	if (!other_range(r, from, &to))
		return;
	p = range_device(to);
	q = range_device(from);
	CU(cuLaunchKernel, r->addto, (size + 255) / 256, 1, 1, 256, 1, 1, 0,
		below(r, 2) ? r->stream : NULL, args, NULL);
	for (size_t i = 0; i < size; i++)
		range_host(to)[i] += range_host(from)[i];
}

static void run_create(struct run *r, CUmodule mod, size_t scale)
{
	static const size_t size[NR] = {
		5 << 20, (3 << 20) + 4096, (2 << 20) + 8, 1 << 20, 65536,
		(4 << 20) - 24,
	};
	size_t most = 0;

	r->hash = E2E_HASH;
	r->addto = e2e_kernel(mod, "addto");
	CU(cuStreamCreate, &r->stream, CU_STREAM_DEFAULT);
	for (int i = 0; i < NR; i++) {
		struct memory *m = &r->mem[i];

		m->size = size[i] * scale;
		most = most > m->size ? most : m->size;
		m->data = e2e_alloc(m->size);
		m->host = e2e_host(m->size);
		CU(cuMemsetD8, m->data, 0, m->size);
	}
	r->plain = e2e_host(most);
	CU(cuMemAllocHost, (void **)&r->stage, STAGE);
}

static void run_destroy(struct run *r)
{
	for (int i = 0; i < NR; i++) {
		CU(cuMemFree, r->mem[i].data);
		free(r->mem[i].host);
	}
	CU(cuMemFreeHost, r->stage);
	CU(cuStreamDestroy, r->stream);
	free(r->plain);
}

int main(int argc, char **argv)
{
	static void (*const op[])(struct run *) = {
		to_device, to_device_pinned, to_host, to_host_pinned,
		on_device, on_device, fill, fill, add,
	};
	uint64_t steps = 300, scale = 1, seed = 1;
	const struct e2e_option opts[] = {
		{ "steps", &steps, 0 }, { "scale", &scale, 0 },
		{ "seed", &seed, 0 },
	};
	static struct run r;
	CUdevice dev;
	CUmodule mod;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	mod = e2e_module(ptx);
	r.seed = seed;
	run_create(&r, mod, scale ? scale : 1);
	for (uint64_t i = 0; i < steps; i++)
		op[below(&r, E2E_LEN(op))](&r);
	for (int i = 0; i < NR; i++) {
		struct range all = { &r.mem[i], 0, r.mem[i].size };

		CU(cuMemcpyDtoH, r.plain, all.m->data, all.size);
		check(&r, all, r.plain, "last copy");
	}
	run_destroy(&r);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("checksum: %016llx\n", (unsigned long long)r.hash);
	return 0;
}
