/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context records and their streams.  The list of records is guarded by
 * contexts_lock; each record's own lists by its lock.
 */
#include "shim/context.h"

#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/device.h"
#include "shim/log.h"

struct stream {
	CUstream handle;
	unsigned flags;
	struct stream *next;
};

static struct lock contexts_lock =
	LOCK_INITIALIZER(LOCK_HANDLES, "contexts");
static struct context *contexts GUARDED_BY(contexts_lock);

static CUcontext primaries[DEVICE_MAX] GUARDED_BY(contexts_lock);

static int nr_alive;		/* atomic; contexts that are not dead */
/* Atomic; changes when a stream's handle may come to mean another one. */
static uint32_t streams_gen = 1;

bool context_several(void)
{
	return __atomic_load_n(&nr_alive, __ATOMIC_RELAXED) > 1;
}

static struct context *find_locked(CUcontext handle) REQUIRES(&contexts_lock)
{
	for (struct context *c = contexts; c != NULL; c = c->next)
		if (c->handle == handle && !c->dead)
			return c;
	return NULL;
}

struct context *context_find(CUcontext handle)
{
	struct context *c;

	lock_acquire(&contexts_lock);
	c = find_locked(handle);
	lock_release(&contexts_lock);
	return c;
}

struct context *context_note(CUcontext handle, CUdevice ordinal)
{
	struct context *c, *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	made->handle = handle;
	made->ordinal = ordinal;

	lock_init(&made->lock, LOCK_EVENTS, "context");
	lock_acquire(&contexts_lock);
	c = find_locked(handle);
	if (c == NULL) {
		c = made;
		made->next = contexts;
		contexts = made;
		__atomic_fetch_add(&nr_alive, 1, __ATOMIC_SEQ_CST);
	}
	lock_release(&contexts_lock);
	if (c != made)
		free(made);	/* there is one already */
	return c;
}

/* What is current, where this is known without asking. */
static __thread struct context *known;

void context_know(struct context *c)
{
	known = c;
}

struct context *context_current(void)
{
	CUcontext handle = NULL;
	CUdevice ordinal;
	struct context *c;

	if (known != NULL)
		return known;
	if (real.cuCtxGetCurrent(&handle) != CUDA_SUCCESS || handle == NULL)
		return NULL;
	c = context_find(handle);
	if (c != NULL)
		return c;
	if (real.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS)
		return NULL;
	return context_note(handle, ordinal);
}

bool context_ready(struct context *c)
{
	CUstream copy = NULL, side = NULL;
	CUresult r;
	bool mine;

	if (__atomic_load_n(&c->ready, __ATOMIC_ACQUIRE))
		return true;
	r = real.cuStreamCreate(&copy, CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS) {
		r = real.cuStreamCreate(&side, CU_STREAM_NON_BLOCKING);
		if (r != CUDA_SUCCESS)
			real.cuStreamDestroy_v2(copy);
	}
	if (r != CUDA_SUCCESS) {
		log_err("no streams of our own in context %p: %s",
			(void *)c->handle, api_result_name(r));
		return false;
	}
	lock_acquire(&c->lock);
	mine = !c->ready;
	if (mine) {
		c->copy = copy;
		c->side = side;
		__atomic_store_n(&c->ready, true, __ATOMIC_RELEASE);
	}
	lock_release(&c->lock);
	if (!mine) {
		real.cuStreamDestroy_v2(copy);
		real.cuStreamDestroy_v2(side);
	}
	return true;
}

struct context *context_of_device(CUdevice ordinal)
{
	struct context *c;

	lock_acquire(&contexts_lock);
	for (c = contexts; c != NULL; c = c->next)
		if (c->ordinal == ordinal && !c->dead)
			break;
	lock_release(&contexts_lock);
	return c;
}

struct context *context_primary(CUdevice ordinal)
{
	struct context *c = NULL;

	if (ordinal < 0 || ordinal >= DEVICE_MAX)
		return NULL;
	lock_acquire(&contexts_lock);
	if (primaries[ordinal] != NULL)
		c = find_locked(primaries[ordinal]);
	lock_release(&contexts_lock);
	return c;
}

void context_primary_retained(CUdevice ordinal, CUcontext handle)
{
	if (ordinal < 0 || ordinal >= DEVICE_MAX)
		return;
	lock_acquire(&contexts_lock);
	primaries[ordinal] = handle;
	lock_release(&contexts_lock);
	context_note(handle, ordinal);
}

bool context_is_primary(CUcontext handle)
{
	bool found = false;

	lock_acquire(&contexts_lock);
	for (int i = 0; i < DEVICE_MAX; i++)
		found |= handle != NULL && primaries[i] == handle;
	lock_release(&contexts_lock);
	return found;
}

