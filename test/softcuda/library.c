/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries and kernels, see library.h.  A library keeps its text; each
 * context parses it anew, since variables have addresses of their own there.
 * Called by the program and, for kernels that are launched, by function.c.
 * Guarded by the driver's lock.
 */
#include "test/softcuda/library.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/image.h"
#include "test/softcuda/knobs.h"

struct library {
	struct object object;
	char *text;			/* owned */
	size_t len;
	struct ptx_module *parsed;	/* owned; for questions only */
	struct kernel *kernels;		/* owned */
	unsigned nr_kernels;
	struct module *modules;		/* by library_next; contexts own them */
};

/* ---- loading ------------------------------------------------------------------- */

static void make_kernels(struct library *l)
{
	struct kernel *k;
	size_t i;
	int d;

	l->nr_kernels = (unsigned)ptx_module_nr_kernels(l->parsed);
	for (i = l->nr_kernels; i-- > 0; ) {
		k = object_alloc(sizeof(*k));
		k->library = l;
		ptx_kernel_info(ptx_module_kernel_at(l->parsed, i), &k->info);
		for (d = 0; d < DEVICE_MAX; d++)
			k->max_dynamic_shared[d] = k->carveout[d] = -1;
		LL_PREPEND(l->kernels, k);
		object_add(k, OBJECT_KERNEL);
	}
}

static CUresult load(CUlibrary *out, const void *image, size_t size,
	struct jit *jit)
{
	struct library *l = object_alloc(sizeof(*l));
	CUresult r = image_text(image, size, (int)knobs.cc, &l->text, &l->len);

	if (!r)
		r = jit_parse(l->text, l->len, jit, &l->parsed);
	if (r) {
		free(l->text);
		free(l);
		return r;
	}
	make_kernels(l);
	object_add(l, OBJECT_LIBRARY);
	*out = (CUlibrary)l;
	return CUDA_SUCCESS;
}

static CUresult load_data(CUlibrary *out, const void *image,
	const CUjit_option *option, void **value, unsigned n)
{
	struct jit jit;

	if (!out || !image || !jit_options(&jit, n, option, value))
		return CUDA_ERROR_INVALID_VALUE;
	return load(out, image, 0, &jit);
}

static CUresult load_file(CUlibrary *out, const char *path,
	const CUjit_option *option, void **value, unsigned n)
{
	struct jit jit;
	void *image;
	size_t size;
	CUresult r;

	if (!out || !path || !jit_options(&jit, n, option, value))
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(path, &image, &size);
	if (r)
		return r;
	r = load(out, image, size, &jit);
	free(image);
	return r;
}

static CUresult unload(CUlibrary handle)
{
	struct library *l = object_find(handle, OBJECT_LIBRARY);
	struct kernel *k;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	object_remove(l);
	while (l->modules) {
		context_synchronize(l->modules->context);
		if (l->modules)
			module_unload(l->modules);
	}
	while ((k = l->kernels)) {
		l->kernels = k->next;
		object_remove(k);
		free(k);
	}
	ptx_module_destroy(l->parsed);
	free(l->text);
	free(l);
	return CUDA_SUCCESS;
}

/* ---- in a context ---------------------------------------------------------------- */

static CUresult module_in(struct library *l, struct context *ctx,
	struct module **out)
{
	struct module *m;
	CUresult r;

	LL_FOREACH2(l->modules, m, library_next) {
		if (m->context != ctx)
			continue;
		*out = m;
		return CUDA_SUCCESS;
	}
	r = module_load(ctx, l->text, l->len, NULL, &m);
	if (r)
		return r;
	m->library = &l->modules;
	LL_PREPEND2(l->modules, m, library_next);
	*out = m;
	return CUDA_SUCCESS;
}

CUresult library_function(struct kernel *k, struct context *ctx,
	struct function **out)
{
	struct module *m;
	CUresult r = module_in(k->library, ctx, &m);

	if (r)
		return r;
	*out = module_function(m, k->info.name);
	if (!*out)
		return CUDA_ERROR_NOT_FOUND;
	if (k->max_dynamic_shared[ctx->device] >= 0 && !(*out)->shared_is_set)
		(*out)->max_dynamic_shared
			= k->max_dynamic_shared[ctx->device];
	return CUDA_SUCCESS;
}

static CUresult get_module(struct context *ctx, CUmodule *out, CUlibrary handle)
{
	struct library *l = object_find(handle, OBJECT_LIBRARY);
	struct module *m;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	r = module_in(l, ctx, &m);
	if (!r)
		*out = (CUmodule)m;
	return r;
}

