/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes profile.json and plan.json into memory: members in a fixed order, one
 * layer, slot or piece a line, so that two files can be compared line by line.
 * Called through plan_io.h; no locks.
 */
#include "planner/plan_io_int.h"

#include <inttypes.h>
#include <stdio.h>

#include "planner/timeline.h"

void plan_text_extras(struct plan_text *t, const struct plan_io_extras *x,
	enum plan_io_place place, uint32_t layer, uint32_t tensor)
{
	for (uint32_t i = 0; i < x->nr; i++) {
		const struct plan_io_extra *e = &x->at[i];

		if (e->place != place || e->layer != layer ||
		    e->tensor != tensor)
			continue;
		plan_text_put(t, ", ");
		plan_text_string(t, e->key);
		plan_text_put(t, ": %s", e->value);
	}
}

static void put_bytes(struct plan_text *t, const char *key, uint64_t bytes)
{
	plan_text_put(t, "\"%s\": %" PRIu64, key, bytes);
}

static void put_budget(struct plan_text *t, uint64_t bytes)
{
	if (bytes == PLAN_NO_LIMIT)
		plan_text_put(t, "null");
	else
		plan_text_put(t, "%" PRIu64, bytes);
}

static void put_real(struct plan_text *t, const char *key, double v)
{
	plan_text_put(t, "\"%s\": ", key);
	plan_text_real(t, v);
}

static void put_name(struct plan_text *t, const char *key, const char *s)
{
	plan_text_put(t, "\"%s\": ", key);
	plan_text_string(t, s);
}

/* ---- a profile ---- */

static bool any_extras(const struct plan_io_extras *x, enum plan_io_place place)
{
	for (uint32_t i = 0; i < x->nr; i++)
		if (x->at[i].place == place)
			return true;
	return false;
}

static void put_layer(struct plan_text *t, const struct plan_profile *p,
	uint32_t i, bool layer_extras, bool tensor_extras)
{
	const struct layer_statistics *l = &p->layers[i];

	plan_text_put(t, "{");
	put_name(t, "label", l->label);
	plan_text_put(t, ", ");
	put_real(t, "duration_ms", l->duration_ms);
	plan_text_put(t, ", \"tensors\": [");
	for (uint32_t j = 0; j < l->nr; j++) {
		const struct tensor_statistics *s = &l->tensors[j];

		plan_text_put(t, "%s{\"id\": %" PRId64, j ? ", " : "", s->id);
		if (s->name) {
			plan_text_put(t, ", ");
			put_name(t, "name", s->name);
		}
		plan_text_put(t, ", ");
		put_bytes(t, "bytes", s->size_bytes);
		if (s->load_time_ms > 0) {
			plan_text_put(t, ", ");
			put_real(t, "load_time_ms", s->load_time_ms);
		}
		if (tensor_extras)
			plan_text_extras(t, &p->extras, PLAN_IO_TENSOR, i, j);
		plan_text_put(t, "}");
	}
	plan_text_put(t, "]");
	if (layer_extras)
		plan_text_extras(t, &p->extras, PLAN_IO_LAYER, i, 0);
	plan_text_put(t, "}");
}

static void put_device(struct plan_text *t, const struct plan_profile *p,
	const char *in)
{
	bool extras = any_extras(&p->extras, PLAN_IO_DEVICE);

	if (!*p->device && !p->device_bytes && !extras)
		return;
	plan_text_put(t, "%s\"device\": {", in);
	put_name(t, "name", p->device);
	if (p->device_bytes) {
		plan_text_put(t, ", ");
		put_bytes(t, "memory_bytes", p->device_bytes);
	}
	plan_text_extras(t, &p->extras, PLAN_IO_DEVICE, 0, 0);
	plan_text_put(t, "},\n");
}

static void put_table(struct plan_text *t, const struct plan_profile *p,
	const char *in)
{
	const struct memory_stats *m = &p->memory_stats;

	plan_text_put(t, "%s\"memory_stats\": [", in);
	for (uint32_t i = 0; i < m->nr; i++) {
		plan_text_put(t, "%s%s  {", i ? ",\n" : "\n", in);
		put_bytes(t, "bytes", m->points[i].bytes);
		plan_text_put(t, ", ");
		put_real(t, "ms", m->points[i].ms);
		plan_text_put(t, "}");
	}
	plan_text_put(t, "],\n");
}

