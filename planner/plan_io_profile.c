/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.json: what was seen of a program.  Also takes the planner's test
 * cases, which have no version, no ids (names that begin with @ are shared) and
 * no load times.  Called through plan_io.h; no locks.
 */
#include "planner/plan_io_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_int.h"

/* Without a table: copies have this latency, as those of the test cases. */
#define LATENCY_MS 0.01
#define MOST_LAYERS (1u << 24)
#define MOST_TENSORS (1u << 26)

static const char *const top_keys[] = {
	"ballast_profile", "name", "note", "device", "link_gbps",
	"total_unique_bytes", "layers", "memory_stats", "budgets",
	"program", NULL,
};
static const char *const device_keys[] = { "name", "memory_bytes", NULL };
static const char *const layer_keys[] = {
	"label", "duration_ms", "tensors", NULL,
};
static const char *const tensor_keys[] = {
	"id", "name", "bytes", "load_time_ms", NULL,
};
static const char *const point_keys[] = { "bytes", "ms", NULL };

/* ---- the table of copies ---- */

static int by_bytes(const void *a, const void *b)
{
	const struct transfer_time *p = a, *q = b;

	return p->bytes < q->bytes ? -1 : p->bytes > q->bytes;
}

static void read_table(struct plan_io_doc *d, struct json_object *o,
	struct plan_profile *p)
{
	struct transfer_time *t, *sorted;
	struct json_object *list, *item;
	uint32_t nr = 0;

	if (!plan_io_array(d, o, "memory_stats", false, &list, &nr) || !nr)
		return;
	t = plan_arena_alloc(d->arena, nr, sizeof(*t));
	sorted = plan_arena_alloc(d->arena, nr, sizeof(*t));
	if (!t || !sorted) {
		plan_io_no_memory(d);
		return;
	}
	for (uint32_t i = 0; i < nr && !d->err; i++) {
		item = plan_io_item_object(d, list, i);
		if (!item)
			return;
		plan_io_whole(d, item, "bytes", true, INT64_MAX, &t[i].bytes);
		plan_io_real(d, item, "ms", true, &t[i].ms);
		if (!d->err && (!t[i].bytes || !(t[i].ms > 0)))
			plan_io_bad(d, item, "bytes and ms of a copy must be "
				"above 0");
		plan_io_unknown(d, item, point_keys, NULL, PLAN_IO_TOP, 0, 0);
	}
	memcpy(sorted, t, nr * sizeof(*t));
	qsort(sorted, nr, sizeof(*t), by_bytes);
	for (uint32_t i = 1; i < nr && !d->err; i++)
		if (sorted[i].bytes == sorted[i - 1].bytes)
			plan_io_bad(d, list, "two copies of %llu bytes in the "
				"table", (unsigned long long)sorted[i].bytes);
	p->memory_stats = (struct memory_stats){ t, nr };
}

/* From the bandwidth alone. */
static void make_table(struct plan_io_doc *d, struct plan_profile *p)
{
	const uint32_t nr = 9;
	struct transfer_time *t = plan_arena_alloc(d->arena, nr, sizeof(*t));

	if (!t) {
		plan_io_no_memory(d);
		return;
	}
	for (uint32_t i = 0; i < nr; i++) {
		t[i].bytes = UINT64_C(65536) << (2 * i);
		t[i].ms = LATENCY_MS + (double)t[i].bytes / 1e6 / p->link_gbps;
	}
	p->memory_stats = (struct memory_stats){ t, nr };
}

/* ---- layers ---- */

struct reader {
	struct plan_io_doc *d;
	struct plan_profile *p;
	struct layer_statistics *layers;
	struct json_object **places;	/* of the layers' labels */
	struct plan_ids names;		/* hash of @name to the tensor's number */
	struct tensor_statistics **tied;
	uint32_t nr_tied, room;
	int64_t next_id;
	bool some_ids, some_without;
};

