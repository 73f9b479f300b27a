/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where GlobalTensorSelectionStrategy begins: sets that fill each layer's window
 * up to a level.  Called by plan_selection.c.  Pure; no locks.
 */
#include "planner/plan_selection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BISECT_STEPS 30

static double cap_of(const struct plan_selector *s, uint32_t i, double scale)
{
	double w = s->window.compute(i, s->possible, s->duration,
		s->window.data);

	/* A hair less, so that rounding cannot make it too long. */
	return plan_duration_to_bytes(s->ip, w * scale * SELECTION_SLACK) *
		(1 - 1e-9);
}

/* Every layer up to its window and the level, larger tensors first. */
static double fill(struct plan_selector *s, double scale, uint64_t level)
{
	for (uint32_t i = 1; i < s->in->nr_layers; i++) {
		uint64_t left;
		double cap;

		if (s->first[i] == s->first[i + 1])
			continue;
		cap = cap_of(s, i, scale);
		left = cap < (double)level ? (uint64_t)cap : level;
		for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
			const struct plan_variable *v = &s->large[k];
			bool on = v->t->size_bytes <= left;

			plan_selector_set(s, v, on);
			if (on)
				left -= v->t->size_bytes;
		}
	}
	return plan_selector_judge(s, scale);
}

/* The same with as many bytes as can be. */
static void fill_exactly(struct plan_selector *s, double scale, uint64_t level)
{
	struct plan_pick from, got;

	for (uint32_t i = 1; i < s->in->nr_layers && !s->err; i++) {
		uint32_t nr = s->first[i + 1] - s->first[i], j = 0;

		if (!nr)
			continue;
		from.nr = nr;
		from.bytes = 0;
		from.at = plan_arena_alloc(s->arena, nr, sizeof(*from.at));
		if (!from.at) {
			s->err = PLAN_NO_MEMORY;
			return;
		}
		for (uint32_t k = 0; k < nr; k++) {
			from.at[k] = s->vars[s->first[i] + k].t;
			from.bytes += from.at[k]->size_bytes;
		}
		s->err = plan_subset_bytes(&from,
			fmin(cap_of(s, i, scale), (double)level), false,
			s->arena, &got);
		/* Both lists are in the layer's order. */
		for (uint32_t k = 0; k < nr && !s->err; k++) {
			bool on = j < got.nr && got.at[j] == from.at[k];

			plan_selector_set(s, &s->vars[s->first[i] + k], on);
			j += on;
		}
	}
	plan_selector_judge(s, scale);
}

static double fill_levels(struct plan_selector *s, double scale)
{
	double best = INFINITY;

	for (uint32_t k = 0; k < s->nr_levels; k++)
		best = fmin(best, fill(s, scale, s->levels[k]));
	return best;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *p = a, *q = b;

	return (*p > *q) - (*p < *q);
}

enum plan_status plan_selector_levels(struct plan_selector *s)
{
	uint64_t *sum = malloc(s->nr * sizeof(*sum));
	uint32_t nr = 0;

	if (!sum)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 1; i < s->in->nr_layers; i++) {
		uint64_t bytes = 0;

		for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++)
			sum[nr++] = bytes += s->large[k].t->size_bytes;
	}
	qsort(sum, nr, sizeof(*sum), by_value);
	for (uint32_t k = 0; k < SELECTION_LEVELS; k++) {
		uint64_t v = sum[(size_t)k * nr / SELECTION_LEVELS];

		if (!s->nr_levels || v != s->levels[s->nr_levels - 1])
			s->levels[s->nr_levels++] = v;
	}
	s->levels[s->nr_levels++] = UINT64_MAX;
	free(sum);
	return PLAN_OK;
}

void plan_selector_start(struct plan_selector *s)
{
	double lo = s->lo, hi = s->hi, mid;

	s->best = INFINITY;
	memset(s->on, 0, s->nr * sizeof(*s->on));
	plan_selector_judge(s, s->hi);
	if (fill_levels(s, lo) > 0 && fill_levels(s, hi) <= 0)
		for (int i = 0; i < BISECT_STEPS && hi > lo * (1 + 1e-9);
		     i++) {
			mid = sqrt(lo * hi);
			if (fill_levels(s, mid) <= 0)
				hi = mid;
			else
				lo = mid;
		}
	for (uint32_t k = 0; k < s->nr_levels; k++) {
		fill_exactly(s, s->best_scale, s->levels[k]);
		fill_exactly(s, lo, s->levels[k]);
	}
	for (uint32_t k = 0; k < s->nr; k++)
		plan_selector_set(s, &s->vars[k], true);
	plan_selector_judge(s, s->hi);
}
