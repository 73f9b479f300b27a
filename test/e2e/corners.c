/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corners of the driver's rules that programs lean on without knowing it: an
 * upload is ordered behind what fills its source, handles that come back as
 * something else, codes for ranges and contexts that are not right, dangling
 * pointers that no kernel follows, copies from a context without streams.
 * Each prints what it saw, so runs can be compared.
 */
#include <pthread.h>

#include "test/e2e/e2e_digest.h"

/* data[i] = data[i] * mul + add over `words`; two orders of parameters. */
#define BODY								\
	"{\n"								\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %i, %n, %t;\n"				\
	"	.reg .u64 %data, %o;\n"					\
	"\n"								\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %n, %ntid.x;\n"					\
	"	mov.u32 %t, %tid.x;\n"					\
	"	mad.lo.u32 %i, %i, %n, %t;\n"				\
	"	ld.param.u32 %n, [words];\n"				\
	"	setp.ge.u32 %p, %i, %n;\n"				\
	"	@%p ret;\n"						\
	"	ld.param.u64 %data, [data];\n"				\
	"	cvta.to.global.u64 %data, %data;\n"			\
	"	mul.wide.u32 %o, %i, 4;\n"				\
	"	add.u64 %data, %data, %o;\n"				\
	"	ld.global.u32 %t, [%data];\n"				\
	"	mad.lo.u32 %t, %t, 3, 1;\n"				\
	"	st.global.u32 [%data], %t;\n"				\
	"	ret;\n"							\
	"}\n"

static const char ptx_first[] = E2E_PTX_HEAD
	".visible .entry step(.param .u64 data, .param .u32 words,\n"
	"	.param .u64 unused)\n" BODY;
static const char ptx_last[] = E2E_PTX_HEAD
	".visible .entry step(.param .u32 words, .param .u32 pad,\n"
	"	.param .u32 more, .param .u64 data)\n" BODY;

/* FAR: behind an end, but in the same 64 KiB, so that nothing else lies there. */
enum { MIB = 1 << 20, PIECE = 2 * MIB, FAR = 30000 };

static void show(const char *what, CUresult r)
{
	printf("%s: %s\n", what, e2e_error_name(r));
}

static void show_hash(const char *what, CUdeviceptr p, size_t n)
{
	void *host = e2e_host(n);

	CU(cuMemcpyDtoH, host, p, n);
	printf("%s: %016llx\n", what,
		(unsigned long long)e2e_hash(E2E_HASH, host, n));
	free(host);
}

static CUdeviceptr filled(size_t n, uint64_t seed)
{
	CUdeviceptr p = e2e_alloc(n);
	void *host = e2e_host(n);

	e2e_fill_random(host, n, &seed);
	CU(cuMemcpyHtoD, p, host, n);
	free(host);
	return p;
}

static void step_first(CUfunction f, CUstream s, CUdeviceptr p, uint32_t words,
	CUdeviceptr unused)
{
	void *args[] = { &p, &words, &unused };

	CU(cuLaunchKernel, f, (words + 255) / 256, 1, 1, 256, 1, 1, 0, s, args,
		NULL);
}

/* The source of a waiting upload is filled by work that is still queued. */
static void upload(CUdevice dev)
{
	CUmodule mod = e2e_module(ptx_first);
	CUfunction f = e2e_kernel(mod, "step");
	CUdeviceptr p[12];
	CUstream s;
	void *host;

	CU(cuStreamCreate, &s, 0);
	CU(cuMemAllocHost, &host, PIECE);
	memset(host, 1, PIECE);
	p[0] = filled(PIECE, 1);
	for (int i = 1; i < 12; i++)
		p[i] = e2e_alloc(PIECE);
	for (int i = 1; i < 12; i++) {
		step_first(f, s, p[0], PIECE / 4, 0);
		CU(cuMemcpyDtoHAsync, host, p[0], PIECE, s);
		CU(cuMemcpyHtoD, p[i], host, PIECE);
		show_hash("upload", p[i], PIECE);
	}
	for (int i = 0; i < 12; i++)
		CU(cuMemFree, p[i]);
	CU(cuMemFreeHost, host);
	CU(cuStreamDestroy, s);
	CU(cuModuleUnload, mod);
}