/* The tensor of that name from another layer. */
static bool find_tied(struct reader *r, struct tensor_statistics *t)
{
	uint64_t h = 0xcbf29ce484222325u;
	uint32_t *at;

	for (const char *c = t->name; *c; c++)
		h = (h ^ (unsigned char)*c) * 0x100000001b3u;
	for (;; h++) {
		at = plan_ids_at(&r->names, (int64_t)h);
		if (*at == PLAN_NONE)
			break;
		if (!strcmp(r->tied[*at]->name, t->name)) {
			t->id = r->tied[*at]->id;
			return true;
		}
	}
	*at = r->nr_tied;
	r->tied[r->nr_tied++] = t;
	return false;
}

static void read_tensor(struct reader *r, struct json_object *o,
	uint32_t layer, uint32_t nr, struct tensor_statistics *t)
{
	struct plan_io_doc *d = r->d;

	plan_io_string(d, o, "name", false, &t->name);
	plan_io_whole(d, o, "bytes", true, INT64_MAX, &t->size_bytes);
	plan_io_real(d, o, "load_time_ms", false, &t->load_time_ms);
	if (plan_io_id(d, o, "id", false, &t->id)) {
		r->some_ids = true;
	} else if (!d->err) {
		r->some_without = true;
		if (!t->name || t->name[0] != '@' || !find_tied(r, t))
			t->id = r->next_id++;
	}
	if (!d->err && r->some_ids && r->some_without)
		plan_io_bad(d, o, "either all tensors have an \"id\" or none");
	plan_io_unknown(d, o, tensor_keys, &r->p->extras, PLAN_IO_TENSOR, layer,
		nr);
}

static void read_layer(struct reader *r, struct json_object *o, uint32_t nr)
{
	struct layer_statistics *l = &r->layers[nr];
	struct plan_io_doc *d = r->d;
	struct tensor_statistics *t;
	struct json_object *list = NULL, *item;

	plan_io_string(d, o, "label", true, &l->label);
	plan_io_has(d, o, "label", true, &r->places[nr]);
	plan_io_real(d, o, "duration_ms", true, &l->duration_ms);
	if (!plan_io_array(d, o, "tensors", true, &list, &l->nr))
		return;
	t = plan_arena_alloc(d->arena, l->nr, sizeof(*t));
	if (!t) {
		plan_io_no_memory(d);
		return;
	}
	l->tensors = t;
	for (uint32_t j = 0; j < l->nr && !d->err; j++) {
		item = plan_io_item_object(d, list, j);
		if (item)
			read_tensor(r, item, nr, j, &t[j]);
	}
	plan_io_unknown(d, o, layer_keys, &r->p->extras, PLAN_IO_LAYER, nr, 0);
}

struct label {
	const char *text;
	uint32_t layer;
};

static int by_text(const void *a, const void *b)
{
	const struct label *p = a, *q = b;
	int order = strcmp(p->text, q->text);

	return order ? order : (p->layer > q->layer) - (p->layer < q->layer);
}

static void check_labels(struct reader *r, uint32_t nr)
{
	struct label *l = plan_arena_alloc(r->d->arena, nr, sizeof(*l));

	if (!l) {
		plan_io_no_memory(r->d);
		return;
	}
	for (uint32_t i = 0; i < nr; i++)
		l[i] = (struct label){ r->layers[i].label, i };
	qsort(l, nr, sizeof(*l), by_text);
	for (uint32_t i = 1; i < nr; i++)
		if (!strcmp(l[i].text, l[i - 1].text)) {
			plan_io_bad(r->d, r->places[l[i].layer], "two layers "
				"are called \"%.80s\"", l[i].text);
			return;
		}
}

/* Room for all tensors that may be shared. */
static bool reader_init(struct reader *r, struct json_object *list, uint32_t nr)
{
	struct json_object *item, *tensors;
	uint64_t total = 0;
	uint32_t n;

	for (uint32_t i = 0; i < nr; i++) {
		item = plan_io_item_object(r->d, list, i);
		if (!item || !plan_io_array(r->d, item, "tensors", true,
					    &tensors, &n))
			return false;
		total += n;
	}
	if (total > MOST_TENSORS) {
		plan_io_bad(r->d, list, "more than %u tensors", MOST_TENSORS);
		return false;
	}
	r->layers = plan_arena_alloc(r->d->arena, nr, sizeof(*r->layers));
	r->places = plan_arena_alloc(r->d->arena, nr, sizeof(*r->places));
	r->tied = plan_arena_alloc(r->d->arena, total, sizeof(*r->tied));
	if (r->layers && r->places && r->tied &&
	    plan_ids_init(&r->names, total, r->d->arena) == PLAN_OK)
		return true;
	plan_io_no_memory(r->d);
	return false;
}

