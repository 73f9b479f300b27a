/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that Ballast writes for people: names from the configuration, and
 * saving as a whole or not at all.  No state; any thread.
 */
#ifndef BALLAST_OUTFILE_H
#define BALLAST_OUTFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/compiler.h"

/*
 * The name that a key's value stands for: %p is the process, %d the device,
 * %% a percent sign.  false: it does not fit.
 */
bool outfile_name(const char *pattern, int device, char *buf, size_t size)
	WARN_UNUSED;
/*
 * Writes text (freed; NULL: there was no memory for it) to the file of a key.
 * A process that is killed leaves a whole file or what was there before.  What
 * goes wrong is logged.
 */
void outfile_save(const char *key, const char *pattern, int device,
	char *text);

#endif
