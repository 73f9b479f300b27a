/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers run in a cycle: x <- W_i x for every matrix, several rounds over.
 * The shape of inference without any arithmetic that rounds: words are u32
 * and arithmetic is modulo 2^32, so the host checks every x bit for bit.
 */
#include "test/e2e/e2e_util.h"

enum { COLS = 1024 };

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
/* y[row] = sum of w[row][c] * x[c]; a warp a row, 1024 columns. */
	".visible .entry layer(.param .u64 y, .param .u64 w, .param .u64 x,\n"
	"	.param .u32 rows)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %row, %lane, %n, %t, %sum, %left;\n"
	"	.reg .u32 %w<4>, %x<4>;\n"
	"	.reg .u64 %y, %pw, %px, %o;\n"
	"\n"
	"	mov.u32 %n, %ctaid.x;\n"
	"	mov.u32 %t, %ntid.x;\n"
	"	mov.u32 %lane, %tid.x;\n"
	"	mad.lo.u32 %row, %n, %t, %lane;\n"
	"	shr.u32 %row, %row, 5;\n"
	"	and.b32 %lane, %lane, 31;\n"
	"	ld.param.u32 %n, [rows];\n"
	"	setp.ge.u32 %p, %row, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %pw, [w];\n"
	"	cvta.to.global.u64 %pw, %pw;\n"
	"	ld.param.u64 %px, [x];\n"
	"	cvta.to.global.u64 %px, %px;\n"
	"	mul.wide.u32 %o, %row, 4096;\n"
	"	add.u64 %pw, %pw, %o;\n"
	"	mul.wide.u32 %o, %lane, 16;\n"
	"	add.u64 %pw, %pw, %o;\n"
	"	add.u64 %px, %px, %o;\n"
	"	mov.u32 %sum, 0;\n"
	"	mov.u32 %left, 8;\n"
	"COLUMNS:\n"
	"	ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%pw];\n"
	"	ld.global.v4.u32 {%x0, %x1, %x2, %x3}, [%px];\n"
	"	mad.lo.u32 %sum, %w0, %x0, %sum;\n"
	"	mad.lo.u32 %sum, %w1, %x1, %sum;\n"
	"	mad.lo.u32 %sum, %w2, %x2, %sum;\n"
	"	mad.lo.u32 %sum, %w3, %x3, %sum;\n"
	"	add.u64 %pw, %pw, 512;\n"
	"	add.u64 %px, %px, 512;\n"
	"	sub.u32 %left, %left, 1;\n"
	"	setp.ne.u32 %p, %left, 0;\n"
	"	@%p bra COLUMNS;\n"
	"	shfl.sync.bfly.b32 %t, %sum, 16, 31, 0xffffffff;\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	shfl.sync.bfly.b32 %t, %sum, 8, 31, 0xffffffff;\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	shfl.sync.bfly.b32 %t, %sum, 4, 31, 0xffffffff;\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	shfl.sync.bfly.b32 %t, %sum, 2, 31, 0xffffffff;\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	shfl.sync.bfly.b32 %t, %sum, 1, 31, 0xffffffff;\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	setp.ne.u32 %p, %lane, 0;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %y, [y];\n"
	"	cvta.to.global.u64 %y, %y;\n"
	"	mul.wide.u32 %o, %row, 4;\n"
	"	add.u64 %y, %y, %o;\n"
	"	st.global.u32 [%y], %sum;\n"
	"	ret;\n"
	"}\n"

/*
 * x[c] = (y[c] + y[c + 1024] + ...) * 2 + 1 over all rows: odd, so that no
 * bit of a weight goes lost.
 */
	".visible .entry fold(.param .u64 x, .param .u64 y, .param .u32 rows)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %c, %n, %t, %sum;\n"
	"	.reg .u64 %x, %y, %at, %o;\n"
	"\n"
	"	mov.u32 %c, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %c, %c, %n, %t;\n"
	"	ld.param.u32 %n, [rows];\n"
	"	ld.param.u64 %x, [x];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	ld.param.u64 %y, [y];\n"
	"	cvta.to.global.u64 %y, %y;\n"
	"	mul.wide.u32 %o, %c, 4;\n"
	"	add.u64 %x, %x, %o;\n"
	"	mov.u32 %sum, %c;\n"
	"	bra NEXT;\n"
	"ROWS:\n"
	"	mul.wide.u32 %o, %c, 4;\n"
	"	add.u64 %at, %y, %o;\n"
	"	ld.global.u32 %t, [%at];\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	add.u32 %c, %c, 1024;\n"
	"NEXT:\n"
	"	setp.lt.u32 %p, %c, %n;\n"
	"	@%p bra ROWS;\n"
	"	shl.b32 %sum, %sum, 1;\n"
	"	or.b32 %sum, %sum, 1;\n"
	"	st.global.u32 [%x], %sum;\n"
	"	ret;\n"
	"}\n";

