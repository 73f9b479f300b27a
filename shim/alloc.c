/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed allocations.  Records live in an array that grows by blocks which
 * never move, so that a page word's number leads to a record without a lock.
 * Everything here is guarded by the device's alloc_lock unless said otherwise.
 */
#include "shim/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/log.h"

#define BLOCK_SHIFT 10
#define BLOCK_RECORDS (1u << BLOCK_SHIFT)
#define MAX_BLOCKS 4096u
#define MAX_ALLOCS ((size_t)MAX_BLOCKS * BLOCK_RECORDS)	/* four million */

struct span {
	uint64_t offset;	/* from the allocation's base */
	bool passed;		/* some launch got this very address */
};

/* Free pages of the window, by rising address, never touching. */
struct gap {
	uint32_t first;
	uint32_t nr;
	struct gap *next;
};

struct allocs {
	struct alloc *blocks[MAX_BLOCKS];	/* owned; entry set once */
	uint32_t nr;			/* records ever made */
	uint32_t *reuse;		/* owned; stack of free numbers */
	uint32_t nr_reuse;
	uint32_t max_reuse;
	struct gap *gaps;		/* owned */
	uint64_t serial;		/* last one given */
	struct alloc *freed;		/* in stream order, not yet taken back */
};

static struct alloc *record(struct allocs *s, uint32_t id)
{
	return &s->blocks[id >> BLOCK_SHIFT][id & (BLOCK_RECORDS - 1)];
}

