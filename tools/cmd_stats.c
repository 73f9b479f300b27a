/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast stats`: reads the statistics pages of running processes.  Called by
 * ballast.c.  Pages may be of an older or newer library: counters are only
 * ever added at the end, so the common part is shown.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "shim/conf.h"
#include "shim/stats.h"
#include "tools/cli.h"

/* Where the counters begin; checked against the list below. */
#define HEAD_SIZE offsetof(struct stats_page, gpu_total)
_Static_assert(sizeof(struct stats_page) == HEAD_SIZE +
	NR_STATS * sizeof(uint64_t), "counters follow the head");

struct view {
	struct stats_page page;
	const uint64_t *counters;	/* in page */
	uint32_t nr;			/* of those that both sides know */
};

#define MAX_DEPTH 32	/* of processes below one that is named */

static bool as_json;
static int nr_shown;

/* 0, -ENOENT: none, -EPROTO: not a page of ours, or -errno. */
static int read_page(const char *path, struct view *v)
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

static void print_json_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_json(const struct view *v)
{
	uint32_t i;

	printf("%s\n  {\"pid\": %u, \"program\": ", nr_shown ? "," : "[",
		v->page.pid);
	print_json_string(v->page.program);
	printf(", \"start_ns\": %" PRIu64 ", \"counters\": {",
		v->page.start_ns);
	for (i = 0; i < v->nr; i++)
		printf("%s\n    \"%s\": %" PRIu64, i ? "," : "",
			stats_rows[i].name, v->counters[i]);
	printf("}}");
}

static const char *value_text(const struct stats_row *row, uint64_t value,
	char *buf, size_t size)
{
	if (strcmp(row->unit, "bytes") == 0)
		return conf_size_text(value, buf, size);
	if (strcmp(row->unit, "ns") == 0)
		snprintf(buf, size, "%" PRIu64 ".%03u ms", value / 1000000,
			(unsigned int)(value / 1000 % 1000));
	else
		snprintf(buf, size, "%" PRIu64, value);
	return buf;
}

static void print_table(const struct view *v)
{
	struct timespec now;
	char value[32];
	double age;
	uint32_t i;

	clock_gettime(CLOCK_REALTIME, &now);
	age = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
		(double)v->page.start_ns / 1e9;
	printf("%s%s [%u], under Ballast for %.1f s\n", nr_shown ? "\n" : "",
		v->page.program, v->page.pid, age > 0 ? age : 0);
	for (i = 0; i < v->nr; i++)
		printf("  %-20s %14s  %s\n", stats_rows[i].name,
			value_text(&stats_rows[i], v->counters[i], value,
			sizeof(value)), stats_rows[i].help);
}

/* Shows the page of one process; 0 or -errno. */
static int show(const char *path, int pid)
{
	struct view v;
	int r = read_page(path, &v);

	if (r == 0 && (int)v.page.pid != pid)
		r = -EPROTO;
	if (r == 0 && kill(pid, 0) != 0 && errno == ESRCH)
		r = -ESRCH;
	if (r != 0)
		return r;
	if (as_json)
		print_json(&v);
	else
		print_table(&v);
	nr_shown++;
	return 0;
}

/*
 * Nobody else removes what a killed process without a launcher has left.  Only
 * a page of the user's own, of a number that has no process now; a new process
 * of that number puts its page in its place whether this one is there or not.
 */
static void remove_stale(const char *path, int pid)
{
	struct view v;
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && read_page(path, &v) == 0 &&
	    (int)v.page.pid == pid && kill(pid, 0) != 0 && errno == ESRCH)
		unlink(path);
}

static int compare_pids(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* All pages of one folder, by pid. */
static void show_folder(const char *folder)
{
	static int pids[4096];
	size_t nr = 0, i;
	struct dirent *d;
	char *path;
	int pid, end;
	DIR *dir;

	dir = opendir(folder);
	if (!dir)
		return;
	while ((d = readdir(dir)) != NULL && nr < ARRAY_LEN(pids)) {
		end = 0;
		if (sscanf(d->d_name, "ballast-%d.stats%n", &pid, &end) == 1 &&
		    end > 0 && d->d_name[end] == '\0')
			pids[nr++] = pid;
	}
	closedir(dir);
	qsort(pids, nr, sizeof(pids[0]), compare_pids);
	for (i = 0; i < nr; i++) {
		path = cli_format("%s/ballast-%d.stats", folder, pids[i]);
		if (show(path, pids[i]) == -ESRCH)
			remove_stale(path, pids[i]);
	}
}

static void show_all(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && *runtime == '/')
		show_folder(runtime);
	show_folder("/dev/shm");
}

/* The process may have another XDG_RUNTIME_DIR than this one. */
static int show_one(int pid)
{
	char path[512];
	int r = -ENOENT;

	if (stats_path(pid, path, sizeof(path)))
		r = show(path, pid);
	if (r == -ENOENT)
		r = show(cli_format("/dev/shm/ballast-%d.stats", pid), pid);
	return r;
}

/*
 * The children of a process, of all its threads, and theirs: `ballast run` is
 * known to its user by the launcher's number, and a shell may be in between.
 * Returns how many have been shown.  The depth is bounded because numbers can
 * be reused while this looks.
 */
static int show_children(int pid, int depth)
{
	char *folder = cli_format("/proc/%d/task", pid);
	DIR *dir = depth < MAX_DEPTH ? opendir(folder) : NULL;
	struct dirent *d;
	int child, nr = 0;
	FILE *list;

	if (!dir)
		return 0;
	while ((d = readdir(dir)) != NULL) {
		if (d->d_name[0] == '.')
			continue;
		list = fopen(cli_format("%s/%s/children", folder, d->d_name),
			"re");
		if (!list)
			continue;
		while (fscanf(list, "%d", &child) == 1) {
			nr += show_one(child) == 0;
			nr += show_children(child, depth + 1);
		}
		fclose(list);
	}
	closedir(dir);
	return nr;
}

static int pid_of(const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (end == text || *end || errno || pid <= 0 || pid > INT32_MAX)
		cli_usage("stats", "'%s' is no process number", text);
	return (int)pid;
}

/* The process or else those below it; says why where there is nothing. */
static bool show_pid(int pid)
{
	int r = show_one(pid);

	if (r == 0 || (r == -ENOENT && show_children(pid, 0) > 0))
		return true;
	if (r == -ENOENT && kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		r = -ESRCH;
	cli_warn(r == -ENOENT ?
		"process %d has no statistics: it does not run under Ballast, "
		"has not called cuInit() yet, or has stats = false" :
		r == -ESRCH ? "there is no process %d" :
		r == -EPROTO ? "the statistics of process %d are not of this "
		"version of Ballast" : "the statistics of process %d cannot "
		"be read", pid);
	return false;
}

int cmd_stats(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "json", no_argument, NULL, 'j' },
		{ NULL, 0, NULL, 0 },
	};
	int c, i, status = EXIT_OK;
	bool all;

	opterr = 0;
	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			return cmd_help("stats");
		if (c != 'j')
			cli_usage("stats", "option '%s' is unknown",
				argv[optind - 1]);
		as_json = true;
	}
	all = optind == argc;
	for (i = optind; i < argc; i++)
		(void)pid_of(argv[i]);	/* before anything is printed */
	if (all)
		show_all();
	for (i = optind; i < argc; i++)
		if (!show_pid(pid_of(argv[i])))
			status = EXIT_FAILED;
	if (as_json)
		printf("%s]\n", nr_shown ? "\n" : "[");
	else if (all && !nr_shown)
		cli_warn("no running process has statistics");
	return cli_flush(status);
}
