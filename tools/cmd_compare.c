/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast compare`: plans of several strategies under several budgets, side by
 * side.  Called by ballast.c.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/conf.h"
#include "tools/cli.h"
#include "tools/offline.h"

#define MOST 64

static void json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			printf("\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			printf("\\u%04x", (unsigned char)*text);
		else
			putchar(*text);
	}
	putchar('"');
}

static void json_real(const char *key, bool known, double v)
{
	if (known && isfinite(v))
		printf(",\"%s\":%.12g", key, v);
	else
		printf(",\"%s\":null", key);
}

static void json_whole(const char *key, bool known, uint64_t v)
{
	if (known)
		printf(",\"%s\":%llu", key, (unsigned long long)v);
	else
		printf(",\"%s\":null", key);
}

static void json_row(const struct plan_profile *p,
	const struct offline_plan *plan, double bound)
{
	bool made = plan->status == PLAN_OK;
	bool timed = made && plan->timeline_status == PLAN_OK;
	const struct timeline_times *t = &plan->times;
	/* That a plan cannot run is no failure of the strategy's. */
	const char *error = made ? NULL : offline_error(plan);

	printf("{\"case\":");
	json_string(p->name);
	json_whole("budget", plan->budget != PLAN_NO_LIMIT, plan->budget);
	printf(",\"strategy\":\"%s\",\"is_valid\":%s", plan->strategy->name,
		made && plan->score.is_valid ? "true" : "false");
	json_whole("peak_memory_bytes", made, plan->score.peak_memory_bytes);
	json_whole("offloaded_bytes", made,
		made ? plan_offloaded_bytes(&plan->result) : 0);
	json_real("estimated_overhead", made, plan->score.estimated_overhead);
	json_whole("consecutive_violations", made,
		plan->score.consecutive_violations);
	json_real("true_period_ms", timed, t->period_ms);
	json_real("true_overhead", timed && t->compute_ms > 0,
		t->period_ms / t->compute_ms - 1);
	json_real("bound_ms", bound > 0, bound);
	/* The bound holds for plans within the budget. */
	json_real("gap", timed && bound > 0 && plan->score.is_valid,
		t->period_ms / bound - 1);
	json_real("plan_ms", true, plan->plan_ms);
	printf(",\"error\":");
	if (error)
		json_string(error);
	else
		printf("null");
	printf("}\n");
}

static const char *size_text(uint64_t bytes, char *buf, size_t size)
{
	return conf_size_text(bytes, buf, size);
}

static void table_head(const struct offline_file *f, uint64_t budget,
	double bound)
{
	printf("%s: budget %s", f->profile.name, offline_budget_text(budget));
	if (budget != PLAN_NO_LIMIT)
		printf(" (%.0f %% of %s)", 100 * (double)budget /
			(double)f->unique, offline_size(f->unique));
	printf(", computing alone %s", offline_time(f->compute_ms));
	if (bound > 0)
		printf(", no plan is faster than %s", offline_time(bound));
	printf("\n  %-26s %10s %10s %12s %9s %8s %9s  %s\n", "strategy", "peak",
		"streamed", "period ms", "overhead", "gap", "plan ms", "");
}

static void table_row(const struct offline_plan *plan, double bound)
{
	const struct timeline_times *t = &plan->times;
	char peak[32], streamed[32], name[64];
	const char *by = plan->result.selected_strategy_name;

	snprintf(name, sizeof(name), "%s", plan->strategy->name);
	if (plan->status) {
		printf("  %-26s %10s %10s %12s %9s %8s %9.1f  %s\n", name, "-",
			"-", "-", "-", "-", plan->plan_ms,
			offline_error(plan));
		return;
	}
	size_text(plan->score.peak_memory_bytes, peak, sizeof(peak));
	size_text(plan_offloaded_bytes(&plan->result), streamed,
		sizeof(streamed));
	printf("  %-26s %10s %10s", name, peak, streamed);
	if (plan->timeline_status) {
		printf(" %12s %9s %8s %9.1f  cannot run: %s\n", "-", "-", "-",
			plan->plan_ms, plan->lacks_room ?
			"no room for its transfers" : offline_error(plan));
		return;
	}
	printf(" %12.3f", t->period_ms);
	if (t->compute_ms > 0)
		printf(" %7.2f %%", 100 * (t->period_ms / t->compute_ms - 1));
	else
		printf(" %9s", "-");
	if (bound > 0 && plan->score.is_valid)
		printf(" %6.2f %%", 100 * (t->period_ms / bound - 1));
	else
		printf(" %8s", "-");
	printf(" %9.1f  %s%s%s\n", plan->plan_ms,
		plan->score.consecutive_violations ? "conflicts" :
		plan->score.is_valid ? "" : "over the budget",
		by && plan->score.is_valid ? "= " : by ? ", = " : "",
		by ? by : "");
}

static void compare(const struct offline_file *f, uint64_t budget,
	const struct plan_strategy *const *s, uint32_t nr, bool json)
{
	double bound = offline_bound(&f->profile, budget);
	struct offline_plan plan;

	if (!json)
		table_head(f, budget, bound);
	for (uint32_t i = 0; i < nr; i++) {
		offline_compute(&f->profile, s[i], NULL, budget, &plan);
		if (json)
			json_row(&f->profile, &plan, bound);
		else
			table_row(&plan, bound);
		offline_release(&plan);
		/* Rows as they come: some strategies take their time. */
		fflush(stdout);
	}
}

/* The next word of a list with commas; NULL at its end. */
static char *word(char **list)
{
	char *w;

	do {
		w = strsep(list, ",");
	} while (w && !*w);
	return w;
}

static uint32_t budgets_of(struct offline_file *f, const char *text,
	uint64_t *out)
{
	char *list = text ? cli_format("%s", text) : NULL, *w;
	uint32_t nr = 0;

	while (list && (w = word(&list)) != NULL) {
		if (nr == MOST)
			cli_usage("compare", "too many budgets");
		out[nr++] = offline_budget("compare", f, w);
	}
	if (nr)
		return nr;
	for (; nr < f->profile.nr_budgets && nr < MOST; nr++)
		out[nr] = f->profile.budgets[nr];
	if (nr)
		return nr;
	out[nr++] = offline_budget("compare", f, "25%");
	out[nr++] = offline_budget("compare", f, "50%");
	out[nr++] = offline_budget("compare", f, "75%");
	out[nr++] = PLAN_NO_LIMIT;
	return nr;
}

static uint32_t strategies_of(const char *text,
	const struct plan_strategy **out)
{
	char *list = text ? cli_format("%s", text) : NULL, *w;
	uint32_t nr = 0;

	while (list && (w = word(&list)) != NULL) {
		if (nr == MOST)
			cli_usage("compare", "too many strategies");
		out[nr++] = offline_strategy("compare", w);
	}
	for (uint32_t i = 0; !text && i < plan_nr_strategies() && i < MOST; i++)
		out[nr++] = plan_strategy(i);
	if (!nr)
		cli_usage("compare", "which strategies?");
	return nr;
}

int cmd_compare(int argc, char **argv)
{
	static const struct option options[] = {
		{ "budget", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ "strategy", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 },
	};
	const char *budget = NULL, *strategy = NULL;
	const struct plan_strategy *s[MOST];
	uint32_t nr_budgets, nr;
	uint64_t budgets[MOST];
	struct offline_file *f;
	bool json = false;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":b:hs:", options, NULL)) != -1) {
		if (c == 'b')
			budget = budget ? cli_format("%s,%s", budget, optarg) :
				optarg;
		else if (c == 's')
			strategy = strategy ? cli_format("%s,%s", strategy,
				optarg) : optarg;
		else if (c == 'j')
			json = true;
		else if (c == 'h')
			return cmd_help("compare");
		else
			cli_usage("compare", c == ':' ?
				"option '%s' needs a value" :
				"option '%s' is unknown", argv[optind - 1]);
	}
	if (optind == argc)
		cli_usage("compare", "which profile?");
	nr = strategies_of(strategy, s);
	for (int first = optind; optind < argc; optind++) {
		f = offline_open_profile(argv[optind]);
		nr_budgets = budgets_of(f, budget, budgets);
		for (uint32_t i = 0; i < nr_budgets; i++) {
			if (!json && (i || optind > first))
				putchar('\n');
			compare(f, budgets[i], s, nr, json);
		}
		offline_close(f);
	}
	return cli_flush(EXIT_OK);
}
