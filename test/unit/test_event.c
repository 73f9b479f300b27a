/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event.c on a driver of this file's own, in which an event is a number and a
 * stream's context is that of its handle.
 */
#include "shim/event.c"

#include "test/unit/unit.h"

struct real_api real;
struct conf conf = { .wait_ms = 1000 };

/* Contexts and streams are numbers: stream 17 is one of context 1. */
#define CONTEXT(n) ((CUcontext)(uintptr_t)(n))
#define STREAM(n) ((CUstream)(uintptr_t)(n))

static uintptr_t stack[4] = { 1 };
static int depth = 1, nr_made;

static CUresult get_current(CUcontext *c)
{
	*c = depth > 0 ? CONTEXT(stack[depth - 1]) : NULL;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext c)
{
	stack[depth++] = (uintptr_t)c;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *c)
{
	*c = CONTEXT(stack[--depth]);
	return CUDA_SUCCESS;
}

static CUresult create(CUevent *e, unsigned int flags)
{
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	nr_made++;
	*e = (CUevent)(stack[depth - 1] << 8 | (uintptr_t)nr_made);
	return CUDA_SUCCESS;
}

static int nr_recorded;
static bool refuse;

/* An event of another context is refused. */
static CUresult record(CUevent e, CUstream s)
{
	__atomic_fetch_add(&nr_recorded, 1, __ATOMIC_RELAXED);
	if (refuse)
		return CUDA_ERROR_UNKNOWN;
	return (uintptr_t)e >> 8 == (uintptr_t)s >> 4 ? CUDA_SUCCESS :
		CUDA_ERROR_INVALID_HANDLE;
}

/* What has not been recorded counts as complete, as with a driver. */
static CUresult query(CUevent e)
{
	return CUDA_SUCCESS;
}

static CUresult stream_wait(CUstream s, CUevent e, unsigned int flags)
{
	return nr_recorded > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct context made(uintptr_t n)
{
	struct context c = { .handle = CONTEXT(n) };

	lock_init(&c.lock, LOCK_EVENTS, "context");
	real.cuCtxGetCurrent = get_current;
	real.cuCtxPushCurrent_v2 = push;
	real.cuCtxPopCurrent_v2 = pop;
	real.cuEventCreate = create;
	real.cuEventRecord = record;
	real.cuEventQuery = query;
	real.cuEventSynchronize = query;
	real.cuStreamWaitEvent = stream_wait;
	return c;
}

static void forget_idle(struct context *c)
{
	struct event *e;

	while ((e = c->idle) != NULL) {
		c->idle = e->next;
		free(e);
	}
}

/* Two at a time, so that both are made; then they come from the list. */
static void record_both(struct context *c, CUstream s)
{
	struct event *e[2];
	CUresult r;

	for (int i = 0; i < 2; i++) {
		e[i] = event_record(c, s, &r);
		ck_assert_ptr_nonnull(e[i]);
		ck_assert_int_eq(r, CUDA_SUCCESS);
	}
	for (int i = 0; i < 2; i++)
		event_put(e[i]);
}

START_TEST(test_current)
{
	struct context c = made(1);

	record_both(&c, STREAM(17));
	record_both(&c, STREAM(18));
	ck_assert_int_eq(nr_made, 2);
	forget_idle(&c);
}
END_TEST

/* A kernel of a library goes to its stream's context, which need not be it. */
START_TEST(test_elsewhere)
{
	struct context c = made(2);

	record_both(&c, STREAM(33));
	ck_assert_int_eq(depth, 1);
	depth = 0;
	record_both(&c, STREAM(34));
	ck_assert_int_eq(nr_made, 2);
	forget_idle(&c);
	record_both(&c, STREAM(35));
	ck_assert_int_eq(depth, 0);
	forget_idle(&c);
}
END_TEST

/* Recorded when somebody asks, once; used again it is like any other. */
START_TEST(test_later)
{
	struct context c = made(1);
	CUresult r = CUDA_ERROR_UNKNOWN;
	struct event *e = event_later(&c, STREAM(17), &r);

	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(r, CUDA_SUCCESS);
	ck_assert_int_eq(nr_recorded, 0);
	ck_assert(event_is_later(e));
	ck_assert_int_eq(event_order(e, STREAM(18)), CUDA_SUCCESS);
	ck_assert_int_eq(event_order(e, STREAM(19)), CUDA_SUCCESS);
	ck_assert(event_query(e));
	ck_assert_int_eq(nr_recorded, 1);
	ck_assert(!event_is_later(e));
	event_put(e);
	record_both(&c, STREAM(17));
	ck_assert_int_eq(nr_recorded, 3);
	forget_idle(&c);
}
END_TEST

/* What could not be recorded is not complete. */
START_TEST(test_later_refused)
{
	struct context c = made(1);
	CUresult r;
	struct event *e = event_later(&c, STREAM(17), &r);

	ck_assert_ptr_nonnull(e);
	refuse = true;
	ck_assert(!event_query(e));
	ck_assert_int_eq(event_wait(e), CUDA_ERROR_UNKNOWN);
	ck_assert_int_eq(event_order(e, STREAM(18)), CUDA_ERROR_UNKNOWN);
	refuse = false;
	ck_assert_int_eq(event_wait(e), CUDA_SUCCESS);
	ck_assert_int_eq(nr_recorded, 4);
	event_put(e);
	forget_idle(&c);
}
END_TEST

static void *asks(void *e)
{
	return event_query(e) ? e : NULL;
}

START_TEST(test_later_threads)
{
	struct context c = made(1);
	pthread_t threads[8];
	struct event *e;
	CUresult r;
	void *got;

	for (int n = 1; n <= 50; n++) {
		e = event_later(&c, STREAM(17), &r);
		ck_assert_ptr_nonnull(e);
		for (int i = 0; i < 8; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, asks,
				e), 0);
		for (int i = 0; i < 8; i++) {
			ck_assert_int_eq(pthread_join(threads[i], &got), 0);
			ck_assert_ptr_eq(got, e);
		}
		ck_assert_int_eq(nr_recorded, n);
		event_put(e);
	}
	forget_idle(&c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("event");
	TCase *t = tcase_create("event");

	tcase_add_test(t, test_current);
	tcase_add_test(t, test_elsewhere);
	tcase_add_test(t, test_later);
	tcase_add_test(t, test_later_refused);
	tcase_add_test(t, test_later_threads);
	suite_add_tcase(s, t);
	return unit_run(s);
}
