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
	struct draft_page {
		uint32_t page, slot;
		uint32_t tensor;
		uint32_t unit, at;	/* where it went */
	} *pages;			/* owned */
};

#define SLOT_UNKNOWN UINT32_MAX
#define NOBODY UINT32_MAX

struct draft_piece {
	uint32_t layer;
	uint32_t first, nr;
};

struct work {
	const struct convert *c;
	struct draft *layers;		/* owned; nr_layers */
	struct draft_piece *pieces;	/* owned; in the order of issue */
	uint32_t nr_pieces, max_pieces;
	uint32_t *layer_of;		/* owned; by tensor id: the first user */
	uint64_t *users;		/* owned; by tensor id: hash of them all */
	bool shared;			/* some tensor has several users */
	/* Owned; by page from `low` on: the layer that has it, later its unit. */
	uint32_t *taken;
	uint32_t low, high;
	uint32_t nr_units, nr_slots;
	bool failed;			/* no memory */
};

static uint32_t pages_of(const struct work *w, uint64_t bytes)
{
	return (uint32_t)((bytes + w->c->page_bytes - 1) / w->c->page_bytes);
}

static void draft_add(struct work *w, uint32_t layer, uint32_t tensor,
	uint32_t page, uint32_t slot)
{
	struct draft *l = &w->layers[layer];
	struct draft_page *grown;

	if (w->taken[page - w->low] != NOBODY)
		return;		/* of two uses the first one's place counts */
	if (l->nr == l->max) {
		uint32_t max = l->max == 0 ? 16 : l->max * 2;

		grown = realloc(l->pages, max * sizeof(*grown));
		if (grown == NULL) {
			w->failed = true;
			return;
		}
		l->pages = grown;
		l->max = max;
	}
	w->taken[page - w->low] = layer;
	l->pages[l->nr++] = (struct draft_page){ .page = page, .slot = slot,
		.tensor = tensor };
	if (slot != SLOT_UNKNOWN && slot >= w->nr_slots)
		w->nr_slots = slot + 1;
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
				draft_add(w, p->layer,
					s->entries[j].tensor->id, first + q,
					(uint32_t)((p->position + k / per) %
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
				draft_add(w, layer,
					s->entries[j].tensor->id, first + q,
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
					e->tensor->id, first + q,
					SLOT_UNKNOWN);
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
			d->pages[k].slot = at++;
		if (at > w->nr_slots)
			w->nr_slots = at;
		piece_add(w, l, 0, d->nr);
	}
}

/* ---- the work ---- */

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ull;
	return x ^ x >> 32;
}

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
	w->users = calloc((size_t)c->nr_tensors + 1, sizeof(*w->users));
	w->taken = malloc(((size_t)(w->high - w->low) + 1) *
		sizeof(*w->taken));
	if (w->layers == NULL || w->layer_of == NULL || w->users == NULL ||
	    w->taken == NULL)
		return false;
	for (uint32_t i = 0; i < w->high - w->low; i++)
		w->taken[i] = NOBODY;
	for (uint32_t l = c->in->nr_layers; l-- > 0; )
		for (uint32_t k = 0; k < c->in->layers[l].nr; k++) {
			uint32_t id = (uint32_t)c->in->layers[l].tensors[k].id;

			w->shared |= w->users[id] != 0 && w->layer_of[id] != l;
			w->layer_of[id] = l;
			w->users[id] = mix(w->users[id] ^ (l + 1));
		}
	return true;
}

static void work_fini(struct work *w)
{
	for (uint32_t l = 0; w->layers != NULL && l < w->c->in->nr_layers;
	     l++)
		free(w->layers[l].pages);
	free(w->layers);
	free(w->pieces);
	free(w->layer_of);
	free(w->users);
	free(w->taken);
}

/* ---- slots that layers which share something agree on ---- */

struct slots {
	uint32_t *of;		/* by page from `low` on; NOBODY: none yet */
	uint32_t *taken;	/* by slot: stamp of the last page that sees it so */
	uint32_t stamp;
};

