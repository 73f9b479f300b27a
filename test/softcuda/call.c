/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry and exit of driver calls, see call.h.  Holds the one lock that guards
 * the whole driver: a model of a GPU needs to be right, not parallel.
 */
#include "test/softcuda/call.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/sim.h"
#include "test/softcuda/stream.h"
#include "test/softcuda/trace.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static __thread struct thread *self;
static __thread bool forbidden;
static unsigned nr_threads_seen;
static atomic_uint nr_threads;		/* alive and seen */
static atomic_ullong nr_calls;
static atomic_bool initialized;
static bool forked;			/* a child of a process with cuInit */
static bool ended;			/* the driver's destructor has run */

/* All host threads as one actor, see race.h. */
static struct race_clock host_clock;
static uint32_t host_actor = UINT32_MAX;

/* The next failure that softcuda_fail_next asked for. */
static struct {
	bool armed;
	char name[64];
	uint64_t skip;
	CUresult code;
} wanted_failure;
static uint64_t nr_failable, nr_named;

static void lock_for_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void disarm_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	forked = atomic_load(&initialized);
	/* Only this thread is left. */
	atomic_store(&nr_threads, self ? 1 : 0);
}

static void thread_exit(void *arg)
{
	struct thread *t = arg;

	atomic_fetch_sub(&nr_threads, 1);
	if (forked)
		return;
	pthread_mutex_lock(&lock);
	stream_thread_exit(t);
	race_clock_free(&t->own_clock);
	free(t->stack);
	free(t);
	pthread_mutex_unlock(&lock);
	self = NULL;
}

static void init_once(void)
{
	pthread_key_create(&thread_key, thread_exit);
	pthread_atfork(lock_for_fork, unlock_in_parent, disarm_in_child);
}

/* A thread's first call; its number seeds its share of the preemption. */
static void thread_enter(void)
{
	struct thread *t = object_alloc(sizeof(*t));

	pthread_once(&once, init_once);
	pthread_mutex_lock(&lock);
	t->number = ++nr_threads_seen;
	t->own_actor = UINT32_MAX;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&nr_threads, 1);
	self = t;
	pthread_setspecific(thread_key, t);
}

#define PREEMPT_MAX_NS 20000000u

static uint64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct preempt {
	bool on;
	unsigned long long seed, calls;
};

/* Read here and not by knobs.c: it must work before cuInit. */
static const struct preempt *preempt_config(void)
{
	static struct preempt config;
	static atomic_bool known;
	const char *text;
	char *end;

	if (atomic_load_explicit(&known, memory_order_acquire))
		return &config;
	pthread_mutex_lock(&lock);
	text = getenv("SOFTCUDA_PREEMPT");
	if (text && *text && !atomic_load(&known)) {
		config.seed = strtoull(text, &end, 0);
		config.calls = *end == ',' ? strtoull(end + 1, NULL, 0) : 8;
		config.on = true;
	}
	atomic_store_explicit(&known, true, memory_order_release);
	pthread_mutex_unlock(&lock);
	return &config;
}

/*
 * One call in four waits until other threads have made some calls, or 20 ms:
 * what could happen between two instructions of the program now does.
 */
static void preempt(void)
{
	const struct preempt *p = preempt_config();
	const struct timespec nap = { 0, 50000 };
	unsigned long long until;
	uint64_t deadline;

	if (!p->on || atomic_load(&nr_threads) < 2)
		return;
	if (!self->preempt_state)
		self->preempt_state = (p->seed + 1) * 0x9e3779b97f4a7c15u
			^ (uint64_t)self->number * 0xd1b54a32d192ed03u;
	self->preempt_state ^= self->preempt_state << 13;
	self->preempt_state ^= self->preempt_state >> 7;
	self->preempt_state ^= self->preempt_state << 17;
	if ((self->preempt_state >> 33) & 3)
		return;
	until = atomic_load(&nr_calls) + p->calls;
	deadline = wall_ns() + PREEMPT_MAX_NS;
	while (atomic_load(&nr_calls) < until && wall_ns() < deadline)
		nanosleep(&nap, NULL);
}

/* "12" or "12:700" behind `text`. */
static bool parse_count(const char *text, uint64_t *nth, CUresult *code)
{
	char *end;

	*nth = strtoull(text, &end, 0);
	*code = CUDA_ERROR_OUT_OF_MEMORY;
	if (*end == ':')
		*code = (CUresult)strtol(end + 1, &end, 0);
	return !*end && *nth;
}

/* Threads that a test has stopped; those of an older turn have been let go. */
static atomic_uint hold_turn, nr_held;
static __thread char held_name[64];
static __thread unsigned held_turn;

static void wait_held(const char *name)
{
	const struct timespec nap = { 0, 200000 };

	if (!held_name[0] || strcmp(held_name, name))
		return;
	held_name[0] = 0;
	atomic_fetch_add(&nr_held, 1);
	while (held_turn == atomic_load(&hold_turn))
		nanosleep(&nap, NULL);
	atomic_fetch_sub(&nr_held, 1);
}

