/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that leave a part of each layer's weights in host memory, where kernels
 * read it: meanwhile the link brings the other part.  Where the pool holds
 * little more than the layer at work, that is faster than either alone.
 * Called by phase_plan.c on the planning thread.
 */
#include <float.h>
#include <string.h>

#include "shim/phase_int.h"
#include "shim/schedule.h"

/* What the link gives to either side where both want all of it. */
#define HALF 0.5

static const double parts[] = { 0.25, 1. / 3, 0.4, 0.5, 0.6, 2. / 3, 0.75 };

struct mix_rate {
	double place;		/* ms a byte, of kernels beside copies */
	double copies;		/* by this much copies take longer */
	double link;		/* ms a byte of a copy alone */
	double rest;		/* part of the data that the budget lacks */
	uint64_t bytes;
};

static uint64_t bytes_of(const struct layer_statistics *l)
{
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < l->nr; k++)
		bytes += l->tensors[k].size_bytes;
	return bytes;
}

/* Of all layers, when a byte in host memory takes so long. */
static double period(const struct plan_order *o, double rest, double ms)
{
	double sum = 0, at;

	for (uint32_t i = 0; i < o->profile.nr_layers; i++) {
		const struct layer_statistics *l = &o->profile.layers[i];

		at = rest * (double)bytes_of(l) * ms;
		sum += at > l->duration_ms ? at : l->duration_ms;
	}
	return sum;
}

/*
 * From the period that was measured in place: how fast kernels read.  Half of
 * the link is theirs while copies want it, too.  false: computing takes as long,
 * so there is nothing to gain.
 */
static bool rate_find(const struct plan_order *o, struct mix_rate *r)
{
	const struct transfer_time *last = &o->gauge.points[o->gauge.nr - 1];
	double lo = 0, hi, used, all = 0;

	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		r->bytes += o->profile.tensors[i].nr * o->page_bytes;
	r->rest = r->bytes > o->budget_used ?
		1 - (double)o->budget_used / (double)r->bytes : 0;
	for (uint32_t i = 0; i < o->profile.nr_layers; i++)
		all += r->rest * (double)bytes_of(&o->profile.layers[i]);
	if (all <= 0 || period(o, r->rest, 0) >= o->place_ms)
		return false;
	hi = o->place_ms / all;
	for (int i = 0; i < 60; i++) {
		double mid = (lo + hi) / 2;

		if (period(o, r->rest, mid) < o->place_ms)
			lo = mid;
		else
			hi = mid;
	}
	r->link = last->ms / (double)last->bytes;
	used = r->link < hi ? r->link / hi : 1;
	r->place = used > HALF ? hi * used / HALF : hi;
	r->copies = 1 / (used > HALF ? HALF : 1 - used);
	return true;
}

/*
 * So much of each tensor stays in host memory: its first pages.  What is left of
 * a page counts for the next tensor, so that with tensors of one page each some
 * stay there and the others do not.
 */
static bool part_choose(const struct plan_order *o, double part,
	uint32_t *host)
{
	double due = 0;

	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		host[i] = UINT32_MAX;
	for (uint32_t l = 0; l < o->profile.nr_layers; l++)
		for (uint32_t k = 0; k < o->profile.layers[l].nr; k++) {
			uint32_t id = (uint32_t)
				o->profile.layers[l].tensors[k].id;

			if (host[id] != UINT32_MAX)
				continue;
			due += part * o->profile.tensors[id].nr;
			host[id] = due < o->profile.tensors[id].nr ?
				(uint32_t)due : o->profile.tensors[id].nr;
			due -= host[id];
		}
	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		if (host[i] != UINT32_MAX && host[i] > 0)
			return true;
	return false;
}

