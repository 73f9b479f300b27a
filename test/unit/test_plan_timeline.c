/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner/timeline.c against a simulation that keeps a table of what lies in
 * every chunk or block and runs hundreds of iterations; on random plans.
 */
#include "planner/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

#define MAX_LAYERS 7
#define MAX_COPIES 64
#define MAX_PLACES 128
#define WARM_UP 300
#define MEASURED 840		/* divisible by every number to 8 */

static uint64_t seed;

static uint32_t pick(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 33) % below);
}

/* A plan, and what the simulation needs of it. */
struct random_plan {
	struct layer_statistics layers[MAX_LAYERS];
	struct tensor_statistics tensors[MAX_LAYERS];
	struct plan_entry entries[MAX_LAYERS];
	struct plan_slot slots[MAX_LAYERS];
	uint32_t block_slots[MAX_LAYERS], block[MAX_LAYERS], user[MAX_LAYERS];
	uint64_t sizes[MAX_LAYERS];
	struct block_strategy_data blocks;
	struct plan_pool pool;
	struct plan_place places[MAX_LAYERS];
	struct plan_piece pieces[MAX_COPIES];
	struct plan_input in;
	struct strategy_result result;
	struct timeline_options opt;
};

static void random_layers(struct random_plan *p)
{
	memset(p, 0, sizeof(*p));
	p->in.layers = p->layers;
	p->in.nr_layers = 1 + pick(MAX_LAYERS);
	for (uint32_t i = 0; i < p->in.nr_layers; i++) {
		p->tensors[i] = (struct tensor_statistics){
			.id = i,
			.size_bytes = 1 + pick(24),
		};
		p->layers[i] = (struct layer_statistics){
			.tensors = &p->tensors[i],
			.nr = 1,
			.duration_ms = pick(5) ? pick(20) : 0,
		};
	}
	p->opt.link.latency_ms = pick(4);
	p->opt.link.ms_per_byte = 1 + pick(3);
	p->opt.release_ms = pick(3) ? 0 : pick(4);
	p->opt.wrap = pick(4) > 0;
	p->opt.in_slot = pick(4) == 0;
}

/* Some layers' bytes through a few blocks, or each through its own. */
static void random_blocks(struct random_plan *p)
{
	uint32_t n = 0, nr = p->in.nr_layers, nr_blocks = 1 + pick(3);
	uint32_t ahead = 1 + pick(nr), own = pick(4) == 0;
	uint32_t mixed = pick(4) == 0, taken = 0;

	for (uint32_t i = 0; i < nr; i++) {
		if (pick(4) == 0)
			continue;
		if (mixed)
			ahead = 1 + pick(nr);
		p->user[n] = (i + ahead) % nr;
		if (taken & 1u << p->user[n])
			continue;
		taken |= 1u << p->user[n];
		p->entries[n] = (struct plan_entry){
			&p->tensors[p->user[n]], 0,
			1 + pick((uint32_t)p->tensors[p->user[n]].size_bytes),
		};
		p->slots[n] = (struct plan_slot){ i, 1, &p->entries[n] };
		p->block_slots[n] = i;
		p->block[n] = pick(3) ? n % nr_blocks : pick(nr_blocks);
		p->sizes[n] = p->entries[n].length;
		n++;
	}
	p->result.strategy_map.nr = n;
	p->result.strategy_map.slots = p->slots;
	if (own)
		return;
	p->blocks = (struct block_strategy_data){
		.nr = n,
		.slots = p->block_slots,
		.label_to_size_map = p->sizes,
		.label_to_block_id = p->block,
		.transfer_to_compute_map = p->user,
		.nr_blocks = nr_blocks,
	};
	p->result.block_data = &p->blocks;
}

/* The copies for a place need not be in the order of its bytes. */
static void swap_pieces(struct random_plan *p, uint32_t place, uint32_t end)
{
	uint32_t first = end, a, b;

	while (first > 0 && p->pieces[first - 1].place == place)
		first--;
	a = first + pick(end - first);
	b = first + pick(end - first);
	if (pick(2)) {
		struct plan_piece piece = p->pieces[a];

		p->pieces[a] = p->pieces[b];
		p->pieces[b] = piece;
	}
}

