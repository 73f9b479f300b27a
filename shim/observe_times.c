/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long an iteration's layers take, by phase of the program.  A part of
 * observe_profile.c.
 */
#include "shim/observe_int.h"

/* An iteration in the log. */
struct lap {
	const struct observe_step *steps;
	uint64_t kernels;
	bool whole;		/* times are in for most of it */
};

uint64_t profile_kernels(const struct profile_work *w,
	const struct observe_step *s)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < w->period; i++)
		hash = observe_mix(hash ^ s[i].kernels);
	return hash;
}

static uint32_t lap_timed(const struct profile_work *w,
	const struct observe_step *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->period; i++)
		n += s[i].timed;
	return n;
}

/* The last timed iterations, the latest first. */
static uint32_t laps_find(const struct profile_work *w, uint32_t most, struct lap *laps)
{
	const struct observe_step *s = w->steps;
	uint64_t first = w->first;
	uint32_t nr = 0, timed;

	while (nr < most) {
		timed = lap_timed(w, s);
		if (timed > 0)
			laps[nr++] = (struct lap){ s, profile_kernels(w, s),
				timed * 10ull >= w->period * 9ull };
		if (first < w->o->base + w->period ||
		    first < w->o->start + w->period)
			break;
		first -= w->period;
		s -= w->period;
	}
	return nr;
}

/*
 * Phases of whole iterations, by falling number of those, of as many the later
 * one first.
 */
static uint32_t phases_count(const struct lap *laps, uint32_t nr,
	struct observe_phase *out)
{
	uint32_t n = 0, k;

	for (uint32_t i = 0; i < nr; i++) {
		if (!laps[i].whole)
			continue;
		for (k = 0; k < n && out[k].kernels != laps[i].kernels; k++)
			;
		if (k == n)
			out[n++] = (struct observe_phase){
				.kernels = laps[i].kernels,
			};
		out[k].nr++;
	}
	for (uint32_t i = 1; i < n; i++)
		for (k = i; k > 0 && out[k].nr > out[k - 1].nr; k--) {
			struct observe_phase p = out[k];

			out[k] = out[k - 1];
			out[k - 1] = p;
		}
	return n;
}

/*
 * The mean times of a phase's layers, and of all iterations where p is NULL; what
 * each step adds up to in step_ms, if there is one.
 */
static enum plan_status mean_times(struct profile_work *w, const struct lap *laps,
	uint32_t nr, const struct observe_phase *p, double *layer_ms,
	double *step_ms)
{
	uint32_t *timed = plan_arena_alloc(w->scratch, w->nr_layers,
		sizeof(*timed));

	if (!timed)
		return PLAN_NO_MEMORY;
	for (uint32_t n = 0; n < nr; n++) {
		const struct observe_step *s = laps[n].steps;

		if (p && (laps[n].kernels != p->kernels || !laps[n].whole))
			continue;
		for (uint32_t l = 0; l < w->nr_layers; l++) {
			bool here = false;

			for (uint32_t i = w->first_step[l];
			     i < w->first_step[l + 1]; i++) {
				here |= s[i].timed;
				layer_ms[l] += s[i].ms;
				if (step_ms)
					step_ms[i] += s[i].ms;
			}
			timed[l] += here;
		}
	}
	for (uint32_t l = 0; l < w->nr_layers; l++)
		if (timed[l] > 1)
			layer_ms[l] /= timed[l];
	return PLAN_OK;
}

static enum plan_status make_phases(struct profile_work *w, const struct lap *laps,
	uint32_t nr)
{
	struct observe_profile *out = w->out;
	enum plan_status err = PLAN_OK;

	out->phases = plan_arena_alloc(w->arena, OBSERVE_TIMED,
		sizeof(*out->phases));
	if (!out->phases)
		return PLAN_NO_MEMORY;
	out->nr_phases = phases_count(laps, nr, out->phases);
	/* Where each is another one, kernels tell nothing. */
	if (out->nr_phases > 1 && out->phases[0].nr == 1)
		out->nr_phases = 0;
	for (uint32_t i = 0; i < out->nr_phases && !err; i++) {
		struct observe_phase *p = &out->phases[i];

		p->layer_ms = plan_arena_alloc(w->arena, w->nr_layers,
			sizeof(*p->layer_ms));
		if (!p->layer_ms)
			return PLAN_NO_MEMORY;
		err = mean_times(w, laps, nr, p, p->layer_ms, NULL);
		for (uint32_t l = 0; l < w->nr_layers; l++)
			p->iteration_ms += p->layer_ms[l];
	}
	return err;
}

enum plan_status profile_times(struct profile_work *w, uint32_t iterations)
{
	struct observe_profile *out = w->out;
	struct lap laps[OBSERVE_TIMED];
	enum plan_status err;
	double *layer_ms;
	uint32_t nr;

	layer_ms = plan_arena_alloc(w->scratch, w->nr_layers,
		sizeof(*layer_ms));
	w->step_ms = plan_arena_alloc(w->scratch, w->period,
		sizeof(*w->step_ms));
	if (!layer_ms || !w->step_ms)
		return PLAN_NO_MEMORY;
	nr = laps_find(w, iterations < OBSERVE_TIMED ? iterations :
		OBSERVE_TIMED, laps);
	err = make_phases(w, laps, nr);
	if (!err)
		err = mean_times(w, laps, nr, out->nr_phases > 0 ?
			&out->phases[0] : NULL, layer_ms, w->step_ms);
	for (uint32_t l = 0; l < w->nr_layers && !err; l++) {
		out->layers[l].duration_ms = layer_ms[l];
		out->iteration_ms += layer_ms[l];
	}
	return err;
}
