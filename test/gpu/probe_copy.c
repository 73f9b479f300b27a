/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates over the link: copies to ranges of many handles against plain memory,
 * copies beside kernels, and kernels that read host memory themselves.  Run by
 * probe.c, each in its own process.
 */
#include <stdio.h>
#include <string.h>

#include "test/gpu/probe.h"

void probe_tiled_copy(void);
void probe_refill_beside(void);
void probe_host_numa_vmm(void);
void probe_host_vmm(void);
void probe_zero_copy(void);

/* ---- c: one range of many handles ---------------------------------------------- */

struct lane {
	CUstream s;
	CUevent from, to;
	void *host;
	size_t size;
	int down;		/* device to host */
};

static CUresult lane_make(struct lane *l, void *host, size_t size, int down)
{
	l->host = host;
	l->size = size;
	l->down = down;
	PROBE_PASS(probe_stream(&l->s));
	PROBE_PASS(probe_timer(&l->from));
	return probe_timer(&l->to);
}

/* Queues the range in copies of `piece` bytes. */
static CUresult lane_queue(struct lane *l, CUdeviceptr p, size_t piece)
{
	PROBE_PASS(drv.cuEventRecord(l->from, l->s));
	for (size_t off = 0; off + piece <= l->size; off += piece) {
		char *host = (char *)l->host + off;

		if (l->down)
			PROBE_PASS(drv.cuMemcpyDtoHAsync_v2(host, p + off,
				piece, l->s));
		else
			PROBE_PASS(drv.cuMemcpyHtoDAsync_v2(p + off, host,
				piece, l->s));
	}
	return drv.cuEventRecord(l->to, l->s);
}

/* GB/s of the range in pieces, the best of three. */
static CUresult lane_rate(double *gbps, struct lane *l, CUdeviceptr p,
	size_t piece)
{
	double ms;

	*gbps = 0;
	for (int i = 0; i < 3; i++) {
		PROBE_PASS(lane_queue(l, p, piece));
		PROBE_PASS(probe_elapsed(&ms, l->from, l->to));
		if (ms > 0 && (double)l->size / ms / 1e6 > *gbps)
			*gbps = (double)l->size / ms / 1e6;
	}
	return CUDA_SUCCESS;
}

static void one_way(struct lane *l, CUdeviceptr plain, CUdeviceptr tiled,
	double *best)
{
	const char *way = l->down ? "d2h" : "h2d";
	double a, b;
	char name[64];

	*best = 0;
	for (size_t piece = 64 * PROBE_KIB; piece <= l->size; piece *= 4) {
		PROBE_TRY("plain", lane_rate(&a, l, plain, piece));
		PROBE_TRY("tiled", lane_rate(&b, l, tiled, piece));
		snprintf(name, sizeof(name), "%s_%zuK", way,
			piece / PROBE_KIB);
		probe_value(name, a, "GB/s",
			"copies of that size to plain memory; tiled %.2f", b);
		if (a > *best)
			*best = a;
	}
	PROBE_TRY("plain", lane_rate(&a, l, plain, l->size));
	PROBE_TRY("tiled", lane_rate(&b, l, tiled, l->size));
	snprintf(name, sizeof(name), "%s_tiled_by_plain", way);
	probe_verdict(name, a > 0 ? b / a : 0, "ratio", b > 0.97 * a,
		"one copy over many handles is as fast as to plain memory",
		"%.2f to %.2f GB/s", b, a);
	PROBE_TRY("piece", lane_rate(&b, l, tiled, 8 * PROBE_MIB));
	snprintf(name, sizeof(name), "%s_pieces_of_8M", way);
	probe_verdict(name, a > 0 ? b / a : 0, "ratio", b > 0.95 * a,
		"pieces of 8 MiB cost next to nothing", "%.2f GB/s", b);
}

