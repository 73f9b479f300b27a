/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads share one reservation: each maps, uses and unmaps handles in its own
 * part of it while the others' kernels run in theirs.  Every third handle is
 * kept, unmapped, and comes back in the next round with its bytes.
 */
#include "test/e2e/e2e_vmm.h"

#include <pthread.h>

enum { MAX_THREADS = 8, SLOTS = 3 };

static struct e2e_vmm v;
static CUcontext ctx;
static CUdeviceptr base;
static uint64_t threads = 3, rounds = 4, size = 2u << 20;

struct worker {
	pthread_t thread;
	int number;
	CUstream stream;
	CUdeviceptr out;
	CUmemGenericAllocationHandle kept;
	unsigned char *model[SLOTS];
	uint64_t seed, hash;
};

static CUdeviceptr place(const struct worker *w, int slot)
{
	return base + size * (uint64_t)(w->number * SLOTS + slot);
}

static void slot_open(struct worker *w, int slot, uint64_t round)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr p = place(w, slot);

	if (slot == 0 && round > 0) {
		e2e_vmm_map(&v, p, size, w->kept);
		return;
	}
	h = e2e_vmm_create(&v, size);
	e2e_vmm_map(&v, p, size, h);
	if (slot == 0)
		w->kept = h;
	else
		CU(cuMemRelease, h);
	e2e_fill_random(w->model[slot], size, &w->seed);
	CU(cuMemcpyHtoDAsync, p, w->model[slot], size, w->stream);
}

static void slot_use(struct worker *w, int slot, uint32_t by)
{
	CUdeviceptr p = place(w, slot);
	uint32_t *m = (uint32_t *)w->model[slot], got;

	e2e_vmm_add(&v, w->stream, p, size, by);
	for (size_t i = 0; i < size / 4; i++)
		m[i] += by;
	got = e2e_digest_now(v.digest, w->stream, w->out, p, size, by);
	if (got != e2e_digest(m, size, by))
		E2E_FAIL("thread %d, slot %d: other bytes", w->number, slot);
	w->hash = e2e_hash(w->hash, &got, sizeof(got));
}

static void *work(void *arg)
{
	struct worker *w = arg;

	CU(cuCtxSetCurrent, ctx);
	for (uint64_t round = 0; round < rounds; round++) {
		for (int slot = 0; slot < SLOTS; slot++)
			slot_open(w, slot, round);
		for (int k = 0; k < 2; k++)
			for (int slot = 0; slot < SLOTS; slot++)
				slot_use(w, slot, (uint32_t)round * 2 + k + 1);
		CU(cuStreamSynchronize, w->stream);
		CU(cuMemUnmap, place(w, 0), size * SLOTS);
	}
	CU(cuMemRelease, w->kept);
	return NULL;
}

int main(int argc, char **argv)
{
	struct worker workers[MAX_THREADS] = { 0 };
	struct e2e_option opts[] = {
		{ "threads", &threads, 0 }, { "rounds", &rounds, 0 },
		{ "size", &size, 0 },
	};
	CUdevice dev;

	e2e_options(argc, argv, opts, E2E_LEN(opts));
	if (threads < 1 || threads > MAX_THREADS)
		E2E_FAIL("--threads is from 1 to %d", MAX_THREADS);
	dev = e2e_open();
	CU(cuCtxGetCurrent, &ctx);
	e2e_vmm_open(&v, dev);
	size = (size + v.grain - 1) / v.grain * v.grain;
	base = e2e_vmm_reserve(size * SLOTS * threads);
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		w->number = (int)i;
		w->seed = i + 1;
		w->hash = E2E_HASH;
		w->out = e2e_alloc(E2E_DIGEST_SIZE);
		for (int k = 0; k < SLOTS; k++)
			w->model[k] = e2e_host(size);
		CU(cuStreamCreate, &w->stream, CU_STREAM_NON_BLOCKING);
		if (pthread_create(&w->thread, NULL, work, w))
			E2E_FAIL("no thread");
	}
	for (uint64_t i = 0; i < threads; i++) {
		struct worker *w = &workers[i];

		pthread_join(w->thread, NULL);
		printf("thread %d: %016llx\n", w->number,
			(unsigned long long)w->hash);
		CU(cuStreamDestroy, w->stream);
		CU(cuMemFree, w->out);
		for (int k = 0; k < SLOTS; k++)
			free(w->model[k]);
	}
	CU(cuMemAddressFree, base, size * SLOTS * threads);
	e2e_close(dev);
	return 0;
}