void plan_text_profile(struct plan_text *t, const struct plan_profile *p,
	const char *indent)
{
	bool layer_extras = any_extras(&p->extras, PLAN_IO_LAYER);
	bool tensor_extras = any_extras(&p->extras, PLAN_IO_TENSOR);
	char in[16];

	snprintf(in, sizeof(in), "%.12s  ", indent);
	plan_text_put(t, "{\n%s\"ballast_profile\": %d,\n%s", in,
		PLAN_IO_PROFILE_VERSION, in);
	put_name(t, "name", p->name);
	plan_text_put(t, ",\n%s", in);
	put_name(t, "note", p->note);
	plan_text_put(t, ",\n");
	put_device(t, p, in);
	if (p->link_gbps > 0) {
		plan_text_put(t, "%s", in);
		put_real(t, "link_gbps", p->link_gbps);
		plan_text_put(t, ",\n");
	}
	plan_text_put(t, "%s", in);
	put_bytes(t, "total_unique_bytes", plan_io_unique_bytes(p));
	plan_text_put(t, ",\n");
	put_table(t, p, in);
	plan_text_put(t, "%s\"budgets\": [", in);
	for (uint32_t i = 0; i < p->nr_budgets; i++) {
		plan_text_put(t, "%s", i ? ", " : "");
		put_budget(t, p->budgets[i]);
	}
	plan_text_put(t, "],\n%s\"layers\": [", in);
	for (uint32_t i = 0; i < p->nr_layers; i++) {
		plan_text_put(t, "%s%s  ", i ? ",\n" : "\n", in);
		put_layer(t, p, i, layer_extras, tensor_extras);
	}
	plan_text_put(t, "]");
	plan_text_program(t, &p->program, in);
	plan_text_extras(t, &p->extras, PLAN_IO_TOP, 0, 0);
	plan_text_put(t, "\n%s}", indent);
}

char *plan_io_print_profile(const struct plan_profile *p)
{
	struct plan_text t = { 0 };

	plan_text_profile(&t, p, "");
	plan_text_put(&t, "\n");
	return plan_text_take(&t);
}

/* ---- a plan ---- */

static void put_score(struct plan_text *t, const struct strategy_score *s)
{
	put_bytes(t, "peak_memory_bytes", s->peak_memory_bytes);
	plan_text_put(t, ", ");
	put_real(t, "estimated_overhead", s->estimated_overhead);
	plan_text_put(t, ", \"consecutive_violations\": %" PRIu32
		", \"is_valid\": %s", s->consecutive_violations,
		s->is_valid ? "true" : "false");
}

static void put_map(struct plan_text *t, const struct plan_file *f)
{
	const struct strategy_map *m = &f->result.strategy_map;

	plan_text_put(t, "  \"strategy_map\": [");
	for (uint32_t i = 0; i < m->nr; i++) {
		const struct plan_slot *s = &m->slots[i];

		plan_text_put(t, "%s    {", i ? ",\n" : "\n");
		put_name(t, "slot", f->profile.layers[s->slot].label);
		plan_text_put(t, ", \"entries\": [");
		for (uint32_t j = 0; j < s->nr; j++) {
			const struct plan_entry *e = &s->entries[j];

			plan_text_put(t, "%s{\"id\": %" PRId64, j ? ", " : "",
				e->tensor->id);
			if (e->tensor->name) {
				plan_text_put(t, ", ");
				put_name(t, "name", e->tensor->name);
			}
			plan_text_put(t, ", \"offset\": %" PRIu64
				", \"length\": %" PRIu64 "}", e->offset,
				e->length);
		}
		plan_text_put(t, "]}");
	}
	plan_text_put(t, "],\n");
}

static void put_label_or_null(struct plan_text *t, const struct plan_file *f,
	const char *key, uint32_t layer)
{
	plan_text_put(t, "\"%s\": ", key);
	if (layer < f->profile.nr_layers)
		plan_text_string(t, f->profile.layers[layer].label);
	else
		plan_text_put(t, "null");
}

static void put_blocks(struct plan_text *t, const struct plan_file *f)
{
	const struct block_strategy_data *b = f->result.block_data;

	if (!b) {
		plan_text_put(t, "  \"block_data\": null,\n");
		return;
	}
	plan_text_put(t, "  \"block_data\": {\n    \"block_sizes\": [");
	for (uint32_t i = 0; i < b->nr_blocks; i++)
		plan_text_put(t, "%s%" PRIu64, i ? ", " : "",
			b->block_sizes[i]);
	plan_text_put(t, "],\n    \"transfers\": [");
	for (uint32_t i = 0; i < b->nr; i++) {
		plan_text_put(t, "%s      {", i ? ",\n" : "\n");
		put_label_or_null(t, f, "slot", b->slots[i]);
		plan_text_put(t, ", ");
		put_label_or_null(t, f, "compute",
			b->transfer_to_compute_map[i]);
		plan_text_put(t, ", \"block\": %" PRIu32 ", ",
			b->label_to_block_id[i]);
		put_bytes(t, "bytes", b->label_to_size_map[i]);
		plan_text_put(t, "}");
	}
	plan_text_put(t, "],\n    \"allocation_ordered\": [");
	for (uint32_t i = 0; i < b->nr_blocks; i++) {
		plan_text_put(t, "%s      [", i ? ",\n" : "\n");
		for (uint32_t j = 0; j < b->allocation_ordered[i].nr; j++) {
			plan_text_put(t, "%s", j ? ", " : "");
			plan_text_string(t, f->profile.layers[
				b->allocation_ordered[i].slots[j]].label);
		}
		plan_text_put(t, "]");
	}
	plan_text_put(t, "]\n  },\n");
}

