/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans into and out of force.  The tables change under pool_lock; moving
 * bytes happens without it, on pages that are marked as in this thread's
 * hands.
 */
#include "shim/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/log.h"
#include "shim/section.h"
#include "shim/stats.h"
#include "shim/tenancy_int.h"

bool schedule_active(const struct device *d)
{
	return d->tenancy != NULL && __atomic_load_n(&d->tenancy->schedule,
		__ATOMIC_RELAXED) != NULL;
}

bool schedule_is_fast(const struct device *d)
{
	const struct schedule *sc = __atomic_load_n(&d->tenancy->schedule,
		__ATOMIC_ACQUIRE);

	return sc == NULL || __atomic_load_n(&sc->fast, __ATOMIC_RELAXED);
}

/* ---- the layout ---- */

static uint64_t planned_pool_bytes(const struct device *d)
{
	return (uint64_t)d->tenancy->schedule->nr_slots << d->page_shift;
}

static uint32_t planned_slot_of(const struct device *d, uint32_t page)
{
	return d->pages[page].unit == PAGE_NONE ? SLOT_ANY :
		d->pages[page].place;
}

static bool planned_stays(const struct device *d, uint32_t page)
{
	return d->pages[page].unit == PAGE_NONE;
}

static const struct layout layout_planned = {
	.name = "planned",
	.pool_bytes = planned_pool_bytes,
	.slot_of = planned_slot_of,
	.stays = planned_stays,
};

/* ---- questions ---- */

uint64_t schedule_iterations(struct device *d)
{
	uint64_t n;

	lock_acquire(&d->pool_lock);
	n = d->tenancy->schedule == NULL ? 0 :
		d->tenancy->schedule->iterations;
	lock_release(&d->pool_lock);
	return n;
}

void schedule_room(struct device *d, const struct observe_tensor *tensors,
	uint32_t nr, uint64_t *most, uint64_t *least)
{
	uint32_t end = alloc_end_page(d), there = 0, used = 0, pages;
	uint8_t *ours = calloc((size_t)end + 1, 1);

	for (uint32_t i = 0; ours != NULL && i < nr; i++)
		for (uint32_t k = 0; k < tensors[i].nr; k++)
			if (tensors[i].first + k < end)
				ours[tensors[i].first + k] = 1;
	lock_acquire(&d->pool_lock);
	for (uint32_t page = 0; ours != NULL && page < end; page++) {
		enum page_tier tier = page_tier(d, page);

		if (ours[page] || tier == TIER_NONE)
			continue;
		there += tier == TIER_RESIDENT;
		used += tier == TIER_STREAMED && d->pages[page].launched;
	}
	pages = (uint32_t)(d->budget >> d->page_shift);
	lock_release(&d->pool_lock);
	if (ours == NULL)
		there = pages;
	free(ours);
	*least = there >= pages ? 0 : (uint64_t)(pages - there) <<
		d->page_shift;
	*most = there + used >= pages ? 0 : (uint64_t)(pages - there - used) <<
		d->page_shift;
}

/* ---- into force ---- */

