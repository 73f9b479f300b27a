/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast simulate`: the steady state of a plan with the times of a profile.
 * Called by ballast.c.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"
#include "tools/offline.h"

/* The plan, taken over to the profile's times. */
static void read_plan(const struct offline_file *profile, const char *path,
	struct plan_file *out)
{
	struct plan_io io = { .file = path };
	char *text;
	size_t len;

	if (plan_io_load(&io, path, &text, &len))
		cli_die(EXIT_FAILED, "%s", io.error);
	if (plan_io_kind_of(text, len) == PLAN_IO_IS_PROFILE)
		cli_die(EXIT_FAILED, "%s is a profile; a plan is needed here: "
			"ballast simulate PROFILE PLAN", path);
	if (plan_io_parse_plan(&io, text, len, &profile->profile,
			       profile->arena, out))
		cli_die(EXIT_FAILED, "%s", io.error);
	free(text);
}

static void write_trace(const struct plan_profile *p,
	const struct offline_plan *plan, const char *path)
{
	char *text = chart_trace(p, plan);
	struct plan_io io = { 0 };

	if (!text)
		cli_die(EXIT_FAILED, "out of memory");
	if (!strcmp(path, "-"))
		fputs(text, stdout);
	else if (plan_io_save(&io, path, text))
		cli_die(EXIT_FAILED, "%s", io.error);
	free(text);
}

static uint32_t number(const char *text)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || v > INT32_MAX)
		cli_usage("simulate", "'%s' is no number of rows", text);
	return (uint32_t)v;
}

static int simulate(const char *profile_path, const char *plan_path,
	const char *trace, uint32_t rows)
{
	struct offline_file *f = offline_open_profile(profile_path);
	struct offline_plan plan;
	struct plan_file file;

	read_plan(f, plan_path, &file);
	offline_judge(&f->profile, &file, &plan);
	if (offline_error(&plan))
		cli_die(EXIT_FAILED, "%s: the plan cannot run: %s", plan_path,
			offline_error(&plan));
	if (trace)
		write_trace(&f->profile, &plan, trace);
	if (!trace || strcmp(trace, "-")) {
		printf("%s: %s, budget %s\n", f->profile.name,
			plan.strategy->name, offline_budget_text(plan.budget));
		chart_print(&f->profile, &plan, rows);
	}
	offline_release(&plan);
	offline_close(f);
	return cli_flush(EXIT_OK);
}

int cmd_simulate(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "rows", required_argument, NULL, 'r' },
		{ "trace", required_argument, NULL, 't' },
		{ NULL, 0, NULL, 0 },
	};
	const char *trace = NULL;
	uint32_t rows = 40;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 't')
			trace = optarg;
		else if (c == 'r')
			rows = number(optarg);
		else if (c == 'h')
			return cmd_help("simulate");
		else
			cli_usage("simulate", c == ':' ?
				"option '%s' needs a value" :
				"option '%s' is unknown", argv[optind - 1]);
	}
	if (argc - optind != 2)
		cli_usage("simulate", "a profile and a plan are needed");
	return simulate(argv[optind], argv[optind + 1], trace, rows);
}
