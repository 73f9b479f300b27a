/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two libraries from one file: with NEXT_BASE the dependency, without it the
 * library whose next_value() asks for the definition behind its own.
 */
#include <dlfcn.h>
#include <stddef.h>

#define API __attribute__((visibility("default")))

API int next_value(void);

#ifdef NEXT_BASE
int next_value(void)
{
	return 11;
}
#else
/* Needs the dependency. */
API int next_value(void);

int next_value(void)
{
	int (*behind)(void) = (int (*)(void))dlsym(RTLD_NEXT, "next_value");

	return behind != NULL ? behind() + 1 : -1;
}
#endif
