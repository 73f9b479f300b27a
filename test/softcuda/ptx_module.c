/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions about a parsed module.  Called by the driver; no locks.
 */
#include <string.h>

#include "test/softcuda/ptx_int.h"

unsigned ptx_module_target(const struct ptx_module *m)
{
	return m->target;
}

unsigned ptx_module_version(const struct ptx_module *m)
{
	return m->version;
}

size_t ptx_module_nr_variables(const struct ptx_module *m)
{
	return m->nr_vars;
}

struct ptx_variable *ptx_module_variable(struct ptx_module *m, size_t i)
{
	return i < m->nr_vars ? &m->vars[i] : NULL;
}

enum ptx_status ptx_module_relocate(struct ptx_module *m,
	struct ptx_error *err)
{
	u32 k;

	(void)err;	/* every name was resolved when the text was read */
	for (k = 0; k < m->nr_relocs; k++) {
		const struct ptx_reloc *r = &m->relocs[k];
		u64 v = m->vars[r->target].address + r->addend;

		/* `init` is our own memory, const for others */
		memcpy((u8 *)(uintptr_t)m->vars[r->var].init + r->offset, &v,
			r->size);
	}
	return PTX_OK;
}

struct ptx_kernel *ptx_module_kernel(struct ptx_module *m, const char *name)
{
	u32 k;

	for (k = 0; k < m->nr_kernels; k++)
		if (!strcmp(m->kernels[k].func->name, name))
			return &m->kernels[k];
	return NULL;
}

size_t ptx_module_nr_kernels(const struct ptx_module *m)
{
	return m->nr_kernels;
}

struct ptx_kernel *ptx_module_kernel_at(struct ptx_module *m, size_t i)
{
	return i < m->nr_kernels ? &m->kernels[i] : NULL;
}

void ptx_kernel_info(const struct ptx_kernel *k, struct ptx_kernel_info *out)
{
	const struct ptx_func *f = k->func;

	*out = (struct ptx_kernel_info){
		.name = f->name, .nr_params = f->nr_params,
		.params = f->params, .params_size = f->params_size,
		.shared_size = k->shared_static, .local_size = k->local_total,
		.nr_regs = f->nr_regs, .max_threads = f->max_threads,
	};
}

const char *ptx_status_name(enum ptx_status s)
{
	static const char *const name[] = {
		[PTX_OK] = "ok", [PTX_NO_MEMORY] = "no memory",
		[PTX_SYNTAX] = "syntax error",
		[PTX_UNSUPPORTED] = "unsupported",
		[PTX_ILLEGAL_ADDRESS] = "illegal address",
		[PTX_MISALIGNED] = "misaligned address", [PTX_TRAP] = "trap",
		[PTX_ASSERT] = "assertion failed",
		[PTX_BAD_LAUNCH] = "bad launch", [PTX_DEADLOCK] = "deadlock",
	};

	return (size_t)s < sizeof(name) / sizeof(name[0]) ? name[s] : "?";
}
