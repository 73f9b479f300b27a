/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast show`: what a profile or plan says, as tables or as one page.  Called
 * by ballast.c.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/conf.h"
#include "tools/cli.h"
#include "tools/offline.h"

/* ---- a profile ---- */

static uint64_t layer_bytes(const struct layer_statistics *l)
{
	uint64_t bytes = 0;

	for (uint32_t j = 0; j < l->nr; j++)
		bytes += l->tensors[j].size_bytes;
	return bytes;
}

static double layer_load_ms(const struct layer_statistics *l)
{
	double ms = 0;

	for (uint32_t j = 0; j < l->nr; j++)
		ms += l->tensors[j].load_time_ms;
	return ms;
}

static void show_profile(const struct offline_file *f)
{
	const struct plan_profile *p = &f->profile;
	uint64_t largest = 0, all = 0;
	uint32_t nr = 0;
	char size[32];

	for (uint32_t i = 0; i < p->nr_layers; i++) {
		uint64_t bytes = layer_bytes(&p->layers[i]);

		nr += p->layers[i].nr;
		all += bytes;
		if (bytes > largest)
			largest = bytes;
	}
	printf("%s%s%s\n", p->name, *p->note ? ": " : "", p->note);
	if (*p->device || p->device_bytes)
		printf("device       %s%s%s\n", p->device, p->device_bytes ?
			", " : "", p->device_bytes ?
			offline_size(p->device_bytes) : "");
	printf("layers       %u, %u tensors\n", p->nr_layers, nr);
	printf("weights      %s", offline_size(f->unique));
	if (all > f->unique)
		printf(", %s counting each use of shared ones",
			offline_size(all));
	printf("; largest layer %s\n", offline_size(largest));
	printf("computing    %s an iteration\n", offline_time(f->compute_ms));
	if (p->memory_stats.nr)
		printf("link         %u copies measured\n", p->memory_stats.nr);
	printf("\n%-32s %10s %8s %12s %10s\n", "layer", "compute ms",
		"tensors", "bytes", "load ms");
	for (uint32_t i = 0; i < p->nr_layers; i++)
		printf("%-32.60s %10.3f %8u %12s %10.3f\n", p->layers[i].label,
			p->layers[i].duration_ms, p->layers[i].nr,
			conf_size_text(layer_bytes(&p->layers[i]), size,
			sizeof(size)), layer_load_ms(&p->layers[i]));
}

/* ---- a plan ---- */

static void show_memory(const struct offline_plan *plan)
{
	const struct block_strategy_data *b = plan->result.block_data;
	const struct plan_pool *pool = plan->result.pool;
	char buf[64];

	for (uint32_t k = 0; k < PLAN_NR_PARAMS; k++)
		if (plan->strategy->params >> k & 1)
			printf("  %-18s %s\n", plan_param(k)->name,
				plan_io_param_text(k, &plan->params, buf,
				sizeof(buf)));
	if (pool && pool->nr_chunks)
		printf("pool       a ring of %u chunks of %s; %u copies in %u "
			"pieces, %llu of %llu positions unused\n",
			pool->nr_chunks, offline_size(pool->chunk_bytes),
			pool->nr_places, pool->nr_pieces,
			(unsigned long long)pool->pad_positions,
			(unsigned long long)pool->positions);
	for (uint32_t i = 0; b && i < b->nr_blocks; i++)
		printf("block %-4u %s, %u transfers\n", i,
			offline_size(b->block_sizes[i]),
			b->allocation_ordered[i].nr);
	if (!pool && !b && plan->result.strategy_map.nr)
		printf("blocks     none: each transfer has memory of its own\n");
}

static void show_layers(const struct plan_profile *p,
	const struct offline_plan *plan)
{
	const struct timeline *t = &plan->timeline;
	uint64_t *streamed = calloc(p->nr_layers, sizeof(*streamed));
	int64_t *slot = calloc(p->nr_layers, sizeof(*slot));
	char a[32], b[32];

	if (!streamed || !slot)
		cli_die(EXIT_FAILED, "out of memory");
	offline_streamed(p, plan, streamed);
	for (uint32_t i = 0; i < p->nr_layers; i++)
		slot[i] = -1;
	for (uint32_t j = 0; j < t->nr_copies; j++)
		if (t->copies[j].slot != TIMELINE_ANY)
			slot[t->copies[j].layer] = (t->copies[j].slot +
				(int64_t)t->nr_layers) % t->nr_layers;
	printf("\n%-28s %10s %12s %12s  %s\n", "layer", "compute ms",
		"on the GPU", "streamed", "copied from the start of");
	for (uint32_t i = 0; i < p->nr_layers; i++) {
		uint64_t all = layer_bytes(&p->layers[i]);

		printf("%-28.60s %10.3f %12s %12s  %.60s\n", p->layers[i].label,
			p->layers[i].duration_ms, conf_size_text(
			all > streamed[i] ? all - streamed[i] : 0, a,
			sizeof(a)), streamed[i] ? conf_size_text(streamed[i], b,
			sizeof(b)) : "-", slot[i] >= 0 ?
			p->layers[slot[i]].label : "");
	}
	free(streamed);
	free(slot);
}

static void show_plan(const struct offline_file *f,
	const struct offline_plan *plan, double bound)
{
	const struct timeline_times *t = &plan->times;
	const char *by = plan->result.selected_strategy_name;

	printf("%s: a plan by %s%s%s%s\n", f->profile.name,
		plan->strategy->name, by ? " (" : "", by ? by : "",
		by ? ")" : "");
	printf("budget     %s\n", offline_budget_text(plan->budget));
	printf("peak       %s of %s%s\n",
		offline_size(plan->score.peak_memory_bytes),
		offline_size(f->unique), plan->score.is_valid ? "" :
		": not valid");
	printf("streamed   %s an iteration\n",
		offline_size(plan_offloaded_bytes(&plan->result)));
	if (plan->timeline_status)
		printf("period     cannot run: %s\n", offline_error(plan));
	else
		printf("period     %s: computing %s, waiting %s\n",
			offline_time(t->period_ms), offline_time(t->compute_ms),
			offline_time(t->stall_ms));
	if (bound > 0)
		printf("bound      %s%s\n", offline_time(bound),
			plan->timeline_status ? "" : cli_format(
			", gap %.2f %%", 100 * (t->period_ms / bound - 1)));
	show_memory(plan);
	if (!plan->timeline_status)
		show_layers(&f->profile, plan);
}

/* ---- the page ---- */

static int write_page(const struct offline_file *f,
	const struct offline_plan *plan, double bound, const char *path)
{
	char *text = show_html(f, plan, bound);
	struct plan_io io = { 0 };

	if (!text)
		cli_die(EXIT_FAILED, "out of memory");
	if (!strcmp(path, "-"))
		fputs(text, stdout);
	else if (plan_io_save(&io, path, text))
		cli_die(EXIT_FAILED, "%s", io.error);
	free(text);
	return EXIT_OK;
}

/* The plan of a file, or the product's own for a profile. */
static void get_plan(struct offline_file *f, const char *budget,
	struct offline_plan *plan)
{
	if (f->is_plan) {
		if (budget)
			cli_usage("show", "a plan has its budget; -b is for "
				"profiles");
		offline_judge(&f->profile, &f->plan, plan);
	} else {
		offline_compute(&f->profile, plan_strategy_find("optimal"),
			NULL, offline_budget("show", f, budget ? budget :
			f->unique ? "50%" : "1"), plan);
	}
	if (plan->status)
		cli_die(EXIT_FAILED, "%s: %s%s", f->path, offline_error(plan),
			budget || f->is_plan ? "" :
			" (half of the weights; give -b SIZE)");
}

int cmd_show(int argc, char **argv)
{
	static const struct option options[] = {
		{ "budget", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ "html", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	const char *html = NULL, *budget = NULL;
	struct offline_plan plan = { 0 };
	struct offline_file *f;
	double bound = 0;
	int c;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, ":b:h", options, NULL)) != -1) {
		if (c == 'm')
			html = optarg;
		else if (c == 'b')
			budget = optarg;
		else if (c == 'h')
			return cmd_help("show");
		else
			cli_usage("show", c == ':' ?
				"option '%s' needs a value" :
				"option '%s' is unknown", argv[optind - 1]);
	}
	if (optind + 1 != argc)
		cli_usage("show", optind == argc ? "which file?" :
			"one file at a time");
	f = offline_open(argv[optind]);
	if (html || f->is_plan || budget) {
		get_plan(f, budget, &plan);
		bound = offline_bound(&f->profile, plan.budget);
	}
	if (html)
		write_page(f, &plan, bound, html);
	else if (plan.strategy)
		show_plan(f, &plan, bound);
	else
		show_profile(f);
	offline_release(&plan);
	offline_close(f);
	return cli_flush(EXIT_OK);
}
