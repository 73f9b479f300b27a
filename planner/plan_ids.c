/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor ids to numbers: open addressing in an arena.  Called by evaluation,
 * input checks and the strategies that care for tied tensors.
 */
#include "planner/plan_int.h"

enum plan_status plan_ids_init(struct plan_ids *ids, size_t nr,
	struct plan_arena *arena)
{
	uint32_t size = 16;

	if (nr > UINT32_MAX / 4)
		return PLAN_TOO_LARGE;
	while (size < 2 * nr)
		size *= 2;
	ids->mask = size - 1;
	ids->key = plan_arena_alloc(arena, size, sizeof(*ids->key));
	ids->value = plan_arena_alloc(arena, size, sizeof(*ids->value));
	if (!ids->key || !ids->value)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < size; i++)
		ids->value[i] = PLAN_NONE;
	return PLAN_OK;
}

static uint32_t place(const struct plan_ids *ids, int64_t id)
{
	uint64_t h = (uint64_t)id * 0x9e3779b97f4a7c15u;
	uint32_t at = (uint32_t)(h >> 32) & ids->mask;

	while (ids->value[at] != PLAN_NONE && ids->key[at] != id)
		at = (at + 1) & ids->mask;
	return at;
}

uint32_t *plan_ids_at(const struct plan_ids *ids, int64_t id)
{
	uint32_t at = place(ids, id);

	ids->key[at] = id;
	return &ids->value[at];
}

uint32_t plan_ids_find(const struct plan_ids *ids, int64_t id)
{
	return ids->value[place(ids, id)];
}
