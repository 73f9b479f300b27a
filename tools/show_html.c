/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan as one self-contained page: where each layer's bytes are, one iteration
 * of the timeline, and what other budgets would give.  SVG drawn here; nothing
 * is loaded from elsewhere, and there is no script.  Called by cmd_show.c.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_text.h"
#include "tools/cli.h"
#include "tools/offline.h"

#define LEFT 76.0
#define WIDE 980.0	/* of a plot */
#define RIGHT 20.0
#define POINTS 24	/* of the trade-off curve */
#define MOST_BARS 490	/* layers side by side; more are put together */

static const char style[] =
":root{--fg:#1c2430;--dim:#667085;--line:#d8dde6;--bg:#fff;--card:#f7f8fa;"
"--gpu:#2f6f9f;--stream:#e08a2c;--wait:#c8453b;--bound:#8a94a6;--pool:#6a9a4f}\n"
"@media(prefers-color-scheme:dark){:root{--fg:#e6e9ef;--dim:#98a2b3;"
"--line:#39414f;--bg:#14181f;--card:#1d232c;--gpu:#5fa3d6;--stream:#f0a552;"
"--wait:#e8746a;--bound:#7d8798;--pool:#8fc06f}}\n"
"body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);"
"background:var(--bg);max-width:1100px;margin:2em auto;padding:0 1em}\n"
"h1{font-size:1.5em;margin:0}h2{font-size:1.1em;margin:2em 0 .3em}\n"
"p{margin:.2em 0 .6em;color:var(--dim)}\n"
".cards{display:grid;gap:.6em;margin:1.2em 0;"
"grid-template-columns:repeat(auto-fit,minmax(8.6em,1fr))}\n"
".card{background:var(--card);border-radius:8px;padding:.6em .8em}\n"
".card b{display:block;font-size:1.2em;font-weight:600}"
".card span{color:var(--dim);font-size:.85em;line-height:1.2;"
"display:block}\n"
"svg{width:100%;height:auto;display:block}"
"text{fill:var(--dim);font-size:12px;font-family:system-ui,sans-serif}\n"
".grid{stroke:var(--line);stroke-width:1}.gpu{fill:var(--gpu)}"
".stream{fill:var(--stream)}.wait{fill:var(--wait)}\n"
".period{fill:none;stroke:var(--stream);stroke-width:2}"
".bound{fill:var(--line);fill-opacity:.55;stroke:none}"
".pool{fill:var(--pool)}"
".here{fill:var(--wait);stroke:var(--bg);stroke-width:2}\n"
".legend{display:flex;gap:1.4em;flex-wrap:wrap;"
"font-size:.9em;color:var(--dim)}\n"
".legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;"
"margin-right:.4em}\n";

/* ---- helpers ---- */

static void put_text(struct plan_text *t, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			plan_text_put(t, "&lt;");
		else if (*s == '>')
			plan_text_put(t, "&gt;");
		else if (*s == '&')
			plan_text_put(t, "&amp;");
		else if (*s == '"')
			plan_text_put(t, "&quot;");
		else
			plan_text_put(t, "%c", *s);
	}
}

static void card(struct plan_text *t, const char *value, const char *name)
{
	plan_text_put(t, "<div class=\"card\"><b>%s</b><span>%s</span></div>\n",
		value, name);
}

static void legend(struct plan_text *t, const char *color, const char *name)
{
	plan_text_put(t, "<span><i style=\"background:var(--%s)\"></i>%s"
		"</span>\n", color, name);
}

/* A round step for about four lines up to `most`. */
static double step_of(double most)
{
	double p = pow(10, floor(log10(most / 4))), m = most / 4 / p;

	return p * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
}

/* The same for bytes: powers of two. */
static double byte_step(double most)
{
	return exp2(ceil(log2(most / 5)));
}

static void open_svg(struct plan_text *t, double height, const char *what)
{
	plan_text_put(t, "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
		"aria-label=\"%s\">\n", LEFT + WIDE + RIGHT, height, what);
}

