/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches and copies on their way to the driver.  No state of its own: a
 * struct issue on the caller's stack, page words, and tenancy.
 */
#include "shim/issue_int.h"

#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/kernarg.h"
#include "shim/log.h"
#include "shim/phase.h"
#include "shim/prefetch.h"
#include "shim/schedule.h"
#include "shim/section.h"
#include "shim/stats.h"
#include "shim/trace.h"
#include "shim/vmm.h"

/* ---- holding ---- */

void issue_sets_init(struct issue *i, struct device *d, CUstream s)
{
	page_set_init(&i->set, d, s);
	page_set_init(&i->peer, NULL, s);
}

void issue_sets_clear(struct issue *i)
{
	page_set_clear(&i->set);
	page_set_clear(&i->peer);
}

struct page_set *issue_set_of(struct issue *i, struct device *d)
{
	if (i->set.device == NULL || i->set.device == d) {
		i->set.device = d;
		return &i->set;
	}
	if (i->peer.device == NULL)
		i->peer.device = d;
	return i->peer.device == d ? &i->peer : NULL;
}

static bool set_fits(const struct page_set *s)
{
	return s->device == NULL ||
		page_set_pages(s) <= tenancy_most_pages(s->device);
}

/* The contexts that a set needs; false: there is none on its device. */
static bool set_contexts(struct page_set *s, struct context *caller)
{
	s->caller = s->context = caller;
	if (s->device != NULL && caller != NULL &&
	    caller->ordinal != s->device->ordinal)
		s->context = context_of_device(s->device->ordinal);
	return s->context != NULL;
}

/* Acquires the sets; on failure the issue is over with its result set. */
bool issue_hold(struct issue *i)
{
	struct context *caller = context_current();

	i->too_big = !set_fits(&i->set) || !set_fits(&i->peer);
	if (!set_contexts(&i->set, caller) || !set_contexts(&i->peer, caller))
		i->result = CUDA_ERROR_INVALID_CONTEXT;
	else if (i->too_big && i->splits)
		i->result = CUDA_ERROR_OUT_OF_MEMORY;
	else if (i->peer.device != NULL)
		i->result = tenancy_acquire_pair(&i->set, &i->peer);
	else
		i->result = tenancy_acquire(&i->set);
	if (i->result != CUDA_SUCCESS) {
		issue_sets_clear(i);
		return false;
	}
	i->kind = ISSUE_HELD;
	return true;
}

void issue_let_go(struct issue *i)
{
	if (i->kind == ISSUE_OPEN) {
		section_close();
	} else if (i->kind == ISSUE_HELD) {
		if (i->peer.device != NULL)
			tenancy_release_pair(&i->set, &i->peer);
		else
			tenancy_release(&i->set);
		if (i->missed != NULL)
			unit_missed_launched(i->units_of, i->missed);
		prefetch_pump(i->set.device);
		issue_sets_clear(i);
	} else if (i->kind == ISSUE_PLANNED) {
		issue_units_end(i);
	}
	i->kind = ISSUE_PASS;
}

bool issue_refuse(struct issue *i, CUresult r)
{
	i->result = r;
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		stat_add(out_of_memory, 1);
	else
		stat_add(refused, 1);
	init_leave();
	return false;
}

/* ---- launches ---- */

/* About what a function's code may need that is loaded on first use. */
#define CODE_BYTES (16u << 20)

static bool visit_settled(void *arg, uint64_t word)
{
	return alloc_word_settled(word);
}

/* The common case without a call for each word: separate parameters. */
static inline bool all_settled(const struct kernarg *k, void **params,
	void **extra)
{
	if (unlikely(params == NULL))
		return kernarg_walk(k, NULL, extra, visit_settled, NULL);
	for (uint32_t j = 0; j < k->nr; j++) {
		const uint8_t *at = params[k->params[j].index];
		uint32_t last = k->params[j].size - 8;

		for (uint32_t off = 0; off <= last; off++)
			if (unlikely(!alloc_word_settled(kernarg_word(at + off))))
				return false;
	}
	return true;
}

