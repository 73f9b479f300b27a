/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the driver and the device what the design wants to know:
 *
 *	probe [--out FILE] [--limit SECONDS] [--quick | --full] [NAME...]
 *	probe --list
 *
 * Every item of probe_items.def (or those named) runs in a process of its own
 * with its own time limit, and all of them within --limit.  Facts are appended
 * to FILE as JSON lines and printed as a table.  Exit status: 0 every item
 * gave an answer (also "unsupported", also one that the design did not
 * expect), 1 one failed or ran out of time, 2 usage, 77 no driver or no GPU.
 * The only dependency is the driver, by dlopen.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test/gpu/probe.h"

#define ITEM(key, name, limit, about) void probe_##name(void);
#include "test/gpu/probe_items.def"
#undef ITEM

static const struct item {
	const char *key, *name, *about;
	void (*run)(void);
	int limit_s;
} items[] = {
#define ITEM(key, name, limit, about)					\
	{ key, #name, about, probe_##name, limit },
#include "test/gpu/probe_items.def"
#undef ITEM
};

#define SKIP 77

static struct {
	const char *path;
	int limit_s, list;
	const struct item *only;	/* a child: the item to run */
} opt = { "probe.jsonl", 240, 0, NULL };

static const struct item *find(const char *name)
{
	for (size_t i = 0; i < PROBE_LEN(items); i++)
		if (!strcmp(items[i].name, name))
			return &items[i];
	fprintf(stderr, "probe: no item named %s (--list)\n", name);
	exit(2);
}

/* The child: one item. */
static int run_item(const struct item *it)
{
	int rc;

	/* Nobody would stop it if its parent were killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (probe_out_open(opt.path, it->key, it->name))
		return 1;
	rc = probe_open();
	if (!rc)
		it->run();
	probe_close();
	return rc;
}

/* Waits up to `limit` seconds, then ends the child.  Its wait status. */
static int wait_for(pid_t pid, double limit, int *timed_out)
{
	const struct timespec pause = { 0, 5000000 };
	double end = probe_now_us() + limit * 1e6;
	int status = 0;

	*timed_out = 0;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			return status;
		if (got < 0 && errno != EINTR)
			return 0;
		if (!*timed_out && probe_now_us() > end) {
			*timed_out = 1;
			kill(pid, SIGKILL);
		}
		nanosleep(&pause, NULL);
	}
}

/* Runs an item in a process of its own.  0, 1 failed, 77 no GPU. */
static int start(const struct item *it, double left)
{
	const char *args[] = { "probe", "--out", opt.path, probe_quick
		? "--quick" : "--full", "--run", it->name, NULL };
	double limit = it->limit_s < left ? it->limit_s : left;
	int status, timed_out;
	pid_t pid;

	if (probe_out_open(opt.path, it->key, it->name))
		return 1;
	if (left < 1) {
		probe_status("item", PROBE_TIMEOUT,
			"not started: the overall limit is reached");
		return 1;
	}
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execv("/proc/self/exe", (char *const *)(uintptr_t)args);
		perror("probe: exec");
		_exit(1);
	}
	if (pid < 0) {
		perror("probe: fork");
		return 1;
	}
	status = wait_for(pid, limit, &timed_out);
	if (timed_out) {
		probe_status("item", PROBE_TIMEOUT, "ended after %.0f s", limit);
		return 1;
	}
	if (WIFSIGNALED(status)) {
		probe_status("item", PROBE_FAILED, "ended by signal %d",
			WTERMSIG(status));
		return 1;
	}
	if (WEXITSTATUS(status) == SKIP)
		return SKIP;
	if (WEXITSTATUS(status)) {
		probe_status("item", PROBE_FAILED, "exit status %d",
			WEXITSTATUS(status));
		return 1;
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr, "usage: probe [--out FILE] [--limit SECONDS] "
		"[--quick | --full] [NAME...]\n       probe --list\n");
	exit(2);
}

/* Fills opt; the number of the first argument that is a name. */
static int options(int argc, char **argv)
{
	int i = 1;

	for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
		if (!strcmp(argv[i], "--quick"))
			probe_quick = 1;
		else if (!strcmp(argv[i], "--full"))
			probe_quick = 0;
		else if (!strcmp(argv[i], "--list"))
			opt.list = 1;
		else if (i + 1 == argc)
			usage();
		else if (!strcmp(argv[i], "--out"))
			opt.path = argv[++i];
		else if (!strcmp(argv[i], "--limit"))
			opt.limit_s = atoi(argv[++i]);
		else if (!strcmp(argv[i], "--run"))
			opt.only = find(argv[++i]);
		else
			usage();
	}
	if (opt.limit_s <= 0)
		usage();
	return i;
}

/* Lines of the result file from `from` on that say so. */
static long count(const char *what, long from)
{
	char line[4096];
	FILE *f = fopen(opt.path, "r");
	long n = 0;

	if (!f)
		return 0;
	fseek(f, from, SEEK_SET);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

static long file_size(const char *path)
{
	FILE *f = fopen(path, "r");
	long size = 0;

	if (f) {
		fseek(f, 0, SEEK_END);
		size = ftell(f);
		fclose(f);
	}
	return size;
}

int main(int argc, char **argv)
{
	int first = options(argc, argv), nr, rc;
	double begin = probe_now_us();
	long from, bad;

	if (opt.list) {
		for (size_t i = 0; i < PROBE_LEN(items); i++)
			printf("%-8s %-15s %s\n", items[i].key, items[i].name,
				items[i].about);
		return 0;
	}
	if (opt.only)
		return run_item(opt.only);
	from = file_size(opt.path);
	nr = first < argc ? argc - first : (int)PROBE_LEN(items);
	printf("%-15s %-34s %12s %-6s %-8s %s\n", "probe", "fact", "value",
		"unit", "design", "note");
	for (int i = 0; i < nr; i++) {
		const struct item *it = first < argc ? find(argv[first + i])
			: &items[i];

		rc = start(it, opt.limit_s - (probe_now_us() - begin) / 1e6);
		if (rc == SKIP)
			return SKIP;
	}
	bad = count("\"status\":\"failed\"", from)
		+ count("\"status\":\"timeout\"", from);
	printf("%ld facts: %ld as the design assumes, %ld differ, %ld "
		"unsupported, %ld failed or timed out; %.1f s\n",
		count("\"probe\"", from), count("\"design\":\"agrees\"", from),
		count("\"design\":\"differs\"", from),
		count("\"status\":\"unsupported\"", from), bad,
		(probe_now_us() - begin) / 1e6);
	return bad ? 1 : 0;
}
