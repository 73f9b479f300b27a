/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at a program before it is started: where it is, and whether the
 * dynamic loader will take LD_PRELOAD for it.  Used by cmd_run.c only.
 */
#ifndef BALLAST_INSPECT_H
#define BALLAST_INSPECT_H

#include <limits.h>
#include <stdbool.h>

enum inspect_verdict {
	INSPECT_OK,
	INSPECT_STATIC,		/* no dynamic loader */
	INSPECT_SETID,		/* setuid or setgid to somebody else */
	INSPECT_CAPS,		/* file capabilities */
	INSPECT_32BIT,
	INSPECT_ARCH,		/* for another processor */
	INSPECT_LIBC,		/* a loader that is not glibc's */
};

struct inspect {
	enum inspect_verdict verdict;
	char path[PATH_MAX];	/* of the program, to be given to execve */
	char culprit[PATH_MAX];	/* the file the verdict is about */
	char loader[256];	/* with INSPECT_LIBC */
};

/*
 * Finds `name` as a shell would and looks at it; of a script, at what runs it.
 * 0, -ENOENT (not found), -EACCES (found, not executable), -EISDIR, -ENOTDIR,
 * -ENAMETOOLONG, -ELOOP.
 */
int inspect_program(const char *name, struct inspect *in);

/*
 * Why Ballast cannot work with it, in a string of cli_format(); NULL with
 * INSPECT_OK.
 */
char *inspect_reason(const struct inspect *in);

/*
 * Whether a 64-bit libcuda.so.1 is in LD_LIBRARY_PATH, in the loader's cache
 * or in a standard folder.  A program may know more places.
 */
bool inspect_has_driver(void);

#endif