static void grid_y(struct plan_text *t, double y, const char *label)
{
	plan_text_put(t, "<line class=\"grid\" x1=\"%.0f\" x2=\"%.0f\" "
		"y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.0f\" y=\"%.1f\" "
		"text-anchor=\"end\">%s</text>\n", LEFT, LEFT + WIDE, y, y,
		LEFT - 8, y + 4, label);
}

static void label_x(struct plan_text *t, double x, double y, const char *label,
	const char *anchor)
{
	plan_text_put(t, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x,
		y, anchor);
	put_text(t, label);
	plan_text_put(t, "</text>\n");
}

static void rect(struct plan_text *t, const char *class, double x, double y,
	double w, double h, const char *title)
{
	plan_text_put(t, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" "
		"width=\"%.2f\" height=\"%.2f\">", class, x, y, fmax(w, 0.3),
		h);
	if (title) {
		plan_text_put(t, "<title>");
		put_text(t, title);
		plan_text_put(t, "</title>");
	}
	plan_text_put(t, "</rect>\n");
}

/* ---- the memory map ---- */

struct bar {
	uint64_t all, streamed;
	uint32_t first, last;
};

static uint32_t make_bars(const struct offline_file *f,
	const struct offline_plan *plan, struct bar *bars, uint64_t *most)
{
	const struct plan_profile *p = &f->profile;
	uint32_t per = (p->nr_layers + MOST_BARS - 1) / MOST_BARS, nr;
	uint64_t *streamed = calloc(p->nr_layers, sizeof(*streamed));

	if (!streamed)
		return 0;
	offline_streamed(p, plan, streamed);
	nr = (p->nr_layers + per - 1) / per;
	*most = 1;
	for (uint32_t i = 0; i < p->nr_layers; i++) {
		struct bar *b = &bars[i / per];

		if (i % per == 0)
			*b = (struct bar){ .first = i };
		b->last = i;
		for (uint32_t j = 0; j < p->layers[i].nr; j++)
			b->all += p->layers[i].tensors[j].size_bytes;
		b->streamed += streamed[i];
		if (b->all > *most)
			*most = b->all;
	}
	free(streamed);
	return nr;
}

static char *bar_title(const struct plan_profile *p, const struct bar *b)
{
	return cli_format("%s%s%s: %s on the GPU, %s streamed",
		p->layers[b->first].label, b->last > b->first ? " to " : "",
		b->last > b->first ? p->layers[b->last].label : "",
		offline_size(b->all > b->streamed ? b->all - b->streamed : 0),
		offline_size(b->streamed));
}

/* GPU memory for transfers. */
static uint64_t pool_bytes(const struct strategy_result *r)
{
	uint64_t bytes = 0;

	if (r->pool)
		return r->pool->chunk_bytes * r->pool->nr_chunks;
	if (!r->block_data)
		return plan_offloaded_bytes(r);
	for (uint32_t b = 0; b < r->block_data->nr_blocks; b++)
		bytes += r->block_data->block_sizes[b];
	return bytes;
}

/* What the budget is used for, in one bar as long as all weights. */
static void gpu_bar(struct plan_text *t, const struct offline_file *f,
	const struct offline_plan *plan)
{
	uint64_t pool = pool_bytes(&plan->result);
	uint64_t peak = plan->score.peak_memory_bytes, stay;
	double most = fmax((double)f->unique, (double)peak), x;

	/* Without blocks the published peak leaves transfers out. */
	stay = peak > pool && (plan->result.pool || plan->result.block_data) ?
		peak - pool : peak;
	if (!(most > 0))
		return;
	open_svg(t, 48, "use of GPU memory");
	label_x(t, LEFT - 8, 21, "GPU", "end");
	x = WIDE * (double)stay / most;
	rect(t, "gpu", LEFT, 6, x, 22, cli_format("%s stay",
		offline_size(stay)));
	if (peak > stay)
		rect(t, "pool", LEFT + x, 6, WIDE * (double)pool / most, 22,
			cli_format("pool of %s", offline_size(pool)));
	if (plan->budget != PLAN_NO_LIMIT && (double)plan->budget <= most)
		plan_text_put(t, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"2\" "
			"y2=\"32\" stroke=\"var(--wait)\" "
			"stroke-width=\"2\"/>\n", LEFT + WIDE *
			(double)plan->budget / most, LEFT + WIDE *
			(double)plan->budget / most);
	label_x(t, LEFT, 42, cli_format("%s stay, pool %s, of %s",
		offline_size(stay), offline_size(peak - stay),
		offline_size(f->unique)), "start");
	plan_text_put(t, "</svg>\n");
}

