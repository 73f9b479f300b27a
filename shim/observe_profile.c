/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The observed period as the planner's layers and tensors.  Called by phase.c
 * when a plan is wanted.
 *
 * All pages between two neighbouring borders of ranges are used alike, so the
 * work is done on these pieces ("cells"), not on pages.
 */
#include "shim/observe_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell {
	uint64_t key;		/* hash of the layers that use it */
	uint32_t first, nr;	/* pages */
	uint32_t users;		/* layers */
	uint32_t mark;
	uint32_t tensor;
	uint32_t seen;		/* the last layer that uses it, from 1 */
};

static const struct observe_set *set_at(const struct profile_work *w, uint32_t step)
{
	return &w->o->sets[w->seq[step]];
}

/* ---- cells ---- */

static int compare_u64(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static enum plan_status make_cells(struct profile_work *w)
{
	uint64_t *border, nr = 0, at = 0;
	const struct observe_set *s;
	const struct page_range *r;

	for (uint32_t i = 0; i < w->period; i++)
		nr += 2 * (uint64_t)set_at(w, i)->nr;
	border = plan_arena_alloc(w->scratch, nr, sizeof(*border));
	w->cells = plan_arena_alloc(w->scratch, nr, sizeof(*w->cells));
	if (!border || !w->cells)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < w->period; i++) {
		s = set_at(w, i);
		for (uint32_t k = 0; k < s->nr; k++) {
			r = &w->o->ranges[s->first + k];
			border[at++] = r->first;
			border[at++] = (uint64_t)r->first + r->nr;
		}
	}
	qsort(border, nr, sizeof(*border), compare_u64);
	for (uint64_t i = 1; i < nr; i++) {
		if (border[i] == border[i - 1])
			continue;
		w->cells[w->nr_cells++] = (struct cell){
			.first = (uint32_t)border[i - 1],
			.nr = (uint32_t)(border[i] - border[i - 1]),
		};
	}
	return PLAN_OK;
}

/* The cell that begins with this page. */
static struct cell *cell_at(const struct profile_work *w, uint32_t page)
{
	uint32_t low = 0, high = w->nr_cells;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (w->cells[mid].first < page)
			low = mid + 1;
		else
			high = mid;
	}
	return &w->cells[low];
}

/*
 * Calls for each cell that the step uses and that has not been marked since the
 * stamp was changed.
 */
static void each_cell(struct profile_work *w, uint32_t step,
	void (*fn)(struct cell *c, void *data), void *data)
{
	const struct observe_set *s = set_at(w, step);

	for (uint32_t i = 0; i < s->nr; i++) {
		const struct page_range *r = &w->o->ranges[s->first + i];
		uint64_t end = (uint64_t)r->first + r->nr;
		struct cell *c = cell_at(w, r->first);

		for (; c < w->cells + w->nr_cells && c->first < end; c++) {
			if (c->mark == w->stamp)
				continue;
			c->mark = w->stamp;
			fn(c, data);
		}
	}
}

/* ---- layers ---- */

/* What a layer would have. */
struct load {
	uint64_t pages;		/* in all */
	uint64_t fresh;		/* that the layer before does not use */
	uint32_t before;	/* that layer, from 1 */
};

static void add_load(struct cell *c, void *data)
{
	struct load *l = data;

	l->pages += c->nr;
	if (c->seen == 0 || c->seen != l->before)
		l->fresh += c->nr;
}

static void set_seen(struct cell *c, void *data)
{
	c->seen = *(uint32_t *)data;
}

static bool fits(const struct profile_work *w, uint64_t pages)
{
	return w->opt->max_layer_bytes == 0 ||
		pages * w->opt->page_bytes <= w->opt->max_layer_bytes;
}

/* Of the steps [from, to) as one layer. */
static struct load load_of(struct profile_work *w, uint32_t from, uint32_t to)
{
	struct load l = { .before = w->nr_layers };

	w->stamp++;
	for (uint32_t i = from; i < to; i++)
		each_cell(w, i, add_load, &l);
	return l;
}

static void close_layer(struct profile_work *w, uint32_t from, uint32_t to)
{
	w->first_step[w->nr_layers++] = from;
	w->stamp++;
	for (uint32_t i = from; i < to; i++)
		each_cell(w, i, set_seen, &w->nr_layers);
}

static void merge_steps(struct profile_work *w)
{
	uint64_t least = w->opt->min_layer_bytes;
	struct load l = load_of(w, 0, 1), more, last;
	uint32_t from = 0, before;

	for (uint32_t i = 1; i < w->period; i++) {
		/* Its cells are marked: what comes is what i adds. */
		more = l;
		each_cell(w, i, add_load, &more);
		if (l.fresh * w->opt->page_bytes < least &&
		    fits(w, more.pages)) {
			l = more;
			continue;
		}
		close_layer(w, from, i);
		from = i;
		l = load_of(w, i, i + 1);
	}
	last = load_of(w, from, w->period);
	if (w->nr_layers > 0 && last.fresh * w->opt->page_bytes < least) {
		before = w->first_step[w->nr_layers - 1];
		if (fits(w, load_of(w, before, w->period).pages)) {
			w->nr_layers--;
			from = before;
		}
	}
	close_layer(w, from, w->period);
}

