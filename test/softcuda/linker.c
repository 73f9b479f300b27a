/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuLink*: several PTX texts become one image.  The texts are put one behind
 * the other under one header, variables first, which resolves what one declares
 * .extern and another defines; two private symbols of one name collide, which
 * the real linker does not mind.  The image is a fat binary with the text.
 * Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/image.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/call.h"
#include "test/softcuda/jit.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"

struct link {
	struct object object;
	struct jit jit;			/* buffers outlive the link */
	char **text;			/* owned, each */
	size_t nr, cap;
	void *image;			/* owned; made by complete */
};

static CUresult create(unsigned n, const CUjit_option *option, void **value,
	CUlinkState *out)
{
	struct link *l;
	struct jit jit;

	if (!out || !jit_options(&jit, n, option, value))
		return CUDA_ERROR_INVALID_VALUE;
	l = object_alloc(sizeof(*l));
	l->jit = jit;
	object_add(l, OBJECT_LINK);
	*out = (CUlinkState)l;
	return CUDA_SUCCESS;
}

static CUresult add(struct link *l, CUjitInputType type, const void *data,
	size_t size)
{
	char *text;
	size_t len;
	CUresult r;

	if (type != CU_JIT_INPUT_PTX && type != CU_JIT_INPUT_FATBINARY) {
		report_log("link: only PTX can be linked");
		jit_log(&l->jit, "only PTX can be linked");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	r = image_text(data, size, (int)knobs.cc, &text, &len);
	if (r)
		return r;
	l->text = object_grow(l->text, l->nr, &l->cap, sizeof(*l->text));
	l->text[l->nr++] = text;
	return CUDA_SUCCESS;
}

static CUresult add_data(CUlinkState state, CUjitInputType type, void *data,
	size_t size)
{
	struct link *l = object_find(state, OBJECT_LINK);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data || !size || l->image)
		return CUDA_ERROR_INVALID_VALUE;
	return add(l, type, data, size);
}

static CUresult add_file(CUlinkState state, CUjitInputType type,
	const char *path)
{
	struct link *l = object_find(state, OBJECT_LINK);
	void *image;
	size_t size;
	CUresult r;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!path || l->image)
		return CUDA_ERROR_INVALID_VALUE;
	r = image_read(path, &image, &size);
	if (r)
		return r;
	r = add(l, type, image, size);
	free(image);
	return r;
}

/* Finds ".name" as a word of its own and blanks it and the rest of its line. */
static char *cut_directive(char *text, const char *name, char *value,
	size_t size)
{
	size_t n = strlen(name);
	char *at = text;

	value[0] = 0;
	while ((at = strstr(at, name)) && (isalnum((unsigned char)at[n])
	       || at[n] == '_'))
		at += n;
	if (!at)
		return NULL;
	snprintf(value, size, "%.*s", (int)strcspn(at + n, "\n"), at + n);
	memset(at, ' ', strcspn(at, "\n"));
	return at;
}

static void blank_comments(char *text)
{
	char *at = text, *end;

	while ((at = strchr(at, '/'))) {
		if (at[1] == '/') {
			memset(at, ' ', strcspn(at, "\n"));
		} else if (at[1] == '*') {
			end = strstr(at + 2, "*/");
			end = end ? end + 2 : at + strlen(at);
			memset(at, ' ', (size_t)(end - at));
		} else {
			at++;
		}
	}
}

/* Whether the statement at `at`, as far as `len`, has this word. */
static bool has_word(const char *at, size_t len, const char *word)
{
	const char *found = memmem(at, len, word, strlen(word));

	return found && !isalnum((unsigned char)found[strlen(word)]);
}

static bool is_variable(const char *at, size_t len)
{
	return !has_word(at, len, ".func") && (has_word(at, len, ".global")
		|| has_word(at, len, ".const"));
}

/* A declaration that must come before all definitions, once. */
static bool is_new_extern(const char *at, size_t len, const char *all)
{
	return has_word(at, len, ".func") && has_word(at, len, ".extern")
		&& !memmem(all, strlen(all), at, len);
}

/*
 * Moves the text's variables and .extern functions to `to`, the end of `all`,
 * and takes out the .extern variables; returns the new end.  Outside of
 * functions a statement ends with a semicolon, or is a function and has a body.
 */
