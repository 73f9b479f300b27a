/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of a plan.json of `optimal`: its ring, the layers' places in it and
 * the copies.  The geometry is checked to add up before anybody follows it.
 * Called by plan_io_plan.c; no locks.
 */
#include "planner/plan_io_int.h"

#include <inttypes.h>
#include <stdlib.h>

#include "planner/timeline.h"

#define MOST_CHUNKS (1u << 30)

static const char *const pool_keys[] = {
	"chunk_bytes", "nr_chunks", "positions", "pad_positions", "peak_bytes",
	"streamed_bytes", "places", "pieces", NULL,
};
static const char *const place_keys[] = {
	"layer", "position", "chunks", "bytes", NULL,
};
static const char *const piece_keys[] = { "place", "offset", "length", NULL };

static void read_places(struct plan_io_reader *r, struct json_object *o,
	struct plan_pool *pool)
{
	struct plan_io_doc *d = r->d;
	struct json_object *list, *item;
	struct plan_place *p;
	uint64_t at = 0, bytes = 0;

	if (!plan_io_array(d, o, "places", true, &list, &pool->nr_places))
		return;
	p = plan_arena_alloc(d->arena, pool->nr_places, sizeof(*p));
	if (!p) {
		plan_io_no_memory(d);
		return;
	}
	pool->places = p;
	for (uint32_t i = 0; i < pool->nr_places && !d->err; i++, p++) {
		item = plan_io_item_object(d, list, i);
		if (!item)
			return;
		plan_io_layer_member(r, item, "layer", true, &p->layer);
		plan_io_whole(d, item, "position", true, INT64_MAX,
			&p->position);
		plan_io_nr(d, item, "chunks", true, MOST_CHUNKS, &p->chunks);
		plan_io_whole(d, item, "bytes", true, INT64_MAX, &p->bytes);
		plan_io_unknown(d, item, place_keys, NULL, PLAN_IO_TOP, 0, 0);
		if (d->err)
			return;
		if (i > 0 && p->layer <= p[-1].layer)
			plan_io_bad(d, item, "places must be in the order of "
				"layers, one for each");
		else if (p->position < at || p->position > pool->positions ||
			 p->chunks > pool->positions - p->position)
			plan_io_bad(d, item, "the place overlaps another or "
				"ends behind the last position");
		else if (!p->chunks || p->chunks > pool->nr_chunks ||
			 !p->bytes ||
			 (p->bytes - 1) / pool->chunk_bytes != p->chunks - 1)
			plan_io_bad(d, item, "\"chunks\" is not what \"bytes\" "
				"takes, or more than the pool has");
		at = p->position + p->chunks;
		bytes += p->bytes;
		if (bytes > INT64_MAX)
			plan_io_bad(d, item, "more bytes than any machine has");
	}
}

