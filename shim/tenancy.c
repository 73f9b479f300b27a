/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenancy: giving allocations a place and taking it back, and what the rest
 * asks about it.  The pool's part is in pool.c, the way out of residency in
 * demote.c.
 */
#include "shim/tenancy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/conf.h"
#include "shim/host.h"
#include "shim/log.h"
#include "shim/schedule.h"
#include "shim/stats.h"
#include "shim/tenancy_int.h"

uint64_t tenancy_deadline(void)
{
	return lock_now_ns() + conf.wait_ms * 1000000ull;
}

int tenancy_start(struct device *d)
{
	struct tenancy *t = calloc(1, sizeof(*t));
	void *slots;

	if (t == NULL)
		return -ENOMEM;
	slots = mmap(NULL, (size_t)d->pool_max * sizeof(*t->slots),
		PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (slots == MAP_FAILED) {
		free(t);
		return -ENOMEM;
	}
	t->slots = slots;
	t->layout = policy_layout(d);
	t->oldest = t->newest = PAGE_NONE;
	__atomic_store_n(&d->tenancy, t, __ATOMIC_RELEASE);
	return 0;
}

void tenancy_apply(struct device *d, const struct layout *l)
{
	lock_acquire(&d->pool_lock);
	d->tenancy->layout = l;
	lock_release(&d->pool_lock);
}

void resident_add(struct device *d, uint32_t page)
{
	struct tenancy *t = d->tenancy;
	struct page *p = &d->pages[page];

	p->older = t->newest;
	p->newer = PAGE_NONE;
	if (t->newest != PAGE_NONE)
		d->pages[t->newest].newer = page;
	else
		t->oldest = page;
	t->newest = page;
	t->nr_resident++;
	stat_add(resident_bytes, d->page_size);
}

void resident_remove(struct device *d, uint32_t page)
{
	struct tenancy *t = d->tenancy;
	struct page *p = &d->pages[page];

	if (p->older != PAGE_NONE)
		d->pages[p->older].newer = p->newer;
	else
		t->oldest = p->newer;
	if (p->newer != PAGE_NONE)
		d->pages[p->newer].older = p->older;
	else
		t->newest = p->older;
	t->nr_resident--;
	stat_sub(resident_bytes, d->page_size);
}

/* ---- a new allocation ---- */

static uint32_t page_len(const struct device *d, const struct alloc *a,
	uint32_t i)
{
	uint64_t start = (uint64_t)i << d->page_shift;
	uint64_t left = alloc_bytes(a) - start;

	return (uint32_t)(left < d->page_size ? left : d->page_size);
}

/* Chunks for the first pages, mapped; how many, or an error's negative. */
static uint32_t back_resident(struct device *d, struct alloc *a,
	uint32_t *chunks, CUresult *r)
{
	CUmemGenericAllocationHandle *handles;
	uint32_t n;

	*r = CUDA_SUCCESS;
	lock_acquire(&d->pool_lock);
	n = chunk_take(d, a->nr_pages, chunks);
	lock_release(&d->pool_lock);
	if (n == 0)
		return 0;
	handles = malloc(n * sizeof(*handles));
	if (handles == NULL) {
		*r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		for (uint32_t i = 0; i < n; i++)
			handles[i] = chunk_handle(d, chunks[i]);
		*r = device_map(d, a->base, n, handles);
	}
	free(handles);
	if (*r == CUDA_SUCCESS)
		return n;
	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < n; i++)
		chunk_recycle(d, chunks[i]);
	lock_release(&d->pool_lock);
	return 0;
}

/*
 * Host memory for pages [from, nr), mapped; their indices go where the chunks
 * of the others are.
 */