/* A function's handle comes back as a function with other parameters. */
static void modules(CUdevice dev)
{
	for (int round = 0; round < 8; round++) {
		uint32_t words = 3 * PIECE / 4 - 5, zero = 0;
		CUdeviceptr p[6];
		CUcontext c;
		CUmodule mod;
		CUfunction f;

		CU(cuCtxCreate, &c, NULL, 0, dev);
		mod = e2e_module(round & 1 ? ptx_last : ptx_first);
		f = e2e_kernel(mod, "step");
		for (int i = 0; i < 6; i++)
			p[i] = filled(3 * PIECE, i);
		for (int i = 0; i < 6; i++) {
			void *last[] = { &words, &zero, &zero, &p[i] };

			if (round & 1)
				CU(cuLaunchKernel, f, (words + 255) / 256, 1,
					1, 256, 1, 1, 0, NULL, last, NULL);
			else
				step_first(f, NULL, p[i], words, 0);
		}
		for (int i = 0; i < 6; i++)
			show_hash("modules", p[i], 3 * PIECE);
		CU(cuCtxDestroy, c);
	}
}

static void codes(CUdevice dev)
{
	size_t n = 3 * MIB + 1000;
	CUdeviceptr p = filled(n, 1), q = filled(PIECE * 4, 2);
	CUdeviceptr out = e2e_alloc(PIECE);
	CUcontext c;
	char *host = e2e_host(n + 4096);

	show("to the end", cuMemcpyHtoD(p + n - 1, host, 1));
	show("past the end", cuMemcpyHtoD(p + n + 600, host, 1));
	show("far past the end", cuMemcpyHtoD(p + n + FAR, host, 1));
	show("over the end", cuMemcpyDtoH(host, p, n + 1024));
	show("between, over the end", cuMemcpyDtoD(q, p, n + 1024));
	show("huge", cuMemcpyDtoH(host, p, SIZE_MAX - 5));
	show("fill, far past", cuMemsetD8(p + n + FAR, 1, 1));
	show("16 at odd", cuMemsetD16(q + 1, 1, 10));
	show("16 at the border", cuMemsetD16(q + PIECE - 1, 1, 1));
	show("16 over the border", cuMemsetD16(q + PIECE - 1, 1, 2));
	show("32 at the border", cuMemsetD32(q + PIECE - 2, 1, 1));
	show("32 over the border", cuMemsetD32(q + PIECE - 2, 1, 2));
	show("32 overflow", cuMemsetD32(q, 1, SIZE_MAX / 2));
	show("zero", cuMemcpyDtoH(host, p, 0));
	show("null source", cuMemcpyHtoD(p, NULL, 0));
	show("interior free", cuMemFree(p + 4096));
	show("free past", cuMemFree(p + n + FAR));
	show("nothing", cuMemFree(0));
	show("null", cuMemAlloc(NULL, n));
	show("none", cuMemAlloc(&out, 0));
	/* Round to 512 bytes and no further, as the driver's own. */
	CU(cuMemcpyHtoD, p, host, n);

	CU(cuCtxGetCurrent, &c);
	CU(cuCtxSetCurrent, NULL);
	show("free without context", cuMemFree(p));
	show("copy without context", cuMemcpyDtoH(host, p, 4));
	show("fill without context", cuMemsetD8(p, 1, 4));
	show("alloc without context", cuMemAlloc(&out, n));
	CU(cuCtxSetCurrent, c);
	show_hash("kept", p, n);
	show("destroy the primary", cuCtxDestroy(c));
	show_hash("kept", p, n);
	show_hash("kept", q, PIECE * 4);
	show("launch of nothing", cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0,
		NULL, NULL, NULL));
	show("free", cuMemFree(p));
	show("free again", cuMemFree(p));
	show("free", cuMemFree(q));
	free(host);
}

/* ---- dangling ------------------------------------------------------------- */

