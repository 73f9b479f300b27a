/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a call: who read which slot, noted for the slot's next tenant.
 * Also uploads that need no GPU.  Under pool_lock, like pool.c.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/section.h"
#include "shim/tenancy_int.h"

/* Not the thread's id, which another may get after this one's end. */
static unsigned long stream_thread(CUstream s)
{
	static unsigned long last;
	static __thread unsigned long self;

	if (s != CU_STREAM_PER_THREAD)
		return 0;
	if (self == 0)
		self = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	return self;
}

uint64_t reader_ticket(void)
{
	static uint64_t last;

	return __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
}

static bool same_stream(const struct reader *a, const struct reader *b)
{
	return a->context == b->context && a->stream == b->stream &&
		a->thread == b->thread && a->epoch == b->epoch;
}

/* Readers that are done say nothing any more. */
static void readers_prune(struct slot *slot)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < slot->nr_readers; i++) {
		if (event_query(slot->readers[i].event))
			event_put(slot->readers[i].event);
		else
			slot->readers[n++] = slot->readers[i];
	}
	slot->nr_readers = n;
}

bool reader_add(struct slot *slot, const struct reader *who)
{
	struct reader *grown;

	for (uint32_t i = 0; i < slot->nr_readers; i++)
		if (same_stream(&slot->readers[i], who) &&
		    slot->readers[i].recorded < who->begun) {
			/*
			 * The later event of a stream stands for both.  Who
			 * comes here later need not have recorded later: two
			 * threads may share a stream.
			 */
			event_put(slot->readers[i].event);
			slot->readers[i] = *who;
			event_get(who->event);
			return true;
		}
	if (slot->nr_readers == slot->max_readers) {
		if (slot->nr_readers >= 8)
			readers_prune(slot);
		grown = realloc(slot->readers, (slot->nr_readers + 4) *
			sizeof(*grown));
		if (grown == NULL)
			return false;
		slot->readers = grown;
		slot->max_readers = slot->nr_readers + 4;
	}
	slot->readers[slot->nr_readers] = *who;
	event_get(who->event);
	slot->nr_readers++;
	return true;
}

void tenancy_release(struct page_set *s)
{
	struct device *d = s->device;
	struct reader who = {
		.context = s->caller,
		.stream = s->stream,
		.thread = stream_thread(s->stream),
		.epoch = context_epoch(s->caller),
	};
	CUresult r = CUDA_SUCCESS;
	bool kept = true;

	if (s->nr_pins > 0) {
		who.begun = reader_ticket();
		who.event = event_record(s->caller, s->stream, &r);
		who.recorded = reader_ticket();
		/* Without an event nobody could wait later, so wait now. */
		if (who.event == NULL)
			real.cuStreamSynchronize(s->stream);
	}
	lock_acquire(&d->pool_lock);
	for (uint32_t i = 0; i < s->nr_pins && who.event != NULL; i++)
		kept &= reader_add(&d->tenancy->slots[s->pins[i]], &who);
	if (kept)
		unpin_all(d, s);
	lock_release(&d->pool_lock);
	if (!kept) {
		/* No memory to note the reader: see it through, pinned. */
		event_wait(who.event);
		lock_acquire(&d->pool_lock);
		unpin_all(d, s);
		lock_release(&d->pool_lock);
	}
	event_put(who.event);
	free(s->pins);
	s->pins = NULL;
	section_close();
}

/* ---- uploads that need no GPU ---- */

bool tenancy_upload(struct device *d, CUdeviceptr p, const void *src, size_t n)
{
	uint32_t first = device_page(d, p), last = device_page(d, p + n - 1);
	struct event *saved;
	bool fit = true;

	lock_acquire(&d->pool_lock);
	for (uint32_t page = first; page <= last && fit; page++)
		fit = page_tier(d, page) == TIER_STREAMED &&
			d->pages[page].state == PAGE_ABSENT &&
			!d->pages[page].launched;
	for (uint32_t page = first; page <= last && fit; page++)
		d->pages[page].state = PAGE_MOVING;
	lock_release(&d->pool_lock);
	if (!fit)
		return false;
	/* What is on its way there would come later, and undo it. */
	for (uint32_t page = first; page <= last && fit; page++) {
		saved = d->pages[page].saved;
		fit = saved == NULL || event_wait(saved) == CUDA_SUCCESS;
	}
	for (uint32_t page = first; page <= last && fit; page++) {
		CUdeviceptr start = device_address(d, page);
		size_t off = p > start ? p - start : 0;
		size_t len = d->page_size - off;

		if (len > n)
			len = n;
		memcpy((uint8_t *)arena_ptr(d->pages[page].arena) + off, src,
			len);
		src = (const uint8_t *)src + len;
		p += len;
		n -= len;
	}
	lock_acquire(&d->pool_lock);
	for (uint32_t page = first; page <= last; page++) {
		d->pages[page].defined |= fit;
		d->pages[page].state = PAGE_ABSENT;
	}
	pthread_cond_broadcast(&d->pool_cond);
	lock_release(&d->pool_lock);
	return fit;
}