static void group(struct profile_work *w)
{
	uint32_t size = w->opt->group_size, nr = 0;

	if (size > 1) {
		for (uint32_t i = 0; i < w->nr_layers; nr++) {
			w->first_step[nr] = w->first_step[i];
			i = w->nr_layers - i > size ? i + size : w->nr_layers;
		}
		w->nr_layers = nr;
	}
	w->first_step[w->nr_layers] = w->period;
}

static enum plan_status make_layers(struct profile_work *w)
{
	struct observe_profile *out = w->out;

	w->first_step = plan_arena_alloc(w->arena, (size_t)w->period + 1,
		sizeof(*w->first_step));
	if (!w->first_step)
		return PLAN_NO_MEMORY;
	merge_steps(w);
	group(w);
	out->nr_layers = w->nr_layers;
	out->first_step = w->first_step;
	out->layers = plan_arena_alloc(w->arena, w->nr_layers,
		sizeof(*out->layers));
	out->nr_launches = plan_arena_alloc(w->arena, w->nr_layers,
		sizeof(*out->nr_launches));
	return out->layers && out->nr_launches ? PLAN_OK : PLAN_NO_MEMORY;
}

/* ---- tensors ---- */

struct user {
	uint64_t key;
	uint32_t nr;		/* cells of this layer, later tensors */
	uint32_t *tensors;
};

static void add_user(struct cell *c, void *data)
{
	struct user *u = data;

	c->key += u->key;
	c->users++;
	u->nr++;
}

static void add_tensor(struct cell *c, void *data)
{
	struct user *u = data;

	u->tensors[u->nr++] = c->tensor;
}

static bool same_tensor(const struct cell *a, const struct cell *b)
{
	return a->key == b->key && a->users == b->users;
}

static int compare_u32(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Offset in the window and size, in units that people read. */
static char *tensor_name(struct profile_work *w, const struct observe_tensor *t)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	uint64_t page = w->opt->page_bytes, size = t->nr * page;
	char name[64];
	int unit = 0;

	for (; unit < 3 && size != 0 && size % 1024 == 0; unit++)
		size /= 1024;
	snprintf(name, sizeof(name), "0x%llx+%llu%s",
		(unsigned long long)(t->first * page),
		(unsigned long long)size, units[unit]);
	return plan_arena_strdup(w->arena, name);
}

static enum plan_status cells_to_tensors(struct profile_work *w)
{
	struct observe_profile *out = w->out;
	struct observe_tensor *t = NULL;
	struct cell *c = w->cells;

	out->tensors = plan_arena_alloc(w->arena, w->nr_cells,
		sizeof(*out->tensors));
	if (!out->tensors)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < w->nr_cells; i++) {
		if (c[i].users == 0)
			continue;
		if (t && t->first + t->nr == c[i].first &&
		    same_tensor(&c[i - 1], &c[i])) {
			t->nr += c[i].nr;
		} else {
			t = &out->tensors[out->nr_tensors++];
			t->first = c[i].first;
			t->nr = c[i].nr;
		}
		c[i].tensor = out->nr_tensors - 1;
	}
	return PLAN_OK;
}

static void layer_cells(struct profile_work *w, uint32_t layer,
	void (*fn)(struct cell *c, void *data), void *data)
{
	w->stamp++;
	for (uint32_t i = w->first_step[layer]; i < w->first_step[layer + 1];
	     i++)
		each_cell(w, i, fn, data);
}

/* The layer's tensors, in the order of their pages, each once. */
static enum plan_status list_tensors(struct profile_work *w, uint32_t layer,
	struct user *u, const struct tensor_statistics *all)
{
	struct tensor_statistics *list;
	uint32_t nr = 0;

	u->nr = 0;
	layer_cells(w, layer, add_tensor, u);
	qsort(u->tensors, u->nr, sizeof(*u->tensors), compare_u32);
	for (uint32_t i = 0; i < u->nr; i++)
		if (i == 0 || u->tensors[i] != u->tensors[nr - 1])
			u->tensors[nr++] = u->tensors[i];
	list = plan_arena_alloc(w->arena, nr, sizeof(*list));
	if (!list)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < nr; i++)
		list[i] = all[u->tensors[i]];
	w->out->layers[layer].tensors = list;
	w->out->layers[layer].nr = nr;
	return PLAN_OK;
}

static enum plan_status make_tensors(struct profile_work *w)
{
	struct observe_profile *out = w->out;
	struct tensor_statistics *all;
	struct user u = { .key = 0 };
	enum plan_status err;