/* A layer as it is without what stays in host memory. */
static bool layer_part(const struct plan_order *o, const struct mix_rate *r,
	const uint32_t *host, struct layer_statistics *l)
{
	struct tensor_statistics *t = plan_arena_alloc(o->arena, l->nr + 1,
		sizeof(*t));
	uint32_t n = 0;
	double ms = 0;

	if (t == NULL)
		return false;
	for (uint32_t k = 0; k < l->nr; k++) {
		uint64_t there = host[l->tensors[k].id] * o->page_bytes;

		ms += (double)there * r->place;
		if (l->tensors[k].size_bytes <= there)
			continue;
		t[n] = l->tensors[k];
		t[n++].size_bytes -= there;
	}
	l->tensors = t;
	l->nr = n;
	if (l->duration_ms < ms)
		l->duration_ms = ms;
	return true;
}

/* An order for what is streamed; its profile and host are in o's arena. */
static bool part_make(const struct plan_order *o, const struct mix_rate *r,
	double part, struct plan_order *to)
{
	const struct observe_profile *from = &o->profile;
	uint32_t *host = plan_arena_alloc(o->arena, from->nr_tensors + 1,
		sizeof(*host));
	struct layer_statistics *layers = plan_arena_alloc(o->arena,
		from->nr_layers + 1, sizeof(*layers));
	struct observe_tensor *tensors = plan_arena_alloc(o->arena,
		from->nr_tensors + 1, sizeof(*tensors));

	to->host = plan_arena_alloc(o->arena, from->nr_tensors + 1,
		sizeof(*to->host));
	if (host == NULL || layers == NULL || tensors == NULL ||
	    to->host == NULL || !part_choose(o, part, host))
		return false;
	to->nr_host = 0;
	for (uint32_t i = 0; i < from->nr_tensors; i++) {
		tensors[i] = from->tensors[i];
		if (host[i] == UINT32_MAX || host[i] == 0)
			continue;
		to->host[to->nr_host++] = (struct page_range){
			from->tensors[i].first, host[i] };
		tensors[i].first += host[i];
		tensors[i].nr -= host[i];
	}
	for (uint32_t i = 0; i < from->nr_layers; i++) {
		layers[i] = from->layers[i];
		if (!layer_part(o, r, host, &layers[i]))
			return false;
	}
	to->profile = *from;
	to->profile.layers = layers;
	to->profile.tensors = tensors;
	return true;
}

/* What planning gives, once more for o. */
static void take(struct plan_order *o, const struct plan_order *from)
{
	o->profile = from->profile;
	o->schedule = from->schedule;
	o->result = from->result;
	o->predicted_ms = from->predicted_ms;
	o->streamed_bytes = from->streamed_bytes;
	o->times = from->times;
	o->host = from->host;
	o->nr_host = from->nr_host;
}

/* The link carries each byte once, however it is asked for. */
static double bound(const struct plan_order *o, const struct mix_rate *r)
{
	double link = r->rest * (double)r->bytes * r->link;
	double compute = period(o, 0, 0);

	return link > compute ? link : compute;
}

void mix_run(struct plan_order *o)
{
	struct plan_order best = { .predicted_ms = DBL_MAX };
	struct mix_rate r = { 0 };
	double least;

	o->status = PLAN_INFEASIBLE;
	o->message[0] = '\0';
	if (!rate_find(o, &r))
		return;
	least = bound(o, &r);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct plan_order try = {
			.arena = o->arena,
			.gauge = o->gauge,
			.page_bytes = o->page_bytes,
			.release_ms = o->release_ms * r.copies,
		};

		if (!part_make(o, &r, parts[i], &try))
			continue;
		for (uint32_t k = 0; k < try.gauge.nr; k++)
			try.gauge.points[k].ms *= r.copies;
		if (order_compute(&try, o->budget_used) != PLAN_OK ||
		    try.schedule == NULL)
			continue;
		order_judge(&try);
		if (try.predicted_ms < best.predicted_ms) {
			schedule_destroy(best.schedule);
			best = try;
		} else {
			schedule_destroy(try.schedule);
		}
	}
	if (best.schedule == NULL)
		return;
	take(o, &best);
	o->bound_ms = least;
	o->status = PLAN_OK;
}
