/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text whose values know their place, on top of json-c.  json-c parses; a
 * second walk over the text, which is then known to be well-formed, notes where
 * each value stands (as the value's user data) and finds keys that stand twice,
 * which json-c passes over.  Called by plan_json_value.c and the readers in
 * plan_io_*.c; no locks.
 */
#include "planner/plan_io_int.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DEPTH 32	/* of nested values */
/* Later warnings are counted only. */
#define WARNINGS 20

/* ---- messages ---- */

static void place_of(const struct plan_io_doc *d, size_t offset,
	uint32_t *line, uint32_t *column)
{
	*line = 1;
	*column = 1;
	for (size_t i = 0; i < offset && i < d->len; i++) {
		if (d->text[i] == '\n') {
			++*line;
			*column = 1;
		} else if (((unsigned char)d->text[i] & 0xc0) != 0x80) {
			++*column;	/* characters, not bytes */
		}
	}
}

static void say_at(const struct plan_io_doc *d, size_t offset, char *buf,
	const char *format, va_list args)
{
	uint32_t line, column;
	int n;

	place_of(d, offset, &line, &column);
	n = snprintf(buf, PLAN_IO_MESSAGE, "%.200s:%" PRIu32 ":%" PRIu32 ": ",
		d->io->file ? d->io->file : "input", line, column);
	vsnprintf(buf + n, PLAN_IO_MESSAGE - (size_t)n, format, args);
}

size_t plan_io_offset_of(const struct json_object *v)
{
	/* json-c's getter takes no const. */
	return v ? (size_t)(uintptr_t)json_object_get_userdata(
		(struct json_object *)(uintptr_t)v) : 0;
}

static void bad_at(struct plan_io_doc *d, size_t offset, const char *format,
	...) __attribute__((format(printf, 3, 4)));

static void bad_at(struct plan_io_doc *d, size_t offset, const char *format,
	...)
{
	va_list args;

	if (d->err)
		return;
	d->err = -EINVAL;
	va_start(args, format);
	say_at(d, offset, d->io->error, format, args);
	va_end(args);
}

void plan_io_bad(struct plan_io_doc *d, const struct json_object *v,
	const char *format, ...)
{
	va_list args;

	if (d->err)
		return;
	d->err = -EINVAL;
	va_start(args, format);
	say_at(d, plan_io_offset_of(v), d->io->error, format, args);
	va_end(args);
}

void plan_io_no_memory(struct plan_io_doc *d)
{
	if (d->err)
		return;
	d->err = -ENOMEM;
	snprintf(d->io->error, sizeof(d->io->error), "%s: out of memory",
		d->io->file ? d->io->file : "input");
}

void plan_io_warning(struct plan_io_doc *d, const struct json_object *v,
	const char *format, ...)
{
	char text[PLAN_IO_MESSAGE];
	va_list args;

	if (!d->io->warn || d->nr_warnings++ >= WARNINGS)
		return;
	va_start(args, format);
	say_at(d, plan_io_offset_of(v), text, format, args);
	va_end(args);
	d->io->warn(d->io->arg, text);
}

/* ---- places: a walk over well-formed text ---- */

static size_t skip_blank(const struct plan_io_doc *d, size_t i)
{
	while (i < d->len && strchr(" \t\r\n", d->text[i]))
		i++;
	return i;
}

/* i is at the opening quote; returns the place after the closing one. */
static size_t skip_string(const struct plan_io_doc *d, size_t i)
{
	for (i++; i < d->len && d->text[i] != '"'; i++)
		if (d->text[i] == '\\')
			i++;
	return i < d->len ? i + 1 : d->len;
}

/* The place after the value that begins at i. */
static size_t skip_value(const struct plan_io_doc *d, size_t i)
{
	uint32_t depth = 0;

	do {
		i = skip_blank(d, i);
		if (i >= d->len)
			return d->len;
		switch (d->text[i]) {
		case '"':
			i = skip_string(d, i);
			break;
		case '{':
		case '[':
			depth++;
			i++;
			break;
		case '}':
		case ']':
			depth -= depth > 0;
			i++;
			break;
		case ',':
		case ':':
			i++;
			break;
		default:
			while (i < d->len &&
			       !strchr(",:]}[{\" \t\r\n", d->text[i]))
				i++;
		}
	} while (depth > 0);
	return i;
}

/* The key that stands twice, by its spelling; the object otherwise. */
static void bad_twice(struct plan_io_doc *d, size_t object)
{
	size_t i = skip_blank(d, object + 1), end, j, e;

	while (i < d->len && d->text[i] == '"') {
		end = skip_string(d, i);
		/* Is it also later? */
		j = end;
		for (;;) {
			j = skip_value(d, skip_blank(d, j) + 1);
			j = skip_blank(d, j);
			if (j >= d->len || d->text[j] != ',')
				break;
			j = skip_blank(d, j + 1);
			e = skip_string(d, j);
			if (e - j == end - i &&
			    !memcmp(d->text + i, d->text + j, e - j)) {
				bad_at(d, j, "the key %.*s stands twice in one "
					"object", (int)(e - j < 80 ? e - j :
					80), d->text + j);
				return;
			}
			j = e;
		}
		i = skip_blank(d, skip_value(d, skip_blank(d, end) + 1));
		if (i < d->len && d->text[i] == ',')
			i = skip_blank(d, i + 1);
	}
	bad_at(d, object, "a key stands twice in this object");
}

static size_t note_places(struct plan_io_doc *d, struct json_object *v,
	size_t i);

static size_t note_object(struct plan_io_doc *d, struct json_object *v,
	size_t begin)
{
	struct lh_entry *entry = json_object_get_object(v)->head;
	size_t i = skip_blank(d, begin + 1), key;
	int nr = 0;

	/* json-c keeps the order of first mention. */
	while (i < d->len && d->text[i] == '"' && !d->err) {
		key = i;
		i = skip_blank(d, skip_string(d, i)) + 1;	/* the colon */
		if (!entry || ++nr > json_object_object_length(v)) {
			bad_twice(d, begin);
			return d->len;
		}
		/* A key that stands twice shifts all that follow. */
		if (!memchr(d->text + key, '\\', i - key) &&
		    strncmp(lh_entry_k(entry), d->text + key + 1,
			    strlen(lh_entry_k(entry)))) {
			bad_twice(d, begin);
			return d->len;
		}
		i = note_places(d, (struct json_object *)lh_entry_v(entry), i);
		entry = entry->next;
		i = skip_blank(d, i);
		if (i < d->len && d->text[i] == ',')
			i = skip_blank(d, i + 1);
	}
	if (!d->err && nr != json_object_object_length(v))
		bad_twice(d, begin);
	return i + 1;
}

static size_t note_places(struct plan_io_doc *d, struct json_object *v,
	size_t i)
{
	size_t begin = i = skip_blank(d, i);

	if (d->err)
		return d->len;
	if (json_object_is_type(v, json_type_object)) {
		i = note_object(d, v, begin);
	} else if (json_object_is_type(v, json_type_array)) {
		i = skip_blank(d, i + 1);
		for (size_t k = 0; k < json_object_array_length(v) && !d->err;
		     k++) {
			i = note_places(d, json_object_array_get_idx(v, k), i);
			i = skip_blank(d, i);
			if (i < d->len && d->text[i] == ',')
				i++;
		}
		i = skip_blank(d, i) + 1;
	} else {
		i = skip_value(d, i);
	}
	/* Numbers have a serializer that would take this for a string. */
	if (v)
		json_object_set_serializer(v, NULL, (void *)(uintptr_t)begin,
			NULL);
	return i;
}

/* ---- opening ---- */

static void parse(struct plan_io_doc *d)
{
	struct json_tokener *tok = json_tokener_new_ex(DEPTH);
	enum json_tokener_error err;
	size_t at;

	if (!tok) {
		plan_io_no_memory(d);
		return;
	}
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT |
		JSON_TOKENER_VALIDATE_UTF8);
	/* With the final zero, so that a number may stand at the end. */
	d->root = json_tokener_parse_ex(tok, d->text, (int)d->len + 1);
	err = json_tokener_get_error(tok);
	at = json_tokener_get_parse_end(tok);
	if (err == json_tokener_continue ||
	    (err != json_tokener_success && at >= d->len))
		bad_at(d, d->len, "the file ends in the middle");
	else if (err != json_tokener_success)
		bad_at(d, at, "no valid JSON: %s", json_tokener_error_desc(err));
	else if (skip_blank(d, at) < d->len)
		bad_at(d, skip_blank(d, at), "there is more after the end");
	json_tokener_free(tok);
}

