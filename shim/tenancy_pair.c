/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets on two devices at once: copies between them, and kernels that use
 * memory of a peer.  Called by issue.
 *
 * The second acquire may wait, and nobody may wait with a section open.  So
 * the first set's section is closed meanwhile: its pins hold, but a page of it
 * that was resident may leave, and then all begins again.  Always in the order
 * of the devices, so that two threads never wait for each other.
 */
#include "shim/section.h"
#include "shim/tenancy_int.h"

static bool is_pinned(const struct page_set *s, uint32_t slot)
{
	for (uint32_t i = 0; i < s->nr_pins; i++)
		if (s->pins[i] == slot)
			return true;
	return false;
}

/* With a section open: whether every page is where acquire() left it. */
static bool still_there(struct page_set *s)
{
	struct device *d = s->device;
	bool all = true;

	lock_acquire(&d->pool_lock);
	for_each_page(s, r, page) {
		const struct page *p = &d->pages[page];

		if (page_tier(d, page) == TIER_NONE)
			continue;
		if (p->slot != SLOT_NONE ? !is_pinned(s, p->slot) :
		    p->state != PAGE_PRESENT ||
		    (device_word(d, page) & PAGE_LEAVING) != 0)
			all = false;
	}
	lock_release(&d->pool_lock);
	return all;
}

static void in_order(struct page_set **a, struct page_set **b)
{
	struct page_set *swap = *a;

	if ((*a)->device->ordinal < (*b)->device->ordinal)
		return;
	*a = *b;
	*b = swap;
}

CUresult tenancy_acquire_pair(struct page_set *a, struct page_set *b)
{
	uint64_t deadline = tenancy_deadline();
	CUresult r;

	in_order(&a, &b);
	do {
		r = tenancy_acquire(a);
		if (r != CUDA_SUCCESS)
			return r;
		section_close();
		r = tenancy_acquire(b);
		if (r != CUDA_SUCCESS) {
			section_open();
			tenancy_release(a);
			return r;
		}
		if (still_there(a))
			return CUDA_SUCCESS;
		tenancy_release_pair(a, b);
	} while (lock_now_ns() < deadline);
	return CUDA_ERROR_LAUNCH_TIMEOUT;
}

void tenancy_release_pair(struct page_set *a, struct page_set *b)
{
	tenancy_release(b);
	section_open();
	tenancy_release(a);
}
