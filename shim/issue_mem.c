/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's memory calls, contexts, streams and modules on their way to
 * state: which allocations are managed, and what ends with a context.
 */
#include <stdio.h>
#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/chunk.h"
#include "shim/conf.h"
#include "shim/init.h"
#include "shim/issue_int.h"
#include "shim/kernarg.h"
#include "shim/log.h"
#include "shim/phase.h"
#include "shim/schedule.h"
#include "shim/stats.h"
#include "shim/status.h"
#include "shim/unit.h"

/* ---- devices ---- */

static struct lock start_lock = LOCK_INITIALIZER(LOCK_INIT, "start");

struct device *issue_device(void)
{
	struct device *d = device_current();
	int r = 0;

	if (d == NULL || __atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) != NULL)
		return d;
	lock_acquire(&start_lock);
	if (d->chunks == NULL)
		r = chunk_start(d);
	if (r == 0 && d->allocs == NULL)
		r = alloc_start(d);
	if (r == 0 && d->tenancy == NULL)
		r = tenancy_start(d);
	lock_release(&start_lock);
	if (r != 0)
		log_once(LOG_ERROR, "no host memory for device %d's tables: "
			"its memory stays with the driver", d->ordinal);
	return r == 0 ? d : NULL;
}

/* ---- the last word ---- */

/* For tests of failures: what should be 0 once the program freed all. */
static void say_left(void)
{
	uint64_t lost = 0;

	for (int n = 0; n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE); n++)
		if (__atomic_load_n(&device_list[n]->tenancy,
		    __ATOMIC_ACQUIRE) != NULL)
			lost += tenancy_lost(device_list[n]);
	log_dbg("left: %llu bytes lost, %llu of the arena, %llu held",
		(unsigned long long)lost, (unsigned long long)arena_live(),
		(unsigned long long)stat_get(gpu_bytes));
}

static void summary(void)
{
	char managed[16], peak[16], in[16], out[16], pinned[16];

	say_left();
	if (stat_get(managed_allocs) == 0) {
		log_info("nothing was managed: none of %llu allocations had "
			"%s (min_alloc) or more on a device that can be "
			"managed",
			(unsigned long long)stat_get(native_allocs),
			conf_size_text(conf.min_alloc, managed,
			sizeof(managed)));
		return;
	}
	log_info("managed %s in %llu allocations with %s of GPU memory; %llu "
		"of %llu launches needed swapped data; %s copied to the GPU, "
		"%s back; %s of host memory pinned; %llu ms waited",
		conf_size_text(stat_get(managed_peak), managed,
			sizeof(managed)),
		(unsigned long long)stat_get(managed_allocs),
		conf_size_text(stat_get(gpu_peak), peak, sizeof(peak)),
		(unsigned long long)stat_get(launches_streamed),
		(unsigned long long)stat_get(launches),
		conf_size_text(stat_get(fetch_bytes), in, sizeof(in)),
		conf_size_text(stat_get(writeback_bytes), out, sizeof(out)),
		conf_size_text(stat_get(arena_pinned), pinned, sizeof(pinned)),
		(unsigned long long)(stat_get(wait_ns) / 1000000));
	if (stat_get(unmanaged_launches) > 0)
		log_info("%llu launches had parameters that could not be read",
			(unsigned long long)stat_get(unmanaged_launches));
}

bool issue_start(void)
{
	init_at_exit(summary);
	phase_start();
	return true;
}

/* ---- allocating ---- */

void issue_say_full(struct device *d, size_t size, const char *call)
{
	char request[16], gpu[16], budget[16], live[16], capacity[16];
	struct status_failure f = {
		.request = size,
		.gpu_used = stat_get(gpu_bytes),
		.gpu_budget = d->budget,
		.arena_used = arena_live(),
		.arena_capacity = arena_capacity(),
	};

	snprintf(f.call, sizeof(f.call), "%s", call);
	snprintf(f.key, sizeof(f.key), "%s", d->budget == 0 ? "gpu_budget" :
		alloc_fits(d, size) ? "arena" : "window");
	stat_add(out_of_memory, 1);
	status_note_failure(&f);
	log_err("an allocation of %s failed: %s of the GPU budget of %s "
		"(gpu_budget) and %s of the arena of %s (arena) are in use; "
		"%s is too small",
		conf_size_text(size, request, sizeof(request)),
		conf_size_text(stat_get(gpu_bytes), gpu, sizeof(gpu)),
		conf_size_text(d->budget, budget, sizeof(budget)),
		conf_size_text(arena_live(), live, sizeof(live)),
		conf_size_text(arena_capacity(), capacity, sizeof(capacity)),
		f.key);
}

