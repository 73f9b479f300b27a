/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and their functions.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MODULE_H
#define SOFTCUDA_MODULE_H

#include "test/softcuda/abi.h"
#include "test/softcuda/jit.h"
#include "test/softcuda/object.h"
#include "test/softcuda/ptx.h"

struct context;
struct module;

struct function {
	struct object object;
	struct module *module;		/* borrowed; it owns this */
	struct ptx_kernel *kernel;	/* borrowed from the module's text */
	struct ptx_kernel_info info;
	int max_dynamic_shared;
	bool shared_is_set;		/* by cuFuncSetAttribute */
	int carveout;
	CUfunc_cache cache_config;
	struct function *next;
};

struct module {
	struct object object;
	unsigned refs;			/* the handle and launches in flight */
	struct context *context;
	struct ptx_module *text;	/* owned */
	struct function *functions;	/* owned */
	struct module *prev, *next;
	struct module **library;	/* its library's list, or NULL */
	struct module *library_next;
};

void module_get(struct module *m);
void module_put(struct module *m);
void module_context_end(struct context *ctx);
/* Loads PTX text; what is wrong with it goes to `jit`, which may be NULL. */
CUresult module_load(struct context *ctx, const char *text, size_t len,
	struct jit *jit, struct module **out);
/* The handle dies; the text when the last launch has run. */
void module_unload(struct module *m);
/* NULL when there is none of this name. */
struct function *module_function(struct module *m, const char *name);
CUresult module_global(struct module *m, const char *name, CUdeviceptr *out,
	size_t *size);

/*
 * The function behind a handle that may also be a kernel's (CUkernel cast to
 * CUfunction), which is then loaded in `ctx`.
 */
CUresult function_find(CUfunction handle, struct context *ctx,
	struct function **out);
/* Bytes of static plus dynamic shared memory that any block may have. */
int function_shared_limit(void);
int function_registers(const struct function *f);
CUresult function_attribute(const struct function *f, unsigned target,
	CUfunction_attribute attr, int *out);

#endif
