/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread computes on memory that fits while another takes all the memory
 * there is in small pieces and gives it back, round after round: memory must
 * be found somewhere, and never under a kernel's feet.  The first thread's
 * results are checked.
 */
#include <pthread.h>

#include "test/e2e/e2e_digest.h"

static const char ptx[] = E2E_PTX_HEAD
/* data[i] += 1 over `words` */
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
	"	add.u32 %t, %t, 1;\n"
	"	st.global.u32 [%data], %t;\n"
	"	ret;\n"
	"}\n";

enum { MAX_PIECES = 4096, PIECE = 1 << 20 };

static CUcontext ctx;
static CUfunction step;
static uint64_t hot_bytes = 6 << 20, nr_rounds = 6, nr_steps = 40;
static uint64_t nr_pieces = 16;
static pthread_barrier_t barrier;

/* Each round takes up to nr_pieces pieces, as many as there are. */
static void *taker(void *arg)
{
	static CUdeviceptr piece[MAX_PIECES];
	CUresult r;
	uint64_t n;

	CU(cuCtxSetCurrent, ctx);
	for (uint64_t round = 0; round < nr_rounds; round++) {
		pthread_barrier_wait(&barrier);
		for (n = 0; n < nr_pieces; n++) {
			r = cuMemAlloc(&piece[n], PIECE);
			if (r == CUDA_ERROR_OUT_OF_MEMORY)
				break;
			CU(cuMemsetD8, piece[n], 0x5a, PIECE);
		}
		pthread_barrier_wait(&barrier);
		while (n > 0)
			CU(cuMemFree, piece[--n]);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static uint64_t round_of(CUstream s, uint32_t *host, uint64_t hash)
{
	CUdeviceptr hot = e2e_alloc(hot_bytes);
	unsigned int words = hot_bytes / 4;
	void *args[] = { &hot, &words };

	for (unsigned int i = 0; i < words; i++)
		host[i] = i * 2654435761u;
	CU(cuMemcpyHtoD, hot, host, hot_bytes);
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
	pthread_barrier_wait(&barrier);
	for (uint64_t k = 0; k < nr_steps; k++) {
		CU(cuLaunchKernel, step, (words + 255) / 256, 1, 1, 256, 1, 1,
			0, s, args, NULL);
		if (k % 4 == 3)
			CU(cuStreamSynchronize, s);
	}
	CU(cuStreamSynchronize, s);
	memset(host, 0, hot_bytes);
	CU(cuMemcpyDtoH, host, hot, hot_bytes);
	for (unsigned int i = 0; i < words; i++)
		if (host[i] != i * 2654435761u + (uint32_t)nr_steps)
			E2E_FAIL("word %u is %08x, not %08x", i, host[i],
				i * 2654435761u + (uint32_t)nr_steps);
	pthread_barrier_wait(&barrier);
	CU(cuMemFree, hot);
	pthread_barrier_wait(&barrier);
	return e2e_hash(hash, host, hot_bytes);
}

int main(int argc, char **argv)
{
	uint64_t base_bytes = 8 << 20, hash = E2E_HASH;
	const struct e2e_option opts[] = {
		{ "hot", &hot_bytes, 0 }, { "base", &base_bytes, 0 },
		{ "rounds", &nr_rounds, 0 }, { "steps", &nr_steps, 0 },
		{ "pieces", &nr_pieces, 0 },
	};
	pthread_t thread;
	CUdeviceptr base;
	CUstream s;
	CUmodule mod;
	CUdevice dev;
	uint32_t *host;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (hot_bytes < 4 || nr_pieces > MAX_PIECES)
		E2E_FAIL("at least 4 bytes, at most %d pieces", MAX_PIECES);
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	mod = e2e_module(ptx);
	step = e2e_kernel(mod, "step");
	base = e2e_alloc(base_bytes);
	CU(cuStreamCreate, &s, CU_STREAM_NON_BLOCKING);
	host = e2e_host(hot_bytes);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, taker, NULL))
		E2E_FAIL("no second thread");
	for (uint64_t r = 0; r < nr_rounds; r++)
		hash = round_of(s, host, hash);
	pthread_join(thread, NULL);
	CU(cuStreamDestroy, s);
	CU(cuMemFree, base);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	free(host);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	return 0;
}
