/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that a software driver stops inside of one of their calls, so that
 * what the others meet then is the same in every run.
 *
 * --hands: one thread is stopped while it is being given memory; a launch that
 * needs more than the rest of a small device waits for it and does not fail.
 * --turns: a launch that needs nearly all of a small device waits for one that
 * is stopped; a third, smaller, that comes later, lets it pass.
 *
 * Ends with 77 where the driver stops nobody.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "test/e2e/e2e_vmm.h"

enum { UNIT = 65536 };

static void (*hold)(const char *name);
static uint64_t (*nr_held)(void);
static void (*let_go)(void);

static struct e2e_vmm v;
static CUcontext ctx;
static uint64_t hands, turns;

/* Data, and a thread that adds `by` to it. */
struct worker {
	pthread_t thread;
	CUdeviceptr p;
	size_t size;		/* bytes; units before set() in a thread */
	uint32_t word;		/* what every word of it must be */
	const char *stop;	/* the call that it is stopped in, or NULL */
	CUstream stream;
	int started, rank;
};
static int ranks;

static void set(struct worker *w, size_t units)
{
	w->size = units * UNIT;
	w->p = e2e_alloc(w->size);
	CU(cuMemsetD32, w->p, 1, w->size / 4);
	w->word = 1;
	CU(cuStreamCreate, &w->stream, CU_STREAM_NON_BLOCKING);
	CU(cuCtxSynchronize);
}

static void add(struct worker *w, uint32_t by)
{
	e2e_vmm_add(&v, w->stream, w->p, w->size, by);
	w->word += by;
	w->rank = __atomic_add_fetch(&ranks, 1, __ATOMIC_SEQ_CST);
	CU(cuStreamSynchronize, w->stream);
}

static void check(const struct worker *w, const char *what)
{
	uint32_t *words = e2e_host(w->size);

	CU(cuMemcpyDtoH, words, w->p, w->size);
	for (size_t i = 0; i < w->size / 4; i++)
		if (words[i] != w->word)
			E2E_FAIL("%s: word %zu is %u, not %u", what, i,
				words[i], w->word);
	printf("%s: %u\n", what, w->word);
	free(words);
}

static void *run_add(void *arg)
{
	struct worker *w = arg;

	CU(cuCtxSetCurrent, ctx);
	if (w->stop)
		hold(w->stop);
	__atomic_store_n(&w->started, 1, __ATOMIC_SEQ_CST);
	add(w, 3);
	return NULL;
}

static void *run_alloc(void *arg)
{
	struct worker *w = arg;

	CU(cuCtxSetCurrent, ctx);
	hold(w->stop);
	set(w, w->size);
	return NULL;
}

static void start(struct worker *w, void *(*fn)(void *))
{
	if (pthread_create(&w->thread, NULL, fn, w))
		E2E_FAIL("no thread");
}

static void wait_held(void)
{
	for (int i = 0; i < 2000 && !nr_held(); i++)
		usleep(1000);
}

/* In its call, for as long as such a call may take before it has to wait. */
static void wait_started(const struct worker *w)
{
	while (!__atomic_load_n(&w->started, __ATOMIC_SEQ_CST))
		usleep(1000);
	for (int i = 0; i < 700 && !__atomic_load_n(&w->rank, __ATOMIC_SEQ_CST);
	     i++)
		usleep(1000);
}

static void *run_let_go(void *arg)
{
	(void)arg;
	usleep(500000);
	let_go();
	return NULL;
}

/* The device holds 30 units. */
static void test_hands(void)
{
	struct worker all = { .stop = "cuMemMap", .size = 30 };
	struct worker large = { 0 }, timer;
	struct worker half = { .stop = "cuMemMap", .size = 16 };

	/* All of it is in another thread's hands while this one allocates. */
	start(&all, run_alloc);
	wait_held();
	start(&timer, run_let_go);
	set(&large, 24);
	pthread_join(timer.thread, NULL);
	pthread_join(all.thread, NULL);
	add(&all, 1);
	check(&all, "all");
	CU(cuMemFree, all.p);
	/* Half of it, while this one launches for the first time. */
	start(&half, run_alloc);
	wait_held();
	start(&timer, run_let_go);
	add(&large, 2);
	pthread_join(timer.thread, NULL);
	pthread_join(half.thread, NULL);
	add(&half, 2);
	check(&half, "half");
	check(&large, "large");
}

static void test_turns(void)
{
	struct worker large = { 0 }, stopped = { 0 }, late = { 0 };

	set(&late, 6);
	set(&stopped, 6);
	set(&large, 26);
	add(&late, 1);
	add(&stopped, 1);
	add(&large, 1);
	ranks = large.rank = stopped.rank = late.rank = 0;
	stopped.stop = "cuLaunchKernel";
	start(&stopped, run_add);
	wait_held();
	start(&large, run_add);
	wait_started(&large);
	start(&late, run_add);
	wait_started(&late);
	let_go();
	pthread_join(stopped.thread, NULL);
	pthread_join(large.thread, NULL);
	pthread_join(late.thread, NULL);
	if (large.rank > late.rank)
		E2E_FAIL("a large launch waits for one that came after it");
	check(&late, "late");
	check(&stopped, "stopped");
	check(&large, "large");
}

int main(int argc, char **argv)
{
	const struct e2e_option opts[] = {
		{ "hands", &hands, 1 }, { "turns", &turns, 1 },
	};
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	hold = (void (*)(const char *))dlsym(RTLD_DEFAULT, "softcuda_hold");
	nr_held = (uint64_t (*)(void))dlsym(RTLD_DEFAULT, "softcuda_nr_held");
	let_go = (void (*)(void))dlsym(RTLD_DEFAULT, "softcuda_let_go");
	if (!hold || !nr_held || !let_go) {
		fprintf(stderr, "this driver stops nobody\n");
		return 77;
	}
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	e2e_vmm_open(&v, dev);
	if (hands)
		test_hands();
	if (turns)
		test_turns();
	return 0;
}