/* What kind of allocation the program asked for. */
struct wish {
	size_t size;
	bool async;		/* in stream order */
	/* A pitch allocation: its width and element, and the driver's pitch. */
	size_t width, height;
	unsigned int element;
	size_t pitch;
};

static CUresult twin_try(struct wish *w, CUdeviceptr *twin)
{
	if (w->width == 0)
		return real.cuMemAlloc_v2(twin, 1);
	/* One row of the driver's own tells the pitch. */
	return real.cuMemAllocPitch_v2(twin, &w->pitch, w->width, 1,
		w->element);
}

/*
 * Every managed allocation owns a small native one: freeing it gives the free
 * the driver's own semantics, and it ends with the context as a plain
 * allocation would.
 */
static CUresult twin_create(struct wish *w, CUdeviceptr *twin)
{
	CUresult r = twin_try(w, twin);

	if (r == CUDA_ERROR_OUT_OF_MEMORY && issue_make_room(1))
		r = twin_try(w, twin);
	if (r == CUDA_SUCCESS && w->width != 0) {
		if (w->pitch > SIZE_MAX / w->height) {
			real.cuMemFree_v2(*twin);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		w->size = w->pitch * w->height;
	}
	return r;
}

static CUresult alloc_make(struct device *d, struct context *c,
	struct wish *w, CUdeviceptr *p)
{
	CUdeviceptr twin = 0;
	struct alloc *a;
	CUresult r = w->async ? CUDA_SUCCESS : twin_create(w, &twin);

	if (r != CUDA_SUCCESS)
		return r;
	a = alloc_create(d, c, w->size);
	r = a == NULL ? CUDA_ERROR_OUT_OF_MEMORY : tenancy_back(d, a);
	if (r != CUDA_SUCCESS) {
		if (a != NULL)
			alloc_destroy(d, a);
		if (twin != 0)
			real.cuMemFree_v2(twin);
		return r;
	}
	a->twin = twin;
	a->async = w->async;
	issue_pool_taken(d, a);
	alloc_publish(d, a);
	*p = a->base;
	status_note_managed();
	stat_add(managed_allocs, 1);
	stat_add(managed_bytes, w->size);
	stat_max(managed_peak, stat_get(managed_bytes));
	phase_allocated(d);
	return CUDA_SUCCESS;
}

static CUresult alloc_end(struct device *d, struct alloc *a, bool quiet,
	bool alive)
{
	CUdeviceptr twin = a->twin;
	CUresult r = CUDA_SUCCESS;

	a->lost = tenancy_drop(d, a, quiet) != CUDA_SUCCESS;
	stat_sub(managed_bytes, a->size);
	issue_pool_freed(d, a);
	alloc_destroy(d, a);
	phase_freed(d);
	if (twin != 0 && alive)
		r = real.cuMemFree_v2(twin);
	return r;
}

/*
 * Takes back what was freed in stream order; all of it, with waiting, where
 * `wait`.  true: there was some.
 */
static bool reap(struct device *d, bool wait)
{
	struct alloc *a;
	bool any = false;

	while ((a = alloc_freed_take(d, wait)) != NULL) {
		if (event_wait(a->freed) == CUDA_ERROR_LAUNCH_TIMEOUT) {
			alloc_freed_add(d, a, a->freed);
			break;
		}
		event_put(a->freed);
		a->freed = NULL;
		alloc_end(d, a, true, true);
		any = true;
	}
	return any;
}

static CUresult alloc_any(CUdeviceptr *p, struct wish *w, bool *native)
{
	struct device *d;
	struct context *c;
	CUresult r;

	*native = true;
	if (p == NULL || w->size == 0 || w->size < conf.min_alloc)
		return CUDA_SUCCESS;
	init_enter();
	d = issue_device();
	c = d == NULL ? NULL : context_current();
	if (c == NULL) {
		init_leave();
		return CUDA_SUCCESS;
	}
	*native = false;
	reap(d, false);
	r = alloc_make(d, c, w, p);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && reap(d, true))
		r = alloc_make(d, c, w, p);
	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		issue_say_full(d, w->size, "cuMemAlloc");
	init_leave();
	return r;
}

