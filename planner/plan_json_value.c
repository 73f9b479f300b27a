/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of a file that plan_json.c has opened: each of its type and within
 * its limits, or a message with the place.  Called by the readers in
 * plan_io_*.c; no locks.
 */
#include "planner/plan_io_int.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

bool plan_io_has(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, struct json_object **out)
{
	struct json_object *v = NULL;

	if (d->err)
		return false;
	if (json_object_object_get_ex(o, key, &v) && v) {
		*out = v;
		return true;
	}
	if (must)
		plan_io_bad(d, o, "\"%s\" is missing here", key);
	return false;
}

static bool of_type(struct plan_io_doc *d, struct json_object *v,
	const char *what, enum json_type type, const char *type_name)
{
	if (d->err)
		return false;
	if (json_object_is_type(v, type))
		return true;
	plan_io_bad(d, v, "\"%s\" must be %s", what, type_name);
	return false;
}

bool plan_io_real(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, double *out)
{
	struct json_object *v;
	double x;

	if (!plan_io_has(d, o, key, must, &v))
		return false;
	if (!json_object_is_type(v, json_type_int) &&
	    !json_object_is_type(v, json_type_double)) {
		plan_io_bad(d, v, "\"%s\" must be a number", key);
		return false;
	}
	x = json_object_get_double(v);
	if (isnan(x))
		plan_io_bad(d, v, "\"%s\" is not a number (NaN)", key);
	else if (isinf(x))
		plan_io_bad(d, v, "\"%s\" is too large for a number", key);
	else if (signbit(x) && x != 0)
		plan_io_bad(d, v, "\"%s\" must not be negative", key);
	else
		*out = x == 0 ? 0 : x;	/* no -0 */
	return !d->err;
}

/* As it stands in the text: json-c would cut what does not fit. */
static bool whole_of(struct plan_io_doc *d, struct json_object *v,
	const char *what, uint64_t most, uint64_t *out)
{
	const char *text = d->text + plan_io_offset_of(v);
	uint64_t x = 0;
	double real;

	if (json_object_is_type(v, json_type_double)) {
		real = json_object_get_double(v);
		if (isnan(real)) {
			plan_io_bad(d, v, "\"%s\" is not a number (NaN)", what);
			return false;
		}
		if (real >= 0 && real == floor(real) && real <= 0x1p63) {
			x = (uint64_t)real;
			goto check;
		}
		plan_io_bad(d, v, "\"%s\" must be %s", what, real < 0 ?
			"not negative" : real > 0x1p63 ? "smaller" :
			"a whole number");
		return false;
	}
	if (!json_object_is_type(v, json_type_int)) {
		plan_io_bad(d, v, "\"%s\" must be a whole number", what);
		return false;
	}
	if (*text == '-' && json_object_get_int64(v) != 0) {
		plan_io_bad(d, v, "\"%s\" must not be negative", what);
		return false;
	}
	for (text += *text == '-'; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(x, 10, &x) ||
		    __builtin_add_overflow(x, (unsigned)(*text - '0'), &x)) {
			x = UINT64_MAX;
			most = most < UINT64_MAX ? most : UINT64_MAX - 1;
			break;
		}
check:
	if (x > most) {
		plan_io_bad(d, v, "\"%s\" is too large; at most %" PRIu64, what,
			most);
		return false;
	}
	*out = x;
	return true;
}

bool plan_io_value_whole(struct plan_io_doc *d, struct json_object *v,
	const char *what, uint64_t most, uint64_t *out)
{
	return !d->err && whole_of(d, v, what, most, out);
}

bool plan_io_whole(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, uint64_t most, uint64_t *out)
{
	struct json_object *v;

	return plan_io_has(d, o, key, must, &v) &&
		whole_of(d, v, key, most, out);
}

bool plan_io_nr(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, uint32_t most, uint32_t *out)
{
	uint64_t x;

	if (!plan_io_whole(d, o, key, must, most, &x))
		return false;
	*out = (uint32_t)x;
	return true;
}

bool plan_io_id(struct plan_io_doc *d, struct json_object *o, const char *key,
	bool must, int64_t *out)
{
	uint64_t x;

	if (!plan_io_whole(d, o, key, must, INT64_MAX, &x))
		return false;
	*out = (int64_t)x;
	return true;
}

bool plan_io_bool(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, bool *out)
{
	struct json_object *v;

	if (!plan_io_has(d, o, key, must, &v) ||
	    !of_type(d, v, key, json_type_boolean, "true or false"))
		return false;
	*out = json_object_get_boolean(v);
	return true;
}

