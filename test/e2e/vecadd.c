/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first CUDA program of all: c = a + b, checked on the host.  A size that
 * fills no whole block shows that the guard works.
 */
#include "test/e2e/e2e_util.h"

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c,\n"
	"	.param .u32 n)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %t;\n"
	"	.reg .u64 %a, %b, %c, %o;\n"
	"	.reg .f32 %x, %y;\n"
	"\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u32 %n, [n];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %a, [a];\n"
	"	ld.param.u64 %b, [b];\n"
	"	ld.param.u64 %c, [c];\n"
	"	cvta.to.global.u64 %a, %a;\n"
	"	cvta.to.global.u64 %b, %b;\n"
	"	cvta.to.global.u64 %c, %c;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %a, %a, %o;\n"
	"	add.u64 %b, %b, %o;\n"
	"	add.u64 %c, %c, %o;\n"
	"	ld.global.f32 %x, [%a];\n"
	"	ld.global.f32 %y, [%b];\n"
	"	add.rn.f32 %x, %x, %y;\n"
	"	st.global.f32 [%c], %x;\n"
	"	ret;\n"
	"}\n";

static void fill(float *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (float)(e2e_random(&seed) >> 40) / 4096.0f;
}

int main(int argc, char **argv)
{
	uint64_t n = 50000;
	const struct e2e_option opts[] = { { "n", &n, 0 } };
	CUdeviceptr da, db, dc;
	unsigned int words;
	float *a, *b, *c;
	CUfunction f;
	CUmodule mod;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	words = (unsigned int)n;
	a = e2e_host(n * 4);
	b = e2e_host(n * 4);
	c = e2e_host(n * 4);
	fill(a, n, 1);
	fill(b, n, 2);
	dev = e2e_open();
	mod = e2e_module(ptx);
	f = e2e_kernel(mod, "vecadd");
	da = e2e_alloc(n * 4);
	db = e2e_alloc(n * 4);
	dc = e2e_alloc(n * 4);
	CU(cuMemcpyHtoD, da, a, n * 4);
	CU(cuMemcpyHtoD, db, b, n * 4);
	void *args[] = { &da, &db, &dc, &words };

	CU(cuLaunchKernel, f, (words + 255) / 256, 1, 1, 256, 1, 1, 0, NULL,
		args, NULL);
	CU(cuMemcpyDtoH, c, dc, n * 4);
	for (size_t i = 0; i < n; i++)
		if (c[i] != a[i] + b[i])
			E2E_FAIL("c[%zu] is %g, not %g", i, c[i], a[i] + b[i]);
	printf("checksum: %016llx\n",
		(unsigned long long)e2e_hash(E2E_HASH, c, n * 4));
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
