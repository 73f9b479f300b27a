/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads preload.conf and the environment into struct conf.  Called once by
 * init_activate() and by the launcher; nothing here takes a lock.
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

#define ENV_PREFIX "BALLAST_"
#define SYSTEM_FILE "/etc/ballast/preload.conf"
#define LOCAL_FILE "preload.conf"
#define KEY_MAX 64

extern char **environ;

const struct conf_row conf_rows[NR_CONF] = {
#define CONF(type, key, dflt, choices, help) \
	{ #key, CONF_##type, dflt, choices, help },
#include "shim/conf.def"
#undef CONF
};

static const size_t offsets[NR_CONF] = {
#define CONF(type, key, dflt, choices, help) offsetof(struct conf, key),
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
	int line;
	size_t pos, len;
	char buf[4096];
};

static void *field(struct conf *c, enum conf_id id)
{
	return (char *)c + offsets[id];
}

/* ---- values ---- */

static const char *skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* The power of two that a suffix stands for, or -1.  Moves *s behind it. */
static int suffix_shift(const char **s)
{
	static const char letters[] = "KMGT";
	const char *p = *s;
	const char *hit;

	if (*p == '\0' || isspace((unsigned char)*p))
		return 0;
	if (toupper((unsigned char)*p) == 'B') {
		*s = p + 1;
		return 0;
	}
	hit = strchr(letters, toupper((unsigned char)*p));
	if (hit == NULL)
		return -1;
	p++;
	/* 4G, 4GB and 4GiB are the same: powers of 1024. */
	if (*p == 'i')
		p++;
	if (toupper((unsigned char)*p) == 'B')
		p++;
	*s = p;
	return 10 * (int)(hit - letters + 1);
}

/* Digits with an optional fraction, so that 1.5G works. */
static int parse_bytes(const char *text, uint64_t *out)
{
	const char *s = skip_space(text);
	long double value = 0, unit = 1;
	int shift, digits = 0;

	for (; isdigit((unsigned char)*s); s++, digits++)
		value = value * 10 + (*s - '0');
	if (digits == 0)
		return -EINVAL;
	if (*s == '.') {
		for (s++; isdigit((unsigned char)*s); s++) {
			unit /= 10;
			value += (*s - '0') * unit;
		}
	}
	s = skip_space(s);
	shift = suffix_shift(&s);
	if (shift < 0 || *skip_space(s) != '\0')
		return -EINVAL;
	value *= (long double)(1ull << shift);
	/* CONF_AUTO is not a size. */
	if (value >= (long double)UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)value;
	return 0;
}

static bool is_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	text = skip_space(text);
	return strncasecmp(text, word, len) == 0 &&
		*skip_space(text + len) == '\0';
}

int conf_parse_size(const char *text, uint64_t *out)
{
	if (is_word(text, "auto")) {
		*out = CONF_AUTO;
		return 0;
	}
	return parse_bytes(text, out);
}

int conf_parse_budget(const char *text, struct conf_budget *out)
{
	const char *sign = strchr(text, '%');
	struct conf_budget b = { 0, 0 };
	char *end;
	int err;

	if (sign == NULL) {
		err = conf_parse_size(text, &b.bytes);
		if (err == 0)
			*out = b;
		return err;
	}
	text = skip_space(text);
	if (!isdigit((unsigned char)*text) || *skip_space(sign + 1) != '\0')
		return -EINVAL;
	/* By hand, since strtod follows the program's locale. */
	b.percent = (double)strtoul(text, &end, 10);
	if (*end == '.') {
		double unit = 1;

		for (end++; isdigit((unsigned char)*end); end++) {
			unit /= 10;
			b.percent += (*end - '0') * unit;
		}
	}
	if (skip_space(end) != sign)
		return -EINVAL;
	if (!(b.percent > 0 && b.percent <= 100))
		return -ERANGE;
	*out = b;
	return 0;
}

