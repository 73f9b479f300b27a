/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs with their own virtual memory share: handles, mappings
 * with rights, and a kernel that adds a number to every word.
 */
#ifndef E2E_VMM_H
#define E2E_VMM_H

#include "test/e2e/e2e_digest.h"

/* add(data, words, value) */
/*
 * The body of a kernel with the parameters data, words and value, in two parts:
 * before and after what else it does.  %i is the thread's number.
 */
#define E2E_ADD_BEGIN							\
	"{\n"								\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %i, %n, %v, %w, %t, %step;\n"			\
	"	.reg .u64 %data, %at;\n"				\
	"	ld.param.u64 %data, [data];\n"				\
	"	cvta.to.global.u64 %data, %data;\n"			\
	"	ld.param.u32 %n, [words];\n"				\
	"	ld.param.u32 %v, [value];\n"				\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %t, %ntid.x;\n"					\
	"	mov.u32 %step, %nctaid.x;\n"				\
	"	mul.lo.u32 %step, %step, %t;\n"				\
	"	mov.u32 %w, %tid.x;\n"					\
	"	mad.lo.u32 %i, %i, %t, %w;\n"
#define E2E_ADD_END							\
	"	bra NEXT;\n"						\
	"WORDS:\n"							\
	"	mul.wide.u32 %at, %i, 4;\n"				\
	"	add.u64 %at, %data, %at;\n"				\
	"	ld.global.u32 %w, [%at];\n"				\
	"	add.u32 %w, %w, %v;\n"					\
	"	st.global.u32 [%at], %w;\n"				\
	"	add.u32 %i, %i, %step;\n"				\
	"NEXT:\n"							\
	"	setp.lt.u32 %p, %i, %n;\n"				\
	"	@%p bra WORDS;\n"					\
	"	ret;\n"							\
	"}\n"

#define E2E_ADD_KERNEL							\
	".visible .entry add(.param .u64 data, .param .u32 words,\n"	\
	"	.param .u32 value)\n"					\
	E2E_ADD_BEGIN E2E_ADD_END

struct e2e_vmm {
	CUmemAllocationProp prop;
	CUmemAccessDesc rights;
	size_t grain;
	CUfunction digest;
	CUfunction add;
};

/* Ends the program with 77 where the device has no virtual memory calls. */
static inline void e2e_vmm_open(struct e2e_vmm *v, CUdevice dev)
{
	CUmodule mod;
	int can;

	memset(v, 0, sizeof(*v));
	CU(cuDeviceGetAttribute, &can,
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, dev);
	if (!can) {
		fprintf(stderr, "no virtual memory management here\n");
		exit(77);
	}
	v->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	v->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	v->prop.location.id = dev;
	v->rights.location = v->prop.location;
	v->rights.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CU(cuMemGetAllocationGranularity, &v->grain, &v->prop,
		CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	mod = e2e_module(E2E_PTX_HEAD E2E_DIGEST_KERNEL E2E_ADD_KERNEL);
	v->digest = e2e_kernel(mod, "digest");
	v->add = e2e_kernel(mod, "add");
}

static inline CUmemGenericAllocationHandle e2e_vmm_create(
	const struct e2e_vmm *v, size_t size)
{
	CUmemGenericAllocationHandle h;
	CUresult r = cuMemCreate(&h, size, &v->prop, 0);

	if (r != CUDA_SUCCESS)
		E2E_FAIL("cuMemCreate of %zu bytes failed: %s", size,
			e2e_error_name(r));
	return h;
}

static inline CUdeviceptr e2e_vmm_reserve(size_t size)
{
	CUdeviceptr p;

	CU(cuMemAddressReserve, &p, size, 0, 0, 0);
	return p;
}

static inline void e2e_vmm_map(const struct e2e_vmm *v, CUdeviceptr p,
	size_t size, CUmemGenericAllocationHandle h)
{
	CU(cuMemMap, p, size, 0, h, 0);
	CU(cuMemSetAccess, p, size, &v->rights, 1);
}

static inline void e2e_vmm_add(const struct e2e_vmm *v, CUstream s,
	CUdeviceptr data, size_t size, uint32_t value)
{
	uint32_t words = size / 4;
	void *args[] = { &data, &words, &value };

	CU(cuLaunchKernel, v->add, 16, 1, 1, 128, 1, 1, 0, s, args, NULL);
}

/* Random bytes to `to`; their digest with that seed. */
static inline uint32_t e2e_upload_random(CUdeviceptr to, size_t size,
	uint32_t digest_seed, uint64_t *seed)
{
	uint32_t *bytes = e2e_host(size), digest;

	e2e_fill_random(bytes, size, seed);
	CU(cuMemcpyHtoD, to, bytes, size);
	digest = e2e_digest(bytes, size, digest_seed);
	free(bytes);
	return digest;
}

#endif
