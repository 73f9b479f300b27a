/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner: which bytes stay on the GPU, which are streamed, when, and
 * through which memory.  Pure functions: no files, threads, environment, clock
 * or mutable globals; any number of threads may plan at once, each with its own
 * arena.  Called by the library's phase module and by the tools.
 *
 * Contract.  Layers are numbered 0..nr-1 in the order in which they run; a
 * layer's label is only carried along.  Times are ms, sizes bytes.  What a
 * function returns lives in the arena it was given, and points into the
 * caller's layers, which must outlive it.  Functions return PLAN_OK or an
 * expected failure (plan_status.def) and never end the process.  The same input
 * and seed give the same plan.
 */
#ifndef BALLAST_PLANNER_H
#define BALLAST_PLANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum plan_status {
#define STATUS(name, text) PLAN_##name,
#include "planner/plan_status.def"
#undef STATUS
	PLAN_NR_STATUS
};

#define PLAN_NONE UINT32_MAX		/* no layer, no block */
#define PLAN_NO_LIMIT UINT64_MAX	/* latency mode */
#define PLAN_MESSAGE 256

/* A sentence without a full stop; never NULL. */
const char *plan_status_message(enum plan_status status);
/* The enumerator without PLAN_, for files and logs; never NULL. */
const char *plan_status_name(enum plan_status status);

/* ---- memory ---------------------------------------------------------------- */

/*
 * Everything a plan consists of is freed at once, with its arena.  Not safe for
 * two threads at a time.
 */
struct plan_arena;

/* NULL when out of memory.  plan_arena_destroy() takes NULL. */
struct plan_arena *plan_arena_create(void);
void plan_arena_destroy(struct plan_arena *arena);
/* Zeroed, aligned for any type; NULL when out of memory or on overflow. */
void *plan_arena_alloc(struct plan_arena *arena, size_t nr, size_t size);
char *plan_arena_strdup(struct plan_arena *arena, const char *text);

/* ---- what is known --------------------------------------------------------- */

/* Tensors of one id are one piece of memory that several layers use. */
struct tensor_statistics {
	int64_t id;
	const char *name;	/* borrowed; may be NULL */
	uint64_t size_bytes;
	double load_time_ms;	/* of a copy of this tensor alone; 0 = unknown */
};

struct layer_statistics {
	const char *label;	/* borrowed, unique */
	const struct tensor_statistics *tensors; /* borrowed */
	uint32_t nr;
	double duration_ms;
};

/* One measured copy. */
struct transfer_time {
	uint64_t bytes;
	double ms;
};

/* In any order; no size twice. */
struct memory_stats {
	const struct transfer_time *points; /* borrowed */
	uint32_t nr;
};

struct plan_input {
	const struct layer_statistics *layers; /* borrowed */
	uint32_t nr_layers;
	/* NULL: taken from the tensors' load times where a strategy can. */
	const struct memory_stats *memory_stats;
	uint64_t max_gpu_mem_bytes;	/* or PLAN_NO_LIMIT */
};

/*
 * Finite, no negative time, labels unique, one size for each id, sums below
 * 2^63.  Every strategy checks it first.  message: PLAN_MESSAGE bytes or NULL.
 */
enum plan_status plan_input_check(const struct plan_input *in, char *message);

/* Each use of a tensor counted, as the published evaluation does. */
uint64_t plan_total_bytes(const struct plan_input *in);

/* ---- transfer times -------------------------------------------------------- */

/* Piecewise linear in the logarithms of bytes and time (plan_interp.c). */
struct memory_transfer_interpolator;

/* PLAN_NEEDS_TABLE if empty, PLAN_BAD_TABLE if a value is not positive. */
enum plan_status plan_interpolator_create(const struct memory_stats *stats,
	struct plan_arena *arena, struct memory_transfer_interpolator **out);
/* From in->memory_stats, otherwise from load times; *out NULL if neither. */
enum plan_status plan_interpolator_of(const struct plan_input *in,
	struct plan_arena *arena, struct memory_transfer_interpolator **out);
/* 0 for 0 bytes. */
double plan_bytes_to_duration(const struct memory_transfer_interpolator *ip,
	double bytes);
/* 0 for a time that is not positive; may be infinite. */
double plan_duration_to_bytes(const struct memory_transfer_interpolator *ip,
	double ms);
