/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statuses and parameters as text, and messages of results.  Called by the
 * strategies and the tools.
 */
#include "planner/plan_int.h"

#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *name, *text;
} statuses[] = {
#define STATUS(name, text) { #name, text },
#include "planner/plan_status.def"
#undef STATUS
};

const char *plan_status_message(enum plan_status status)
{
	return (unsigned int)status < PLAN_NR_STATUS ? statuses[status].text :
		"unknown status";
}

const char *plan_status_name(enum plan_status status)
{
	return (unsigned int)status < PLAN_NR_STATUS ? statuses[status].name :
		"UNKNOWN";
}

static const struct plan_param params[] = {
#define PARAM(name, kind, help) \
	{ #name, help, PLAN_##kind, offsetof(struct plan_params, name) },
#include "planner/plan_params.def"
#undef PARAM
};

const struct plan_param *plan_param(enum plan_param_id id)
{
	return &params[id];
}

enum plan_status plan_fail(struct strategy_result *result,
	enum plan_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->message, PLAN_MESSAGE, format, args);
	va_end(args);
	return status;
}

void plan_warn(struct strategy_result *result, const char *format, ...)
{
	va_list args;

	if (result->message[0])
		return;
	va_start(args, format);
	vsnprintf(result->message, PLAN_MESSAGE, format, args);
	va_end(args);
}
