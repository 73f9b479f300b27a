/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of strategies as text: in plan files and on command lines.
 * Called through plan_io.h; no locks.
 */
#include "planner/plan_io_int.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const loaders[] = {
	"strategy", "raw_block_transfer", "allocation_block_transfer", NULL,
};
static const char *const candidates[] = { "published", "all", NULL };
static const char *const truth[] = { "false", "true", NULL };
static const char *const windows[] = { "default", "single", "gap_aware", NULL };

static int choice(const char *const *names, const char *text)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], text))
			return i;
	return -1;
}

static bool real_of(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && isfinite(*out);
}

/* Digits, and K, M, G, T for powers of 1024. */
static bool bytes_of(const char *text, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*out = strtoull(text, &end, 10);
	if (errno)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit && !end[1])
		return !__builtin_mul_overflow(*out,
			UINT64_C(1) << 10 * (unit - units + 1), out);
	return !*end;
}

static bool int_of(const char *text, int *out)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	*out = (int)v;
	return end != text && !*end && !errno && v == *out;
}

/* "strict", "optimized", "optimized:WEIGHT". */
static bool assignment_of(const char *text, struct plan_assignment *out)
{
	struct plan_assignment a = { 0 };
	size_t n = strcspn(text, ":");

	if (text[n] && (!real_of(text + n + 1, &a.distribution_weight) ||
			a.distribution_weight < 0 || a.distribution_weight > 1))
		return false;
	if (n == 9 && !strncmp(text, "optimized", n))
		a.compute = plan_assign_optimized;
	else if (n == 6 && !text[n] && !strncmp(text, "strict", n))
		a.compute = plan_assign_strict;
	else if (n != 7 || text[n] || strncmp(text, "default", n))
		return false;
	*out = a;
	return true;
}

static const char *kind_text(enum plan_param_kind kind)
{
	switch (kind) {
	case PLAN_REAL:
		return "a number";
	case PLAN_INT:
	case PLAN_SEED:
		return "a whole number";
	case PLAN_BOOL:
		return "true or false";
	case PLAN_BYTES:
		return "a size such as 2097152 or 2M";
	case PLAN_LOADER:
		return "strategy, raw_block_transfer or "
			"allocation_block_transfer";
	case PLAN_CANDIDATES:
		return "published or all";
	case PLAN_ASSIGNMENT:
		return "default, strict, optimized or optimized:WEIGHT";
	default:
		return "default, single or gap_aware";
	}
}

static bool set(const struct plan_param *param, void *at, const char *text)
{
	uint64_t u;
	int i;

	switch (param->kind) {
	case PLAN_REAL:
		return real_of(text, at);
	case PLAN_INT:
		return int_of(text, at);
	case PLAN_BOOL:
		i = choice(truth, text);
		*(bool *)at = i == 1;
		return i >= 0;
	case PLAN_SEED:
	case PLAN_BYTES:
		if (!bytes_of(text, &u))
			return false;
		*(uint64_t *)at = u;
		return true;
	case PLAN_LOADER:
		i = choice(loaders, text);
		*(enum plan_loader *)at = i < 0 ? 0 : (enum plan_loader)i;
		return i >= 0;
	case PLAN_CANDIDATES:
		i = choice(candidates, text);
		*(enum plan_candidates *)at = i < 0 ? 0 :
			(enum plan_candidates)i;
		return i >= 0;
	case PLAN_ASSIGNMENT:
		return assignment_of(text, at);
	case PLAN_WINDOW:
		i = choice(windows, text);
		*(struct plan_window *)at = (struct plan_window){
			i == 1 ? plan_window_single :
			i == 2 ? plan_window_gap_aware : NULL, NULL };
		return i >= 0;
	}
	return false;
}

int plan_io_set_param(struct plan_io *io, const struct plan_strategy *s,
	struct plan_params *p, const char *name, const char *value)
{
	const struct plan_param *param = NULL;
	size_t n;

