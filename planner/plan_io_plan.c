/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.json: a plan, how it was made, and the profile it was made for.  What it
 * says is checked against that profile before anybody follows it: layers,
 * tensors and ranges exist, blocks are large enough, the ring's geometry adds
 * up.  Called through plan_io.h; no locks.
 */
#include "planner/plan_io_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_int.h"
#include "planner/timeline.h"

#define MOST_BLOCKS (1u << 24)

static const char *const top_keys[] = {
	"ballast_plan", "strategy", "selected_strategy_name", "params",
	"budget_bytes", "fingerprint", "score", "offloaded_bytes", "period_ms",
	"cold_ms", "bound_ms", "scale", "over_budget", "message", "all_scores",
	"strategy_map", "block_data", "pool", "profile", NULL,
};
static const char *const slot_keys[] = { "slot", "entries", NULL };
static const char *const entry_keys[] = {
	"id", "name", "offset", "length", NULL,
};
static const char *const block_keys[] = {
	"block_sizes", "transfers", "allocation_ordered", NULL,
};
static const char *const transfer_keys[] = {
	"slot", "compute", "block", "bytes", NULL,
};
static const char *const score_keys[] = {
	"name", "peak_memory_bytes", "estimated_overhead",
	"consecutive_violations", "is_valid", NULL,
};

/* ---- names of the profile ---- */

static int64_t label_hash(const char *label)
{
	uint64_t x = 0xcbf29ce484222325u;

	for (; *label; label++)
		x = (x ^ (unsigned char)*label) * 0x100000001b3u;
	return (int64_t)x;
}

static bool reader_init(struct plan_io_reader *r)
{
	size_t nr = 0, n = 0;

	for (uint32_t i = 0; i < r->nr_layers; i++)
		nr += r->layers[i].nr;
	r->at = plan_arena_alloc(r->d->arena, nr, sizeof(*r->at));
	r->copied = plan_arena_alloc(r->d->arena, r->nr_layers,
		sizeof(*r->copied));
	if (!r->at || !r->copied ||
	    plan_ids_init(&r->labels, r->nr_layers, r->d->arena) != PLAN_OK ||
	    plan_ids_init(&r->tensors, nr, r->d->arena) != PLAN_OK)
		return false;
	for (uint32_t i = 0; i < r->nr_layers; i++) {
		uint32_t *at;
		int64_t h;

		/* Equal hashes take the next number. */
		h = label_hash(r->layers[i].label);
		while (*(at = plan_ids_at(&r->labels, h)) != PLAN_NONE)
			h = (int64_t)((uint64_t)h + 1);
		*at = i;
		for (uint32_t j = 0; j < r->layers[i].nr; j++) {
			at = plan_ids_at(&r->tensors,
				r->layers[i].tensors[j].id);
			if (*at != PLAN_NONE)
				continue;
			*at = (uint32_t)n;
			r->at[n++] = &r->layers[i].tensors[j];
		}
	}
	return true;
}

static bool layer_of(struct plan_io_reader *r, struct json_object *v,
	const char *what,	uint32_t *out)
{
	const char *label;
	uint32_t at;
	int64_t h;

	if (!plan_io_value_string(r->d, v, what, &label))
		return false;
	for (h = label_hash(label);; h = (int64_t)((uint64_t)h + 1)) {
		at = plan_ids_find(&r->labels, h);
		if (at == PLAN_NONE)
			break;
		if (!strcmp(r->layers[at].label, label)) {
			*out = at;
			return true;
		}
	}
	plan_io_bad(r->d, v, "the profile has no layer \"%.80s\"", label);
	return false;
}

bool plan_io_layer_member(struct plan_io_reader *r, struct json_object *o,
	const char *key, bool must, uint32_t *out)
{
	struct json_object *v;

	return plan_io_has(r->d, o, key, must, &v) &&
		layer_of(r, v, key, out);
}

/* ---- strategy_map ---- */

static void read_entry(struct plan_io_reader *r, struct json_object *o,
	struct plan_entry *e)
{
	struct plan_io_doc *d = r->d;
	const char *name = NULL;
	uint64_t length = 0;
	uint32_t at;
	int64_t id;

