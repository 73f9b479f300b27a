/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans to schedules.  A draft lists, by layer, the pages that are streamed and
 * the slot of each; then units are made of the layers that have any.
 */
#include "shim/convert.h"

#include <stdlib.h>
#include <string.h>

#include "planner/timeline.h"
#include "shim/schedule.h"

/* What one layer streams, as the plan's places or transfers add to it. */
struct draft {
	uint32_t nr, max;
	uint32_t *pages, *slots;	/* owned until a unit has them */
	uint32_t unit;
	uint32_t piece_of_unit;		/* pieces it is given so far */
};

#define SLOT_UNKNOWN UINT32_MAX

struct draft_piece {
	uint32_t layer;
	uint32_t first, nr;
};

struct work {
	const struct convert *c;
	struct draft *layers;		/* owned; nr_layers */
	struct draft_piece *pieces;	/* owned; in the order of issue */
	uint32_t nr_pieces, max_pieces;
	uint32_t *layer_of;		/* owned; by tensor id */
	uint8_t *taken;			/* owned; by page from `low` on */
	uint32_t low, high;
	uint32_t nr_slots;
	bool failed;			/* no memory */
};

static uint32_t pages_of(const struct work *w, uint64_t bytes)
{
	return (uint32_t)((bytes + w->c->page_bytes - 1) / w->c->page_bytes);
}

static bool draft_add(struct work *w, uint32_t layer, uint32_t page,
	uint32_t slot)
{
	struct draft *l = &w->layers[layer];
	uint32_t *pages, *slots, max;

	if (w->taken[page - w->low])
		return true;	/* of two uses the first one's place counts */
	if (l->nr == l->max) {
		max = l->max == 0 ? 16 : l->max * 2;
		pages = realloc(l->pages, max * sizeof(*pages));
		if (pages != NULL)
			l->pages = pages;
		slots = realloc(l->slots, max * sizeof(*slots));
		if (slots != NULL)
			l->slots = slots;
		if (pages == NULL || slots == NULL) {
			w->failed = true;
			return false;
		}
		l->max = max;
	}
	w->taken[page - w->low] = 1;
	l->pages[l->nr] = page;
	l->slots[l->nr++] = slot;
	if (slot != SLOT_UNKNOWN && slot >= w->nr_slots)
		w->nr_slots = slot + 1;
	return true;
}

static void piece_add(struct work *w, uint32_t layer, uint32_t first,
	uint32_t nr)
{
	struct draft_piece *grown;

	if (nr == 0 || w->failed)
		return;
	if (w->nr_pieces == w->max_pieces) {
		uint32_t max = w->max_pieces * 2 + 64;

		grown = realloc(w->pieces, max * sizeof(*grown));
		if (grown == NULL) {
			w->failed = true;
			return;
		}
		w->pieces = grown;
		w->max_pieces = max;
	}
	w->pieces[w->nr_pieces++] = (struct draft_piece){ layer, first, nr };
}

/* Pages of an entry: [*first, *first + n). */
static uint32_t entry_pages(const struct work *w, const struct plan_entry *e,
	uint32_t *first)
{
	const struct observe_tensor *t = &w->c->tensors[e->tensor->id];
	uint32_t from = (uint32_t)(e->offset / w->c->page_bytes);
	uint32_t to = pages_of(w, e->offset + e->length);

	if (to > t->nr)
		to = t->nr;
	*first = t->first + from;
	return to > from ? to - from : 0;
}

/* ---- the three kinds of plans ---- */

