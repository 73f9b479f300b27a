/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every subcommand needs: messages, strings, exit codes.  The launcher
 * has one thread and ends after one command.  Everything that Ballast
 * itself says goes to standard error.
 */
#ifndef BALLAST_CLI_H
#define BALLAST_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/compiler.h"

enum cli_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_UNMANAGED = 3,	/* run, strict: nothing could be managed */
	EXIT_LAUNCHER = 125,	/* run: failed before the program started */
	EXIT_NOEXEC = 126,
	EXIT_NOTFOUND = 127,
};

/* One write(2): "ballast: text\n". */
void cli_warn(const char *fmt, ...) PRINTF(1, 2);
void cli_die(int status, const char *fmt, ...)
	PRINTF(2, 3) __attribute__((noreturn));
/* Says it, points to the help of `command` (may be NULL), exits 2. */
void cli_usage(const char *command, const char *fmt, ...)
	PRINTF(2, 3) __attribute__((noreturn));

/* Zeroed; these strings live until the launcher ends.  Never NULL. */
char *cli_alloc(size_t size);
char *cli_format(const char *fmt, ...) PRINTF(1, 2);
/* As a POSIX shell would read it back; unquoted where that is safe. */
char *cli_quote(const char *text);
/* The part after the last slash, borrowed from path. */
const char *cli_basename(const char *path);
/* The folder of the running program, without trailing slash; "" if unknown. */
const char *cli_own_folder(void);
/*
 * The first of <own folder>/beside, <own folder>/../lib/ballast/installed and
 * <libdir>/installed that can be read; NULL and *tried = the list otherwise.
 */
char *cli_locate(const char *beside, const char *installed, char **tried);
/* The same file under a descriptor >= 10; closes fd.  -1 stays -1. */
int cli_high_fd(int fd);
/* Closes standard output; exit status, 1 with a message if it did not work. */
int cli_flush(int status);

/* The subcommands; argv[0] is the command's name.  They return exit codes. */
int cmd_run(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_stats(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_show(int argc, char **argv);
/* The help of one command, of all with NULL; 2 for an unknown one. */
int cmd_help(const char *command);

#endif
