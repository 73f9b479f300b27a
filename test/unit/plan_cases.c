/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the planner's test data (plan_cases.h).  The load time of a tensor,
 * which the cases do not state, is what their table says for its size.
 */
#include "test/unit/plan_cases.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, const char *name)
{
	fprintf(stderr, "%s: %s\n", what, name);
	abort();
}

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, name, &v))
		die("missing", name);
	return v;
}

static struct json_object *item(struct json_object *o, uint32_t i)
{
	return json_object_array_get_idx(o, i);
}

static void read_table(struct plan_case *c, struct json_object *o)
{
	struct transfer_time *t;
	uint32_t nr = json_object_array_length(o);

	t = plan_arena_alloc(c->arena, nr, sizeof(*t));
	for (uint32_t i = 0; i < nr; i++) {
		t[i].bytes = json_object_get_int64(member(item(o, i), "bytes"));
		t[i].ms = json_object_get_double(member(item(o, i), "ms"));
	}
	c->memory_stats.points = t;
	c->memory_stats.nr = nr;
}

/* Names that begin with @ are one tensor wherever they stand. */
static int64_t id_of(const char *name, const struct plan_case *c, int64_t next)
{
	if (name[0] != '@')
		return next;
	for (uint32_t i = 0; i < c->nr; i++)
		for (uint32_t j = 0; j < c->layers[i].nr; j++)
			if (!strcmp(c->layers[i].tensors[j].name, name))
				return c->layers[i].tensors[j].id;
	return next;
}

static void read_layers(struct plan_case *c, struct json_object *o)
{
	struct memory_transfer_interpolator *ip;
	uint32_t nr = json_object_array_length(o);
	int64_t next = 1;

	if (plan_interpolator_create(&c->memory_stats, c->arena, &ip))
		die("no table", c->name);
	c->layers = plan_arena_alloc(c->arena, nr, sizeof(*c->layers));
	for (uint32_t i = 0; i < nr; i++, c->nr++) {
		struct json_object *l = item(o, i), *ts = member(l, "tensors");
		uint32_t n = json_object_array_length(ts);
		struct tensor_statistics *t;

		t = plan_arena_alloc(c->arena, n, sizeof(*t));
		c->layers[i].label = plan_arena_strdup(c->arena,
			json_object_get_string(member(l, "label")));
		c->layers[i].duration_ms = json_object_get_double(
			member(l, "duration_ms"));
		c->layers[i].tensors = t;
		for (uint32_t j = 0; j < n; j++) {
			t[j].name = plan_arena_strdup(c->arena,
				json_object_get_string(
					member(item(ts, j), "name")));
			t[j].size_bytes = json_object_get_int64(
				member(item(ts, j), "bytes"));
			t[j].load_time_ms = plan_bytes_to_duration(ip,
				(double)t[j].size_bytes);
			t[j].id = id_of(t[j].name, c, next++);
			c->total += t[j].size_bytes;
		}
		c->layers[i].nr = n;
	}
}

struct plan_case *plan_case_load(const char *name)
{
	struct plan_case *c = calloc(1, sizeof(*c));
	struct json_object *o, *b;
	char path[256];

	snprintf(path, sizeof(path), PLAN_CASES "/%s.json", name);
	snprintf(c->name, sizeof(c->name), "%s", name);
	o = json_object_from_file(path);
	if (!o)
		die("cannot read", path);
	c->arena = plan_arena_create();
	read_table(c, member(o, "memory_stats"));
	read_layers(c, member(o, "layers"));
	b = member(o, "budgets");
	for (uint32_t i = 0; i < json_object_array_length(b); i++)
		c->budgets[c->nr_budgets++] = item(b, i) ?
			(uint64_t)json_object_get_int64(item(b, i)) :
			PLAN_NO_LIMIT;
	json_object_put(o);
	return c;
}

void plan_case_free(struct plan_case *c)
{
	plan_arena_destroy(c->arena);
	free(c);
}

static bool parse_row(char *line, struct plan_reference *r)
{
	char *field[11], *save = NULL;
	uint32_t n = 0;

	if (line[0] == '#')
		return false;
	for (char *f = strtok_r(line, "\t\n", &save); f && n < 11;
	     f = strtok_r(NULL, "\t\n", &save))
		field[n++] = f;
	if (n != 11)
		die("bad row", line);
	snprintf(r->name, sizeof(r->name), "%s", field[0]);
	snprintf(r->strategy, sizeof(r->strategy), "%s", field[1]);
	r->budget = field[2][0] == '-' ? PLAN_NO_LIMIT :
		strtoull(field[2], NULL, 10);
	r->failed = field[3][0] == '-';
	r->peak = strtoull(field[3], NULL, 10);
	r->offloaded = strtoull(field[4], NULL, 10);
	r->violations = strtoul(field[5], NULL, 10);
	r->overhead = strtod(field[6], NULL);
	r->valid = field[7][0] == '1';
	r->blocks = strtoul(field[8], NULL, 10);
	r->scale = strtod(field[9], NULL);
	snprintf(r->selected, sizeof(r->selected), "%s", field[10]);
	return true;
}

struct plan_reference *plan_reference_load(uint32_t *nr)
{
	struct plan_reference *rows = NULL;
	FILE *f = fopen(PLAN_REFERENCE, "r");
	char line[512];

	if (!f)
		die("cannot read", PLAN_REFERENCE);
	*nr = 0;
	while (fgets(line, sizeof(line), f)) {
		if (*nr % 64 == 0)
			rows = realloc(rows, (*nr + 64) * sizeof(*rows));
		memset(&rows[*nr], 0, sizeof(*rows));
		*nr += parse_row(line, &rows[*nr]);
	}
	fclose(f);
	return rows;
}