static void random_ring(struct random_plan *p)
{
	struct plan_pool *pool = &p->pool;
	uint32_t nr = p->in.nr_layers, n = 0, k = 0, most = 1 + pick(6);
	uint64_t at = 0;
	bool jumps = pick(2);

	pool->chunk_bytes = 1 + pick(4);
	pool->nr_chunks = most + pick(8);
	for (uint32_t i = 0; i < nr; i++) {
		struct plan_place *s = &p->places[n];
		uint64_t cut = 0;

		if (pick(5) == 0)
			continue;
		if (pick(5) == 0)
			at += pick(4);
		/* As far as that: any address. */
		if (jumps && pick(2))
			at += pick(2 * pool->nr_chunks);
		s->layer = i;
		s->chunks = 1 + pick(most);
		s->position = at;
		s->bytes = s->chunks * pool->chunk_bytes -
			pick((uint32_t)pool->chunk_bytes);
		at += s->chunks;
		while (cut < s->bytes) {
			uint64_t len = (1 + pick(s->chunks)) *
				pool->chunk_bytes;

			if (len > s->bytes - cut)
				len = s->bytes - cut;
			p->pieces[k++] = (struct plan_piece){ n, cut, len };
			cut += len;
		}
		swap_pieces(p, n, k);
		p->slots[n] = (struct plan_slot){ (i + nr - 1) % nr, 1,
			&p->entries[n] };
		n++;
	}
	at += pick(3) ? 0 : pick(6);
	pool->positions = (at + pool->nr_chunks - 1) / pool->nr_chunks *
		pool->nr_chunks;
	pool->nr_places = n;
	pool->places = p->places;
	pool->nr_pieces = k;
	pool->pieces = p->pieces;
	p->result.strategy_map.nr = n;
	p->result.strategy_map.slots = p->slots;
	p->result.pool = pool;
}

/* ---- the simulation ------------------------------------------------------------ */

/* One copy of an iteration: what it waits for is looked up in the table. */
struct sim_copy {
	double ms;
	int64_t use, slot;	/* layers, from the copy's iteration on */
	uint32_t first, nr;	/* cells of the table that it fills */
};

struct sim {
	uint32_t nr_copies, nr_cells;
	struct sim_copy copies[MAX_COPIES];
	/* The layer that reads a cell's bytes, counted over all iterations. */
	int64_t reader[MAX_PLACES];
	double *end;		/* of every layer run so far */
	double *start;
	double *arrived;	/* of a layer's last byte */
	uint32_t *missing;	/* copies that the layer still waits for */
};

static void sim_plan(struct sim *s, const struct random_plan *p)
{
	const struct strategy_result *r = &p->result;
	int64_t nr = p->in.nr_layers;

	memset(s, 0, sizeof(*s));
	if (r->pool) {
		s->nr_cells = r->pool->nr_chunks;
		for (uint32_t j = 0; j < r->pool->nr_pieces; j++) {
			const struct plan_piece *k = &r->pool->pieces[j];
			const struct plan_place *l =
				&r->pool->places[k->place];
			uint64_t c = r->pool->chunk_bytes;

			s->copies[j] = (struct sim_copy){
				.use = l->layer,
				.slot = (int64_t)l->layer - 1,
				.first = (uint32_t)((l->position +
					k->offset / c) % s->nr_cells),
				.nr = (uint32_t)((k->length + c - 1) / c),
				.ms = k->length * p->opt.link.ms_per_byte +
					p->opt.link.latency_ms,
			};
		}
		s->nr_copies = r->pool->nr_pieces;
	} else {
		for (uint32_t j = 0; j < r->strategy_map.nr; j++)
			s->copies[j] = (struct sim_copy){
				.use = p->user[j] + (p->user[j] >
					p->slots[j].slot ? 0 : nr),
				.slot = p->slots[j].slot,
				.first = r->block_data ? p->block[j] : j,
				.nr = 1,
				.ms = p->entries[j].length *
					p->opt.link.ms_per_byte +
					p->opt.link.latency_ms,
			};
		s->nr_cells = MAX_COPIES;
		s->nr_copies = r->strategy_map.nr;
	}
	for (uint32_t i = 0; i < MAX_PLACES; i++)
		s->reader[i] = -1;
}

/* False: it must wait for a layer that has not run. */
static bool sim_copy(struct sim *s, const struct random_plan *p, int64_t lap,
	const struct sim_copy *c, int64_t done, double *idle)
{
	int64_t nr = p->in.nr_layers, use = lap * nr + c->use;
	int64_t slot = lap * nr + c->slot;
	double at = *idle;

	for (uint32_t k = 0; k < c->nr; k++) {
		int64_t r = s->reader[(c->first + k) % s->nr_cells];

		if (r == use)
			continue;
		if (r >= done)
			return false;
		if (r >= 0)
			at = fmax(at, s->end[r] + p->opt.release_ms);
	}
	if (!p->opt.wrap && lap > 0) {
		if (lap * nr > done)
			return false;
		at = fmax(at, s->end[lap * nr - 1]);
	}
	if (p->opt.in_slot && slot >= 0) {
		if (slot >= done)
			return false;
		at = fmax(at, s->start[slot]);
	}
	at += c->ms;
	for (uint32_t k = 0; k < c->nr; k++)
		s->reader[(c->first + k) % s->nr_cells] = use;
	s->arrived[use] = at;
	s->missing[use]--;
	*idle = at;
	return true;
}

