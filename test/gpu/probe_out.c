/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of the probes: a JSON object on a line of the result file, and a row of
 * the table on standard output.  Each is written at once and in one piece, so
 * that what a probe found before its process died is kept.
 */
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/gpu/probe.h"

static int out_fd = -1;
static const char *out_key = "", *out_item = "";

static const char *const status_name[] = {
	[PROBE_OK] = "ok",
	[PROBE_FAILED] = "failed",
	[PROBE_UNSUPPORTED] = "unsupported",
	[PROBE_TIMEOUT] = "timeout",
};

int probe_out_open(const char *path, const char *key, const char *item)
{
	if (out_fd < 0)
		out_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
			0644);
	if (out_fd < 0) {
		perror(path);
		return -1;
	}
	out_key = key;
	out_item = item;
	return 0;
}

const char *probe_result(CUresult r)
{
	const char *name = NULL;

	if (r == CUDA_SUCCESS)
		return "success";
	if (!drv.cuGetErrorName || drv.cuGetErrorName(r, &name) || !name)
		return "an unknown error";
	return strncmp(name, "CUDA_ERROR_", 11) ? name : name + 11;
}

/* The text as the inside of a JSON string. */
static void escape(char *to, size_t size, const char *from)
{
	size_t n = 0;

	for (; *from && n + 7 < size; from++) {
		unsigned char c = (unsigned char)*from;

		if (c == '"' || c == '\\')
			n += (size_t)sprintf(to + n, "\\%c", c);
		else if (c < 0x20)
			n += (size_t)sprintf(to + n, "\\u%04x", c);
		else
			to[n++] = (char)c;
	}
	to[n] = '\0';
}

/* `agrees`: 1, 0, or -1 where the design assumes nothing. */
static void fact(const char *name, double value, const char *unit,
	enum probe_status status, int agrees, const char *assumes,
	const char *note)
{
	static const char *const verdicts[] = { "-", "differs", "agrees" };
	const char *verdict = verdicts[agrees + 1];
	char text[1200], clean[1400], line[2000], number[40];
	int n;

	if (assumes)
		snprintf(text, sizeof(text), "%s: the design assumes that %s%s%s",
			verdict, assumes, *note ? "; " : "", note);
	else
		snprintf(text, sizeof(text), "%s", note);
	escape(clean, sizeof(clean), text);
	if (status == PROBE_OK && isfinite(value))
		snprintf(number, sizeof(number), "%.10g", value);
	else
		strcpy(number, "null");
	n = snprintf(line, sizeof(line), "{\"probe\":\"%s\",\"item\":\"%s\","
		"\"name\":\"%s\",\"value\":%s,\"unit\":\"%s\","
		"\"status\":\"%s\",\"design\":\"%s\",\"note\":\"%s\"}\n",
		out_item, out_key, name, number, unit, status_name[status],
		verdict, clean);
	if (n > 0 && out_fd >= 0 && write(out_fd, line, (size_t)n) != n)
		perror("results");
	if (status == PROBE_OK)
		snprintf(number, sizeof(number), "%.9g", value);
	else
		snprintf(number, sizeof(number), "%s", status_name[status]);
	printf("%-15s %-34s %12s %-6s %-8s %s\n", out_item, name, number, unit,
		status == PROBE_OK && agrees >= 0 ? verdict : "",
		note);
	fflush(stdout);
}

void probe_value(const char *name, double value, const char *unit,
	const char *note, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, note);
	vsnprintf(text, sizeof(text), note, ap);
	va_end(ap);
	fact(name, value, unit, PROBE_OK, -1, NULL, text);
}

void probe_verdict(const char *name, double value, const char *unit, int agrees,
	const char *assumes, const char *note, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, note);
	vsnprintf(text, sizeof(text), note, ap);
	va_end(ap);
	fact(name, value, unit, PROBE_OK, !!agrees, assumes, text);
}

void probe_status(const char *name, enum probe_status status, const char *note,
	...)
{
	char text[512];
	va_list ap;

	va_start(ap, note);
	vsnprintf(text, sizeof(text), note, ap);
	va_end(ap);
	fact(name, 0, "", status, -1, NULL, text);
}

void probe_error(const char *name, CUresult r, const char *call)
{
	/* The function's name, without the table's and the arguments. */
	const char *begin = strncmp(call, "drv.", 4) ? call : call + 4;

	probe_status(name, r == CUDA_ERROR_NOT_SUPPORTED
		|| r == CUDA_ERROR_NOT_FOUND ? PROBE_UNSUPPORTED : PROBE_FAILED,
		"%.*s: %s", (int)strcspn(begin, "("), begin, probe_result(r));
}