void probe_tiled_copy(void)
{
	size_t size = probe_pick(512 * PROBE_MIB, 16 * PROBE_MIB);
	size_t grain = probe_grain(), nr = size / grain;
	CUmemGenericAllocationHandle *h = probe_host(nr * sizeof(*h));
	CUdeviceptr plain, tiled;
	struct lane up, down;
	double up_best, down_best, up_ms, down_ms;
	void *a, *b;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("plain", drv.cuMemAlloc_v2(&plain, size));
	PROBE_TRY("tiled", probe_tile(&tiled, nr, grain, h));
	a = probe_pinned(size);
	b = probe_pinned(size);
	if (!a || !b)
		return;
	PROBE_TRY("stream", lane_make(&up, a, size, 0));
	PROBE_TRY("stream", lane_make(&down, b, size, 1));
	one_way(&up, plain, tiled, &up_best);
	one_way(&down, plain, tiled, &down_best);
	PROBE_TRY("both", lane_queue(&up, tiled, 8 * PROBE_MIB));
	PROBE_TRY("both", lane_queue(&down, plain, 8 * PROBE_MIB));
	PROBE_TRY("both", probe_elapsed(&up_ms, up.from, up.to));
	PROBE_TRY("both", probe_elapsed(&down_ms, down.from, down.to));
	probe_value("h2d_beside_d2h", (double)size / up_ms / 1e6, "GB/s",
		"alone %.2f", up_best);
	probe_value("d2h_beside_h2d", (double)size / down_ms / 1e6, "GB/s",
		"alone %.2f", down_best);
	probe_value("copy_engines",
		probe_attribute(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT), "",
		"as the device says");
}

/* ---- m: a refill beside a reader -------------------------------------------------- */

struct beside {
	CUdeviceptr va;		/* two parts of `part` bytes, many handles */
	size_t part;
	CUstream reader;
	CUevent from, to;
	unsigned int rounds;
	struct lane copy;
};

static CUresult beside_read(struct beside *b, double *ms)
{
	PROBE_PASS(drv.cuEventRecord(b->from, b->reader));
	PROBE_PASS(probe_read(b->va, b->part, b->rounds, b->reader));
	PROBE_PASS(drv.cuEventRecord(b->to, b->reader));
	return ms ? probe_elapsed(ms, b->from, b->to) : CUDA_SUCCESS;
}

/* Refills of the other part while the kernel runs; the best times of three. */
static CUresult beside_both(struct beside *b, double *read_ms, double *copy_ms,
	int *overlaps)
{
	double r, c;

	*overlaps = 0;
	for (int i = 0; i < 3; i++) {
		PROBE_PASS(beside_read(b, NULL));
		PROBE_PASS(lane_queue(&b->copy, b->va + b->part, b->part));
		PROBE_PASS(probe_elapsed(&c, b->copy.from, b->copy.to));
		*overlaps += probe_idle(b->reader) == 0;
		PROBE_PASS(probe_elapsed(&r, b->from, b->to));
		*read_ms = !i || r < *read_ms ? r : *read_ms;
		*copy_ms = !i || c < *copy_ms ? c : *copy_ms;
	}
	return CUDA_SUCCESS;
}