struct collect {
	struct issue *issue;
	uint64_t most;		/* bytes of one pointer's reach */
	bool failed;
};

bool issue_add_range(struct page_set *s, struct device *d,
	const struct alloc *a, CUdeviceptr from, CUdeviceptr to)
{
	uint32_t page = device_page(d, from), n;
	uint32_t end = device_page(d, to - 1) + 1;

	for (; (n = alloc_run(d, a, &page, end)) > 0; page += n)
		if (!page_set_add(s, page, page + n - 1))
			return false;
	return true;
}

static bool visit_collect(void *arg, uint64_t word)
{
	struct collect *c = arg;
	struct device *d = device_find(word);
	struct alloc *a;
	CUdeviceptr from, to;
	struct page_set *s;

	a = d == NULL ? NULL :
		alloc_of_word(d, device_word(d, device_page(d, word)));
	if (a == NULL)
		return true;
	s = issue_set_of(c->issue, d);
	c->failed = s == NULL;
	if (!c->failed) {
		alloc_reach(d, a, word, c->most, &from, &to);
		c->failed = !issue_add_range(s, d, a, from, to);
	}
	return !c->failed;
}

void issue_capture_begins(void)
{
	context_capture_begins();
}

static COLD bool launch_refused(struct issue *i, CUresult r, const char *why)
{
	log_once(LOG_ERROR, "a launch is refused: %s", why);
	return issue_refuse(i, r);
}

/*
 * A reach that is more than the GPU can hold is a guess about memory whose
 * other tensors no launch has named yet.  It is cut to the largest that fits:
 * too wide is slow, and what is left out is unmapped, so that a guess that was
 * too narrow faults rather than reads something else.  No cut goes through one
 * upload: where one is more than the GPU holds, the launch fails for lack of
 * memory.
 */
static void set_narrow(struct issue *i, const struct kernarg *k, void **params,
	void **extra, struct collect *c)
{
	struct device *d = i->set.device;
	uint64_t lo = 1, hi, mid;

	if (d == NULL || (set_fits(&i->set) && set_fits(&i->peer)))
		return;
	hi = tenancy_most_pages(d);
	if (i->peer.device != NULL && hi < tenancy_most_pages(i->peer.device))
		hi = tenancy_most_pages(i->peer.device);
	i->set.cut = i->peer.cut = true;
	/* The least, lo, is tried last where nothing fits: then it fails. */
	while (lo < hi && !c->failed) {
		mid = hi - (hi - lo) / 2;
		c->most = mid << d->page_shift;
		issue_sets_clear(i);
		kernarg_walk(k, params, extra, visit_collect, c);
		if (set_fits(&i->set) && set_fits(&i->peer))
			lo = mid;
		else
			hi = mid - 1;
	}
	c->most = lo << d->page_shift;
	issue_sets_clear(i);
	kernarg_walk(k, params, extra, visit_collect, c);
}

/* Whether any page of the set is not plainly resident. */
static bool set_waits(const struct page_set *s)
{
	for_each_page(s, r, page) {
		uint64_t word = device_word(s->device, page);

		if ((word & PAGE_TIER_MASK) == TIER_STREAMED ||
		    (word & PAGE_LEAVING) != 0)
			return true;
	}
	return false;
}

static bool sets_wait(const struct issue *i)
{
	return (i->set.nr > 0 && set_waits(&i->set)) ||
		(i->peer.nr > 0 && set_waits(&i->peer));
}

/*
 * The launch is shown to the phase it is watched in.  The sets are complete.
 * One that only came before its copy did says nothing against the plan.
 * false: it needs nothing but residents, so it goes as such.
 */