static CUresult get_global(struct context *ctx, CUdeviceptr *out, size_t *size,
	CUlibrary handle, const char *name)
{
	struct library *l = object_find(handle, OBJECT_LIBRARY);
	struct module *m;
	CUresult r;

	if (!name || (!out && !size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	r = module_in(l, ctx, &m);
	return r ? r : module_global(m, name, out, size);
}

static CUresult get_function(struct context *ctx, CUfunction *out,
	CUkernel handle)
{
	struct kernel *k = object_find(handle, OBJECT_KERNEL);
	struct function *f;
	CUresult r;

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	r = library_function(k, ctx, &f);
	if (!r)
		*out = (CUfunction)f;
	return r;
}

/* ---- questions -------------------------------------------------------------------- */

static CUresult get_kernel(CUkernel *out, CUlibrary handle, const char *name)
{
	struct library *l = object_find(handle, OBJECT_LIBRARY);
	struct kernel *k;

	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	LL_FOREACH(l->kernels, k) {
		if (strcmp(k->info.name, name))
			continue;
		*out = (CUkernel)k;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult count(unsigned *out, CUlibrary handle)
{
	struct library *l = object_find(handle, OBJECT_LIBRARY);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = l->nr_kernels;
	return CUDA_SUCCESS;
}

static CUresult enumerate(CUkernel *out, unsigned n, CUlibrary handle)
{
	struct library *l = object_find(handle, OBJECT_LIBRARY);
	struct kernel *k;

	if (!out || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	for (k = l->kernels; k && n; k = k->next, n--)
		*out++ = (CUkernel)k;
	return CUDA_SUCCESS;
}

/* There are no managed variables here. */
static CUresult get_managed(CUlibrary handle)
{
	return object_find(handle, OBJECT_LIBRARY) ? CUDA_ERROR_NOT_FOUND
		: CUDA_ERROR_INVALID_HANDLE;
}

static CUresult param_info(CUkernel handle, size_t i, size_t *offset,
	size_t *size)
{
	struct kernel *k = object_find(handle, OBJECT_KERNEL);

	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (i >= k->info.nr_params)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = k->info.params[i].offset;
	if (size)
		*size = k->info.params[i].size;
	return CUDA_SUCCESS;
}

static CUresult get_name(const char **out, CUkernel handle)
{
	struct kernel *k = object_find(handle, OBJECT_KERNEL);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = k->info.name;
	return CUDA_SUCCESS;
}

static CUresult get_library(CUlibrary *out, CUkernel handle)
{
	struct kernel *k = object_find(handle, OBJECT_KERNEL);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = (CUlibrary)k->library;
	return CUDA_SUCCESS;
}

static CUresult get_attribute(int *out, CUfunction_attribute attr,
	CUkernel handle, CUdevice dev)
{
	struct kernel *k = object_find(handle, OBJECT_KERNEL);
	struct function f = { 0 };

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	f.info = k->info;
	f.max_dynamic_shared = k->max_dynamic_shared[dev] >= 0
		? k->max_dynamic_shared[dev] : 49152 - (int)f.info.shared_size;
	f.carveout = k->carveout[dev];
	return function_attribute(&f, ptx_module_target(k->library->parsed),
		attr, out);
}

static CUresult set_attribute(CUfunction_attribute attr, int value,
	CUkernel handle, CUdevice dev)
{
	struct kernel *k = object_find(handle, OBJECT_KERNEL);

	if (!k)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attr) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value > function_shared_limit()
		    - (int)k->info.shared_size)
			return CUDA_ERROR_INVALID_VALUE;
		k->max_dynamic_shared[dev] = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		k->carveout[dev] = value;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* A hint, without effect here. */
static CUresult set_cache(CUkernel handle, CUfunc_cache config, CUdevice dev)
{
	if (!object_find(handle, OBJECT_KERNEL))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!device_valid(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	return (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL
		? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

#define CALL(name, need, action, ...) \
CUresult name(__VA_ARGS__) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, need)) \
		c.result = action; \
	return call_end(&c); \
}

CALL(cuLibraryLoadData, CALL_INIT, load_data(out, image, option, value, n),
	CUlibrary *out, const void *image, CUjit_option *option, void **value,
	unsigned int n, CUlibraryOption *library_option, void **library_value,
	unsigned int nr_library)
CALL(cuLibraryLoadFromFile, CALL_INIT, load_file(out, path, option, value, n),
	CUlibrary *out, const char *path, CUjit_option *option, void **value,
	unsigned int n, CUlibraryOption *library_option, void **library_value,
	unsigned int nr_library)
CALL(cuLibraryUnload, CALL_INIT | CALL_FREES, unload(library),
	CUlibrary library)
CALL(cuLibraryGetKernel, CALL_INIT, get_kernel(out, library, name),
	CUkernel *out, CUlibrary library, const char *name)
CALL(cuLibraryGetKernelCount, CALL_INIT, count(out, library),
	unsigned int *out, CUlibrary library)
CALL(cuLibraryEnumerateKernels, CALL_INIT, enumerate(out, n, library),
	CUkernel *out, unsigned int n, CUlibrary library)
CALL(cuLibraryGetModule, CALL_CONTEXT, get_module(c.context, out, library),
	CUmodule *out, CUlibrary library)
CALL(cuLibraryGetGlobal, CALL_CONTEXT,
	get_global(c.context, out, size, library, name),
	CUdeviceptr *out, size_t *size, CUlibrary library, const char *name)
CALL(cuLibraryGetManaged, CALL_CONTEXT, get_managed(library),
	CUdeviceptr *out, size_t *size, CUlibrary library, const char *name)
CALL(cuKernelGetFunction, CALL_CONTEXT, get_function(c.context, out, kernel),
	CUfunction *out, CUkernel kernel)
CALL(cuKernelGetLibrary, CALL_INIT, get_library(out, kernel),
	CUlibrary *out, CUkernel kernel)
CALL(cuKernelGetName, CALL_INIT, get_name(out, kernel),
	const char **out, CUkernel kernel)
CALL(cuKernelGetParamInfo, CALL_INIT, param_info(kernel, i, offset, size),
	CUkernel kernel, size_t i, size_t *offset, size_t *size)
CALL(cuKernelGetAttribute, CALL_INIT, get_attribute(out, attr, kernel, dev),
	int *out, CUfunction_attribute attr, CUkernel kernel, CUdevice dev)
CALL(cuKernelSetAttribute, CALL_INIT, set_attribute(attr, value, kernel, dev),
	CUfunction_attribute attr, int value, CUkernel kernel, CUdevice dev)
CALL(cuKernelSetCacheConfig, CALL_INIT, set_cache(kernel, config, dev),
	CUkernel kernel, CUfunc_cache config, CUdevice dev)