void probe_refill_beside(void)
{
	size_t grain = probe_grain();
	size_t nr = probe_pick(32, 1);
	CUmemGenericAllocationHandle h[64];
	struct beside b = { .part = nr * grain, .rounds = 4 };
	double alone, copy_alone, read_ms = 0, copy_ms = 0;
	int overlaps;
	void *host;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("tile", probe_tile(&b.va, 2 * nr, grain, h));
	PROBE_TRY("stream", probe_stream(&b.reader));
	PROBE_TRY("timer", probe_timer(&b.from));
	PROBE_TRY("timer", probe_timer(&b.to));
	host = probe_pinned(b.part);
	if (!host)
		return;
	PROBE_TRY("lane", lane_make(&b.copy, host, b.part, 0));
	PROBE_TRY("copy", lane_queue(&b.copy, b.va + b.part, b.part));
	PROBE_TRY("copy", lane_queue(&b.copy, b.va + b.part, b.part));
	PROBE_TRY("copy", probe_elapsed(&copy_alone, b.copy.from, b.copy.to));
	PROBE_TRY("read", beside_read(&b, &alone));
	PROBE_TRY("read", beside_read(&b, &alone));
	/* The kernel shall take four times as long as the copy. */
	if (alone < 4 * copy_alone) {
		double factor = 4 * copy_alone / (alone > 1e-3 ? alone : 1e-3);

		b.rounds = (unsigned int)(b.rounds * factor) + 1;
		if (probe_quick && b.rounds > 64)
			b.rounds = 64;
		PROBE_TRY("read", beside_read(&b, &alone));
	}
	PROBE_TRY("both", beside_both(&b, &read_ms, &copy_ms, &overlaps));
	probe_verdict("refill_ends_first", overlaps, "of 3", overlaps == 3,
		"a refill does not wait for a kernel on the same reservation",
		"copy %.2f ms, kernel %.2f ms", copy_ms, read_ms);
	probe_verdict("kernel_slowed_by", (read_ms / alone - 1) * 100, "%",
		read_ms < 1.1 * alone, "a refill does not stall readers of "
		"other chunks", "%.3f ms alone", alone);
	probe_verdict("copy_slowed_by", (copy_ms / copy_alone - 1) * 100, "%",
		copy_ms < 1.25 * copy_alone, "a kernel does not slow copies",
		"%.3f ms alone", copy_alone);
}

/* ---- k: host memory at a device address ----------------------------------------------- */

/* Where the memory is, and the properties and rights that say so. */
struct place {
	const char *name;
	CUmemAllocationProp prop;
	CUmemAccessDesc cpu;
};

