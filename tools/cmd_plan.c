/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast plan`: one plan by one strategy, as a summary and as plan.json.
 * Called by ballast.c.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli.h"
#include "tools/offline.h"

#define MAX_PARAMS 64

static void list_strategies(void)
{
	char buf[64];

	for (uint32_t i = 0; i < plan_nr_strategies(); i++) {
		const struct plan_strategy *s = plan_strategy(i);

		printf("%s%s: %s\n", i ? "\n" : "", s->name, s->summary);
		for (uint32_t k = 0; k < PLAN_NR_PARAMS; k++)
			if (s->params >> k & 1)
				printf("  %-18s %-10s %s\n",
					plan_param(k)->name, plan_io_param_text(
					k, &s->defaults, buf, sizeof(buf)),
					plan_param(k)->help);
	}
}

static void summary(const struct offline_file *f,
	const struct offline_plan *plan, double bound)
{
	const struct timeline_times *t = &plan->times;
	const char *by = plan->result.selected_strategy_name;

	printf("strategy   %s%s%s%s\n", plan->strategy->name, by ? " (" : "",
		by ? by : "", by ? ")" : "");
	printf("budget     %s\n", offline_budget_text(plan->budget));
	printf("peak       %s of %s%s\n",
		offline_size(plan->score.peak_memory_bytes),
		offline_size(f->unique), plan->budget != PLAN_NO_LIMIT &&
		plan->score.peak_memory_bytes > plan->budget ?
		", over the budget" : "");
	printf("streamed   %s\n",
		offline_size(plan_offloaded_bytes(&plan->result)));
	if (!plan->timeline_status) {
		printf("period     %s", offline_time(t->period_ms));
		if (t->compute_ms > 0)
			printf(", %.2f %% over computing alone", 100 *
				(t->period_ms / t->compute_ms - 1));
		printf("; first iteration %s\n", offline_time(t->cold_ms));
	}
	if (bound > 0)
		printf("bound      %s%s\n", offline_time(bound),
			plan->timeline_status || !plan->score.is_valid ? "" :
			cli_format(", no plan is faster; gap %.2f %%",
			100 * (t->period_ms / bound - 1)));
	if (plan->params.release_ms > 0)
		printf("write-back %s, as a run with verify = always; else "
			"-p release_ms=0\n",
			offline_time(plan->params.release_ms));
	if (plan->score.consecutive_violations)
		printf("conflicts  %u transfers follow one in the same block\n",
			plan->score.consecutive_violations);
	printf("planned    in %s\n", offline_time(plan->plan_ms));
	if (plan->result.message[0])
		cli_warn("%s", plan->result.message);
}

static int save(const char *path, const struct offline_file *f,
	const struct offline_plan *plan, double bound)
{
	struct plan_file file = {
		.profile = f->profile,
		.strategy = plan->strategy->name,
		.params = plan->params,
		.budget = plan->budget,
		.result = plan->result,
		.score = plan->score,
		.period_ms = plan->times.period_ms,
		.cold_ms = plan->times.cold_ms,
		.bound_ms = bound,
		.fingerprint = plan_io_fingerprint(f->profile.layers,
			f->profile.nr_layers),
	};
	char *text = plan_io_print_plan(&file);
	struct plan_io io = { 0 };
	int err = 0;

	if (!text)
		cli_die(EXIT_FAILED, "out of memory");
	if (!strcmp(path, "-"))
		fputs(text, stdout);
	else
		err = plan_io_save(&io, path, text);
	free(text);
	if (err)
		cli_die(EXIT_FAILED, "%s", io.error);
	return err;
}

static int make(const struct offline_file *f, const struct plan_strategy *s,
	const struct plan_params *params, uint64_t budget, const char *output)
{
	double bound = offline_bound(&f->profile, budget);
	struct offline_plan plan;
	int status = EXIT_OK;

	offline_compute(&f->profile, s, params, budget, &plan);
	if (plan.status)
		cli_die(EXIT_FAILED, "%s: %s%s", s->name, offline_error(&plan),
			plan.result.smallest_budget ? cli_format(
			"; the smallest that works is -b %llu",
			(unsigned long long)plan.result.smallest_budget) : "");
	if (output)
		save(output, f, &plan, bound);
	if (!output || strcmp(output, "-"))
		summary(f, &plan, bound);
	if (plan.timeline_status) {
		cli_warn("the plan cannot run: %s", offline_error(&plan));
		status = EXIT_FAILED;
	} else if (!plan.score.is_valid) {
		cli_warn("the plan is not valid: it needs %s, the budget is %s",
			offline_size(plan.score.peak_memory_bytes),
			offline_budget_text(budget));
		status = EXIT_FAILED;
	}
	if (status != EXIT_OK && output && strcmp(output, "-"))
		cli_warn("%s has it all the same", output);
	offline_release(&plan);
	return status;
}

int cmd_plan(int argc, char **argv)
{
	static const struct option options[] = {
		{ "budget", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ "list", no_argument, NULL, 'l' },
		{ "output", required_argument, NULL, 'o' },
		{ "param", required_argument, NULL, 'p' },
		{ "strategy", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	const char *budget = NULL, *output = NULL, *name = "optimal";
	const char *params[MAX_PARAMS];
	const struct plan_strategy *s;
	struct plan_params p;
	struct offline_file *f;
	int c, nr = 0, status;
	bool given = false;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":b:ho:p:s:", options, NULL)) !=
	       -1) {
		switch (c) {
		case 'b':
			budget = optarg;
			break;
		case 'h':
			return cmd_help("plan");
		case 'l':
			list_strategies();
			return cli_flush(EXIT_OK);
		case 'o':
			output = optarg;
			break;
		case 'p':
			if (nr == MAX_PARAMS)
				cli_usage("plan", "too many parameters");
			params[nr++] = optarg;
			break;
		case 's':
			name = optarg;
			break;
		default:
			cli_usage("plan", c == ':' ? "option '%s' needs a value"
				: "option '%s' is unknown", argv[optind - 1]);
		}
	}
	if (optind + 1 != argc)
		cli_usage("plan", optind == argc ? "which profile?" :
			"one profile at a time");
	if (!budget)
		cli_usage("plan", "which budget?  Give -b SIZE, or -b none");
	s = offline_strategy("plan", name);
	p = s->defaults;
	for (int i = 0; i < nr; i++)
		offline_param("plan", s, &p, params[i]);
	f = offline_open_profile(argv[optind]);
	for (int i = 0; i < nr; i++)
		given |= strncmp(params[i], "release_ms=", 11) == 0;
	if (!given)
		p.release_ms = offline_write_back(&f->profile);
	status = make(f, s, &p, offline_budget("plan", f, budget), output);
	offline_close(f);
	return cli_flush(status);
}
