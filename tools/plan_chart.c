/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan's timeline for people (a chart in text) and for trace viewers.  Called
 * by cmd_simulate.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_text.h"
#include "tools/cli.h"
#include "tools/offline.h"

#define WIDTH 56	/* characters of a chart's bar */
#define LAPS 3		/* iterations in a trace */

/* ---- text ---- */

/* Marks ms from start on in a bar that is one period wide, and wraps. */
static void mark(char *bar, double start, double ms, double period, char c)
{
	long from, to;

	if (!(period > 0) || !(ms > 0))
		return;
	start -= floor(start / period) * period;
	from = (long)(start / period * WIDTH);
	to = (long)ceil((start + ms) / period * WIDTH);
	if (to == from)
		to++;
	for (long i = from; i < to && i < from + WIDTH; i++) {
		char *at = &bar[i % WIDTH];

		*at = *at == ' ' || *at == c ? c : 'X';
	}
}

struct line {
	double compute_ms, wait_ms, copy_ms;
	uint64_t bytes;
	char bar[WIDTH + 1];
};

static void add_layer(struct line *l, const struct offline_plan *plan,
	uint32_t i)
{
	const struct timeline_times *t = &plan->times;
	double start = t->layer_start_ms[i], ms = plan->timeline.duration_ms[i];
	double before = i ? t->layer_start_ms[i - 1] +
		plan->timeline.duration_ms[i - 1] :
		t->layer_start_ms[plan->timeline.nr_layers - 1] +
		plan->timeline.duration_ms[plan->timeline.nr_layers - 1] -
		t->period_ms;

	l->compute_ms += ms;
	if (start - before > 1e-9)
		l->wait_ms += start - before;
	mark(l->bar, start, ms, t->period_ms, '#');
}

static void print_line(const char *label, const struct line *l)
{
	char name[24];

	snprintf(name, sizeof(name), "%.23s", label);
	printf("%-23s %9.3f %9.3f %9.3f %10s |%s|\n", name, l->compute_ms,
		l->wait_ms, l->copy_ms, l->bytes ? offline_size(l->bytes) : "-",
		l->bar);
}

static void print_sums(const struct offline_plan *plan)
{
	const struct timeline_times *t = &plan->times;

	printf("period %s: computing %s, waiting %s; the link is busy for %s "
		"(%.0f %%)\n", offline_time(t->period_ms),
		offline_time(t->compute_ms), offline_time(t->stall_ms),
		offline_time(t->link_busy_ms), t->period_ms > 0 ?
		100 * t->link_busy_ms / t->period_ms : 0);
	printf("first iteration %s, from an empty pool; %u copies\n\n",
		offline_time(t->cold_ms), plan->timeline.nr_copies);
}

void chart_print(const struct plan_profile *p, const struct offline_plan *plan,
	uint32_t rows)
{
	const struct timeline *t = &plan->timeline;
	uint32_t n = t->nr_layers, per, nr;
	struct line *lines;

	if (!rows || rows > n)
		rows = n;
	per = (n + rows - 1) / rows;
	nr = (n + per - 1) / per;
	lines = calloc(nr, sizeof(*lines));
	if (!lines)
		cli_die(EXIT_FAILED, "out of memory");
	for (uint32_t k = 0; k < nr; k++)
		memset(lines[k].bar, ' ', WIDTH);
	for (uint32_t j = 0; j < t->nr_copies; j++) {
		const struct timeline_copy *c = &t->copies[j];
		struct line *l = &lines[c->layer / per];
		/* Seen from the iteration that uses it. */
		double start = plan->times.copy_start_ms[j];

		l->bytes += c->bytes;
		l->copy_ms += c->ms;
		mark(l->bar, start, c->ms, plan->times.period_ms, '=');
	}
	for (uint32_t i = 0; i < n; i++)
		add_layer(&lines[i / per], plan, i);
	print_sums(plan);
	printf("%-23s %9s %9s %9s %10s  one period: # computes, = is copied, "
		"X both\n", "layer", "compute", "wait", "copy", "streamed");
	for (uint32_t k = 0; k < nr; k++) {
		uint32_t last = k * per + per - 1 < n ? k * per + per - 1 :
			n - 1;

		print_line(last == k * per ? p->layers[k * per].label :
			cli_format("%s..%s", p->layers[k * per].label,
			p->layers[last].label), &lines[k]);
	}
	free(lines);
}

/* ---- trace ---- */

static void put_event(struct plan_text *t, const char *name, const char *kind,
	int lane, double start_ms, double ms, uint64_t bytes)
{
	plan_text_put(t, ",\n{\"name\": ");
	plan_text_string(t, name);
	plan_text_put(t, ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": 1, "
		"\"tid\": %d, \"ts\": ", kind, lane);
	plan_text_real(t, start_ms * 1e3);
	plan_text_put(t, ", \"dur\": ");
	plan_text_real(t, ms * 1e3);
	if (bytes)
		plan_text_put(t, ", \"args\": {\"bytes\": %llu}",
			(unsigned long long)bytes);
	plan_text_put(t, "}");
}

static void put_names(struct plan_text *t, const char *process)
{
	static const char *const lanes[] = { "compute", "link" };

	plan_text_put(t, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n"
		"{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 1, "
		"\"args\": {\"name\": ");
	plan_text_string(t, process);
	plan_text_put(t, "}}");
	for (int i = 0; i < 2; i++)
		plan_text_put(t, ",\n{\"name\": \"thread_name\", \"ph\": \"M\","
			" \"pid\": 1, \"tid\": %d, \"args\": {\"name\": "
			"\"%s\"}}", i + 1, lanes[i]);
}

char *chart_trace(const struct plan_profile *p,
	const struct offline_plan *plan)
{
	const struct timeline *t = &plan->timeline;
	const struct timeline_times *x = &plan->times;
	struct plan_text out = { 0 };
	double zero = 0;

	/* Copies of the first iteration begin before it. */
	for (uint32_t j = 0; j < t->nr_copies; j++)
		if (x->copy_start_ms[j] < zero)
			zero = x->copy_start_ms[j];
	put_names(&out, p->name);
	for (int lap = 0; lap < LAPS; lap++) {
		double at = lap * x->period_ms - zero;

		for (uint32_t i = 0; i < t->nr_layers; i++)
			put_event(&out, p->layers[i].label, "compute", 1,
				at + x->layer_start_ms[i], t->duration_ms[i],
				0);
		for (uint32_t j = 0; j < t->nr_copies; j++)
			put_event(&out, p->layers[t->copies[j].layer].label,
				"copy", 2, at + x->copy_start_ms[j],
				t->copies[j].ms, t->copies[j].bytes);
	}
	plan_text_put(&out, "\n]}\n");
	return plan_text_take(&out);
}
