/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules from PTX text, which may come in a fat binary (image.c).  Called by
 * the program and by library.c; guarded by the driver's lock.
 */
#include "test/softcuda/module.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/image.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memory.h"

void module_get(struct module *m)
{
	m->refs++;
}

static void free_variables(struct module *m)
{
	struct ptx_variable *v;
	size_t i;

	for (i = 0; i < ptx_module_nr_variables(m->text); i++) {
		v = ptx_module_variable(m->text, i);
		if (v->address)
			memory_free(v->address);
		v->address = 0;
	}
}

void module_put(struct module *m)
{
	struct function *f;

	if (--m->refs)
		return;
	while ((f = m->functions)) {
		m->functions = f->next;
		free(f);
	}
	ptx_module_destroy(m->text);
	free(m);
}

/* The handle dies; the text when the last launch has run. */
void module_unload(struct module *m)
{
	struct function *f;

	if (m->library)
		LL_DELETE2(*m->library, m, library_next);
	free_variables(m);
	LL_FOREACH(m->functions, f)
		object_remove(f);
	object_remove(m);
	DL_DELETE(m->context->modules, m);
	module_put(m);
}

void module_context_end(struct context *ctx)
{
	while (ctx->modules)
		module_unload(ctx->modules);
}

/* ---- loading ------------------------------------------------------------------ */

/* Initial values are put in place by the driver, not by an operation. */
static void fill_variable(const struct ptx_variable *v)
{
	uint64_t off = 0, n;
	struct map *m;
	uint8_t *to;

	while (off < v->size) {
		m = access_find(v->address + off);
		n = m->address + m->size - (v->address + off);
		if (n > v->size - off)
			n = v->size - off;
		to = block_bytes(m->block, v->address + off - m->address, n);
		if (v->init)
			memcpy(to, (const uint8_t *)v->init + off, n);
		else
			memset(to, 0, n);
		off += n;
	}
}

static CUresult place_variables(struct module *m)
{
	struct ptx_variable *v;
	struct ptx_error err;
	CUdeviceptr address;
	enum ptx_status s;
	size_t i;
	CUresult r;

	for (i = 0; i < ptx_module_nr_variables(m->text); i++) {
		v = ptx_module_variable(m->text, i);
		if (!v->size)
			continue;
		r = memory_alloc(m->context, &address, v->size);
		if (r)
			return r;
		v->address = address;
	}
	s = ptx_module_relocate(m->text, &err);
	if (s)
		return jit_result(s);
	for (i = 0; i < ptx_module_nr_variables(m->text); i++)
		if (ptx_module_variable(m->text, i)->size)
			fill_variable(ptx_module_variable(m->text, i));
	return CUDA_SUCCESS;
}

static void make_functions(struct module *m)
{
	struct function *f;
	size_t i;

	for (i = 0; i < ptx_module_nr_kernels(m->text); i++) {
		f = object_alloc(sizeof(*f));
		f->module = m;
		f->kernel = ptx_module_kernel_at(m->text, i);
		ptx_kernel_info(f->kernel, &f->info);
		f->max_dynamic_shared = 49152 - (int)f->info.shared_size;
		f->carveout = -1;
		LL_PREPEND(m->functions, f);
		object_add(f, OBJECT_FUNCTION);
	}
}

CUresult module_load(struct context *ctx, const char *text, size_t len,
	struct jit *jit, struct module **out)
{
	struct module *m = object_alloc(sizeof(*m));
	CUresult r;

	m->refs = 1;
	m->context = ctx;
	r = jit_parse(text, len, jit, &m->text);
	if (r) {
		free(m);
		return r;
	}
	object_add(m, OBJECT_MODULE);
	DL_APPEND(ctx->modules, m);
	make_functions(m);
	r = place_variables(m);
	if (r)
		module_unload(m);
	else
		*out = m;
	return r;
}