static int parse_bool(const char *text, bool *out)
{
	static const char *const yes[] = { "true", "yes", "on", "1" };
	static const char *const no[] = { "false", "no", "off", "0" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(yes); i++) {
		if (is_word(text, yes[i]) || is_word(text, no[i])) {
			*out = is_word(text, yes[i]);
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_count(const char *text, uint64_t *out)
{
	unsigned long long value;
	char *end;

	text = skip_space(text);
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*skip_space(end) != '\0')
		return -EINVAL;
	if (errno == ERANGE)
		return -ERANGE;
	*out = value;
	return 0;
}

static int parse_choice(const char *choices, const char *text, int *out)
{
	char word[KEY_MAX];
	int nr = 0;

	while (*choices != '\0') {
		size_t len = strcspn(choices, "|");

		if (len < sizeof(word)) {
			memcpy(word, choices, len);
			word[len] = '\0';
			if (is_word(text, word)) {
				*out = nr;
				return 0;
			}
		}
		choices += len + (choices[len] == '|');
		nr++;
	}
	return -EINVAL;
}

static int parse_text(const char *text, conf_text_t *out)
{
	size_t len = strlen(text);

	if (len >= sizeof(out->text))
		return -ERANGE;
	memcpy(out->text, text, len + 1);
	return 0;
}

int conf_set(struct conf *c, enum conf_id id, const char *text)
{
	const struct conf_row *row = &conf_rows[id];
	int save = errno, err = -EINVAL;

	switch (row->type) {
	case CONF_BOOL:
		err = parse_bool(text, field(c, id));
		break;
	case CONF_SIZE:
		err = conf_parse_size(text, field(c, id));
		break;
	case CONF_BUDGET:
		err = conf_parse_budget(text, field(c, id));
		break;
	case CONF_COUNT:
		err = parse_count(text, field(c, id));
		break;
	case CONF_CHOICE:
		err = parse_choice(row->choices, text, field(c, id));
		break;
	case CONF_TEXT:
		err = parse_text(text, field(c, id));
		break;
	}
	errno = save;
	return err;
}

int conf_find(const char *key)
{
	int id;

	for (id = 0; id < NR_CONF; id++)
		if (strcasecmp(conf_rows[id].key, key) == 0)
			return id;
	return -ENOENT;
}

/* The exact spelling: whole multiples of a suffix, otherwise plain bytes. */
static void format_size(uint64_t bytes, char *buf, size_t size)
{
	static const char letters[] = "KMGT";
	int nr = 0;

	if (bytes == CONF_AUTO) {
		snprintf(buf, size, "auto");
		return;
	}
	while (nr < 4 && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		nr++;
	}
	snprintf(buf, size, "%llu%.1s", (unsigned long long)bytes,
		nr ? letters + nr - 1 : "");
}

/* No %f: its decimal point would follow the program's locale. */
static void format_percent(double percent, char *buf, size_t size)
{
	unsigned long long micro = (unsigned long long)(percent * 1e6 + 0.5);
	unsigned long long frac = micro % 1000000;
	int digits = 6;

	if (frac == 0) {
		snprintf(buf, size, "%llu%%", micro / 1000000);
		return;
	}
	while (frac % 10 == 0) {
		frac /= 10;
		digits--;
	}
	snprintf(buf, size, "%llu.%0*llu%%", micro / 1000000, digits, frac);
}

static void format_choice(const char *choices, int nr, char *buf, size_t size)
{
	while (nr-- > 0) {
		choices += strcspn(choices, "|");
		choices += *choices == '|';
	}
	snprintf(buf, size, "%.*s", (int)strcspn(choices, "|"), choices);
}

const char *conf_format(const struct conf *c, enum conf_id id, char *buf,
	size_t size)
{
	const struct conf_row *row = &conf_rows[id];
	const void *f = (const char *)c + offsets[id];
	const struct conf_budget *b = f;

	switch (row->type) {
	case CONF_BOOL:
		snprintf(buf, size, "%s",
			*(const conf_bool_t *)f ? "true" : "false");
		break;
	case CONF_SIZE:
		format_size(*(const conf_size_t *)f, buf, size);
		break;
	case CONF_BUDGET:
		if (b->percent > 0)
			format_percent(b->percent, buf, size);
		else
			format_size(b->bytes, buf, size);
		break;
	case CONF_COUNT:
		snprintf(buf, size, "%llu",
			(unsigned long long)*(const conf_count_t *)f);
		break;
	case CONF_CHOICE:
		format_choice(row->choices, *(const conf_choice_t *)f, buf,
			size);
		break;
	case CONF_TEXT:
		snprintf(buf, size, "%s", ((const conf_text_t *)f)->text);
		break;
	}
	return buf;
}

uint64_t conf_budget_bytes(const struct conf_budget *b, uint64_t total)
{
	if (b->percent > 0)
		return (uint64_t)((long double)total *
			((long double)b->percent / 100) + 0.5L);
	return b->bytes;
}

const char *conf_size_text(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	uint64_t whole = bytes, frac;
	unsigned int shift = 10, nr = 0;

	if (bytes < 1024) {
		snprintf(buf, size, "%llu B", (unsigned long long)bytes);
		return buf;
	}
	while (nr + 1 < ARRAY_LEN(units) && bytes >> (shift + 10) != 0) {
		shift += 10;
		nr++;
	}
	whole = bytes >> shift;
	frac = ((bytes & ((1ull << shift) - 1)) * 100) >> shift;
	if (frac == 0 && bytes == whole << shift)
		snprintf(buf, size, "%llu %s", (unsigned long long)whole,
			units[nr]);
	else
		snprintf(buf, size, "%llu.%02llu %s",
			(unsigned long long)whole, (unsigned long long)frac,
			units[nr]);
	return buf;
}

/* ---- loading ---- */

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
		return "a size such as 512M, or auto";
	case CONF_BUDGET:
		return "a size such as 6G, a share such as 75%, or auto";
	case CONF_COUNT:
		return "a whole number";
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
	char line[CONF_TEXT_MAX + KEY_MAX + 16];
	char origin[PATH_MAX + 16];
	const char *s;
	bool cut;

	while (next_line(l, line, sizeof(line), &cut)) {
		s = skip_space(line);
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

static void load_file(struct load *l, const char *path, bool wanted)
{
	l->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (l->fd < 0) {
		if (wanted || (errno != ENOENT && errno != ENOTDIR &&
				errno != EACCES))
			complain(l, wanted ? "environment" : path,
				"%.256s: cannot be read (%s); it is ignored",
				path, errno == ENOENT ? "no such file" :
				errno == EACCES ? "permission denied" :
				"error");
		return;
	}
	l->path = path;
	l->line = 0;
	l->pos = l->len = 0;
	ini_parse_stream(read_line, l, take_line, l);
	close(l->fd);
}

static bool is_key_or_known(const char *name, size_t len)
{
	char key[KEY_MAX];
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
	char name[sizeof(ENV_PREFIX) + KEY_MAX];
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
