/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles, budgets and plans for the offline commands.  See offline.h.
 */
#include "tools/offline.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "planner/optimal.h"
#include "shim/conf.h"
#include "tools/cli.h"

static void warn(void *arg, const char *text)
{
	cli_warn("%s", text);
}

static struct plan_arena *new_arena(void)
{
	struct plan_arena *arena = plan_arena_create();

	if (!arena)
		cli_die(EXIT_FAILED, "out of memory");
	return arena;
}

struct offline_file *offline_open(const char *path)
{
	struct offline_file *f = calloc(1, sizeof(*f));
	struct plan_io io = {
		.file = strcmp(path, "-") ? path : "standard input",
		.warn = warn,
	};
	char *text;
	size_t len;
	int err;

	if (!f)
		cli_die(EXIT_FAILED, "out of memory");
	f->path = path;
	f->arena = new_arena();
	if (plan_io_load(&io, path, &text, &len))
		cli_die(EXIT_FAILED, "%s", io.error);
	f->is_plan = plan_io_kind_of(text, len) == PLAN_IO_IS_PLAN;
	if (f->is_plan) {
		err = plan_io_parse_plan(&io, text, len, NULL, f->arena,
			&f->plan);
		f->profile = f->plan.profile;
	} else {
		err = plan_io_parse_profile(&io, text, len, f->arena,
			&f->profile);
	}
	free(text);
	if (err)
		cli_die(EXIT_FAILED, "%s", io.error);
	if (!*f->profile.name)
		f->profile.name = cli_basename(path);
	f->unique = plan_io_unique_bytes(&f->profile);
	for (uint32_t i = 0; i < f->profile.nr_layers; i++)
		f->compute_ms += f->profile.layers[i].duration_ms;
	return f;
}

struct offline_file *offline_open_profile(const char *path)
{
	struct offline_file *f = offline_open(path);

	if (f->is_plan)
		cli_die(EXIT_FAILED, "%s is a plan; a profile is needed here",
			path);
	return f;
}

void offline_close(struct offline_file *f)
{
	plan_arena_destroy(f->arena);
	free(f);
}

uint64_t offline_budget(const char *command, const struct offline_file *f,
	const char *text)
{
	struct conf_budget b;
	uint64_t bytes;

	if (!strcmp(text, "none"))
		return PLAN_NO_LIMIT;
	if (conf_parse_budget(text, &b) || (!(b.percent > 0) &&
	    (b.bytes == CONF_AUTO || b.bytes > INT64_MAX)))
		cli_usage(command, "'%s' is no budget: give bytes, a size such "
			"as 8G, a part of the model's bytes such as 75%%, or "
			"none", text);
	bytes = b.percent > 0 ? (uint64_t)llround((double)f->unique *
		b.percent / 100) : b.bytes;
	if (!bytes)
		cli_usage(command, "a budget must be above 0");
	return bytes;
}

const struct plan_strategy *offline_strategy(const char *command,
	const char *name)
{
	const struct plan_strategy *s = plan_strategy_find(name);
	char *names = cli_format("%s", "");

	if (s)
		return s;
	for (uint32_t i = 0; i < plan_nr_strategies(); i++)
		names = cli_format("%s %s", names, plan_strategy(i)->name);
	cli_usage(command, "there is no strategy '%s'; there are%s", name,
		names);
}

void offline_param(const char *command, const struct plan_strategy *s,
	struct plan_params *params, const char *text)
{
	const char *equals = strchr(text, '=');
	struct plan_io io = { 0 };

	if (!equals)
		cli_usage(command, "'%s' is not NAME=VALUE", text);
	if (plan_io_set_param(&io, s, params, cli_format("%.*s",
			(int)(equals - text), text), equals + 1))
		cli_usage(command, "%s", io.error);
}

/* ---- plans ---- */

/*
 * The published peak of a plan without blocks leaves out the memory that its
 * transfers need, so such a plan may count as valid and have no room to run in.
 */
static bool lacks_room(const struct offline_plan *plan)
{
	const struct strategy_result *r = &plan->result;
	uint64_t streamed = plan_offloaded_bytes(r);

	return !r->pool && !r->block_data && streamed &&
		plan->budget != PLAN_NO_LIMIT &&
		streamed > plan->budget - (plan->score.peak_memory_bytes <
		plan->budget ? plan->score.peak_memory_bytes : plan->budget);
}

