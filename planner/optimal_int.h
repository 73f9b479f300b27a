/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the strategy `optimal` share: the model that it searches
 * over and one choice of bytes, ring and pads.  Only optimal*.c include it.
 */
#ifndef BALLAST_PLANNER_OPTIMAL_INT_H
#define BALLAST_PLANNER_OPTIMAL_INT_H

#include "planner/bound.h"
#include "planner/cycle.h"
#include "planner/plan_int.h"
#include "planner/ring.h"
#include "planner/timeline.h"

struct optimal_model {
	uint32_t nr;		/* layers */
	const double *ms;	/* by layer */
	const uint64_t *bytes;	/* by layer: what may be streamed */
	uint64_t total;		/* of bytes */
	uint64_t chunk;
	double compute_ms;	/* sum of ms */
	struct timeline_link link;
	double release_ms;
	bool wrap;
	uint64_t seed;		/* of the random moves */
};

enum optimal_seed {
	SEED_LEVEL,	/* as much of every layer */
	SEED_COMPUTE,	/* less of layers that compute long */
	SEED_WINDOW,	/* as much as the layer before gives time for */
	SEED_FEW,	/* SEED_LEVEL on every so many-th layer */
	SEED_FEW_MORE,
	SEED_FEW_MOST,
	SEED_FLUID,	/* in proportion to the optimum of copies as a fluid */
	NR_SEEDS,
};

/* A ring of `ring` chunks, and what goes through it. */
struct optimal_choice {
	uint64_t chunk;
	uint32_t ring;
	uint64_t unit;		/* of bytes */
	uint64_t most;		/* bytes of one layer */
	enum optimal_seed seed;	/* where it came from */
	bool split;		/* copies are cut where the ring makes them wait */
	uint64_t *bytes;	/* by layer */
	uint32_t *pads;		/* by layer: unused positions before it, < ring */
	uint64_t streamed;	/* sum of bytes */
	double period_ms;
	double bound_ms;	/* of the search; 0: it needed none */
};

/* ---- optimal_trial.c ---- */

struct optimal_trial {
	const struct optimal_model *m;
	struct plan_pool pool;
	struct plan_place *places;
	struct ring_piece *pieces;
	uint32_t nr_pieces;
	struct timeline timeline;
	struct timeline_copy *copies;
	struct cycle *cycle;
	double *ends;
};

enum plan_status optimal_choice_init(struct optimal_choice *c, uint32_t nr,
	struct plan_arena *arena);
void optimal_choice_copy(struct optimal_choice *to,
	const struct optimal_choice *from, uint32_t nr);

enum plan_status optimal_trial_init(struct optimal_trial *t,
	const struct optimal_model *m, struct plan_arena *arena);
/* Lays out pool and pieces of the choice as its `split` says. */
void optimal_trial_lay(struct optimal_trial *t, const struct optimal_choice *c);
/*
 * The choice's period, with the better of split and whole copies; INFINITY if it
 * is above limit.
 */
double optimal_trial_period(struct optimal_trial *t, struct optimal_choice *c,
	double limit);
/* Same choice, another link. */
double optimal_trial_at(struct optimal_trial *t, const struct optimal_choice *c,
	const struct timeline_link *link);

/* ---- optimal_seed.c ---- */

/*
 * Ring sizes (in units of unit bytes) for which sum min(bytes, share * size) -
 * copies * size >= need.  False: none.
 */
struct optimal_range {
	uint64_t low, high;
};
bool optimal_range(const struct optimal_model *m, uint64_t need, uint64_t unit,
	uint32_t blocks, struct optimal_range *out);

struct optimal_seeder {
	const struct optimal_model *m;
	double *want, *weight;
	double *fluid;		/* by layer; only SEED_FLUID needs it */
	uint64_t *cap;
};

enum plan_status optimal_seeder_init(struct optimal_seeder *s,
	const struct optimal_model *m, struct plan_arena *arena);
/*
 * Fills c->bytes so that they sum to at least need + the pool (c->ring chunks of
 * c->chunk), in units of c->unit, at most c->most for each layer.  Pads are not
 * touched.  False: the seed makes no sense here.
 */
bool optimal_seed(struct optimal_seeder *s, struct optimal_choice *c,
	enum optimal_seed seed, uint64_t need);

/* ---- optimal_search.c ---- */

#define OPTIMAL_TOP 6

struct search {
	const struct optimal_model *m;
	uint64_t need;
	bool any;		/* one choice without loss is enough */
	double limit;		/* of any period worth knowing */
	double link_latency_ms, link_ms_per_byte;	/* at the least */
	struct optimal_trial trial;
	struct optimal_seeder seeder;
	struct optimal_choice now, at;
	struct optimal_choice top[OPTIMAL_TOP];	/* by period */
	uint32_t nr_top;
	uint32_t *critical, nr_critical;	/* layers */
	uint64_t random;
	int64_t work;		/* left */
	double bound_ms;	/* 0: not known */
	double fluid_pool;	/* of the bound, in chunks; 0: not known */
};

