/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's linker: a kernel in one text calls a function and reads a
 * variable of another; what cannot be compiled is refused with a message.
 */
#include "test/e2e/e2e_util.h"

#define N 64

static const char caller[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"
	".extern .func (.param .u32 r) twice(.param .u32 x);\n"
	".extern .global .align 4 .u32 offset;\n"
	".visible .entry apply(.param .u64 p)\n"
	"{\n"
	"	.reg .u32 %t, %v, %o;\n"
	"	.reg .u64 %p, %a, %g;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	ld.param.u64 %p, [p];\n"
	"	cvta.to.global.u64 %p, %p;\n"
	"	mul.wide.u32 %a, %t, 4;\n"
	"	add.u64 %p, %p, %a;\n"
	"	{\n"
	"	.param .u32 in;\n"
	"	.param .u32 out;\n"
	"	st.param.u32 [in], %t;\n"
	"	call.uni (out), twice, (in);\n"
	"	ld.param.u32 %v, [out];\n"
	"	}\n"
	"	mov.u64 %g, offset;\n"
	"	ld.global.u32 %o, [%g];\n"
	"	add.u32 %v, %v, %o;\n"
	"	st.global.u32 [%p], %v;\n"
	"	ret;\n"
	"}\n";

static const char callee[] =
	"// the other half\n"
	".version 7.1\n"
	".target sm_75\n"
	".address_size 64\n"
	".visible .global .align 4 .u32 offset = 1000;\n"
	".visible .func (.param .u32 r) twice(.param .u32 x)\n"
	"{\n"
	"	.reg .u32 %v;\n"
	"	ld.param.u32 %v, [x];\n"
	"	add.u32 %v, %v, %v;\n"
	"	st.param.u32 [r], %v;\n"
	"	ret;\n"
	"}\n";

static void add(CUlinkState link, const char *text, const char *name)
{
	CU(cuLinkAddData, link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text,
		strlen(text) + 1, name, 0, NULL, NULL);
}

static void linked(int swapped)
{
	CUdeviceptr p = e2e_alloc(N * 4);
	uint32_t got[N];
	CUlinkState link;
	void *image, *args[] = { &p };
	size_t size;
	CUmodule mod;

	CU(cuLinkCreate, 0, NULL, NULL, &link);
	add(link, swapped ? callee : caller, "first");
	add(link, swapped ? caller : callee, "second");
	CU(cuLinkComplete, link, &image, &size);
	if (!size)
		E2E_FAIL("an image without bytes");
	CU(cuModuleLoadData, &mod, image);
	CU(cuLinkDestroy, link);
	CU(cuLaunchKernel, e2e_kernel(mod, "apply"), 1, 1, 1, N, 1, 1, 0, NULL,
		args, NULL);
	CU(cuMemcpyDtoH, got, p, sizeof(got));
	for (uint32_t i = 0; i < N; i++)
		if (got[i] != 2 * i + 1000)
			E2E_FAIL("[%u] is %u", i, got[i]);
	CU(cuModuleUnload, mod);
	CU(cuMemFree, p);
}

/* A real driver may tell at the one call or the other. */
static void refused(void)
{
	static char log[1000], text[] = ".version 7.0\n.target sm_75\n"
		".address_size 64\n.visible .entry k()\n{\n	frob %x;\n}\n";
	CUjit_option names[] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
	};
	void *values[] = { log, (void *)(uintptr_t)sizeof(log) };
	CUlinkState link;
	CUresult r;
	void *image;
	size_t size;

	CU(cuLinkCreate, 2, names, values, &link);
	r = cuLinkAddData(link, CU_JIT_INPUT_PTX, text, sizeof(text), "bad", 0,
		NULL, NULL);
	if (r == CUDA_SUCCESS)
		r = cuLinkComplete(link, &image, &size);
	if (r == CUDA_SUCCESS)
		E2E_FAIL("nonsense was linked");
	if (!log[0])
		E2E_FAIL("no message");
	CU(cuLinkDestroy, link);
}

int main(void)
{
	CUdevice dev = e2e_open();

	linked(0);
	linked(1);
	refused();
	e2e_close(dev);
	printf("linked\n");
	return 0;
}
