/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c: the page shared with the launcher: layout, what is accepted as
 * such a page, and records that several threads write.
 */
#include "shim/status.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

static struct launch_status *page;
static int fd;

static void name_page(uint64_t nonce)
{
	char text[64];

	snprintf(text, sizeof(text), "%d:%d:%llx", (int)getpid(), fd,
		(unsigned long long)nonce);
	setenv(STATUS_ENV, text, 1);
}

static void setup(void)
{
	fd = memfd_create("status", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, sizeof(*page)), 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
		fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	page->magic = STATUS_MAGIC;
	page->version = STATUS_VERSION;
	page->size = sizeof(*page);
	page->nonce = 0xfeedull;
	name_page(0xfeedull);
}

static void seal(void)
{
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
}

static void teardown(void)
{
	status_close();
	munmap(page, sizeof(*page));
	close(fd);
}

START_TEST(layout)
{
	ck_assert_uint_eq(offsetof(struct launch_status, version), 8);
	ck_assert_uint_eq(offsetof(struct launch_status, nonce), 16);
	ck_assert_uint_eq(offsetof(struct launch_status, nr_active), 24);
	ck_assert_uint_eq(offsetof(struct launch_status, pids), 40);
	ck_assert_uint_eq(offsetof(struct launch_status, passive_why), 296);
	ck_assert_uint_eq(offsetof(struct launch_status, records), 424);
	ck_assert_uint_eq(sizeof(struct status_record), 112);
	ck_assert_uint_eq(offsetof(struct launch_status, keep_stats), 1320);
}
END_TEST

START_TEST(no_launcher)
{
	unsetenv(STATUS_ENV);
	ck_assert_int_eq(status_open(), -ENOENT);
	errno = 77;
	status_set_active();
	status_note_managed();
	status_set_passive("nothing");
	ck_assert_int_eq(errno, 77);
}
END_TEST

START_TEST(counts)
{
	struct status_failure f = { .request = 5, .call = "cuX", .key = "k" };

	seal();
	ck_assert_int_eq(status_open(), 0);
	status_set_active();
	status_set_active();
	status_note_managed();
	status_note_managed();
	status_set_passive("because");
	status_note_failure(&f);
	ck_assert_uint_eq(page->nr_active, 1);
	ck_assert_uint_eq(page->pids[0], (uint32_t)getpid());
	ck_assert_uint_eq(page->nr_managed, 1);
	ck_assert_str_eq(page->passive_why, "because");
	ck_assert_uint_eq(page->nr_failures, 1);
	ck_assert_uint_eq(page->records[0].seq, 1);
	ck_assert_uint_eq(page->records[0].failure.request, 5);
}
END_TEST

START_TEST(long_text)
{
	struct status_failure f;
	char text[300];

	seal();
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	memset(&f, 'y', sizeof(f));
	status_set_passive(text);
	status_note_failure(&f);
	ck_assert_uint_eq(strlen(page->passive_why),
		sizeof(page->passive_why) - 1);
	ck_assert_uint_eq(strlen(page->records[0].failure.call),
		sizeof(f.call) - 1);
	ck_assert_uint_eq(strlen(page->records[0].failure.key),
		sizeof(f.key) - 1);
}
END_TEST

START_TEST(more_processes_than_room)
{
	int i, status;

	seal();
	for (i = 0; i < STATUS_PIDS + 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			status_set_active();
			_exit(0);
		}
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		ck_assert_int_eq(status, 0);
		if (i < STATUS_PIDS)
			ck_assert_uint_eq(page->pids[i], (uint32_t)pid);
	}
	ck_assert_uint_eq(page->nr_active, STATUS_PIDS + 3);
	ck_assert_ptr_null(memchr(page->passive_why, 1,
		sizeof(page->passive_why)));
}
END_TEST

/* A page that is not exactly one is refused, and stays as it was. */
START_TEST(refused)
{
	static const char *const wrong[] = {
		"", "1", "1:2", "1:2:", "x:y:z", "1:2:3:4", "-1:-1:-1",
		"99999999:3:feed", "1:1:feed ",
	};
	size_t i;

	ck_assert_int_eq(status_open(), -EBADF);	/* can shrink */
	seal();
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		setenv(STATUS_ENV, wrong[i], 1);
		ck_assert_int_lt(status_open(), 0);
	}
	name_page(0xbadull);
	ck_assert_int_eq(status_open(), -EBADF);
	name_page(0xfeedull);
	page->version++;
	ck_assert_int_eq(status_open(), -EBADF);
	page->version--;
	page->size++;
	ck_assert_int_eq(status_open(), -EBADF);
	page->size--;
	page->magic++;
	ck_assert_int_eq(status_open(), -EBADF);
	page->magic--;
	ck_assert_int_eq(status_open(), 0);
}
END_TEST

/* Something else of the same number and even of the same size. */
START_TEST(strangers)
{
	int pipes[2];
	char text[64];

	seal();
	ck_assert_int_eq(pipe(pipes), 0);
	snprintf(text, sizeof(text), "%d:%d:feed", (int)getpid(), pipes[0]);
	setenv(STATUS_ENV, text, 1);
	ck_assert_int_eq(status_open(), -EBADF);
	close(pipes[0]);
	close(pipes[1]);
	ck_assert_int_lt(status_open(), 0);
}
END_TEST

static void *fail_often(void *arg)
{
	struct status_failure f = { .call = "cuX", .key = "arena" };
	int i;

	for (i = 0; i < 1000; i++) {
		f.request = f.gpu_used = (uint64_t)(uintptr_t)arg;
		status_note_failure(&f);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t t[2];
	int i;

	seal();
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, fail_often,
			(void *)(uintptr_t)(i + 1)), 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(page->nr_failures, 2000);
	for (i = 0; i < STATUS_FAILURES; i++) {
		ck_assert_uint_gt(page->records[i].seq, 0);
		ck_assert_uint_ne(page->records[i].seq, STATUS_BUSY);
		ck_assert_uint_eq(page->records[i].failure.request,
			page->records[i].failure.gpu_used);
		ck_assert_uint_eq((page->records[i].seq - 1) % STATUS_FAILURES,
			(unsigned int)i);
	}
}
END_TEST

static Suite *status_suite(void)
{
	Suite *s = suite_create("status");
	TCase *t = tcase_create("status");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, layout);
	tcase_add_test(t, no_launcher);
	tcase_add_test(t, counts);
	tcase_add_test(t, long_text);
	tcase_add_test(t, more_processes_than_room);
	tcase_add_test(t, refused);
	tcase_add_test(t, strangers);
	tcase_add_test(t, threads);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(status_suite());
}
