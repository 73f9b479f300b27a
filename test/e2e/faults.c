/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that tries again: any call may fail once, and the data are still
 * what they must be.  Run with SOFTCUDA_FAIL_NTH, one failing call at a time.
 */
#include "test/e2e/e2e_digest.h"

static const char ptx[] = E2E_PTX_HEAD
	".visible .entry step(.param .u64 data, .param .u32 words)\n"
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
	"	mad.lo.u32 %t, %t, 3, 1;\n"
	"	st.global.u32 [%data], %t;\n"
	"	ret;\n"
	"}\n";

enum { TRIES = 4, NR = 7 };

/* The call again while it fails, a few times. */
#define AGAIN(fn, ...) do {						\
	CUresult r_;							\
	int n_ = 0;							\
									\
	while ((r_ = fn(__VA_ARGS__)) != CUDA_SUCCESS && ++n_ < TRIES)	\
		;							\
	e2e_check(r_, #fn, __FILE__, __LINE__);				\
} while (0)

static uint64_t size = (4 << 20) + 4096;

static void fill(uint32_t *host, uint32_t words, uint32_t seed)
{
	for (uint32_t i = 0; i < words; i++)
		host[i] = (i + seed) * 2654435761u;
}

static void run(CUfunction step, CUstream s, uint32_t *host)
{
	uint32_t words = size / 4, launches[NR] = { 0 };
	CUdeviceptr p[NR];

	for (uint32_t i = 0; i < NR; i++) {
		AGAIN(cuMemAlloc, &p[i], size);
		fill(host, words, i);
		AGAIN(cuMemcpyHtoD, p[i], host, size);
	}
	AGAIN(cuStreamSynchronize, CU_STREAM_LEGACY);
	for (uint32_t k = 0; k < 3 * NR; k++) {
		uint32_t i = k % NR;
		void *args[] = { &p[i], &words };

		AGAIN(cuLaunchKernel, step, (words + 255) / 256, 1, 1, 256, 1,
			1, 0, s, args, NULL);
		launches[i]++;
	}
	AGAIN(cuStreamSynchronize, s);
	for (uint32_t i = 0; i < NR; i++) {
		memset(host, 0, size);
		AGAIN(cuMemcpyDtoH, host, p[i], size);
		for (uint32_t w = 0; w < words; w++) {
			uint32_t want = (w + i) * 2654435761u;

			for (uint32_t k = 0; k < launches[i]; k++)
				want = want * 3 + 1;
			if (host[w] != want)
				E2E_FAIL("array %u, word %u: %08x, not %08x",
					i, w, host[w], want);
		}
		AGAIN(cuMemFree, p[i]);
	}
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = { { "size", &size, 0 } };
	uint32_t *host;
	CUdevice dev;
	CUcontext ctx;
	CUmodule mod;
	CUfunction step;
	CUstream s;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	host = e2e_host(size);
	AGAIN(cuInit, 0);
	AGAIN(cuDeviceGet, &dev, 0);
	AGAIN(cuDevicePrimaryCtxRetain, &ctx, dev);
	AGAIN(cuCtxSetCurrent, ctx);
	AGAIN(cuModuleLoadData, &mod, ptx);
	AGAIN(cuModuleGetFunction, &step, mod, "step");
	AGAIN(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	run(step, s, host);
	run(step, s, host);
	AGAIN(cuStreamDestroy, s);
	AGAIN(cuModuleUnload, mod);
	AGAIN(cuDevicePrimaryCtxRelease, dev);
	free(host);
	printf("checksum: ok\n");
	return 0;
}
