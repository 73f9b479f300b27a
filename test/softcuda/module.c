/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules from PTX text.  Called by the program; guarded by the driver's lock.
 * Machine code is refused: there is nothing here that could run it.
 */
#include "test/softcuda/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memory.h"
#include "test/softcuda/report.h"

#define FATBIN_MAGIC 0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u

/* The options of cuModuleLoadDataEx that have an effect here. */
struct jit {
	char *error, *info;		/* borrowed; the program's buffers */
	size_t error_size, info_size;
	void **error_used, **info_used;	/* where the lengths are wanted */
};

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
static void unload(struct module *m)
{
	struct function *f;

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
		unload(ctx->modules);
}

/* ---- loading ------------------------------------------------------------------ */

static void parse_options(struct jit *jit, unsigned n,
	const CUjit_option *option, void **value)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		switch (option[i]) {
		case CU_JIT_ERROR_LOG_BUFFER:
			jit->error = value[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			jit->error_size = (unsigned)(uintptr_t)value[i];
			jit->error_used = &value[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER:
			jit->info = value[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			jit->info_size = (unsigned)(uintptr_t)value[i];
			jit->info_used = &value[i];
			break;
		default:
			break;
		}
	}
}

static void fill_log(char *buf, size_t size, void **used, const char *text)
{
	if (buf && size)
		snprintf(buf, size, "%s", text);
	if (used)
		*used = (void *)(uintptr_t)(buf && size
			? strnlen(text, size - 1) : 0);
}

static CUresult kind_of(const char *image)
{
	uint32_t magic;

	memcpy(&magic, image, sizeof(magic));
	if (!memcmp(image, "\177ELF", 4) || magic == FATBIN_MAGIC
	    || magic == WRAPPER_MAGIC)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	return CUDA_SUCCESS;
}

static CUresult result_of(enum ptx_status s)
{
	switch (s) {
	case PTX_OK:
		return CUDA_SUCCESS;
	case PTX_NO_MEMORY:
		return CUDA_ERROR_OUT_OF_MEMORY;
	case PTX_UNSUPPORTED:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_PTX;
	}
}

static CUresult parse(const char *text, size_t len, struct jit *jit,
	struct ptx_module **out)
{
	struct ptx_error err = { 0 };
	char message[320];
	enum ptx_status s = ptx_module_create(text, len, out, &err);

	if (!s && (int64_t)ptx_module_target(*out) > knobs.cc) {
		snprintf(message, sizeof(message), "the text is for sm_%u, "
			"this device is sm_%d", ptx_module_target(*out),
			(int)knobs.cc);
		fill_log(jit->error, jit->error_size, jit->error_used, message);
		ptx_module_destroy(*out);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (!s) {
		fill_log(jit->info, jit->info_size, jit->info_used, "");
		fill_log(jit->error, jit->error_size, jit->error_used, "");
		return CUDA_SUCCESS;
	}
	snprintf(message, sizeof(message), "ptx line %u, column %u: %s",
		err.line, err.column, err.message);
	fill_log(jit->error, jit->error_size, jit->error_used, message);
	report_log("module: %s", message);
	return result_of(s);
}

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
		return result_of(s);
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

static CUresult load(struct context *ctx, CUmodule *out, const char *text,
	size_t len, struct jit *jit)
{
	struct module *m;
	CUresult r = kind_of(text);

	if (r) {
		report_log("module: only PTX text can be loaded");
		return r;
	}
	m = object_alloc(sizeof(*m));
	m->refs = 1;
	m->context = ctx;
	r = parse(text, len, jit, &m->text);
	if (r) {
		free(m);
		return r;
	}
	object_add(m, OBJECT_MODULE);
	DL_APPEND(ctx->modules, m);
	make_functions(m);
	r = place_variables(m);
	if (r)
		unload(m);
	else
		*out = (CUmodule)m;
	return r;
}

static CUresult load_data(struct context *ctx, CUmodule *out,
	const void *image, unsigned n, CUjit_option *option, void **value)
{
	struct jit jit = { 0 };
	size_t len;

	if (!out || !image || (n && (!option || !value)))
		return CUDA_ERROR_INVALID_VALUE;
	parse_options(&jit, n, option, value);
	len = strlen(image);
	if (len < 8 && !kind_of(image))
		return CUDA_ERROR_INVALID_IMAGE;
	return load(ctx, out, image, len, &jit);
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

static CUresult load_file(struct context *ctx, CUmodule *out, const char *path)
{
	struct jit jit = { 0 };
	size_t len = 0, cap = 0;
	char *text = NULL;
	CUresult r;
	FILE *f;
	int ch;

	if (!out || !path)
		return CUDA_ERROR_INVALID_VALUE;
	f = fopen(path, "re");
	if (!f)
		return CUDA_ERROR_FILE_NOT_FOUND;
	do {
		ch = getc(f);
		text = object_grow(text, len, &cap, 1);
		text[len++] = ch == EOF ? 0 : (char)ch;
	} while (ch != EOF);
	fclose(f);
	r = len < 8 ? CUDA_ERROR_INVALID_IMAGE
		: load(ctx, out, text, len - 1, &jit);
	free(text);
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
	context_synchronize(m->context);
	m = object_find(handle, OBJECT_MODULE);
	if (m)
		unload(m);
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

static CUresult get_function(CUfunction *out, CUmodule handle,
	const char *name)
{
	struct module *m = object_find(handle, OBJECT_MODULE);
	struct function *f;

	if (!out || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
	LL_FOREACH(m->functions, f) {
		if (strcmp(f->info.name, name))
			continue;
		*out = (CUfunction)f;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle,
	const char *name)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_function(out, handle, name);
	return call_end(&c);
}

static CUresult get_global(CUdeviceptr *out, size_t *size, CUmodule handle,
	const char *name)
{
	struct module *m = object_find(handle, OBJECT_MODULE);
	struct ptx_variable *v;
	size_t i;

	if (!name || (!out && !size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!m)
		return CUDA_ERROR_INVALID_HANDLE;
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

CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *size, CUmodule handle,
	const char *name)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_global(out, size, handle, name);
	return call_end(&c);
}