static bool back_host(struct device *d, struct alloc *a, uint32_t from,
	uint32_t *indices)
{
	uint32_t want = a->nr_pages - from, n;
	CUmemGenericAllocationHandle *handles = malloc(want * sizeof(*handles));
	char budget[16];
	bool ok;

	if (handles == NULL)
		return false;
	log_once(LOG_INFO, "the GPU budget of %s is full: kernels reach data "
		"in host memory from here on", conf_size_text(d->budget,
		budget, sizeof(budget)));
	lock_acquire(&d->pool_lock);
	n = host_take(d, want, indices + from);
	lock_release(&d->pool_lock);
	for (uint32_t i = 0; i < n; i++)
		handles[i] = host_handle(d, indices[from + i]);
	ok = n == want && device_map(d, device_address(d, a->first + from),
		want, handles) == CUDA_SUCCESS;
	free(handles);
	if (ok)
		return true;
	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < n; i++)
		host_give(d, indices[from + i]);
	lock_release(&d->pool_lock);
	return false;
}

static void arena_undo(struct device *d, struct alloc *a, uint32_t from,
	uint32_t to)
{
	for (uint32_t i = from; i < to; i++)
		arena_free(d->pages[a->first + i].arena,
			d->pages[a->first + i].len);
}

/*
 * Arena ranges for pages [from, nr): in one piece where there is one, since
 * neighbours then move as one copy.
 */
static bool back_arena(struct device *d, struct alloc *a, uint32_t from)
{
	uint64_t bytes = alloc_bytes(a) - ((uint64_t)from << d->page_shift);
	uint64_t offset = bytes <= ARENA_SEGMENT ? arena_alloc(bytes) :
		ARENA_NONE;

	for (uint32_t i = from; i < a->nr_pages; i++) {
		struct page *p = &d->pages[a->first + i];

		p->len = page_len(d, a, i);
		p->arena = offset != ARENA_NONE ? offset +
			((uint64_t)(i - from) << d->page_shift) :
			arena_alloc(p->len);
		if (p->arena == ARENA_NONE) {
			arena_undo(d, a, from, i);
			return false;
		}
	}
	return true;
}

static void page_init(struct device *d, struct alloc *a, uint32_t i)
{
	struct page *p = &d->pages[a->first + i];

	memset(p, 0, sizeof(*p));
	p->len = page_len(d, a, i);
	p->chunk = CHUNK_NONE;
	p->slot = SLOT_NONE;
	p->arena = ARENA_NONE;
	p->older = p->newer = PAGE_NONE;
	p->unit = p->place = p->alias = PAGE_NONE;
}

/* Chunks that belong to no page, no slot and no list just now. */
static uint32_t chunks_in_hands(const struct device *d)
	REQUIRES(&d->pool_lock)
{
	const struct tenancy *t = d->tenancy;
	uint32_t owned = chunk_nr_idle(d) + t->nr_slots + t->nr_resident +
		t->nr_lost;
	uint32_t live = chunk_nr_live(d);

	return live > owned ? live - owned : 0;
}

bool hands_wait(struct device *d, uint64_t deadline)
{
#if defined(MUTANT) && MUTANT == 3
	return false;
#endif
	return chunks_in_hands(d) > 0 &&
		lock_wait(&d->pool_lock, &d->pool_cond, deadline);
}

/*
 * The first spill: the pool must exist before anything depends on it, and
 * before the newcomer takes arena room that residents need to make way.
 * wait: the caller has no chunk in its hands, so it may wait for those that
 * others have.
 */
static bool first_spill(struct device *d, bool wait)
{
	uint64_t deadline = tenancy_deadline();
	char budget[16];
	bool any;

	lock_acquire(&d->pool_lock);
	if (d->tenancy->nr_slots < pool_target(d))
		log_once(LOG_INFO, "the GPU budget of %s is full: data is "
			"swapped from here on", conf_size_text(d->budget,
			budget, sizeof(budget)));
	do {
		if (d->tenancy->nr_slots < pool_target(d))
			pool_grow(d, pool_target(d), NULL);
		any = d->tenancy->nr_slots > 0;
	} while (!any && wait && hands_wait(d, deadline));
	lock_release(&d->pool_lock);
	return any;
}