static void memory_map(struct plan_text *t, const struct offline_file *f,
	const struct offline_plan *plan)
{
	struct bar *bars = calloc(MOST_BARS, sizeof(*bars));
	const double top = 12, high = 200;
	uint64_t most = 1;
	uint32_t nr;
	double step, wide;

	nr = bars ? make_bars(f, plan, bars, &most) : 0;
	if (!nr) {
		free(bars);
		t->failed = true;
		return;
	}
	plan_text_put(t, "<h2>Memory map</h2><p>Each layer's weights, in the "
		"order of computing.  What is streamed passes through the "
		"pool.</p><div class=\"legend\">\n");
	legend(t, "gpu", "stays on the GPU");
	legend(t, "stream", "streamed from host memory");
	legend(t, "pool", "pool");
	legend(t, "wait", "budget");
	plan_text_put(t, "</div>\n");
	gpu_bar(t, f, plan);
	open_svg(t, top + high + 28, "memory map");
	step = byte_step((double)most);
	for (double y = 0; y <= (double)most; y += step)
		grid_y(t, top + high - high * y / (double)most,
			y > 0 ? offline_size((uint64_t)y) : "0");
	wide = WIDE / nr;
	for (uint32_t k = 0; k < nr; k++) {
		const struct bar *b = &bars[k];
		double all = high * (double)b->all / (double)most;
		double s = high * (double)b->streamed / (double)most;
		double x = LEFT + wide * k, w = wide > 4 ? wide - 1.5 :
			wide * 0.9;
		char *title = bar_title(&f->profile, b);

		if (all > s)
			rect(t, "gpu", x, top + high - (all - s), w, all - s,
				title);
		if (s > 0)
			rect(t, "stream", x, top + high - all, w, s, title);
	}
	label_x(t, LEFT, top + high + 18, f->profile.layers[0].label, "start");
	label_x(t, LEFT + WIDE, top + high + 18,
		f->profile.layers[f->profile.nr_layers - 1].label, "end");
	plan_text_put(t, "</svg>\n");
	free(bars);
}

/* ---- the timeline ---- */

/* One lane's event, cut where the iteration ends. */
static void lane(struct plan_text *t, const char *class, double start,
	double ms, double period, double y, const char *title)
{
	double at = start - floor(start / period) * period;
	double here = fmin(ms, period - at), scale = WIDE / period;

	rect(t, class, LEFT + at * scale, y, here * scale - 0.4, 34, title);
	if (ms - here > period * 1e-9)
		rect(t, class, LEFT, y, (ms - here) * scale, 34, title);
}

static void lanes(struct plan_text *t, const struct offline_file *f,
	const struct offline_plan *plan)
{
	const struct timeline_times *x = &plan->times;
	const struct timeline *l = &plan->timeline;
	uint32_t n = l->nr_layers;

	for (uint32_t i = 0; i < n; i++) {
		double start = x->layer_start_ms[i];
		double end = start + l->duration_ms[i];
		double next = i + 1 < n ? x->layer_start_ms[i + 1] :
			x->layer_start_ms[0] + x->period_ms;

		lane(t, "gpu", start, l->duration_ms[i], x->period_ms, 12,
			cli_format("%s computes for %s", f->profile.layers[i].
			label, offline_time(l->duration_ms[i])));
		if (next - end > x->period_ms * 1e-6)
			lane(t, "wait", end, next - end, x->period_ms, 12,
				cli_format("%s waits for %s", f->profile.layers[
				(i + 1) % n].label, offline_time(next - end)));
	}
	for (uint32_t j = 0; j < l->nr_copies; j++)
		lane(t, "stream", x->copy_start_ms[j], l->copies[j].ms,
			x->period_ms, 58, cli_format("%s for %s, %s",
			offline_size(l->copies[j].bytes), f->profile.layers[
			l->copies[j].layer].label,
			offline_time(l->copies[j].ms)));
}