static void judge(const struct plan_profile *p, struct offline_plan *out)
{
	struct plan_input in = plan_io_input(p, out->budget);
	struct timeline_options opt = {
		.release_ms = out->params.release_ms,
		.wrap = out->params.wrap,
	};
	struct memory_transfer_interpolator *ip = NULL;
	enum plan_status status;

	status = plan_interpolator_of(&in, out->arena, &ip);
	if (!status)
		status = evaluate_strategy_result(&out->result, &in,
			out->strategy->name, ip, &out->score);
	out->status = status;
	if (status)
		return;
	out->lacks_room = lacks_room(out);
	if (out->lacks_room) {
		out->timeline_status = PLAN_INFEASIBLE;
		return;
	}
	status = timeline_link_of(&in, out->arena, &opt.link);
	/* Nothing is copied: no table is needed. */
	if (status == PLAN_NEEDS_TABLE && !plan_offloaded_bytes(&out->result))
		status = PLAN_OK;
	out->link = opt.link;
	if (!status)
		status = timeline_of_result(&out->result, &in, &opt,
			out->arena, &out->timeline);
	if (!status)
		status = plan_timeline(&out->timeline, true, out->arena,
			&out->times);
	out->timeline_status = status;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double offline_write_back(const struct plan_profile *p)
{
	const struct transfer_time *most = NULL;

	if (p->program.nr_parts == 0 || p->nr_layers == 0)
		return 0;
	for (uint32_t i = 0; i < p->memory_stats.nr; i++)
		if (!most || p->memory_stats.points[i].bytes > most->bytes)
			most = &p->memory_stats.points[i];
	if (!most || !most->bytes)
		return 0;
	return (double)plan_io_unique_bytes(p) / p->nr_layers * most->ms /
		(double)most->bytes;
}

void offline_compute(const struct plan_profile *p,
	const struct plan_strategy *s, const struct plan_params *params,
	uint64_t budget, struct offline_plan *out)
{
	struct plan_input in = plan_io_input(p, budget);
	double begin;

	memset(out, 0, sizeof(*out));
	out->strategy = s;
	out->params = params ? *params : s->defaults;
	if (!params)
		out->params.release_ms = offline_write_back(p);
	out->budget = budget;
	out->arena = new_arena();
	out->timeline_status = PLAN_BAD_PLAN;
	begin = now_ms();
	out->status = plan_compute(s, &in, &out->params, out->arena,
		&out->result);
	out->plan_ms = now_ms() - begin;
	if (!out->status)
		judge(p, out);
	else if (out->result.message[0])
		memcpy(out->message, out->result.message, sizeof(out->message));
	else
		snprintf(out->message, sizeof(out->message), "%s",
			plan_status_message(out->status));
}

void offline_judge(const struct plan_profile *p, const struct plan_file *file,
	struct offline_plan *out)
{
	memset(out, 0, sizeof(*out));
	out->strategy = plan_strategy_find(file->strategy);
	out->params = file->params;
	out->budget = file->budget;
	out->arena = new_arena();
	out->result = file->result;
	out->timeline_status = PLAN_BAD_PLAN;
	judge(p, out);
}

void offline_release(struct offline_plan *plan)
{
	plan_arena_destroy(plan->arena);
	plan->arena = NULL;
}

const char *offline_error(const struct offline_plan *plan)
{
	if (plan->status)
		return plan->message[0] ? plan->message :
			plan_status_message(plan->status);
	if (plan->lacks_room)
		return "its transfers have no blocks, and the budget has no "
			"room for each; give -p n_blocks=2 or more";
	if (plan->timeline_status)
		return plan_status_message(plan->timeline_status);
	return NULL;
}

double offline_bound(const struct plan_profile *p, uint64_t budget)
{
	struct plan_input in = plan_io_input(p, budget);
	struct plan_arena *arena = new_arena();
	struct bound_model m;
	double ms = 0, pool;

	if (budget == PLAN_NO_LIMIT || budget >= plan_io_unique_bytes(p)) {
		for (uint32_t i = 0; i < p->nr_layers; i++)
			ms += p->layers[i].duration_ms;
	} else if (!optimal_bound_model(&in, arena, &m)) {
		if (bound_strong(&m, arena, &ms, NULL, &pool))
			ms = bound_simple(&m);
	}
	plan_arena_destroy(arena);
	return isfinite(ms) ? ms : 0;
}

/* ---- words ---- */

const char *offline_size(uint64_t bytes)
{
	char buf[32];

	return cli_format("%s", conf_size_text(bytes, buf, sizeof(buf)));
}

const char *offline_budget_text(uint64_t budget)
{
	return budget == PLAN_NO_LIMIT ? "none" : offline_size(budget);
}

const char *offline_time(double ms)
{
	if (ms != 0 && fabs(ms) < 1)
		return cli_format("%.1f us", ms * 1e3);
	return cli_format(fabs(ms) < 100 ? "%.3f ms" : "%.1f ms", ms);
}

void offline_streamed(const struct plan_profile *p,
	const struct offline_plan *plan, uint64_t *bytes)
{
	memset(bytes, 0, p->nr_layers * sizeof(*bytes));
	for (uint32_t j = 0; j < plan->timeline.nr_copies; j++)
		bytes[plan->timeline.copies[j].layer] +=
			plan->timeline.copies[j].bytes;
}
