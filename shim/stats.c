/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The statistics page; see stats.h.  Made by init_activate(), detached in a
 * forked child.  The pointer changes at most a few times in a process, the
 * pages never go away, so that a counter added through an old pointer is lost
 * at worst.
 */
#include "shim/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const struct stats_row stats_rows[NR_STATS] = {
#define STAT(name, unit, help) { #name, #unit, help },
#include "shim/stats.def"
#undef STAT
};

const char *stats_phase_name(uint64_t phase)
{
	static const char *const names[] = {
		"idle", "discovery", "profiling", "planning", "careful", "fast",
		"on demand", "trial", "in place",
	};

	return phase < sizeof(names) / sizeof(*names) ? names[phase] : "?";
}

static struct stats_page private_page = {
	.magic = STATS_MAGIC,
	.version = STATS_VERSION,
	.size = sizeof(struct stats_page),
	.nr_counters = NR_STATS,
};

struct stats_page *stats = &private_page;

/* The file; its inode shows whether the name still means it. */
static struct {
	char path[256];		/* empty: no file */
	dev_t dev;
	ino_t ino;
} file;

const char *stats_path(int pid, char *buf, size_t size)
{
	const char *dir = secure_getenv("XDG_RUNTIME_DIR");
	int save = errno, len;

	/* Often set and absent: in containers, after su. */
	if (dir == NULL || dir[0] != '/' || access(dir, W_OK | X_OK) != 0)
		dir = "/dev/shm";
	errno = save;
	len = snprintf(buf, size, "%s/ballast-%d.stats", dir, pid);
	return len > 0 && (size_t)len < size ? buf : NULL;
}

static int open_new(const char *path)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	struct stat st;
	int fd;

	fd = open(path, flags, 0600);
	if (fd >= 0 || errno != EEXIST)
		return fd >= 0 ? fd : -errno;
	/* Left behind by a process that was killed and had this number. */
	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
			st.st_uid != geteuid() || unlink(path) != 0)
		return -EEXIST;
	fd = open(path, flags, 0600);
	return fd >= 0 ? fd : -errno;
}

static struct stats_page *map_page(int fd)
{
	struct stats_page *page;

	/* Blocks first: a full /dev/shm must not turn into a SIGBUS later. */
	if (posix_fallocate(fd, 0, sizeof(*page)) != 0)
		return NULL;
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, 0);
	return page != MAP_FAILED ? page : NULL;
}

static void fill_head(struct stats_page *page)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	page->version = STATS_VERSION;
	page->size = sizeof(*page);
	page->pid = (uint32_t)getpid();
	page->nr_counters = NR_STATS;
	page->start_ns = (uint64_t)ts.tv_sec * 1000000000 +
		(uint64_t)ts.tv_nsec;
	snprintf(page->program, sizeof(page->program), "%s",
		program_invocation_short_name);
	/* Last, so that a reader sees a whole page or none. */
	__atomic_store_n(&page->magic, STATS_MAGIC, __ATOMIC_RELEASE);
}

/* Makes `to` the page and moves what `stats` has counted so far. */
static void move_to(struct stats_page *to)
{
	struct stats_page *from = stats;

	if (to == from)
		return;
	__atomic_store_n(&stats, to, __ATOMIC_RELEASE);
#define STAT(name, unit, help) \
	__atomic_fetch_add(&to->name, \
		__atomic_exchange_n(&from->name, 0, __ATOMIC_RELAXED), \
		__ATOMIC_RELAXED);
#include "shim/stats.def"
#undef STAT
}

int stats_create(void)
{
	struct stats_page *page = NULL;
	char path[sizeof(file.path)];
	int save = errno, err = 0, fd;
	struct stat st;

	if (file.path[0] != '\0')
		return 0;
	if (stats_path(getpid(), path, sizeof(path)) == NULL)
		return -ENAMETOOLONG;
	fd = open_new(path);
	if (fd < 0) {
		errno = save;
		return fd;
	}
	if (fstat(fd, &st) == 0)
		page = map_page(fd);
	if (page != NULL) {
		file.dev = st.st_dev;
		file.ino = st.st_ino;
		memcpy(file.path, path, sizeof(path));
		fill_head(page);
		move_to(page);
	} else {
		unlink(path);
		err = -ENOSPC;
	}
	close(fd);
	errno = save;
	return err;
}

void stats_destroy(void)
{
	int save = errno;
	struct stat st;

	if (file.path[0] == '\0')
		return;
	/* The mapping stays and is private from now on: it has no name. */
	if (lstat(file.path, &st) == 0 && st.st_dev == file.dev &&
			st.st_ino == file.ino)
		unlink(file.path);
	file.path[0] = '\0';
	errno = save;
}

void stats_detach(void)
{
	file.path[0] = '\0';
	__atomic_store_n(&stats, &private_page, __ATOMIC_RELEASE);
}

void stats_raise(uint64_t *counter, uint64_t value)
{
	uint64_t old = __atomic_load_n(counter, __ATOMIC_RELAXED);

	while (old < value && !__atomic_compare_exchange_n(counter, &old, value,
			true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}