	if (!plan_io_id(d, o, "id", true, &id))
		return;
	at = plan_ids_find(&r->tensors, id);
	if (at == PLAN_NONE) {
		plan_io_bad(d, o, "the profile has no tensor with id %" PRId64,
			id);
		return;
	}
	e->tensor = r->at[at];
	if (plan_io_string(d, o, "name", false, &name) && e->tensor->name &&
	    strcmp(name, e->tensor->name))
		plan_io_bad(d, o, "tensor %" PRId64 " is called \"%.80s\" in "
			"the profile", id, e->tensor->name);
	plan_io_whole(d, o, "offset", false, INT64_MAX, &e->offset);
	length = e->tensor->size_bytes;
	plan_io_whole(d, o, "length", false, INT64_MAX, &length);
	e->length = length;
	if (!d->err && (e->offset > e->tensor->size_bytes ||
			length > e->tensor->size_bytes - e->offset))
		plan_io_bad(d, o, "offset and length go beyond the tensor's %"
			PRIu64 " bytes", e->tensor->size_bytes);
	if (!d->err && (r->total += length) > INT64_MAX)
		plan_io_bad(d, o, "more bytes than any machine has");
	plan_io_unknown(d, o, entry_keys, NULL, PLAN_IO_TOP, 0, 0);
}

static void read_slot(struct plan_io_reader *r, struct json_object *o,
	struct plan_slot *s, bool *taken)
{
	struct plan_io_doc *d = r->d;
	struct json_object *list, *item;
	struct plan_entry *e;

	if (!plan_io_layer_member(r, o, "slot", true, &s->slot))
		return;
	if (taken[s->slot]) {
		plan_io_bad(d, o, "slot \"%.80s\" stands twice",
			r->layers[s->slot].label);
		return;
	}
	taken[s->slot] = true;
	if (!plan_io_array(d, o, "entries", true, &list, &s->nr))
		return;
	e = plan_arena_alloc(d->arena, s->nr, sizeof(*e));
	if (!e) {
		plan_io_no_memory(d);
		return;
	}
	s->entries = e;
	for (uint32_t j = 0; j < s->nr && !d->err; j++) {
		item = plan_io_item_object(d, list, j);
		if (item)
			read_entry(r, item, &e[j]);
	}
	r->copied[s->slot] = d->err ? 0 : plan_slot_bytes(s);
	plan_io_unknown(d, o, slot_keys, NULL, PLAN_IO_TOP, 0, 0);
}

static void read_map(struct plan_io_reader *r, struct json_object *o)
{
	struct strategy_map *m = &r->f->result.strategy_map;
	struct plan_io_doc *d = r->d;
	struct json_object *list, *item;
	struct plan_slot *slots;
	uint32_t nr = 0;
	bool *taken;

	if (!plan_io_array(d, o, "strategy_map", true, &list, &nr))
		return;
	slots = plan_arena_alloc(d->arena, nr, sizeof(*slots));
	taken = plan_arena_alloc(d->arena, r->nr_layers, sizeof(*taken));
	if (!slots || !taken) {
		plan_io_no_memory(d);
		return;
	}
	for (uint32_t i = 0; i < nr && !d->err; i++) {
		item = plan_io_item_object(d, list, i);
		if (item)
			read_slot(r, item, &slots[i], taken);
	}
	m->slots = slots;
	m->nr = nr;
}

/* ---- block_data ---- */

struct blocks {
	struct block_strategy_data data;
	uint32_t *slots, *ids, *compute;
	uint64_t *bytes, *sizes;
	struct plan_block_slots *lists;
};

static void read_sizes(struct plan_io_reader *r, struct json_object *o,
	struct blocks *b)
{
	struct json_object *list;

	if (!plan_io_array(r->d, o, "block_sizes", true, &list,
			   &b->data.nr_blocks))
		return;
	b->sizes = plan_arena_alloc(r->d->arena, b->data.nr_blocks,
		sizeof(*b->sizes));
	if (!b->sizes) {
		plan_io_no_memory(r->d);
		return;
	}
	for (uint32_t i = 0; i < b->data.nr_blocks && !r->d->err; i++)
		plan_io_value_whole(r->d, plan_io_item(list, i), "block_sizes",
			INT64_MAX, &b->sizes[i]);
}

