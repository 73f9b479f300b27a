/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate_strategy_result and its comparison: the published estimate of peak,
 * overhead and conflicts of a plan.  Each transfer is timed alone against its
 * own window; what contention and reuse really cost, plan_timeline tells.
 * Called by adaptive and the tools.
 */
#include "planner/plan_int.h"
#include "planner/timeline.h"

#include <math.h>

static uint64_t peak_of(const struct strategy_result *r,
	const struct plan_input *in)
{
	uint64_t peak = plan_total_bytes(in) - plan_offloaded_bytes(r);

	/* Knows about shared tensors and parts of tensors. */
	if (r->pool)
		return r->pool->peak_bytes;
	if (r->block_data)
		for (uint32_t b = 0; b < r->block_data->nr_blocks; b++)
			peak += r->block_data->block_sizes[b];
	return peak;
}

/* Slots and their entries name layers and tensors of this input. */
static bool map_ok(const struct strategy_result *r, const struct plan_input *in)
{
	const struct strategy_map *m = &r->strategy_map;

	for (uint32_t i = 0; i < m->nr; i++) {
		if (m->slots[i].slot >= in->nr_layers)
			return false;
		for (uint32_t j = 0; j < m->slots[i].nr; j++) {
			const struct plan_entry *e = &m->slots[i].entries[j];

			if (e->length > e->tensor->size_bytes || e->offset >
			    e->tensor->size_bytes - e->length)
				return false;
		}
	}
	return plan_offloaded_bytes(r) <= plan_total_bytes(in);
}

/*
 * Time by which transfers outlast their windows.  A slot that is not before its
 * consumer (a transfer for the next iteration) has no window.
 */
static enum plan_status overhead_of(const struct strategy_result *r,
	const struct plan_input *in,
	const struct memory_transfer_interpolator *ip, double *overhead,
	struct plan_arena *scratch)
{
	const uint32_t n = in->nr_layers;
	uint32_t *slot_of = plan_arena_alloc(scratch, n, sizeof(*slot_of));
	double extra = 0, total = 0, window;
	uint32_t consumer;

	if (!slot_of)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < n; i++)
		slot_of[i] = PLAN_NONE;
	for (uint32_t i = 0; i < r->strategy_map.nr; i++) {
		const struct plan_slot *s = &r->strategy_map.slots[i];

		if (!s->nr)
			continue;
		/* A pool names the layer; else the first tensor tells. */
		consumer = r->pool && i < r->pool->nr_places ?
			r->pool->places[i].layer :
			plan_consumer(s, in);
		if (consumer == PLAN_NONE || consumer >= n)
			return PLAN_BAD_PLAN;
		if (slot_of[consumer] != PLAN_NONE)
			return PLAN_SHARED_CONSUMER;
		slot_of[consumer] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct plan_slot *s;

		total += in->layers[i].duration_ms;
		if (slot_of[i] == PLAN_NONE)
			continue;
		s = &r->strategy_map.slots[slot_of[i]];
		window = 0;
		for (uint32_t k = s->slot; k < i; k++)
			window += in->layers[k].duration_ms;
		window = plan_bytes_to_duration(ip, plan_slot_bytes(s)) -
			window;
		extra += window > 0 ? window : 0;
	}
	*overhead = total > 0 ? extra / total : 0;
	return PLAN_OK;
}

enum plan_status evaluate_strategy_result(const struct strategy_result *result,
	const struct plan_input *in, const char *name,
	const struct memory_transfer_interpolator *ip,
	struct strategy_score *score)
{
	const struct block_strategy_data *b = result->block_data;
	enum plan_status err = PLAN_OK;
	struct plan_arena *scratch;

	if (!map_ok(result, in))
		return PLAN_BAD_PLAN;
	score->name = name;
	score->peak_memory_bytes = peak_of(result, in);
	score->estimated_overhead = 0;
	score->consecutive_violations = 0;
	if (ip) {
		scratch = plan_arena_create();
		if (!scratch)
			return PLAN_NO_MEMORY;
		err = overhead_of(result, in, ip, &score->estimated_overhead,
			scratch);
		plan_arena_destroy(scratch);
	}
	for (uint32_t k = 1; b && k < b->nr; k++)
		score->consecutive_violations +=
			b->label_to_block_id[k] == b->label_to_block_id[k - 1];
	score->is_valid = !score->consecutive_violations &&
		score->peak_memory_bytes <= in->max_gpu_mem_bytes;
	return err;
}

/* Relative 1e-9, absolute 1e-12. */
static bool close_to(double a, double b)
{
	double most = fmax(fabs(a), fabs(b)) * 1e-9;

	return fabs(a - b) <= fmax(most, 1e-12);
}

int plan_score_compare(const struct strategy_score *a,
	const struct strategy_score *b)
{
	if (a->is_valid != b->is_valid)
		return a->is_valid ? -1 : 1;
	if (a->is_valid &&
	    !close_to(a->estimated_overhead, b->estimated_overhead))
		return a->estimated_overhead < b->estimated_overhead ? -1 : 1;
	return (a->peak_memory_bytes > b->peak_memory_bytes) -
		(a->peak_memory_bytes < b->peak_memory_bytes);
}

bool strategy_has_transfer_gaps(const struct strategy_map *map,
	const struct plan_input *in)
{
	uint32_t used = 0;

	if (in->nr_layers <= 1 || !map->nr)
		return false;
	for (uint32_t i = 0; i < map->nr; i++)
		used += map->slots[i].nr > 0;
	return used < in->nr_layers - 1;
}