/* The pages of units leave their own chunks. */
static CUresult leave_chunks(struct device *d, const struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	uint32_t total = 0, n = 0, gone;
	uint32_t *pages, *chunks;

	for (uint32_t i = 0; i < sc->nr_units; i++)
		total += sc->units[i].nr;
	pages = malloc((total + 1) * sizeof(*pages));
	chunks = malloc((total + 1) * sizeof(*chunks));
	if (pages == NULL || chunks == NULL) {
		free(pages);
		free(chunks);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++)
			if (page_tier(d, sc->units[i].pages[k]) ==
			    TIER_RESIDENT)
				pages[n++] = sc->units[i].pages[k];
	gone = n == 0 ? 0 : demote_pages(d, pages, n,
		TIER_RESIDENT, chunks);
	for (uint32_t i = 0; i < gone; i++)
		chunk_recycle(d, chunks[i]);
	free(pages);
	free(chunks);
	return gone == n ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether pages [from, to) of the unit lie in the arena as they are copied. */
static uint32_t packed_run(const struct device *d, const struct unit *u,
	uint32_t from)
{
	uint32_t n = 1;

	while (from + n < u->nr) {
		const struct page *a = &d->pages[u->pages[from + n - 1]];
		const struct page *b = &d->pages[u->pages[from + n]];

		if (a->arena + a->len != b->arena)
			break;
		n++;
	}
	return n;
}

/* One new range for pages [from, from + n), bytes copied by the host. */
static bool pack_run(struct device *d, const struct unit *u, uint32_t from,
	uint32_t n)
{
	uint64_t bytes = 0, at;

	for (uint32_t i = from; i < from + n; i++)
		bytes += d->pages[u->pages[i]].len;
	at = arena_alloc(bytes);
	if (at == ARENA_NONE)
		return false;
	for (uint32_t i = from; i < from + n; i++) {
		struct page *p = &d->pages[u->pages[i]];

		memcpy(arena_ptr(at), arena_ptr(p->arena), p->len);
		arena_free(p->arena, p->len);
		p->arena = at;
		at += p->len;
	}
	return true;
}

/*
 * A unit's bytes in one piece, or in pieces of a segment: then they go over
 * the link as one copy.  Its pages are absent and in this thread's hands.
 */
static void pack(struct device *d, const struct unit *u)
{
	uint32_t i = 0, n;
	uint64_t bytes;

	for (uint32_t k = 0; k < u->nr; k++)
		if (d->pages[u->pages[k]].saved != NULL &&
		    event_wait(d->pages[u->pages[k]].saved) != CUDA_SUCCESS)
			return;		/* bytes may still be on their way */
	while (i < u->nr) {
		bytes = 0;
		for (n = 0; i + n < u->nr && bytes +
		     d->pages[u->pages[i + n]].len <= ARENA_SEGMENT / 2; n++)
			bytes += d->pages[u->pages[i + n]].len;
		if (n == 0)
			n = 1;
		if (packed_run(d, u, i) < n && !pack_run(d, u, i, n))
			log_once(LOG_INFO, "no room to bring a layer's bytes "
				"together in the arena: more and smaller "
				"copies");
		i += n;
	}
}

/* Marks a unit's absent pages; false: one is not absent. */
static bool units_take(struct device *d, const struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++) {
			uint32_t page = sc->units[i].pages[k];

			if (page_tier(d, page) != TIER_STREAMED ||
			    d->pages[page].state != PAGE_ABSENT)
				return false;
		}
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++)
			d->pages[sc->units[i].pages[k]].state = PAGE_MOVING;
	return true;
}

static void units_give(struct device *d, const struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++)
			d->pages[sc->units[i].pages[k]].state = PAGE_ABSENT;
	pthread_cond_broadcast(&d->pool_cond);
}

static void publish(struct device *d, struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++) {
			struct page *p = &d->pages[sc->units[i].pages[k]];

			p->unit = i;
			p->place = sc->units[i].slots[k];
		}
	__atomic_store_n(&d->tenancy->schedule, sc, __ATOMIC_RELEASE);
	d->tenancy->layout = &layout_planned;
	device_reach_changed(d);
}

CUresult schedule_install(struct device *d, struct schedule *sc,
	struct context *c)
{
	struct tenancy *t = d->tenancy;
	CUresult r;
	bool taken;

	if (!schedule_try_end(d, NULL))
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	sc->context = c;
	lock_acquire(&d->pool_lock);
	r = leave_chunks(d, sc);
	/* Twice: another thread may fetch a page between the two steps. */
	taken = false;
	for (int i = 0; i < 2 && r == CUDA_SUCCESS && !taken; i++) {
		r = pool_empty(d, c, sc->nr_slots);
		if (r == CUDA_SUCCESS && t->nr_slots < sc->nr_slots)
			pool_grow(d, sc->nr_slots, NULL);
		taken = r == CUDA_SUCCESS && units_take(d, sc);
	}
	if (r == CUDA_SUCCESS && (!taken || t->nr_slots < sc->nr_slots)) {
		if (taken)
			units_give(d, sc);
		r = CUDA_ERROR_NOT_READY;
	}
	if (r != CUDA_SUCCESS) {
		lock_release(&d->pool_lock);
		return r;
	}
	lock_release(&d->pool_lock);
	for (uint32_t i = 0; i < sc->nr_units; i++)
		pack(d, &sc->units[i]);
	lock_acquire(&d->pool_lock);
	units_give(d, sc);
	publish(d, sc);
	lock_release(&d->pool_lock);
	return CUDA_SUCCESS;
}

/* ---- fast ---- */