static void read_transfer(struct plan_io_reader *r, struct json_object *o,
	struct blocks *b, uint32_t k)
{
	struct plan_io_doc *d = r->d;
	uint64_t have;

	b->compute[k] = PLAN_NONE;
	plan_io_layer_member(r, o, "slot", true, &b->slots[k]);
	plan_io_layer_member(r, o, "compute", false, &b->compute[k]);
	plan_io_nr(d, o, "block", true, MOST_BLOCKS, &b->ids[k]);
	plan_io_whole(d, o, "bytes", true, INT64_MAX, &b->bytes[k]);
	if (d->err)
		return;
	have = r->copied[b->slots[k]];
	if (k > 0 && b->slots[k] <= b->slots[k - 1])
		plan_io_bad(d, o, "transfers must be in the order of layers");
	else if (b->ids[k] >= b->data.nr_blocks)
		plan_io_bad(d, o, "there is no block %" PRIu32, b->ids[k]);
	else if (b->bytes[k] != have)
		plan_io_bad(d, o, "\"bytes\" is %" PRIu64 ", but the slot's "
			"entries add up to %" PRIu64, b->bytes[k], have);
	else if (b->bytes[k] > b->sizes[b->ids[k]])
		plan_io_bad(d, o, "%" PRIu64 " bytes do not fit block %" PRIu32,
			b->bytes[k], b->ids[k]);
	plan_io_unknown(d, o, transfer_keys, NULL, PLAN_IO_TOP, 0, 0);
}

static void read_transfers(struct plan_io_reader *r, struct json_object *o,
	struct blocks *b)
{
	const struct strategy_map *m = &r->f->result.strategy_map;
	struct json_object *list, *item;
	struct plan_arena *a = r->d->arena;
	uint32_t nr = 0, want = 0;

	if (!plan_io_array(r->d, o, "transfers", true, &list, &nr))
		return;
	b->slots = plan_arena_alloc(a, nr, sizeof(*b->slots));
	b->ids = plan_arena_alloc(a, nr, sizeof(*b->ids));
	b->compute = plan_arena_alloc(a, nr, sizeof(*b->compute));
	b->bytes = plan_arena_alloc(a, nr, sizeof(*b->bytes));
	if (!b->slots || !b->ids || !b->compute || !b->bytes) {
		plan_io_no_memory(r->d);
		return;
	}
	b->data.nr = nr;
	for (uint32_t k = 0; k < nr && !r->d->err; k++) {
		item = plan_io_item_object(r->d, list, k);
		if (item)
			read_transfer(r, item, b, k);
	}
	for (uint32_t i = 0; i < m->nr && !r->d->err; i++)
		want += plan_slot_bytes(&m->slots[i]) > 0;
	if (!r->d->err && want != nr)
		plan_io_bad(r->d, list, "%" PRIu32 " slots copy something, but "
			"%" PRIu32 " transfers are listed", want, nr);
}

static void read_lists(struct plan_io_reader *r, struct json_object *o,
	struct blocks *b)
{
	struct json_object *list, *inner;
	uint32_t nr = 0, *slots;

	if (!plan_io_array(r->d, o, "allocation_ordered", true, &list, &nr))
		return;
	if (nr != b->data.nr_blocks) {
		plan_io_bad(r->d, list, "one list for each block must stand "
			"here");
		return;
	}
	b->lists = plan_arena_alloc(r->d->arena, nr, sizeof(*b->lists));
	if (!b->lists) {
		plan_io_no_memory(r->d);
		return;
	}
	for (uint32_t i = 0; i < nr && !r->d->err; i++) {
		inner = plan_io_item(list, i);
		if (!plan_io_item_array(r->d, inner ? inner : list,
					"allocation_ordered", &b->lists[i].nr))
			return;
		slots = plan_arena_alloc(r->d->arena, b->lists[i].nr,
			sizeof(*slots));
		if (!slots) {
			plan_io_no_memory(r->d);
			return;
		}
		b->lists[i].slots = slots;
		for (uint32_t j = 0; j < b->lists[i].nr && !r->d->err; j++)
			layer_of(r, plan_io_item(inner, j),
				"allocation_ordered", &slots[j]);
	}
}