static CUcontext shared;
static CUdeviceptr hint;	/* atomic; the other thread's newest memory */
static int stop;		/* atomic */

static void *churn(void *arg)
{
	uint64_t seed = 5;
	void *host = e2e_host(PIECE);
	CUdeviceptr p;

	CU(cuCtxSetCurrent, shared);
	while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
		p = e2e_alloc(3 * PIECE - (e2e_random(&seed) % MIB));
		__atomic_store_n(&hint, p, __ATOMIC_RELEASE);
		CU(cuMemcpyHtoD, p, host, MIB);
		CU(cuMemcpyDtoH, host, p + MIB, MIB);
		CU(cuMemFree, p);
	}
	free(host);
	return NULL;
}

/* A kernel gets pointers that another thread frees, and does not follow them. */
static void dangling(CUdevice dev)
{
	CUmodule mod = e2e_module(ptx_first);
	CUfunction f = e2e_kernel(mod, "step");
	CUdeviceptr p[5];
	pthread_t t;

	CU(cuCtxGetCurrent, &shared);
	for (int i = 0; i < 5; i++)
		p[i] = filled(2 * PIECE, i);
	pthread_create(&t, NULL, churn, NULL);
	for (int k = 0; k < 60; k++)
		step_first(f, NULL, p[k % 5], 1024,
			__atomic_load_n(&hint, __ATOMIC_ACQUIRE));
	CU(cuCtxSynchronize);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	for (int i = 0; i < 5; i++) {
		show_hash("dangling", p[i], 2 * PIECE);
		CU(cuMemFree, p[i]);
	}
	CU(cuModuleUnload, mod);
}

/* A second context copies on its default stream while memory gets scarce. */
static void visitor(CUdevice dev)
{
	CUdeviceptr p[3], q[8];
	CUcontext main_ctx, c;
	void *host;

	CU(cuCtxGetCurrent, &main_ctx);
	CU(cuMemAllocHost, &host, 8 * MIB);
	for (int i = 0; i < 3; i++)
		p[i] = filled(2 * PIECE, i);
	CU(cuCtxCreate, &c, NULL, 0, dev);
	for (int i = 0; i < 3; i++) {
		CU(cuMemcpyDtoHAsync, host, p[i], 2 * PIECE, NULL);
		CU(cuMemcpyHtoDAsync, p[i], host, PIECE, NULL);
		CU(cuMemsetD8Async, p[i] + PIECE, i + 1, PIECE, NULL);
	}
	CU(cuCtxSetCurrent, main_ctx);
	for (int i = 0; i < 8; i++)
		q[i] = filled(2 * PIECE, 10 + i);
	CU(cuCtxSetCurrent, c);
	CU(cuCtxSynchronize);
	CU(cuCtxSetCurrent, main_ctx);
	for (int i = 0; i < 3; i++)
		show_hash("visitor", p[i], 2 * PIECE);
	for (int i = 0; i < 8; i++)
		show_hash("visitor", q[i], 2 * PIECE);
	CU(cuCtxDestroy, c);
	for (int i = 0; i < 3; i++)
		CU(cuMemFree, p[i]);
	for (int i = 0; i < 8; i++)
		CU(cuMemFree, q[i]);
	CU(cuMemFreeHost, host);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(CUdevice dev);
	} parts[] = {
		{ "upload", upload }, { "modules", modules },
		{ "codes", codes }, { "dangling", dangling },
		{ "visitor", visitor },
	};
	uint64_t wanted[E2E_LEN(parts)] = { 0 };
	struct e2e_option opts[E2E_LEN(parts)];
	CUdevice dev;

	for (size_t i = 0; i < E2E_LEN(parts); i++)
		opts[i] = (struct e2e_option){ parts[i].name, &wanted[i], 1 };
	e2e_options(argc, argv, opts, E2E_LEN(opts));
	dev = e2e_open();
	for (size_t i = 0; i < E2E_LEN(parts); i++)
		if (argc < 2 || wanted[i])
			parts[i].run(dev);
	e2e_close(dev);
	return 0;
}
