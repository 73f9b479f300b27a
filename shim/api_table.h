/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's functions, and which wrapper stands for which of them.  Bound
 * once, from whatever libcuda.so.1 the program has loaded; Ballast itself
 * never loads one that the program did not ask for.
 */
#ifndef BALLAST_API_TABLE_H
#define BALLAST_API_TABLE_H

#include <stdbool.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"

struct real_api {
#define HOOK(sym, base, since, flavour) __typeof__(sym) *sym;
#define CALL HOOK
#include "shim/cuda_api.def"
#undef HOOK
#undef CALL
};

extern struct real_api real;

/*
 * Fills `real` on first use; any thread, any number of times.  A symbol that
 * this driver lacks gets a function that answers CUDA_ERROR_NOT_SUPPORTED, so
 * that no entry is NULL afterwards.  handle: where dlsym of the program found
 * a driver, or NULL to look for one that is loaded.  false: no driver loaded.
 */
bool api_bind(void *handle);
/* Whether the bound driver exports this symbol itself. */
bool api_has(const void *real_entry);

/*
 * The real function; binds first where that has not happened.  For wrappers,
 * which may be the first to be called.  Without a driver (a program that tests
 * a weak reference to cuInit) the call answers CUDA_ERROR_NO_DEVICE.  A thread
 * that has come by here may use `real` directly from then on: it has seen the
 * whole table, not just its entry.
 */
#define REAL(sym) \
	(likely(api_bound()) || api_bind(NULL) ? real.sym : \
		(__typeof__(real.sym))(void *)api_no_driver)
CUresult api_no_driver(void);

enum { API_UNBOUND, API_PUBLISHING, API_BOUND };
extern int api_bind_state;

static inline bool api_bound(void)
{
	return __atomic_load_n(&api_bind_state, __ATOMIC_ACQUIRE) == API_BOUND;
}

/* The wrapper for a function of the driver, or NULL: not one of ours. */
void *api_wrapper_of(const void *real_function);
/* The wrapper with that ABI name, or NULL. */
void *api_wrapper_named(const char *symbol);

/* "CUDA_ERROR_OUT_OF_MEMORY" and so on; "CUDA_ERROR_?" for the unknown. */
const char *api_result_name(CUresult r);

#endif