int alloc_start(struct device *d)
{
	struct allocs *s = calloc(1, sizeof(*s));
	struct gap *all = malloc(sizeof(*all));

	void *unsettled = mmap(NULL, MAX_ALLOCS * sizeof(uint32_t),
		PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (s == NULL || all == NULL || unsettled == MAP_FAILED) {
		free(s);
		free(all);
		if (unsettled != MAP_FAILED)
			munmap(unsettled, MAX_ALLOCS * sizeof(uint32_t));
		return -ENOMEM;
	}
	d->unsettled = unsettled;
	*all = (struct gap){ .first = 0, .nr = d->nr_pages };
	s->gaps = all;
	d->allocs = s;
	return 0;
}

/* ---- addresses ---- */

/* The first one that is large enough, or the end of the list. */
static struct gap **gap_find(struct allocs *s, uint64_t nr)
{
	struct gap **at = &s->gaps;

	while (*at != NULL && (*at)->nr < nr)
		at = &(*at)->next;
	return at;
}

static uint32_t gap_take(struct allocs *s, uint32_t nr)
{
	struct gap **at = gap_find(s, nr), *g = *at;
	uint32_t first;

	if (g == NULL)
		return PAGE_NONE;
	first = g->first;
	g->first += nr;
	g->nr -= nr;
	if (g->nr == 0) {
		*at = g->next;
		free(g);
	}
	return first;
}

static void gap_give(struct allocs *s, uint32_t first, uint32_t nr)
{
	struct gap **at = &s->gaps, *prev = NULL, *g;

	while (*at != NULL && (*at)->first < first) {
		prev = *at;
		at = &(*at)->next;
	}
	g = *at;
	if (prev != NULL && prev->first + prev->nr == first) {
		prev->nr += nr;
		if (g != NULL && prev->first + prev->nr == g->first) {
			prev->nr += g->nr;
			prev->next = g->next;
			free(g);
		}
		return;
	}
	if (g != NULL && first + nr == g->first) {
		g->first = first;
		g->nr += nr;
		return;
	}
	g = malloc(sizeof(*g));
	if (g == NULL) {
		log_err("%u pages of address space are lost: no memory for a "
			"list entry", nr);
		return;
	}
	*g = (struct gap){ .first = first, .nr = nr, .next = *at };
	*at = g;
}

/* ---- records ---- */

/* A free record's number, or PAGE_NONE. */
static uint32_t record_take(struct allocs *s)
{
	uint32_t id = s->nr;

	if (s->nr_reuse > 0)
		return s->reuse[--s->nr_reuse];
	if (id >> BLOCK_SHIFT >= MAX_BLOCKS)
		return PAGE_NONE;
	if (s->blocks[id >> BLOCK_SHIFT] == NULL) {
		struct alloc *block = calloc(BLOCK_RECORDS, sizeof(*block));

		if (block == NULL)
			return PAGE_NONE;
		__atomic_store_n(&s->blocks[id >> BLOCK_SHIFT], block,
			__ATOMIC_RELEASE);
	}
	s->nr++;
	return id;
}

static void record_give(struct allocs *s, uint32_t id)
{
	if (s->nr_reuse == s->max_reuse) {
		uint32_t n = s->max_reuse * 2 + 64;
		uint32_t *grown = realloc(s->reuse, n * sizeof(*grown));

		if (grown == NULL)
			return;	/* the number is used no more */
		s->reuse = grown;
		s->max_reuse = n;
	}
	s->reuse[s->nr_reuse++] = id;
}

bool alloc_fits(struct device *d, uint64_t size)
{
	uint64_t pages = (size + d->page_size - 1) >> d->page_shift;
	bool fits;

	if (size > d->window_size)
		return false;
	lock_acquire(&d->alloc_lock);
	fits = *gap_find(d->allocs, pages) != NULL;
	lock_release(&d->alloc_lock);
	return fits;
}

struct alloc *alloc_create(struct device *d, struct context *c, uint64_t size)
{
	struct allocs *s = d->allocs;
	uint64_t pages = (size + d->page_size - 1) >> d->page_shift;
	struct alloc *a = NULL;
	uint32_t id, first;

	if (size == 0 || pages >= d->nr_pages || size > d->window_size)
		return NULL;
	lock_acquire(&d->alloc_lock);
	id = record_take(s);
	if (id == PAGE_NONE)
		goto out;
	first = gap_take(s, (uint32_t)pages);
	if (first == PAGE_NONE) {
		record_give(s, id);
		goto out;
	}
	a = record(s, id);
	memset(a, 0, sizeof(*a));
	a->base = device_address(d, first);
	a->size = size;
	a->first = first;
	a->nr_pages = (uint32_t)pages;
	a->id = id;
	a->context = c;
	a->serial = ++s->serial;
	__atomic_store_n(&d->unsettled[id], 0, __ATOMIC_SEQ_CST);
	device_reach_changed(d);
out:
	lock_release(&d->alloc_lock);
	return a;
}

void alloc_destroy(struct device *d, struct alloc *a)
{
	lock_acquire(&d->alloc_lock);
	if (!a->lost)
		gap_give(d->allocs, a->first, a->nr_pages);
	a->live = false;
	free(a->spans);
	a->spans = NULL;
	a->nr_spans = 0;
	record_give(d->allocs, a->id);
	lock_release(&d->alloc_lock);
}

void alloc_publish(struct device *d, struct alloc *a)
{
	lock_acquire(&d->alloc_lock);
	a->live = true;
	lock_release(&d->alloc_lock);
}

struct alloc *alloc_of_word(struct device *d, uint64_t word)
{
	uint32_t id = (uint32_t)(word >> PAGE_ALLOC_SHIFT);
	struct alloc *block;

	if ((word & (PAGE_TIER_MASK | PAGE_RESERVED)) == 0)
		return NULL;
	block = __atomic_load_n(&d->allocs->blocks[id >> BLOCK_SHIFT],
		__ATOMIC_ACQUIRE);
	return &block[id & (BLOCK_RECORDS - 1)];
}

struct alloc *alloc_at(struct device *d, CUdeviceptr p)
{
	return alloc_of_word(d, device_word(d, device_page(d, p)));
}

struct alloc *alloc_by_serial(struct device *d, uint64_t serial,
	uint64_t *made)
{
	struct alloc *found = NULL;

	lock_acquire(&d->alloc_lock);
	*made = d->allocs->serial;
	for (uint32_t i = 0; i < d->allocs->nr && found == NULL; i++) {
		struct alloc *a = record(d->allocs, i);

		/* A sparse one is never live; its pages say whether it is. */
		if (a->serial == serial && (a->live || a->sparse))
			found = a;
	}
	lock_release(&d->alloc_lock);
	return found;
}

uint32_t alloc_largest(struct device *d)
{
	uint32_t most = 0;

	lock_acquire(&d->alloc_lock);
	for (uint32_t i = 0; i < d->allocs->nr; i++) {
		const struct alloc *a = record(d->allocs, i);

		if (a->live && a->nr_pages > most)
			most = a->nr_pages;
	}
	lock_release(&d->alloc_lock);
	return most;
}

uint32_t alloc_end_page(struct device *d)
{
	struct gap *g;
	uint32_t end = d->nr_pages;

	lock_acquire(&d->alloc_lock);
	for (g = d->allocs->gaps; g != NULL; g = g->next)
		if (g->first + g->nr == d->nr_pages)
			end = g->first;
	lock_release(&d->alloc_lock);
	return end;
}

struct alloc *alloc_find(struct device *d, CUdeviceptr p)
{
	uint64_t word = device_word(d, device_page(d, p));

	return (word & PAGE_TIER_MASK) == TIER_NONE ? NULL :
		alloc_of_word(d, word);
}

/* ---- reservations ---- */

static void word_set(struct device *d, uint32_t page, uint64_t word)
{
	__atomic_store_n(&d->words[page], word, __ATOMIC_SEQ_CST);
}

struct alloc *alloc_reserve(struct device *d, uint64_t size, uint64_t align)
{
	uint64_t extra = align > d->page_size ? align - d->page_size : 0;
	struct alloc *a = size > d->window_size || extra > d->window_size ?
		NULL : alloc_create(d, NULL, size + extra);

	if (a == NULL)
		return NULL;
	a->sparse = true;
	a->top = a->first;
	for (uint32_t i = 0; i < a->nr_pages; i++)
		word_set(d, a->first + i, alloc_empty_word(a));
	return a;
}

void alloc_unreserve(struct device *d, struct alloc *a)
{
	for (uint32_t i = 0; i < a->nr_pages; i++)
		word_set(d, a->first + i, 0);
	alloc_destroy(d, a);
}

uint32_t alloc_run(struct device *d, const struct alloc *a, uint32_t *page,
	uint32_t end)
{
	uint32_t first = *page, n = 0, top;

	if (!a->sparse)
		return end > first ? end - first : 0;
	top = __atomic_load_n(&a->top, __ATOMIC_RELAXED);
	if (end > top)
		end = top;
	while (first < end && (device_word(d, first) & PAGE_TIER_MASK) ==
	       TIER_NONE)
		first++;
	while (first + n < end && (device_word(d, first + n) &
	       PAGE_TIER_MASK) != TIER_NONE)
		n++;
	*page = first;
	return n;
}

struct alloc *alloc_claim(struct device *d, CUdeviceptr p)
{
	struct alloc *a;

	lock_acquire(&d->alloc_lock);
	a = alloc_find(d, p);
	if (a != NULL && a->live && a->base == p)
		a->live = false;
	else
		a = NULL;
	lock_release(&d->alloc_lock);
	return a;
}

struct alloc *alloc_claim_of(struct device *d, const struct context *c)
{
	struct alloc *found = NULL;

	lock_acquire(&d->alloc_lock);
	for (uint32_t i = 0; i < d->allocs->nr && found == NULL; i++) {
		struct alloc *a = record(d->allocs, i);

		if (a->live && a->context == c) {
			a->live = false;
			found = a;
		}
	}
	lock_release(&d->alloc_lock);
	return found;
}

void alloc_freed_add(struct device *d, struct alloc *a, struct event *e)
{
	lock_acquire(&d->alloc_lock);
	a->freed = e;
	a->next_freed = d->allocs->freed;
	d->allocs->freed = a;
	lock_release(&d->alloc_lock);
}

struct alloc *alloc_freed_take(struct device *d, bool wait)
{
	struct alloc **at, *a = NULL;

	lock_acquire(&d->alloc_lock);
	for (at = &d->allocs->freed; *at != NULL; at = &(*at)->next_freed)
		if (wait || event_query((*at)->freed)) {
			a = *at;
			*at = a->next_freed;
			break;
		}
	lock_release(&d->alloc_lock);
	return a;
}

/* ---- spans ---- */

/* The first span with offset >= off. */
static uint32_t span_lower(const struct alloc *a, uint64_t off)
{
	uint32_t lo = 0, hi = a->nr_spans;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (a->spans[mid].offset < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The span that starts at off, made if need be; NULL: no memory. */
static struct span *span_add(struct alloc *a, uint64_t off)
{
	uint32_t i = span_lower(a, off);

	if (i < a->nr_spans && a->spans[i].offset == off)
		return &a->spans[i];
	if (a->nr_spans == a->max_spans || a->spans == NULL) {
		uint32_t n = a->spans == NULL ? 4 : a->max_spans * 2;
		struct span *grown = realloc(a->spans, n * sizeof(*grown));

		if (grown == NULL)
			return NULL;	/* fewer spans only widen reaches */
		a->spans = grown;
		a->max_spans = n;
	}
	memmove(&a->spans[i + 1], &a->spans[i],
		(a->nr_spans - i) * sizeof(*a->spans));
	a->spans[i] = (struct span){ .offset = off };
	a->nr_spans++;

	return &a->spans[i];
}

void alloc_span_add(struct device *d, struct alloc *a, CUdeviceptr p)
{
	uint32_t before;

	lock_acquire(&d->alloc_lock);
	before = a->nr_spans;
	span_add(a, p - a->base);
	if (a->nr_spans != before)
		device_reach_changed(d);
	lock_release(&d->alloc_lock);
}

void alloc_uploaded(struct device *d, CUdeviceptr p, uint64_t n)
{
	uint32_t last = device_page(d, p + n - 1);

	for (uint32_t page = device_page(d, p); page <= last; page++)
		__atomic_store_n(&d->pages[page].uploaded, 1,
			__ATOMIC_RELAXED);
}

static void span_drop(struct alloc *a, uint64_t off, uint64_t n)
{
	uint32_t i = span_lower(a, off), j = span_lower(a, off + n);

	if (j > i) {
		memmove(&a->spans[i], &a->spans[j],
			(a->nr_spans - j) * sizeof(*a->spans));
		a->nr_spans -= j - i;
	}
}

void alloc_span_drop(struct device *d, struct alloc *a, CUdeviceptr p,
	uint64_t n)
{
	lock_acquire(&d->alloc_lock);
	device_reach_changed(d);
	span_drop(a, p - a->base, n);
	lock_release(&d->alloc_lock);
}

void alloc_span_move(struct device *d, struct alloc *a, CUdeviceptr p,
	uint64_t n, struct alloc *b, CUdeviceptr q)
{
	uint64_t from = p - a->base, to = q - b->base;
	struct span *list, *made;
	uint32_t i, nr;

	lock_acquire(&d->alloc_lock);
	device_reach_changed(d);
	i = span_lower(a, from);
	nr = span_lower(a, from + n) - i;
	/* Without memory for the list they are lost, and reaches wider. */
	list = nr == 0 ? NULL : malloc(nr * sizeof(*list));
	if (list != NULL)
		memcpy(list, &a->spans[i], nr * sizeof(*list));
	span_drop(a, from, n);
	for (uint32_t k = 0; list != NULL && k < nr; k++) {
		made = span_add(b, list[k].offset - from + to);
		if (made != NULL)
			made->passed = list[k].passed;
	}
	free(list);
	lock_release(&d->alloc_lock);
}

/* The last span at or before off, or -1; a passed one where `passed`. */
static int64_t span_before(const struct alloc *a, uint64_t off, bool passed)
{
	int64_t i = (int64_t)span_lower(a, off + 1) - 1;

	while (i >= 0 && passed && !a->spans[i].passed)
		i--;
	return i;
}

void alloc_reach(struct device *d, struct alloc *a, CUdeviceptr p,
	uint64_t most, CUdeviceptr *from, CUdeviceptr *to)
{
	uint64_t off = p - a->base, lo = 0, hi = a->size;
	int64_t at;
	uint32_t j;

	lock_acquire(&d->alloc_lock);
	at = span_before(a, off, false);
	if (at >= 0 && a->spans[at].offset == off && !a->spans[at].passed) {
		a->spans[at].passed = true;
		device_reach_changed(d);
	}
	at = span_before(a, off, true);
	if (at >= 0)
		lo = a->spans[at].offset;
	for (j = span_lower(a, off + 1); j < a->nr_spans; j++)
		if (a->spans[j].passed) {
			hi = a->spans[j].offset;
			break;
		}
	if (off - lo > most) {
		at = span_before(a, off, false);
		lo = at >= 0 ? a->spans[at].offset : lo;
		if (a->sparse && off - lo > most)
			lo = off - most;
	}
	if (hi - off > most) {
		at = span_before(a, off + most, false);
		j = span_lower(a, off + 1);
		if (at >= 0 && a->spans[at].offset > off)
			hi = a->spans[at].offset;
		else if (a->sparse)
			hi = off + most;
		else if (j < a->nr_spans)
			hi = a->spans[j].offset;
	}
	lock_release(&d->alloc_lock);
	*from = a->base + lo;
	*to = a->base + hi;
}
