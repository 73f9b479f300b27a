/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From drafts to a schedule: slots that layers agree on, units, pieces, visits.
 * Called by convert.c.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/convert_int.h"
#include "shim/schedule.h"

/* ---- slots that layers which share something agree on ---- */

struct slots {
	/* By page from `low` on; CONVERT_NOBODY: none yet. */
	uint32_t *of;
	/* By slot: stamp of the last page that sees it so. */
	uint32_t *taken;
	uint32_t stamp;
};

/* Slots of what some layer uses together with the tensor are taken. */
static void mark_taken(const struct convert_work *w, struct slots *s,
	uint32_t tensor)
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

				if (slot != CONVERT_NOBODY)
					s->taken[slot] = s->stamp;
			}
		}
	}
}

/* A page of a draft, and how many layers use it. */
struct turn {
	uint32_t users;
	uint32_t layer, page;	/* index into the layer's draft */
};

static int by_users(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->users != y->users)
		return x->users > y->users ? -1 : 1;
	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return x->page < y->page ? -1 : x->page > y->page;
}

static struct turn *turns_make(const struct convert_work *w, uint32_t *nr)
{
	uint32_t *users = calloc((size_t)w->c->nr_tensors + 1,
		sizeof(*users));
	uint32_t n = 0;
	struct turn *t = NULL;

	for (uint32_t l = 0; l < w->c->in->nr_layers; l++)
		n += w->layers[l].nr;
	if (users != NULL)
		t = malloc(((size_t)n + 1) * sizeof(*t));
	*nr = n;
	n = 0;
	for (uint32_t l = 0; t != NULL && l < w->c->in->nr_layers; l++)
		for (uint32_t k = 0; k < w->c->in->layers[l].nr; k++)
			users[w->c->in->layers[l].tensors[k].id]++;
	for (uint32_t l = 0; t != NULL && l < w->c->in->nr_layers; l++)
		for (uint32_t i = 0; i < w->layers[l].nr; i++)
			t[n++] = (struct turn){
				users[w->layers[l].pages[i].tensor], l, i };
	free(users);
	return t;
}

/* In the order of the turns; INFEASIBLE: more than `most` slots. */
static enum plan_status slots_give(struct convert_work *w, struct slots *s,
	const struct turn *turns, uint32_t nr, uint32_t most)
{
	const struct convert_page *before = NULL;

	for (uint32_t i = 0; i < w->high - w->low; i++)
		s->of[i] = CONVERT_NOBODY;
	for (uint32_t i = 0; i < nr; i++) {
		struct convert_page *p =
			&w->layers[turns[i].layer].pages[turns[i].page];
		uint32_t n = 0, slot = p->slot;

		if (before == NULL || p->tensor != before->tensor)
			mark_taken(w, s, p->tensor);
		before = p;
		for (; n < w->nr_slots && s->taken[slot] == s->stamp; n++)
			slot = (slot + 1) % w->nr_slots;
		if (n == w->nr_slots && n >= most)
			return PLAN_INFEASIBLE;
		if (n == w->nr_slots)
			slot = w->nr_slots++;
		p->slot = slot;
		s->of[p->page - w->low] = slot;
		s->taken[slot] = s->stamp;
	}
	return PLAN_OK;
}

/*
 * A plan gives a page another place for each use; it keeps that of the first
 * one, so that it can stay where it is.  Then no two pages that one layer uses
 * may have the same: who comes later takes the next free one.  If all are
 * taken, the pool is too small; it grows up to `most` slots.  Where that does
 * not do, those come first that most layers use, since nothing may stand where
 * they do for so long.
 */
static enum plan_status part_slots(struct convert_work *w, uint32_t most)
{
	uint32_t nr;
	struct turn *turns = turns_make(w, &nr);
	struct slots s = {
		.of = malloc(((size_t)(w->high - w->low) + 1) * sizeof(*s.of)),
		.taken = calloc((size_t)most + 1, sizeof(*s.taken)),
	};
	enum plan_status status = PLAN_NO_MEMORY;

	if (turns != NULL && s.of != NULL && s.taken != NULL) {
		status = slots_give(w, &s, turns, nr, most);
		if (status == PLAN_INFEASIBLE) {
			qsort(turns, nr, sizeof(*turns), by_users);
			status = slots_give(w, &s, turns, nr, most);
		}
	}
	free(turns);
	free(s.of);
	free(s.taken);
	return status;
}

/* ---- units ---- */

/*
 * Pages of a layer's draft that the same layers use are a unit, in the order
 * of the draft.  Here they get its number and their place in it.
 */
static void number_units(struct convert_work *w)
{
	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		struct convert_draft *d = &w->layers[l];
		uint32_t left = d->nr;

		for (uint32_t i = 0; i < d->nr; i++)
			d->pages[i].unit = CONVERT_NOBODY;
		for (uint32_t i = 0; i < d->nr && left > 0; i++) {
			uint64_t users = w->users[d->pages[i].tensor];
			uint32_t n = 0;

			if (d->pages[i].unit != CONVERT_NOBODY)
				continue;
			for (uint32_t k = i; k < d->nr; k++) {
				struct convert_page *p = &d->pages[k];

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

static bool make_units(struct convert_work *w, struct schedule *sc)
{
	for (uint32_t l = 0; l < w->c->in->nr_layers; l++) {
		const struct convert_draft *d = &w->layers[l];

		for (uint32_t i = 0; i < d->nr; i++)
			sc->units[d->pages[i].unit].nr++;
		for (uint32_t i = 0; i < d->nr; i++) {
			const struct convert_page *p = &d->pages[i];
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
static uint32_t piece_run(const struct convert_draft *d, uint32_t i,
	uint32_t end)
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
static void each_piece(const struct convert_work *w, struct schedule *sc,
	void (*fn)(struct schedule *sc, struct unit_piece p))
{
	for (uint32_t i = 0; i < w->nr_pieces; i++) {
		const struct convert_piece *p = &w->pieces[i];
		const struct convert_draft *d = &w->layers[p->layer];
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
static bool make_pieces(struct convert_work *w, struct schedule *sc)
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
static uint32_t visit_units(const struct convert_work *w, uint32_t layer,
	uint32_t *seen, struct visits *v)
{
	const struct layer_statistics *l = &w->c->in->layers[layer];
	uint32_t n = 0;

	for (uint32_t k = 0; k < l->nr; k++) {
		const struct observe_tensor *t =
			&w->c->tensors[l->tensors[k].id];

		for (uint32_t i = 0; i < t->nr; i++) {
			uint32_t unit = w->taken[t->first + i - w->low];

			if (unit == CONVERT_NOBODY || seen[unit] == layer + 1)
				continue;
			seen[unit] = layer + 1;
			if (v != NULL)
				visits_add_use(v, unit);
			n++;
		}
	}
	return n;
}

static bool make_visits(const struct convert_work *w, struct schedule *sc)
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

enum plan_status convert_units(struct convert_work *w, uint32_t most,
	struct schedule **out)
{
	enum plan_status status = PLAN_OK;
	struct schedule *sc;

	if (w->shared)
		status = part_slots(w, most);
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