	for (uint32_t l = 0; l < w->nr_layers; l++) {
		u.key = observe_mix(l + 1);
		layer_cells(w, l, add_user, &u);
	}
	err = cells_to_tensors(w);
	all = plan_arena_alloc(w->scratch, out->nr_tensors, sizeof(*all));
	u.tensors = plan_arena_alloc(w->scratch, w->nr_cells,
		sizeof(*u.tensors));
	if (err || !all || !u.tensors)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < out->nr_tensors; i++) {
		all[i].id = i;
		all[i].size_bytes = out->tensors[i].nr * w->opt->page_bytes;
		all[i].name = tensor_name(w, &out->tensors[i]);
		if (!all[i].name)
			return PLAN_NO_MEMORY;
	}
	for (uint32_t l = 0; l < w->nr_layers && !err; l++)
		err = list_tensors(w, l, &u, all);
	return err;
}

/* ---- times and names ---- */

/* The function with the most time, or launches, in the layer. */
static uint32_t main_function(struct profile_work *w, uint32_t layer, bool by_time)
{
	uint32_t best = OBSERVE_NONE;

	for (uint32_t i = w->first_step[layer]; i < w->first_step[layer + 1];
	     i++) {
		const struct observe_step *s = &w->steps[i];
		const struct observe_top *most = &s->top[0];

		for (int k = 1; k < OBSERVE_TOP; k++)
			if (s->top[k].nr > most->nr)
				most = &s->top[k];
		if (by_time && most->nr != 0)
			w->weight[most->function] += w->step_ms[i];
		for (int k = 0; k < OBSERVE_TOP && !by_time; k++)
			if (s->top[k].nr != 0)
				w->weight[s->top[k].function] += s->top[k].nr;
	}
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = w->first_step[layer];
		     i < w->first_step[layer + 1]; i++)
			for (int k = 0; k < OBSERVE_TOP; k++) {
				const struct observe_top *t =
					&w->steps[i].top[k];

				if (t->nr == 0)
					continue;
				if (pass == 1)
					w->weight[t->function] = 0;
				else if (best == OBSERVE_NONE ||
				    w->weight[t->function] > w->weight[best])
					best = t->function;
			}
	return best;
}

static enum plan_status make_label(struct profile_work *w, uint32_t layer)
{
	const char *name = NULL;
	bool timed = false;
	uint32_t f;
	char label[96];

	for (uint32_t i = w->first_step[layer]; i < w->first_step[layer + 1];
	     i++)
		timed |= w->step_ms[i] > 0;
	f = main_function(w, layer, timed);
	if (f != OBSERVE_NONE)
		name = w->o->functions[f].name;
	snprintf(label, sizeof(label), "%u.%s", layer, name ? name : "?");
	w->out->layers[layer].label = plan_arena_strdup(w->arena, label);
	return w->out->layers[layer].label ? PLAN_OK : PLAN_NO_MEMORY;
}

static enum plan_status fill(struct profile_work *w, uint32_t iterations)
{
	struct observe_profile *out = w->out;
	enum plan_status err = make_cells(w);

	if (!err)
		err = make_layers(w);
	if (!err)
		err = make_tensors(w);
	if (!err)
		err = profile_times(w, iterations);
	w->weight = plan_arena_alloc(w->scratch, w->o->nr_functions,
		sizeof(*w->weight));
	if (!err && !w->weight)
		err = PLAN_NO_MEMORY;
	for (uint32_t l = 0; l < w->nr_layers && !err; l++) {
		for (uint32_t i = w->first_step[l]; i < w->first_step[l + 1];
		     i++)
			out->nr_launches[l] += w->steps[i].nr_launches;
		err = make_label(w, l);
	}
	out->kernels = profile_kernels(w, w->steps);
	return err;
}

enum plan_status observe_profile(const struct observer *o,
	const struct observe_options *opt, uint32_t iterations,
	struct plan_arena *arena, struct observe_profile *out)
{
	struct profile_work w = { .o = o, .opt = opt, .arena = arena, .out = out };
	enum plan_status err;

	memset(out, 0, sizeof(*out));
	if (o->state != OBSERVE_PERIODIC)
		return PLAN_BAD_MODEL;
	/* The last one whose last step is over: with two in a row there is. */
	w.period = out->period = o->period;
	w.first = o->next - 1 - (o->next - 1 - o->start) % o->period -
		o->period;
	w.seq = o->seq + (w.first - o->base);
	w.steps = o->steps + (w.first - o->base);
	w.scratch = plan_arena_create();
	if (!w.scratch)
		return PLAN_NO_MEMORY;
	err = fill(&w, iterations);
	plan_arena_destroy(w.scratch);
	if (err)
		memset(out, 0, sizeof(*out));
	return err;
}

uint32_t observe_layer_of(const struct observer *o,
	const struct observe_profile *p, uint32_t step)
{
	uint32_t age = (uint32_t)o->next - step, at, low = 0;
	uint32_t high = p->nr_layers;

	if (o->state != OBSERVE_PERIODIC || p->period != o->period ||
	    age == 0 || age > o->next - o->start)
		return OBSERVE_NONE;
	at = (uint32_t)((o->next - age - o->start) % o->period);
	while (high - low > 1) {
		uint32_t mid = low + (high - low) / 2;

		if (p->first_step[mid] <= at)
			low = mid;
		else
			high = mid;
	}
	return low;
}