static int by_offset(const void *a, const void *b)
{
	const struct plan_piece *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Place after place; within one in any order, but every byte once. */
static void check_pieces(struct plan_io_reader *r, struct json_object *list,
	const struct plan_pool *pool)
{
	struct plan_piece *sorted = plan_arena_alloc(r->d->arena,
		(size_t)pool->nr_pieces + 1, sizeof(*sorted));
	uint32_t i = 0, first, place;
	uint64_t at;

	if (!sorted) {
		plan_io_no_memory(r->d);
		return;
	}
	for (place = 0; place < pool->nr_places; place++) {
		for (first = i; i < pool->nr_pieces &&
			pool->pieces[i].place == place; i++)
			sorted[i] = pool->pieces[i];
		qsort(&sorted[first], i - first, sizeof(*sorted), by_offset);
		for (at = 0; first < i && sorted[first].offset == at; first++)
			at += sorted[first].length;
		if (first < i || at != pool->places[place].bytes)
			break;
	}
	if (place < pool->nr_places || i < pool->nr_pieces)
		plan_io_bad(r->d, list, "pieces must cover the places one "
			"after the other, each byte once; those of place %"
			PRIu32 " do not", place);
}

static void read_pieces(struct plan_io_reader *r, struct json_object *o,
	struct plan_pool *pool)
{
	struct plan_io_doc *d = r->d;
	struct json_object *list, *item;
	struct plan_piece *p;

	if (!plan_io_array(d, o, "pieces", true, &list, &pool->nr_pieces))
		return;
	p = plan_arena_alloc(d->arena, pool->nr_pieces, sizeof(*p));
	if (!p) {
		plan_io_no_memory(d);
		return;
	}
	pool->pieces = p;
	for (uint32_t i = 0; i < pool->nr_pieces && !d->err; i++, p++) {
		item = plan_io_item_object(d, list, i);
		if (!item)
			return;
		plan_io_nr(d, item, "place", true, UINT32_MAX - 1, &p->place);
		plan_io_whole(d, item, "offset", true, INT64_MAX, &p->offset);
		plan_io_whole(d, item, "length", true, INT64_MAX, &p->length);
		plan_io_unknown(d, item, piece_keys, NULL, PLAN_IO_TOP, 0, 0);
		if (d->err)
			return;
		if (p->place >= pool->nr_places || !p->length ||
		    p->offset >= pool->places[p->place].bytes ||
		    p->length > pool->places[p->place].bytes - p->offset) {
			plan_io_bad(d, item, "the piece is not a part of a "
				"place");
			return;
		}
	}
	if (!d->err)
		check_pieces(r, list, pool);
}

/* Places and slots of the map are the same transfers in the same order. */
static void check_pool(struct plan_io_reader *r, struct json_object *o,
	struct plan_pool *pool)
{
	const struct strategy_map *m = &r->f->result.strategy_map;
	uint64_t chunks = 0, bytes = 0;
	uint32_t p = 0;

	for (uint32_t i = 0; i < pool->nr_places; i++) {
		chunks += pool->places[i].chunks;
		bytes += pool->places[i].bytes;
	}
	if (pool->positions - chunks != pool->pad_positions)
		plan_io_bad(r->d, o, "\"pad_positions\" is not what the places "
			"leave");
	if (bytes != pool->streamed_bytes)
		plan_io_bad(r->d, o, "\"streamed_bytes\" is not the sum of the "
			"places");
	for (uint32_t i = 0; i < m->nr && !r->d->err; i++) {
		uint64_t have = plan_slot_bytes(&m->slots[i]);

		if (!have)
			continue;
		if (p >= pool->nr_places || pool->places[p].bytes != have)
			plan_io_bad(r->d, o, "place %" PRIu32 " and slot "
				"\"%.80s\" do not agree", p,
				r->layers[m->slots[i].slot].label);
		p++;
	}
	if (!r->d->err && p != pool->nr_places)
		plan_io_bad(r->d, o, "places without a slot");
}

void plan_io_read_pool(struct plan_io_reader *r, struct json_object *top)
{
	struct plan_pool *pool = plan_arena_alloc(r->d->arena, 1,
		sizeof(*pool));
	struct plan_io_doc *d = r->d;
	struct json_object *o;
	uint64_t room;

	if (!plan_io_object(d, top, "pool", false, &o))
		return;
	if (!pool) {
		plan_io_no_memory(d);
		return;
	}
	plan_io_whole(d, o, "chunk_bytes", true, INT64_MAX,
		&pool->chunk_bytes);
	plan_io_nr(d, o, "nr_chunks", true, MOST_CHUNKS, &pool->nr_chunks);
	plan_io_whole(d, o, "positions", true, INT64_MAX, &pool->positions);
	plan_io_whole(d, o, "pad_positions", true, INT64_MAX,
		&pool->pad_positions);
	plan_io_whole(d, o, "peak_bytes", true, INT64_MAX, &pool->peak_bytes);
	plan_io_whole(d, o, "streamed_bytes", true, INT64_MAX,
		&pool->streamed_bytes);
	if (!d->err && (!pool->chunk_bytes ||
	    __builtin_mul_overflow(pool->chunk_bytes, pool->nr_chunks, &room) ||
	    room > INT64_MAX))
		plan_io_bad(d, o, "chunk_bytes must be above 0 and the pool "
			"smaller");
	/* Whole turns of the ring, and not too many of nothing but pads. */
	if (!d->err && (pool->nr_chunks ? pool->positions % pool->nr_chunks ||
			pool->pad_positions > pool->positions ||
			pool->pad_positions / PLAN_MOST_PADS > pool->positions -
			pool->pad_positions : pool->positions != 0))
		plan_io_bad(d, o, "\"positions\" must be a multiple of "
			"\"nr_chunks\", not most of them pads");
	if (!d->err)
		read_places(r, o, pool);
	if (!d->err)
		read_pieces(r, o, pool);
	if (!d->err)
		check_pool(r, o, pool);
	plan_io_unknown(d, o, pool_keys, NULL, PLAN_IO_TOP, 0, 0);
	r->f->result.pool = pool;
}
