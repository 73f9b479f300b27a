/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `ballast stats`: reads the statistics pages of running processes.  Called by
 * ballast.c.
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

#include "tools/cli.h"
#include "tools/stats_view.h"

#define MAX_DEPTH 32	/* of processes below one that is named */

static bool as_json;
static int nr_shown;

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

static void print_json(const struct stats_view *v)
{
	uint32_t i;

	printf("%s\n  {\"pid\": %u, \"program\": ", nr_shown ? "," : "[",
		v->page.pid);
	print_json_string(v->page.program);
	printf(", \"start_ns\": %" PRIu64, v->page.start_ns);
	for (i = 0; i < v->nr; i++)
		if (strcmp(stats_rows[i].unit, "phase") == 0)
			printf(", \"phase\": \"%s\"",
				stats_phase_name((int)v->counters[i]));
	printf(", \"counters\": {");
	for (i = 0; i < v->nr; i++)
		printf("%s\n    \"%s\": %" PRIu64, i ? "," : "",
			stats_rows[i].name, v->counters[i]);
	printf("}}");
}

/* Shows the page of one process; 0 or -errno. */
static int show(const char *path, int pid)
{
	struct stats_view v;
	int r = stats_view_read(path, &v);

	if (r == 0 && (int)v.page.pid != pid)
		r = -EPROTO;
	if (r == 0 && kill(pid, 0) != 0 && errno == ESRCH)
		r = -ESRCH;
	if (r != 0)
		return r;
	if (as_json) {
		print_json(&v);
	} else {
		if (nr_shown)
			printf("\n");
		stats_view_table(stdout, &v);
	}
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
	struct stats_view v;
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && stats_view_read(path, &v) == 0 &&
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
