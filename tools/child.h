/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs one program as if the launcher were not there: same process group and
 * terminal, signals passed on, stops and continues mirrored, same end.  Used
 * by cmd_run.c only; once per process.
 */
#ifndef BALLAST_CHILD_H
#define BALLAST_CHILD_H

#include <sys/types.h>

#include "shim/compiler.h"

struct child {
	pid_t pid;
	int status;		/* as waitpid gives it */
};

/*
 * Starts path with argv in the current environment and waits for its end.
 * From then on the launcher holds no descriptor but standard error and
 * keep_fd.  0, or -errno of what failed before the program ran.
 */
int child_run(struct child *c, const char *path, char **argv, int keep_fd)
	WARN_UNUSED;

/* The exit code a shell would report. */
int child_exit_code(const struct child *c);
/* Whether it ended by a signal with which people end programs. */
int child_was_ended(const struct child *c);
/* Ends this process as the child ended. */
void child_mirror(const struct child *c) __attribute__((noreturn));

#endif
