/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages, strings and places, for all subcommands.  See cli.h.
 */
#include "tools/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All strings, newest first: reachable, so leak checkers see none. */
static struct cli_string {
	struct cli_string *next;
	char text[];
} *cli_strings;

static void cli_say(const char *fmt, va_list args)
{
	static const char prefix[] = "ballast: ";
	char *text = NULL, *line;
	size_t len;
	int n;

	n = vasprintf(&text, fmt, args);
	line = n < 0 ? NULL : malloc(sizeof(prefix) + (size_t)n + 1);
	if (line) {
		len = sizeof(prefix) - 1;
		memcpy(line, prefix, len);
		memcpy(line + len, text, (size_t)n);
		len += (size_t)n;
		line[len++] = '\n';
		if (write(STDERR_FILENO, line, len) < 0)
			len = 0;	/* nobody is left to be told */
	}
	free(line);
	free(text);
}

void cli_warn(const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	cli_say(fmt, args);
	va_end(args);
	errno = saved;
}

void cli_die(int status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	cli_say(fmt, args);
	va_end(args);
	exit(status);
}

void cli_usage(const char *command, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	cli_say(fmt, args);
	va_end(args);
	cli_warn("try 'ballast help%s%s'", command ? " " : "",
		command ? command : "");
	exit(EXIT_USAGE);
}

char *cli_alloc(size_t size)
{
	struct cli_string *string = calloc(1, sizeof(*string) + size);

	if (!string)
		cli_die(EXIT_LAUNCHER, "out of memory");
	string->next = cli_strings;
	cli_strings = string;
	return string->text;
}

char *cli_format(const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (n < 0)
		cli_die(EXIT_LAUNCHER, "text too long");
	text = cli_alloc((size_t)n + 1);
	va_start(args, fmt);
	vsnprintf(text, (size_t)n + 1, fmt, args);
	va_end(args);
	return text;
}

char *cli_quote(const char *text)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
		"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%_+=:,./-";
	size_t len = strlen(text), i, n = 0;
	char *out;

	if (len && strspn(text, safe) == len)
		return cli_format("%s", text);
	out = cli_alloc(4 * len + 3);
	out[n++] = '\'';
	for (i = 0; i < len; i++) {
		if (text[i] == '\'') {
			memcpy(out + n, "'\\'", 3);
			n += 3;
		}
		out[n++] = text[i];
	}
	out[n++] = '\'';
	out[n] = '\0';
	return out;
}

const char *cli_basename(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *cli_own_folder(void)
{
	static char folder[PATH_MAX];
	char *slash;
	ssize_t n;

	if (folder[0])
		return folder;
	n = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	folder[n < 0 ? 0 : n] = '\0';
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return folder;
}

char *cli_locate(const char *beside, const char *installed, char **tried)
{
	char real[PATH_MAX], *places[3];
	size_t i;

	places[0] = cli_format("%s/%s", cli_own_folder(), beside);
	places[1] = cli_format("%s/../lib/ballast/%s", cli_own_folder(),
		installed);
	places[2] = cli_format("%s/%s", BALLAST_LIBDIR, installed);
	for (i = 0; i < ARRAY_LEN(places); i++) {
		if (access(places[i], R_OK) != 0)
			continue;
		return cli_format("%s", realpath(places[i], real) ? real :
			places[i]);
	}
	*tried = cli_format("%s, %s, %s", places[0], places[1], places[2]);
	return NULL;
}

int cli_high_fd(int fd)
{
	int high;

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	close(fd);
	return high;
}

int cli_flush(int status)
{
	int bad = ferror(stdout);

	if (fclose(stdout) != 0 || bad) {
		cli_warn("cannot write standard output: %s", strerror(errno));
		return status ? status : EXIT_FAILED;
	}
	return status;
}