/* Pages from i on, in a row, that need an alias now. */
static uint32_t alias_run(const struct device *d, const struct unit *u,
	uint32_t i)
{
	uint32_t n = 0;

	while (i + n < u->nr && u->pages[i + n] == u->pages[i] + n &&
	       d->pages[u->pages[i + n]].state == PAGE_ABSENT &&
	       d->pages[u->pages[i + n]].alias == PAGE_NONE &&
	       page_tier(d, u->pages[i + n]) == TIER_STREAMED)
		n++;
	return n;
}

static CUresult alias_pages(struct device *d, const struct unit *u, uint32_t i,
	uint32_t n)
	REQUIRES(&d->pool_lock)
{
	CUmemGenericAllocationHandle *handles = malloc(n * sizeof(*handles));
	CUresult r;

	if (handles == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t k = 0; k < n; k++) {
		handles[k] = chunk_handle(d, d->tenancy->slots[
			u->slots[i + k]].chunk);
		d->pages[u->pages[i + k]].state = PAGE_MOVING;
	}
	lock_release(&d->pool_lock);
	r = device_map(d, device_address(d, u->pages[i]), n, handles);
	lock_acquire(&d->pool_lock);
	for (uint32_t k = 0; k < n; k++) {
		d->pages[u->pages[i + k]].state = PAGE_ABSENT;
		if (r == CUDA_SUCCESS)
			d->pages[u->pages[i + k]].alias = u->slots[i + k];
	}
	pthread_cond_broadcast(&d->pool_cond);
	free(handles);
	return r;
}

static void wait_pump(struct device *d, struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	sc->held = true;
	while (sc->pumping)
		lock_wait(&d->pool_lock, &d->pool_cond,
			lock_now_ns() + UNIT_LOOK_NS);
}

static void wait_moving(struct device *d, const struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++)
			while (d->pages[sc->units[i].pages[k]].state ==
			       PAGE_MOVING) {
				lock_wait(&d->pool_lock, &d->pool_cond,
					lock_now_ns() + UNIT_LOOK_NS);
				i = k = 0;	/* from the start */
			}
}

/* Aliases without a tenant; nothing issued on the device is at work. */
static void unalias(struct device *d, const struct unit *u)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t k = 0; k < u->nr; k++) {
		struct page *p = &d->pages[u->pages[k]];

		if (p->alias == PAGE_NONE)
			continue;
		/* A mapping that stays is that of a present page from now on. */
		if ((p->slot != p->alias || p->state != PAGE_PRESENT) &&
		    device_unmap(d, device_address(d, u->pages[k]), 1) !=
		    CUDA_SUCCESS)
			log_err("a page stays mapped to memory that it shares");
		p->alias = PAGE_NONE;
	}
}

/*
 * No page is an alias any more.  From here on tenants that leave lose theirs,
 * after their readers.  For those that left before, all that was issued counts.
 */
static void unalias_all(struct device *d, struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	sc->unaliasing = true;
	wait_moving(d, sc);
	lock_release(&d->pool_lock);
	context_quiesce(d);
	lock_acquire(&d->pool_lock);
	wait_moving(d, sc);
	for (uint32_t i = 0; i < sc->nr_units; i++)
		unalias(d, &sc->units[i]);
	sc->aliases = false;
	d->tenancy->unaliased++;
}

static CUresult alias_unit(struct device *d, struct schedule *sc,
	const struct unit *u)
	REQUIRES(&d->pool_lock)
{
	CUresult r = CUDA_SUCCESS;

	for (uint32_t k = 0; k < u->nr && r == CUDA_SUCCESS; k++) {
		struct page *p = &d->pages[u->pages[k]];
		uint32_t n = alias_run(d, u, k);

		if (sc->ending) {
			r = CUDA_ERROR_NOT_READY;
		} else if (n > 0) {
			r = alias_pages(d, u, k, n);
			k += n - 1;
		} else if (p->state == PAGE_PRESENT && p->slot == u->slots[k]) {
			p->alias = p->slot;
		}
	}
	return r;
}

