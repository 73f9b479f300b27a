/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the readers of the two formats use: values of a parsed file that know
 * where they stand in it.  Only plan_io*.c include it.
 */
#ifndef BALLAST_PLANNER_PLAN_IO_INT_H
#define BALLAST_PLANNER_PLAN_IO_INT_H

#include "planner/plan_int.h"
#include "planner/plan_io.h"
#include "planner/plan_text.h"

struct json_object;	/* json-c's; NULL is null */

/* A file being read.  After the first error nothing else is reported. */
struct plan_io_doc {
	struct plan_io *io;
	const char *text;
	size_t len;
	struct plan_arena *arena;
	struct json_object *root;	/* owned */
	uint32_t nr_warnings;
	int err;			/* 0 or -errno */
};

/* ---- plan_json.c ---- */

/* Parses; 0 or -errno.  plan_io_close() in any case. */
int plan_io_open(struct plan_io_doc *d, struct plan_io *io, const char *text,
	size_t len, struct plan_arena *arena);
void plan_io_close(struct plan_io_doc *d);

/* At the place of v; NULL: the file as a whole.  Keeps the first error. */
void plan_io_bad(struct plan_io_doc *d, const struct json_object *v,
	const char *format, ...) __attribute__((format(printf, 3, 4)));
void plan_io_no_memory(struct plan_io_doc *d);
void plan_io_warning(struct plan_io_doc *d, const struct json_object *v,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Where v stands in the text; 0 for null. */
size_t plan_io_offset_of(const struct json_object *v);
/* As it is written in the file, in the arena; NULL: no memory. */
char *plan_io_text_of(struct plan_io_doc *d, struct json_object *v);

/* ---- plan_json_value.c ---- */

/*
 * Members.  false: absent, null, or wrong (then d->err is set and *out is
 * untouched).  `must`: absent or null is an error too.
 */
bool plan_io_has(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, struct json_object **out);
bool plan_io_real(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, double *out);
bool plan_io_whole(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, uint64_t most, uint64_t *out);
bool plan_io_nr(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, uint32_t most, uint32_t *out);
bool plan_io_id(struct plan_io_doc *d, struct json_object *o, const char *key,
	bool must, int64_t *out);
bool plan_io_bool(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, bool *out);
/* Copied into the arena. */
bool plan_io_string(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, const char **out);
bool plan_io_array(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, struct json_object **out, uint32_t *nr);
bool plan_io_object(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, struct json_object **out);

/* An array's; NULL for null.  plan_io_item_object() demands an object. */
struct json_object *plan_io_item(struct json_object *array, uint32_t i);
struct json_object *plan_io_item_object(struct plan_io_doc *d,
	struct json_object *array, uint32_t i);
/* An array within an array. */
bool plan_io_item_array(struct plan_io_doc *d, struct json_object *v,
	const char *what, uint32_t *nr);
/* A bare value, not a member; `what` names it in messages. */
bool plan_io_value_whole(struct plan_io_doc *d, struct json_object *v,
	const char *what, uint64_t most, uint64_t *out);
bool plan_io_value_string(struct plan_io_doc *d, struct json_object *v,
	const char *what, const char **out);
/* A string, number or truth value as text in the arena. */
bool plan_io_scalar(struct plan_io_doc *d, struct json_object *o,
	const char *key, bool must, const char **out);

/*
 * Keeps members not in the list, which ends with NULL, and warns of each;
 * extras NULL: warns only, that they are left out.
 */
void plan_io_unknown(struct plan_io_doc *d, struct json_object *o,
	const char *const *known, struct plan_io_extras *extras,
	enum plan_io_place place, uint32_t layer, uint32_t tensor);

/* plan_io_profile.c: from a member of a plan, or the whole file. */
void plan_io_read_profile(struct plan_io_doc *d, struct json_object *o,
	struct plan_profile *out);

/* plan_io_program.c */
void plan_io_read_program(struct plan_io_doc *d, struct json_object *top,
	struct plan_program *out);

/* ---- plan_io_plan.c, plan_io_pool.c ---- */

/* A plan being read, with the names of its profile. */
struct plan_io_reader {
	struct plan_io_doc *d;
	struct plan_file *f;
	const struct layer_statistics *layers;
	uint32_t nr_layers;
	struct plan_ids labels;		/* hash to layer */
	struct plan_ids tensors;	/* id to a number in at */
	const struct tensor_statistics **at;
	uint64_t *copied;		/* by slot: bytes */
	uint64_t total;			/* of all entries */
};

/* A member that is a layer's label or number; false: it is neither. */
bool plan_io_layer_member(struct plan_io_reader *r, struct json_object *o,
	const char *key, bool must, uint32_t *out);
void plan_io_read_pool(struct plan_io_reader *r, struct json_object *top);

/* ---- plan_io_print.c ---- */

/* Members of the place, each after a comma. */
void plan_text_extras(struct plan_text *t, const struct plan_io_extras *x,
	enum plan_io_place place, uint32_t layer, uint32_t tensor);
/* The member after a comma, if there is one; plan_io_program.c. */
void plan_text_program(struct plan_text *t, const struct plan_program *p,
	const char *in);
/* The object, its lines indented by `indent`. */
void plan_text_profile(struct plan_text *t, const struct plan_profile *p,
	const char *indent);

#endif