static void timeline(struct plan_text *t, const struct offline_file *f,
	const struct offline_plan *plan)
{
	double period = plan->times.period_ms, step;

	plan_text_put(t, "<h2>Timeline</h2><p>One iteration of the steady "
		"state.  Copies run ahead of the layers that need them, also "
		"across the iteration's end.</p><div class=\"legend\">\n");
	legend(t, "gpu", "computing");
	legend(t, "wait", "waiting for a copy");
	legend(t, "stream", "copying");
	plan_text_put(t, "</div>\n");
	if (!(period > 0)) {
		plan_text_put(t, "<p>The layers take no time.</p>\n");
		return;
	}
	open_svg(t, 130, "timeline");
	label_x(t, LEFT - 8, 33, "compute", "end");
	label_x(t, LEFT - 8, 79, "link", "end");
	lanes(t, f, plan);
	step = step_of(period);
	for (double at = 0; at <= period * 1.0001; at += step) {
		double x = LEFT + WIDE * at / period;

		plan_text_put(t, "<line class=\"grid\" x1=\"%.1f\" "
			"x2=\"%.1f\" y1=\"96\" y2=\"102\"/>", x, x);
		label_x(t, x, 118, cli_format("%g ms", at), at > period * 0.97 ?
			"end" : "middle");
	}
	plan_text_put(t, "</svg>\n");
}

/* ---- other budgets ---- */

struct point {
	uint64_t budget;
	double period, bound;	/* 0: no plan */
};

/* The largest layer: no plan does with less. */
static uint64_t smallest(const struct offline_file *f)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < f->profile.nr_layers; i++) {
		const struct layer_statistics *l = &f->profile.layers[i];
		uint64_t bytes = 0;

		for (uint32_t j = 0; j < l->nr; j++)
			bytes += l->tensors[j].size_bytes;
		most = bytes > most ? bytes : most;
	}
	return most;
}

/* The product's own strategy under budgets up to all of the weights. */
static uint32_t trade_off(const struct offline_file *f, struct point *p)
{
	const struct plan_strategy *s = plan_strategy_find("optimal");
	uint64_t least = smallest(f), budget;
	struct offline_plan plan;
	uint32_t nr = 0;

	for (uint32_t k = 0; k <= POINTS; k++) {
		budget = k == 0 ? least : k == POINTS ? f->unique :
			f->unique / POINTS * k;
		if (!budget || (k > 0 && budget <= least))
			continue;
		offline_compute(&f->profile, s, NULL, budget, &plan);
		if (!plan.status && !plan.timeline_status)
			p[nr++] = (struct point){ budget, plan.times.period_ms,
				offline_bound(&f->profile, budget) };
		offline_release(&plan);
	}
	return nr;
}

static void curve(struct plan_text *t, const char *class, const struct point *p,
	uint32_t nr, bool bound, double most, double unique, double bottom,
	double high)
{
	plan_text_put(t, "<polyline class=\"%s\" points=\"", class);
	for (uint32_t i = 0; i < nr; i++)
		plan_text_put(t, "%s%.1f,%.1f", i ? " " : "", LEFT + WIDE *
			(double)p[i].budget / unique, bottom - high *
			(bound ? p[i].bound : p[i].period) / most);
	/* No plan is in the area below the bound. */
	if (bound && nr)
		plan_text_put(t, " %.1f,%.1f %.1f,%.1f", LEFT + WIDE *
			(double)p[nr - 1].budget / unique, bottom, LEFT + WIDE *
			(double)p[0].budget / unique, bottom);
	plan_text_put(t, "\"/>\n");
}

static void curve_axes(struct plan_text *t, double most, double unique,
	double bottom, double high)
{
	double step = step_of(most);

	for (double y = 0; y <= most; y += step)
		grid_y(t, bottom - high * y / most, cli_format("%g ms", y));
	step = byte_step(unique);
	for (double x = step; x <= unique; x += step)
		if (x < unique * 0.95)
			label_x(t, LEFT + WIDE * x / unique, bottom + 18,
				offline_size((uint64_t)x), "middle");
	label_x(t, LEFT + WIDE, bottom + 18, offline_size((uint64_t)unique),
		"end");
}

