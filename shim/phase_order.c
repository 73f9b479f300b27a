/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what was observed to an order for the planner.  Called by phase.c on the
 * program's threads.
 */
#include <stdlib.h>

#include "shim/conf.h"
#include "shim/log.h"
#include "shim/phase_int.h"
#include "shim/schedule.h"
#include "shim/tenancy.h"

/* Layers smaller than this are not worth a copy of their own. */
#define LEAST_LAYER (4u << 20)

/* Whether times have come in for most of an iteration. */
static bool timed(const struct observe_profile *profile)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < profile->nr_layers; i++)
		n += profile->layers[i].duration_ms > 0;
	return profile->nr_layers > 0 && n * 10 >= profile->nr_layers * 9;
}

uint64_t order_largest(const struct plan_order *o)
{
	const struct observe_profile *profile = &o->profile;
	uint64_t most = 0;

	for (uint32_t i = 0; i < profile->nr_layers; i++) {
		uint64_t bytes = 0;

		for (uint32_t k = 0; k < profile->layers[i].nr; k++)
			bytes += profile->layers[i].tensors[k].size_bytes;
		if (bytes > most)
			most = bytes;
	}
	return most;
}

/* Tensors that the user wants to stay leave the layers. */
static void drop_small(struct observe_profile *profile)
{
	for (uint32_t i = 0; i < profile->nr_layers; i++) {
		struct layer_statistics *l = &profile->layers[i];
		struct tensor_statistics *t =
			(struct tensor_statistics *)l->tensors;
		uint32_t n = 0;

		for (uint32_t k = 0; k < l->nr; k++)
			if (t[k].size_bytes > conf.threshold_mb)
				t[n++] = t[k];
		l->nr = n;
	}
}

/* Layers as a budget of `most` bytes needs them. */
static bool profile_make(struct phase *p, struct plan_order *o, uint64_t most)
	REQUIRES(&p->lock)
{
	struct observe_options opt = {
		.page_bytes = p->device->page_size,
		.min_layer_bytes = most / 64 < LEAST_LAYER ?
			most / 64 : LEAST_LAYER,
		.max_layer_bytes = most / 8,
		.group_size = (uint32_t)conf.group_size,
	};

	return observe_profile(p->observer, &opt,
		(uint32_t)(conf.profiling_iters > 0 ? conf.profiling_iters : 1),
		o->arena, &o->profile) ==
		PLAN_OK && timed(&o->profile);
}

static uint64_t profile_bytes(const struct plan_order *o)
{
	uint64_t pages = 0;

	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		pages += o->profile.tensors[i].nr;
	return pages * o->page_bytes;
}

struct plan_order *order_make(struct phase *p)
{
	struct device *d = p->device;
	struct plan_order *o = calloc(1, sizeof(*o));
	uint64_t bytes;
	bool ok;

	if (o == NULL)
		return NULL;
	o->arena = plan_arena_create();
	/* Nothing has to be swapped, so nothing is planned. */
	o->profile_only = tenancy_all_resident(d);
	o->page_bytes = d->page_size;
	ok = o->arena != NULL && profile_make(p, o, d->budget_most);
	/* Its plans will be for smaller GPUs: cut as for a quarter of it. */
	bytes = ok && o->profile_only ? profile_bytes(o) / 4 : d->budget_most;
	if (bytes < d->budget_most)
		ok = profile_make(p, o, bytes);
	if (!ok) {
		order_destroy(o);
		return NULL;
	}
	if (conf.threshold_mb > 0)
		drop_small(&o->profile);
	o->device = (uint32_t)d->ordinal;
	p->freed = false;
	schedule_room(d, o->profile.tensors, o->profile.nr_tensors,
		&o->budget, &o->budget_least);
	return o;
}

double order_release_ms(const struct plan_order *o)
{
	const struct gauge *g = &o->gauge;
	uint64_t bytes = 0;
	uint32_t n = 0;

	if (conf.verify == CONF_VERIFY_OFF || g->nr == 0)
		return 0;
	for (uint32_t i = 0; i < o->profile.nr_tensors; i++)
		bytes += o->profile.tensors[i].nr * o->page_bytes;
	n = o->profile.nr_layers > 0 ? o->profile.nr_layers : 1;
	return (double)bytes / n * g->points[g->nr - 1].ms /
		(double)g->points[g->nr - 1].bytes;
}

/* Times that differ by more than this are told. */
#define PHASE_DIFFERS 0.25

void order_say_phases(const struct plan_order *o)
{
	const struct observe_profile *profile = &o->profile;
	const struct observe_phase *first = profile->phases;

	for (uint32_t i = 1; i < profile->nr_phases; i++) {
		const struct observe_phase *f = &first[i];
		double differs = f->iteration_ms - first->iteration_ms;

		if (differs < 0)
			differs = -differs;
		if (differs > PHASE_DIFFERS * first->iteration_ms)
			log_info("iterations are of several phases: %u of them "
				"take %llu us each, %u other ones %llu; the "
				"plan is for the former", first->nr,
				(unsigned long long)(first->iteration_ms * 1000),
				f->nr,
				(unsigned long long)(f->iteration_ms * 1000));
	}
}
