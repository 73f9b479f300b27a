/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that change: every step makes a gradient from each tensor and then
 * updates the tensor and its momentum in place, over several steps.  At the
 * end all of them are read back and compared with the host's, bit for bit
 * (every operation is one IEEE rounding).  Lost writes cannot hide here.
 */
#include <math.h>

#include "test/e2e/e2e_util.h"

/* Start of a kernel over `size` elements: %o is this thread's byte offset. */
#define ELEMENT								\
	"{\n"								\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %i, %n, %t;\n"				\
	"	.reg .u64 %w, %m, %g, %o;\n"				\
	"	.reg .f32 %a, %b, %c;\n"				\
	"\n"								\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %n, %ntid.x;\n"					\
	"	mov.u32 %t, %tid.x;\n"					\
	"	mad.lo.u32 %i, %i, %n, %t;\n"				\
	"	ld.param.u32 %n, [size];\n"				\
	"	setp.ge.u32 %p, %i, %n;\n"				\
	"	@%p ret;\n"						\
	"	mul.wide.u32 %o, %i, 4;\n"

#define POINTER(name)							\
	"	ld.param.u64 %" #name ", [" #name "];\n"		\
	"	cvta.to.global.u64 %" #name ", %" #name ";\n"		\
	"	add.u64 %" #name ", %" #name ", %o;\n"

static const char ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
/* g = w * pull + push */
	".visible .entry gradient(.param .u64 g, .param .u64 w,\n"
	"	.param .f32 pull, .param .f32 push, .param .u32 size)\n"
	ELEMENT POINTER(w) POINTER(g)
	"	ld.global.f32 %a, [%w];\n"
	"	ld.param.f32 %b, [pull];\n"
	"	ld.param.f32 %c, [push];\n"
	"	fma.rn.f32 %a, %a, %b, %c;\n"
	"	st.global.f32 [%g], %a;\n"
	"	ret;\n"
	"}\n"
/* m = m * 0.875 + g; w = w - rate * m */
	".visible .entry update(.param .u64 w, .param .u64 m, .param .u64 g,\n"
	"	.param .f32 rate, .param .u32 size)\n"
	ELEMENT POINTER(w) POINTER(m) POINTER(g)
	"	ld.global.f32 %a, [%m];\n"
	"	ld.global.f32 %b, [%g];\n"
	"	fma.rn.f32 %a, %a, 0f3F600000, %b;\n"
	"	st.global.f32 [%m], %a;\n"
	"	ld.param.f32 %b, [rate];\n"
	"	neg.f32 %b, %b;\n"
	"	ld.global.f32 %c, [%w];\n"
	"	fma.rn.f32 %c, %a, %b, %c;\n"
	"	st.global.f32 [%w], %c;\n"
	"	ret;\n"
	"}\n";

static const float pull = 0.125f, rate = 0.0625f;

static float push_of(size_t tensor, size_t step)
{
	return (float)(tensor + 1) / (step + 2);
}

struct run {
	CUfunction gradient, update;
	CUstream stream;
	CUdeviceptr *w, *m, g;
	float **host_w, **host_m;
	size_t nr, len;		/* tensors, elements of each */
};

static void run_create(struct run *r, CUmodule mod, size_t nr, size_t len,
	uint64_t seed)
{
	const size_t size = len * sizeof(float);

	r->nr = nr;
	r->len = len;
	r->gradient = e2e_kernel(mod, "gradient");
	r->update = e2e_kernel(mod, "update");
	CU(cuStreamCreate, &r->stream, CU_STREAM_NON_BLOCKING);
	r->w = e2e_host(nr * sizeof(*r->w));
	r->m = e2e_host(nr * sizeof(*r->m));
	r->host_w = e2e_host(nr * sizeof(*r->host_w));
	r->host_m = e2e_host(nr * sizeof(*r->host_m));
	r->g = e2e_alloc(size);
	for (size_t i = 0; i < nr; i++) {
		r->host_w[i] = e2e_host(size);
		r->host_m[i] = e2e_host(size);
		for (size_t j = 0; j < len; j++)
			r->host_w[i][j] = (int32_t)(e2e_random(&seed) >> 32) /
				2147483648.0f;
		r->w[i] = e2e_alloc(size);
		r->m[i] = e2e_alloc(size);
		CU(cuMemcpyHtoD, r->w[i], r->host_w[i], size);
		CU(cuMemsetD32, r->m[i], 0, len);
	}
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
}

static void run_destroy(struct run *r)
{
	for (size_t i = 0; i < r->nr; i++) {
		CU(cuMemFree, r->w[i]);
		CU(cuMemFree, r->m[i]);
		free(r->host_w[i]);
		free(r->host_m[i]);
	}
	CU(cuMemFree, r->g);
	CU(cuStreamDestroy, r->stream);
	free(r->w);
	free(r->m);
	free(r->host_w);
	free(r->host_m);
}

static void run_step(struct run *r, size_t step)
{
	unsigned int size = r->len, blocks = (r->len + 255) / 256;

	for (size_t i = 0; i < r->nr; i++) {
		float push = push_of(i, step), p = pull, lr = rate;
		void *g_args[] = { &r->g, &r->w[i], &p, &push, &size };
		void *u_args[] = { &r->w[i], &r->m[i], &r->g, &lr, &size };

		CU(cuLaunchKernel, r->gradient, blocks, 1, 1, 256, 1, 1, 0,
			r->stream, g_args, NULL);
		CU(cuLaunchKernel, r->update, blocks, 1, 1, 256, 1, 1, 0,
			r->stream, u_args, NULL);
	}
}

static void host_step(struct run *r, size_t step)
{
	for (size_t i = 0; i < r->nr; i++) {
		float push = push_of(i, step);

		for (size_t j = 0; j < r->len; j++) {
			float *w = &r->host_w[i][j], *m = &r->host_m[i][j];

			*m = fmaf(*m, 0.875f, fmaf(*w, pull, push));
			*w = fmaf(*m, -rate, *w);
		}
	}
}

static uint64_t compare(const char *what, size_t i, CUdeviceptr p,
	const float *want, float *got, size_t size, uint64_t hash)
{
	CU(cuMemcpyDtoH, got, p, size);
	if (memcmp(got, want, size))
		E2E_FAIL("%s %zu differs from the host's", what, i);
	return e2e_hash(hash, got, size);
}

int main(int argc, char **argv)
{
	uint64_t tensors = 6, bytes = 3 << 20, steps = 4, seed = 1;
	uint64_t hash = E2E_HASH;
	const struct e2e_option opts[] = {
		{ "tensors", &tensors, 0 }, { "bytes", &bytes, 0 },
		{ "steps", &steps, 0 }, { "seed", &seed, 0 },
	};
	struct run r;
	float *got;
	CUdevice dev;
	CUmodule mod;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (!tensors || bytes < sizeof(float))
		E2E_FAIL("at least one tensor of 4 bytes");
	dev = e2e_open();
	mod = e2e_module(ptx);
	run_create(&r, mod, tensors, bytes / sizeof(float), seed);
	for (uint64_t i = 0; i < steps; i++) {
		run_step(&r, i);
		host_step(&r, i);
	}
	CU(cuStreamSynchronize, r.stream);
	bytes = r.len * sizeof(float);
	got = e2e_host(bytes);
	for (size_t i = 0; i < tensors; i++) {
		hash = compare("tensor", i, r.w[i], r.host_w[i], got, bytes,
			hash);
		hash = compare("momentum", i, r.m[i], r.host_m[i], got, bytes,
			hash);
	}
	free(got);
	run_destroy(&r);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	return 0;
}
