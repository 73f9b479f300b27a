/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that touch several ranges, and memory that must stay.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue_int.h"
#include "shim/log.h"
#include "shim/section.h"
#include "shim/stats.h"

void issue_touches(struct issue *i, CUstream s)
{
	init_enter();
	i->kind = ISSUE_PASS;
	i->result = CUDA_SUCCESS;
	i->pieces = false;
	i->too_big = false;
	i->splits = true;
	page_set_init(&i->set, NULL, s);
}

void issue_touch(struct issue *i, CUdeviceptr p, size_t n, bool write)
{
	struct device *d;
	struct alloc *a;

	if (n == 0 || i->result != CUDA_SUCCESS)
		return;
	if (!issue_range_alloc(p, n, &d, &a)) {
		i->result = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	if (a == NULL)
		return;
	if (write)
		alloc_span_add(d, a, p);
	/*
	 * Of several devices, the one with memory on the move decides; memory
	 * at rest on the others is guarded by the section.
	 */
	if (i->set.device != NULL && i->set.device != d) {
		if (!issue_unsettled(a))
			return;
		for_each_page(&i->set, r, page)
			if (issue_unsettled(alloc_of_word(i->set.device,
			    device_word(i->set.device, page)))) {
				i->result = CUDA_ERROR_NOT_SUPPORTED;
				log_once(LOG_ERROR, "a call is refused: it "
					"mixes swapped memory of two devices");
				return;
			}
		page_set_clear(&i->set);
	}
	i->set.device = d;
	i->set.writes |= write;
	if (!page_set_add(&i->set, device_page(d, p),
	    device_page(d, p + n - 1)))
		i->result = CUDA_ERROR_OUT_OF_MEMORY;
}

/* With the section open: whether every page of the set is at rest. */
static bool at_rest(struct issue *i)
{
	for_each_page(&i->set, r, page) {
		uint64_t word = device_word(i->set.device, page);

		if ((word & PAGE_TIER_MASK) != TIER_RESIDENT ||
		    (word & PAGE_LEAVING) != 0)
			return false;
	}
	return true;
}

bool issue_go(struct issue *i)
{
	CUresult r = i->result;

	if (r != CUDA_SUCCESS) {
		page_set_clear(&i->set);
		return issue_refuse(i, r);
	}
	if (i->set.nr == 0)
		return true;
	section_open();
	i->kind = ISSUE_OPEN;
	if (at_rest(i)) {
		page_set_clear(&i->set);
		return true;
	}
	issue_let_go(i);
	if (issue_is_capturing(i->set.stream)) {
		page_set_clear(&i->set);
		log_once(LOG_ERROR, "a call is refused: its stream is "
			"capturing, and its memory is not all on the GPU");
		return issue_refuse(i, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	return issue_hold(i) ? true : issue_refuse(i, i->result);
}

CUresult issue_fix(CUdeviceptr p, size_t n)
{
	struct device *d = device_find(p);
	struct alloc *a = d == NULL ? NULL : alloc_find(d, p);
	struct page_set s;
	CUresult r;

	if (a == NULL)
		return CUDA_SUCCESS;
	if (n == 0 || n > a->base + a->size - p)
		n = a->base + a->size - p;
	init_enter();
	page_set_init(&s, d, CU_STREAM_LEGACY);
	s.caller = s.context = context_current();
	if (s.caller != NULL && s.caller->ordinal != d->ordinal)
		s.context = context_of_device(d->ordinal);
	r = CUDA_ERROR_OUT_OF_MEMORY;
	if (s.context == NULL)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (issue_add_range(&s, d, a, p, p + n))
		r = tenancy_fix(&s);
	page_set_clear(&s);
	init_leave();
	if (r != CUDA_SUCCESS) {
		stat_add(refused, 1);
		log_err("memory at %#llx cannot stay on the GPU for good: %s; "
			"a larger gpu_budget helps", p, api_result_name(r));
	}
	return r;
}