/* Slots of a position's chunk; chunks may be larger than pages. */
static void from_pool(struct work *w)
{
	const struct strategy_result *r = w->c->result;
	const struct plan_pool *pool = r->pool;
	uint32_t per = pages_of(w, pool->chunk_bytes);
	/* By place: pages it has, and pages that some piece brings. */
	uint32_t *counts = calloc(2 * (size_t)pool->nr_places + 1,
		sizeof(*counts));
	uint32_t *done = counts + pool->nr_places;

	if (counts == NULL) {
		w->failed = true;
		return;
	}
	for (uint32_t i = 0; i < pool->nr_places && !w->failed; i++) {
		const struct plan_place *p = &pool->places[i];
		const struct plan_slot *s = &r->strategy_map.slots[i];
		uint32_t first, n, k = 0;

		for (uint32_t j = 0; j < s->nr; j++) {
			n = entry_pages(w, &s->entries[j], &first);
			for (uint32_t q = 0; q < n && !w->failed; q++, k++)
				draft_add(w, p->layer, first + q, (uint32_t)
					((p->position + k / per) %
					pool->nr_chunks) * per + k % per);
		}
		counts[i] = w->layers[p->layer].nr;
	}
	/* A page belongs to the piece that it begins in. */
	for (uint32_t j = 0; j < pool->nr_pieces && !w->failed; j++) {
		const struct plan_piece *p = &pool->pieces[j];
		uint32_t from = pages_of(w, p->offset);
		uint32_t to = pages_of(w, p->offset + p->length);

		if (to > counts[p->place])
			to = counts[p->place];
		if (to > from)
			piece_add(w, pool->places[p->place].layer, from,
				to - from);
		if (to > done[p->place])
			done[p->place] = to;
	}
	for (uint32_t i = 0; i < pool->nr_places && !w->failed; i++)
		piece_add(w, pool->places[i].layer, done[i],
			counts[i] - done[i]);
	free(counts);
}

static const struct plan_slot *slot_of_layer(const struct strategy_map *map,
	uint32_t layer)
{
	for (uint32_t i = 0; i < map->nr; i++)
		if (map->slots[i].slot == layer)
			return &map->slots[i];
	return NULL;
}

static void from_blocks(struct work *w)
{
	const struct block_strategy_data *b = w->c->result->block_data;
	uint32_t *base = calloc((size_t)b->nr_blocks + 1, sizeof(*base));

	if (base == NULL) {
		w->failed = true;
		return;
	}
	for (uint32_t i = 0; i < b->nr_blocks; i++)
		base[i + 1] = base[i] + pages_of(w, b->block_sizes[i]);
	for (uint32_t i = 0; i < b->nr && !w->failed; i++) {
		uint32_t layer = b->transfer_to_compute_map[i], k = 0, n;
		uint32_t block = b->label_to_block_id[i], first, before;
		const struct plan_slot *s = slot_of_layer(
			&w->c->result->strategy_map, b->slots[i]);

		if (layer == PLAN_NONE || s == NULL)
			continue;
		before = w->layers[layer].nr;
		for (uint32_t j = 0; j < s->nr; j++) {
			n = entry_pages(w, &s->entries[j], &first);
			for (uint32_t q = 0; q < n && !w->failed &&
			     base[block] + k < base[block + 1]; q++, k++)
				draft_add(w, layer, first + q,
					base[block] + k);
		}
		piece_add(w, layer, before, w->layers[layer].nr - before);
	}
	free(base);
}

/* Which bytes are streamed is given, where they go is not. */
static void from_map(struct work *w)
{
	const struct strategy_map *map = &w->c->result->strategy_map;
	uint32_t total = 0, streamed = 0, room, at = 0, largest = 0;

	for (uint32_t i = 0; i < map->nr; i++)
		for (uint32_t j = 0; j < map->slots[i].nr; j++) {
			const struct plan_entry *e = &map->slots[i].entries[j];
			uint32_t first, n = entry_pages(w, e, &first);

			for (uint32_t q = 0; q < n && !w->failed; q++)
				draft_add(w, w->layer_of[e->tensor->id],
					first + q, SLOT_UNKNOWN);
		}
	for (uint32_t i = 0; i < w->c->nr_tensors; i++)
		total += w->c->tensors[i].nr;
	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		streamed += w->layers[l].nr;
		if (w->layers[l].nr > largest)
			largest = w->layers[l].nr;
	}
	room = (uint32_t)(w->c->budget / w->c->page_bytes);
	room = room > total - streamed ? room - (total - streamed) : 0;
	/* Too little for the largest one: convert_plan() sees and says so. */
	if (room < largest)
		room = largest;
	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		struct draft *d = &w->layers[l];

		if (at + d->nr > room)
			at = 0;
		for (uint32_t k = 0; k < d->nr; k++)
			d->slots[k] = at++;
		if (at > w->nr_slots)
			w->nr_slots = at;
		piece_add(w, l, 0, d->nr);
	}
}

