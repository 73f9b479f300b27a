/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c: the formatter against snprintf, lines, levels, and what happens when
 * the program closes our file or its reader goes away.
 */
#include "shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/unit.h"

static char path[] = "/tmp/ballast-log-XXXXXX";
static char text[65536];

static void setup(void)
{
	int fd;

	strcpy(path + sizeof(path) - 7, "XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(log_open(LOG_DEBUG, path), 0);
}

static void teardown(void)
{
	log_open(LOG_WARN, NULL);
	unlink(path);
}

/* The whole file. */
static const char *contents(void)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	ck_assert_int_ge(n, 0);
	text[n] = '\0';
	close(fd);
	return text;
}

/* The last line behind its prefix, without its end. */
static const char *last_line(void)
{
	char *end, *p;

	contents();
	end = strrchr(text, '\n');
	ck_assert_ptr_nonnull(end);
	ck_assert_str_eq(end, "\n");
	*end = '\0';
	p = strrchr(text, '\n');
	p = strstr(p != NULL ? p : text, "]");
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(p[1], ' ');
	ck_assert_str_eq(((char[]){ p[3], p[4], 0 }), ": ");
	return p + 5;
}

static void size_is(const char *name, long size)
{
	struct stat st;

	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_int_eq(st.st_size, size);
}

/* The same arguments to both. */
#define SAME(...) \
	do { \
		char want_[512]; \
		snprintf(want_, sizeof(want_), __VA_ARGS__); \
		log_info(__VA_ARGS__); \
		ck_assert_str_eq(last_line(), want_); \
	} while (0)

START_TEST(formats)
{
	SAME("plain %% text");
	SAME("%d %d %d", 0, INT_MAX, INT_MIN);
	SAME("%i|%5d|%-5d|%05d|%05d", 7, 42, 42, 42, -42);
	SAME("%u %x %X %08x", UINT_MAX, 0xbeefu, 0xbeefu, 0x1fu);
	SAME("%ld %lu %lx", LONG_MIN, ULONG_MAX, 0x123456789abcdeful);
	SAME("%lld %llu", LLONG_MIN, ULLONG_MAX);
	SAME("%zu %zx", SIZE_MAX, (size_t)4096);
	SAME("%s|%10s|%-10s|%.3s|%.*s", "abc", "right", "left", "cutoff", 2,
		"xyz");
	SAME("%c%c|%3c", 'o', 'k', 'r');
	SAME("%p", (void *)0x7f0012345678);
	SAME("%#llx %#x %#X", 0x7f0012345678ull, 0u, 0xbeefu);
	SAME("%#10x|%#010x|%-#10x|%20p|%-20p|", 31u, 31u, 31u,
		(void *)0x7f0012345678, (void *)0x7f0012345678);
	SAME("%*d", 6, 99);
}
END_TEST

START_TEST(odd_formats)
{
	const char *volatile null = NULL;
	const char *volatile fmt = "%d %f %d";

	log_info("%s", null);
	ck_assert_str_eq(last_line(), "(null)");
	/* No argument after an unknown conversion is touched. */
	log_write(LOG_INFO, fmt, 1, 2.0, 3);
	ck_assert_str_eq(last_line(), "1 %f %d");
	log_info("a%sb", "\n\t\033[31m");
	ck_assert_str_eq(last_line(), "a???[31mb");
}
END_TEST

START_TEST(prefix_and_levels)
{
	char want[64];

	log_err("e");
	log_warn("w");
	log_info("i");
	log_dbg("d");
	snprintf(want, sizeof(want), "ballast[%d:%d] E: e\n", (int)getpid(),
		(int)gettid());
	contents();
	ck_assert_int_eq(strncmp(text, want, strlen(want)), 0);
	ck_assert_ptr_nonnull(strstr(text, "] W: w\n"));
	ck_assert_ptr_nonnull(strstr(text, "] I: i\n"));
	ck_assert_ptr_nonnull(strstr(text, "] D: d\n"));
}
END_TEST