static void read_blocks(struct plan_io_reader *r, struct json_object *top)
{
	struct blocks *b = plan_arena_alloc(r->d->arena, 1, sizeof(*b));
	struct json_object *o;

	if (!plan_io_object(r->d, top, "block_data", false, &o))
		return;
	if (!b) {
		plan_io_no_memory(r->d);
		return;
	}
	read_sizes(r, o, b);
	if (!r->d->err)
		read_transfers(r, o, b);
	if (!r->d->err)
		read_lists(r, o, b);
	plan_io_unknown(r->d, o, block_keys, NULL, PLAN_IO_TOP, 0, 0);
	b->data.slots = b->slots;
	b->data.label_to_size_map = b->bytes;
	b->data.label_to_block_id = b->ids;
	b->data.transfer_to_compute_map = b->compute;
	b->data.block_sizes = b->sizes;
	b->data.allocation_ordered = b->lists;
	r->f->result.block_data = &b->data;
}

/* ---- the rest ---- */

static void read_score(struct plan_io_doc *d, struct json_object *o,
	struct strategy_score *s)
{
	plan_io_string(d, o, "name", false, &s->name);
	plan_io_whole(d, o, "peak_memory_bytes", true, INT64_MAX,
		&s->peak_memory_bytes);
	plan_io_real(d, o, "estimated_overhead", true, &s->estimated_overhead);
	plan_io_nr(d, o, "consecutive_violations", true, UINT32_MAX,
		&s->consecutive_violations);
	plan_io_bool(d, o, "is_valid", true, &s->is_valid);
	plan_io_unknown(d, o, score_keys, NULL, PLAN_IO_TOP, 0, 0);
}

static void read_scores(struct plan_io_doc *d, struct json_object *o,
	struct plan_file *f)
{
	struct json_object *list, *item;
	struct strategy_score *s;
	uint32_t nr = 0;

	f->score.name = f->strategy;
	if (plan_io_object(d, o, "score", true, &item))
		read_score(d, item, &f->score);
	if (!plan_io_array(d, o, "all_scores", false, &list, &nr) || !nr)
		return;
	s = plan_arena_alloc(d->arena, nr, sizeof(*s));
	if (!s) {
		plan_io_no_memory(d);
		return;
	}
	for (uint32_t i = 0; i < nr && !d->err; i++) {
		item = plan_io_item_object(d, list, i);
		s[i].name = "";
		if (item)
			read_score(d, item, &s[i]);
	}
	f->result.all_scores = s;
	f->result.nr_scores = nr;
}

static void read_params(struct plan_io_doc *d, struct json_object *top,
	const struct plan_strategy *s, struct plan_file *f)
{
	const char *names[PLAN_NR_PARAMS + 1], *text;
	struct json_object *o, *v = NULL;
	char message[PLAN_MESSAGE];
	struct plan_io io = { 0 };
	uint32_t nr = 0;

	f->params = s->defaults;
	if (!plan_io_object(d, top, "params", false, &o))
		return;
	for (uint32_t i = 0; i < PLAN_NR_PARAMS && !d->err; i++) {
		const char *name = plan_param(i)->name;

		if (!(s->params >> i & 1))
			continue;
		names[nr++] = name;
		if (plan_io_has(d, o, name, false, &v) &&
		    plan_io_scalar(d, o, name, false, &text) &&
		    plan_io_set_param(&io, s, &f->params, name, text))
			plan_io_bad(d, v, "%s", io.error);
	}
	names[nr] = NULL;
	if (!d->err && plan_params_check(s, &f->params, message))
		plan_io_bad(d, o, "%s", message);
	plan_io_unknown(d, o, names, NULL, PLAN_IO_TOP, 0, 0);
}

