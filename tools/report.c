/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher's side of the status page, and the last line on standard error.
 * Called by cmd_run.c.  What the page holds was written by other processes and
 * is read as data of unknown quality.
 */
#include "tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/conf.h"
#include "shim/stats.h"
#include "shim/status.h"
#include "tools/child.h"
#include "tools/cli.h"
#include "tools/inspect.h"
#include "tools/stats_view.h"

static struct launch_status *page;

int report_open(const char **value, bool keep_stats)
{
	struct launch_status *p;
	uint64_t nonce = 0;
	char *path;
	int fd;

	*value = NULL;
	fd = cli_high_fd(memfd_create("ballast-status",
		MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (fd < 0)
		return -1;
	path = cli_format("/proc/%d/fd/%d", (int)getpid(), fd);
	if (ftruncate(fd, sizeof(*p)) != 0 || fcntl(fd, F_ADD_SEALS,
	    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0 ||
	    getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) < 0 ||
	    access(path, R_OK | W_OK) != 0) {
		close(fd);
		return -1;
	}
	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		close(fd);
		return -1;
	}
	p->version = STATUS_VERSION;
	p->size = sizeof(*p);
	p->nonce = nonce;
	p->keep_stats = keep_stats;
	__atomic_store_n(&p->magic, STATUS_MAGIC, __ATOMIC_RELEASE);
	page = p;
	*value = cli_format("%d:%d:%" PRIx64, (int)getpid(), fd, nonce);
	return fd;
}

/* The newest complete record that was not overwritten meanwhile. */
static bool last_failure(struct status_failure *out)
{
	uint32_t n = __atomic_load_n(&page->nr_failures, __ATOMIC_ACQUIRE);
	uint32_t tries = n < STATUS_FAILURES ? n : STATUS_FAILURES;
	struct status_record *r;

	for (; tries > 0; tries--, n--) {
		r = &page->records[(n - 1) % STATUS_FAILURES];
		if (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != n)
			continue;
		*out = r->failure;
		if (__atomic_load_n(&r->seq, __ATOMIC_ACQUIRE) != n)
			continue;
		out->call[sizeof(out->call) - 1] = '\0';
		out->key[sizeof(out->key) - 1] = '\0';
		return true;
	}
	return false;
}

/* "--arena (BALLAST_ARENA)". */
static char *key_to_change(const char *key)
{
	char *name = cli_format("BALLAST_%s", key), *c;

	for (c = name; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	if (strcmp(key, "gpu_budget") == 0)
		return cli_format("--budget (%s)", name);
	if (strcmp(key, "arena") == 0)
		return cli_format("--arena (%s)", name);
	return cli_format("-o %s=... (%s)", key, name);
}

static void say_failure(const struct status_failure *f)
{
	char request[32], gpu[32], budget[32], arena[32], capacity[32];

	cli_warn("%s of %s failed: %s of %s GPU budget and %s of %s arena in "
		"use; raise it with %s",
		f->call, conf_size_text(f->request, request, sizeof(request)),
		conf_size_text(f->gpu_used, gpu, sizeof(gpu)),
		conf_size_text(f->gpu_budget, budget, sizeof(budget)),
		conf_size_text(f->arena_used, arena, sizeof(arena)),
		conf_size_text(f->arena_capacity, capacity, sizeof(capacity)),
		key_to_change(f->key));
}

/* Of the processes that have ended; some of the child's may go on. */
static void show_stats(void)
{
	uint32_t n = page ? page->nr_active : 0, shown = 0;
	struct stats_view v;
	char path[512];

	for (uint32_t i = 0; i < n && i < STATUS_PIDS; i++) {
		pid_t pid = (pid_t)page->pids[i];

		if (pid > 0 && stats_path(pid, path, sizeof(path)) &&
		    stats_view_read(path, &v) == 0 &&
		    (pid_t)v.page.pid == pid) {
			stats_view_summary(stderr, &v);
			shown++;
		}
	}
	if (shown == 0)
		cli_warn("no statistics: Ballast did not become active, or "
			"stats = false");
}

/* A killed process cannot unlink its own statistics page. */
static void remove_stale_pages(pid_t child)
{
	uint32_t n = page ? page->nr_active : 0, i;
	char path[512];
	pid_t pid;

	for (i = 0; i <= n && i <= STATUS_PIDS; i++) {
		pid = i == 0 ? child : (pid_t)page->pids[i - 1];
		if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH &&
		    stats_path(pid, path, sizeof(path)))
			unlink(path);
	}
}

static void say_inactive(const struct report_facts *f)
{
	char why[sizeof(page->passive_why)];

	if (page->nr_passive > 0) {
		memcpy(why, page->passive_why, sizeof(why));
		why[sizeof(why) - 1] = '\0';
		cli_warn("%s ran without Ballast: %s", f->program, why);
	} else if (f->obstacle) {
		return;		/* said before the start */
	} else if (!f->soft && !inspect_has_driver()) {
		cli_warn("no successful cuInit() by %s, and no libcuda.so.1 "
			"found: install the NVIDIA driver, or try --soft",
			f->program);
	} else {
		cli_warn("no successful cuInit() by %s: it does not use CUDA, "
			"found no GPU, failed before, or clears LD_PRELOAD",
			f->program);
	}
}

int report_end(const struct report_facts *f, const struct child *c)
{
	struct status_failure failure;
	int code = child_exit_code(c);
	bool managed;

	if (f->stats)
		show_stats();
	remove_stale_pages(c->pid);
	if (!page || child_was_ended(c))
		return 0;
	managed = page->nr_managed > 0;
	if (code != 0 && last_failure(&failure)) {
		say_failure(&failure);
		return 0;
	}
	if (page->nr_active == 0 && f->enabled && !f->quiet)
		say_inactive(f);
	if (!f->strict || code != 0 || managed)
		return 0;
	cli_warn("strict: nothing was managed (%s); exit code %d",
		!f->enabled ? "enabled = false" :
		page->nr_active == 0 ? "Ballast did not become active" :
		"no allocation reached min_alloc", EXIT_UNMANAGED);
	return EXIT_UNMANAGED;
}