/* ---- units ---- */

static bool work_init(struct work *w)
{
	const struct convert *c = w->c;

	w->low = UINT32_MAX;
	for (uint32_t i = 0; i < c->nr_tensors; i++) {
		if (c->tensors[i].first < w->low)
			w->low = c->tensors[i].first;
		if (c->tensors[i].first + c->tensors[i].nr > w->high)
			w->high = c->tensors[i].first + c->tensors[i].nr;
	}
	if (w->low > w->high)
		w->low = w->high;
	w->layers = calloc((size_t)c->in->nr_layers + 1, sizeof(*w->layers));
	w->layer_of = calloc((size_t)c->nr_tensors + 1, sizeof(*w->layer_of));
	w->taken = calloc((size_t)(w->high - w->low) + 1, 1);
	if (w->layers == NULL || w->layer_of == NULL || w->taken == NULL)
		return false;
	for (uint32_t l = c->in->nr_layers; l-- > 0; )
		for (uint32_t k = 0; k < c->in->layers[l].nr; k++)
			w->layer_of[c->in->layers[l].tensors[k].id] = l;
	return true;
}

static void work_fini(struct work *w)
{
	for (uint32_t l = 0; w->layers != NULL && l < w->c->in->nr_layers;
	     l++) {
		free(w->layers[l].pages);
		free(w->layers[l].slots);
	}
	free(w->layers);
	free(w->pieces);
	free(w->layer_of);
	free(w->taken);
}

static void make_units(struct work *w, struct schedule *sc)
{
	uint32_t n = 0;

	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		struct draft *d = &w->layers[l];
		struct unit *u = &sc->units[n];

		if (d->nr == 0)
			continue;
		u->layer = l;
		u->nr = d->nr;
		u->pages = d->pages;
		u->slots = d->slots;
		d->pages = d->slots = NULL;
		d->unit = n++;
	}
}

/* By unit, and within a unit as they were given. */
static void make_pieces(struct work *w, struct schedule *sc)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < w->nr_pieces; i++)
		sc->units[w->layers[w->pieces[i].layer].unit].nr_pieces++;
	for (uint32_t i = 0; i < sc->nr_units; i++) {
		sc->units[i].first_piece = at;
		at += sc->units[i].nr_pieces;
	}
	for (uint32_t i = 0; i < w->nr_pieces; i++) {
		const struct draft_piece *p = &w->pieces[i];
		struct draft *d = &w->layers[p->layer];
		struct unit *u = &sc->units[d->unit];

		sc->pieces[u->first_piece + d->piece_of_unit++] =
			(struct unit_piece){ d->unit, p->first, p->nr };
	}
}

static enum plan_status finish(struct work *w, struct schedule **out)
{
	uint32_t units = 0, resident = 0, streamed = 0;
	struct schedule *sc;

	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		units += w->layers[l].nr > 0;
		streamed += w->layers[l].nr;
	}
	for (uint32_t i = 0; i < w->c->nr_tensors; i++)
		resident += w->c->tensors[i].nr;
	resident -= streamed;
	if ((uint64_t)(resident + w->nr_slots) * w->c->page_bytes >
	    w->c->budget)
		return PLAN_INFEASIBLE;
	if (units == 0)
		return PLAN_OK;
	sc = schedule_create(units, w->nr_pieces);
	if (sc == NULL)
		return PLAN_NO_MEMORY;
	sc->nr_layers = w->c->in->nr_layers;
	sc->nr_slots = w->nr_slots;
	make_units(w, sc);
	make_pieces(w, sc);
	*out = sc;
	return PLAN_OK;
}

enum plan_status convert_plan(const struct convert *c, struct schedule **out)
{
	struct work w = { .c = c };
	enum plan_status status = PLAN_NO_MEMORY;

	*out = NULL;
	if (work_init(&w)) {
		if (c->result->pool != NULL)
			from_pool(&w);
		else if (c->result->block_data != NULL &&
			 c->result->block_data->nr_blocks > 0)
			from_blocks(&w);
		else
			from_map(&w);
		if (!w.failed)
			status = finish(&w, out);
	}
	work_fini(&w);
	return status;
}