/* Runs it; false if it comes to a stand. */
static bool sim_run(struct sim *s, const struct random_plan *p, int64_t laps)
{
	int64_t nr = p->in.nr_layers, all = laps * nr, done = 0, copy;
	double idle = 0, now = 0;

	s->end = calloc(all + 3 * nr, sizeof(double));
	s->start = calloc(all + 3 * nr, sizeof(double));
	s->arrived = calloc(all + 3 * nr, sizeof(double));
	s->missing = calloc(all + 3 * nr, sizeof(*s->missing));
	for (int64_t lap = -1; lap <= laps; lap++)
		for (uint32_t j = 0; j < s->nr_copies; j++)
			if (lap * nr + s->copies[j].use >= 0)
				s->missing[lap * nr + s->copies[j].use]++;
	/* First what the iteration before would have brought. */
	copy = -(int64_t)s->nr_copies;
	while (done < all) {
		bool moved = false;

		while (s->nr_copies > 0 && copy / s->nr_copies < laps) {
			int64_t lap = copy < 0 ? -1 : copy / s->nr_copies;
			const struct sim_copy *c =
				&s->copies[copy - lap * s->nr_copies];

			if ((lap >= 0 || c->use >= nr) &&
				!sim_copy(s, p, lap, c, done, &idle))
				break;
			copy++;
			moved = true;
		}
		if (s->missing[done] == 0) {
			now = fmax(now, s->arrived[done]);
			s->start[done] = now;
			now += p->layers[done % nr].duration_ms;
			s->end[done++] = now;
			moved = true;
		}
		if (!moved)
			return false;
	}
	return true;
}

static void sim_free(struct sim *s)
{
	free(s->end);
	free(s->start);
	free(s->arrived);
	free(s->missing);
}

/* ---- comparisons ---------------------------------------------------------------- */

/* The reported times repeated every period obey every rule, cell by cell. */
static void check_times(const struct sim *s, const struct random_plan *p,
	const struct timeline_times *t)
{
	int64_t nr = p->in.nr_layers;
	double last[MAX_PLACES], eps = 1e-7 * (1 + t->period_ms);
	double idle = -INFINITY;

	for (uint32_t i = 0; i < MAX_PLACES; i++)
		last[i] = -INFINITY;
	for (int lap = 0; lap < 4; lap++)
		for (uint32_t j = 0; j < s->nr_copies; j++) {
			const struct sim_copy *c = &s->copies[j];
			double at = t->copy_start_ms[j] + lap * t->period_ms;
			uint32_t user = (uint32_t)(c->use % nr);
			double read = t->layer_start_ms[user] +
				(lap + c->use / nr) * t->period_ms;

			ck_assert_double_ge(at, idle - eps);
			for (uint32_t k = 0; k < c->nr; k++) {
				uint32_t cell = (c->first + k) % s->nr_cells;
				double end = read +
					p->layers[user].duration_ms;

				if (last[cell] != end)
					ck_assert_double_ge(at, last[cell] +
						p->opt.release_ms - eps);
			}
			for (uint32_t k = 0; k < c->nr; k++)
				last[(c->first + k) % s->nr_cells] = read +
					p->layers[user].duration_ms;
			idle = at + c->ms;
			ck_assert_double_ge(read, idle - eps);
		}
	for (int64_t i = 0; i + 1 < nr; i++)
		ck_assert_double_ge(t->layer_start_ms[i + 1] + eps,
			t->layer_start_ms[i] + p->layers[i].duration_ms);
	ck_assert_double_ge(t->period_ms + eps, t->layer_start_ms[nr - 1] +
		p->layers[nr - 1].duration_ms);
}

