/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.json and plan.json: reading, checking, writing.  The only part of
 * planner/ that touches files, and json-c is behind it.  ballast-files(5)
 * describes the formats.  Called by the tools and, for its own files, by the
 * library; no globals, so it needs no lock.
 *
 * Functions return 0, or -errno with a message in io->error: -EINVAL for what
 * a file says, "file:line:column: what is wrong".
 */
#ifndef BALLAST_PLANNER_PLAN_IO_H
#define BALLAST_PLANNER_PLAN_IO_H

#include "planner/planner.h"

#define PLAN_IO_MESSAGE 512
#define PLAN_IO_PROFILE_VERSION 1
#define PLAN_IO_PLAN_VERSION 1
/* Larger files are refused. */
#define PLAN_IO_MAX_BYTES (UINT64_C(1) << 30)

/* One line without its end, "file:line:column: ..."; valid for the call. */
typedef void plan_io_warn_fn(void *arg, const char *text);

struct plan_io {
	const char *file;	/* borrowed; for messages */
	plan_io_warn_fn *warn;	/* may be NULL */
	void *arg;
	/*
	 * The process is a user's program: its standard input is not ours, and
	 * a pipe without another end is an error, not a wait.
	 */
	bool guest;
	char error[PLAN_IO_MESSAGE];
};

/* A member that this version does not know: `value` is its text in the file. */
struct plan_io_extra {
	enum plan_io_place {
		PLAN_IO_TOP, PLAN_IO_LAYER, PLAN_IO_TENSOR, PLAN_IO_DEVICE,
	} place;
	uint32_t layer, tensor;	/* where place says so */
	const char *key, *value;
};

struct plan_io_extras {
	uint32_t nr, room;
	struct plan_io_extra *at;
};

/*
 * Bytes of a tensor in the program's memory.  A tensor's parts stand together,
 * by rising offset.
 */
struct plan_part {
	int64_t id;		/* of the tensor */
	uint64_t offset;	/* in the tensor */
	uint64_t allocation;	/* its number among the managed ones, from 1 */
	uint64_t allocation_bytes;
	uint64_t at;		/* offset in the allocation */
	uint64_t bytes;
};

struct plan_program {
	uint64_t page_bytes;	/* all of it is in whole pages */
	uint64_t uploaded_bytes;	/* that the host has filled, in all */
	const struct plan_part *parts;
	uint32_t nr_parts;	/* 0: not told */
};

struct plan_profile {
	const char *name, *note;	/* never NULL */
	const char *device;		/* never NULL; its name */
	uint64_t device_bytes;		/* of GPU memory; 0 = not told */
	double link_gbps;		/* 0 = not told */
	const struct layer_statistics *layers;
	uint32_t nr_layers;
	struct memory_stats memory_stats;
	/* Of which budgets the makers of the file wanted to know. */
	const uint64_t *budgets;	/* PLAN_NO_LIMIT: null */
	uint32_t nr_budgets;
	struct plan_program program;
	struct plan_io_extras extras;
};

/* What a strategy made of a profile, and how. */
struct plan_file {
	struct plan_profile profile;
	const char *strategy;
	struct plan_params params;	/* no function pointers but the known */
	uint64_t budget;		/* or PLAN_NO_LIMIT */
	struct strategy_result result;
	struct strategy_score score;
	double period_ms, cold_ms, bound_ms; /* 0: not known */
	uint64_t fingerprint;		/* of the profile it was made for */
	struct plan_io_extras extras;
};

/* text[len] must be 0.  Everything is copied into the arena. */
int plan_io_parse_profile(struct plan_io *io, const char *text, size_t len,
	struct plan_arena *arena, struct plan_profile *out);
/*
 * profile NULL: the one in the file.  Otherwise the plan is taken over to that
 * profile, which must have the same fingerprint and outlive the plan.
 */
int plan_io_parse_plan(struct plan_io *io, const char *text, size_t len,
	const struct plan_profile *profile, struct plan_arena *arena,
	struct plan_file *out);
/* A plan, a profile, or neither, told by the members; never fails. */
enum plan_io_kind { PLAN_IO_OTHER, PLAN_IO_IS_PROFILE, PLAN_IO_IS_PLAN };
enum plan_io_kind plan_io_kind_of(const char *text, size_t len);

/* Zero-terminated; the caller frees it.  NULL when out of memory. */
char *plan_io_print_profile(const struct plan_profile *p);
char *plan_io_print_plan(const struct plan_file *f);

/* "-" is standard input.  *text is zero-terminated; the caller frees it. */
int plan_io_load(struct plan_io *io, const char *path, char **text,
	size_t *len);
/* Replaces the file as a whole or leaves it as it was. */
int plan_io_save(struct plan_io *io, const char *path, const char *text);

/* Labels, and ids and sizes of tensors, in order; not times. */
uint64_t plan_io_fingerprint(const struct layer_statistics *layers,
	uint32_t nr);
struct plan_input plan_io_input(const struct plan_profile *p, uint64_t budget);
/* Each tensor counted once. */
uint64_t plan_io_unique_bytes(const struct plan_profile *p);

/*
 * "name=value" into *p.  -EINVAL with io->error if the strategy takes no such
 * parameter or the text is no such value.
 */
int plan_io_set_param(struct plan_io *io, const struct plan_strategy *s,
	struct plan_params *p, const char *name, const char *value);
/*
 * name, or name:key=value,key=value, of less than PLAN_IO_STRATEGY bytes.  NULL:
 * message (PLAN_MESSAGE bytes) says what is wrong.
 */
#define PLAN_IO_STRATEGY 512
const struct plan_strategy *plan_io_strategy(const char *line,
	struct plan_params *params, char *message);
/* The value as plan_io_set_param() reads it; returns buf (>= 48 bytes). */
const char *plan_io_param_text(enum plan_param_id id,
	const struct plan_params *p, char *buf, size_t size);

#endif
