/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans to schedules.  A draft lists, by layer, the pages that are streamed and
 * the slot of each; then units are made of the layers that have any.
 */
#include "shim/convert.h"

#include <stdlib.h>
#include <string.h>

#include "planner/timeline.h"
#include "shim/convert_int.h"
#include "shim/schedule.h"

#define SLOT_UNKNOWN UINT32_MAX

static uint32_t pages_of(const struct convert_work *w, uint64_t bytes)
{
	return (uint32_t)((bytes + w->c->page_bytes - 1) / w->c->page_bytes);
}

static void draft_add(struct convert_work *w, uint32_t layer, uint32_t tensor,
	uint32_t page, uint32_t slot)
{
	struct convert_draft *l = &w->layers[layer];
	struct convert_page *grown;

	if (w->taken[page - w->low] != CONVERT_NOBODY)
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
	l->pages[l->nr++] = (struct convert_page){ .page = page, .slot = slot,
		.tensor = tensor };
	if (slot != SLOT_UNKNOWN && slot >= w->nr_slots)
		w->nr_slots = slot + 1;
}

static void piece_add(struct convert_work *w, uint32_t layer, uint32_t first,
	uint32_t nr)
{
	struct convert_piece *grown;

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
	w->pieces[w->nr_pieces++] = (struct convert_piece){ layer, first, nr };
}

/* Pages of an entry: [*first, *first + n). */
static uint32_t entry_pages(const struct convert_work *w,
	const struct plan_entry *e, uint32_t *first)
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
static void from_pool(struct convert_work *w)
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

static void from_blocks(struct convert_work *w)
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
static void from_map(struct convert_work *w)
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
		struct convert_draft *d = &w->layers[l];

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

static bool work_init(struct convert_work *w)
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
		w->taken[i] = CONVERT_NOBODY;
	for (uint32_t l = c->in->nr_layers; l-- > 0; )
		for (uint32_t k = 0; k < c->in->layers[l].nr; k++) {
			uint32_t id = (uint32_t)c->in->layers[l].tensors[k].id;

			w->shared |= w->users[id] != 0 && w->layer_of[id] != l;
			w->layer_of[id] = l;
			w->users[id] = mix(w->users[id] ^ (l + 1));
		}
	return true;
}

static void work_fini(struct convert_work *w)
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

/* ---- all of it ---- */

static enum plan_status finish(struct convert_work *w, struct schedule **out)
{
	uint32_t resident = 0, streamed = 0, room;

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
	return convert_units(w, room - resident, out);
}

enum plan_status convert_plan(const struct convert *c, struct schedule **out)
{
	struct convert_work w = { .c = c };
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
