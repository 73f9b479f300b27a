/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that grows.  See plan_text.h.
 */
#include "planner/plan_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(struct plan_text *t, size_t more)
{
	size_t room = t->room ? t->room : 1024;
	char *data;

	if (t->failed)
		return false;
	while (room - t->len <= more)
		room *= 2;
	if (room == t->room)
		return true;
	data = realloc(t->data, room);
	if (!data) {
		t->failed = true;
		return false;
	}
	t->data = data;
	t->room = room;
	return true;
}

void plan_text_put(struct plan_text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0 || !make_room(t, (size_t)n + 1)) {
		t->failed = true;
		return;
	}
	va_start(args, format);
	vsnprintf(t->data + t->len, t->room - t->len, format, args);
	va_end(args);
	t->len += (size_t)n;
}

void plan_text_string(struct plan_text *t, const char *s)
{
	plan_text_put(t, "\"");
	for (; *s; s++) {
		size_t plain = strcspn(s, "\"\\\b\f\n\r\t");

		/* Other control characters, which are rare. */
		for (size_t i = 0; i < plain; i++)
			if ((unsigned char)s[i] < 0x20)
				plain = i;
		if (plain > 0) {
			plan_text_put(t, "%.*s", (int)plain, s);
			s += plain;
			if (!*s)
				break;
		}
		if (*s == '"' || *s == '\\')
			plan_text_put(t, "\\%c", *s);
		else
			plan_text_put(t, "\\u%04x", (unsigned char)*s);
	}
	plan_text_put(t, "\"");
}

void plan_text_real(struct plan_text *t, double v)
{
	char buf[40], *comma;

	if (!isfinite(v)) {
		plan_text_put(t, "null");
		return;
	}
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(buf, sizeof(buf), "%.*g", digits, v);
		/* Same locale on both ways. */
		if (strtod(buf, NULL) == v)
			break;
	}
	comma = strchr(buf, ',');
	if (comma)
		*comma = '.';
	plan_text_put(t, "%s", buf);
}

char *plan_text_take(struct plan_text *t)
{
	if (!t->failed)
		return t->data;
	free(t->data);
	t->data = NULL;
	return NULL;
}
