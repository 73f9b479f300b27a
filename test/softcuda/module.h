/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and their functions.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_MODULE_H
#define SOFTCUDA_MODULE_H

#include "test/softcuda/abi.h"
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
};

void module_get(struct module *m);
void module_put(struct module *m);
void module_context_end(struct context *ctx);

#endif
