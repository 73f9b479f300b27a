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
	i->missed = NULL;
	issue_sets_init(i, NULL, s);
}

void issue_touch(struct issue *i, CUdeviceptr p, size_t n, bool write)
{
	struct page_set *set;
	struct device *d;
	struct alloc *a;

	if (n == 0 || i->result != CUDA_SUCCESS)
		return;
	if (!issue_range_alloc(p, n, write, &d, &a)) {
		i->result = CUDA_ERROR_INVALID_VALUE;
		return;
	}
	if (a == NULL)
		return;
	if (write)
		alloc_span_add(d, a, p);
	set = issue_set_of(i, d);
	if (set == NULL) {
		i->result = CUDA_ERROR_NOT_SUPPORTED;
		log_once(LOG_ERROR, "a call is refused: it mixes managed memory "
			"of three devices");
		return;
	}
	set->writes |= write;
	if (!page_set_add(set, device_page(d, p),
	    device_page(d, p + n - 1)))
		i->result = CUDA_ERROR_OUT_OF_MEMORY;
}

/* With the section open: whether every page of the set is at rest. */
static bool at_rest(const struct page_set *s)
{
	for_each_page(s, r, page) {
		uint64_t word = device_word(s->device, page);
		uint64_t tier = word & PAGE_TIER_MASK;

		if ((tier != TIER_RESIDENT && tier != TIER_HOST) ||
		    (word & PAGE_LEAVING) != 0)
			return false;
	}
	return true;
}

bool issue_go(struct issue *i)
{
	CUresult r = i->result;

	if (r != CUDA_SUCCESS) {
		issue_sets_clear(i);
		return issue_refuse(i, r);
	}
	if (i->set.nr + i->peer.nr == 0)
		return true;
	section_open();
	i->kind = ISSUE_OPEN;
	if (at_rest(&i->set) && at_rest(&i->peer)) {
		issue_sets_clear(i);
		return true;
	}
	issue_let_go(i);
	if (context_is_capturing(i->set.stream)) {
		issue_sets_clear(i);
		log_once(LOG_ERROR, "a call is refused: its stream is "
			"capturing, and its memory is not all on the GPU");
		return issue_refuse(i, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	return issue_hold(i) ? true : issue_refuse(i, i->result);
}

/* Documents do not say, so the driver is asked to copy two bytes, once. */
bool issue_layers_follow(void)
{
	static int verdict;	/* atomic; 0: not known */
	static unsigned char from[2], to[2];
	int v = __atomic_load_n(&verdict, __ATOMIC_RELAXED);
	struct context *c = v != 0 ? NULL : context_current();
	CUDA_MEMCPY3D two = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = from,
		.srcPitch = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to,
		.dstPitch = 1,
		.WidthInBytes = 1, .Height = 1, .Depth = 2,
	};
	CUresult r;

	/* Not on a stream that might wait for this thread. */
	if (c == NULL || !context_ready(c))
		return v >= 0;
	init_enter();
	r = real.cuMemcpy3DAsync_v2(&two, c->copy);
	init_leave();
	v = r == CUDA_SUCCESS ? 1 : r == CUDA_ERROR_INVALID_VALUE ? -1 : 0;
	__atomic_store_n(&verdict, v, __ATOMIC_RELAXED);
	return v >= 0;
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

CUresult issue_fix_values(const CUstreamBatchMemOpParams *ops, unsigned int n)
{
	CUresult r = CUDA_SUCCESS;

	for (unsigned int k = 0; k < n && r == CUDA_SUCCESS; k++)
		switch (ops[k].operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			r = issue_fix(ops[k].waitValue.address, 8);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			r = issue_fix(ops[k].writeValue.address, 8);
			break;
		default:
			break;
		}
	return r;
}

/* Whether all managed memory is on the GPU; then it stays there for good. */
static bool freeze_all(void)
{
	for (int n = 0; n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE);
	     n++) {
		struct device *d = device_list[n];

		if (__atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) != NULL &&
		    !tenancy_freeze(d)) {
			stat_add(refused, 1);
			return false;
		}
	}
	return true;
}

/* The graph will hold addresses that must stay good. */
bool issue_may_capture(CUresult *r)
{
	if (freeze_all())
		return true;
	log_once(LOG_ERROR, "capturing a stream or adding to a graph is "
		"refused: not all managed memory is on the GPU, and graphs "
		"over swapped memory are not supported yet; a larger "
		"gpu_budget or enabled = false helps");
	*r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	return false;
}

bool issue_launch_blind(void)
{
	if (freeze_all())
		return true;
	log_once(LOG_ERROR, "a launch by cuLaunch, cuLaunchGrid or "
		"cuLaunchCooperativeKernelMultiDevice is refused: it may need "
		"managed memory that is not on the GPU; a larger gpu_budget "
		"or enabled = false helps");
	return false;
}
