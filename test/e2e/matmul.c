/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C = A B in tiles of 16 x 16 that blocks share, with barriers between.  The
 * numbers are small integers, so sums are exact in any order.
 */
#include "test/e2e/e2e_util.h"

/* As[ty][tx] at %as, Bs[ty][tx] at %bs; a row of a tile has 64 bytes. */
#define PRODUCT(k, a_off, b_off)					\
	"	ld.shared.f32 %x, [%ar+" #a_off "];\n"			\
	"	ld.shared.f32 %y, [%bc+" #b_off "];\n"			\
	"	fma.rn.f32 %sum, %x, %y, %sum;\n"

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
/* n is a multiple of 16; blocks of 16 x 16, a grid of n/16 x n/16. */
	".visible .entry matmul(.param .u64 c, .param .u64 a, .param .u64 b,\n"
	"	.param .u32 n)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %n, %tx, %ty, %row, %col, %i, %t;\n"
	"	.reg .u32 %as, %bs, %ar, %bc;\n"
	"	.reg .u64 %a, %b, %c, %o, %step;\n"
	"	.reg .f32 %x, %y, %sum;\n"
	"	.shared .align 16 .b8 tile_a[1024];\n"
	"	.shared .align 16 .b8 tile_b[1024];\n"
	"\n"
	"	ld.param.u32 %n, [n];\n"
	"	mov.u32 %tx, %tid.x;\n"
	"	mov.u32 %ty, %tid.y;\n"
	"	mov.u32 %row, %ctaid.y;\n"
	"	mad.lo.u32 %row, %row, 16, %ty;\n"
	"	mov.u32 %col, %ctaid.x;\n"
	"	mad.lo.u32 %col, %col, 16, %tx;\n"
	"	ld.param.u64 %a, [a];\n"
	"	cvta.to.global.u64 %a, %a;\n"
	"	mad.lo.u32 %t, %row, %n, %tx;\n"
	"	mul.wide.u32 %o, %t, 4;\n"
	"	add.u64 %a, %a, %o;\n"
	"	ld.param.u64 %b, [b];\n"
	"	cvta.to.global.u64 %b, %b;\n"
	"	mad.lo.u32 %t, %ty, %n, %col;\n"
	"	mul.wide.u32 %o, %t, 4;\n"
	"	add.u64 %b, %b, %o;\n"
	"	mul.wide.u32 %step, %n, 64;\n"
	"	mov.u32 %as, tile_a;\n"
	"	mov.u32 %bs, tile_b;\n"
	"	mad.lo.u32 %ar, %ty, 64, %as;\n"
	"	mad.lo.u32 %bc, %tx, 4, %bs;\n"
	"	mad.lo.u32 %t, %ty, 16, %tx;\n"
	"	shl.b32 %t, %t, 2;\n"
	"	add.u32 %as, %as, %t;\n"
	"	add.u32 %bs, %bs, %t;\n"
	"	mov.f32 %sum, 0f00000000;\n"
	"	mov.u32 %i, 0;\n"
	"TILE:\n"
	"	ld.global.f32 %x, [%a];\n"
	"	st.shared.f32 [%as], %x;\n"
	"	ld.global.f32 %y, [%b];\n"
	"	st.shared.f32 [%bs], %y;\n"
	"	bar.sync 0;\n"
	PRODUCT(0, 0, 0) PRODUCT(1, 4, 64) PRODUCT(2, 8, 128)
	PRODUCT(3, 12, 192) PRODUCT(4, 16, 256) PRODUCT(5, 20, 320)
	PRODUCT(6, 24, 384) PRODUCT(7, 28, 448) PRODUCT(8, 32, 512)
	PRODUCT(9, 36, 576) PRODUCT(10, 40, 640) PRODUCT(11, 44, 704)
	PRODUCT(12, 48, 768) PRODUCT(13, 52, 832) PRODUCT(14, 56, 896)
	PRODUCT(15, 60, 960)
	"	bar.sync 0;\n"
	"	add.u64 %a, %a, 64;\n"
	"	add.u64 %b, %b, %step;\n"
	"	add.u32 %i, %i, 16;\n"
	"	setp.lt.u32 %p, %i, %n;\n"
	"	@%p bra TILE;\n"
	"	ld.param.u64 %c, [c];\n"
	"	cvta.to.global.u64 %c, %c;\n"
	"	mad.lo.u32 %t, %row, %n, %col;\n"
	"	mul.wide.u32 %o, %t, 4;\n"
	"	add.u64 %c, %c, %o;\n"
	"	st.global.f32 [%c], %sum;\n"
	"	ret;\n"
	"}\n";

static void fill(float *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (float)((int)(e2e_random(&seed) >> 60) - 8);
}

static float want(const float *a, const float *b, size_t n, size_t i, size_t j)
{
	float sum = 0;

	for (size_t k = 0; k < n; k++)
		sum += a[i * n + k] * b[k * n + j];
	return sum;
}

int main(int argc, char **argv)
{
	uint64_t n = 128;
	const struct e2e_option opts[] = { { "n", &n, 0 } };
	CUdeviceptr da, db, dc;
	unsigned int edge;
	float *a, *b, *c;
	CUfunction f;
	CUmodule mod;
	CUdevice dev;
	size_t size;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (!n || n % 16)
		E2E_FAIL("n must be a multiple of 16");
	edge = (unsigned int)n;
	size = n * n * 4;
	a = e2e_host(size);
	b = e2e_host(size);
	c = e2e_host(size);
	fill(a, n * n, 1);
	fill(b, n * n, 2);
	dev = e2e_open();
	mod = e2e_module(ptx);
	f = e2e_kernel(mod, "matmul");
	da = e2e_alloc(size);
	db = e2e_alloc(size);
	dc = e2e_alloc(size);
	CU(cuMemcpyHtoD, da, a, size);
	CU(cuMemcpyHtoD, db, b, size);
	void *args[] = { &dc, &da, &db, &edge };

	CU(cuLaunchKernel, f, edge / 16, edge / 16, 1, 16, 16, 1, 0, NULL,
		args, NULL);
	CU(cuMemcpyDtoH, c, dc, size);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (c[i * n + j] != want(a, b, n, i, j))
				E2E_FAIL("c[%zu][%zu] is %g, not %g", i, j,
					c[i * n + j], want(a, b, n, i, j));
	printf("checksum: %016llx\n",
		(unsigned long long)e2e_hash(E2E_HASH, c, size));
	CU(cuMemFree, da);
	CU(cuMemFree, db);
	CU(cuMemFree, dc);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	free(a);
	free(b);
	free(c);
	return 0;
}