/* Does this period lose nothing? */
bool optimal_lossless(const struct search *s, double period);
/* Shorter; of equal ones, what streams less. */
bool optimal_better(const struct search *s,
	const struct optimal_choice *a, const struct optimal_choice *b);
/* The period of s->now; INFINITY if it is above limit. */
void optimal_try(struct search *s, double limit);
/* Chunks that the choice's bytes take, and pads that these need. */
uint64_t optimal_positions(const struct search *s,
	const struct optimal_choice *c);
uint64_t optimal_chunks(const struct optimal_choice *c, uint32_t i);
uint64_t optimal_pads(const struct optimal_choice *c, uint64_t used);
/* Are the turns so few that addresses of all kinds are worth a trial? */
bool optimal_few_turns(const struct search *s, const struct optimal_choice *c,
	uint64_t used);

enum plan_status optimal_search_init(struct search *s,
	const struct optimal_model *m, uint64_t need, struct plan_arena *arena);
/* Rings of up to 2 * grid sizes in the range.  True: one loses nothing. */
bool optimal_try_rings(struct search *s, const struct optimal_range *range,
	uint32_t grid);
/* The sizes that it tries, ascending; sizes has room for 2 * grid. */
uint32_t optimal_ring_sizes(const struct search *s,
	const struct optimal_range *range, uint32_t grid, uint64_t *sizes);
/* One size and seed. */
bool optimal_try_seed(struct search *s, uint64_t ring, enum optimal_seed seed);
/* Equal blocks of a few sizes. */
bool optimal_try_blocks(struct search *s, uint32_t blocks, uint64_t unit);

/*
 * The best choice for residents that need to give up `need` (> 0) bytes net of
 * the pool.  PLAN_INFEASIBLE: nothing fits.
 */
enum plan_status optimal_search(const struct optimal_model *m, uint64_t need,
	struct optimal_choice *best);
/* The same by seeds alone, for many calls in a row; no bound. */
enum plan_status optimal_search_quick(const struct optimal_model *m,
	uint64_t need, struct optimal_choice *best);

/* ---- optimal_latency.c ---- */

/*
 * The choice that gives up the most bytes, net of the pool, and loses nothing;
 * at most `most`.  best->streamed is 0 where there is none.
 */
enum plan_status optimal_latency(const struct optimal_model *m, uint64_t most,
	struct optimal_choice *best);

/* ---- optimal_move.c ---- */

/* Betters s->top. */
void optimal_moves(struct search *s);
/* The best of s->top, of which there is one. */
uint32_t optimal_shortest(const struct search *s);

/* ---- optimal.c ---- */

/* An id's layer: several, with an index into `tied`. */
#define OPTIMAL_SHARED 0x80000000u
struct optimal {
	const struct plan_input *in;
	const struct plan_params *p;
	struct plan_arena *arena;
	struct plan_ids ids;		/* to the layer, or OPTIMAL_SHARED and more */
	struct tied {
		uint64_t size;
		uint64_t streamed;	/* its first bytes */
		uint32_t users;		/* layers */
	} *shared;
	uint32_t nr_shared;
	/* Tied tensors with as many users, by falling number. */
	struct tied_class {
		uint32_t users;
		uint64_t bytes, stream, left;
	} *classes;
	uint32_t nr_classes;
	uint64_t *bytes, *reads;	/* by layer: streamable, all */
	double *ms;
	uint64_t *loads;		/* by layer: as m.bytes, if tied ones are */
	uint64_t unique, tied, kept;
	uint64_t largest, largest_read;	/* of bytes, of reads */
	bool stream_tied;
	struct optimal_model m;
};

static inline bool optimal_is_shared(uint32_t at)
{
	return at != PLAN_NONE && (at & OPTIMAL_SHARED) != 0;
}

size_t optimal_nr_tensors(const struct plan_input *in);
/* Is this the tensor's first mention in the layer?  seen: ids to layers. */
bool optimal_first_in_layer(const struct layer_statistics *l, uint32_t k,
	const struct plan_ids *seen, uint32_t layer);
/* o->m with tied tensors resident, or streamed as o->loads has it. */
void optimal_set_model(struct optimal *o, bool stream_tied);
enum plan_status optimal_search_budget(struct optimal *o, uint64_t need,
	double bound, struct optimal_choice *best);
/* The first `bytes` streamable bytes of a layer, added to the slot's entries. */
enum plan_status optimal_entries(struct optimal *o, uint32_t layer,
	uint64_t bytes, struct plan_slot *slot);

/* ---- optimal_replay.c ---- */

/*
 * The period when each chunk keeps the position of its first place for all its
 * uses, and is loaded only if another one has been there since.  For plans that
 * stream tied tensors: the timeline loads them for every use.  t is laid out.
 */
enum plan_status optimal_replay(struct optimal *o,
	const struct optimal_trial *t, double *period_ms);

/* ---- optimal_tied.c ---- */

/* As optimal_search_budget(), where tied tensors cannot all be resident. */
enum plan_status optimal_search_tied(struct optimal *o, double bound,
	struct optimal_choice *best);

#endif
