/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the knobs.  Called by cuInit under the driver's lock; the only file
 * that looks at the environment.  A typing error must not turn into a test
 * that checks something else, so an unknown SOFTCUDA_ name is an error too.
 */
#include "test/softcuda/knobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

struct knobs knobs;

enum knob_kind { KNOB_SIZE, KNOB_INT, KNOB_REAL, KNOB_TEXT };

struct knob_row {
	const char *env;
	enum knob_kind kind;
	size_t offset;
	double def, min, max;
};

static const struct knob_row rows[] = {
#define KNOB(field, env, kind, def, min, max, help) \
	{ #env, KNOB_##kind, offsetof(struct knobs, field), def, min, max },
#include "test/softcuda/knobs.def"
#undef KNOB
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

const char *knobs_name(size_t i)
{
	return i < NR_ROWS ? rows[i].env : NULL;
}

bool knobs_parse_size(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	unsigned long long v;
	const char *unit;
	unsigned shift = 0;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (end == text || errno || text[0] == '-')
		return false;
	if (*end) {
		unit = strchr(units, *end & ~0x20);
		if (!unit || !*unit)
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
		if (end[0] == 'i' && end[1] == 'B')
			end += 2;
	}
	if (*end || (v << shift) >> shift != v)
		return false;
	*out = v << shift;
	return true;
}

static bool parse_number(const struct knob_row *row, const char *text,
	double *out)
{
	uint64_t size;
	char *end;

	if (row->kind == KNOB_SIZE) {
		if (!knobs_parse_size(text, &size))
			return false;
		*out = (double)size;
	} else {
		errno = 0;
		*out = row->kind == KNOB_INT ? (double)strtoll(text, &end, 0)
			: strtod(text, &end);
		if (end == text || *end || errno)
			return false;
	}
	return *out >= row->min && *out <= row->max;
}

static void store(const struct knob_row *row, double value)
{
	void *field = (char *)&knobs + row->offset;

	switch (row->kind) {
	case KNOB_SIZE:
		*(uint64_t *)field = (uint64_t)value;
		break;
	case KNOB_INT:
		*(int64_t *)field = (int64_t)value;
		break;
	case KNOB_REAL:
		*(double *)field = value;
		break;
	case KNOB_TEXT:
		break;
	}
}

static bool load_row(const struct knob_row *row)
{
	const char *text = getenv(row->env);
	double value;

	if (text && !*text)
		text = NULL;
	if (row->kind == KNOB_TEXT) {
		*(const char **)((char *)&knobs + row->offset) = text;
		return true;
	}
	store(row, row->def);
	if (!text)
		return true;
	if (!parse_number(row, text, &value)) {
		fprintf(stderr, "softcuda: %s=%s: a number from %.15g to %.15g "
			"is wanted\n", row->env, text, row->min, row->max);
		return false;
	}
	store(row, value);
	return true;
}

static bool is_known(const char *assignment)
{
	size_t i, len = strcspn(assignment, "=");

	for (i = 0; i < NR_ROWS; i++)
		if (strlen(rows[i].env) == len
		    && !strncmp(rows[i].env, assignment, len))
			return true;
	return false;
}

bool knobs_load(void)
{
	bool good = true;
	size_t i;

	for (i = 0; i < NR_ROWS; i++)
		good &= load_row(&rows[i]);
	for (i = 0; environ && environ[i]; i++) {
		if (strncmp(environ[i], "SOFTCUDA_", 9) || is_known(environ[i]))
			continue;
		fprintf(stderr, "softcuda: unknown knob %.*s\n",
			(int)strcspn(environ[i], "="), environ[i]);
		good = false;
	}
	if (knobs.granularity & (knobs.granularity - 1)) {
		fprintf(stderr, "softcuda: SOFTCUDA_GRANULARITY: a power of two "
			"is wanted\n");
		good = false;
	}
	return good;
}

bool knobs_need(void)
{
	static bool known, good;

	if (!known)
		good = knobs_load();
	known = true;
	return good;
}
