/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that a software driver stops inside of one of their calls, so that
 * what the others meet then is the same in every run.
 *
 * --hands: one thread is stopped while it is being given memory; a launch that
 * needs more than the rest of a small device waits for it and does not fail.
 * --turns: a launch that needs nearly all of a small device waits for one that
 * is stopped; a third, smaller, that comes later, lets it pass.  Kernels number
 * themselves: when a thread goes on after its launch says nothing.
 *
 * Ends with 77 where the driver stops nobody.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "test/e2e/e2e_vmm.h"

enum { UNIT = 65536 };

/* Adds, and takes the next number. */
#define NUMBER_KERNEL							\
	".visible .entry number(.param .u64 data, .param .u32 words,\n"	\
	"	.param .u32 value, .param .u64 counter, .param .u64 out)\n" \
	E2E_ADD_BEGIN							\
	"	setp.ne.u32 %p, %i, 0;\n"				\
	"	@%p bra NEXT;\n"					\
	"	ld.param.u64 %at, [counter];\n"				\
	"	atom.global.add.u32 %t, [%at], 1;\n"			\
	"	ld.param.u64 %at, [out];\n"				\
	"	st.global.u32 [%at], %t;\n"				\
	E2E_ADD_END

static void (*hold)(const char *name);
static uint64_t (*nr_held)(void);
static void (*let_go)(void);

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
	CUdeviceptr number;	/* its kernel's, in native memory */
	int started, launched;	/* atomic */
};
static CUfunction number;
static CUdeviceptr counter;	/* and room for the numbers */
static uint32_t nr_workers;	/* atomic */

static void set(struct worker *w, size_t units)
{
	w->size = units * UNIT;
	w->p = e2e_alloc(w->size);
	CU(cuMemsetD32, w->p, 1, w->size / 4);
	w->word = 1;
	CU(cuStreamCreate, &w->stream, CU_STREAM_NON_BLOCKING);
	w->number = counter + 4 * __atomic_add_fetch(&nr_workers, 1,
		__ATOMIC_SEQ_CST);
	CU(cuCtxSynchronize);
}

static void add(struct worker *w, uint32_t by)
{
	uint32_t words = w->size / 4;
	void *args[] = { &w->p, &words, &by, &counter, &w->number };

	CU(cuLaunchKernel, number, 1, 1, 1, 128, 1, 1, 0, w->stream, args,
		NULL);
	w->word += by;
	__atomic_store_n(&w->launched, 1, __ATOMIC_SEQ_CST);
	CU(cuStreamSynchronize, w->stream);
}

static uint32_t number_of(const struct worker *w)
{
	uint32_t n;

	CU(cuMemcpyDtoH, &n, w->number, sizeof(n));
	return n;
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
static void wait_started(const struct worker *w, int ms)
{
	while (!__atomic_load_n(&w->started, __ATOMIC_SEQ_CST))
		usleep(1000);
	for (int i = 0; i < ms &&
	     !__atomic_load_n(&w->launched, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
}

/* Long enough for a call that does not wait to fail, also on a busy machine. */
static void *run_let_go(void *arg)
{
	(void)arg;
	usleep(1000000);
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
	large.launched = stopped.launched = late.launched = 0;
	stopped.stop = "cuLaunchKernel";
	start(&stopped, run_add);
	wait_held();
	start(&large, run_add);
	wait_started(&large, 2500);
	start(&late, run_add);
	wait_started(&late, 700);
	let_go();
	pthread_join(stopped.thread, NULL);
	pthread_join(large.thread, NULL);
	pthread_join(late.thread, NULL);
	if (number_of(&large) > number_of(&late))
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

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	hold = (void (*)(const char *))dlsym(RTLD_DEFAULT, "softcuda_hold");
	nr_held = (uint64_t (*)(void))dlsym(RTLD_DEFAULT, "softcuda_nr_held");
	let_go = (void (*)(void))dlsym(RTLD_DEFAULT, "softcuda_let_go");
	if (!hold || !nr_held || !let_go) {
		fprintf(stderr, "this driver stops nobody\n");
		return 77;
	}
	e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	CU(cuModuleGetFunction, &number, e2e_module(E2E_PTX_HEAD NUMBER_KERNEL),
		"number");
	counter = e2e_alloc(256);
	CU(cuMemsetD32, counter, 0, 1);
	if (hands)
		test_hands();
	if (turns)
		test_turns();
	return 0;
}
