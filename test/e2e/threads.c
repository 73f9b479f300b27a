/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share a context, each on its per-thread default stream and a
 * stream of its own, allocating and freeing all the while; a context is
 * current per thread.
 */
#include "test/e2e/e2e_digest.h"

#include <pthread.h>

enum { MAX_THREADS = 16 };

static const char ptx[] = E2E_PTX_HEAD E2E_DIGEST_KERNEL;

static CUcontext ctx;
static CUfunction digest;
static uint64_t rounds = 6;

struct worker {
	pthread_t thread;
	unsigned int nr;
	uint64_t hash;
};

static void round_trip(struct worker *w, CUstream s, uint64_t *seed)
{
	size_t size = (e2e_random(seed) % 65536 + 1024) & ~(size_t)15;
	CUdeviceptr p = e2e_alloc(size), out = e2e_alloc(E2E_DIGEST_SIZE);
	uint32_t part[E2E_DIGEST_WORDS], got;
	unsigned char *data = e2e_host(size);

	e2e_fill_random(data, size, seed);
	CU(cuMemcpyHtoDAsync, p, data, size, s);
	e2e_digest_launch(digest, s, out, p, size, w->nr);
	CU(cuMemcpyDtoHAsync, part, out, sizeof(part), s);
	CU(cuStreamSynchronize, s);
	got = e2e_digest_sum(part);
	if (got != e2e_digest(data, size, w->nr))
		E2E_FAIL("thread %u: wrong sum over %zu bytes", w->nr, size);
	w->hash = e2e_hash(w->hash, &got, sizeof(got));
	CU(cuMemFree, p);
	CU(cuMemFree, out);
	free(data);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t seed = w->nr + 1;
	CUcontext current;
	CUstream own;

	CU(cuCtxGetCurrent, &current);
	if (current)
		E2E_FAIL("a new thread has a context");
	CU(cuCtxSetCurrent, ctx);
	CU(cuStreamCreate, &own, CU_STREAM_NON_BLOCKING);
	for (uint64_t i = 0; i < rounds; i++) {
		round_trip(w, CU_STREAM_PER_THREAD, &seed);
		round_trip(w, own, &seed);
	}
	CU(cuStreamDestroy, own);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker worker[MAX_THREADS];
	uint64_t threads = 4, hash = E2E_HASH;
	const struct e2e_option opts[] = {
		{ "threads", &threads, 0 }, { "rounds", &rounds, 0 },
	};
	CUmodule mod;
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (!threads || threads > MAX_THREADS)
		E2E_FAIL("1 to %d threads", MAX_THREADS);
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	mod = e2e_module(ptx);
	digest = e2e_kernel(mod, "digest");
	for (unsigned int i = 0; i < threads; i++) {
		worker[i].nr = i;
		worker[i].hash = E2E_HASH;
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			E2E_FAIL("no thread %u", i);
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(worker[i].thread, NULL);
		hash = e2e_hash(hash, &worker[i].hash, sizeof(hash));
	}
	printf("checksum: %016llx\n", (unsigned long long)hash);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	return 0;
}