/* size 0: the image ends where it says. */
static CUresult load_image(struct context *ctx, CUmodule *out,
	const void *image, size_t size, struct jit *jit)
{
	struct module *m;
	char *text;
	size_t len;
	CUresult r = image_text(image, size, (int)knobs.cc, &text, &len);

	if (r)
		return r;
	r = module_load(ctx, text, len, jit, &m);
	free(text);
	if (!r)
		*out = (CUmodule)m;
	return r;
}

static CUresult load_data(struct context *ctx, CUmodule *out,
	const void *image, unsigned n, CUjit_option *option, void **value)
{
	struct jit jit;

	if (!out || !image || !jit_options(&jit, n, option, value))
		return CUDA_ERROR_INVALID_VALUE;
	return load_image(ctx, out, image, 0, &jit);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = load_data(c.context, out, image, 0, NULL, NULL);
	return call_end(&c);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int n,
	CUjit_option *option, void **value)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = load_data(c.context, out, image, n, option, value);
	return call_end(&c);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = load_data(c.context, out, image, 0, NULL, NULL);
	return call_end(&c);
}

static CUresult load_file(struct context *ctx, CUmodule *out, const char *path)
{
	void *image;
	size_t size;
	CUresult r;

	if (!out || !path)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(path, &image, &size);
	if (r)
		return r;
	r = load_image(ctx, out, image, size, NULL);
	free(image);
	return r;
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = load_file(c.context, out, path);
	return call_end(&c);
}

static CUresult unload_handle(CUmodule handle)
{
	struct module *m = object_find(handle, OBJECT_MODULE);

	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	/* It belongs to its library. */
	if (m->library)
		return CUDA_ERROR_NOT_PERMITTED;
	context_synchronize(m->context);
	m = object_find(handle, OBJECT_MODULE);
	if (m)
		module_unload(m);
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT | CALL_FREES))
		c.result = unload_handle(handle);
	return call_end(&c);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *out)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		if (out)
			*out = CU_MODULE_EAGER_LOADING;
		else
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

/* ---- lookup --------------------------------------------------------------------- */

struct function *module_function(struct module *m, const char *name)
{
	struct function *f;

	LL_FOREACH(m->functions, f)
		if (!strcmp(f->info.name, name))
			return f;
	return NULL;
}

static CUresult get_function(CUfunction *out, CUmodule handle,
	const char *name)
{
	struct module *m = object_find(handle, OBJECT_MODULE);
	struct function *f;

	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	f = module_function(m, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*out = (CUfunction)f;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle,
	const char *name)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_function(out, handle, name);
	return call_end(&c);
}

CUresult module_global(struct module *m, const char *name, CUdeviceptr *out,
	size_t *size)
{
	struct ptx_variable *v;
	size_t i;

	for (i = 0; i < ptx_module_nr_variables(m->text); i++) {
		v = ptx_module_variable(m->text, i);
		if (strcmp(v->name, name))
			continue;
		if (out)
			*out = v->address;
		if (size)
			*size = v->size;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

static CUresult get_global(CUdeviceptr *out, size_t *size, CUmodule handle,
	const char *name)
{
	struct module *m = object_find(handle, OBJECT_MODULE);

	if (!name || (!out && !size))
		return CUDA_ERROR_INVALID_VALUE;
	return m ? module_global(m, name, out, size)
		: CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *size, CUmodule handle,
	const char *name)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_global(out, size, handle, name);
	return call_end(&c);
}

static CUresult count_functions(unsigned *count, CUmodule handle)
{
	struct module *m = object_find(handle, OBJECT_MODULE);

	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	*count = (unsigned)ptx_module_nr_kernels(m->text);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = count_functions(count, handle);
	return call_end(&c);
}

static CUresult enumerate(CUfunction *out, unsigned n, CUmodule handle)
{
	struct module *m = object_find(handle, OBJECT_MODULE);
	struct function *f;
	unsigned i = 0;

	if (!out || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	for (f = m->functions; f && i < n; f = f->next)
		out[i++] = (CUfunction)f;
	return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned int n,
	CUmodule handle)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = enumerate(out, n, handle);
	return call_end(&c);
}