static void put_pool(struct plan_text *t, const struct plan_file *f)
{
	const struct plan_pool *p = f->result.pool;

	if (!p) {
		plan_text_put(t, "  \"pool\": null,\n");
		return;
	}
	plan_text_put(t, "  \"pool\": {\n    ");
	put_bytes(t, "chunk_bytes", p->chunk_bytes);
	plan_text_put(t, ", \"nr_chunks\": %" PRIu32 ", \"positions\": %" PRIu64
		", \"pad_positions\": %" PRIu64 ",\n    ", p->nr_chunks,
		p->positions, p->pad_positions);
	put_bytes(t, "peak_bytes", p->peak_bytes);
	plan_text_put(t, ", ");
	put_bytes(t, "streamed_bytes", p->streamed_bytes);
	plan_text_put(t, ",\n    \"places\": [");
	for (uint32_t i = 0; i < p->nr_places; i++) {
		plan_text_put(t, "%s      {", i ? ",\n" : "\n");
		put_name(t, "layer",
			f->profile.layers[p->places[i].layer].label);
		plan_text_put(t, ", \"position\": %" PRIu64 ", \"chunks\": %"
			PRIu32 ", ", p->places[i].position,
			p->places[i].chunks);
		put_bytes(t, "bytes", p->places[i].bytes);
		plan_text_put(t, "}");
	}
	plan_text_put(t, "],\n    \"pieces\": [");
	for (uint32_t i = 0; i < p->nr_pieces; i++)
		plan_text_put(t, "%s      {\"place\": %" PRIu32 ", \"offset\": %"
			PRIu64 ", \"length\": %" PRIu64 "}", i ? ",\n" : "\n",
			p->pieces[i].place, p->pieces[i].offset,
			p->pieces[i].length);
	plan_text_put(t, "]\n  },\n");
}

static void put_head(struct plan_text *t, const struct plan_file *f)
{
	const struct plan_strategy *s = plan_strategy_find(f->strategy);
	const struct strategy_result *r = &f->result;
	const char *comma = "";
	char buf[64];

	plan_text_put(t, "{\n  \"ballast_plan\": %d,\n  ",
		PLAN_IO_PLAN_VERSION);
	put_name(t, "strategy", f->strategy);
	if (r->selected_strategy_name) {
		plan_text_put(t, ",\n  ");
		put_name(t, "selected_strategy_name",
			r->selected_strategy_name);
	}
	plan_text_put(t, ",\n  \"params\": {");
	for (uint32_t i = 0; s && i < PLAN_NR_PARAMS; i++) {
		enum plan_param_kind kind = plan_param(i)->kind;

		if (!(s->params >> i & 1))
			continue;
		plan_text_put(t, "%s\"%s\": ", comma, plan_param(i)->name);
		comma = ", ";
		plan_io_param_text(i, &f->params, buf, sizeof(buf));
		if (kind >= PLAN_LOADER)
			plan_text_string(t, buf);
		else
			plan_text_put(t, "%s", buf);
	}
	plan_text_put(t, "},\n  \"budget_bytes\": ");
	put_budget(t, f->budget);
	plan_text_put(t, ",\n  \"fingerprint\": \"%016" PRIx64 "\",\n",
		f->fingerprint);
}

static void put_figures(struct plan_text *t, const struct plan_file *f)
{
	const struct strategy_result *r = &f->result;

	plan_text_put(t, "  \"score\": {");
	put_score(t, &f->score);
	plan_text_put(t, "},\n  ");
	put_bytes(t, "offloaded_bytes", plan_offloaded_bytes(r));
	plan_text_put(t, ",\n  ");
	put_real(t, "period_ms", f->period_ms);
	plan_text_put(t, ", ");
	put_real(t, "cold_ms", f->cold_ms);
	plan_text_put(t, ", ");
	put_real(t, "bound_ms", f->bound_ms);
	plan_text_put(t, ",\n  ");
	put_real(t, "scale", r->scale);
	plan_text_put(t, ", \"over_budget\": %s, ",
		r->over_budget ? "true" : "false");
	put_name(t, "message", r->message);
	plan_text_put(t, ",\n  \"all_scores\": [");
	for (uint32_t i = 0; i < r->nr_scores; i++) {
		plan_text_put(t, "%s    {", i ? ",\n" : "\n");
		put_name(t, "name", r->all_scores[i].name);
		plan_text_put(t, ", ");
		put_score(t, &r->all_scores[i]);
		plan_text_put(t, "}");
	}
	plan_text_put(t, "],\n");
}

char *plan_io_print_plan(const struct plan_file *f)
{
	struct plan_text t = { 0 };

	put_head(&t, f);
	put_figures(&t, f);
	put_map(&t, f);
	put_blocks(&t, f);
	put_pool(&t, f);
	plan_text_put(&t, "  \"profile\": ");
	plan_text_profile(&t, &f->profile, "  ");
	plan_text_extras(&t, &f->extras, PLAN_IO_TOP, 0, 0);
	plan_text_put(&t, "\n}");
	plan_text_put(&t, "\n");
	return plan_text_take(&t);
}