/* Mean load time of each size, ascending; stats->nr 0 if none is known. */
enum plan_status plan_extract_memory_stats(const struct layer_statistics *layers,
	uint32_t nr, struct plan_arena *arena, struct memory_stats *stats);

/* ---- a plan ---------------------------------------------------------------- */

/* Part of a tensor; the published strategies take whole ones. */
struct plan_entry {
	const struct tensor_statistics *tensor;
	uint64_t offset, length;
};

/*
 * What is copied during the compute of layer `slot`, for a later layer (or, if
 * that is not later, for the next iteration).
 */
struct plan_slot {
	uint32_t slot;
	uint32_t nr;		/* may be 0 */
	const struct plan_entry *entries;
};

struct strategy_map {
	uint32_t nr;
	const struct plan_slot *slots; /* in the order they were made */
};

/*
 * Arrays of nr are parallel, one place for each slot that copies anything, in
 * layer order; arrays of nr_blocks go by block.
 */
struct block_strategy_data {
	uint32_t nr;
	const uint32_t *slots;			/* layer */
	const uint64_t *label_to_size_map;	/* bytes */
	const uint32_t *label_to_block_id;
	const uint32_t *transfer_to_compute_map; /* layer or PLAN_NONE */
	uint32_t nr_blocks;
	const uint64_t *block_sizes;
	struct plan_block_slots {
		uint32_t nr;
		const uint32_t *slots;	/* layers, in order of use */
	} const *allocation_ordered;
};

struct strategy_score {
	const char *name;	/* borrowed */
	uint64_t peak_memory_bytes;
	double estimated_overhead;	/* part of the compute time */
	uint32_t consecutive_violations;
	bool is_valid;
};

struct plan_pool;		/* ring and pads: timeline.h */

struct strategy_result {
	struct strategy_map strategy_map;
	const struct block_strategy_data *block_data; /* NULL: no blocks */
	const struct plan_pool *pool;		/* NULL: as block_data says */

	/* What the strategy had to say about it. */
	const char *selected_strategy_name;	/* facades; otherwise NULL */
	const struct strategy_score *all_scores; /* adaptive */
	uint32_t nr_scores;
	double scale;			/* that the plan was made with, or 0 */
	bool over_budget;		/* best effort: still above the budget */
	uint64_t smallest_budget;	/* optimal, PLAN_INFEASIBLE */
	double period_ms, bound_ms;	/* optimal; 0: not computed */
	char message[PLAN_MESSAGE];	/* of a failure or a warning; or "" */
};

uint64_t plan_offloaded_bytes(const struct strategy_result *result);

/* ---- assignments and windows ------------------------------------------------ */

struct plan_assignment;

/*
 * Fills block[0..nr): the block of each transfer, below n_blocks.  scratch is
 * for the call only.
 */
typedef enum plan_status plan_assign_fn(const struct plan_assignment *self,
	const uint64_t *sizes, uint32_t nr, uint32_t n_blocks, uint32_t *block);

struct plan_assignment {
	plan_assign_fn *compute;	/* NULL: the strategy's default */
	uint32_t min_blocks, max_blocks; /* 0: from the strategy */
	double distribution_weight;	/* 0 memory only .. 1 reuse distance only */
	void *data;			/* of a caller's own function */
};

plan_assign_fn plan_assign_strict;	/* StrictRoundRobinAssignment */
plan_assign_fn plan_assign_optimized;	/* OptimizedRoundRobinAssignment */

/* The time the transfer for `layer` has. */
typedef double plan_window_fn(uint32_t layer, const uint64_t *offload_bytes,
	const double *duration_ms, void *data);

struct plan_window {
	plan_window_fn *compute;	/* NULL: single layer */
	void *data;
};

plan_window_fn plan_window_single;	/* SingleLayerWindow */
plan_window_fn plan_window_gap_aware;	/* GapAwareWindow */

/* ---- strategies -------------------------------------------------------------- */

enum plan_loader {
	PLAN_LOADER_STRATEGY,
	PLAN_LOADER_RAW_BLOCK,
	PLAN_LOADER_ALLOCATION_BLOCK,
};

enum plan_candidates {
	PLAN_CANDIDATES_PUBLISHED,
	PLAN_CANDIDATES_ALL,
};

