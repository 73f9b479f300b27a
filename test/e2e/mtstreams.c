/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that work side by side, each on a stream of its own: every thread
 * reads its own weights, changes one tensor of its own, and reads weights
 * that all threads share.  Every result is checked against the host.
 */
#include <pthread.h>

#include "test/e2e/e2e_digest.h"

static const char ptx[] = E2E_PTX_HEAD E2E_DIGEST_KERNEL
/* data[i] = data[i] * 3 + i over `words` */
	".visible .entry churn(.param .u64 data, .param .u32 words)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %t;\n"
	"	.reg .u64 %data, %o;\n"
	"\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	mad.lo.u32 %i, %i, %n, %t;\n"
	"	ld.param.u32 %n, [words];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %data, [data];\n"
	"	cvta.to.global.u64 %data, %data;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %data, %data, %o;\n"
	"	ld.global.u32 %t, [%data];\n"
	"	mad.lo.u32 %t, %t, 3, %i;\n"
	"	st.global.u32 [%data], %t;\n"
	"	ret;\n"
	"}\n";

enum { MAX_THREADS = 16, MAX_MATS = 64 };

struct weights {
	CUdeviceptr data[MAX_MATS];
	uint32_t *host[MAX_MATS];	/* owned */
	size_t nr, size;
};

static CUfunction digest, churn;
static CUcontext ctx;
static struct weights shared;	/* read only once the threads run */
static uint64_t nr_rounds = 3;

static void weights_create(struct weights *w, size_t nr, size_t size,
	uint64_t seed)
{
	w->nr = nr;
	w->size = size;
	for (size_t i = 0; i < nr; i++) {
		w->host[i] = e2e_host(size);
		e2e_fill_random(w->host[i], size, &seed);
		w->data[i] = e2e_alloc(size);
		CU(cuMemcpyHtoD, w->data[i], w->host[i], size);
	}
	CU(cuStreamSynchronize, CU_STREAM_LEGACY);
}

static void weights_destroy(struct weights *w)
{
	for (size_t i = 0; i < w->nr; i++) {
		CU(cuMemFree, w->data[i]);
		free(w->host[i]);
	}
}

struct worker {
	pthread_t thread;
	unsigned int nr;
	struct weights own;
	CUstream stream;
	CUdeviceptr out;
	uint32_t *got;		/* pinned, of both sets in turn */
	uint64_t hash;
};

/* Queues the digest of every tensor and of its results' way back. */
static void queue_digests(struct worker *w, const struct weights *set,
	size_t first, uint32_t seed)
{
	for (size_t i = 0; i < set->nr; i++) {
		size_t at = (first + i) * E2E_DIGEST_SIZE;

		e2e_digest_launch(digest, w->stream, w->out + at, set->data[i],
			set->size, seed + i);
		CU(cuMemcpyDtoHAsync, w->got + at / 4, w->out + at,
			E2E_DIGEST_SIZE, w->stream);
	}
}

static void check_digests(struct worker *w, const struct weights *set,
	size_t first, uint32_t seed, const char *what)
{
	for (size_t i = 0; i < set->nr; i++) {
		uint32_t got = e2e_digest_sum(w->got + (first + i) *
			E2E_DIGEST_WORDS);

		if (got != e2e_digest(set->host[i], set->size, seed + i))
			E2E_FAIL("thread %u: %s tensor %zu is wrong", w->nr,
				what, i);
		w->hash = e2e_hash(w->hash, &got, sizeof(got));
	}
}

/* Changes the thread's first tensor, here and on the GPU. */
static void change(struct worker *w)
{
	unsigned int words = w->own.size / 4;
	void *args[] = { &w->own.data[0], &words };

	CU(cuLaunchKernel, churn, (words + 255) / 256, 1, 1, 256, 1, 1, 0,
		w->stream, args, NULL);
	for (uint32_t i = 0; i < words; i++)
		w->own.host[0][i] = w->own.host[0][i] * 3 + i;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	CU(cuCtxSetCurrent, ctx);
	for (uint64_t r = 0; r < nr_rounds; r++) {
		uint32_t seed = w->nr * 1000 + r * 100 + 1;

		change(w);
		queue_digests(w, &w->own, 0, seed);
		queue_digests(w, &shared, w->own.nr, seed);
		CU(cuStreamSynchronize, w->stream);
		check_digests(w, &w->own, 0, seed, "own");
		check_digests(w, &shared, w->own.nr, seed, "shared");
	}
	return NULL;
}

static void worker_create(struct worker *w, unsigned int nr, size_t mats,
	size_t size)
{
	size_t room = (mats + shared.nr) * E2E_DIGEST_SIZE;

	w->nr = nr;
	w->hash = E2E_HASH;
	weights_create(&w->own, mats, size, nr + 100);
	w->out = e2e_alloc(room);
	CU(cuMemAllocHost, (void **)&w->got, room);
	CU(cuStreamCreate, &w->stream, CU_STREAM_NON_BLOCKING);
}

static void worker_destroy(struct worker *w)
{
	weights_destroy(&w->own);
	CU(cuMemFree, w->out);
	CU(cuMemFreeHost, w->got);
	CU(cuStreamDestroy, w->stream);
}

int main(int argc, char **argv)
{
	static struct worker worker[MAX_THREADS];
	uint64_t threads = 4, mats = 3, bytes = 2 << 20, nr_shared = 4;
	uint64_t hash = E2E_HASH;
	const struct e2e_option opts[] = {
		{ "threads", &threads, 0 }, { "mats", &mats, 0 },
		{ "bytes", &bytes, 0 }, { "shared", &nr_shared, 0 },
		{ "rounds", &nr_rounds, 0 },
	};
	CUdevice dev;
	CUmodule mod;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (!threads || threads > MAX_THREADS || !mats || mats > MAX_MATS ||
	    nr_shared > MAX_MATS || bytes < 16)
		E2E_FAIL("up to %d threads, %d matrices of 16 bytes or more",
			MAX_THREADS, MAX_MATS);
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	mod = e2e_module(ptx);
	digest = e2e_kernel(mod, "digest");
	churn = e2e_kernel(mod, "churn");
	weights_create(&shared, nr_shared, bytes, 1);
	for (unsigned int i = 0; i < threads; i++)
		worker_create(&worker[i], i, mats, bytes);
	for (unsigned int i = 0; i < threads; i++)
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			E2E_FAIL("no thread %u", i);
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(worker[i].thread, NULL);
		hash = e2e_hash(hash, &worker[i].hash, sizeof(hash));
	}
	for (unsigned int i = 0; i < threads; i++)
		worker_destroy(&worker[i]);
	weights_destroy(&shared);
	CU(cuModuleUnload, mod);
	e2e_close(dev);
	printf("checksum: %016llx\n", (unsigned long long)hash);
	return 0;
}