static void back_finish(struct device *d, struct alloc *a,
	const uint32_t *chunks, uint32_t nr_mapped)
{
	struct tenancy *t = d->tenancy;
	bool host = t->layout->host;
	enum page_tier rest = host ? TIER_HOST : TIER_STREAMED;
	struct alloc *owner = alloc_of_word(d, page_word(a, TIER_STREAMED));

	lock_acquire(&d->pool_lock);
	/* Of a reservation only a part may be backed, so this is a sum. */
	if (!host)
		alloc_unsettle(d, owner, a->nr_pages - nr_mapped);
	for (uint32_t i = 0; i < a->nr_pages; i++) {
		struct page *p = &d->pages[a->first + i];

		if (i < nr_mapped) {
			p->chunk = chunks[i];
			p->state = PAGE_PRESENT;
			resident_add(d, a->first + i);
		} else if (host) {
			p->chunk = chunks[i];
			p->state = PAGE_PRESENT;
			p->host = true;
		} else {
			t->nr_streamed++;
			stat_add(streamed_bytes, d->page_size);
		}
		page_word_set(d, a->first + i, page_word(a, i < nr_mapped ?
			TIER_RESIDENT : rest));
	}
	/* After the words: who looked before saw a hole in the reservation. */
	device_reach_changed(d);
	lock_release(&d->pool_lock);
}

/* Gives back the chunks of pages [from, n) of a new allocation. */
static void back_undo(struct device *d, struct alloc *a, uint32_t from,
	uint32_t n, const uint32_t *chunks)
{
	if (from >= n)
		return;
	device_unmap(d, device_address(d, a->first + from), n - from);
	lock_acquire(&d->pool_lock);
	for (uint32_t i = from; i < n; i++)
		chunk_recycle(d, chunks[i]);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
}

static bool fits(struct device *d, const struct alloc *a)
{
	bool yes;

	lock_acquire(&d->pool_lock);
	yes = chunk_nr_available(d) >= a->nr_pages;
	lock_release(&d->pool_lock);
	return yes;
}

/*
 * Some pages got no chunk: they need a pool and arena ranges.  *n is the
 * number that did; the last of them may have to give way to the pool.
 */
static bool back_spill(struct device *d, struct alloc *a, uint32_t *n,
	const uint32_t *chunks)
{
	uint32_t keep, target;

	if (!first_spill(d, *n == 0)) {
		lock_acquire(&d->pool_lock);
		target = pool_target(d);
		lock_release(&d->pool_lock);
		keep = *n > target ? *n - target : 0;
		back_undo(d, a, keep, *n, chunks);
		*n = keep;
		/* Without a pool nothing could ever use the memory. */
		if (!first_spill(d, keep == 0))
			return false;
	}
	return back_arena(d, a, *n);
}

CUresult tenancy_back(struct device *d, struct alloc *a)
{
	uint32_t *chunks = malloc(a->nr_pages * sizeof(*chunks));
	bool host = d->tenancy->layout->host;
	uint32_t n;
	CUresult r;

	if (chunks == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* A set of another thread may still name pages of a reservation. */
	lock_acquire(&d->pool_lock);
	d->tenancy->backing++;
	for (uint32_t i = 0; i < a->nr_pages; i++)
		page_init(d, a, i);
	lock_release(&d->pool_lock);
	if (!host && !fits(d, a))
		first_spill(d, true);
	n = back_resident(d, a, chunks, &r);
	if (r == CUDA_SUCCESS && n < a->nr_pages &&
	    !(host ? back_host(d, a, n, chunks) :
	      back_spill(d, a, &n, chunks))) {
		back_undo(d, a, 0, n, chunks);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r == CUDA_SUCCESS)
		back_finish(d, a, chunks, n);
	lock_acquire(&d->pool_lock);
	d->tenancy->backing--;
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	free(chunks);
	return r;
}

/* ---- the end of an allocation ---- */

bool drop_settle(struct device *d, const struct alloc *a)
{
	struct tenancy *t = d->tenancy;
	uint64_t deadline = tenancy_deadline();

	for (uint32_t i = 0; i < a->nr_pages; i++) {
		const struct page *p = &d->pages[a->first + i];

		while (p->state == PAGE_MOVING ||
		       (device_word(d, a->first + i) & PAGE_LEAVING) != 0 ||
		       (p->slot != SLOT_NONE && t->slots[p->slot].pins > 0)) {
			if (!lock_wait(&d->pool_lock, &d->pool_cond, deadline))
				return false;
			i = 0;		/* from the start again */
			p = &d->pages[a->first];
		}
	}
	return true;
}

static bool drop_moving(const struct device *d, const struct alloc *a)
{
	for (uint32_t i = 0; i < a->nr_pages; i++)
		if (d->pages[a->first + i].state == PAGE_MOVING ||
		    (device_word(d, a->first + i) & PAGE_LEAVING) != 0)
			return true;
	return false;
}

/*
 * From here on no other thread touches the pages: launches that still get a
 * pointer to them do not see them, residents can no longer be chosen to leave,
 * and slots get no other tenant.
 */
static void drop_own(struct device *d, struct alloc *a)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < a->nr_pages; i++) {
		uint32_t page = a->first + i;

		if (page_tier(d, page) == TIER_RESIDENT)
			resident_remove(d, page);
		else if (d->pages[page].slot != SLOT_NONE)
			d->tenancy->slots[d->pages[page].slot].busy = true;
		page_word_set(d, page, 0);
	}
}