static bool watched(struct issue *i, CUfunction f, CUstream s)
{
	struct device *d = i->set.device;
	bool waits = sets_wait(i);

	if (d == NULL)
		return false;
	/* Another device may be the one that is watched. */
	if (phase_watching_now() && phase_launch(d, f, s, &i->set, waits))
		return waits;
	if (schedule_active(d))
		phase_turn(d, s, waits && !i->in_order);
	else if (waits)
		phase_needed(d);
	return waits;
}

/* All that it names is resident: an open section is all it takes. */
static bool launch_settled(struct issue *i, const struct kernarg *k,
	void **params, void **extra)
{
	section_open();
	i->kind = ISSUE_OPEN;
	if (all_settled(k, params, extra))
		return true;
	issue_let_go(i);
	return false;
}

static NOINLINE bool launch_streamed(struct issue *i, CUfunction f,
	const struct kernarg *k, CUstream s, void **params, void **extra)
{
	struct collect c = { .issue = i, .most = UINT64_MAX };
	uint64_t begin;
	bool capturing;

	issue_sets_init(i, NULL, s);
	i->set.writes = i->set.launch = true;
	i->peer.writes = i->peer.launch = true;
	kernarg_walk(k, params, extra, visit_collect, &c);
	if (!c.failed)
		set_narrow(i, k, params, extra, &c);
	if (c.failed) {
		issue_sets_clear(i);
		if (launch_settled(i, k, params, extra))
			return true;
		return launch_refused(i, CUDA_ERROR_NOT_SUPPORTED,
			"it mixes swapped memory of three devices");
	}
	capturing = context_is_capturing(s);
	if (!(capturing ? sets_wait(i) : watched(i, f, s))) {
		/* All is there, unless it leaves right now. */
		i->kind = ISSUE_OPEN;
		section_open();
		if (!sets_wait(i)) {
			issue_sets_clear(i);
			return true;
		}
		issue_let_go(i);
	}
	if (capturing) {
		issue_sets_clear(i);
		return launch_refused(i, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
			"its stream is capturing, and memory that is not all "
			"on the GPU cannot be captured yet");
	}
	stat_add(launches_streamed, 1);
	begin = trace_begin();
	if (!issue_hold(i))
		return issue_refuse(i, i->result);
	if (unlikely(trace_on))
		trace_add(TRACE_FETCH, i->set.device->ordinal, TRACE_NO_LAYER,
			(uint64_t)page_set_pages(&i->set) <<
			i->set.device->page_shift, begin);
	phase_wait_ends(i->set.device, s);
	return true;
}

bool issue_launch(struct issue *i, CUfunction f, CUstream s, void **params,
	void **extra)
{
	const struct kernarg *k;
	bool watching;

	i->kind = ISSUE_PASS;
	i->result = CUDA_SUCCESS;
	i->splits = false;
	i->missed = NULL;
	i->in_order = false;
	init_enter();
	stat_add(launches, 1);
	if (__atomic_load_n(&device_nr, __ATOMIC_RELAXED) == 0 || f == NULL)
		return true;	/* nothing is managed, or launched */
	k = kernarg_find(f);
	if (unlikely(k == NULL) && issue_make_room(CODE_BYTES))
		k = kernarg_find(f);
	if (unlikely(k == NULL))
		return launch_refused(i, CUDA_ERROR_OUT_OF_MEMORY,
			"no memory for its code or its parameters' layout");
	section_open();
	i->kind = ISSUE_OPEN;
	if (likely(k->known && !phase_watching_now() &&
	    all_settled(k, params, extra)))
		return true;
	if (!k->known) {
		stat_add(unmanaged_launches, 1);
		for (int n = 0; n < __atomic_load_n(&device_nr,
		     __ATOMIC_ACQUIRE); n++)
			if (!tenancy_all_resident(device_list[n])) {
				issue_let_go(i);
				return launch_refused(i,
					CUDA_ERROR_NOT_SUPPORTED,
					"its parameters are unknown and not "
					"all memory is on the GPU");
			}
		return true;
	}
	/* Where nothing but residents is named, who watches is to see it. */
	watching = phase_watching_now();
	if (!(watching && __atomic_load_n(&device_nr, __ATOMIC_RELAXED) == 1) &&
	    issue_units(i, k, s, params, extra) &&
	    !(watching && i->nr_units == 0))
		return true;
	if (i->missed != NULL)
		i->in_order = unit_missed(i->units_of, i->missed);
	issue_let_go(i);
	return launch_streamed(i, f, k, s, params, extra);
}