/* Load times that are not told, from the table. */
static void fill_load_times(struct plan_io_doc *d, struct plan_profile *p)
{
	struct memory_transfer_interpolator *ip = NULL;

	if (d->err || !p->memory_stats.nr)
		return;
	/* What is wrong with the table, plan_input_check() says. */
	if (plan_interpolator_create(&p->memory_stats, d->arena, &ip))
		return;
	for (uint32_t i = 0; i < p->nr_layers; i++)
		for (uint32_t j = 0; j < p->layers[i].nr; j++) {
			struct tensor_statistics *t = (struct tensor_statistics
				*)(uintptr_t)&p->layers[i].tensors[j];
			double ms = plan_bytes_to_duration(ip,
				(double)t->size_bytes);

			if (!(t->load_time_ms > 0) && isfinite(ms))
				t->load_time_ms = ms;
		}
}

static void read_layers(struct plan_io_doc *d, struct json_object *o,
	struct plan_profile *p)
{
	struct reader r = { .d = d, .p = p, .next_id = 1 };
	struct json_object *list, *item;
	char message[PLAN_MESSAGE] = "";
	struct plan_input in;
	uint32_t nr = 0;
	enum plan_status status;

	if (!plan_io_array(d, o, "layers", true, &list, &nr))
		return;
	if (nr == 0 || nr > MOST_LAYERS) {
		plan_io_bad(d, list, "%s", nr ? "too many layers" :
			"there are no layers");
		return;
	}
	if (!reader_init(&r, list, nr))
		return;
	for (uint32_t i = 0; i < nr && !d->err; i++) {
		item = plan_io_item_object(d, list, i);
		if (item)
			read_layer(&r, item, i);
	}
	if (d->err)
		return;
	check_labels(&r, nr);
	p->layers = r.layers;
	p->nr_layers = nr;
	fill_load_times(d, p);
	in = plan_io_input(p, PLAN_NO_LIMIT);
	status = d->err ? PLAN_OK : plan_input_check(&in, message);
	if (status == PLAN_NO_MEMORY)
		plan_io_no_memory(d);
	else if (status)
		plan_io_bad(d, list, "%s", message[0] ? message :
			plan_status_message(status));
}

/* ---- the rest ---- */

static void read_budgets(struct plan_io_doc *d, struct json_object *o,
	struct plan_profile *p)
{
	struct json_object *list, *item;
	uint64_t *b;
	uint32_t nr = 0;

	if (!plan_io_array(d, o, "budgets", false, &list, &nr))
		return;
	b = plan_arena_alloc(d->arena, nr, sizeof(*b));
	if (!b) {
		plan_io_no_memory(d);
		return;
	}
	for (uint32_t i = 0; i < nr && !d->err; i++) {
		item = plan_io_item(list, i);
		b[i] = PLAN_NO_LIMIT;
		if (item && plan_io_value_whole(d, item, "budgets", INT64_MAX,
						&b[i]) && !b[i])
			plan_io_bad(d, item, "a budget must be above 0");
	}
	p->budgets = b;
	p->nr_budgets = nr;
}

static void read_device(struct plan_io_doc *d, struct json_object *o,
	struct plan_profile *p)
{
	struct json_object *v;

	if (!plan_io_object(d, o, "device", false, &v))
		return;
	plan_io_string(d, v, "name", false, &p->device);
	plan_io_whole(d, v, "memory_bytes", false, INT64_MAX, &p->device_bytes);
	plan_io_unknown(d, v, device_keys, &p->extras, PLAN_IO_DEVICE, 0, 0);
}

