/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library, not named libcuda, with names that begin like the driver's, and
 * some that are the driver's.
 */
#include <stddef.h>
#include <string.h>

#define API __attribute__((visibility("default")))

#define NAMES(X) \
	X(cublasCreate_v2) X(cudnnCreate) X(curl_easy_init) X(cuInitX) X(cu) \
	X(cuInit) X(cuLaunchKernel)

#define DEFINE(name) API int name(void); int name(void) { return 7; }
NAMES(DEFINE)

API void *own_address(const char *name);

void *own_address(const char *name)
{
#define MATCH(n) if (strcmp(name, #n) == 0) return (void *)n;
	NAMES(MATCH)
	return NULL;
}
