/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics pages as people read them.  Pages may be of an older or newer
 * library: counters are only ever added at the end, so the common part is
 * shown.  Used by cmd_stats.c and report.c.
 */
#ifndef BALLAST_STATS_VIEW_H
#define BALLAST_STATS_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "shim/stats.h"

struct stats_view {
	struct stats_page page;
	const uint64_t *counters;	/* in page */
	uint32_t nr;			/* of those that both sides know */
};

/* 0, -ENOENT: none, -EPROTO: not a page of ours, or -errno. */
int stats_view_read(const char *path, struct stats_view *v);
/* Returns buf. */
const char *stats_view_value(const struct stats_row *row, uint64_t value,
	char *buf, size_t size);
/* All counters, one a line. */
void stats_view_table(FILE *f, const struct stats_view *v);
/* How it went, in a few lines. */
void stats_view_summary(FILE *f, const struct stats_view *v);

#endif