void plan_io_read_profile(struct plan_io_doc *d, struct json_object *o,
	struct plan_profile *p)
{
	uint64_t version = PLAN_IO_PROFILE_VERSION, unique;
	struct json_object *v = NULL;

	memset(p, 0, sizeof(*p));
	p->name = p->note = p->device = "";
	if (plan_io_whole(d, o, "ballast_profile", false, INT64_MAX,
			  &version) && version != PLAN_IO_PROFILE_VERSION) {
		plan_io_has(d, o, "ballast_profile", true, &v);
		plan_io_bad(d, v, "profiles of version %llu are not known to "
			"this program, which reads version %d",
			(unsigned long long)version, PLAN_IO_PROFILE_VERSION);
	}
	plan_io_string(d, o, "name", false, &p->name);
	plan_io_string(d, o, "note", false, &p->note);
	plan_io_real(d, o, "link_gbps", false, &p->link_gbps);
	read_device(d, o, p);
	read_table(d, o, p);
	if (!d->err && !p->memory_stats.nr && p->link_gbps > 0)
		make_table(d, p);
	read_layers(d, o, p);
	read_budgets(d, o, p);
	plan_io_read_program(d, o, &p->program);
	if (plan_io_whole(d, o, "total_unique_bytes", false, INT64_MAX,
			  &unique) && unique != plan_io_unique_bytes(p)) {
		plan_io_has(d, o, "total_unique_bytes", true, &v);
		plan_io_warning(d, v, "\"total_unique_bytes\" is not the sum, "
			"which is %llu",
			(unsigned long long)plan_io_unique_bytes(p));
	}
	plan_io_unknown(d, o, top_keys, &p->extras, PLAN_IO_TOP, 0, 0);
}

int plan_io_parse_profile(struct plan_io *io, const char *text, size_t len,
	struct plan_arena *arena, struct plan_profile *out)
{
	struct json_object *plan = NULL;
	struct plan_io_doc d;

	if (!plan_io_open(&d, io, text, len, arena)) {
		if (plan_io_has(&d, d.root, "ballast_plan", false, &plan))
			plan_io_bad(&d, plan, "this is a plan, not a profile");
		plan_io_read_profile(&d, d.root, out);
	}
	plan_io_close(&d);
	return d.err;
}

struct plan_input plan_io_input(const struct plan_profile *p, uint64_t budget)
{
	return (struct plan_input){
		.layers = p->layers,
		.nr_layers = p->nr_layers,
		.memory_stats = p->memory_stats.nr ? &p->memory_stats : NULL,
		.max_gpu_mem_bytes = budget,
	};
}

uint64_t plan_io_unique_bytes(const struct plan_profile *p)
{
	struct plan_arena *arena = plan_arena_create();
	uint64_t total = 0;
	struct plan_ids seen;
	size_t nr = 0;

	for (uint32_t i = 0; i < p->nr_layers; i++)
		nr += p->layers[i].nr;
	if (!arena || plan_ids_init(&seen, nr, arena) != PLAN_OK)
		nr = 0;
	for (uint32_t i = 0; nr && i < p->nr_layers; i++)
		for (uint32_t j = 0; j < p->layers[i].nr; j++) {
			uint32_t *at = plan_ids_at(&seen,
				p->layers[i].tensors[j].id);

			if (*at == PLAN_NONE)
				total += p->layers[i].tensors[j].size_bytes;
			*at = i;
		}
	plan_arena_destroy(arena);
	return total;
}

static uint64_t hash(uint64_t h, const void *data, size_t size)
{
	for (const unsigned char *c = data; size--; c++)
		h = (h ^ *c) * 0x100000001b3u;
	return h;
}

uint64_t plan_io_fingerprint(const struct layer_statistics *layers,
	uint32_t nr)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (uint32_t i = 0; i < nr; i++) {
		h = hash(h, layers[i].label, strlen(layers[i].label) + 1);
		for (uint32_t j = 0; j < layers[i].nr; j++) {
			const struct tensor_statistics *t =
				&layers[i].tensors[j];

			h = hash(h, &t->id, sizeof(t->id));
			h = hash(h, &t->size_bytes, sizeof(t->size_bytes));
		}
	}
	return h;
}
