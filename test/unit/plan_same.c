/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two plan files compared, member by member (plan_same.h).
 */
#include "test/unit/plan_same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/timeline.h"

static void same_score(const struct strategy_score *a,
	const struct strategy_score *b)
{
	HOLDS_EQ(a->peak_memory_bytes, b->peak_memory_bytes);
	HOLDS(a->estimated_overhead == b->estimated_overhead);
	HOLDS_EQ(a->consecutive_violations, b->consecutive_violations);
	HOLDS_EQ(a->is_valid, b->is_valid);
}

void plan_same_text(const char *a, const char *b)
{
	HOLDS_EQ(!a, !b);
	if (a && strcmp(a, b) != 0)
		ck_abort_msg("%s\nis not\n%s", a, b);
}

static void same_map(const struct strategy_map *a, const struct strategy_map *b)
{
	HOLDS_EQ(a->nr, b->nr);
	for (uint32_t i = 0; i < a->nr; i++) {
		const struct plan_slot *s = &a->slots[i], *t = &b->slots[i];

		HOLDS_EQ(s->slot, t->slot);
		HOLDS_EQ(s->nr, t->nr);
		for (uint32_t j = 0; j < s->nr; j++) {
			const struct plan_entry *x = &s->entries[j],
				*y = &t->entries[j];

			HOLDS_EQ(x->tensor->id, y->tensor->id);
			HOLDS_EQ(x->tensor->size_bytes,
				y->tensor->size_bytes);
			plan_same_text(x->tensor->name, y->tensor->name);
			HOLDS_EQ(x->offset, y->offset);
			HOLDS_EQ(x->length, y->length);
		}
	}
}

#define SAME_ARRAY(a, b, nr) \
	HOLDS((nr) == 0 || !memcmp(a, b, (nr) * sizeof(*(a))))

static void same_blocks(const struct block_strategy_data *a,
	const struct block_strategy_data *b)
{
	HOLDS_EQ(!a, !b);
	if (!a)
		return;
	HOLDS_EQ(a->nr, b->nr);
	SAME_ARRAY(a->slots, b->slots, a->nr);
	SAME_ARRAY(a->label_to_size_map, b->label_to_size_map, a->nr);
	SAME_ARRAY(a->label_to_block_id, b->label_to_block_id, a->nr);
	SAME_ARRAY(a->transfer_to_compute_map, b->transfer_to_compute_map,
		a->nr);
	HOLDS_EQ(a->nr_blocks, b->nr_blocks);
	SAME_ARRAY(a->block_sizes, b->block_sizes, a->nr_blocks);
	for (uint32_t i = 0; i < a->nr_blocks; i++) {
		HOLDS_EQ(a->allocation_ordered[i].nr,
			b->allocation_ordered[i].nr);
		SAME_ARRAY(a->allocation_ordered[i].slots,
			b->allocation_ordered[i].slots,
			a->allocation_ordered[i].nr);
	}
}

static void same_pool(const struct plan_pool *a, const struct plan_pool *b)
{
	HOLDS_EQ(!a, !b);
	if (!a)
		return;
	HOLDS_EQ(a->chunk_bytes, b->chunk_bytes);
	HOLDS_EQ(a->nr_chunks, b->nr_chunks);
	HOLDS_EQ(a->positions, b->positions);
	HOLDS_EQ(a->pad_positions, b->pad_positions);
	HOLDS_EQ(a->peak_bytes, b->peak_bytes);
	HOLDS_EQ(a->streamed_bytes, b->streamed_bytes);
	HOLDS_EQ(a->nr_places, b->nr_places);
	for (uint32_t i = 0; i < a->nr_places; i++) {
		HOLDS_EQ(a->places[i].layer, b->places[i].layer);
		HOLDS_EQ(a->places[i].chunks, b->places[i].chunks);
		HOLDS_EQ(a->places[i].position, b->places[i].position);
		HOLDS_EQ(a->places[i].bytes, b->places[i].bytes);
	}
	HOLDS_EQ(a->nr_pieces, b->nr_pieces);
	for (uint32_t i = 0; i < a->nr_pieces; i++) {
		HOLDS_EQ(a->pieces[i].place, b->pieces[i].place);
		HOLDS_EQ(a->pieces[i].offset, b->pieces[i].offset);
		HOLDS_EQ(a->pieces[i].length, b->pieces[i].length);
	}
}

