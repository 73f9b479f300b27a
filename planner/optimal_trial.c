/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The period of one choice of `optimal`: layout, copies, largest mean cycle.
 * Called by the search, some hundred to some ten thousand times a plan.  Pure;
 * no locks.
 */
#include "planner/optimal_int.h"

#include <math.h>
#include <string.h>

enum plan_status optimal_choice_init(struct optimal_choice *c, uint32_t nr,
	struct plan_arena *arena)
{
	memset(c, 0, sizeof(*c));
	c->bytes = plan_arena_alloc(arena, nr, sizeof(*c->bytes));
	c->pads = plan_arena_alloc(arena, nr, sizeof(*c->pads));
	c->period_ms = INFINITY;
	return c->bytes && c->pads ? PLAN_OK : PLAN_NO_MEMORY;
}

void optimal_choice_copy(struct optimal_choice *to,
	const struct optimal_choice *from, uint32_t nr)
{
	uint64_t *bytes = to->bytes;
	uint32_t *pads = to->pads;

	*to = *from;
	to->bytes = bytes;
	to->pads = pads;
	memcpy(bytes, from->bytes, nr * sizeof(*bytes));
	memcpy(pads, from->pads, nr * sizeof(*pads));
}

enum plan_status optimal_trial_init(struct optimal_trial *t,
	const struct optimal_model *m, struct plan_arena *arena)
{
	uint32_t most = ring_max_pieces(m->nr);

	memset(t, 0, sizeof(*t));
	t->m = m;
	t->places = plan_arena_alloc(arena, m->nr, sizeof(*t->places));
	t->pieces = plan_arena_alloc(arena, most, sizeof(*t->pieces));
	t->copies = plan_arena_alloc(arena, most, sizeof(*t->copies));
	t->cycle = cycle_create(m->nr, most, arena);
	t->ends = plan_arena_alloc(arena, 3 * (size_t)m->nr, sizeof(double));
	if (!t->places || !t->pieces || !t->copies || !t->cycle || !t->ends)
		return PLAN_NO_MEMORY;
	t->timeline = (struct timeline){
		.nr_layers = m->nr,
		.duration_ms = m->ms,
		.copies = t->copies,
		.release_ms = m->release_ms,
		.wrap = m->wrap,
	};
	return PLAN_OK;
}

static void lay_places(struct optimal_trial *t, const struct optimal_choice *c)
{
	uint64_t at = 0, pads = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->m->nr; i++) {
		at += c->pads[i];
		pads += c->pads[i];
		if (c->bytes[i] == 0)
			continue;
		t->places[n] = (struct plan_place){
			.layer = i,
			.chunks = (uint32_t)((c->bytes[i] + c->chunk - 1) /
				c->chunk),
			.position = at,
			.bytes = c->bytes[i],
		};
		at += t->places[n++].chunks;
	}
	t->pool = (struct plan_pool){
		.chunk_bytes = c->chunk,
		.nr_chunks = c->ring,
		.positions = at,
		.pad_positions = pads,
		.nr_places = n,
		.places = t->places,
		.streamed_bytes = c->streamed,
	};
}

static void lay_pieces(struct optimal_trial *t, bool split)
{
	t->nr_pieces = ring_pieces(&t->pool, t->m->nr, split, t->pieces);
	if (split && t->nr_pieces > t->pool.nr_places)
		t->nr_pieces = ring_join(&t->pool, &t->timeline, &t->m->link,
			t->pieces, t->nr_pieces, t->ends);
}

void optimal_trial_lay(struct optimal_trial *t, const struct optimal_choice *c)
{
	lay_places(t, c);
	lay_pieces(t, c->split);
}

static void load(struct optimal_trial *t, const struct timeline_link *link)
{
	for (uint32_t j = 0; j < t->nr_pieces; j++) {
		const struct ring_piece *p = &t->pieces[j];
		uint32_t layer = t->places[p->place].layer;

		t->copies[j] = (struct timeline_copy){
			.bytes = p->length,
			.ms = timeline_copy_ms(link, p->length),
			.use = (int32_t)layer,
			.after = p->after,
			.slot = TIMELINE_ANY,
			.layer = layer,
		};
	}
	t->timeline.nr_copies = t->nr_pieces;
	cycle_load_sound(t->cycle, &t->timeline);
}

double optimal_trial_period(struct optimal_trial *t, struct optimal_choice *c,
	double limit)
{
	const double nothing_lost = t->m->compute_ms * (1 + 1e-12);
	double whole, split;

	lay_places(t, c);
	lay_pieces(t, false);
	load(t, &t->m->link);
	whole = cycle_period(t->cycle, limit);
	c->split = false;
	if (whole <= nothing_lost)
		return whole;
	lay_pieces(t, true);
	if (t->nr_pieces == t->pool.nr_places)
		return whole;
	load(t, &t->m->link);
	split = cycle_period(t->cycle, whole < limit ? whole : limit);
	if (split < whole) {
		c->split = true;
		return split;
	}
	return whole;
}

double optimal_trial_at(struct optimal_trial *t, const struct optimal_choice *c,
	const struct timeline_link *link)
{
	optimal_trial_lay(t, c);
	load(t, link);
	return cycle_period(t->cycle, INFINITY);
}
