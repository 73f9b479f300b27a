/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory: how fast it comes by each way, whether a copy may cross
 * from one registration into another or out of one, and whether the limit on
 * locked memory matters.  Run by probe.c in its own process; the only probe
 * with threads of its own, which touch pages and call no driver.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "test/gpu/probe.h"

void probe_pin(void);

#define MOST_THREADS 16

struct touch {
	char *from;
	size_t size;
};

static void *touch_pages(void *arg)
{
	struct touch *t = arg;

	for (size_t off = 0; off < t->size; off += 4096)
		((volatile char *)t->from)[off] = 0;
	return NULL;
}

/* Touches all pages by `nr` threads. */
static void touch(char *p, size_t size, unsigned int nr)
{
	struct touch part[MOST_THREADS];
	pthread_t thread[MOST_THREADS];
	int started[MOST_THREADS];
	size_t each = size / nr;

	for (unsigned int i = 0; i < nr; i++) {
		part[i].from = p + i * each;
		part[i].size = i + 1 < nr ? each : size - i * each;
		started[i] = !pthread_create(&thread[i], NULL, touch_pages,
			&part[i]);
		if (!started[i])
			touch_pages(&part[i]);
	}
	for (unsigned int i = 0; i < nr; i++)
		if (started[i])
			pthread_join(thread[i], NULL);
}

static char *pages(size_t size, int huge)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return p;
}

/* Maps, touches, registers; GB/s of all that, and of registering alone. */
static void pin_way(size_t size, unsigned int threads, int huge, double *all)
{
	double t0 = probe_now_us(), t1, t2, t3;
	char *p = pages(size, huge);
	char name[64];

	*all = 0;
	snprintf(name, sizeof(name), "register_%s_%u_threads",
		huge ? "huge" : "small", threads);
	if (!p) {
		probe_status(name, PROBE_FAILED, "no memory");
		return;
	}
	touch(p, size, threads);
	t1 = probe_now_us();
	PROBE_TRY(name, drv.cuMemHostRegister_v2(p, size,
		CU_MEMHOSTREGISTER_PORTABLE));
	t2 = probe_now_us();
	PROBE_TRY(name, drv.cuMemHostUnregister(p));
	t3 = probe_now_us();
	*all = (double)size / (t2 - t0) / 1e3;
	probe_value(name, *all, "GB/s",
		"with touching; registering alone %.1f, unregistering %.1f",
		(double)size / (t2 - t1) / 1e3, (double)size / (t3 - t2) / 1e3);
	munmap(p, size);
}

/* Two registrations side by side, a page beyond them that is in none. */
static void borders(void)
{
	size_t part = 4 * PROBE_MIB;
	char *p = pages(3 * part, 0);
	CUdeviceptr dev;
	CUstream s;
	CUresult r;

	if (!p)
		return;
	memset(p, 1, 3 * part);
	PROBE_TRY("borders", drv.cuMemAlloc_v2(&dev, 2 * part));
	PROBE_TRY("borders", probe_stream(&s));
	PROBE_TRY("borders", drv.cuMemHostRegister_v2(p, part, 0));
	r = drv.cuMemHostRegister_v2(p, part, 0);
	probe_value("register_twice", r, "code", "%s", probe_result(r));
	PROBE_TRY("borders", drv.cuMemHostRegister_v2(p + part, part, 0));
	r = drv.cuMemcpyHtoDAsync_v2(dev, p + part / 2, part, s);
	probe_verdict("copy_over_two_registrations", r, "code",
		r != CUDA_SUCCESS, "no copy crosses from one into the next, so "
		"the arena is registered as one", "%s", probe_result(r));
	PROBE_TRY("borders", drv.cuStreamSynchronize(s));
	r = drv.cuMemcpyHtoDAsync_v2(dev, p + part + part / 2, part, s);
	probe_verdict("copy_out_of_a_registration", r, "code",
		r != CUDA_SUCCESS, "no copy leaves registered memory",
		"%s", probe_result(r));
	PROBE_TRY("borders", drv.cuStreamSynchronize(s));
	r = drv.cuMemHostRegister_v2(p + part, 2 * part, 0);
	probe_value("register_over_a_registration", r, "code", "%s",
		probe_result(r));
	PROBE_TRY("borders", drv.cuMemHostUnregister(p + part));
	PROBE_TRY("borders", drv.cuMemHostUnregister(p));
	munmap(p, 3 * part);
}

/* Last: the limit stays. */
static void memlock(void)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	size_t size = 64 * PROBE_MIB;
	char *p = pages(size, 0);
	CUresult r;

	if (!p || setrlimit(RLIMIT_MEMLOCK, &limit)) {
		probe_status("memlock", PROBE_UNSUPPORTED,
			"the limit cannot be set");
		return;
	}
	memset(p, 1, size);
	r = drv.cuMemHostRegister_v2(p, size, 0);
	probe_verdict("register_beyond_memlock", r, "code", r == CUDA_SUCCESS,
		"the limit on locked memory does not bind the driver",
		"%s", probe_result(r));
}

void probe_pin(void)
{
	static const unsigned int threads[] = { 1, 4, 8 };
	size_t size = probe_pick(PROBE_GIB, 8 * PROBE_MIB);
	double alloc, best = 0, t0;
	void *p;

	t0 = probe_now_us();
	PROBE_TRY("host_alloc", drv.cuMemHostAlloc(&p, size,
		CU_MEMHOSTALLOC_PORTABLE));
	alloc = (double)size / (probe_now_us() - t0) / 1e3;
	probe_value("host_alloc", alloc, "GB/s", "cuMemHostAlloc of %zu MiB",
		size / PROBE_MIB);
	t0 = probe_now_us();
	PROBE_TRY("free_host", drv.cuMemFreeHost(p));
	probe_value("free_host", (double)size / (probe_now_us() - t0) / 1e3,
		"GB/s", "%s", "");
	for (int huge = 0; huge < 2; huge++) {
		for (size_t i = 0; i < PROBE_LEN(threads); i++) {
			double all;

			pin_way(size, threads[i], huge, &all);
			if (all > best)
				best = all;
		}
	}
	probe_verdict("register_by_host_alloc", best / alloc, "ratio",
		best > alloc, "touching by threads and registering is faster "
		"than cuMemHostAlloc", "%.1f GB/s at best", best);
	borders();
	memlock();
}
