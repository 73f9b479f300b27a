/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carrying out an acquire: waits for the readers of the tenants that leave,
 * their way back to the arena, the mappings, the copies in.  No lock is held;
 * the pages belong to the calling thread.  Called by pool.c.
 */
#include <stdlib.h>

#include "shim/chunk.h"
#include "shim/mover.h"
#include "shim/pool_int.h"
#include "shim/stats.h"

static CUresult jobs_settle(struct page_set *s, struct jobs *jobs)
{
	CUresult r = CUDA_SUCCESS;

	for (uint32_t i = 0; i < jobs->nr && r == CUDA_SUCCESS; i++) {
		struct job *j = &jobs->at[i];

		for (uint32_t k = 0; k < j->nr_readers; k++) {
			struct event *e = j->readers[k].event;

			/* Unmapping does not wait for work; so we do. */
			if (!j->keep)
				r = event_wait(e);
			if (r == CUDA_SUCCESS && j->save)
				r = mover_save_after(s->context, e);
			if (r == CUDA_SUCCESS)
				r = mover_fetch_after(s->context, e);
			if (r != CUDA_SUCCESS)
				break;
		}
		if (r == CUDA_SUCCESS && j->before != NULL) {
			/* Filled, perhaps never read: the copy still counts. */
			if (!j->keep)
				r = event_wait(j->before);
			if (r == CUDA_SUCCESS)
				r = mover_fetch_after(s->context, j->before);
			if (r == CUDA_SUCCESS && j->save)
				r = mover_save_after(s->context, j->before);
		}
	}
	return r;
}

static CUresult jobs_save(struct page_set *s, struct jobs *jobs)
{
	struct device *d = s->device;
	struct move *moves = malloc(jobs->nr * sizeof(*moves));
	struct event *saved = NULL;
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	if (moves == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < jobs->nr; i++) {
		const struct job *j = &jobs->at[i];

		if (j->old == PAGE_NONE || !j->save)
			continue;
		moves[n++] = (struct move){
			.device = slot_address(d, j->slot),
			.arena = d->pages[j->old].arena,
			.size = d->pages[j->old].len,
		};
	}
	if (n > 0)
		r = mover_save(s->context, moves, n, &saved);
	free(moves);
	if (r == CUDA_SUCCESS && saved != NULL)
		r = mover_fetch_after(s->context, saved);
	for (uint32_t i = 0; i < jobs->nr && r == CUDA_SUCCESS; i++) {
		struct page *old;

		if (jobs->at[i].old == PAGE_NONE || !jobs->at[i].save)
			continue;
		old = &d->pages[jobs->at[i].old];
		event_put(old->saved);
		old->saved = event_get(saved);
	}
	event_put(saved);
	return r;
}

static CUresult jobs_unmap(struct device *d, struct jobs *jobs)
{
	CUresult r = CUDA_SUCCESS;
	uint32_t i = 0, n;

	while (i < jobs->nr && r == CUDA_SUCCESS) {
		uint32_t first = jobs->at[i].old;

		if (first == PAGE_NONE || jobs->at[i].keep) {
			i++;
			continue;
		}
		for (n = 1; i + n < jobs->nr && !jobs->at[i + n].keep &&
		     jobs->at[i + n].old == first + n; n++)
			;
		r = device_unmap(d, device_address(d, first), n);
		for (uint32_t k = 0; k < n && r == CUDA_SUCCESS; k++)
			jobs->at[i + k].unmapped = true;
		i += n;
	}
	return r;
}

/*
 * Pages that are still mapped to the slot of a plan, and now go elsewhere.
 * Whoever used them there has finished once the slot's present contents are
 * there: their copy waited for it.
 */
