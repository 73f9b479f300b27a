/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stats_view.h.
 */
#include "tools/stats_view.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/conf.h"

/* Where the counters begin; checked against the list below. */
#define HEAD_SIZE offsetof(struct stats_page, gpu_total)
_Static_assert(sizeof(struct stats_page) == HEAD_SIZE +
	NR_STATS * sizeof(uint64_t), "counters follow the head");

int stats_view_read(const char *path, struct stats_view *v)
{
	ssize_t n;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	memset(v, 0, sizeof(*v));
	n = read(fd, &v->page, sizeof(v->page));
	close(fd);
	if (n < (ssize_t)HEAD_SIZE || v->page.magic != STATS_MAGIC ||
	    v->page.version != STATS_VERSION)
		return -EPROTO;
	v->page.program[sizeof(v->page.program) - 1] = '\0';
	v->counters = (const uint64_t *)(const void *)
		((const char *)&v->page + HEAD_SIZE);
	v->nr = (uint32_t)(((size_t)n - HEAD_SIZE) / sizeof(uint64_t));
	if (v->nr > v->page.nr_counters)
		v->nr = v->page.nr_counters;
	return 0;
}

const char *stats_view_value(const struct stats_row *row, uint64_t value,
	char *buf, size_t size)
{
	if (strcmp(row->unit, "bytes") == 0)
		return conf_size_text(value, buf, size);
	if (strcmp(row->unit, "phase") == 0)
		snprintf(buf, size, "%s", stats_phase_name(value));
	else if (strcmp(row->unit, "ns") == 0)
		snprintf(buf, size, "%" PRIu64 ".%03u ms", value / 1000000,
			(unsigned int)(value / 1000 % 1000));
	else
		snprintf(buf, size, "%" PRIu64, value);
	return buf;
}

/* "loop [17], under Ballast for 1.2 s". */
static void head(FILE *f, const struct stats_view *v)
{
	struct timespec now;
	double age;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
		(double)v->page.start_ns / 1e9;
	fprintf(f, "%s [%u], under Ballast for %.1f s\n", v->page.program,
		v->page.pid, age > 0 ? age : 0);
}

void stats_view_table(FILE *f, const struct stats_view *v)
{
	char value[32];

	head(f, v);
	for (uint32_t i = 0; i < v->nr; i++)
		fprintf(f, "  %-20s %14s  %s\n", stats_rows[i].name,
			stats_view_value(&stats_rows[i], v->counters[i], value,
			sizeof(value)), stats_rows[i].help);
}

/* 0 for a counter that an older library does not have. */
static uint64_t counter(const struct stats_view *v, enum stats_id id)
{
	return (uint32_t)id < v->nr ? v->counters[id] : 0;
}

#define COUNTER(name) counter(v, STATS_ID_##name)

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void plan_lines(FILE *f, const struct stats_view *v)
{
	uint64_t period = COUNTER(period_ns), bound = COUNTER(plan_bound_ns);
	uint64_t link = COUNTER(plan_link_ns);
	char each[32];

	fprintf(f, "  plans      %" PRIu64 " iterations, %s streamed in each\n",
		COUNTER(iterations), conf_size_text(COUNTER(plan_streamed),
		each, sizeof(each)));
	fprintf(f, "  period     %.3f ms measured, %.3f ms expected, bound "
		"%.3f ms", ms(period), ms(COUNTER(plan_period_ns)), ms(bound));
	if (period > 0 && bound > 0)
		fprintf(f, "; %.1f %% above it",
			100 * ((double)period / (double)bound - 1));
	fprintf(f, "\n  prefetches %" PRIu64 " layers in time, %" PRIu64
		" missed, of these %" PRIu64 " in part\n",
		COUNTER(prefetch_hits), COUNTER(prefetch_missed),
		COUNTER(prefetch_late));
	fprintf(f, "  stalls     %.3f ms", ms(COUNTER(stall_ns)));
	if (period > 0)
		fprintf(f, "; the link is busy %.0f %% of the time",
			100 * (double)link / (double)period);
	fprintf(f, "\n");
}

void stats_view_summary(FILE *f, const struct stats_view *v)
{
	char a[32], b[32], c[32];

	head(f, v);
	fprintf(f, "  phase      %s\n", stats_phase_name(COUNTER(phase)));
	fprintf(f, "  memory     %s managed, %s of GPU memory, %s pinned\n",
		conf_size_text(COUNTER(managed_peak), a, sizeof(a)),
		conf_size_text(COUNTER(gpu_peak), b, sizeof(b)),
		conf_size_text(COUNTER(arena_pinned), c, sizeof(c)));
	fprintf(f, "  moved      %s to the GPU, %s back; waited %.3f ms\n",
		conf_size_text(COUNTER(fetch_bytes), a, sizeof(a)),
		conf_size_text(COUNTER(writeback_bytes), b, sizeof(b)),
		ms(COUNTER(wait_ns)));
	fprintf(f, "  launches   %" PRIu64 ", %" PRIu64 " by a plan, %" PRIu64
		" on demand\n", COUNTER(launches), COUNTER(launches_planned),
		COUNTER(launches_streamed));
	if (COUNTER(iterations) > 0)
		plan_lines(f, v);
}