/* Returns whether the plan could run. */
static bool compare(const struct random_plan *p)
{
	struct plan_arena *arena = plan_arena_create();
	struct timeline t;
	struct timeline_times times;
	struct sim s;
	enum plan_status status;
	int64_t nr = p->in.nr_layers;
	double mean;
	bool ran;

	sim_plan(&s, p);
	ran = sim_run(&s, p, WARM_UP + MEASURED);
	status = timeline_of_result(&p->result, &p->in, &p->opt, arena, &t);
	if (status == PLAN_OK)
		status = plan_timeline(&t, true, arena, &times);
	ck_assert_int_eq(status, ran ? PLAN_OK : PLAN_CONFLICT);
	if (ran) {
		mean = (s.end[(WARM_UP + MEASURED) * nr - 1] -
			s.end[WARM_UP * nr - 1]) / MEASURED;
		ck_assert_double_eq_tol(times.period_ms, mean,
			1e-9 * (1 + mean));
		ck_assert_double_eq_tol(times.cold_ms, s.end[nr - 1],
			1e-9 * (1 + mean));
		ck_assert_double_eq_tol(times.stall_ms + times.compute_ms,
			times.period_ms, 1e-9 * (1 + mean));
		check_times(&s, p, &times);
	}
	sim_free(&s);
	plan_arena_destroy(arena);
	return ran;
}

/* Of each kind, in parts. */
#define PARTS 4
#ifdef SAN_BUILD
#define NR_PLANS 500
#else
#define NR_PLANS 5000
#endif

START_TEST(test_blocks)
{
	int ran = 0;

	for (uint32_t k = 1 + (uint32_t)_i; k <= NR_PLANS; k += PARTS) {
		struct random_plan p;

		seed = k * 0x9e3779b97f4a7c15u;
		random_layers(&p);
		random_blocks(&p);
		ran += compare(&p);
	}
	/* Both outcomes occur. */
	ck_assert_int_gt(ran, NR_PLANS / PARTS / 3);
	ck_assert_int_lt(ran, NR_PLANS / PARTS);
}
END_TEST

START_TEST(test_ring)
{
	for (uint32_t k = 1 + (uint32_t)_i; k <= NR_PLANS; k += PARTS) {
		struct random_plan p;

		seed = k * 0xd1342543de82ef95u;
		random_layers(&p);
		random_ring(&p);
		ck_assert(compare(&p));
	}
}
END_TEST

START_TEST(test_pieces_and_table)
{
	struct transfer_time points[] = { { 10, 2 }, { 20, 3 }, { 40, 9 } };
	struct timeline_link link = { .latency_ms = 1, .ms_per_byte = 2 };
	double latency, rate;

	ck_assert_double_eq(timeline_copy_ms(&link, 0), 0);
	ck_assert_double_eq(timeline_copy_ms(&link, 10), 21);
	link.piece_bytes = 4;
	ck_assert_double_eq(timeline_copy_ms(&link, 10), 23);
	link.piece_bytes = 0;
	link.points = points;
	link.nr_points = 3;
	ck_assert_double_eq(timeline_copy_ms(&link, 15), 2.5);
	ck_assert_double_eq(timeline_copy_ms(&link, 5), 1.5);
	ck_assert_double_eq(timeline_copy_ms(&link, 50), 12);
	timeline_link_below(&link, &latency, &rate);
	for (uint64_t b = 1; b < 1000; b++)
		ck_assert_double_le(latency + rate * b,
			timeline_copy_ms(&link, b) + 1e-12);
}
END_TEST

START_TEST(test_link_of_table)
{
	struct transfer_time points[8];
	struct memory_stats stats = { points, 8 };
	struct plan_input in = { .memory_stats = &stats };
	struct plan_arena *arena = plan_arena_create();
	struct timeline_link link;

	for (int i = 0; i < 8; i++) {
		points[i].bytes = 65536ull << (2 * (7 - i));
		points[i].ms = 0.01 + points[i].bytes / 25e6;
	}
	ck_assert_int_eq(timeline_link_of(&in, arena, &link), PLAN_OK);
	ck_assert_uint_eq(link.nr_points, 0);
	ck_assert_double_eq_tol(link.latency_ms, 0.01, 1e-9);
	ck_assert_double_eq_tol(link.ms_per_byte * 25e6, 1, 1e-9);
	/* A kink is kept. */
	points[3].ms *= 2;
	ck_assert_int_eq(timeline_link_of(&in, arena, &link), PLAN_OK);
	ck_assert_uint_eq(link.nr_points, 8);
	for (int i = 0; i < 8; i++)
		ck_assert_double_eq_tol(timeline_copy_ms(&link,
			points[i].bytes), points[i].ms, 1e-12);
	stats.nr = 0;
	ck_assert_int_eq(timeline_link_of(&in, arena, &link),
		PLAN_NEEDS_TABLE);
	plan_arena_destroy(arena);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("plan_timeline");
	TCase *t = tcase_create("timeline");

	tcase_set_timeout(t, 100);
	tcase_add_loop_test(t, test_blocks, 0, PARTS);
	tcase_add_loop_test(t, test_ring, 0, PARTS);
	tcase_add_test(t, test_pieces_and_table);
	tcase_add_test(t, test_link_of_table);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