bool plan_io_value_string(struct plan_io_doc *d, struct json_object *v,
	const char *what, const char **out)
{
	const char *text;

	if (!of_type(d, v, what, json_type_string, "a string"))
		return false;
	text = json_object_get_string(v);
	if (strlen(text) != (size_t)json_object_get_string_len(v)) {
		plan_io_bad(d, v, "\"%s\" has a zero character", what);
		return false;
	}
	*out = plan_arena_strdup(d->arena, text);
	if (!*out)
		plan_io_no_memory(d);
	return *out != NULL;
}

bool plan_io_string(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, const char **out)
{
	struct json_object *v;

	return plan_io_has(d, o, key, must, &v) &&
		plan_io_value_string(d, v, key, out);
}

bool plan_io_scalar(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, const char **out)
{
	struct json_object *v;

	if (!plan_io_has(d, o, key, must, &v))
		return false;
	if (json_object_is_type(v, json_type_string))
		return plan_io_value_string(d, v, key, out);
	if (json_object_is_type(v, json_type_object) ||
	    json_object_is_type(v, json_type_array)) {
		plan_io_bad(d, v, "\"%s\" must be a number, string, true or "
			"false", key);
		return false;
	}
	*out = plan_io_text_of(d, v);
	if (!*out)
		plan_io_no_memory(d);
	return *out != NULL;
}

bool plan_io_array(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, struct json_object **out, uint32_t *nr)
{
	struct json_object *v;

	if (!plan_io_has(d, o, key, must, &v) ||
	    !of_type(d, v, key, json_type_array, "a list"))
		return false;
	/* A file of 1 GiB has no more than 2^30 values. */
	*nr = (uint32_t)json_object_array_length(v);
	*out = v;
	return true;
}

bool plan_io_object(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, struct json_object **out)
{
	struct json_object *v;

	if (!plan_io_has(d, o, key, must, &v) ||
	    !of_type(d, v, key, json_type_object, "an object"))
		return false;
	*out = v;
	return true;
}

struct json_object *plan_io_item(struct json_object *array, uint32_t i)
{
	return json_object_array_get_idx(array, i);
}

struct json_object *plan_io_item_object(struct plan_io_doc *d,
	struct json_object *array, uint32_t i)
{
	struct json_object *v = plan_io_item(array, i);

	if (json_object_is_type(v, json_type_object))
		return v;
	plan_io_bad(d, v ? v : array, "entry %" PRIu32 " of this list must be "
		"an object", i);
	return NULL;
}

bool plan_io_item_array(struct plan_io_doc *d, struct json_object *v,
	const char *what, uint32_t *nr)
{
	if (!of_type(d, v, what, json_type_array, "a list of lists"))
		return false;
	*nr = (uint32_t)json_object_array_length(v);
	return true;
}

static bool keep(struct plan_io_doc *d, struct plan_io_extras *x,
	const struct plan_io_extra *e)
{
	if (x->nr == x->room) {
		uint32_t room = x->room ? 2 * x->room : 8;
		struct plan_io_extra *at = plan_arena_alloc(d->arena, room,
			sizeof(*at));

		if (!at)
			return false;
		if (x->nr)
			memcpy(at, x->at, x->nr * sizeof(*at));
		x->at = at;
		x->room = room;
	}
	x->at[x->nr++] = *e;
	return true;
}

/* Keys that nothing is computed from: kept like unknown ones, in silence. */
static bool for_people(const char *key)
{
	return strcmp(key, "phases") == 0;
}

void plan_io_unknown(struct plan_io_doc *d, struct json_object *o,
	const char *const *known, struct plan_io_extras *extras,
	enum plan_io_place place, uint32_t layer, uint32_t tensor)
{
	struct plan_io_extra e = { place, layer, tensor, NULL, NULL };

	if (d->err)
		return;
	json_object_object_foreach(o, key, v) {
		const char *const *k = known;

		while (*k && strcmp(*k, key))
			k++;
		if (*k)
			continue;
		if (!extras || !for_people(key))
			plan_io_warning(d, v ? v : o, "the key \"%.80s\" is unknown "
				"and %s", key, extras ? "only kept" : "left out");
		if (!extras)
			continue;
		e.key = plan_arena_strdup(d->arena, key);
		e.value = plan_io_text_of(d, v);
		if (!e.key || !e.value || !keep(d, extras, &e)) {
			plan_io_no_memory(d);
			return;
		}
	}
}
