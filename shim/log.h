/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines: one write(2) each, no malloc, no stdio, any thread, safe in a
 * forked child.  A line reads "ballast[pid:tid] W: text".  errno is preserved.
 */
#ifndef BALLAST_LOG_H
#define BALLAST_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/compiler.h"

/* In the order of the choices of log_level in conf.def. */
enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern int log_threshold;

/* Level and file (empty: standard error).  Returns 0 or -errno (file). */
int log_open(enum log_level level, const char *file);

void log_write(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

/*
 * Arguments are not evaluated when the level is off.  Numbers in %d %i %u %x
 * %l.. %z.. %p, %s and %c; no %f: people get sizes from conf_size_text().
 */
#define log_at(level, ...) \
	do { \
		if ((int)(level) <= log_threshold) \
			log_write((level), __VA_ARGS__); \
	} while (0)
#define log_err(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_dbg(...) log_at(LOG_DEBUG, __VA_ARGS__)

/* At most once per call site and process. */
#define log_once(level, ...) \
	do { \
		static bool log_said_; \
		if (!__atomic_exchange_n(&log_said_, true, __ATOMIC_RELAXED)) \
			log_at(level, __VA_ARGS__); \
	} while (0)

#endif