size_t drop_events(struct device *d, const struct alloc *a,
	struct event **out)
{
	size_t n = 0;

	for (uint32_t i = 0; i < a->nr_pages; i++) {
		struct page *p = &d->pages[a->first + i];

		if (p->saved != NULL)
			out[n++] = event_get(p->saved);
		if (p->slot != SLOT_NONE &&
		    d->tenancy->slots[p->slot].ready != NULL)
			out[n++] = event_get(d->tenancy->slots[p->slot].ready);
	}
	return n;
}

void slot_clear(struct slot *s)
{
	for (uint32_t i = 0; i < s->nr_readers; i++)
		event_put(s->readers[i].event);
	s->nr_readers = 0;
	event_put(s->ready);
	s->ready = NULL;
	s->page = PAGE_NONE;
	s->dirty = s->touched = s->used = false;
}

static bool is_mapped(const struct device *d, uint32_t page)
{
	return d->pages[page].state == PAGE_PRESENT;
}

static CUresult drop_unmap(struct device *d, struct alloc *a)
{
	CUresult r = CUDA_SUCCESS, u;
	uint32_t i = 0, n;

	while (i < a->nr_pages) {
		for (n = 0; i + n < a->nr_pages &&
		     is_mapped(d, a->first + i + n); n++)
			;
		if (n > 0) {
			u = device_unmap(d, device_address(d, a->first + i), n);
			if (r == CUDA_SUCCESS)
				r = u;
		}
		i += n + 1;
	}
	return r;
}

void drop_page(struct device *d, uint32_t page, bool lost)
{
	struct tenancy *t = d->tenancy;
	struct page *p = &d->pages[page];

	if (p->host) {
		if (!lost)	/* it is still mapped somewhere */
			host_give(d, p->chunk);
		p->host = false;
	} else if (p->chunk != CHUNK_NONE) {
		if (!lost)
			chunk_recycle(d, p->chunk);
		else		/* it is still mapped somewhere */
			t->nr_lost++;
	} else {
		t->nr_streamed--;
		stat_sub(streamed_bytes, d->page_size);
		if (p->slot != SLOT_NONE) {
			slot_clear(&t->slots[p->slot]);
			/* A slot that may be mapped elsewhere stays out. */
			t->slots[p->slot].busy = lost;
		}
	}
	if (p->arena != ARENA_NONE)
		arena_free(p->arena, p->len);
	event_put(p->saved);
	p->saved = NULL;
	p->state = PAGE_ABSENT;
	page_word_set(d, page, 0);
}

