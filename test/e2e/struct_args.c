/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device pointers in every place a parameter list can hide them: between
 * small scalars, inside structs passed by value, deep in a large one, in an
 * array, at an address that is no multiple of 8; by kernelParams and by one
 * packed buffer through `extra`.  Every result is checked on the host.
 */
#include <stddef.h>

#include "test/e2e/e2e_digest.h"

/* What the kernels take by value. */
struct task {
	uint32_t seed;
	uint64_t data;		/* at 8, behind a hole */
	uint32_t words;
	uint32_t pad;
	uint64_t out;
};

struct large {
	char name[504];
	uint64_t data;		/* at 504 */
	uint32_t words, seed;
	uint64_t out;
};

struct table {
	uint32_t index, words, seed, pad;
	uint64_t data[6];	/* NR_TABLE */
	uint64_t out;
};

struct __attribute__((packed)) packed {
	uint32_t seed;
	uint64_t data;		/* at 4 */
	uint64_t out;		/* at 12 */
	uint32_t words;
};

_Static_assert(offsetof(struct task, data) == 8 && sizeof(struct task) == 32 &&
	sizeof(struct large) == 528 && offsetof(struct large, out) == 520 &&
	sizeof(struct table) == 72 && sizeof(struct packed) == 24,
	"the kernels know these places");

#define GLOBAL								\
	"	cvta.to.global.u64 %data, %data;\n"			\
	"	cvta.to.global.u64 %out, %out;\n"

#define END								\
	"	ret;\n"							\
	"}\n"

static const char ptx[] = E2E_PTX_HEAD
	".visible .entry mixed(.param .u32 seed, .param .u64 data,\n"
	"	.param .u8 unused, .param .u32 words, .param .u64 out)\n"
	"{\n"
	E2E_DIGEST_REGS
	"	ld.param.u32 %seed, [seed];\n"
	"	ld.param.u64 %data, [data];\n"
	"	ld.param.u32 %words, [words];\n"
	"	ld.param.u64 %out, [out];\n"
	GLOBAL E2E_DIGEST_BODY END
	".visible .entry task(.param .align 8 .b8 task[32])\n"
	"{\n"
	E2E_DIGEST_REGS
	"	ld.param.u32 %seed, [task];\n"
	"	ld.param.u64 %data, [task+8];\n"
	"	ld.param.u32 %words, [task+16];\n"
	"	ld.param.u64 %out, [task+24];\n"
	GLOBAL E2E_DIGEST_BODY END
	".visible .entry large(.param .align 8 .b8 task[528])\n"
	"{\n"
	E2E_DIGEST_REGS
	"	ld.param.u64 %data, [task+504];\n"
	"	ld.param.u32 %words, [task+512];\n"
	"	ld.param.u32 %seed, [task+516];\n"
	"	ld.param.u64 %out, [task+520];\n"
	GLOBAL E2E_DIGEST_BODY END
/* The six pointers are taken one by one: which is only known here. */
	".visible .entry table(.param .u32 first, .param .align 8 .b8 t[72])\n"
	"{\n"
	E2E_DIGEST_REGS
	"	.reg .u64 %other;\n"
	"	ld.param.u32 %i, [t];\n"
	"	ld.param.u32 %words, [t+4];\n"
	"	ld.param.u32 %seed, [t+8];\n"
	"	ld.param.u32 %t, [first];\n"
	"	add.u32 %i, %i, %t;\n"
	"	ld.param.u64 %data, [t+16];\n"
	"	setp.eq.u32 %p, %i, 1;\n"
	"	@%p ld.param.u64 %data, [t+24];\n"
	"	setp.eq.u32 %p, %i, 2;\n"
	"	@%p ld.param.u64 %data, [t+32];\n"
	"	setp.eq.u32 %p, %i, 3;\n"
	"	@%p ld.param.u64 %data, [t+40];\n"
	"	setp.eq.u32 %p, %i, 4;\n"
	"	@%p ld.param.u64 %data, [t+48];\n"
	"	setp.eq.u32 %p, %i, 5;\n"
	"	ld.param.u64 %other, [t+56];\n"
	"	selp.b64 %data, %other, %data, %p;\n"
	"	ld.param.u64 %out, [t+64];\n"
	GLOBAL E2E_DIGEST_BODY END
	".visible .entry packed(.param .align 4 .b8 p[24])\n"
	"{\n"
	E2E_DIGEST_REGS
	"	ld.param.u32 %seed, [p];\n"
	"	ld.param.u32 %i, [p+4];\n"
	"	ld.param.u32 %t, [p+8];\n"
	"	mov.b64 %data, {%i, %t};\n"
	"	ld.param.u32 %i, [p+12];\n"
	"	ld.param.u32 %t, [p+16];\n"
	"	mov.b64 %out, {%i, %t};\n"
	"	ld.param.u32 %words, [p+20];\n"
	GLOBAL E2E_DIGEST_BODY END;

enum { NR = 16, NR_TABLE = 6 };

struct run {
	CUmodule mod;
	CUstream stream;
	CUdeviceptr data[NR], out;
	uint32_t *host[NR];
	size_t size;
	uint64_t hash;
};