static CUresult jobs_unmap_strays(struct device *d, struct jobs *jobs)
{
	CUresult r = CUDA_SUCCESS;
	bool quiet = false;

	for (uint32_t i = 0; i < jobs->nr && r == CUDA_SUCCESS; i++) {
		struct job *j = &jobs->at[i];

		if (j->page == PAGE_NONE || j->stray == PAGE_NONE)
			continue;
		if (!quiet)
			r = context_quiesce(d);
		quiet = true;
		if (r == CUDA_SUCCESS)
			r = device_unmap(d, device_address(d, j->page), 1);
		j->strayed = r == CUDA_SUCCESS;
	}
	return r;
}

/* Pages that need a mapping, from jobs[i] on, in a row. */
static uint32_t map_run(const struct jobs *jobs, uint32_t i)
{
	uint32_t n = 0;

	while (i + n < jobs->nr && !jobs->at[i + n].aliased &&
	       jobs->at[i + n].page != PAGE_NONE &&
	       jobs->at[i + n].page == jobs->at[i].page + n)
		n++;
	return n;
}

static CUresult jobs_map(struct device *d, struct jobs *jobs)
{
	CUmemGenericAllocationHandle *handles =
		malloc(jobs->nr * sizeof(*handles));
	CUresult r = CUDA_SUCCESS;
	uint32_t i = 0, n;

	if (handles == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (i < jobs->nr && r == CUDA_SUCCESS) {
		n = map_run(jobs, i);
		if (n == 0) {
			i++;
			continue;
		}
		for (uint32_t k = 0; k < n; k++)
			handles[k] = chunk_handle(d, jobs->at[i + k].chunk);
		r = device_map(d, device_address(d, jobs->at[i].page), n,
			handles);
		for (uint32_t k = 0; k < n && r == CUDA_SUCCESS; k++)
			jobs->at[i + k].mapped = true;
		i += n;
	}
	free(handles);
	return r;
}

static CUresult jobs_fetch(struct page_set *s, struct jobs *jobs)
{
	struct device *d = s->device;
	struct move *moves = malloc(jobs->nr * sizeof(*moves));
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	if (moves == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < jobs->nr && r == CUDA_SUCCESS; i++) {
		const struct job *j = &jobs->at[i];
		const struct page *p;

		if (j->page == PAGE_NONE)
			continue;	/* the slot is only emptied */
		p = &d->pages[j->page];
		if (!p->defined)
			continue;	/* nobody can expect its bytes */
		if (p->saved != NULL)
			r = mover_fetch_after(s->context, p->saved);
		moves[n++] = (struct move){
			.device = j->slot == SLOT_NONE ?
				device_address(d, j->page) :
				slot_address(d, j->slot),
			.arena = p->arena,
			.size = p->len,
		};
	}
	jobs->copying = true;
	if (r == CUDA_SUCCESS)
		r = jobs->more ? mover_fetch_more(s->context, moves, n,
			&jobs->fetched) : mover_fetch(s->context, moves, n,
			&jobs->fetched);
	stat_add(fetches, n);
	free(moves);
	return r;
}

static bool any_own_chunk(const struct jobs *jobs)
{
	for (uint32_t i = 0; i < jobs->nr; i++)
		if (jobs->at[i].slot == SLOT_NONE &&
		    jobs->at[i].page != PAGE_NONE)
			return true;
	return false;
}

CUresult jobs_run(struct page_set *s, struct jobs *jobs)
{
	CUresult r = jobs_settle(s, jobs);

	if (r == CUDA_SUCCESS)
		r = jobs_save(s, jobs);
	if (r == CUDA_SUCCESS)
		r = jobs_unmap(s->device, jobs);
	if (r == CUDA_SUCCESS)
		r = jobs_unmap_strays(s->device, jobs);
	if (r == CUDA_SUCCESS)
		r = jobs_map(s->device, jobs);
	if (r == CUDA_SUCCESS)
		r = jobs_fetch(s, jobs);
	/* Resident pages are used by anybody without a wait. */
	if (r == CUDA_SUCCESS && any_own_chunk(jobs))
		r = event_wait(jobs->fetched);
	/* The rollback unmaps what the copies write to. */
	if (r != CUDA_SUCCESS && jobs->fetched != NULL)
		mover_drain(s->context, s->context->copy);
	return r;
}

