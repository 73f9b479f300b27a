/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real dlsym and dlopen, for api_table.c.  Everything else of ours gets
 * the driver's functions from `real`.
 */
#ifndef BALLAST_RESOLVE_H
#define BALLAST_RESOLVE_H

#include <stdbool.h>

/*
 * As dlsym and dlopen with this library as the caller.  They leave no message
 * behind for the program's next dlerror().
 */
void *resolve_symbol(void *handle, const char *name);
void *resolve_open(const char *file, int mode);

/* Whether this address lies in a file named libcuda.so*. */
bool resolve_in_driver(const void *address);

#endif
