/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the offline commands share: a profile from a file, a budget, a plan with
 * everything that is known about it.  Used by cmd_plan.c, cmd_compare.c,
 * cmd_simulate.c and cmd_show.c; they end the launcher on errors.
 */
#ifndef BALLAST_OFFLINE_H
#define BALLAST_OFFLINE_H

#include "planner/plan_io.h"
#include "planner/timeline.h"

struct offline_plan {
	const struct plan_strategy *strategy;
	struct plan_params params;
	uint64_t budget;
	struct plan_arena *arena;	/* owned; holds the rest */
	enum plan_status status;	/* not PLAN_OK: nothing below is set */
	char message[PLAN_MESSAGE];	/* of a failure */
	struct strategy_result result;
	struct strategy_score score;
	/* PLAN_OK: times is set. */
	enum plan_status timeline_status;
	bool lacks_room;		/* for transfers without blocks */
	struct timeline timeline;
	struct timeline_link link;
	struct timeline_times times;
	double plan_ms;			/* what it took to make it */
};

/* A file of either kind, or standard input for "-". */
struct offline_file {
	const char *path;
	bool is_plan;
	struct plan_arena *arena;
	struct plan_profile profile;
	struct plan_file plan;		/* only with is_plan */
	uint64_t unique;		/* bytes, each tensor once */
	double compute_ms;
};

/* Dies with a message if the file cannot be used. */
struct offline_file *offline_open(const char *path);
/* The same, but a plan is refused. */
struct offline_file *offline_open_profile(const char *path);
void offline_close(struct offline_file *f);

/*
 * "none", bytes, "8G", or a part of the model's bytes, "75%".  Exits 2 pointing
 * to the command's help.
 */
uint64_t offline_budget(const char *command, const struct offline_file *f,
	const char *text);
const struct plan_strategy *offline_strategy(const char *command,
	const char *name);
/* "name=value" into params. */
void offline_param(const char *command, const struct plan_strategy *s,
	struct plan_params *params, const char *text);

/*
 * What it costs a running program to free a slot, release_ms: with verify =
 * always a layer's bytes go back first.  0 for a profile that Ballast has not
 * made.
 */
double offline_write_back(const struct plan_profile *p);
/* params: NULL for the strategy's, with that cost. */
void offline_compute(const struct plan_profile *p,
	const struct plan_strategy *s, const struct plan_params *params,
	uint64_t budget, struct offline_plan *out);
/* A plan from a file: judged anew with the times of p. */
void offline_judge(const struct plan_profile *p, const struct plan_file *file,
	struct offline_plan *out);
void offline_release(struct offline_plan *plan);

/* A proven lower bound on the period under the budget; 0: there is none. */
double offline_bound(const struct plan_profile *p, uint64_t budget);

/* The message of a plan that could not be made or cannot run; or NULL. */
const char *offline_error(const struct offline_plan *plan);

/* "1.50 GiB"; cli_format()ted, so for a few values only. */
const char *offline_size(uint64_t bytes);
/* "none" or a size. */
const char *offline_budget_text(uint64_t budget);
/* "12.3 ms", "45.6 us". */
const char *offline_time(double ms);

/* Bytes of each layer that are streamed for it; room for nr_layers. */
void offline_streamed(const struct plan_profile *p,
	const struct offline_plan *plan, uint64_t *bytes);

/* plan_chart.c: the timeline in `rows` lines at most; 0: one a layer. */
void chart_print(const struct plan_profile *p, const struct offline_plan *plan,
	uint32_t rows);
/* As Chrome trace; NULL when out of memory, the caller frees it. */
char *chart_trace(const struct plan_profile *p,
	const struct offline_plan *plan);
/* show_html.c: one page; the same. */
char *show_html(const struct offline_file *f, const struct offline_plan *plan,
	double bound_ms);

#endif
