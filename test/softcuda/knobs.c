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

static bool complain(const char *env, const char *text, const char *want)
{
	fprintf(stderr, "softcuda: %s=%s: %s is wanted\n", env, text, want);
	return false;
}

/* Numbers with `sep` between, from `least` to `most` of them. */
static bool is_list(const char *text, char sep, int least, int most)
{
	char *end;
	int n = 0;

	do {
		strtod(text, &end);
		if (end == text)
			return false;
		n++;
		text = end + 1;
	} while (*end == sep);
	return !*end && n >= least && n <= most;
}

static bool check_texts(void)
{
	const char *colon;
	bool good = true;

	if (knobs.fail_nth && !is_list(knobs.fail_nth, ':', 1, 2))
		good = complain("SOFTCUDA_FAIL_NTH", knobs.fail_nth,
			"n[:code]");
	colon = knobs.fail_call ? strchr(knobs.fail_call, ':') : NULL;
	if (knobs.fail_call && (!colon || !is_list(colon + 1, ':', 1, 2)))
		good = complain("SOFTCUDA_FAIL_CALL", knobs.fail_call,
			"name:n[:code]");
	if (knobs.drop && !is_list(knobs.drop, ':', 3, 3))
		good = complain("SOFTCUDA_DROP", knobs.drop, "from:to:percent");
	if (knobs.preempt && !is_list(knobs.preempt, ',', 1, 2))
		good = complain("SOFTCUDA_PREEMPT", knobs.preempt,
			"seed[,calls]");
	return good;
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
	return check_texts() && good;
}

bool knobs_need(void)
{
	static bool known, good;

	if (!known)
		good = knobs_load();
	known = true;
	return good;
}