/* Slots of what some layer uses together with the tensor are taken. */
static void mark_taken(const struct work *w, struct slots *s, uint32_t tensor)
{
	s->stamp++;
	for (uint32_t l = w->layer_of[tensor]; l < w->c->in->nr_layers; l++) {
		const struct layer_statistics *at = &w->c->in->layers[l];
		bool uses = false;

		for (uint32_t k = 0; k < at->nr && !uses; k++)
			uses = (uint32_t)at->tensors[k].id == tensor;
		for (uint32_t k = 0; k < at->nr && uses; k++) {
			const struct observe_tensor *t =
				&w->c->tensors[at->tensors[k].id];

			for (uint32_t i = 0; i < t->nr; i++) {
				uint32_t slot = s->of[t->first + i - w->low];

				if (slot != NOBODY)
					s->taken[slot] = s->stamp;
			}
		}
	}
}

/*
 * A plan gives a page another place for each use; it keeps that of the first
 * one, so that it can stay where it is.  Then no two pages that one layer uses
 * may have the same: who comes later takes the next free one.  If all are taken,
 * the pool is too small; it grows up to `most` slots.
 */
static enum plan_status part_slots(struct work *w, uint32_t most)
{
	struct slots s = {
		.of = malloc(((size_t)(w->high - w->low) + 1) * sizeof(*s.of)),
		.taken = calloc((size_t)most + 1, sizeof(*s.taken)),
	};
	enum plan_status status = s.of == NULL || s.taken == NULL ?
		PLAN_NO_MEMORY : PLAN_OK;

	for (uint32_t i = 0; status == PLAN_OK && i < w->high - w->low; i++)
		s.of[i] = NOBODY;
	for (uint32_t l = 0; status == PLAN_OK && l < w->c->in->nr_layers;
	     l++) {
		struct draft *d = &w->layers[l];

		for (uint32_t i = 0; i < d->nr; i++) {
			struct draft_page *p = &d->pages[i];
			uint32_t n = 0, slot = p->slot;

			if (i == 0 || p->tensor != p[-1].tensor)
				mark_taken(w, &s, p->tensor);
			for (; n < w->nr_slots && s.taken[slot] == s.stamp; n++)
				slot = (slot + 1) % w->nr_slots;
			if (n == w->nr_slots && n < most)
				slot = w->nr_slots++;
			else if (n == w->nr_slots)
				status = PLAN_INFEASIBLE;
			p->slot = slot;
			s.of[p->page - w->low] = p->slot;
			s.taken[p->slot] = s.stamp;
		}
	}
	free(s.of);
	free(s.taken);
	return status;
}

/* ---- units ---- */

/*
 * Pages of a layer's draft that the same layers use are a unit, in the order
 * of the draft.  Here they get its number and their place in it.
 */
static void number_units(struct work *w)
{
	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		struct draft *d = &w->layers[l];
		uint32_t left = d->nr;

		for (uint32_t i = 0; i < d->nr; i++)
			d->pages[i].unit = NOBODY;
		for (uint32_t i = 0; i < d->nr && left > 0; i++) {
			uint64_t users = w->users[d->pages[i].tensor];
			uint32_t n = 0;

			if (d->pages[i].unit != NOBODY)
				continue;
			for (uint32_t k = i; k < d->nr; k++) {
				struct draft_page *p = &d->pages[k];

				if (w->users[p->tensor] != users)
					continue;
				p->unit = w->nr_units;
				p->at = n++;
				w->taken[p->page - w->low] = p->unit;
			}
			left -= n;
			w->nr_units++;
		}
	}
}

static bool make_units(struct work *w, struct schedule *sc)
{
	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		const struct draft *d = &w->layers[l];

		for (uint32_t i = 0; i < d->nr; i++)
			sc->units[d->pages[i].unit].nr++;
		for (uint32_t i = 0; i < d->nr; i++) {
			const struct draft_page *p = &d->pages[i];
			struct unit *u = &sc->units[p->unit];

			if (u->pages == NULL) {
				u->layer = l;
				u->pages = malloc(u->nr * sizeof(*u->pages));
				u->slots = malloc(u->nr * sizeof(*u->slots));
			}
			if (u->pages == NULL || u->slots == NULL)
				return false;
			u->pages[p->at] = p->page;
			u->slots[p->at] = p->slot;
		}
	}
	return true;
}

/* Pages of a piece from i on that are neighbours in one unit. */
static uint32_t piece_run(const struct draft *d, uint32_t i, uint32_t end)
{
	uint32_t n = 1;

	while (i + n < end && d->pages[i + n].unit == d->pages[i].unit &&
	       d->pages[i + n].at == d->pages[i].at + n)
		n++;
	return n;
}

/*
 * Calls for each piece, cut where its pages went to different units.
 */
