/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin that finds the driver by itself.  PLUGIN_OLD: with the functions
 * under their old versions, as libraries built before glibc 2.34 do.
 */
#ifdef PLUGIN_OLD
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
#endif

#include "test/dispatch/dispatch.h"

__attribute__((visibility("default"))) int plugin_go(const char *home);

int plugin_go(const char *home)
{
	void *h = open_driver(RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(h, "cuInit");

	CHECK_IN((void *)init, home);
	return init(0);
}
