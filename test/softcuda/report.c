/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports, log lines and counters, see report.h.  One write(2) a line, so that
 * processes that share a report file do not mix.
 */
#include "test/softcuda/report.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/softcuda/call.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/sim.h"

#define LINE 1024
/* A program that races in a loop shall not fill the disk. */
#define MAX_PRINTED 100

struct softcuda_stats stats;
static char last[LINE];

static void put_line(int fd, const char *line)
{
	ssize_t n = write(fd, line, strlen(line));

	(void)n;
}

static void format(char *line, const char *prefix, const char *fmt, va_list ap)
{
	int n = snprintf(line, LINE - 1, "softcuda: %s", prefix);
	int m = vsnprintf(line + n, (size_t)(LINE - 1 - n), fmt, ap);

	n += m < LINE - 2 - n ? m : LINE - 2 - n;
	line[n] = '\n';
	line[n + 1] = 0;
}

void report_log(const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	format(line, "", fmt, ap);
	va_end(ap);
	put_line(STDERR_FILENO, line);
}

void report_note(const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	if (!knobs.verbose)
		return;
	va_start(ap, fmt);
	format(line, "", fmt, ap);
	va_end(ap);
	put_line(STDERR_FILENO, line);
}

static void append_to_file(const char *line)
{
	int fd;

	if (!knobs.report)
		return;
	fd = open(knobs.report, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
		0644);
	if (fd < 0) {
		fprintf(stderr, "softcuda: cannot write %s\n", knobs.report);
		return;
	}
	put_line(fd, line);
	close(fd);
}

void report_rule(const char *rule, const char *fmt, ...)
{
	char prefix[64];
	va_list ap;

	stats.reports++;
	if (!strcmp(rule, "race"))
		stats.races++;
	snprintf(prefix, sizeof(prefix), "REPORT %s: ", rule);
	va_start(ap, fmt);
	format(last, prefix, fmt, ap);
	va_end(ap);
	if (stats.reports <= MAX_PRINTED) {
		put_line(STDERR_FILENO, last);
		append_to_file(last);
	}
	if (stats.reports == MAX_PRINTED)
		put_line(STDERR_FILENO, "softcuda: further reports are only "
			"counted\n");
	if (knobs.strict)
		abort();
}

struct row {
	const char *name;
	uint64_t value;
};

void report_write_stats(void)
{
	const struct row rows[] = {
		{ "virtual_ns", sim_now() },
		{ "calls", stats.calls },
		{ "failed_calls", stats.failed_calls },
		{ "h2d_bytes", stats.h2d_bytes },
		{ "h2d_copies", stats.h2d_copies },
		{ "d2h_bytes", stats.d2h_bytes },
		{ "d2h_copies", stats.d2h_copies },
		{ "d2d_bytes", stats.d2d_bytes },
		{ "d2d_copies", stats.d2d_copies },
		{ "set_bytes", stats.set_bytes },
		{ "sets", stats.sets },
		{ "kernels", stats.kernels },
		{ "lane_instructions", stats.lane_instructions },
		{ "kernel_bytes", stats.kernel_bytes },
		{ "used_bytes", stats.used_bytes },
		{ "peak_bytes", stats.peak_bytes },
		{ "pinned_bytes", stats.pinned_bytes },
		{ "pinned_peak_bytes", stats.pinned_peak_bytes },
		{ "h2d_busy_ns", stats.h2d_busy_ns },
		{ "d2h_busy_ns", stats.d2h_busy_ns },
		{ "compute_busy_ns", stats.compute_busy_ns },
		{ "creates", stats.creates },
		{ "releases", stats.releases },
		{ "maps", stats.maps },
		{ "unmaps", stats.unmaps },
		{ "set_accesses", stats.set_accesses },
		{ "allocs", stats.allocs },
		{ "frees", stats.frees },
		{ "syncs", stats.syncs },
		{ "mapped_bytes", stats.mapped_bytes },
		{ "uvm_faults", stats.uvm_faults },
		{ "uvm_in_bytes", stats.uvm_in_bytes },
		{ "uvm_out_bytes", stats.uvm_out_bytes },
		{ "races", stats.races },
		{ "reports", stats.reports },
		{ "memory", knobs.memory },
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);
	FILE *f;
	size_t i;

	if (!knobs.stats)
		return;
	f = fopen(knobs.stats, "we");
	if (!f) {
		fprintf(stderr, "softcuda: cannot write %s\n", knobs.stats);
		return;
	}
	for (i = 0; i < n; i++)
		fprintf(f, "%s\"%s\": %llu", i ? ",\n " : "{", rows[i].name,
			(unsigned long long)rows[i].value);
	fprintf(f, ",\n \"h2d_gbps\": %.6g,\n \"d2h_gbps\": %.6g}\n",
		knobs.h2d_gbps, knobs.d2h_gbps);
	fclose(f);
}

#define EXPORTED __attribute__((visibility("default")))

EXPORTED softcuda_now_ns_fn softcuda_now_ns;
EXPORTED softcuda_get_stats_fn softcuda_get_stats;
EXPORTED softcuda_nr_reports_fn softcuda_nr_reports;
EXPORTED softcuda_last_report_fn softcuda_last_report;
EXPORTED softcuda_clear_reports_fn softcuda_clear_reports;

uint64_t softcuda_now_ns(void)
{
	uint64_t ns;

	call_lock();
	ns = sim_now();
	call_unlock();
	return ns;
}

void softcuda_get_stats(struct softcuda_stats *out)
{
	call_lock();
	*out = stats;
	out->virtual_ns = sim_now();
	call_unlock();
}

uint64_t softcuda_nr_reports(void)
{
	uint64_t n;

	call_lock();
	n = stats.reports;
	call_unlock();
	return n;
}

uint64_t softcuda_last_report(char *buf, uint64_t size)
{
	uint64_t n;

	call_lock();
	n = strlen(last);
	if (size)
		snprintf(buf, size, "%s", last);
	call_unlock();
	return n;
}

void softcuda_clear_reports(void)
{
	call_lock();
	stats.reports = stats.races = 0;
	last[0] = 0;
	call_unlock();
}
