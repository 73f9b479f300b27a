/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many slots the pool has.  Under pool_lock, which is dropped and retaken
 * around driver calls.  Called by pool.c, tenancy.c and schedule.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "shim/chunk.h"
#include "shim/log.h"
#include "shim/pool_int.h"
#include "shim/stats.h"

uint32_t pool_target(const struct device *d)
{
	uint64_t bytes = d->tenancy->layout->pool_bytes(d);
	uint64_t n = (bytes + d->page_size - 1) >> d->page_shift;
	uint64_t most = d->budget_most >> d->page_shift;

	/* A plan says what it needs, even if that is one. */
	if (n < 2 && d->tenancy->schedule == NULL)
		n = 2;
	if (n > most)
		n = most;
	return (uint32_t)n;
}

int pool_add(struct device *d, const uint32_t *chunks, uint32_t n)
{
	struct tenancy *t = d->tenancy;
	CUmemGenericAllocationHandle *handles;
	uint32_t first = t->nr_slots;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	handles = malloc(n * sizeof(*handles));
	if (handles != NULL && n <= d->pool_max - first) {
		for (uint32_t i = 0; i < n; i++)
			handles[i] = chunk_handle(d, chunks[i]);
		lock_release(&d->pool_lock);
		r = device_map(d, slot_address(d, first), n, handles);
		lock_acquire(&d->pool_lock);
	}
	free(handles);
	if (r != CUDA_SUCCESS) {
		for (uint32_t i = 0; i < n; i++)
			chunk_recycle(d, chunks[i]);
		return -EIO;
	}
	for (uint32_t i = 0; i < n; i++) {
		memset(&t->slots[first + i], 0, sizeof(t->slots[0]));
		t->slots[first + i].chunk = chunks[i];
		t->slots[first + i].page = PAGE_NONE;
	}
	t->nr_slots += n;
	stat_add(pool_bytes, (uint64_t)n << d->page_shift);
	pthread_cond_broadcast(&d->pool_cond);
	return 0;
}

uint32_t pool_grow(struct device *d, uint32_t slots,
	const struct page_set *keep)
{
	struct tenancy *t = d->tenancy;
	uint32_t *chunks, want, got, before = t->nr_slots;

	while (t->growing)
		if (!lock_wait(&d->pool_lock, &d->pool_cond,
		    tenancy_deadline()))
			return 0;
	if (t->nr_slots >= slots)
		return t->nr_slots - before;
	t->growing = true;
	want = slots - t->nr_slots;
	chunks = malloc(want * sizeof(*chunks));
	if (chunks != NULL) {
		got = chunk_take(d, want, chunks);
		if (got < want)
			got += demote(d, want - got, keep, chunks + got);
		if (got > 0)
			pool_add(d, chunks, got);
		free(chunks);
	}
	t->growing = false;
	pthread_cond_broadcast(&d->pool_cond);
	return t->nr_slots - before;
}

/* ---- emptying and shrinking ---- */

/* All slots are this thread's; false: others did not let go in time. */
static bool take_all(struct device *d)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint64_t deadline = tenancy_deadline();
	uint32_t i = 0;

	while (i < t->nr_slots) {
		if (!t->slots[i].busy && t->slots[i].pins == 0 &&
		    !t->growing) {
			i++;
			continue;
		}
		if (!lock_wait(&d->pool_lock, &d->pool_cond, deadline))
			return false;
		i = 0;
	}
	for (i = 0; i < t->nr_slots; i++)
		t->slots[i].busy = true;
	return true;
}

/* Jobs without a page: the tenants leave, nobody comes. */
static bool jobs_leave(struct device *d, struct jobs *jobs)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;

	jobs->at = calloc(t->nr_slots + 1, sizeof(*jobs->at));
	if (jobs->at == NULL)
		return false;
	for (uint32_t i = 0; i < t->nr_slots; i++) {
		struct slot *slot = &t->slots[i];
		struct job *j = &jobs->at[jobs->nr];

		if (slot->page == PAGE_NONE)
			continue;
		j->page = PAGE_NONE;
		j->slot = i;
		job_take(d, j, slot);
		jobs->nr++;
	}
	return true;
}

/* As far as it came: tenants that still have their mapping stay. */
static void leave_finish(struct device *d, struct jobs *jobs, CUresult r)
	REQUIRES(&d->pool_lock)
{
	for (uint32_t i = 0; i < jobs->nr; i++) {
		struct job *j = &jobs->at[i];
		struct slot *slot = &d->tenancy->slots[j->slot];

		if (r != CUDA_SUCCESS && !j->unmapped) {
			job_give_back(d, j);
			continue;
		}
		slot_clear(slot);
		job_leave_behind(d, j);
	}
}

/* Slots from `n` on are gone; their private addresses are unmapped. */
static CUresult drop_slots(struct device *d, uint32_t n)
	REQUIRES(&d->pool_lock)
{
	struct tenancy *t = d->tenancy;
	uint32_t from = n, to = t->nr_slots;
	CUresult r;

	lock_release(&d->pool_lock);
	/* The way back to the arena reads there. */
	r = CUDA_SUCCESS;
	for (uint32_t i = from; i < to && r == CUDA_SUCCESS; i++)
		if (t->slots[i].ready != NULL)
			r = event_wait(t->slots[i].ready);
	if (r == CUDA_SUCCESS)
		r = device_unmap(d, d->pool_base +
			((uint64_t)from << d->page_shift), to - from);
	lock_acquire(&d->pool_lock);
	if (r != CUDA_SUCCESS)
		return r;
	for (uint32_t i = from; i < to; i++) {
		slot_clear(&t->slots[i]);
		free(t->slots[i].readers);
		chunk_recycle(d, t->slots[i].chunk);
		memset(&t->slots[i], 0, sizeof(t->slots[i]));
	}
	stat_sub(pool_bytes, (uint64_t)(to - from) << d->page_shift);
	t->nr_slots = from;
	if (t->hand >= t->nr_slots)
		t->hand = 0;
	return CUDA_SUCCESS;
}

CUresult pool_empty(struct device *d, struct context *c, uint32_t n)
{
	struct tenancy *t = d->tenancy;
	struct page_set s;
	struct jobs jobs = { 0 };
	CUresult r = CUDA_SUCCESS;

	if (!take_all(d))
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	if (!jobs_leave(d, &jobs)) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (jobs.nr > 0) {
		page_set_init(&s, d, NULL);
		s.context = s.caller = c;
		lock_release(&d->pool_lock);
		r = jobs_run(&s, &jobs);
		lock_acquire(&d->pool_lock);
		leave_finish(d, &jobs, r);
	}
	if (r == CUDA_SUCCESS && n < t->nr_slots)
		r = drop_slots(d, n);
	for (uint32_t i = 0; i < t->nr_slots; i++)
		t->slots[i].busy = false;
	pthread_cond_broadcast(&d->pool_cond);
	jobs_free(&jobs);
	return r;
}
