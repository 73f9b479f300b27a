/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads preload.conf and the environment into struct conf.  Called once by
 * init_activate() and by the launcher; nothing here takes a lock.  What values
 * look like is in conf_value.c.
 *
 * inih splits lines into names and values.  Lines are handed to it by a reader
 * of ours: its handler is not told line numbers, and a line longer than its
 * buffer would silently become two.
 */
#include "shim/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shim/conf_int.h"

#define ENV_PREFIX "BALLAST_"
#define SYSTEM_FILE "/etc/ballast/preload.conf"
#define LOCAL_FILE "preload.conf"

extern char **environ;

const struct conf_row conf_rows[NR_CONF] = {
#define CONF(type, key, dflt, choices, help) \
	{ #key, CONF_##type, dflt, choices, help },
#include "shim/conf.def"
#undef CONF
};

/* Variables with our prefix that are not keys. */
static const char *const not_keys[] = { "CONFIG", "STATUS" };

struct conf conf;

/* One conf_load() in progress. */
struct load {
	struct conf *c;			/* borrowed */
	char (*origins)[CONF_TEXT_MAX];	/* borrowed, may be NULL */
	conf_complain_fn *complain;
	void *arg;
	int nr_complaints;
	/* The file being read. */
	const char *path;
	int fd;
	int err;
	int line;
	size_t pos, len;
	char buf[4096];
};

static PRINTF(3, 4) void complain(struct load *l, const char *origin,
	const char *fmt, ...)
{
	char text[CONF_TEXT_MAX + 256];
	va_list ap;

	l->nr_complaints++;
	if (l->complain == NULL)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	l->complain(l->arg, origin, text);
}

/* What a value of this type may look like, for the complaint. */
static const char *expected(const struct conf_row *row)
{
	switch (row->type) {
	case CONF_BOOL:
		return "true or false";
	case CONF_SIZE:
		return conf_has_auto(row) ? "a size such as 512M, or auto" :
			"a size such as 512M";
	case CONF_MIB:
		return "a number of MiB, or a size such as 512K";
	case CONF_BUDGET:
		return "a size such as 6G, a share such as 75% or 0.75, or "
			"auto";
	case CONF_COUNT:
		return "a whole number, at most 4294967295";
	case CONF_CHOICE:
		return row->choices;
	case CONF_TEXT:
		break;
	}
	return "a shorter text";
}

static void set_origin(struct load *l, int id, const char *origin)
{
	if (l->origins != NULL)
		snprintf(l->origins[id], CONF_TEXT_MAX, "%s", origin);
}

static void load_value(struct load *l, int id, const char *value,
	const char *origin)
{
	char now[CONF_TEXT_MAX];

	if (conf_set(l->c, id, value) == 0) {
		set_origin(l, id, origin);
		return;
	}
	complain(l, origin, "%s = %.128s: expected %s; using %s",
		conf_rows[id].key, value, expected(&conf_rows[id]),
		conf_format(l->c, id, now, sizeof(now)));
}

static const char *here(struct load *l, char *buf, size_t size)
{
	snprintf(buf, size, "%s:%d", l->path, l->line);
	return buf;
}

/* One line without its end, or false at the end of the file. */
static bool next_line(struct load *l, char *line, size_t size, bool *cut)
{
	size_t len = 0;
	bool any = false;

	*cut = false;
	for (;;) {
		char c;

		if (l->pos == l->len) {
			ssize_t n = read(l->fd, l->buf, sizeof(l->buf));

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				l->err = errno;
			if (n <= 0)
				break;
			l->pos = 0;
			l->len = (size_t)n;
		}
		c = l->buf[l->pos++];
		any = true;
		if (c == '\n')
			break;
		if (c == '\0')
			c = ' ';
		if (len + 1 < size)
			line[len++] = c;
		else
			*cut = true;
	}
	line[len] = '\0';
	l->line += any;
	return any;
}

/*
 * Hands inih the next line that it can read.  Leading space goes: inih would
 * take such a line for a continuation of the one before.
 */
static char *read_line(char *str, int num, void *stream)
{
	struct load *l = stream;
	char line[CONF_TEXT_MAX + CONF_KEY_MAX + 16];
	char origin[PATH_MAX + 16];
	const char *s;
	bool cut;

	while (next_line(l, line, sizeof(line), &cut)) {
		s = conf_skip_space(line);
		if (*s == '\0' || *s == '#' || *s == ';')
			continue;
		if (cut || strlen(s) + 1 >= (size_t)num) {
			complain(l, here(l, origin, sizeof(origin)),
				"line too long; it is ignored");
			continue;
		}
		if (*s == '[' ? strchr(s, ']') == NULL :
				strpbrk(s, "=:") == NULL) {
			complain(l, here(l, origin, sizeof(origin)),
				"%.128s: not of the form key = value; "
				"it is ignored", s);
			continue;
		}
		return strcpy(str, s);
	}
	return NULL;
}

static int take_line(void *arg, const char *section, const char *name,
	const char *value)
{
	struct load *l = arg;
	char origin[PATH_MAX + 16];
	int id = conf_find(name);

	here(l, origin, sizeof(origin));
	if (*section != '\0' && strcasecmp(section, "ballast") != 0)
		complain(l, origin, "%.64s: in a section [%.64s] that is not "
			"Ballast's; it is ignored", name, section);
	else if (id < 0)
		complain(l, origin, "%.128s: no such key; it is ignored", name);
	else
		load_value(l, id, value, origin);
	return 1;
}

static void complain_file(struct load *l, const char *path, bool wanted,
	int err)
{
	complain(l, wanted ? "environment " ENV_PREFIX "CONFIG" : path,
		"%.256s: cannot be read (%s); it is ignored", path,
		err == ENOENT ? "no such file" :
		err == EACCES ? "permission denied" :
		err == EISDIR ? "it is a folder" : "error");
}

static void load_file(struct load *l, const char *path, bool wanted)
{
	l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (l->fd < 0) {
		if (wanted || (errno != ENOENT && errno != ENOTDIR &&
				errno != EACCES))
			complain_file(l, path, wanted, errno);
		return;
	}
	l->path = path;
	l->err = 0;
	l->line = 0;
	l->pos = l->len = 0;
	ini_parse_stream(read_line, l, take_line, l);
	if (l->err != 0 && wanted)
		complain_file(l, path, wanted, l->err);
	close(l->fd);
}

static bool is_key_or_known(const char *name, size_t len)
{
	char key[CONF_KEY_MAX];
	size_t i;

	if (len >= sizeof(key))
		return false;
	memcpy(key, name, len);
	key[len] = '\0';
	for (i = 0; i < ARRAY_LEN(not_keys); i++)
		if (strcmp(key, not_keys[i]) == 0)
			return true;
	/* Only the upper case spelling is read. */
	for (i = 0; i < len; i++)
		if (islower((unsigned char)key[i]))
			return false;
	return conf_find(key) >= 0;
}

static void load_environment(struct load *l)
{
	char name[sizeof(ENV_PREFIX) + CONF_KEY_MAX];
	char origin[sizeof(name) + 16];
	size_t plen = strlen(ENV_PREFIX), i;
	const char *value;
	char **e;
	int id;

	for (id = 0; id < NR_CONF; id++) {
		snprintf(name, sizeof(name), ENV_PREFIX "%s",
			conf_rows[id].key);
		for (i = plen; name[i] != '\0'; i++)
			name[i] = (char)toupper((unsigned char)name[i]);
		value = secure_getenv(name);
		if (value == NULL)
			continue;
		snprintf(origin, sizeof(origin), "environment %s", name);
		load_value(l, id, value, origin);
	}
	for (e = environ; e != NULL && *e != NULL; e++) {
		if (strncmp(*e, ENV_PREFIX, plen) != 0)
			continue;
		i = strcspn(*e + plen, "=");
		if (!is_key_or_known(*e + plen, i))
			complain(l, "environment", ENV_PREFIX "%.*s: no such "
				"key; it is ignored", (int)(i < 128 ? i : 128),
				*e + plen);
	}
}

static void set_defaults(struct conf *c)
{
	int id;

	memset(c, 0, sizeof(*c));
	for (id = 0; id < NR_CONF; id++)
		if (conf_set(c, id, conf_rows[id].dflt) != 0)
			continue;	/* test_conf.c sees that none is wrong */
}

int conf_load(struct conf *c, char (*origins)[CONF_TEXT_MAX],
	conf_complain_fn *complain_fn, void *arg)
{
	struct load l = { .c = c, .origins = origins,
		.complain = complain_fn, .arg = arg };
	const char *named = secure_getenv(ENV_PREFIX "CONFIG");
	int save = errno, id;

	set_defaults(c);
	for (id = 0; id < NR_CONF; id++)
		set_origin(&l, id, "default");
	load_file(&l, SYSTEM_FILE, false);
	load_file(&l, LOCAL_FILE, false);
	if (named != NULL && *named != '\0')
		load_file(&l, named, true);
	load_environment(&l);
	errno = save;
	return l.nr_complaints;
}

/* So that `conf` holds the defaults before anyone loads it. */
static __attribute__((constructor)) void conf_ctor(void)
{
	set_defaults(&conf);
}