CUresult tenancy_drop(struct device *d, struct alloc *a, bool quiet)
{
	struct event **events = malloc((2 * (size_t)a->nr_pages + 1) *
		sizeof(*events));
	size_t n = 0;
	CUresult r;

	schedule_leave(d, a->first, a->nr_pages);
	lock_acquire(&d->pool_lock);
	/* Moves end by themselves; a pin may be that of a call that blocks. */
	while (!drop_settle(d, a) && drop_moving(d, a))
		;
	drop_own(d, a);
	if (events != NULL)
		n = drop_events(d, a, events);
	lock_release(&d->pool_lock);

	r = quiet ? CUDA_SUCCESS : context_quiesce(d);
	for (size_t i = 0; i < n; i++) {
		event_wait(events[i]);
		event_put(events[i]);
	}
	free(events);
	if (r != CUDA_SUCCESS)
		log_dbg("waiting for work before a free: %s",
			api_result_name(r));
	r = drop_unmap(d, a);
	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < a->nr_pages; i++)
		drop_page(d, a->first + i, r != CUDA_SUCCESS);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	return r;
}

/* ---- other devices ---- */

static bool any_moving(const struct device *d, uint32_t nr_pages)
{
	for (uint32_t page = 0; page < nr_pages; page++)
		if (page_tier(d, page) != TIER_NONE &&
		    d->pages[page].state == PAGE_MOVING)
			return true;
	return false;
}

CUresult tenancy_peer(struct device *d)
{
	uint32_t end = alloc_end_page(d);
	uint64_t deadline = tenancy_deadline();
	CUresult r = CUDA_SUCCESS;

	lock_acquire(&d->pool_lock);
	/* Who maps now may have looked before the peer was added. */
	while (any_moving(d, end))
		if (!lock_wait(&d->pool_lock, &d->pool_cond, deadline))
			break;
	for (uint32_t page = 0; page < end && r == CUDA_SUCCESS; page++)
		if (page_tier(d, page) != TIER_NONE &&
		    d->pages[page].state == PAGE_PRESENT)
			r = device_grant(d, device_address(d, page), 1);
	lock_release(&d->pool_lock);
	return r;
}

/* ---- questions ---- */

uint64_t tenancy_idle(struct device *d)
{
	uint64_t idle;

	lock_acquire(&d->pool_lock);
	idle = (uint64_t)tenancy_idle_locked(d) << d->page_shift;
	lock_release(&d->pool_lock);
	return idle;
}

uint64_t tenancy_evictable(struct device *d)
{
	uint64_t idle, resident, room = arena_room();

	lock_acquire(&d->pool_lock);
	idle = (uint64_t)tenancy_idle_locked(d) << d->page_shift;
	/* A cache can shrink; its tenants have their place in the arena. */
	if (d->tenancy->layout->order == ORDER_LRU &&
	    d->tenancy->nr_streamed > 0)
		idle += (uint64_t)d->tenancy->nr_slots << d->page_shift;
	resident = d->tenancy->frozen ? 0 :
		(uint64_t)d->tenancy->nr_resident << d->page_shift;
	lock_release(&d->pool_lock);
	return idle + (resident < room ? resident : room);
}

uint64_t tenancy_lost(struct device *d)
{
	uint64_t n;

	lock_acquire(&d->pool_lock);
	n = chunks_in_hands(d) + d->tenancy->nr_lost;
	lock_release(&d->pool_lock);
	return n << d->page_shift;
}

uint32_t tenancy_most_pages(struct device *d)
{
	uint64_t bytes;

	lock_acquire(&d->pool_lock);
	bytes = d->budget;
	lock_release(&d->pool_lock);
	return (uint32_t)(bytes >> d->page_shift);
}

bool tenancy_freeze(struct device *d)
{
	bool ok;

	lock_acquire(&d->pool_lock);
	ok = d->tenancy->nr_streamed == 0 && !d->tenancy->demoting;
	d->tenancy->frozen |= ok;
	lock_release(&d->pool_lock);
	return ok;
}

bool tenancy_all_resident(struct device *d)
{
	bool all;

	/* Known, but nothing was ever allocated there. */
	if (__atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) == NULL)
		return true;
	lock_acquire(&d->pool_lock);
	all = d->tenancy->nr_streamed == 0 && !d->tenancy->demoting;
	lock_release(&d->pool_lock);
	return all;
}