static void trade_off_plot(struct plan_text *t, const struct offline_file *f,
	const struct offline_plan *plan)
{
	const double bottom = 232, high = 220, unique = (double)f->unique;
	struct point p[POINTS + 1];
	uint32_t nr = f->unique ? trade_off(f, p) : 0;
	double most = plan->times.period_ms, budget;

	plan_text_put(t, "<h2>Budget against period</h2><p>The strategy "
		"optimal under other budgets, and what no plan can beat.</p>"
		"<div class=\"legend\">\n");
	legend(t, "stream", "period");
	legend(t, "line", "faster than the proven bound: impossible");
	legend(t, "wait", "this plan");
	plan_text_put(t, "</div>\n");
	for (uint32_t i = 0; i < nr; i++)
		most = fmax(most, p[i].period);
	if (!nr || !(most > 0)) {
		plan_text_put(t, "<p>No budget below the size of the weights "
			"has a plan.</p>\n");
		return;
	}
	most *= 1.05;
	open_svg(t, bottom + 28, "budget against period");
	curve(t, "bound", p, nr, true, most, unique, bottom, high);
	curve_axes(t, most, unique, bottom, high);
	curve(t, "period", p, nr, false, most, unique, bottom, high);
	budget = plan->budget == PLAN_NO_LIMIT ?
		(double)plan->score.peak_memory_bytes : (double)plan->budget;
	if (budget <= unique && !plan->timeline_status)
		plan_text_put(t, "<circle class=\"here\" r=\"5\" cx=\"%.1f\" "
			"cy=\"%.1f\"><title>this plan</title></circle>\n",
			LEFT + WIDE * budget / unique, bottom - high *
			plan->times.period_ms / most);
	plan_text_put(t, "</svg>\n");
}

/* ---- the page ---- */

static void cards(struct plan_text *t, const struct offline_file *f,
	const struct offline_plan *plan, double bound)
{
	const struct timeline_times *x = &plan->times;

	plan_text_put(t, "<div class=\"cards\">\n");
	card(t, offline_budget_text(plan->budget), "budget");
	card(t, offline_size(plan->score.peak_memory_bytes), plan->score.
		is_valid ? "peak on the GPU" : "peak on the GPU: too much");
	card(t, offline_size(f->unique), "weights");
	card(t, offline_size(plan_offloaded_bytes(&plan->result)),
		"streamed an iteration");
	if (!plan->timeline_status) {
		card(t, offline_time(x->period_ms), "an iteration");
		if (x->compute_ms > 0)
			card(t, cli_format("%.2f %%", 100 * (x->period_ms /
				x->compute_ms - 1)), "over computing alone");
		if (bound > 0)
			card(t, cli_format("%.2f %%", 100 * (x->period_ms /
				bound - 1)), "above the proven bound");
	}
	plan_text_put(t, "</div>\n");
}

char *show_html(const struct offline_file *f, const struct offline_plan *plan,
	double bound_ms)
{
	struct plan_text t = { 0 };

	plan_text_put(&t, "<!DOCTYPE html>\n<html lang=\"en\"><head>"
		"<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
		"content=\"width=device-width\">\n<title>");
	put_text(&t, f->profile.name);
	plan_text_put(&t, ": %s</title>\n<style>\n", plan->strategy->name);
	plan_text_put(&t, "%s", style);
	plan_text_put(&t, "</style></head><body>\n<h1>");
	put_text(&t, f->profile.name);
	plan_text_put(&t, "</h1><p>A plan by the strategy %s",
		plan->strategy->name);
	if (*f->profile.note) {
		plan_text_put(&t, ".  ");
		put_text(&t, f->profile.note);
	}
	plan_text_put(&t, "</p>\n");
	cards(&t, f, plan, bound_ms);
	if (plan->timeline_status) {
		plan_text_put(&t, "<p>This plan cannot run: %s.</p>\n",
			offline_error(plan));
	} else {
		memory_map(&t, f, plan);
		timeline(&t, f, plan);
	}
	trade_off_plot(&t, f, plan);
	plan_text_put(&t, "<p style=\"margin-top:2em\">Made by ballast show."
		"</p></body></html>\n");
	return plan_text_take(&t);
}