/* Marks c dead and drops what it lists; `alive`: the driver still knows it. */
static void forget(struct context *c, bool alive)
{
	struct event *e, **orphans;
	struct stream *s;
	size_t nr_orphans;

	lock_acquire(&c->lock);
	if (!__atomic_exchange_n(&c->dead, true, __ATOMIC_ACQ_REL))
		__atomic_fetch_sub(&nr_alive, 1, __ATOMIC_SEQ_CST);
	e = c->idle;
	c->idle = NULL;
	s = c->streams;
	c->streams = NULL;
	__atomic_fetch_add(&streams_gen, 1, __ATOMIC_SEQ_CST);
	orphans = c->orphans;
	nr_orphans = c->nr_orphans;
	c->orphans = NULL;
	c->nr_orphans = c->max_orphans = 0;
	lock_release(&c->lock);
	for (size_t i = 0; i < nr_orphans; i++)
		event_put(orphans[i]);
	free(orphans);
	while (e != NULL) {
		struct event *next = e->next;

		if (alive)
			real.cuEventDestroy_v2(e->handle);
		free(e);
		e = next;
	}
	while (s != NULL) {
		struct stream *next = s->next;

		free(s);
		s = next;
	}
	/*
	 * The record itself stays: events that slots still refer to point to
	 * it.  A new context with the same handle gets a record of its own.
	 */
}

static CUresult quiesce_one(struct context *c);

void context_retire(struct context *c)
{
	/* From the mark on nobody waits for its work any more. */
	quiesce_one(c);
	if (__atomic_load_n(&c->ready, __ATOMIC_ACQUIRE)) {
		real.cuStreamSynchronize(c->copy);
		real.cuStreamSynchronize(c->side);
		real.cuStreamDestroy_v2(c->copy);
		real.cuStreamDestroy_v2(c->side);
	}
	forget(c, true);
}

void context_lost(struct context *c)
{
	forget(c, false);
}

static bool missed;	/* atomic; a stream of nobody knows which context */

void context_stream_missed(void)
{
	log_err("a stream was made in an unknown context; memory is moved only "
		"when whole contexts are idle");
	__atomic_store_n(&missed, true, __ATOMIC_SEQ_CST);
}

void context_stream_created(struct context *c, CUstream handle, unsigned flags)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		log_err("no memory to remember a stream; memory is moved only "
			"when the whole context is idle");
		__atomic_store_n(&c->unlisted, true, __ATOMIC_SEQ_CST);
		return;
	}
	s->handle = handle;
	s->flags = flags;
	lock_acquire(&c->lock);
	s->next = c->streams;
	c->streams = s;
	lock_release(&c->lock);
}

struct context *context_of_stream(CUstream handle)
{
	struct context *c;

	lock_acquire(&contexts_lock);
	c = contexts;
	lock_release(&contexts_lock);
	for (; c != NULL; c = c->next) {
		bool found = false;

		lock_acquire(&c->lock);
		for (struct stream *s = c->streams; s != NULL; s = s->next)
			found |= s->handle == handle;
		lock_release(&c->lock);
		if (found)
			return c;
	}
	return NULL;
}

#define MEMO 4

struct context *context_of_launch(CUstream s)
{
	static __thread struct {
		CUstream stream;
		uint32_t gen;
		struct context *context;
	} memo[MEMO];
	uint32_t gen = __atomic_load_n(&streams_gen, __ATOMIC_ACQUIRE);
	uint32_t i = (uint32_t)((uintptr_t)s >> 4 ^ (uintptr_t)s >> 8) % MEMO;
	struct context *c;

	if (s == NULL || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD)
		return context_current();
	if (memo[i].stream == s && memo[i].gen == gen)
		return memo[i].context;
	c = context_of_stream(s);
	if (c == NULL)
		return context_current();
	memo[i].stream = s;
	memo[i].gen = gen;
	memo[i].context = c;
	return c;
}

/* Keeps e until it is complete (takes the reference); false: no memory. */
static bool orphan_add(struct context *c, struct event *e) REQUIRES(&c->lock)
{
	struct event **grown;

	if (c->nr_orphans == c->max_orphans) {
		grown = realloc(c->orphans,
			(c->max_orphans * 2 + 8) * sizeof(*grown));
		if (grown == NULL)
			return false;
		c->orphans = grown;
		c->max_orphans = c->max_orphans * 2 + 8;
	}
	c->orphans[c->nr_orphans++] = e;
	return true;
}

void context_stream_destroyed(struct context *c, CUstream handle)
{
	struct stream **at, *found = NULL;
	struct event *e;
	bool kept;
	CUresult r;

	/* Its work goes on after the handle is gone. */
	e = event_record(c, handle, &r);
	if (e == NULL)
		real.cuStreamSynchronize(handle);
	/* In one step, so that who waits for all work sees one or the other. */
	lock_acquire(&c->lock);
	__atomic_fetch_add(&c->epoch, 1, __ATOMIC_RELEASE);
	for (at = &c->streams; *at != NULL; at = &(*at)->next)
		if ((*at)->handle == handle) {
			found = *at;
			*at = found->next;
			break;
		}
	__atomic_fetch_add(&streams_gen, 1, __ATOMIC_SEQ_CST);
	kept = e == NULL || orphan_add(c, e);
	lock_release(&c->lock);
	free(found);
	if (!kept) {
		event_wait(e);
		event_put(e);
	}
}

