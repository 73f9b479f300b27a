/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that calls which compile take, as far as they have an effect
 * here: buffers for messages.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_JIT_H
#define SOFTCUDA_JIT_H

#include "test/softcuda/abi.h"
#include "test/softcuda/ptx.h"

struct jit {
	char *error, *info;		/* borrowed; the program's buffers */
	size_t error_size, info_size;
	void **error_used, **info_used;	/* where the lengths are wanted */
};

/* False when the arrays are missing. */
bool jit_options(struct jit *jit, unsigned n, const CUjit_option *option,
	void **value);
/* The message of an error; NULL: all went well. */
void jit_log(struct jit *jit, const char *message);
/* Text to module; on failure the reason is in the log.  `jit` may be NULL. */
CUresult jit_parse(const char *text, size_t len, struct jit *jit,
	struct ptx_module **out);
CUresult jit_result(enum ptx_status s);

#endif
