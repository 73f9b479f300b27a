/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the strategies share: tensor sets, drafts of plans, block data, search.
 * Private to planner/.
 */
#ifndef BALLAST_PLAN_INT_H
#define BALLAST_PLAN_INT_H

#include "planner/planner.h"

#define PLAN_MIB 1048576.0

/* Some tensors of one layer, in an order that matters. */
struct plan_pick {
	uint32_t nr;
	uint64_t bytes;
	const struct tensor_statistics **at;
};

/* A layer, or several planned as one; first is the first one's number. */
struct plan_group {
	uint32_t first;
	double duration_ms;
	struct plan_pick all;		/* every tensor */
	struct plan_pick eligible;	/* those over the threshold */
};

struct plan_groups {
	uint32_t nr;
	uint64_t total_bytes;
	struct plan_group *at;
};

/* group_size <= 1: one group for each layer. */
enum plan_status plan_groups_create(const struct plan_input *in,
	double threshold_mb, int group_size, struct plan_arena *arena,
	struct plan_groups *out);

static inline bool plan_eligible(const struct tensor_statistics *t,
	double threshold_mb)
{
	return (double)t->size_bytes > threshold_mb * PLAN_MIB;
}

/* ---- tensor ids -> a number; plan_ids.c ---- */

struct plan_ids {
	uint32_t mask;		/* slots - 1 */
	int64_t *key;
	uint32_t *value;	/* PLAN_NONE: empty */
};

enum plan_status plan_ids_init(struct plan_ids *ids, size_t nr,
	struct plan_arena *arena);
/* The value's place; PLAN_NONE there if the id is new, to be filled in. */
uint32_t *plan_ids_at(const struct plan_ids *ids, int64_t id);
/* PLAN_NONE if absent. */
uint32_t plan_ids_find(const struct plan_ids *ids, int64_t id);
/* ---- building results; plan_build.c ---- */

/* Room for max slots. */
enum plan_status plan_map_init(struct strategy_map *map, uint32_t max,
	struct plan_arena *arena);
/* Copies the pick, each tensor whole.  There must be room. */
enum plan_status plan_map_add(struct strategy_map *map, uint32_t slot,
	const struct plan_pick *pick, struct plan_arena *arena);
uint64_t plan_slot_bytes(const struct plan_slot *slot);
/*
 * The layer a slot copies for: the next one, going round, that holds its first
 * tensor.  PLAN_NONE if no layer does.  Published: the last layer that holds
 * it, so that two transfers of a shared tensor seem to be for one layer.
 */
uint32_t plan_consumer(const struct plan_slot *slot,
	const struct plan_input *in);
/*
 * Transfers of a map in layer order, empty ones left out; sizes and layers have
 * room for nr_layers.  Returns their number.
 */
uint32_t plan_map_transfers(const struct strategy_map *map, uint32_t nr_layers,
	uint32_t *layers, uint64_t *sizes);
/*
 * Sets result->block_data: block[k] is that of the k-th transfer in layer
 * order.  Numbers are made consecutive; a block is as large as its largest.
 */
enum plan_status plan_build_blocks(struct strategy_result *result,
	const struct plan_input *in, const uint32_t *block,
	struct plan_arena *arena);
/* Sum of the blocks' maxima. */
uint64_t plan_block_bytes(const uint64_t *sizes, const uint32_t *block,
	uint32_t nr);

/* ---- assignments; plan_assign.c ---- */

/* As the assignment, but n_blocks 0 or too few is PLAN_TOO_FEW_BLOCKS. */
enum plan_status plan_assign_balanced(const uint64_t *sizes, uint32_t nr,
	uint32_t n_blocks, uint32_t *block);
/*
 * Fewest bytes with neighbours in different blocks: exact up to
 * PLAN_EXACT_BLOCKS transfers, otherwise balanced.
 */
#define PLAN_EXACT_BLOCKS 20
enum plan_status plan_assign_least(const uint64_t *sizes, uint32_t nr,
	uint32_t n_blocks, uint32_t *block);
/* p->assignment with what is left open taken from p and the strategy. */
struct plan_assignment plan_assignment_of(const struct plan_params *p,
	plan_assign_fn *otherwise);

/* ---- subsets; plan_subset.c ---- */

/* At most this many candidates: the published greedy rules are final. */
#define PLAN_GREEDY_CANDIDATES 5
/* Most bytes within cap; greedy: only the published first-fit rules. */
enum plan_status plan_subset_bytes(const struct plan_pick *from, double cap,
	bool greedy, struct plan_arena *arena, struct plan_pick *out);
/* Most bytes within a time of cap ns, by load times. */
enum plan_status plan_subset_time(const struct plan_pick *from, int64_t cap,
	bool greedy, struct plan_arena *arena, struct plan_pick *out);

/* ---- several files' strategies ---- */

enum plan_status plan_fail(struct strategy_result *result,
	enum plan_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Keeps the first warning. */
void plan_warn(struct strategy_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

plan_compute_fn plan_greedy, plan_nth_layer, plan_knapsack, plan_knapsack_block,
	plan_adaptive_knapsack, plan_budget_fill, plan_budget_fill_greedy,
	plan_budget_fill_layer_de, plan_budget_fill_tensor_de,
	plan_budget_fill_spread, plan_global_offload, plan_global_offload_strict,
	plan_tensor_selection_de, plan_tensor_selection_sa, plan_adaptive;
/* KnapsackBlock with first-fit only, whatever the number of candidates. */
plan_compute_fn plan_knapsack_first_fit;
/* BudgetFill, then the least waiting that the budget allows. */
plan_compute_fn plan_budget_fill_overhead;

#endif