static CUresult injected_by_knob(const char *name)
{
	const char *colon;
	CUresult code;
	uint64_t nth;

	nr_failable++;
	if (knobs.fail_nth && parse_count(knobs.fail_nth, &nth, &code)
	    && nth == nr_failable)
		return code;
	colon = knobs.fail_call ? strchr(knobs.fail_call, ':') : NULL;
	if (colon && strlen(name) == (size_t)(colon - knobs.fail_call)
	    && !strncmp(name, knobs.fail_call, strlen(name))
	    && parse_count(colon + 1, &nth, &code) && nth == ++nr_named)
		return code;
	return CUDA_SUCCESS;
}

static CUresult injected(const char *name)
{
	CUresult r = injected_by_knob(name);

	if (r || !wanted_failure.armed || (wanted_failure.name[0]
	    && strcmp(wanted_failure.name, name)))
		return r;
	if (wanted_failure.skip--)
		return CUDA_SUCCESS;
	wanted_failure.armed = false;
	return wanted_failure.code;
}

static CUresult check_state(struct call *c, unsigned need)
{
	CUresult r;

	if (forked || !atomic_load(&initialized))
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ended)
		return CUDA_ERROR_DEINITIALIZED;
	if (!(need & CALL_FREES)) {
		r = injected(c->name);
		if (r) {
			report_note("%s: failure %d injected", c->name, r);
			return r;
		}
	}
	if (!(need & CALL_CONTEXT))
		return CUDA_SUCCESS;
	c->context = context_current(c->thread);
	return context_check(c->context);
}

CUresult call_begin(struct call *c, const char *name, unsigned need)
{
	if (!self)
		thread_enter();
	preempt();
	wait_held(name);
	atomic_fetch_add(&nr_calls, 1);
	pthread_mutex_lock(&lock);
	c->name = name;
	c->thread = self;
	c->context = NULL;
	c->result = CUDA_SUCCESS;
	c->start_ns = sim_now();
	stats.calls++;
	if (forbidden) {
		c->result = need == CALL_ANY ? CUDA_SUCCESS
			: CUDA_ERROR_NOT_PERMITTED;
		return c->result;
	}
	if (atomic_load(&initialized) && !forked)
		sim_spend((uint64_t)knobs.call_ns);
	if (need != CALL_ANY)
		c->result = check_state(c, need);
	return c->result;
}

CUresult call_end(struct call *c)
{
	CUresult r = c->result;

	if (r && r != CUDA_ERROR_NOT_READY) {
		stats.failed_calls++;
		report_note("%s: %d", c->name, r);
	}
	if (!forked)
		trace_call(c->name, c->thread->number, c->start_ns);
	pthread_mutex_unlock(&lock);
	return r;
}

bool call_wait(pthread_cond_t *cond, uint64_t ns)
{
	struct timespec until;

	if (!ns)
		return !pthread_cond_wait(cond, &lock);
	clock_gettime(CLOCK_REALTIME, &until);
	ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(ns / 1000000000u);
	until.tv_nsec = (long)(ns % 1000000000u);
	return pthread_cond_timedwait(cond, &lock, &until) != ETIMEDOUT;
}

void call_forbid(void)
{
	forbidden = true;
}

struct thread *call_thread(void)
{
	return self;
}

struct race_clock *call_clock(void)
{
	return knobs.race == 2 ? &self->own_clock : &host_clock;
}

uint32_t call_actor(void)
{
	uint32_t *actor = knobs.race == 2 ? &self->own_actor : &host_actor;

	if (*actor == UINT32_MAX)
		*actor = race_actor_get();
	return *actor;
}

void call_learn(const struct race_clock *c)
{
	if (knobs.race)
		race_clock_join(call_clock(), c);
}

void call_set_initialized(void)
{
	atomic_store(&initialized, true);
}

void call_set_ended(void)
{
	ended = true;
}

bool call_is_forked(void)
{
	return forked;
}

void call_lock(void)
{
	pthread_mutex_lock(&lock);
}

void call_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default")))
softcuda_fail_next_fn softcuda_fail_next;

void softcuda_fail_next(const char *name, uint64_t skip, int code)
{
	pthread_mutex_lock(&lock);
	wanted_failure.armed = code != 0;
	wanted_failure.skip = skip;
	wanted_failure.code = (CUresult)code;
	snprintf(wanted_failure.name, sizeof(wanted_failure.name), "%s",
		name ? name : "");
	pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) softcuda_hold_fn softcuda_hold;
__attribute__((visibility("default"))) softcuda_nr_held_fn softcuda_nr_held;
__attribute__((visibility("default"))) softcuda_let_go_fn softcuda_let_go;

void softcuda_hold(const char *name)
{
	held_turn = atomic_load(&hold_turn);
	snprintf(held_name, sizeof(held_name), "%s", name);
}

uint64_t softcuda_nr_held(void)
{
	return atomic_load(&nr_held);
}

void softcuda_let_go(void)
{
	atomic_fetch_add(&hold_turn, 1);
}
