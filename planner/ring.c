/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The geometry of a ring pool (ring.h).  Positions before 0 belong to earlier
 * iterations.  Called by timeline.c and search.c.  Pure; no locks.
 */
#include "planner/ring.h"

#include <string.h>

/* A place in some iteration: `lap` 0 is the one that is being laid out. */
struct cursor {
	const struct plan_pool *pool;
	int64_t place, lap;
};

static int64_t cursor_start(const struct cursor *c)
{
	return c->lap * (int64_t)c->pool->positions +
		(int64_t)c->pool->places[c->place].position;
}

static int64_t cursor_end(const struct cursor *c)
{
	return cursor_start(c) + c->pool->places[c->place].chunks;
}

static void cursor_next(struct cursor *c)
{
	if (++c->place == c->pool->nr_places) {
		c->place = 0;
		c->lap++;
	}
}

static void cursor_prev(struct cursor *c)
{
	if (c->place-- == 0) {
		c->place = c->pool->nr_places - 1;
		c->lap--;
	}
}

static int32_t cursor_layer(const struct cursor *c, uint32_t nr_layers)
{
	return (int32_t)(c->lap * nr_layers +
		c->pool->places[c->place].layer);
}

/* The last place that starts before x. */
static struct cursor cursor_before(const struct plan_pool *pool, int64_t x)
{
	int64_t n = (int64_t)pool->positions, lap, low = 0, high, rest;
	struct cursor c = { pool, 0, 0 };

	lap = (x >= 0 ? x : x - n + 1) / n;
	rest = x - lap * n;
	high = pool->nr_places;
	while (low < high) {
		int64_t mid = (low + high) / 2;

		if ((int64_t)pool->places[mid].position < rest)
			low = mid + 1;
		else
			high = mid;
	}
	c.lap = lap;
	c.place = low;
	cursor_prev(&c);
	return c;
}

int32_t ring_after(const struct plan_pool *pool, uint32_t nr_layers,
	int64_t first, int64_t end)
{
	int64_t ring = pool->nr_chunks;

	/* What pads overwrote one turn ago may be in use: look further back. */
	for (;;) {
		struct cursor c;

		first -= ring;
		end -= ring;
		c = cursor_before(pool, end);
		if (cursor_end(&c) > first)
			return cursor_layer(&c, nr_layers);
	}
}

