/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment that `ballast run` adds to the program's: a short list of
 * settings, put into effect or printed.  Used by cmd_run.c only.
 */
#ifndef BALLAST_ENVIRON_H
#define BALLAST_ENVIRON_H

#include <stddef.h>

#include "shim/conf.h"

#define ENVIRON_MAX 128

struct environ_list {
	char *names[ENVIRON_MAX];	/* strings of cli_format() */
	char *values[ENVIRON_MAX];
	size_t len;
};

/* Copies both; a later value of a name replaces the earlier. */
void environ_set(struct environ_list *e, const char *name, const char *value);
/* The value set here, else the process's own; NULL where there is none. */
const char *environ_get(const struct environ_list *e, const char *name);
/* BALLAST_<KEY>=value after checking it; exits 2 naming what is wrong. */
void environ_set_conf(struct environ_list *e, enum conf_id id,
	const char *value);
/* The same from "key=value". */
void environ_set_option(struct environ_list *e, const char *text);
/*
 * SOFTCUDA_<KEY>=value for each of "key=value,key=value".  A key whose variable
 * `driver` (the path of the software driver) does not mention is refused.
 */
void environ_set_soft(struct environ_list *e, const char *text,
	const char *driver);
/* The names of all knobs that `driver` mentions, on standard output. */
void environ_print_soft(const char *driver);
/*
 * LD_PRELOAD with the library in it: before the user's own entries, but after
 * a sanitizer's runtime, which must be the first.  0, or -EINVAL where the
 * path has a character that LD_PRELOAD cannot express.
 */
int environ_preload(struct environ_list *e, const char *library) WARN_UNUSED;
/* The folder first in LD_LIBRARY_PATH; as above. */
int environ_library_path(struct environ_list *e, const char *folder)
	WARN_UNUSED;
/* Into this process's environment. */
void environ_apply(const struct environ_list *e);
/* One line for sh each, "export NAME=value", on standard output. */
void environ_print(const struct environ_list *e);

#endif