unsigned context_epoch(struct context *c)
{
	return __atomic_load_n(&c->epoch, __ATOMIC_ACQUIRE);
}

/* ---- everything issued so far ---- */

/*
 * Events for every stream of c, into *out (owned by the caller, freed with
 * free()).  An event on the legacy stream stands for all blocking streams and
 * all threads' default streams.
 */
static size_t quiesce_collect(struct context *c, struct event ***out,
	unsigned *epoch, CUresult *r)
{
	struct event **events = NULL;
	CUstream *handles = NULL;
	size_t n = 0, nr_events = 0, kept = 0;

	*out = NULL;
	lock_acquire(&c->lock);
	for (struct stream *s = c->streams; s != NULL; s = s->next)
		n++;
	handles = malloc((n + 1) * sizeof(*handles));
	events = malloc((n + 1 + c->nr_orphans) * sizeof(*events));
	if (handles == NULL || events == NULL) {
		lock_release(&c->lock);
		*r = CUDA_ERROR_OUT_OF_MEMORY;
		goto out;
	}
	n = 0;
	handles[n++] = CU_STREAM_LEGACY;
	for (struct stream *s = c->streams; s != NULL; s = s->next)
		if (s->flags & CU_STREAM_NON_BLOCKING)
			handles[n++] = s->handle;
	/* Others who quiesce now need them too: only the complete ones go. */
	for (size_t i = 0; i < c->nr_orphans; i++) {
		struct event *e = c->orphans[i];

		events[nr_events++] = e;
		if (!event_is_done(e))
			c->orphans[kept++] = event_get(e);
	}
	c->nr_orphans = kept;
	*epoch = c->epoch;
	lock_release(&c->lock);

	for (size_t i = 0; i < n; i++) {
		struct event *e = event_record(c, handles[i], r);

		if (e != NULL)
			events[nr_events++] = e;
		else if (*r != CUDA_ERROR_INVALID_HANDLE &&
			 *r != CUDA_ERROR_INVALID_CONTEXT)
			break;	/* destroyed meanwhile: see quiesce_one() */
		*r = CUDA_SUCCESS;
	}
out:
	free(handles);
	*out = events;
	return nr_events;
}

static CUresult quiesce_one(struct context *c)
{
	struct event **events;
	CUresult r = CUDA_SUCCESS, w;
	CUcontext popped;
	unsigned epoch = 0;
	size_t n;

	r = real.cuCtxPushCurrent_v2(c->handle);
	if (r == CUDA_ERROR_INVALID_CONTEXT ||
	    r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return CUDA_SUCCESS;	/* gone, and its work with it */
	if (r != CUDA_SUCCESS)
		return r;
	if (__atomic_load_n(&c->unlisted, __ATOMIC_SEQ_CST) ||
	    __atomic_load_n(&missed, __ATOMIC_SEQ_CST)) {
		/* It might wait for this very thread. */
		r = context_has_host_functions() ? CUDA_ERROR_LAUNCH_TIMEOUT :
			real.cuCtxSynchronize();
		if (r != CUDA_SUCCESS) {
			real.cuCtxPopCurrent_v2(&popped);
			return r;
		}
	}
	do {
		n = quiesce_collect(c, &events, &epoch, &r);
		for (size_t i = 0; i < n; i++) {
			/* One that takes too long is as good as all. */
			w = r == CUDA_ERROR_LAUNCH_TIMEOUT ? r :
				event_wait(events[i]);
			if (r == CUDA_SUCCESS)
				r = w;
			event_put(events[i]);
		}
		free(events);
		/* What a destroyed stream left is on the list only now. */
	} while (r == CUDA_SUCCESS && epoch != context_epoch(c));
	real.cuCtxPopCurrent_v2(&popped);
	return r;
}

/* What fails for a reason of the moment must not free memory in use. */
static CUresult quiesce_twice(struct context *c)
{
	CUresult r = quiesce_one(c);

	return r == CUDA_SUCCESS || r == CUDA_ERROR_LAUNCH_TIMEOUT ? r :
		quiesce_one(c);
}

CUresult context_quiesce(struct device *d)
{
	struct context *c;
	CUresult r = CUDA_SUCCESS;

	lock_acquire(&contexts_lock);
	c = contexts;
	lock_release(&contexts_lock);
	/* Records are never freed and never relinked. */
	for (; c != NULL && r == CUDA_SUCCESS; c = c->next)
		if (c->ordinal == d->ordinal &&
		    !__atomic_load_n(&c->dead, __ATOMIC_ACQUIRE))
			r = quiesce_twice(c);
	return r;
}