static void read_head(struct plan_io_doc *d, struct plan_file *f)
{
	struct json_object *o = d->root, *v = NULL;
	const struct plan_strategy *s;
	const char *text;
	uint64_t version;
	char *end;

	if (plan_io_whole(d, o, "ballast_plan", true, INT64_MAX, &version) &&
	    version != PLAN_IO_PLAN_VERSION) {
		plan_io_has(d, o, "ballast_plan", true, &v);
		plan_io_bad(d, v, "plans of version %llu are not known to this "
			"program, which reads version %d",
			(unsigned long long)version, PLAN_IO_PLAN_VERSION);
	}
	if (!plan_io_string(d, o, "strategy", true, &f->strategy) ||
	    !plan_io_has(d, o, "strategy", true, &v))
		return;
	s = plan_strategy_find(f->strategy);
	if (!s) {
		plan_io_bad(d, v, "there is no strategy \"%.60s\"",
			f->strategy);
		return;
	}
	read_params(d, o, s, f);
	f->budget = PLAN_NO_LIMIT;
	plan_io_whole(d, o, "budget_bytes", false, INT64_MAX, &f->budget);
	if (!plan_io_string(d, o, "fingerprint", true, &text))
		return;
	f->fingerprint = strtoull(text, &end, 16);
	if (strlen(text) != 16 || *end || strspn(text, "0123456789abcdef") < 16)
		plan_io_bad(d, o, "\"fingerprint\" must be 16 hexadecimal "
			"digits");
}

static void read_figures(struct plan_io_doc *d, struct plan_file *f)
{
	struct json_object *o = d->root;
	const char *message = "";

	plan_io_string(d, o, "selected_strategy_name", false,
		&f->result.selected_strategy_name);
	plan_io_real(d, o, "period_ms", false, &f->period_ms);
	plan_io_real(d, o, "cold_ms", false, &f->cold_ms);
	plan_io_real(d, o, "bound_ms", false, &f->bound_ms);
	plan_io_real(d, o, "scale", false, &f->result.scale);
	plan_io_bool(d, o, "over_budget", false, &f->result.over_budget);
	plan_io_string(d, o, "message", false, &message);
	snprintf(f->result.message, sizeof(f->result.message), "%s", message);
	f->result.period_ms = f->period_ms;
	f->result.bound_ms = f->bound_ms;
	if (!d->err)
		read_scores(d, o, f);
}

/* The profile in the file or the caller's; false with an error set. */
static bool choose_profile(struct plan_io_doc *d,
	const struct plan_profile *given, struct plan_file *f)
{
	struct json_object *v;
	uint64_t have;

	if (given)
		f->profile = *given;
	else if (plan_io_object(d, d->root, "profile", true, &v))
		plan_io_read_profile(d, v, &f->profile);
	if (d->err)
		return false;
	have = plan_io_fingerprint(f->profile.layers, f->profile.nr_layers);
	if (have == f->fingerprint ||
	    !plan_io_has(d, d->root, "fingerprint", true, &v))
		return !d->err;
	plan_io_bad(d, v, "the plan is for other layers or tensors: its "
		"fingerprint is %016" PRIx64 ", that of %s %016" PRIx64,
		f->fingerprint, given ? "the profile" : "its own profile",
		have);
	return false;
}

int plan_io_parse_plan(struct plan_io *io, const char *text, size_t len,
	const struct plan_profile *profile, struct plan_arena *arena,
	struct plan_file *out)
{
	struct plan_io_doc d;
	struct plan_io_reader r = { .d = &d, .f = out };

	memset(out, 0, sizeof(*out));
	if (!plan_io_open(&d, io, text, len, arena))
		read_head(&d, out);
	if (!d.err && choose_profile(&d, profile, out)) {
		r.layers = out->profile.layers;
		r.nr_layers = out->profile.nr_layers;
		if (!reader_init(&r))
			plan_io_no_memory(&d);
		if (!d.err)
			read_figures(&d, out);
		if (!d.err)
			read_map(&r, d.root);
		if (!d.err)
			read_blocks(&r, d.root);
		if (!d.err)
			plan_io_read_pool(&r, d.root);
		plan_io_unknown(&d, d.root, top_keys, &out->extras,
			PLAN_IO_TOP, 0, 0);
	}
	plan_io_close(&d);
	return d.err;
}
