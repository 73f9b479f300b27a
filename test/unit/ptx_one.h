/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel "k" with the device's memory as its only parameter. */
#ifndef BALLAST_PTX_ONE_H
#define BALLAST_PTX_ONE_H

#include "test/unit/ptx_util.h"

static inline uint32_t *one_words(struct dev *d)
{
	return (uint32_t *)(void *)d->mem;
}

static inline void one_run(struct dev *d, const char *text, uint32_t threads)
{
	uint64_t params = DEV_BASE;

	dev_run_ok(d, text, "k", 1, threads, 0, &params);
}

#define ONE_BEGIN PTX_HEAD \
	".visible .entry k(.param .u64 p) {\n" \
	".reg .b64 %p, %x<8>; .reg .b32 %t, %v<8>; .reg .b16 %h<8>;\n" \
	".reg .f32 %f<4>; .reg .pred %q<4>;\n" \
	"ld.param.u64 %p, [p];\n" \
	"mov.u32 %t, %tid.x;\n"

/* Kernel k(p): %out is the thread's own word of p, %t its number. */
#define ONE_KERNEL(decl, body) PTX_HEAD \
	".visible .entry k(.param .u64 p) {\n" \
	".reg .b64 %p, %out, %o; .reg .b32 %t, %s;\n" decl \
	"ld.param.u64 %p, [p];\n" \
	"mov.u32 %t, %tid.x;\n" \
	"mul.wide.u32 %o, %t, 4;\n" \
	"add.u64 %out, %p, %o;\n" \
	"mov.u32 %s, 0;\n" \
	body "}\n"
#define ONE_STORE "st.global.u32 [%out], %s;\nret;\n"

#endif