int plan_io_open(struct plan_io_doc *d, struct plan_io *io, const char *text,
	size_t len, struct plan_arena *arena)
{
	const char *zero;

	memset(d, 0, sizeof(*d));
	d->io = io;
	d->text = text;
	d->len = len;
	d->arena = arena;
	io->error[0] = '\0';
	zero = memchr(text, 0, len);
	if (len >= PLAN_IO_MAX_BYTES)
		bad_at(d, 0, "the file is too large");
	else if (zero)
		bad_at(d, (size_t)(zero - text), "a zero byte: no text file");
	else if (skip_blank(d, 0) == len)
		bad_at(d, 0, "the file is empty");
	if (!d->err)
		parse(d);
	if (!d->err && !json_object_is_type(d->root, json_type_object))
		bad_at(d, skip_blank(d, 0), "an object must stand here");
	if (!d->err)
		note_places(d, d->root, 0);
	return d->err;
}

void plan_io_close(struct plan_io_doc *d)
{
	char text[PLAN_IO_MESSAGE];

	if (d->nr_warnings > WARNINGS && d->io->warn) {
		snprintf(text, sizeof(text), "%.200s: %u more warnings",
			d->io->file ? d->io->file : "input",
			d->nr_warnings - WARNINGS);
		d->io->warn(d->io->arg, text);
	}
	json_object_put(d->root);
	d->root = NULL;
}

enum plan_io_kind plan_io_kind_of(const char *text, size_t len)
{
	enum plan_io_kind kind = PLAN_IO_OTHER;
	struct plan_io io = { 0 };
	struct plan_io_doc d;

	if (!plan_io_open(&d, &io, text, len, NULL)) {
		if (json_object_object_get_ex(d.root, "ballast_plan", NULL))
			kind = PLAN_IO_IS_PLAN;
		else if (json_object_object_get_ex(d.root, "layers", NULL))
			kind = PLAN_IO_IS_PROFILE;
	}
	plan_io_close(&d);
	return kind;
}

char *plan_io_text_of(struct plan_io_doc *d, struct json_object *v)
{
	size_t begin = plan_io_offset_of(v), end;
	char *text;

	if (!v)
		return plan_arena_strdup(d->arena, "null");
	end = skip_value(d, begin);
	text = plan_arena_alloc(d->arena, end - begin + 1, 1);
	return text ? memcpy(text, d->text + begin, end - begin) : NULL;
}
