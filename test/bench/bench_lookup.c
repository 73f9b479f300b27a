/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to find out whether a word points into managed memory, and
 * whether that memory needs care: the question a launch asks of each of its
 * words.  Among 10^5 managed ranges, for random words, half of them outside;
 * the median of many short blocks, so that the blocks in which another process
 * ran do not count.  Prints a row for run.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shim/alloc.h"

#define NR_RANGES 100000u
#define NR_WORDS (1u << 20)
#define NR_PAGES (1u << 19)
#define BASE 0x200000000000ull
#define BLOCK 16384u
#define TURNS 15
#define NR_TIMES (TURNS * (NR_WORDS / BLOCK))

/* What alloc.c expects of device.c and context.c. */
struct device *device_list[DEVICE_MAX];
int device_nr;

bool event_query(struct event *e)
{
	return true;
}

static struct device dev;

static void *table(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (p == NULL) {
		fprintf(stderr, "bench_lookup: no memory\n");
		exit(1);
	}
	return p;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void setup(void)
{
	dev.window = BASE;
	dev.page_shift = 21;
	dev.page_size = 1u << 21;
	dev.window_size = (uint64_t)NR_PAGES << 21;
	dev.nr_pages = NR_PAGES;
	dev.words = table(NR_PAGES, sizeof(*dev.words));
	lock_init(&dev.alloc_lock, LOCK_ALLOC, "allocations");
	if (alloc_start(&dev) != 0)
		exit(1);
	for (uint32_t k = 0; k < NR_RANGES; k++) {
		struct alloc *a = alloc_create(&dev, NULL,
			(uint64_t)(1 + k % 4) << 21);

		if (a == NULL)
			exit(1);
		for (uint32_t i = 0; i < a->nr_pages; i++)
			dev.words[a->first + i] = (uint64_t)a->id <<
				PAGE_ALLOC_SHIFT | TIER_RESIDENT;
		alloc_publish(&dev, a);
		if (k % 2 != 0)		/* needs care */
			alloc_unsettle(&dev, a, 1);
	}
	device_list[0] = &dev;
	device_nr = 1;
}

static uint64_t look_up(uint64_t word)
{
	return alloc_word_settled(word);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	uint64_t *words = table(NR_WORDS, sizeof(*words)), state = 1, hits = 0;
	static double ns[NR_TIMES];
	uint32_t nr = 0;

	setup();
	/* 1 + 2 + 3 + 4 pages for every four ranges */
	for (uint32_t i = 0; i < NR_WORDS; i++)
		words[i] = next_random(&state) % 2 != 0 ?
			next_random(&state) : BASE + next_random(&state) %
			((uint64_t)NR_RANGES / 4 * 10 << 21);
	for (uint32_t t = 0; nr < NR_TIMES; t = (t + BLOCK) % NR_WORDS) {
		uint64_t begin = lock_now_ns();

		for (uint32_t i = t; i < t + BLOCK; i++)
			hits += look_up(words[i]);
		ns[nr++] = (double)(lock_now_ns() - begin) / BLOCK;
	}
	/* Half of the words are outside; half of the ranges are at rest. */
	if (hits < (uint64_t)TURNS * NR_WORDS / 10 * 6 ||
	    hits > (uint64_t)TURNS * NR_WORDS / 10 * 9) {
		fprintf(stderr, "bench_lookup: %llu words at rest\n",
			(unsigned long long)hits);
		return 1;
	}
	qsort(ns, NR_TIMES, sizeof(ns[0]), by_value);
	printf("{\"name\":\"lookup_1e5_ranges_ns\",\"value\":%.2f,"
		"\"unit\":\"ns\",\"better\":\"lower\",\"limit\":10,"
		"\"spread\":%.3f}\n", ns[NR_TIMES / 2],
		(ns[NR_TIMES / 4 * 3] - ns[NR_TIMES / 4]) / ns[NR_TIMES / 2]);
	return 0;
}
