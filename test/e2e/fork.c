/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: 16 threads race into the first call of all; children made before
 * it use the device by themselves; children made after it, while other threads
 * are in the driver, get an error from every call, whatever they name, and end
 * as any process does; one that executes a program begins afresh.  The parent
 * goes on with its bytes.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/e2e/e2e_vmm.h"

enum { RACERS = 16, BUFFERS = 8, FORKS = 6 };

static uint64_t size = 2 << 20, alone;
static struct e2e_vmm v;
static CUcontext ctx;
static pthread_barrier_t gate;
static int stop;

/* One buffer with a thread of its own. */
struct worker {
	pthread_t thread;
	CUdeviceptr p;
	CUstream stream;
	uint32_t word;
};

static void check(const struct worker *w, const char *what)
{
	uint32_t *words = e2e_host(size);

	CU(cuMemcpyDtoH, words, w->p, size);
	for (size_t i = 0; i < size / 4; i++)
		if (words[i] != w->word)
			E2E_FAIL("%s: word %zu is %u, not %u", what, i,
				words[i], w->word);
	free(words);
}

static void fill(struct worker *w, uint32_t word)
{
	w->p = e2e_alloc(size);
	w->word = word;
	CU(cuStreamCreate, &w->stream, CU_STREAM_NON_BLOCKING);
	CU(cuMemsetD32Async, w->p, word, size / 4, w->stream);
}

static void add(struct worker *w)
{
	e2e_vmm_add(&v, w->stream, w->p, size, 1);
	w->word++;
	CU(cuStreamSynchronize, w->stream);
}

static void *race(void *arg)
{
	struct worker *w = arg;
	CUcontext own;
	CUdevice dev;

	pthread_barrier_wait(&gate);
	CU(cuInit, 0);
	CU(cuDeviceGet, &dev, 0);
	CU(cuDevicePrimaryCtxRetain, &own, dev);
	CU(cuCtxSetCurrent, own);
	fill(w, (uint32_t)(uintptr_t)w);
	CU(cuStreamSynchronize, w->stream);
	check(w, "a racer");
	CU(cuMemFree, w->p);
	CU(cuStreamDestroy, w->stream);
	CU(cuDevicePrimaryCtxRelease, dev);
	return NULL;
}

static void racers(void)
{
	static struct worker w[RACERS];

	pthread_barrier_init(&gate, NULL, RACERS);
	for (int i = 0; i < RACERS; i++)
		if (pthread_create(&w[i].thread, NULL, race, &w[i]))
			E2E_FAIL("no thread");
	for (int i = 0; i < RACERS; i++)
		pthread_join(w[i].thread, NULL);
}

/* A process by itself: more than a small device holds, twice over. */
static void by_itself(void)
{
	static struct worker w[BUFFERS];
	CUdevice dev = e2e_open();

	e2e_vmm_open(&v, dev);
	for (int i = 0; i < BUFFERS; i++)
		fill(&w[i], (uint32_t)i * 1000);
	for (int r = 0; r < 2; r++)
		for (int i = 0; i < BUFFERS; i++)
			add(&w[i]);
	for (int i = 0; i < BUFFERS; i++)
		check(&w[i], "by itself");
	e2e_close(dev);
}

static void wait_for(pid_t pid, const char *what)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		E2E_FAIL("%s: status %#x", what, status);
}

static void refused(CUresult r, const char *call)
{
	if (r != CUDA_ERROR_NOT_INITIALIZED) {
		fprintf(stderr, "%s in a child: %s\n", call,
			e2e_error_name(r));
		_exit(1);
	}
}
#define REFUSED(fn, ...) refused(fn(__VA_ARGS__), #fn)

/* In a child of a process that has used the device. */
static void nothing_works(const struct worker *w)
{
	uint32_t words[4];
	CUdeviceptr p = w->p;
	void *args[] = { &p, &words[0], &words[1] };
	size_t n, total;
	CUcontext c;

	REFUSED(cuInit, 0);
	REFUSED(cuCtxGetCurrent, &c);
	REFUSED(cuMemAlloc, &p, size);
	REFUSED(cuMemAlloc, &p, 100);
	REFUSED(cuMemGetInfo, &n, &total);
	REFUSED(cuMemcpyDtoH, words, w->p, sizeof(words));
	REFUSED(cuMemsetD32, w->p, 1, 1);
	REFUSED(cuLaunchKernel, v.add, 1, 1, 1, 1, 1, 1, 0, w->stream, args,
		NULL);
	REFUSED(cuStreamSynchronize, w->stream);
	REFUSED(cuMemAddressReserve, &p, v.grain, 0, 0, 0);
	REFUSED(cuMemFree, w->p);
	REFUSED(cuCtxDestroy, ctx);
}

static void *busy(void *arg)
{
	struct worker *w = arg;

	CU(cuCtxSetCurrent, ctx);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		add(w);
	return NULL;
}

static void fork_now(struct worker *w, char **argv, int n)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		E2E_FAIL("fork");
	if (pid == 0 && n % 3 == 0) {
		execl(argv[0], argv[0], "--alone", NULL);
		_exit(127);
	}
	if (pid == 0) {
		nothing_works(w);
		if (n % 3 == 1)
			_exit(0);
		exit(0);
	}
	wait_for(pid, "a child made after the first call");
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "alone", &alone, 1 }, { "bytes", &size, 0 },
	};
	static struct worker w[BUFFERS];
	pid_t before;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (alone) {
		by_itself();
		return 0;
	}
	before = fork();
	if (before == 0) {
		by_itself();
		exit(0);
	}
	racers();
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	e2e_vmm_open(&v, dev);
	for (int i = 0; i < BUFFERS; i++) {
		fill(&w[i], (uint32_t)i * 7);
		CU(cuStreamSynchronize, w[i].stream);
	}
	for (int i = 1; i < 3; i++)
		if (pthread_create(&w[i].thread, NULL, busy, &w[i]))
			E2E_FAIL("no thread");
	for (int n = 0; n < FORKS; n++) {
		for (int i = 3; i < BUFFERS; i++)
			add(&w[i]);
		fork_now(&w[n], argv, n);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 1; i < 3; i++)
		pthread_join(w[i].thread, NULL);
	for (int i = 0; i < BUFFERS; i++)
		check(&w[i], "the parent's");
	wait_for(before, "a child made before the first call");
	printf("%d children, %d buffers\n", FORKS + 1, BUFFERS);
	e2e_close(dev);
	return 0;
}
