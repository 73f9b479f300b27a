/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration: preload.conf and environment into one struct.  Loaded once,
 * before Ballast becomes active; read-only after that, so it needs no lock.
 * Libc and inih only; the launcher links it too.
 *
 * Precedence: environment BALLAST_<KEY>, then the file that BALLAST_CONFIG
 * names, then ./preload.conf, then /etc/ballast/preload.conf, then default.
 */
#ifndef BALLAST_CONF_H
#define BALLAST_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"

#define CONF_AUTO UINT64_MAX

/* A SIZE in bytes, CONF_AUTO, or percent > 0 of something (bytes unused). */
struct conf_budget {
	uint64_t bytes;
	double percent;
};

enum conf_type {
	CONF_BOOL, CONF_SIZE, CONF_MIB, CONF_BUDGET, CONF_COUNT, CONF_CHOICE,
	CONF_TEXT,
};

/* CHOICE values are numbered in the order conf.def lists them. */
enum conf_report_memory { REPORT_PHYSICAL, REPORT_RECLAIMABLE, REPORT_VIRTUAL };
enum conf_policy {
	POLICY_PLAN,
	POLICY_ON_DEMAND,
	POLICY_LRU,
	POLICY_FIRST_FIT,
	POLICY_ZERO_COPY,
};
enum conf_in_place { IN_PLACE_AUTO, IN_PLACE_WHOLE, IN_PLACE_OFF };
enum conf_guard { GUARD_AUTO, GUARD_CAREFUL, GUARD_FAST };
enum conf_verify { CONF_VERIFY_ALWAYS, CONF_VERIFY_OFF };
enum conf_deepbind { DEEPBIND_DROP, DEEPBIND_KEEP };
/* log_level uses enum log_level of log.h. */

#define CONF_TEXT_MAX 512
#define CONF_COUNT_MAX 4294967295u
typedef bool conf_bool_t;
typedef uint64_t conf_size_t;
typedef uint64_t conf_mib_t;	/* bytes; as text MiB, if not said otherwise */
typedef struct conf_budget conf_budget_t;
typedef uint64_t conf_count_t;
typedef int conf_choice_t;
typedef struct { char text[CONF_TEXT_MAX]; } conf_text_t;

#define CONF_FIELD_BOOL conf_bool_t
#define CONF_FIELD_SIZE conf_size_t
#define CONF_FIELD_MIB conf_mib_t
#define CONF_FIELD_BUDGET conf_budget_t
#define CONF_FIELD_COUNT conf_count_t
#define CONF_FIELD_CHOICE conf_choice_t
#define CONF_FIELD_TEXT conf_text_t

struct conf {
#define CONF(type, key, dflt, choices, help) CONF_FIELD_##type key;
#include "shim/conf.def"
#undef CONF
};

enum conf_id {
#define CONF(type, key, dflt, choices, help) CONF_ID_##key,
#include "shim/conf.def"
#undef CONF
	NR_CONF,
};

struct conf_row {
	const char *key;
	enum conf_type type;
	const char *dflt;
	const char *choices;	/* NULL where the type has none */
	const char *help;
};

extern const struct conf_row conf_rows[NR_CONF];

/* The process's configuration.  Defaults until conf_load() has run. */
extern struct conf conf;

/*
 * Called for each complaint: origin is "environment", or "file:line"; text
 * says what is wrong and what is used instead.
 */
typedef void conf_complain_fn(void *arg, const char *origin, const char *text);

/*
 * Reads everything into *c and, where origins is not NULL, writes where each
 * value came from ("default", "environment BALLAST_ARENA", "path:line"; at
 * most CONF_TEXT_MAX bytes each).  Returns the number of complaints; a key or
 * value complained of keeps its default.  Not thread-safe.
 */
int conf_load(struct conf *c, char (*origins)[CONF_TEXT_MAX],
	conf_complain_fn *complain, void *arg);

/* Parsers, also for the launcher's options.  0 or -EINVAL, -ERANGE. */
int conf_parse_size(const char *text, uint64_t *out) WARN_UNUSED;
int conf_parse_budget(const char *text, struct conf_budget *out) WARN_UNUSED;
/* Whether `auto` is a value of the key: where it is the default. */
bool conf_has_auto(const struct conf_row *row);
/* Parses `text` as the value of row `id` into *c; 0 or -EINVAL, -ERANGE. */
int conf_set(struct conf *c, enum conf_id id, const char *text) WARN_UNUSED;
/* The row with that key, any case, or -ENOENT. */
int conf_find(const char *key);
/* The value of row `id` as conf_set would read it.  Returns buf. */
const char *conf_format(const struct conf *c, enum conf_id id, char *buf,
	size_t size);

/* Bytes of a budget on a device of `total` bytes; CONF_AUTO stays. */
uint64_t conf_budget_bytes(const struct conf_budget *b, uint64_t total);
/* "1.50 GiB", "512 KiB", "17 B" for people; returns buf (>= 16 bytes). */
const char *conf_size_text(uint64_t bytes, char *buf, size_t size);

#endif
