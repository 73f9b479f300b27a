/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From PTX text to a parsed module, with the program's buffers for messages.
 * Called by module.c, library.c and linker.c.
 */
#include "test/softcuda/jit.h"

#include <stdio.h>
#include <string.h>

#include "test/softcuda/knobs.h"
#include "test/softcuda/report.h"

bool jit_options(struct jit *jit, unsigned n, const CUjit_option *option,
	void **value)
{
	unsigned i;

	memset(jit, 0, sizeof(*jit));
	if (n && (!option || !value))
		return false;
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
	return true;
}

static void fill(char *buf, size_t size, void **used, const char *text)
{
	if (buf && size)
		snprintf(buf, size, "%s", text);
	if (used)
		*used = (void *)(uintptr_t)(buf && size
			? strnlen(text, size - 1) : 0);
}

void jit_log(struct jit *jit, const char *message)
{
	if (!jit)
		return;
	fill(jit->error, jit->error_size, jit->error_used,
		message ? message : "");
	if (!message)
		fill(jit->info, jit->info_size, jit->info_used, "");
}

CUresult jit_result(enum ptx_status s)
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

CUresult jit_parse(const char *text, size_t len, struct jit *jit,
	struct ptx_module **out)
{
	struct ptx_error err = { 0 };
	char message[320];
	enum ptx_status s = ptx_module_create(text, len, out, &err);

	if (!s && (int64_t)ptx_module_target(*out) > knobs.cc) {
		snprintf(message, sizeof(message), "the text is for sm_%u, "
			"this device is sm_%d", ptx_module_target(*out),
			(int)knobs.cc);
		jit_log(jit, message);
		ptx_module_destroy(*out);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	if (!s) {
		jit_log(jit, NULL);
		return CUDA_SUCCESS;
	}
	snprintf(message, sizeof(message), "ptx line %u, column %u: %s",
		err.line, err.column, err.message);
	jit_log(jit, message);
	report_log("module: %s", message);
	return jit_result(s);
}