	for (uint32_t i = 0; i < PLAN_NR_PARAMS; i++)
		if ((s->params >> i & 1) && !strcmp(plan_param(i)->name, name))
			param = plan_param(i);
	if (!param) {
		n = (size_t)snprintf(io->error, sizeof(io->error),
			"%s takes no parameter '%.60s'; it takes", s->name,
			name);
		for (uint32_t i = 0; i < PLAN_NR_PARAMS; i++)
			if ((s->params >> i & 1) && n < sizeof(io->error))
				n += (size_t)snprintf(io->error + n,
					sizeof(io->error) - n, " %s",
					plan_param(i)->name);
		return -EINVAL;
	}
	if (set(param, (char *)p + param->offset, value))
		return 0;
	snprintf(io->error, sizeof(io->error),
		"%s is '%.60s', but must be %s", name, value,
		kind_text(param->kind));
	return -EINVAL;
}

const char *plan_io_param_text(enum plan_param_id id,
	const struct plan_params *p, char *buf, size_t size)
{
	const struct plan_param *param = plan_param(id);
	const void *at = (const char *)p + param->offset;
	const struct plan_assignment *a = at;
	plan_window_fn *window;
	struct plan_text t = { 0 };

	switch (param->kind) {
	case PLAN_REAL:
		plan_text_real(&t, *(const double *)at);
		snprintf(buf, size, "%s", t.data ? t.data : "0");
		free(t.data);
		break;
	case PLAN_INT:
		snprintf(buf, size, "%d", *(const int *)at);
		break;
	case PLAN_BOOL:
		snprintf(buf, size, "%s", truth[*(const bool *)at]);
		break;
	case PLAN_SEED:
	case PLAN_BYTES:
		snprintf(buf, size, "%" PRIu64, *(const uint64_t *)at);
		break;
	case PLAN_LOADER:
		snprintf(buf, size, "%s",
			loaders[*(const enum plan_loader *)at]);
		break;
	case PLAN_CANDIDATES:
		snprintf(buf, size, "%s",
			candidates[*(const enum plan_candidates *)at]);
		break;
	case PLAN_ASSIGNMENT:
		if (a->compute == plan_assign_optimized) {
			plan_text_put(&t, "optimized:");
			plan_text_real(&t, a->distribution_weight);
			snprintf(buf, size, "%s", t.data ? t.data : "default");
			free(t.data);
		} else {
			snprintf(buf, size, "%s", a->compute ==
				plan_assign_strict ? "strict" : "default");
		}
		break;
	case PLAN_WINDOW:
		window = ((const struct plan_window *)at)->compute;
		snprintf(buf, size, "%s", windows[
			window == plan_window_single ? 1 :
			window == plan_window_gap_aware ? 2 : 0]);
		break;
	}
	return buf;
}

/* ---- a strategy with its parameters in a line ---- */

/* "key=value,key=value"; text is the caller's to change. */
static bool read_params(const struct plan_strategy *s, char *text,
	struct plan_params *params, char *message)
{
	struct plan_io io = { .guest = true };
	char *next = text, *word, *value;

	while (next != NULL) {
		word = next;
		next = strchr(word, ',');
		if (next != NULL)
			*next++ = '\0';
		value = strchr(word, '=');
		if (value == NULL) {
			snprintf(message, PLAN_MESSAGE, "%s: \"%.60s\" is not "
				"key=value", s->name, word);
			return false;
		}
		*value++ = '\0';
		if (plan_io_set_param(&io, s, params, word, value) != 0) {
			snprintf(message, PLAN_MESSAGE, "%.*s",
				PLAN_MESSAGE - 1, io.error);
			return false;
		}
	}
	return plan_params_check(s, params, message) == PLAN_OK;
}

const struct plan_strategy *plan_io_strategy(const char *line,
	struct plan_params *params, char *message)
{
	const struct plan_strategy *s;
	char text[PLAN_IO_STRATEGY], *colon;

	message[0] = '\0';
	snprintf(text, sizeof(text), "%s", line);
	colon = strchr(text, ':');
	if (colon != NULL)
		*colon++ = '\0';
	s = plan_strategy_find(text);
	if (s == NULL) {
		snprintf(message, PLAN_MESSAGE, "there is no strategy "
			"\"%.64s\"; ballast plan --list names them all", text);
		return NULL;
	}
	*params = s->defaults;
	return colon == NULL || read_params(s, colon, params, message) ? s :
		NULL;
}