static void launch(struct run *r, const char *name, void **args, void **extra)
{
	CU(cuLaunchKernel, e2e_kernel(r->mod, name), E2E_DIGEST_BLOCKS, 1, 1,
		E2E_DIGEST_THREADS, 1, 1, 0, r->stream, args, extra);
}

/* All parameters in one buffer, laid out as the kernel declares them. */
static void launch_packed(struct run *r, const char *name, void *arg,
	size_t size)
{
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, arg,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END,
	};

	launch(r, name, NULL, extra);
}

static void check(struct run *r, size_t i, uint32_t seed, const char *how)
{
	uint32_t part[E2E_DIGEST_WORDS], got;

	CU(cuStreamSynchronize, r->stream);
	CU(cuMemcpyDtoH, part, r->out, sizeof(part));
	/* The next launch must write its own. */
	CU(cuMemsetD8, r->out, 0xee, sizeof(part));
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
	got = e2e_digest_sum(part);
	if (got != e2e_digest(r->host[i], r->size, seed))
		E2E_FAIL("%s: digest of tensor %zu is wrong", how, i);
	r->hash = e2e_hash(r->hash, &got, sizeof(got));
}

static void try_mixed(struct run *r, size_t i, uint32_t seed, uint32_t words)
{
	unsigned char unused = 1;
	void *args[] = { &seed, &r->data[i], &unused, &words, &r->out };
	struct {
		uint32_t seed;
		uint64_t data;
		unsigned char unused;
		uint32_t words;
		uint64_t out;
	} buf = { seed, r->data[i], unused, words, r->out };

	launch(r, "mixed", args, NULL);
	check(r, i, seed, "mixed parameters");
	launch_packed(r, "mixed", &buf, sizeof(buf));
	check(r, i, seed, "mixed parameters in a buffer");
}

static void try_structs(struct run *r, size_t i, uint32_t seed, uint32_t words)
{
	struct task task = { seed, r->data[i], words, 0, r->out };
	struct large large = {
		.data = r->data[i], .words = words, .seed = seed,
		.out = r->out,
	};
	struct packed packed = { seed, r->data[i], r->out, words };
	void *args[1] = { &task };

	launch(r, "task", args, NULL);
	check(r, i, seed, "struct");
	launch_packed(r, "task", &task, sizeof(task));
	check(r, i, seed, "struct in a buffer");
	args[0] = &large;
	memset(large.name, 0xff, sizeof(large.name));
	launch(r, "large", args, NULL);
	check(r, i, seed, "large struct");
	launch_packed(r, "large", &large, sizeof(large));
	check(r, i, seed, "large struct in a buffer");
	args[0] = &packed;
	launch(r, "packed", args, NULL);
	check(r, i, seed, "packed struct");
	launch_packed(r, "packed", &packed, sizeof(packed));
	check(r, i, seed, "packed struct in a buffer");
}

/* A table of six tensors from number `base` on; entry `n` counts. */
static void try_table(struct run *r, size_t base, size_t n, uint32_t seed,
	uint32_t words)
{
	uint32_t first = n / 2;
	struct {
		uint32_t first;
		struct table table;
	} buf = { first, { n - first, words, seed, 0, { 0 }, r->out } };
	void *args[] = { &first, &buf.table };

	for (size_t i = 0; i < NR_TABLE; i++)
		buf.table.data[i] = r->data[(base + i) % NR];
	launch(r, "table", args, NULL);
	check(r, (base + n) % NR, seed, "array in a struct");
	launch_packed(r, "table", &buf, sizeof(buf));
	check(r, (base + n) % NR, seed, "array in a struct in a buffer");
}

int main(int argc, char **argv)
{
	uint64_t bytes = 2 << 20, rounds = 1, seed = 1;
	const struct e2e_option opts[] = {
		{ "bytes", &bytes, 0 }, { "rounds", &rounds, 0 },
		{ "seed", &seed, 0 },
	};
	static struct run r;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	r.mod = e2e_module(ptx);
	r.hash = E2E_HASH;
	r.size = bytes & ~(uint64_t)15;
	CU(cuStreamCreate, &r.stream, CU_STREAM_NON_BLOCKING);
	r.out = e2e_alloc(E2E_DIGEST_SIZE);
	for (int i = 0; i < NR; i++) {
		r.host[i] = e2e_host(r.size);
		e2e_fill_random(r.host[i], r.size, &seed);
		r.data[i] = e2e_alloc(r.size);
		CU(cuMemcpyHtoD, r.data[i], r.host[i], r.size);
	}
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
	for (uint64_t n = 0; n < rounds * NR; n++) {
		size_t i = n % NR;

		try_mixed(&r, i, n, r.size / 4);
		try_structs(&r, (i + 1) % NR, n + 1, r.size / 4);
		try_table(&r, i + 2, n % NR_TABLE, n + 2, r.size / 4);
	}
	for (int i = 0; i < NR; i++) {
		CU(cuMemFree, r.data[i]);
		free(r.host[i]);
	}
	CU(cuMemFree, r.out);
	CU(cuStreamDestroy, r.stream);
	CU(cuModuleUnload, r.mod);
	e2e_close(dev);
	printf("checksum: %016llx\n", (unsigned long long)r.hash);
	return 0;
}