/* ---- copies ---- */

/*
 * Pages that are there are mapped for reading and writing, whatever the
 * program's own mappings are to allow.
 */
bool issue_range_alloc(CUdeviceptr p, size_t n, bool write, struct device **d,
	struct alloc **a)
{
	*a = NULL;
	*d = device_find(p);
	if (*d == NULL)
		return true;
	*a = alloc_at(*d, p);
	return *a != NULL && p >= (*a)->base &&
		p - (*a)->base <= alloc_bytes(*a) &&
		n <= alloc_bytes(*a) - (p - (*a)->base) &&
		(!(*a)->sparse || vmm_usable(p, n, write));
}

bool issue_unsettled(const struct alloc *a)
{
	return a != NULL &&
		alloc_unsettled(device_find(a->base), a->id) != 0;
}

bool issue_copy(struct issue *i, CUdeviceptr dst, CUdeviceptr src, size_t n,
	CUstream s, unsigned how)
{
	struct device *d_dst, *d_src = NULL;
	struct alloc *a_dst, *a_src = NULL;

	init_enter();
	i->kind = ISSUE_PASS;
	i->result = CUDA_SUCCESS;
	i->started = false;
	i->ordered = false;
	i->pieces = false;
	i->splits = false;
	i->missed = NULL;
	i->dst = dst;
	i->src = src;
	i->n = 0;
	i->left = n;
	i->how = how;
	if (n == 0 || __atomic_load_n(&device_nr, __ATOMIC_RELAXED) == 0)
		return true;
	if (!issue_range_alloc(dst, n, true, &d_dst, &a_dst) ||
	    (!(how & ISSUE_FILL) &&
	     !issue_range_alloc(src, n, false, &d_src, &a_src)))
		return issue_refuse(i, CUDA_ERROR_INVALID_VALUE);
	if (a_dst == NULL && a_src == NULL) {
		if (how & ISSUE_SYNC)
			issue_waits(NULL);
		return true;
	}
	if (a_dst != NULL && !(how & ISSUE_FILL)) {
		alloc_span_add(d_dst, a_dst, dst);
		if (how & ISSUE_FROM_HOST)
			alloc_uploaded(d_dst, dst, n);
	}
	section_open();
	i->kind = ISSUE_OPEN;
	if (!issue_unsettled(a_dst) && !issue_unsettled(a_src))
		return true;
	issue_let_go(i);
	issue_sets_init(i, a_dst != NULL ? d_dst : d_src, s);
	if (a_dst != NULL && a_src != NULL && d_dst != d_src)
		i->peer.device = d_src;
	i->set.writes = a_dst != NULL;
	i->pieces = true;
	if (context_is_capturing(s)) {
		log_once(LOG_ERROR, "a copy is refused: its stream is "
			"capturing, and its memory is not all on the GPU");
		return issue_refuse(i, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	}
	return true;
}

/* Bytes from p on that lie in pages of one tier, `most` pages at the most. */
static size_t piece_size(CUdeviceptr p, size_t n, uint32_t most)
{
	struct device *d = device_find(p);
	uint32_t first, page;
	CUdeviceptr end;
	uint64_t tier;

	if (d == NULL)
		return n;
	first = device_page(d, p);
	tier = device_word(d, first) & PAGE_TIER_MASK;
	for (page = first + 1; page < first + most; page++)
		if (device_address(d, page) >= p + n ||
		    (device_word(d, page) & PAGE_TIER_MASK) != tier)
			break;
	end = device_address(d, page);
	return end - p < n ? end - p : n;
}

static bool add_range(struct issue *i, CUdeviceptr p, size_t n)
{
	struct device *d = device_find(p);

	struct page_set *s = d == i->set.device ? &i->set : &i->peer;

	return d == NULL ||
		page_set_add(s, device_page(d, p), device_page(d, p + n - 1));
}

static bool piece_begin(struct issue *i)
{
	uint32_t most = tenancy_most_pages(i->set.device) / 8;
	bool fill = (i->how & ISSUE_FILL) != 0;

	if (i->peer.device != NULL &&
	    most > tenancy_most_pages(i->peer.device) / 8)
		most = tenancy_most_pages(i->peer.device) / 8;
	if (most < 1)
		most = 1;
	if (most > 16)
		most = 16;
	i->n = piece_size(i->dst, i->left, most);
	if (!fill)
		i->n = piece_size(i->src, i->n, most);
	if (!add_range(i, i->dst, i->n) ||
	    (!fill && !add_range(i, i->src, i->n))) {
		issue_sets_clear(i);
		i->result = CUDA_ERROR_OUT_OF_MEMORY;
		return false;
	}
	return issue_hold(i);
}

/*
 * The copy comes behind what its stream was given before, and that may be what
 * fills its source.
 */
static bool source_filled(struct issue *i)
{
	struct context *c = context_current();
	struct event *e;
	CUresult r;

	e = c == NULL ? NULL : event_record(c, i->set.stream, &r);
	if (e == NULL)
		return false;
	r = event_wait(e);
	event_put(e);
	return r == CUDA_SUCCESS;
}

/* Straight to the arena, where that is as good. */
static bool piece_upload(struct issue *i)
{
	struct device *d = device_find(i->dst);

	if ((i->how & (ISSUE_SYNC | ISSUE_FROM_HOST)) !=
	    (ISSUE_SYNC | ISSUE_FROM_HOST) || d == NULL || i->src == 0)
		return false;
	if (!i->ordered)
		i->ordered = source_filled(i);
	if (!i->ordered)
		return false;
	i->n = piece_size(i->dst, i->left, 64);
	return tenancy_upload(d, i->dst, (const void *)(uintptr_t)i->src,
		i->n);
}

static void piece_advance(struct issue *i)
{
	i->dst += i->n;
	i->src += i->n;
	i->left -= i->n;
}

bool issue_next(struct issue *i, CUresult r)
{
	if (!i->pieces) {
		if (i->started)
			return false;
		i->started = true;
		i->n = i->left;
		return true;
	}
	if (i->kind == ISSUE_HELD) {
		issue_let_go(i);
		if (r != CUDA_SUCCESS)
			return false;
		piece_advance(i);
	}
	while (i->left > 0 && piece_upload(i))
		piece_advance(i);
	if (i->left == 0)
		return false;
	if (piece_begin(i))
		return true;
	stat_add(refused, 1);
	return false;
}

CUresult issue_end(struct issue *i, CUresult r)
{
	issue_let_go(i);
	init_leave();
	return r != CUDA_SUCCESS ? r : i->result;
}

/* ---- waits ---- */

static void pump(CUstream s, void (*prefetch)(struct device *d))
{
	int n = __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE);

	init_enter();
	for (int i = 0; i < n; i++) {
		struct device *d = device_list[i];

		if (__atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) == NULL ||
		    !schedule_active(d))
			continue;
		/* Looking at events may be forbidden while it does. */
		if (s != NULL && context_is_capturing(s))
			continue;
		/* What is a launch's context may be that of a copy. */
		if (s != NULL)
			context_know(context_of_launch(s));
		prefetch(d);
		context_know(NULL);
	}
	init_leave();
}

void issue_waits(CUstream s)
{
	pump(s, prefetch_pump);
}

void issue_comes_by(CUstream s)
{
	pump(s, prefetch_try);
}
