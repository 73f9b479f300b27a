/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the software driver says: log lines, reports of races and broken rules,
 * and the counters that SOFTCUDA_STATS writes.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_REPORT_H
#define SOFTCUDA_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/softcuda/softcuda_ctl.h"

extern struct softcuda_stats stats;

/* A line on stderr, for things that are no fault of the program. */
void report_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A line on stderr under SOFTCUDA_VERBOSE. */
void report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/*
 * The program broke a rule.  Goes to stderr and to SOFTCUDA_REPORT, counts,
 * and ends the process under SOFTCUDA_STRICT.  `rule` is one word, "race",
 * "unmap", by which tests know it.
 */
void report_rule(const char *rule, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

void report_write_stats(void);

#endif