/* One layer on the host; y is scratch of `rows` words. */
static void host_layer(uint32_t *x, uint32_t *y, const uint32_t *w,
	size_t rows)
{
	for (size_t r = 0; r < rows; r++) {
		uint32_t sum = 0;

		for (size_t c = 0; c < COLS; c++)
			sum += w[r * COLS + c] * x[c];
		y[r] = sum;
	}
	for (size_t c = 0; c < COLS; c++) {
		uint32_t sum = c;

		for (size_t r = c; r < rows; r += COLS)
			sum += y[r];
		x[c] = sum << 1 | 1;
	}
}

struct run {
	CUfunction layer, fold;
	CUstream stream;
	CUdeviceptr x, y, *w;
	uint32_t *host_x, *host_y, **host_w, *got;
	size_t nr, rows;
};

static void run_create(struct run *r, CUmodule mod, size_t nr, size_t rows,
	uint64_t seed)
{
	const size_t size = rows * COLS * 4;

	r->nr = nr;
	r->rows = rows;
	r->layer = e2e_kernel(mod, "layer");
	r->fold = e2e_kernel(mod, "fold");
	CU(cuStreamCreate, &r->stream, CU_STREAM_NON_BLOCKING);
	r->w = e2e_host(nr * sizeof(*r->w));
	r->host_w = e2e_host(nr * sizeof(*r->host_w));
	for (size_t i = 0; i < nr; i++) {
		r->w[i] = e2e_alloc(size);
		r->host_w[i] = e2e_host(size);
		for (size_t j = 0; j < rows * COLS; j++)
			r->host_w[i][j] = e2e_random(&seed) >> 32;
		CU(cuMemcpyHtoD, r->w[i], r->host_w[i], size);
	}
	r->x = e2e_alloc(COLS * 4);
	r->y = e2e_alloc(rows * 4);
	r->host_x = e2e_host(COLS * 4);
	r->host_y = e2e_host(rows * 4);
	for (size_t c = 0; c < COLS; c++)
		r->host_x[c] = e2e_random(&seed) >> 32 | 1;
	CU(cuMemcpyHtoD, r->x, r->host_x, COLS * 4);
	CU(cuMemAllocHost, (void **)&r->got, COLS * 4);
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
}

static void run_destroy(struct run *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		CU(cuMemFree, r->w[i]);
		free(r->host_w[i]);
	}
	CU(cuMemFree, r->x);
	CU(cuMemFree, r->y);
	CU(cuMemFreeHost, r->got);
	CU(cuStreamDestroy, r->stream);
	free(r->w);
	free(r->host_w);
	free(r->host_x);
	free(r->host_y);
}

static void run_round(struct run *r, size_t round)
{
	unsigned int rows = r->rows;

	for (size_t i = 0; i < r->nr; i++) {
		void *args[] = { &r->y, &r->w[i], &r->x, &rows };
		void *fold_args[] = { &r->x, &r->y, &rows };

		CU(cuLaunchKernel, r->layer, (rows + 7) / 8, 1, 1, 256, 1, 1,
			0, r->stream, args, NULL);
		CU(cuLaunchKernel, r->fold, COLS / 256, 1, 1, 256, 1, 1, 0,
			r->stream, fold_args, NULL);
	}
	CU(cuMemcpyDtoHAsync, r->got, r->x, COLS * 4, r->stream);
	for (size_t i = 0; i < r->nr; i++)
		host_layer(r->host_x, r->host_y, r->host_w[i], r->rows);
	CU(cuStreamSynchronize, r->stream);
	if (memcmp(r->got, r->host_x, COLS * 4))
		E2E_FAIL("round %zu: x differs from the host's", round);
}

int main(int argc, char **argv)
{
	uint64_t mats = 12, bytes = 4 << 20, rounds = 4, seed = 1;
	uint64_t hash = E2E_HASH;
	const struct e2e_option opts[] = {
		{ "mats", &mats, 0 }, { "bytes", &bytes, 0 },
		{ "rounds", &rounds, 0 }, { "seed", &seed, 0 },
	};
	struct run r;
	CUdevice dev;
	CUmodule mod;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (!mats || bytes < COLS * 4)
		E2E_FAIL("at least one matrix of %d bytes", COLS * 4);
	dev = e2e_open();
	mod = e2e_module(ptx);
	run_create(&r, mod, mats, bytes / (COLS * 4), seed);
	for (uint64_t i = 0; i < rounds; i++) {
		run_round(&r, i);
		hash = e2e_hash(hash, r.got, COLS * 4);
	}
	run_destroy(&r);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	return 0;
}