uint32_t ring_max_pieces(uint32_t nr_places)
{
	/* Each place's start and end cut at most one other place. */
	return 3 * nr_places + 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Places follow each other, with less pads in all than the ring is long. */
static uint32_t turning_pieces(const struct plan_pool *pool,
	uint32_t nr_layers, bool split, struct ring_piece *pieces)
{
	int64_t ring = pool->nr_chunks;
	uint32_t nr = 0;
	struct cursor next;

	/* The first place that starts at or after what place 0 overwrites. */
	next = cursor_before(pool, (int64_t)pool->places[0].position - ring);
	cursor_next(&next);
	for (uint32_t i = 0; i < pool->nr_places; i++) {
		const struct plan_place *p = &pool->places[i];
		int64_t at = (int64_t)p->position, end = at + p->chunks;
		int64_t first = at;

		while (first < end) {
			struct cursor owner;
			int64_t cut = end;

			/* Past places that start at or before the first one. */
			while (cursor_start(&next) <= first - ring)
				cursor_next(&next);
			owner = next;
			cursor_prev(&owner);
			/* Pads in front go with the place behind them. */
			if (cursor_end(&owner) <= first - ring &&
				cursor_start(&next) < end - ring) {
				owner = next;
				cursor_next(&next);
			}
			if (split && cursor_start(&next) + ring < end)
				cut = cursor_start(&next) + ring;
			struct ring_piece *k = &pieces[nr++];

			k->place = i;
			k->offset = (uint64_t)(first - at) * pool->chunk_bytes;
			k->length = least((uint64_t)(cut - at) *
				pool->chunk_bytes, p->bytes) - k->offset;
			while (!split && cursor_start(&next) < end - ring) {
				owner = next;
				cursor_next(&next);
			}
			if (cursor_end(&owner) > first - ring)
				k->after = cursor_layer(&owner, nr_layers);
			else
				k->after = ring_after(pool, nr_layers, first,
					cut);
			first = cut;
		}
	}
	return nr;
}

/* Pieces of one place while they are found, in chunks of it. */
struct finder {
	const struct plan_pool *pool;
	uint32_t nr_layers, place;
	struct ring_piece *pieces;
	uint32_t nr;
};

static void found(struct finder *f, int64_t first, int64_t end, int32_t after)
{
	struct ring_piece *last = f->pieces + f->nr - 1;

	if (first >= end)
		return;
	if (f->nr > 0 && last->after == after &&
		last->offset + last->length == (uint64_t)first)
		last->length += (uint64_t)(end - first);
	else
		f->pieces[f->nr++] = (struct ring_piece){ (uint64_t)first,
			(uint64_t)(end - first), f->place, after };
}

/*
 * Who was last in chunks [first, end) of the place: of the places back from
 * `c`, at the latest itself an iteration ago.
 */
static void find(struct finder *f, int64_t first, int64_t end, struct cursor c)
{
	int64_t ring = f->pool->nr_chunks, start, at, long_end, short_end;
	int32_t layer;

	if (first >= end)
		return;
	start = (int64_t)f->pool->places[f->place].position;
	/* Around the ring its chunks are [at, long_end), also a turn before. */
	do {
		cursor_prev(&c);
		at = (cursor_start(&c) - start) % ring;
		if (at < 0)
			at += ring;
		long_end = at + f->pool->places[c.place].chunks;
		short_end = long_end - ring;
	} while ((at >= end || long_end <= first) && short_end <= first);
	layer = cursor_layer(&c, f->nr_layers);
	if (short_end > first) {
		if (short_end > end)
			short_end = end;
		found(f, first, short_end, layer);
		first = short_end;
	}
	if (at > end)
		at = end;
	if (long_end > end)
		long_end = end;
	find(f, first, at, c);
	if (at < first)
		at = first;
	if (long_end < at)
		long_end = at;
	found(f, at, long_end, layer);
	find(f, long_end, end, c);
}

/* In the order of their releases, or as one; from chunks to bytes. */
static uint32_t arrange(struct finder *f, bool split)
{
	const struct plan_place *p = &f->pool->places[f->place];
	struct ring_piece *k = f->pieces;

	for (uint32_t i = 1; i < f->nr; i++) {
		struct ring_piece piece = k[i];
		uint32_t j;

		for (j = i; j > 0 && k[j - 1].after > piece.after; j--)
			k[j] = k[j - 1];
		k[j] = piece;
	}
	if (!split) {
		k[0].after = k[f->nr - 1].after;
		k[0].offset = 0;
		k[0].length = p->chunks;
		f->nr = 1;
	}
	for (uint32_t i = 0; i < f->nr; i++) {
		uint64_t end = (k[i].offset + k[i].length) *
			f->pool->chunk_bytes;

		k[i].offset *= f->pool->chunk_bytes;
		k[i].length = least(end, p->bytes) - k[i].offset;
	}
	return f->nr;
}

uint32_t ring_pieces(const struct plan_pool *pool, uint32_t nr_layers,
	bool split, struct ring_piece *pieces)
{
	uint32_t nr = 0;

	if (pool->nr_places == 0)
		return 0;
	if (pool->pad_positions < pool->nr_chunks)
		return turning_pieces(pool, nr_layers, split, pieces);
	for (uint32_t i = 0; i < pool->nr_places; i++) {
		struct finder f = { pool, nr_layers, i, pieces + nr, 0 };

		find(&f, 0, pool->places[i].chunks,
			(struct cursor){ pool, i, 0 });
		nr += arrange(&f, split);
	}
	return nr;
}

/* End of a layer of this or one of the two iterations before. */
static double end_of(const double *ends, uint32_t nr, int32_t layer,
	uint32_t iteration)
{
	int64_t at = layer;

	for (; at < 0; at += nr)
		if (iteration-- == 0)
			return 0;
	return ends[(iteration % 3) * (size_t)nr + (size_t)at];
}

static bool adjoin(const struct ring_piece *a, const struct ring_piece *b)
{
	return a->place == b->place && (a->offset + a->length == b->offset ||
		b->offset + b->length == a->offset);
}

#define JOIN_ITERATIONS 3

uint32_t ring_join(const struct plan_pool *pool, const struct timeline *t,
	const struct timeline_link *link, struct ring_piece *pieces,
	uint32_t nr, double *scratch)
{
	uint32_t n = t->nr_layers, out = 0;
	double now = 0, idle = 0;

	/* The times of earlier iterations tell which pieces to join. */
	for (uint32_t k = 0; k < JOIN_ITERATIONS; k++) {
		bool write = k == JOIN_ITERATIONS - 1;
		double begin = t->wrap ? 0 : now;
		uint32_t j = 0;

		for (uint32_t i = 0; i < n; i++) {
			while (j < nr && pool->places[pieces[j].place].layer == i) {
				struct ring_piece p = pieces[j++];
				double start = end_of(scratch, n, p.after, k) +
					t->release_ms;

				if (start < idle)
					start = idle;
				if (start < begin)
					start = begin;
				while (j < nr && adjoin(&p, &pieces[j])) {
					double then = end_of(scratch, n,
						pieces[j].after, k) +
						t->release_ms;

					if (then > start + link->latency_ms)
						break;
					if (then > start)
						start = then;
					p.offset = least(p.offset,
						pieces[j].offset);
					p.length += pieces[j].length;
					p.after = pieces[j++].after;
				}
				idle = start + timeline_copy_ms(link, p.length);
				if (idle > now)
					now = idle;
				if (write)
					pieces[out++] = p;
			}
			now += t->duration_ms[i];
			scratch[(k % 3) * (size_t)n + i] = now;
		}
	}
	return out;
}