static void each_piece(const struct work *w, struct schedule *sc,
	void (*fn)(struct schedule *sc, struct unit_piece p))
{
	for (uint32_t i = 0; i < w->nr_pieces; i++) {
		const struct draft_piece *p = &w->pieces[i];
		const struct draft *d = &w->layers[p->layer];
		uint32_t end = p->first + p->nr, n;

		for (uint32_t k = p->first; k < end; k += n) {
			n = piece_run(d, k, end);
			fn(sc, (struct unit_piece){ d->pages[k].unit,
				d->pages[k].at, n });
		}
	}
}

static void piece_count(struct schedule *sc, struct unit_piece p)
{
	sc->units[p.unit].nr_pieces++;
}

static void piece_put(struct schedule *sc, struct unit_piece p)
{
	struct unit *u = &sc->units[p.unit];

	sc->pieces[u->first_piece + u->nr_pieces++] = p;
}

/* By unit, and within a unit as they were given. */
static bool make_pieces(struct work *w, struct schedule *sc)
{
	uint32_t n = 0;

	each_piece(w, sc, piece_count);
	for (uint32_t i = 0; i < sc->nr_units; i++) {
		sc->units[i].first_piece = n;
		n += sc->units[i].nr_pieces;
		sc->units[i].nr_pieces = 0;
	}
	sc->pieces = calloc((size_t)n + 1, sizeof(*sc->pieces));
	if (sc->pieces == NULL)
		return false;
	sc->nr_pieces = n;
	each_piece(w, sc, piece_put);
	return true;
}

/* Calls for each unit that the layer uses, each once. */
static uint32_t visit_units(const struct work *w, uint32_t layer,
	uint32_t *seen, struct visits *v)
{
	const struct layer_statistics *l = &w->c->in->layers[layer];
	uint32_t n = 0;

	for (uint32_t k = 0; k < l->nr; k++) {
		const struct observe_tensor *t =
			&w->c->tensors[l->tensors[k].id];

		for (uint32_t i = 0; i < t->nr; i++) {
			uint32_t unit = w->taken[t->first + i - w->low];

			if (unit == NOBODY || seen[unit] == layer + 1)
				continue;
			seen[unit] = layer + 1;
			if (v != NULL)
				visits_add_use(v, unit);
			n++;
		}
	}
	return n;
}

static bool make_visits(const struct work *w, struct schedule *sc)
{
	uint32_t *seen = calloc((size_t)sc->nr_units + 1, sizeof(*seen));
	uint32_t uses = 0;
	bool ok = seen != NULL;

	for (uint32_t l = 0; ok && l < w->c->in->nr_layers; l++)
		uses += visit_units(w, l, seen, NULL);
	ok = ok && visits_init(&sc->visits, sc->nr_units, w->c->in->nr_layers,
		uses);
	if (ok)
		memset(seen, 0, sc->nr_units * sizeof(*seen));
	for (uint32_t l = 0; ok && l < w->c->in->nr_layers; l++) {
		visits_add(&sc->visits, l);
		visit_units(w, l, seen, &sc->visits);
	}
	if (ok)
		visits_close(&sc->visits);
	free(seen);
	return ok;
}

static enum plan_status finish(struct work *w, struct schedule **out)
{
	uint32_t resident = 0, streamed = 0, room;
	struct schedule *sc;
	enum plan_status status = PLAN_OK;

	for (uint32_t l = 0; l < w->c->in->nr_layers; l++)
		streamed += w->layers[l].nr;
	for (uint32_t i = 0; i < w->c->nr_tensors; i++)
		resident += w->c->tensors[i].nr;
	resident -= streamed;
	room = (uint32_t)(w->c->budget / w->c->page_bytes);
	if (resident + w->nr_slots > room)
		return PLAN_INFEASIBLE;
	if (streamed == 0)
		return PLAN_OK;
	if (w->shared)
		status = part_slots(w, room - resident);
	if (status != PLAN_OK)
		return status;
	number_units(w);
	sc = schedule_create(w->nr_units);
	if (sc == NULL)
		return PLAN_NO_MEMORY;
	sc->nr_layers = w->c->in->nr_layers;
	sc->nr_slots = w->nr_slots;
	if (!make_units(w, sc) || !make_pieces(w, sc) || !make_visits(w, sc)) {
		schedule_destroy(sc);
		return PLAN_NO_MEMORY;
	}
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
