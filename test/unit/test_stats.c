/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.c: the layout that other programs read, the file's life, counting.
 */
#include "shim/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

static char dir[] = "/tmp/ballast-stats-XXXXXX";
static char path[256];

static void setup(void)
{
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	setenv("XDG_RUNTIME_DIR", dir, 1);
	ck_assert_ptr_nonnull(stats_path(getpid(), path, sizeof(path)));
}

static void teardown(void)
{
	stats_destroy();
	unlink(path);
	rmdir(dir);
}

static struct stats_page read_page(void)
{
	struct stats_page p;
	int fd = open(path, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(read(fd, &p, sizeof(p)), (int)sizeof(p));
	close(fd);
	return p;
}

/* A reader finds counter n at 96 + 8 n, whatever was added behind. */
START_TEST(layout)
{
	ck_assert_uint_eq(offsetof(struct stats_page, magic), 0);
	ck_assert_uint_eq(offsetof(struct stats_page, version), 8);
	ck_assert_uint_eq(offsetof(struct stats_page, size), 12);
	ck_assert_uint_eq(offsetof(struct stats_page, pid), 16);
	ck_assert_uint_eq(offsetof(struct stats_page, nr_counters), 20);
	ck_assert_uint_eq(offsetof(struct stats_page, start_ns), 24);
	ck_assert_uint_eq(offsetof(struct stats_page, program), 32);
#define STAT(name, unit, help) \
	ck_assert_uint_eq(offsetof(struct stats_page, name), \
		96 + 8 * STATS_ID_##name);
#include "shim/stats.def"
#undef STAT
	ck_assert_uint_eq(sizeof(struct stats_page), 96 + 8 * NR_STATS);
	ck_assert_int_eq(memcmp(&(uint64_t){ STATS_MAGIC }, "BALSTST1", 8), 0);
}
END_TEST

START_TEST(paths)
{
	char buf[64];

	ck_assert_int_eq(strncmp(path, dir, strlen(dir)), 0);
	ck_assert_ptr_null(stats_path(1, buf, 8));
	setenv("XDG_RUNTIME_DIR", "relative", 1);
	ck_assert_str_eq(stats_path(17, buf, sizeof(buf)),
		"/dev/shm/ballast-17.stats");
	setenv("XDG_RUNTIME_DIR", "/absent", 1);
	ck_assert_str_eq(stats_path(17, buf, sizeof(buf)),
		"/dev/shm/ballast-17.stats");
	unsetenv("XDG_RUNTIME_DIR");
	ck_assert_str_eq(stats_path(17, buf, sizeof(buf)),
		"/dev/shm/ballast-17.stats");
}
END_TEST

START_TEST(life)
{
	struct stats_page p;
	struct stat st;

	stat_add(launches, 5);
	ck_assert_int_eq(stats_create(), 0);
	ck_assert_int_eq(stats_create(), 0);
	stat_add(launches, 2);
	stat_set(gpu_total, 100);
	stat_sub(gpu_total, 30);
	stat_max(gpu_peak, 10);
	stat_max(gpu_peak, 5);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	p = read_page();
	ck_assert(p.magic == STATS_MAGIC && p.version == STATS_VERSION);
	ck_assert_uint_eq(p.size, sizeof(p));
	ck_assert_uint_eq(p.pid, (unsigned int)getpid());
	ck_assert_uint_eq(p.nr_counters, NR_STATS);
	ck_assert_str_eq(p.program, program_invocation_short_name);
	ck_assert_uint_eq(p.launches, 7);
	ck_assert_uint_eq(p.gpu_total, 70);
	ck_assert_uint_eq(p.gpu_peak, 10);
	stats_destroy();
	ck_assert_int_eq(stat(path, &st), -1);
	stat_add(launches, 1);
	ck_assert_uint_eq(stat_get(launches), 8);
	stats_destroy();
}
END_TEST

/* The page of a killed process with our number. */
START_TEST(stale_file)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(stats_create(), 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert(read_page().magic == STATS_MAGIC);
}
END_TEST

/* A link under our name must not be followed, nor its target touched. */
START_TEST(link_is_not_followed)
{
	char target[256];
	int fd;

	snprintf(target, sizeof(target), "%s/target", dir);
	fd = open(target, O_WRONLY | O_CREAT, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(stats_create(), -EEXIST);
	ck_assert_int_eq(access(target, F_OK), 0);
	stat_add(launches, 1);
	ck_assert_uint_eq(stat_get(launches), 1);
	unlink(target);
}
END_TEST

/* A file that someone else put there meanwhile is not ours to unlink. */
START_TEST(foreign_file_stays)
{
	struct stat st;
	int fd;

	ck_assert_int_eq(stats_create(), 0);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	close(fd);
	stats_destroy();
	ck_assert_int_eq(stat(path, &st), 0);
}
END_TEST

START_TEST(child_is_detached)
{
	struct stats_page p;
	int status;
	pid_t pid;

	ck_assert_int_eq(stats_create(), 0);
	stat_add(launches, 3);
	pid = fork();
	if (pid == 0) {
		stats_detach();
		stat_add(launches, 100);
		stats_destroy();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	p = read_page();
	ck_assert_uint_eq(p.launches, 3);
}
END_TEST

static void *count(void *arg)
{
	int i;

	for (i = 1; i <= 10000; i++) {
		stat_add(fetches, 1);
		stat_max(gpu_peak, i * (intptr_t)arg);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t thread[4];
	intptr_t i;

	ck_assert_int_eq(stats_create(), 0);
	for (i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, count, (void *)(i + 1));
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(stat_get(fetches), 40000);
	ck_assert_uint_eq(stat_get(gpu_peak), 40000);
}
END_TEST

START_TEST(rows)
{
	ck_assert_str_eq(stats_rows[STATS_ID_wait_ns].name, "wait_ns");
	ck_assert_str_eq(stats_rows[STATS_ID_wait_ns].unit, "ns");
}
END_TEST

static Suite *stats_suite(void)
{
	Suite *s = suite_create("stats");
	TCase *t = tcase_create("stats");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, layout);
	tcase_add_test(t, paths);
	tcase_add_test(t, life);
	tcase_add_test(t, stale_file);
	tcase_add_test(t, link_is_not_followed);
	tcase_add_test(t, foreign_file_stays);
	tcase_add_test(t, child_is_detached);
	tcase_add_test(t, threads);
	tcase_add_test(t, rows);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(stats_suite());
}