/* Kinds of plan_params.def as C types. */
#define PLAN_KIND_REAL double
#define PLAN_KIND_INT int
#define PLAN_KIND_BOOL bool
#define PLAN_KIND_SEED uint64_t
#define PLAN_KIND_BYTES uint64_t
#define PLAN_KIND_LOADER enum plan_loader
#define PLAN_KIND_CANDIDATES enum plan_candidates
#define PLAN_KIND_ASSIGNMENT struct plan_assignment
#define PLAN_KIND_WINDOW struct plan_window

struct plan_params {
#define PARAM(name, kind, help) PLAN_KIND_##kind name;
#include "planner/plan_params.def"
#undef PARAM
};

enum plan_param_id {
#define PARAM(name, kind, help) PLAN_PARAM_##name,
#include "planner/plan_params.def"
#undef PARAM
	PLAN_NR_PARAMS
};

enum plan_param_kind {
	PLAN_REAL, PLAN_INT, PLAN_BOOL, PLAN_SEED, PLAN_BYTES, PLAN_LOADER,
	PLAN_CANDIDATES, PLAN_ASSIGNMENT, PLAN_WINDOW,
};

struct plan_param {
	const char *name, *help;
	enum plan_param_kind kind;
	size_t offset;		/* in struct plan_params */
};

/* id < PLAN_NR_PARAMS. */
const struct plan_param *plan_param(enum plan_param_id id);

/*
 * in has been checked, p too; result is zeroed.  On failure result->message may
 * say more than the status.
 */
typedef enum plan_status plan_compute_fn(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result);

struct plan_strategy {
	const char *name;
	const char *summary;
	uint64_t params;	/* bit 1 << plan_param_id: it takes this one */
	struct plan_params defaults;
	plan_compute_fn *compute;
};

uint32_t plan_nr_strategies(void);
const struct plan_strategy *plan_strategy(uint32_t nr);
/* NULL if there is none of that name. */
const struct plan_strategy *plan_strategy_find(const char *name);
/*
 * Ranges of all parameters the strategy takes.  message: PLAN_MESSAGE bytes or
 * NULL; on failure it names the parameter.
 */
enum plan_status plan_params_check(const struct plan_strategy *s,
	const struct plan_params *p, char *message);
/* Checks, then computes.  p NULL: the strategy's defaults. */
enum plan_status plan_compute(const struct plan_strategy *s,
	const struct plan_input *in, const struct plan_params *p,
	struct plan_arena *arena, struct strategy_result *result);

/* optimal.c */
plan_compute_fn plan_optimal;

/* ---- judging and rearranging -------------------------------------------------- */

/* ip NULL: overhead 0.  PLAN_SHARED_CONSUMER as published. */
enum plan_status evaluate_strategy_result(const struct strategy_result *result,
	const struct plan_input *in, const char *name,
	const struct memory_transfer_interpolator *ip,
	struct strategy_score *score);
/* Negative: a is better, 0: a tie, positive: b is better. */
int plan_score_compare(const struct strategy_score *a,
	const struct strategy_score *b);

bool strategy_has_transfer_gaps(const struct strategy_map *map,
	const struct plan_input *in);

/* One transfer: copied during `slot`, used by layer `compute`. */
struct plan_transfer {
	uint32_t slot, compute, block;
};

/*
 * Moves transfers to earlier free layers, as far as blocks allow with `gap`
 * layers between uses of a block.  In place; moved[i] (may be NULL) gets the
 * slot before.  nr 0 does nothing.  PLAN_CONFLICT: the plan was not valid.
 */
enum plan_status rearrange_transfers(struct plan_transfer *transfers,
	uint32_t nr, uint32_t nr_layers, uint32_t gap, uint32_t *moved);
/* Indices of transfers that must be there before the first iteration. */
uint32_t find_transfers_for_preload(const struct plan_transfer *transfers,
	uint32_t nr, uint32_t *preload);

/*
 * The most offloaded bytes on the GPU at once when each layer's slot is loaded
 * at its start and `release[i]` (tensor ids) dropped at its end; loaders without
 * blocks.
 */
struct plan_release {
	const int64_t *ids;
	uint32_t nr;
};
enum plan_status plan_non_block_peak(const struct strategy_map *map,
	const struct plan_release *release, uint32_t nr_layers, uint64_t *peak);

#endif
