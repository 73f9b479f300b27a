/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: their functions' handles end with them.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue.h"

EXPORT CUresult cuModuleUnload(CUmodule m)
{
	/* Before: another thread may get a handle at once that this one frees. */
	if (init_active())
		issue_module_unloaded();
	return REAL(cuModuleUnload)(m);
}

EXPORT CUresult cuLibraryUnload(CUlibrary l)
{
	if (init_active())
		issue_module_unloaded();
	return REAL(cuLibraryUnload)(l);
}

/* ---- kernels of libraries, which launches take as functions ---- */

EXPORT CUresult cuLibraryGetKernel(CUkernel *k, CUlibrary l, const char *name)
{
	CUresult r = REAL(cuLibraryGetKernel)(k, l, name);

	if (r == CUDA_SUCCESS && init_active())
		issue_kernel_known(*k);
	return r;
}

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *k, unsigned int n,
	CUlibrary l)
{
	CUresult r = REAL(cuLibraryEnumerateKernels)(k, n, l);

	for (unsigned int i = 0; r == CUDA_SUCCESS && i < n; i++)
		if (init_active() && k[i] != NULL)
			issue_kernel_known(k[i]);
	return r;
}

/* ---- loading: code takes GPU memory, which may have to be found ---- */

/* About what a module may need; the driver does not tell beforehand. */
#define MODULE_BYTES (16u << 20)

#define LOAD(symbol, args, pass) \
	EXPORT CUresult symbol args \
	{ \
		CUresult r = REAL(symbol) pass; \
		\
		if (r == CUDA_ERROR_OUT_OF_MEMORY && init_active() && \
		    issue_make_room(MODULE_BYTES)) \
			r = real.symbol pass; \
		return r; \
	}

LOAD(cuModuleLoad, (CUmodule *m, const char *path), (m, path))
LOAD(cuModuleLoadData, (CUmodule *m, const void *image), (m, image))
LOAD(cuModuleLoadDataEx, (CUmodule *m, const void *image, unsigned int n,
	CUjit_option *options, void **values), (m, image, n, options, values))
LOAD(cuModuleLoadFatBinary, (CUmodule *m, const void *image), (m, image))
LOAD(cuLibraryLoadData, (CUlibrary *l, const void *code, CUjit_option *jit,
	void **jit_values, unsigned int nr_jit, CUlibraryOption *options,
	void **values, unsigned int n),
	(l, code, jit, jit_values, nr_jit, options, values, n))
LOAD(cuLibraryLoadFromFile, (CUlibrary *l, const char *path,
	CUjit_option *jit, void **jit_values, unsigned int nr_jit,
	CUlibraryOption *options, void **values, unsigned int n),
	(l, path, jit, jit_values, nr_jit, options, values, n))
