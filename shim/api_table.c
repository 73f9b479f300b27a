/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the driver's functions.  Filled by the first wrapper or look-up
 * that needs it.
 *
 * No lock guards it.  A thread that waits for a lock of ours while it holds
 * the loader's (in a constructor), and one that holds ours and calls dlsym,
 * would wait for each other for ever.  So every thread that comes early works
 * out the whole table on its stack; the first to finish copies its own in, and
 * the others wait for that copy only.
 */
#include "shim/api_table.h"

#include <dlfcn.h>
#include <sched.h>
#include <string.h>

#include "shim/resolve.h"

struct real_api real;

struct row {
	const char *name;
	size_t off;		/* in struct real_api */
	void *wrapper;		/* NULL: CALL only */
};

static const struct row rows[] = {
#define HOOK(sym, base, since, flavour) \
	{ #sym, offsetof(struct real_api, sym), (void *)sym },
#define CALL(sym, base, since, flavour) \
	{ #sym, offsetof(struct real_api, sym), NULL },
#include "shim/cuda_api.def"
#undef HOOK
#undef CALL
};

int api_bind_state;

/* For what a driver lacks; arguments do not matter to the x86-64 ABI. */
static CUresult not_supported(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult api_no_driver(void)
{
	return CUDA_ERROR_NO_DEVICE;
}

static void **entry(struct real_api *api, const struct row *row)
{
	return (void **)((char *)api + row->off);
}

/* The driver's own handle for a function that some handle led to. */
static void *driver_handle(void *function)
{
	Dl_info info;

	if (function == NULL || dladdr(function, &info) == 0)
		return NULL;
	return resolve_open(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/*
 * Looks behind us in the global scope first, so that another interposer there
 * gets its turn, and in the driver for the rest.
 */
static void *find(void *driver, bool global, const struct row *row)
{
	void *p = NULL;

	if (global)
		p = resolve_symbol(RTLD_NEXT, row->name);
	if (p == NULL && driver != NULL)
		p = resolve_symbol(driver, row->name);
	return p != row->wrapper ? p : NULL;
}

static void publish(const struct real_api *found)
{
	int expected = API_UNBOUND;

	if (__atomic_compare_exchange_n(&api_bind_state, &expected,
			API_PUBLISHING, false, __ATOMIC_ACQUIRE,
			__ATOMIC_ACQUIRE)) {
		real = *found;
		__atomic_store_n(&api_bind_state, API_BOUND, __ATOMIC_RELEASE);
		return;
	}
	while (!api_bound())
		sched_yield();
}

static COLD bool bind_now(void *handle)
{
	struct real_api found;
	bool global = handle == NULL, any = false;
	void *driver;
	size_t i;

	/* The references taken here stay: `real` points into the driver. */
	if (handle != NULL)
		driver = driver_handle(resolve_symbol(handle, "cuInit"));
	else
		driver = resolve_open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	memset(&found, 0, sizeof(found));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		void *p = find(driver, global, &rows[i]);

		any |= p != NULL;
		*entry(&found, &rows[i]) = p != NULL ? p :
			(void *)not_supported;
	}
	if (any)
		publish(&found);
	return any;
}

bool api_bind(void *handle)
{
	return likely(api_bound()) || bind_now(handle);
}

bool api_has(const void *real_entry)
{
	return real_entry != NULL && real_entry != (void *)not_supported;
}

void *api_wrapper_of(const void *real_function)
{
	size_t i;

	if (!api_bind(NULL) || !api_has(real_function))
		return NULL;
	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].wrapper != NULL &&
				*entry(&real, &rows[i]) == real_function)
			return rows[i].wrapper;
	return NULL;
}

void *api_wrapper_named(const char *symbol)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].name, symbol) == 0)
			return rows[i].wrapper;
	return NULL;
}

const char *api_result_name(CUresult r)
{
	switch ((int)r) {
#define RESULT(name, value) case value: return #name;
#include "shim/cuda_result.def"
#undef RESULT
	}
	return "CUDA_ERROR_?";
}