static char *move_variables(char *text, const char *all, char *to)
{
	char *at = text + strspn(text, " \t\r\n");
	size_t head, len;
	int depth;

	while (*at) {
		head = strcspn(at, ";{=");
		len = head;
		if (at[head] == '{') {
			/* A function: to the end of its body. */
			depth = 0;
			do {
				depth += (at[len] == '{') - (at[len] == '}');
				len++;
			} while (depth && at[len]);
			at += len;
		} else {
			len += strcspn(at + len, ";");
			len += at[len] == ';';
			if (is_new_extern(at, len, all) || (is_variable(at,
			    head) && !has_word(at, head, ".extern")))
				to += sprintf(to, "%.*s\n", (int)len, at);
			if (is_variable(at, head)
			    || has_word(at, head, ".extern"))
				memset(at, ' ', len);
			at += len;
		}
		at += strspn(at, " \t\r\n");
	}
	return to;
}

/* Highest version and target of all, the variables, then the bodies. */
static char *merge(struct link *l, unsigned *target)
{
	unsigned major = 1, minor = 0, a, b, sm;
	char value[64], *all;
	size_t i, len = 128;
	char *to;

	*target = 0;
	for (i = 0; i < l->nr; i++) {
		blank_comments(l->text[i]);
		cut_directive(l->text[i], ".version", value, sizeof(value));
		if (sscanf(value, " %u.%u", &a, &b) == 2
		    && (a > major || (a == major && b > minor))) {
			major = a;
			minor = b;
		}
		cut_directive(l->text[i], ".target", value, sizeof(value));
		if (sscanf(value, " sm_%u", &sm) == 1 && sm > *target)
			*target = sm;
		cut_directive(l->text[i], ".address_size", value,
			sizeof(value));
		len += 2 * strlen(l->text[i]) + 1;
	}
	all = object_alloc(len);
	to = all + sprintf(all, ".version %u.%u\n.target sm_%u\n"
		".address_size 64\n", major, minor, *target);
	for (i = 0; i < l->nr && l->nr > 1; i++)
		to = move_variables(l->text[i], all, to);
	for (i = 0; i < l->nr; i++)
		to += sprintf(to, "%s\n", l->text[i]);
	return all;
}

static CUresult complete(CUlinkState state, void **out, size_t *size)
{
	struct link *l = object_find(state, OBJECT_LINK);
	struct ptx_module *parsed;
	unsigned target;
	char *text;
	size_t n;
	CUresult r;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !l->nr || l->image)
		return CUDA_ERROR_INVALID_VALUE;
	text = merge(l, &target);
	r = jit_parse(text, strlen(text), &l->jit, &parsed);
	if (!r) {
		ptx_module_destroy(parsed);
		l->image = image_wrap(text, strlen(text), target, &n);
		*out = l->image;
		if (size)
			*size = n;
	}
	free(text);
	return r;
}

static CUresult destroy(CUlinkState state)
{
	struct link *l = object_find(state, OBJECT_LINK);
	size_t i;

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	object_remove(l);
	for (i = 0; i < l->nr; i++)
		free(l->text[i]);
	free(l->text);
	free(l->image);
	free(l);
	return CUDA_SUCCESS;
}

#define CALL(fn, need, action, ...) \
CUresult fn(__VA_ARGS__) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, need)) \
		c.result = action; \
	return call_end(&c); \
}

#define ADD_DATA CUlinkState state, CUjitInputType type, void *data, \
	size_t size, const char *name, unsigned int n, CUjit_option *option, \
	void **value
#define ADD_FILE CUlinkState state, CUjitInputType type, const char *path, \
	unsigned int n, CUjit_option *option, void **value

/* The ABI versions differ in what the real driver does with options. */
CALL(cuLinkCreate, CALL_CONTEXT, create(n, option, value, out),
	unsigned int n, CUjit_option *option, void **value, CUlinkState *out)
CALL(cuLinkCreate_v2, CALL_CONTEXT, create(n, option, value, out),
	unsigned int n, CUjit_option *option, void **value, CUlinkState *out)
CALL(cuLinkAddData, CALL_CONTEXT, add_data(state, type, data, size), ADD_DATA)
CALL(cuLinkAddData_v2, CALL_CONTEXT, add_data(state, type, data, size),
	ADD_DATA)
CALL(cuLinkAddFile, CALL_CONTEXT, add_file(state, type, path), ADD_FILE)
CALL(cuLinkAddFile_v2, CALL_CONTEXT, add_file(state, type, path), ADD_FILE)
CALL(cuLinkComplete, CALL_CONTEXT, complete(state, out, size),
	CUlinkState state, void **out, size_t *size)
CALL(cuLinkDestroy, CALL_INIT | CALL_FREES, destroy(state), CUlinkState state)
