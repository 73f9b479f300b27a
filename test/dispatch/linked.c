/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways into the driver for a program that is linked to it, and what becomes of
 * its children, threads and exit.  One case per run: linked CASE.
 */
#include <cuda.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/dispatch/dispatch.h"

static void check(CUresult r, const char *what)
{
	CHECK(r == CUDA_SUCCESS, "%s: %d", what, (int)r);
}

/* Our files in the folder that run.sh made: the pages of live processes. */
static int nr_pages(pid_t pid)
{
	const char *dir = getenv("XDG_RUNTIME_DIR");
	char want[64];
	struct dirent *e;
	int nr = 0;
	DIR *d;

	CHECK(dir != NULL, "run.sh sets XDG_RUNTIME_DIR");
	snprintf(want, sizeof(want), "ballast-%d.stats", (int)pid);
	d = opendir(dir);
	CHECK(d != NULL, "%s", dir);
	while ((e = readdir(d)) != NULL)
		nr += pid ? strcmp(e->d_name, want) == 0 :
			strncmp(e->d_name, "ballast", 7) == 0;
	closedir(d);
	return nr;
}

static int nr_threads(void)
{
	struct dirent *e;
	int nr = 0;
	DIR *d = opendir("/proc/self/task");

	CHECK(d != NULL, "no /proc");
	while ((e = readdir(d)) != NULL)
		nr += e->d_name[0] != '.';
	closedir(d);
	return nr;
}

static void launch(void)
{
	CUdeviceptr p[8] = { 0 };
	void *params[8];
	int i;

	for (i = 0; i < 8; i++)
		params[i] = &p[i];
	check(cuLaunchKernel((CUfunction)p, 1, 2, 3, 4, 5, 6, 7, NULL, params,
		NULL), "cuLaunchKernel");
}

/* One function, one address, whichever way it is found. */
static void expect_one(const char *symbol, const char *base, int since,
	void *linked)
{
	CUdriverProcAddressQueryResult status;
	void *h = dlopen("libcuda.so.1", RTLD_NOW), *p = NULL;

	CHECK(h != NULL, "%s", dlerror());
	CHECK(dlsym(h, symbol) == linked, "%s: dlsym differs", symbol);
	CHECK(dlsym(RTLD_DEFAULT, symbol) == linked, "%s: RTLD_DEFAULT differs",
		symbol);
	check(cuGetProcAddress(base, &p, since, 0, &status),
		"cuGetProcAddress");
	CHECK(p == linked, "%s: cuGetProcAddress differs", symbol);
	dlclose(h);
}

static void way_calls(void)
{
	CUdeviceptr p;
	size_t pitch;
	int version;

	expect_one("cuInit", "cuInit", 2000, (void *)cuInit);
	expect_one("cuMemAlloc_v2", "cuMemAlloc", 3020, (void *)cuMemAlloc);
	expect_one("cuLaunchKernel", "cuLaunchKernel", 4000,
		(void *)cuLaunchKernel);
	expect_one("cuDriverGetVersion", "cuDriverGetVersion", 2020,
		(void *)cuDriverGetVersion);

	CHECK_IN((void *)cuInit, expected_home("cuInit"));
	CHECK_IN((void *)cuLaunchKernel, expected_home("cuLaunchKernel"));
	CHECK_IN((void *)cuDriverGetVersion, DRIVER);
	CHECK_IN(dlsym(RTLD_DEFAULT, "cuInit"), expected_home("cuInit"));
	CHECK_IN(dlsym(RTLD_NEXT, "cuInit"), expected_home("cuInit"));
	check(cuInit(0), "cuInit");
	check(cuInit(0), "cuInit again");
	check(cuDriverGetVersion(&version), "cuDriverGetVersion");
	CHECK(version == 13000, "%d", version);
	/* In a driver that calls its own exports these come back to us. */
	check(cuMemAllocPitch(&p, &pitch, 100, 100, 4), "cuMemAllocPitch");
	CHECK(pitch == 512 && p != 0, "pitch %zu", pitch);
	check(cuMemFree(p), "cuMemFree");
	launch();
}

static int wait_for(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* A child of an active process: no file, no thread, no line, no exit work. */
static void way_fork(void)
{
	pid_t pid;

	check(cuInit(0), "cuInit");
	CHECK(nr_pages(getpid()) == (with_ballast() ? 1 : 0), "%d pages",
		nr_pages(getpid()));
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (pid == 0) {
		/* run.sh sees what goes to the log after this line. */
		check(cuInit(0), "cuInit in the child");
		launch();
		CHECK(nr_pages(getpid()) == 0, "a page of the child");
		/* ThreadSanitizer has one of its own. */
		if (getenv("SAN") == NULL || *getenv("SAN") == '\0')
			CHECK(nr_threads() == 1, "%d threads", nr_threads());
		exit(0);
	}
	CHECK(wait_for(pid) == 0, "the child failed");
	CHECK(nr_pages(getpid()) == (with_ballast() ? 1 : 0),
		"the child took the page away");
	launch();
}

/* Fork first: each process that calls cuInit becomes active by itself. */
static void way_fork_first(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0, "fork");
	if (pid == 0) {
		check(cuInit(0), "cuInit in the child");
		CHECK(nr_pages(getpid()) == (with_ballast() ? 1 : 0), "pages");
		launch();
		exit(0);
	}
	CHECK(wait_for(pid) == 0, "the child failed");
	CHECK(nr_pages(0) == 0, "a page was left behind");
}

static pthread_barrier_t gate;

static void *race(void *arg)
{
	pthread_barrier_wait(&gate);
	check(cuInit(0), "cuInit");
	launch();
	return NULL;
}

static void way_threads(void)
{
	pthread_t t[16];
	int i;

	pthread_barrier_init(&gate, NULL, 16);
	for (i = 0; i < 16; i++)
		pthread_create(&t[i], NULL, race, NULL);
	for (i = 0; i < 16; i++)
		pthread_join(t[i], NULL);
}

static void at_end(void)
{
	/* As a CUDA runtime unloads: everything still works. */
	check(cuInit(0), "cuInit at exit");
	launch();
	CHECK(nr_pages(getpid()) == (with_ballast() ? 1 : 0), "page");
}

static void way_exit(void)
{
	check(cuInit(0), "cuInit");
	atexit(at_end);
}

static __attribute__((destructor)) void last(void)
{
	const char *name = getenv("LAST_CALL");

	if (name != NULL)
		check(cuInit(0), "cuInit in a destructor");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} ways[] = {
		{ "calls", way_calls }, { "exit", way_exit },
		{ "fork", way_fork }, { "fork-first", way_fork_first },
		{ "threads", way_threads },
	};
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]) != 0)
			continue;
		ways[i].run();
		return 0;
	}
	fprintf(stderr, "linked: no such case\n");
	return 2;
}