static CUresult place_map(const struct place *pl, CUdeviceptr va, size_t size)
{
	CUmemGenericAllocationHandle h;

	PROBE_PASS(drv.cuMemCreate(&h, size, &pl->prop, 0));
	PROBE_PASS(probe_map(va, size, h, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	/* The mapping keeps it. */
	return drv.cuMemRelease(h);
}

/* One chunk in the place of one of device memory; then for the CPU as well. */
static void place_chunk(const struct place *pl, CUdeviceptr va, size_t grain)
{
	CUmemGenericAllocationHandle own;
	uint32_t word = 0xc0ffee, got = 0;
	char name[64];

	snprintf(name, sizeof(name), "%s_works", pl->name);
	PROBE_TRY(name, probe_create(&own, grain));
	PROBE_TRY(name, probe_map(va, grain, own,
		CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	PROBE_TRY(name, probe_fill(va, grain, 1, NULL));
	PROBE_TRY(name, drv.cuCtxSynchronize());
	PROBE_TRY(name, drv.cuMemUnmap(va, grain));
	PROBE_TRY(name, place_map(pl, va, grain));
	PROBE_TRY(name, drv.cuMemcpyHtoD_v2(va + 64, &word, sizeof(word)));
	PROBE_TRY(name, drv.cuMemcpyDtoH_v2(&got, va + 64, sizeof(got)));
	probe_verdict(name, got == word, "", got == word,
		"a range can be served from the host at its own address",
		"%s", "");
	snprintf(name, sizeof(name), "%s_for_the_cpu", pl->name);
	PROBE_TRY(name, drv.cuMemSetAccess(va, grain, &pl->cpu, 1));
	got = ((volatile uint32_t *)(uintptr_t)va)[16];
	probe_verdict(name, got == word, "", got == word,
		"the arena can be such memory: the CPU reads the same bytes",
		"%s", "");
	PROBE_TRY("unmap", drv.cuMemUnmap(va, grain));
}

/* A range of chunks of `piece` bytes: what creating and reading it takes. */
static void place_rate(const struct place *pl, CUdeviceptr va, size_t size,
	size_t piece)
{
	double gbps, t0 = probe_now_us();
	char name[64];

	snprintf(name, sizeof(name), "%s_read_in_pieces_of_%zuM", pl->name,
		piece / PROBE_MIB);
	for (size_t off = 0; off < size; off += piece)
		PROBE_TRY(name, place_map(pl, va + off, piece));
	t0 = probe_now_us() - t0;
	PROBE_TRY(name, probe_read_rate(&gbps, va, size, 3));
	probe_value(name, gbps, "GB/s",
		"a kernel reads it; creating and mapping %.2f GB/s",
		(double)size / t0 / 1e3);
	PROBE_TRY("unmap", drv.cuMemUnmap(va, size));
}

static void place_all(const char *name, CUmemLocationType type, int id,
	CUdevice_attribute can)
{
	size_t size = probe_pick(256 * PROBE_MIB, 4 * PROBE_MIB), grain = 0;
	struct place pl = { .name = name, .prop = probe_prop() };
	char fact[64];
	CUdeviceptr va;

	if (!probe_has_vmm())
		return;
	pl.prop.location.type = type;
	pl.prop.location.id = id;
	pl.cpu.location = pl.prop.location;
	pl.cpu.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	/* Tried in any case: the attribute is newer than the feature. */
	snprintf(fact, sizeof(fact), "%s_attribute", name);
	probe_value(fact, probe_attribute(can), "", "as the device says");
	snprintf(fact, sizeof(fact), "%s_granularity", name);
	PROBE_TRY(fact, drv.cuMemGetAllocationGranularity(&grain, &pl.prop,
		CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	probe_verdict(fact, (double)grain, "bytes", grain <= probe_grain(),
		"the device's granularity will do", "%s", "");
	if (grain < probe_grain())
		grain = probe_grain();
	PROBE_TRY("reserve", probe_reserve(&va, size));
	place_rate(&pl, va, size, grain);
	place_rate(&pl, va, size, size);
	/* Last, since the CPU's view may be a fault. */
	place_chunk(&pl, va, grain);
}

void probe_host_numa_vmm(void)
{
	int node = probe_attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);

	probe_value("host_numa_id", node, "", "node next to the device");
	place_all("host_numa", CU_MEM_LOCATION_TYPE_HOST_NUMA,
		node > 0 ? node : 0,
CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

void probe_host_vmm(void)
{
	place_all("host", CU_MEM_LOCATION_TYPE_HOST, 0,
CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

void probe_zero_copy(void)
{
	size_t size = probe_pick(512 * PROBE_MIB, 4 * PROBE_MIB);
	size_t big = probe_pick(2 * PROBE_GIB, 4 * PROBE_MIB);
	double host_rate, own_rate, copy_rate;
	CUdeviceptr dev, seen;
	struct lane up;
	void *host;

	host = probe_pinned(size);
	if (!host)
		return;
	PROBE_TRY("pointer", drv.cuMemHostGetDevicePointer_v2(&seen, host, 0));
	probe_verdict("same_address", seen == (uintptr_t)host, "",
		seen == (uintptr_t)host,
		"pinned memory has one address for both sides", "%s", "");
	PROBE_TRY("read", probe_read_rate(&host_rate, seen, size, 3));
	PROBE_TRY("device", drv.cuMemAlloc_v2(&dev, big));
	PROBE_TRY("lane", lane_make(&up, host, size < big ? size : big, 0));
	PROBE_TRY("copy", lane_rate(&copy_rate, &up, dev, up.size));
	probe_value("kernel_reads_pinned", host_rate, "GB/s",
		"the copy engine %.2f", copy_rate);
	probe_verdict("pinned_by_copy", host_rate / copy_rate, "ratio",
		host_rate < copy_rate,
		"copies are faster than kernels that read the host",
		"%s", "");
	PROBE_TRY("read", probe_read_rate(&own_rate, dev, big, 3));
	probe_verdict("kernel_reads_device", own_rate, "GB/s",
		own_rate > 5 * copy_rate,
		"a check of all bytes costs little beside their copy", "%s",
		"");
}
