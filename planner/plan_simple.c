/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GreedyStrategy and NthLayerStrategy.  Neither looks at the budget.
 */
#include "planner/plan_int.h"

/* Blocks in turn for whatever the map holds; none for n_blocks 0. */
static enum plan_status balanced_blocks(struct strategy_result *result,
	const struct plan_input *in, int n_blocks, struct plan_arena *arena)
{
	const uint32_t n = in->nr_layers;
	uint64_t *sizes;
	uint32_t *layers, *block, nr;
	enum plan_status err;

	if (n_blocks <= 0)
		return PLAN_OK;
	sizes = plan_arena_alloc(arena, n, sizeof(*sizes));
	layers = plan_arena_alloc(arena, n, sizeof(*layers));
	block = plan_arena_alloc(arena, n, sizeof(*block));
	if (!sizes || !layers || !block)
		return PLAN_NO_MEMORY;
	nr = plan_map_transfers(&result->strategy_map, n, layers, sizes);
	err = plan_assign_balanced(sizes, nr, n_blocks, block);
	return err ? err : plan_build_blocks(result, in, block, arena);
}

enum plan_status plan_greedy(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	struct plan_groups g;
	enum plan_status err;
	uint32_t slot = 0;
	double time = 0, load;

	err = plan_groups_create(in, p->threshold_mb, 1, arena, &g);
	if (!err)
		err = plan_map_init(&result->strategy_map, g.nr, arena);
	for (uint32_t i = 0; i < g.nr && !err; i++) {
		const struct plan_pick *e = &g.at[i].eligible;

		load = 0;
		for (uint32_t j = 0; j < e->nr; j++)
			load += e->at[j]->load_time_ms;
		if (load < time * p->scale) {
			err = plan_map_add(&result->strategy_map, slot, e,
				arena);
			time = 0;
			slot = i;
		}
		time += g.at[i].duration_ms;
	}
	return err ? err : balanced_blocks(result, in, p->n_blocks, arena);
}

enum plan_status plan_nth_layer(const struct plan_input *in,
	const struct plan_params *p, struct plan_arena *arena,
	struct strategy_result *result)
{
	struct plan_groups g;
	enum plan_status err;
	uint32_t slot = 0;
	int since = 0;

	err = plan_groups_create(in, p->threshold_mb, 1, arena, &g);
	if (!err)
		err = plan_map_init(&result->strategy_map, g.nr, arena);
	for (uint32_t i = 0; i < g.nr && !err; i++) {
		if (since == p->nth_layer) {
			err = plan_map_add(&result->strategy_map, slot,
				&g.at[i].eligible, arena);
			slot = i;
			since = 0;
		}
		since++;
	}
	return err ? err : balanced_blocks(result, in, p->n_blocks, arena);
}
