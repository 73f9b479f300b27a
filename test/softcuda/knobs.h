/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knobs from the environment, read once by cuInit (or by a test) and constant
 * afterwards.  The list with meanings is knobs.def.
 */
#ifndef SOFTCUDA_KNOBS_H
#define SOFTCUDA_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KNOB_TYPE_SIZE uint64_t
#define KNOB_TYPE_INT int64_t
#define KNOB_TYPE_REAL double
#define KNOB_TYPE_TEXT const char *

struct knobs {
#define KNOB(field, env, kind, def, min, max, help) KNOB_TYPE_##kind field;
#include "test/softcuda/knobs.def"
#undef KNOB
};

extern struct knobs knobs;

/*
 * Fills `knobs` from defaults and environment.  Every bad value is named on
 * stderr; false when there was one.  Strings are borrowed from the environment.
 */
bool knobs_load(void);

/* The same, once; what the first call said. */
bool knobs_need(void);

/* "4G", "512K", "100": false when it is not a size. */
bool knobs_parse_size(const char *text, uint64_t *out);

/* The i-th knob's environment name, NULL behind the last. */
const char *knobs_name(size_t i);

#endif