CUresult issue_alloc(CUdeviceptr *p, size_t size, bool *native)
{
	struct wish w = { .size = size };

	return alloc_any(p, &w, native);
}

CUresult issue_alloc_pitch(CUdeviceptr *p, size_t *pitch, size_t width,
	size_t height, unsigned int element, bool *native)
{
	struct wish w = {
		.size = width * height,
		.width = width,
		.height = height,
		.element = element,
	};
	CUresult r;

	*native = true;
	if (pitch == NULL || width == 0)
		return CUDA_SUCCESS;
	r = alloc_any(p, &w, native);
	if (!*native && r == CUDA_SUCCESS)
		*pitch = w.pitch;
	return r;
}

CUresult issue_alloc_async(CUdeviceptr *p, size_t size, CUstream s,
	bool *native)
{
	struct wish w = { .size = size, .async = true };

	*native = true;
	/*
	 * In a capture it becomes a node of the graph, which is the driver's;
	 * what comes from a pool of the program's own may be shared.
	 */
	if (context_is_capturing(s) || issue_pool_chosen())
		return CUDA_SUCCESS;
	return alloc_any(p, &w, native);
}

CUresult issue_free_async(CUdeviceptr p, CUstream s, bool *native)
{
	struct device *d = device_find(p);
	struct alloc *a = d == NULL ? NULL : alloc_find(d, p);
	struct context *c;
	struct event *e;
	CUresult r = CUDA_ERROR_INVALID_CONTEXT;

	*native = d == NULL;
	if (d == NULL)
		return CUDA_SUCCESS;
	if (a == NULL || !a->async || a->base != p)
		return CUDA_ERROR_INVALID_VALUE;
	init_enter();
	c = context_current();
	e = c == NULL ? NULL : event_record(c, s, &r);
	if (e != NULL) {
		a = alloc_claim(d, p);
		if (a != NULL) {
			issue_pool_freed(d, a);
			alloc_freed_add(d, a, e);
			r = CUDA_SUCCESS;
		} else {
			event_put(e);
			r = CUDA_ERROR_INVALID_VALUE;
		}
		reap(d, false);
	}
	init_leave();
	return r;
}

CUresult issue_free(CUdeviceptr p, bool *native)
{
	struct device *d = device_find(p);
	struct alloc *a;
	CUresult r;

	*native = d == NULL;
	if (d == NULL)
		return CUDA_SUCCESS;
	a = alloc_claim(d, p);
	if (a == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	init_enter();
	/* The driver has its say first: where it refuses, nothing has gone. */
	r = context_current() == NULL ? CUDA_ERROR_INVALID_CONTEXT :
		a->twin == 0 ? CUDA_SUCCESS : real.cuMemFree_v2(a->twin);
	if (r == CUDA_SUCCESS) {
		a->twin = 0;
		r = alloc_end(d, a, false, true);
		reap(d, false);
	} else {
		alloc_publish(d, a);
	}
	init_leave();
	return r;
}

bool issue_make_room(size_t size)
{
	struct device *d = device_current();
	uint64_t got;
	char text[16];

	if (d == NULL || __atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) == NULL)
		return false;
	init_enter();
	reap(d, true);
	got = tenancy_reclaim(d, size);
	init_leave();
	if (got > 0)
		log_dbg("%s given back to the driver for the program's own "
			"allocation", conf_size_text(got, text, sizeof(text)));
	return got > 0;
}

void issue_native(CUresult r, const CUdeviceptr *p, size_t size)
{
	if (r != CUDA_SUCCESS)
		return;
	stat_add(native_allocs, 1);
	stat_add(native_bytes, size);
}

void issue_native_freed(void)
{
	/* There is room again, perhaps: let the budget grow back. */
	for (int n = 0; n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE);
	     n++) {
		struct device *d = device_list[n];

		lock_acquire(&d->pool_lock);
		d->budget = d->budget_most;
		lock_release(&d->pool_lock);
	}
}

/* ---- answers ---- */

