/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of the configuration as text, both ways.  No locale has a say in it.
 * Called by conf.c and, for its options and tables, by the launcher; no locks.
 */
#include "shim/conf.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/conf_int.h"

static const size_t offsets[NR_CONF] = {
#define CONF(type, key, dflt, choices, help) offsetof(struct conf, key),
#include "shim/conf.def"
#undef CONF
};

static void *field(struct conf *c, enum conf_id id)
{
	return (char *)c + offsets[id];
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

/*
 * Digits with an optional fraction, so that 1.5G works.  A number without a
 * suffix is of so many units.
 */
static int parse_bytes(const char *text, uint64_t plain, uint64_t *out)
{
	const char *s = conf_skip_space(text);
	long double value = 0, unit = 1;
	int shift, digits = 0;
	bool bare;

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
	s = conf_skip_space(s);
	bare = *s == '\0';
	shift = suffix_shift(&s);
	if (shift < 0 || *conf_skip_space(s) != '\0')
		return -EINVAL;
	value *= (long double)(bare ? plain : 1ull << shift);
	/* CONF_AUTO is not a size. */
	if (value >= (long double)UINT64_MAX)
		return -ERANGE;
	*out = (uint64_t)value;
	return 0;
}

static bool is_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	text = conf_skip_space(text);
	return strncasecmp(text, word, len) == 0 &&
		*conf_skip_space(text + len) == '\0';
}

int conf_parse_size(const char *text, uint64_t *out)
{
	if (is_word(text, "auto")) {
		*out = CONF_AUTO;
		return 0;
	}
	return parse_bytes(text, 1, out);
}

/* By hand, since strtod follows the program's locale.  NULL: no number. */
static const char *parse_real(const char *text, double *out)
{
	char *end;

	text = conf_skip_space(text);
	if (!isdigit((unsigned char)*text))
		return NULL;
	*out = (double)strtoul(text, &end, 10);
	if (*end == '.') {
		double unit = 1;

		for (end++; isdigit((unsigned char)*end); end++) {
			unit /= 10;
			*out += (*end - '0') * unit;
		}
	}
	return conf_skip_space(end);
}

/* 75% and 0.75 are the same; a plain number without a point is bytes. */
int conf_parse_budget(const char *text, struct conf_budget *out)
{
	struct conf_budget b = { 0, 0 };
	const char *end = parse_real(text, &b.percent);
	int err;

	if (end != NULL && *end == '%' && *conf_skip_space(end + 1) == '\0') {
		if (!(b.percent > 0 && b.percent <= 100))
			return -ERANGE;
	} else if (end != NULL && *end == '\0' && strchr(text, '.') != NULL) {
		if (b.percent > 1)
			return -ERANGE;
		/* As it is written again: millionths. */
		b.percent = (double)(unsigned long long)(b.percent * 1e8 +
			0.5) / 1e6;
		if (!(b.percent > 0))
			return -ERANGE;
	} else {
		b.percent = 0;
		err = conf_parse_size(text, &b.bytes);
		if (err != 0)
			return err;
	}
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

	text = conf_skip_space(text);
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (*conf_skip_space(end) != '\0')
		return -EINVAL;
	if (errno == ERANGE || value > CONF_COUNT_MAX)
		return -ERANGE;
	*out = value;
	return 0;
}

static int parse_choice(const char *choices, const char *text, int *out)
{
	char word[CONF_KEY_MAX];
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

bool conf_has_auto(const struct conf_row *row)
{
	return strcmp(row->dflt, "auto") == 0;
}

static int parse_size_of(const struct conf_row *row, const char *text,
	uint64_t *out)
{
	uint64_t size;
	int err = conf_parse_size(text, &size);

	if (err == 0 && size == CONF_AUTO && !conf_has_auto(row))
		err = -EINVAL;
	if (err == 0)
		*out = size;
	return err;
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
		err = parse_size_of(row, text, field(c, id));
		break;
	case CONF_MIB:
		err = parse_bytes(text, 1u << 20, field(c, id));
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

/* A number without a suffix would be MiB. */
static void format_mib(uint64_t bytes, char *buf, size_t size)
{
	if (bytes % (1u << 20) == 0)
		snprintf(buf, size, "%llu", (unsigned long long)(bytes >> 20));
	else if (bytes % 1024 == 0)
		format_size(bytes, buf, size);
	else
		snprintf(buf, size, "%lluB", (unsigned long long)bytes);
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
	case CONF_MIB:
		format_mib(*(const conf_mib_t *)f, buf, size);
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
