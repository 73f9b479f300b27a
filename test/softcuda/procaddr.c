/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points by base name, version and flavour of stream 0: the newest ABI
 * that the asked version knew.  Names of errors too.  Called by the program.
 */
#include "test/softcuda/abi.h"

#include <string.h>

#include "test/softcuda/call.h"
#include "test/softcuda/exports.h"
#include "test/softcuda/knobs.h"

static const struct export *newest(const char *base, int version,
	bool per_thread, bool *exists)
{
	const struct export *best = NULL, *e;
	unsigned i;

	for (i = 0; i < exports_nr; i++) {
		e = &exports[i];
		if ((e->flavour != EXPORT_PLAIN) != per_thread
		    || strcmp(e->base, base))
			continue;
		*exists = true;
		if (e->since <= version && e->since <= knobs.version
		    && (!best || e->since > best->since))
			best = e;
	}
	return best;
}

static CUresult lookup(const char *symbol, void **out, int version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	const cuuint64_t all = CU_GET_PROC_ADDRESS_LEGACY_STREAM
		| CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct export *e = NULL;
	bool exists = false;

	if (!symbol || !out || flags & ~all || flags == all)
		return CUDA_ERROR_INVALID_VALUE;
	*out = NULL;
	if (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		e = newest(symbol, version, true, &exists);
	if (!e)
		e = newest(symbol, version, false, &exists);
	if (status)
		*status = e ? CU_GET_PROC_ADDRESS_SUCCESS : exists
			? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!e)
		return CUDA_ERROR_NOT_FOUND;
	*out = e->address;
	return CUDA_SUCCESS;
}

/* Both work before cuInit: that is how cuInit itself is found. */
CUresult cuGetProcAddress(const char *symbol, void **out, int version,
	cuuint64_t flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_ANY)) {
		knobs_need();
		c.result = lookup(symbol, out, version, flags, NULL);
	}
	return call_end(&c);
}

CUresult cuGetProcAddress_v2(const char *symbol, void **out, int version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_ANY)) {
		knobs_need();
		c.result = lookup(symbol, out, version, flags, status);
		/* This ABI tells by a NULL, and by the status if asked. */
		if (c.result == CUDA_ERROR_NOT_FOUND)
			c.result = CUDA_SUCCESS;
	}
	return call_end(&c);
}

/* The private tables are the vendor's; nothing here imitates them. */
CUresult cuGetExportTable(const void **out, const CUuuid *id)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_ANY)) {
		c.result = out && id ? CUDA_ERROR_NOT_SUPPORTED
			: CUDA_ERROR_INVALID_VALUE;
		if (out)
			*out = NULL;
	}
	return call_end(&c);
}

static const char *error_name(CUresult error)
{
	switch ((int)error) {
#define RESULT(name, value) case value: return #name;
#include "shim/cuda_result.def"
#undef RESULT
	}
	return NULL;
}

CUresult cuGetErrorName(CUresult error, const char **out)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_ANY)) {
		if (out)
			*out = error_name(error);
		if (!out || !*out)
			c.result = CUDA_ERROR_INVALID_VALUE;
	}
	return call_end(&c);
}

/* A sentence made from the name: "out of memory". */
CUresult cuGetErrorString(CUresult error, const char **out)
{
	static char text[1000][48];
	const char *name;
	struct call c;
	char *to;

	if (!call_begin(&c, __func__, CALL_ANY)) {
		name = error_name(error);
		if (!name || !out) {
			c.result = CUDA_ERROR_INVALID_VALUE;
			if (out)
				*out = NULL;
			return call_end(&c);
		}
		to = text[error];
		strncpy(to, error ? name + strlen("CUDA_ERROR_") : "no error",
			sizeof(text[0]) - 1);
		for (*out = to; *to; to++)
			*to = *to == '_' ? ' ' : *to | 0x20;
	}
	return call_end(&c);
}