void issue_memory_info(size_t *free_bytes, size_t total)
{
	struct device *d = device_current();
	uint64_t n;

	if (d == NULL || __atomic_load_n(&d->tenancy,
	    __ATOMIC_ACQUIRE) == NULL)
		return;
	init_enter();
	reap(d, false);
	init_leave();
	n = *free_bytes + (conf.report_memory == REPORT_PHYSICAL ?
		tenancy_idle(d) : tenancy_evictable(d));
	if (conf.report_memory == REPORT_VIRTUAL)
		n += arena_room();
	*free_bytes = n < total ? n : total;
}

/* ---- contexts, streams, modules ---- */

void issue_stream_created(CUstream s, unsigned flags)
{
	struct context *c;

	init_enter();
	c = context_current();
	if (c != NULL)
		context_stream_created(c, s, flags);
	else
		context_stream_missed();
	init_leave();
}

void issue_stream_destroyed(CUstream s)
{
	struct context *c = context_of_stream(s);
	CUcontext popped;

	if (c == NULL)
		return;
	init_enter();
	if (real.cuCtxPushCurrent_v2(c->handle) == CUDA_SUCCESS) {
		for (int n = 0; n < __atomic_load_n(&device_nr,
		     __ATOMIC_ACQUIRE); n++)
			if (__atomic_load_n(&device_list[n]->tenancy,
			    __ATOMIC_ACQUIRE) != NULL) {
				phase_stream_ends(device_list[n], s);
				unit_stream_ends(device_list[n], s);
			}
		context_stream_destroyed(c, s);
		real.cuCtxPopCurrent_v2(&popped);
	}
	init_leave();
}

static void free_all_of(struct context *c, bool alive)
{
	for (int n = 0; n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE);
	     n++) {
		struct device *d = device_list[n];
		struct alloc *a;

		if (__atomic_load_n(&d->tenancy, __ATOMIC_ACQUIRE) == NULL)
			continue;
		schedule_context_ends(d, c);
		reap(d, true);
		while ((a = alloc_claim_of(d, c)) != NULL)
			alloc_end(d, a, false, alive);
	}
}

void issue_context_created(CUcontext handle, CUdevice ordinal)
{
	context_note(handle, ordinal);
}

static void context_ends(CUcontext handle)
{
	struct context *c = context_find(handle);
	CUcontext popped;

	/* Modules end with it, and handles of functions come back. */
	kernarg_forget_all();
	if (c == NULL)
		return;
	init_enter();
	if (real.cuCtxPushCurrent_v2(handle) == CUDA_SUCCESS) {
		free_all_of(c, true);
		context_retire(c);
		real.cuCtxPopCurrent_v2(&popped);
	}
	init_leave();
}

void issue_context_ends(CUcontext handle)
{
	/* The driver refuses that, so nothing ends. */
	if (!context_is_primary(handle))
		context_ends(handle);
}

void issue_context_attached(CUcontext handle)
{
	struct context *c = context_find(handle);

	if (c != NULL)
		__atomic_fetch_add(&c->attached, 1, __ATOMIC_RELAXED);
}

void issue_context_detaches(CUcontext handle)
{
	struct context *c = context_find(handle);
	unsigned n = c == NULL ? 0 :
		__atomic_load_n(&c->attached, __ATOMIC_RELAXED);

	while (n > 0)
		if (__atomic_compare_exchange_n(&c->attached, &n, n - 1, false,
		    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	issue_context_ends(handle);
}

void issue_primary_retained(CUdevice ordinal, CUcontext handle)
{
	context_primary_retained(ordinal, handle);
}

void issue_primary_resets(CUdevice ordinal)
{
	struct context *c = context_primary(ordinal);

	if (c != NULL)
		context_ends(c->handle);
}

void issue_primary_released(CUdevice ordinal)
{
	struct context *c = context_primary(ordinal);
	unsigned int flags;
	int active = 1;

	if (c == NULL)
		return;
	init_enter();
	if (real.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) ==
	    CUDA_SUCCESS && !active) {
		kernarg_forget_all();
		/* The context has gone; its events count as complete. */
		context_lost(c);
		free_all_of(c, false);
	}
	init_leave();
}

void issue_kernel_known(CUkernel k)
{
	kernarg_kernel_known(k);
}

void issue_host_function(void)
{
	context_host_function();
}

void issue_module_unloaded(void)
{
	kernarg_forget_all();
}