CUresult schedule_make_fast(struct device *d)
{
	struct schedule *sc;
	CUresult r = CUDA_SUCCESS;

	lock_acquire(&d->pool_lock);
	sc = d->tenancy->schedule;
	if (sc == NULL || sc->fast || sc->ending) {
		lock_release(&d->pool_lock);
		return CUDA_SUCCESS;
	}
	/* It cannot end before we are done. */
	sc->changing = sc->aliases = true;
	wait_pump(d, sc);
	for (uint32_t i = 0; i < sc->nr_units && r == CUDA_SUCCESS; i++)
		r = alias_unit(d, sc, &sc->units[i]);
	/*
	 * All or none: where a driver limits the mappings of a handle, one that
	 * a page keeps is one that the slot's next tenant cannot have.
	 */
	__atomic_store_n(&sc->fast, r == CUDA_SUCCESS, __ATOMIC_RELAXED);
	if (!sc->fast && !sc->ending)
		unalias_all(d, sc);
	sc->changing = false;
	sc->held = sc->ending;
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	return r;
}

/* ---- out of force ---- */

/* Closes every unit, and keeps others from opening them again. */
static void close_all(struct device *d, struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < sc->nr_units; ) {
		struct unit *u = &sc->units[i];

		if (u->nr_users == 0 && !u->busy && u->waiting == 0 &&
		    __atomic_load_n(&u->pins, __ATOMIC_SEQ_CST) == 0 &&
		    !__atomic_load_n(&u->open, __ATOMIC_SEQ_CST)) {
			i++;
			continue;
		}
		if (u->waiting > 0 || !unit_close(d, u))
			lock_wait(&d->pool_lock, &d->pool_cond,
				lock_now_ns() + UNIT_LOOK_NS);
		i = 0;		/* others may have opened one meanwhile */
	}
}

static void leave_units(struct device *d, const struct schedule *sc)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < sc->nr_units; i++)
		for (uint32_t k = 0; k < sc->units[i].nr; k++) {
			struct page *p = &d->pages[sc->units[i].pages[k]];

			p->unit = p->place = PAGE_NONE;
		}
}

void schedule_end(struct device *d, const char *why)
{
	struct tenancy *t = d->tenancy;
	struct schedule *sc;

	if (t == NULL || !schedule_active(d))
		return;
	lock_acquire(&d->pool_lock);
	sc = t->schedule;
	if (sc == NULL || sc->ending) {
		/* Another thread is at it: until it is over. */
		while (sc != NULL && t->schedule == sc)
			lock_wait(&d->pool_lock, &d->pool_cond,
				lock_now_ns() + UNIT_LOOK_NS);
		lock_release(&d->pool_lock);
		return;
	}
	sc->ending = true;
	while (sc->changing)
		lock_wait(&d->pool_lock, &d->pool_cond,
			lock_now_ns() + UNIT_LOOK_NS);
	wait_pump(d, sc);
	sc->unaliasing = true;
	wait_moving(d, sc);
	close_all(d, sc);
	device_reach_changed(d);
	if (sc->aliases)
		unalias_all(d, sc);
	else
		wait_moving(d, sc);
	leave_units(d, sc);
	t->layout = &layout_on_demand;
	__atomic_store_n(&t->schedule, NULL, __ATOMIC_RELEASE);
	device_reach_changed(d);
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	if (why != NULL)
		log_info("the plan ends: %s", why);
	/* Who has seen its units is in an open section. */
	if (section_wait_all(tenancy_deadline()))
		schedule_destroy(sc);
}

bool schedule_try_end(struct device *d, const char *why)
{
	/* What is mapped may not go while a kernel may still read it. */
	if (schedule_active(d) && context_has_host_functions() &&
	    context_quiesce(d) == CUDA_ERROR_LAUNCH_TIMEOUT)
		return false;
	schedule_end(d, why);
	return true;
}

void schedule_context_ends(struct device *d, const struct context *c)
{
	bool ours;

	lock_acquire(&d->pool_lock);
	ours = d->tenancy->schedule != NULL &&
		d->tenancy->schedule->context == c;
	lock_release(&d->pool_lock);
	if (ours)
		schedule_end(d, "its context ends");
}

void schedule_leave(struct device *d, uint32_t first, uint32_t nr)
{
	bool any = false;

	if (d->tenancy == NULL || !schedule_active(d))
		return;
	lock_acquire(&d->pool_lock);
	for (uint32_t page = first; page < first + nr && !any; page++)
		any = page_tier(d, page) != TIER_NONE &&
			d->pages[page].unit != PAGE_NONE;
	lock_release(&d->pool_lock);
	if (any)
		schedule_end(d, "memory that it streams goes away");
}
