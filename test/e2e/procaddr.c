/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver found as the CUDA runtime finds it: dlopen, one dlsym, everything
 * else by cuGetProcAddress with name, version and flavour.  Shows that the
 * version chooses the ABI.
 */
#include "test/e2e/e2e_util.h"

#include <dlfcn.h>

typedef CUresult get_fn(const char *, void **, int, cuuint64_t,
	CUdriverProcAddressQueryResult *);

static get_fn *get;
static void *driver;

static void *lookup(const char *name, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult how;
	void *p = NULL;

	if (get(name, &p, version, flags, &how) != CUDA_SUCCESS || !p
	    || how != CU_GET_PROC_ADDRESS_SUCCESS)
		E2E_FAIL("%s of version %d was not found", name, version);
	return p;
}

static void same(const char *name, int version, cuuint64_t flags,
	const char *symbol)
{
	Dl_info by_name, by_version;

	if (!dladdr(lookup(name, version, flags), &by_version)
	    || !dladdr(dlsym(driver, symbol), &by_name))
		E2E_FAIL("%s lies nowhere", name);
	if (by_name.dli_saddr != by_version.dli_saddr)
		E2E_FAIL("%s of version %d is %s, not %s", name, version,
			by_version.dli_sname, symbol);
}

static void missing(const char *name, int version,
	CUdriverProcAddressQueryResult want)
{
	CUdriverProcAddressQueryResult how = CU_GET_PROC_ADDRESS_SUCCESS;
	void *p = &how;

	get(name, &p, version, 0, &how);
	if (p || how != want)
		E2E_FAIL("%s of version %d: %p, status %d", name, version, p,
			(int)how);
}

/* A copy there and back through what was found. */
static uint64_t use(void)
{
	typedef CUresult alloc_fn(CUdeviceptr *, size_t);
	typedef CUresult free_fn(CUdeviceptr);
	typedef CUresult h2d_fn(CUdeviceptr, const void *, size_t);
	typedef CUresult d2h_fn(void *, CUdeviceptr, size_t);
	static unsigned char in[4096], out[4096];
	uint64_t seed = 9;
	CUdeviceptr p;

	e2e_fill_random(in, sizeof(in), &seed);
	if (((alloc_fn *)lookup("cuMemAlloc", 3020, 0))(&p, sizeof(in))
	    || ((h2d_fn *)lookup("cuMemcpyHtoD", 3020, 0))(p, in, sizeof(in))
	    || ((d2h_fn *)lookup("cuMemcpyDtoH", 7000, 2))(out, p, sizeof(in))
	    || ((free_fn *)lookup("cuMemFree", 3020, 0))(p))
		E2E_FAIL("a call that was looked up failed");
	if (memcmp(in, out, sizeof(in)))
		E2E_FAIL("the bytes differ");
	return e2e_hash(E2E_HASH, out, sizeof(out));
}

int main(void)
{
	uint64_t hash;
	CUdevice dev;
	int version;
	void *p;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		E2E_FAIL("%s", dlerror());
	get = (get_fn *)dlsym(driver, "cuGetProcAddress_v2");
	if (!get)
		E2E_FAIL("no cuGetProcAddress_v2");
	/* The runtime's first question. */
	p = &hash;
	get("", &p, 0, 0, NULL);
	dev = e2e_open();
	same("cuMemAlloc", 3020, 0, "cuMemAlloc_v2");
	same("cuMemAlloc", 12000, 0, "cuMemAlloc_v2");
	same("cuCtxGetDevice", 2000, 0, "cuCtxGetDevice");
	same("cuCtxGetDevice", 12080, 0, "cuCtxGetDevice");
	/* What a driver does not know yet, it answers with what it has. */
	CU(cuDriverGetVersion, &version);
	same("cuCtxGetDevice", 13000, 0, version >= 13000 ?
		"cuCtxGetDevice_v2" : "cuCtxGetDevice");
	same("cuDevicePrimaryCtxRelease", 7000, 0, "cuDevicePrimaryCtxRelease");
	same("cuDevicePrimaryCtxRelease", 11000, 0,
		"cuDevicePrimaryCtxRelease_v2");
	same("cuLaunchKernel", 4000, 0, "cuLaunchKernel");
	same("cuLaunchKernel", 7000, 2, "cuLaunchKernel_ptsz");
	same("cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds");
	same("cuMemcpyHtoD", 7000, 1, "cuMemcpyHtoD_v2");
	same("cuMemAlloc", 7000, 2, "cuMemAlloc_v2");
	same("cuEventQuery", 2000, 2, "cuEventQuery");
	same("cuEventRecord", 2000, 0, "cuEventRecord");
	same("cuEventRecord", 7000, 2, "cuEventRecord_ptsz");
	same("cuEventRecordWithFlags", 11010, 1, "cuEventRecordWithFlags");
	same("cuEventRecordWithFlags", 11010, 2, "cuEventRecordWithFlags_ptsz");
	same("cuStreamQuery", 7000, 2, "cuStreamQuery_ptsz");
	same("cuStreamWaitEvent", 3020, 1, "cuStreamWaitEvent");
	same("cuStreamWaitEvent", 7000, 2, "cuStreamWaitEvent_ptsz");
	same("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
	same("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
	missing("cuMemBogus", 13000, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	missing("cuMemCreate", 9000,
		CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	hash = use();
	printf("checksum: %016llx\n", (unsigned long long)hash);
	e2e_close(dev);
	return 0;
}