static void same_profile(const struct plan_profile *a,
	const struct plan_profile *b)
{
	plan_same_text(a->name, b->name);
	HOLDS_EQ(a->nr_layers, b->nr_layers);
	for (uint32_t i = 0; i < a->nr_layers; i++) {
		plan_same_text(a->layers[i].label, b->layers[i].label);
		HOLDS(a->layers[i].duration_ms == b->layers[i].duration_ms);
		HOLDS_EQ(a->layers[i].nr, b->layers[i].nr);
		for (uint32_t j = 0; j < a->layers[i].nr; j++) {
			const struct tensor_statistics
				*t = &a->layers[i].tensors[j],
				*u = &b->layers[i].tensors[j];

			HOLDS_EQ(t->id, u->id);
			HOLDS_EQ(t->size_bytes, u->size_bytes);
			HOLDS(t->load_time_ms == u->load_time_ms);
			plan_same_text(t->name, u->name);
		}
	}
	HOLDS_EQ(a->memory_stats.nr, b->memory_stats.nr);
	for (uint32_t i = 0; i < a->memory_stats.nr; i++) {
		HOLDS_EQ(a->memory_stats.points[i].bytes,
			b->memory_stats.points[i].bytes);
		HOLDS(a->memory_stats.points[i].ms ==
			b->memory_stats.points[i].ms);
	}
}

static void same_params(const struct plan_strategy *s,
	const struct plan_params *a, const struct plan_params *b)
{
	char x[64], y[64];

	for (uint32_t i = 0; i < PLAN_NR_PARAMS; i++)
		if (s->params >> i & 1)
			plan_same_text(
				plan_io_param_text(i, a, x, sizeof(x)),
				plan_io_param_text(i, b, y, sizeof(y)));
}

static void no_warning(void *arg, const char *text)
{
	ck_abort_msg("%s", text);
}

void plan_same_file(const struct plan_strategy *s, const struct plan_file *f,
	struct plan_arena *arena)
{
	struct plan_io io = { .file = "f", .warn = no_warning };
	char *first = plan_io_print_plan(f), *second;
	struct plan_file g;

	ck_assert_ptr_nonnull(first);
	HOLDS_MSG(!plan_io_parse_plan(&io, first, strlen(first), NULL,
		arena, &g), "%s: %s", s->name, io.error);
	second = plan_io_print_plan(&g);
	plan_same_text(first, second);
	plan_same_text(f->strategy, g.strategy);
	same_params(s, &f->params, &g.params);
	HOLDS_EQ(f->budget, g.budget);
	HOLDS_EQ(f->fingerprint, g.fingerprint);
	HOLDS(f->period_ms == g.period_ms && f->cold_ms == g.cold_ms &&
		f->bound_ms == g.bound_ms);
	same_score(&f->score, &g.score);
	same_map(&f->result.strategy_map, &g.result.strategy_map);
	same_blocks(f->result.block_data, g.result.block_data);
	same_pool(f->result.pool, g.result.pool);
	plan_same_text(f->result.selected_strategy_name,
		g.result.selected_strategy_name);
	HOLDS(f->result.scale == g.result.scale);
	HOLDS_EQ(f->result.over_budget, g.result.over_budget);
	plan_same_text(f->result.message, g.result.message);
	same_profile(&f->profile, &g.profile);
	free(first);
	free(second);
}

void plan_same_case(const char *name, struct plan_arena *arena,
	struct plan_profile *p)
{
	struct plan_io io = { .file = name };
	char path[128], *text;
	size_t len;

	snprintf(path, sizeof(path), "test/data/cases/%s.json", name);
	ck_assert_msg(!plan_io_load(&io, path, &text, &len), "%s", io.error);
	ck_assert_msg(!plan_io_parse_profile(&io, text, len, arena, p), "%s",
		io.error);
	free(text);
	ck_assert_uint_eq(p->nr_budgets, 5);
}