static int evaluated;

static int count(void)
{
	return ++evaluated;
}

START_TEST(off_is_not_evaluated)
{
	ck_assert_int_eq(log_open(LOG_WARN, path), 0);
	log_info("%d", count());
	ck_assert_int_eq(evaluated, 0);
	log_warn("%d", count());
	ck_assert_int_eq(evaluated, 1);
	ck_assert_str_eq(last_line(), "1");
}
END_TEST

START_TEST(once)
{
	int i;

	for (i = 0; i < 3; i++)
		log_once(LOG_WARN, "only %d", i);
	ck_assert_str_eq(last_line(), "only 0");
	ck_assert_ptr_eq(strchr(contents(), '\n'), strrchr(text, '\n'));
}
END_TEST

START_TEST(long_lines_are_cut)
{
	char big[4000];

	memset(big, 'y', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	log_info("%s", big);
	contents();
	ck_assert_uint_le(strlen(text), 1024);
	ck_assert_ptr_nonnull(strstr(text, "yy...\n"));
}
END_TEST

START_TEST(errno_is_kept)
{
	errno = EXDEV;
	log_info("x");
	ck_assert_int_eq(errno, EXDEV);
}
END_TEST

START_TEST(bad_file)
{
	ck_assert_int_eq(log_open(LOG_INFO, "/nonexistent/log"), -ENOENT);
	ck_assert_int_eq(log_threshold, LOG_INFO);
}
END_TEST

/* A program that closes all descriptors gets our number for its own file. */
START_TEST(program_takes_descriptor)
{
	char other[] = "/tmp/ballast-own-XXXXXX";
	int fd, last = 3;

	log_info("before");
	closefrom(3);
	fd = mkstemp(other);
	/* Every number that ours could have had. */
	while (last >= 0 && last < 16)
		last = dup(fd);
	log_info("after");
	size_is(other, 0);
	ck_assert_str_eq(last_line(), "after");
	unlink(other);
	closefrom(3);
	/* Check's own pipe is among the closed ones: end here. */
	teardown();
	_exit(0);
}
END_TEST

START_TEST(reader_gone)
{
	int p[2];

	ck_assert_int_eq(log_open(LOG_INFO, NULL), 0);
	ck_assert_int_eq(pipe(p), 0);
	close(p[0]);
	ck_assert_int_eq(dup2(p[1], STDERR_FILENO), STDERR_FILENO);
	signal(SIGPIPE, SIG_DFL);
	log_info("nobody hears this");
	log_info("nor this");
}
END_TEST

static void *chat(void *arg)
{
	int i;

	for (i = 0; i < 50; i++)
		log_info("thread %d line %d end", *(int *)arg, i);
	return NULL;
}

START_TEST(lines_stay_whole)
{
	pthread_t thread[4];
	int id[4], i, nr = 0;
	char *line;

	for (i = 0; i < 4; i++) {
		id[i] = i;
		pthread_create(&thread[i], NULL, chat, &id[i]);
	}
	for (i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	contents();
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		ck_assert_int_eq(strncmp(line, "ballast[", 8), 0);
		ck_assert_str_eq(line + strlen(line) - 4, " end");
		nr++;
	}
	ck_assert_int_eq(nr, 200);
}
END_TEST

static Suite *log_suite(void)
{
	Suite *s = suite_create("log");
	TCase *t = tcase_create("log");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, formats);
	tcase_add_test(t, odd_formats);
	tcase_add_test(t, prefix_and_levels);
	tcase_add_test(t, off_is_not_evaluated);
	tcase_add_test(t, once);
	tcase_add_test(t, long_lines_are_cut);
	tcase_add_test(t, errno_is_kept);
	tcase_add_test(t, bad_file);
	tcase_add_exit_test(t, program_takes_descriptor, 0);
	tcase_add_test(t, reader_gone);
	tcase_add_test(t, lines_stay_whole);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(log_suite());
}
