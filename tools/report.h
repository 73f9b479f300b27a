/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `ballast run` can say once the program has ended: that no cuInit() was
 * successful, which request failed and the key to change.  Owns the page of
 * shim/status.h.  Used by cmd_run.c only; once per process.
 */
#ifndef BALLAST_REPORT_H
#define BALLAST_REPORT_H

#include <stdbool.h>

struct child;

/*
 * Makes the page.  Returns its descriptor, or -1: then nothing is known and
 * nothing will be said.  *value is what BALLAST_STATUS must be.  keep_stats:
 * processes leave their statistics for report_end().
 */
int report_open(const char **value, bool keep_stats);

struct report_facts {
	const char *program;	/* as the user named it */
	const char *obstacle;	/* said before the start; NULL: none known */
	bool soft;		/* the software driver was asked for */
	bool enabled;		/* the key */
	bool strict;
	bool quiet;		/* log_level = error */
	bool stats;		/* --stats */
};

/*
 * After the child's end: shows statistics where asked, removes the pages of
 * processes that have ended, writes at most one line, and returns the exit code
 * that replaces a child's success under strict; 0 where the child's own end
 * stands.
 */
int report_end(const struct report_facts *f, const struct child *c);

#endif
