/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches in a ring, each between two CUDA events with times.  Events are
 * used again once their stretch has been read.
 */
#include "shim/timing.h"

#include <stdlib.h>
#include <string.h>

#include "shim/api_table.h"

#define RING 1024u		/* stretches out at a time */

struct stretch {
	CUevent begin, end;
	struct context *context;
	uint32_t step;
};

struct timing {
	struct stretch ring[RING];
	uint32_t head, nr;	/* oldest, how many */
	/* Under way. */
	CUevent begin;
	struct context *context;
	CUstream stream;
	uint32_t step;
	/* Not in use, all of one context. */
	CUevent idle[2 * RING + 2];
	uint32_t nr_idle;
	struct context *idle_of;
};

struct timing *timing_create(void)
{
	struct timing *t = calloc(1, sizeof(*t));

	if (t != NULL)
		t->step = TIMING_NONE;
	return t;
}

static void drop(struct timing *t, CUevent e, struct context *c)
{
	if (e == NULL)
		return;
	if (t->nr_idle == 0)
		t->idle_of = c;
	if (c == t->idle_of && t->nr_idle < 2 * RING + 2)
		t->idle[t->nr_idle++] = e;
	else if (!__atomic_load_n(&c->dead, __ATOMIC_ACQUIRE))
		real.cuEventDestroy_v2(e);
}

static CUevent take(struct timing *t, struct context *c)
{
	CUevent e = NULL;

	if (t->nr_idle > 0 && t->idle_of == c)
		return t->idle[--t->nr_idle];
	if (real.cuEventCreate(&e, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
		return NULL;
	return e;
}

void timing_destroy(struct timing *t)
{
	if (t == NULL)
		return;
	for (uint32_t i = 0; i < t->nr; i++) {
		struct stretch *s = &t->ring[(t->head + i) % RING];

		drop(t, s->begin, s->context);
		drop(t, s->end, s->context);
	}
	drop(t, t->begin, t->context);
	for (uint32_t i = 0; i < t->nr_idle; i++)
		if (!__atomic_load_n(&t->idle_of->dead, __ATOMIC_ACQUIRE))
			real.cuEventDestroy_v2(t->idle[i]);
	free(t);
}

void timing_pause(struct timing *t)
{
	CUevent end;

	if (t->begin == NULL)
		return;
	/* A capture would take the event for a part of its graph. */
	if (context_is_capturing(t->stream)) {
		drop(t, t->begin, t->context);
		t->begin = NULL;
		return;
	}
	end = t->nr == RING || __atomic_load_n(&t->context->dead,
		__ATOMIC_ACQUIRE) ? NULL : take(t, t->context);
	if (end != NULL && real.cuEventRecord(end, t->stream) ==
	    CUDA_SUCCESS) {
		t->ring[(t->head + t->nr) % RING] = (struct stretch){
			.begin = t->begin,
			.end = end,
			.context = t->context,
			.step = t->step,
		};
		t->nr++;
	} else {
		drop(t, end, t->context);
		drop(t, t->begin, t->context);
	}
	t->begin = NULL;
}

void timing_stream_ends(struct timing *t, CUstream s)
{
	if (t != NULL && t->begin != NULL && t->stream == s)
		timing_pause(t);
}

void timing_mark(struct timing *t, struct context *c, CUstream s,
	uint32_t step)
{
	if (t->begin != NULL && t->step == step && t->stream == s &&
	    t->context == c)
		return;
	timing_pause(t);
	if (step == TIMING_NONE)
		return;
	t->begin = take(t, c);
	t->context = c;
	t->stream = s;
	t->step = step;
	if (t->begin != NULL && real.cuEventRecord(t->begin, s) !=
	    CUDA_SUCCESS) {
		drop(t, t->begin, c);
		t->begin = NULL;
	}
}

bool timing_take(struct timing *t, uint32_t *step, double *ms)
{
	struct stretch *s = &t->ring[t->head];
	float time = 0;
	CUresult r;

	if (t->nr == 0)
		return false;
	if (__atomic_load_n(&s->context->dead, __ATOMIC_ACQUIRE))
		r = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else
		r = real.cuEventQuery(s->end);
	if (r == CUDA_ERROR_NOT_READY)
		return false;
	if (r == CUDA_SUCCESS)
		r = real.cuEventElapsedTime(&time, s->begin, s->end);
	*step = s->step;
	*ms = r == CUDA_SUCCESS ? time : 0;
	drop(t, s->begin, s->context);
	drop(t, s->end, s->context);
	t->head = (t->head + 1) % RING;
	t->nr--;
	return true;
}

bool timing_pending(const struct timing *t)
{
	return t->nr > 0;
}
