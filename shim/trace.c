/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See trace.h.  An entry is written between two stores of its number, 0 first,
 * so that the reader knows those that somebody was still at.
 */
#include "shim/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "planner/plan_text.h"
#include "shim/conf.h"
#include "shim/init.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/outfile.h"

#define ENTRIES (1u << 16)
#define MAX_PLANS 64u
#define MAX_DEVICES 16

struct entry {
	uint64_t number;	/* atomic; from 1, 0: being written */
	uint64_t begin_ns, end_ns;
	uint64_t bytes;
	uint32_t layer;
	uint32_t thread;
	uint16_t kind;
	uint16_t device;
	uint32_t plan;		/* number, for names; 0: none */
};

struct names {
	uint32_t nr;
	char **at;		/* owned, for good */
};

bool trace_on;
static struct entry *ring;
static uint64_t added;			/* atomic */
static uint64_t start_ns;
static struct names plans[MAX_PLANS + 1];
static uint32_t nr_plans;		/* atomic */
static uint32_t plan_of[MAX_DEVICES];	/* atomic */

uint64_t trace_clock(void)
{
	return lock_now_ns();
}

#define put(field, v) __atomic_store_n(&(field), (v), __ATOMIC_RELAXED)
#define get(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)

COLD void trace_add(enum trace_kind kind, int device, uint32_t layer,
	uint64_t bytes, uint64_t begin_ns)
{
	uint64_t i = __atomic_fetch_add(&added, 1, __ATOMIC_RELAXED);
	struct entry *e = &ring[i % ENTRIES];
	uint64_t now = trace_clock();
	unsigned int d = (unsigned int)device % MAX_DEVICES;

	__atomic_store_n(&e->number, 0, __ATOMIC_SEQ_CST);
	put(e->begin_ns, begin_ns != 0 ? begin_ns : now);
	put(e->end_ns, now);
	put(e->bytes, bytes);
	put(e->layer, layer);
	put(e->thread, (uint32_t)gettid());
	put(e->kind, (uint16_t)kind);
	put(e->device, (uint16_t)d);
	put(e->plan, get(plan_of[d]));
	__atomic_store_n(&e->number, i + 1, __ATOMIC_RELEASE);
}

void trace_plan(int device, const struct layer_statistics *layers, uint32_t nr)
{
	uint32_t n;
	char **at;

	if (!trace_on)
		return;
	n = __atomic_add_fetch(&nr_plans, 1, __ATOMIC_RELAXED);
	at = n <= MAX_PLANS ? calloc(nr + 1, sizeof(*at)) : NULL;
	for (uint32_t i = 0; at != NULL && i < nr; i++)
		at[i] = strdup(layers[i].label);
	if (at != NULL)
		plans[n] = (struct names){ nr, at };
	__atomic_store_n(&plan_of[(unsigned int)device % MAX_DEVICES],
		at != NULL ? n : 0, __ATOMIC_RELEASE);
}

/* ---- writing ---- */

/* false: overwritten, or somebody is still at it. */
static bool entry_read(uint64_t i, struct entry *out)
{
	struct entry *e = &ring[i % ENTRIES];

	if (__atomic_load_n(&e->number, __ATOMIC_ACQUIRE) != i + 1)
		return false;
	*out = (struct entry){
		.begin_ns = get(e->begin_ns), .end_ns = get(e->end_ns),
		.bytes = get(e->bytes), .layer = get(e->layer),
		.thread = get(e->thread), .kind = get(e->kind),
		.device = get(e->device), .plan = get(e->plan),
	};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return get(e->number) == i + 1;
}

static void put_name(struct plan_text *t, const struct entry *e)
{
	const struct names *n = &plans[e->plan];
	static const char *const other[] = {
		[TRACE_FETCH] = "fetch on demand",
		[TRACE_CHECK] = "careful launch",
	};

	if (e->kind >= TRACE_FETCH)
		plan_text_string(t, other[e->kind]);
	else if (e->layer < n->nr && n->at[e->layer] != NULL)
		plan_text_string(t, n->at[e->layer]);
	else
		plan_text_put(t, "\"layer %" PRIu32 "\"", e->layer);
}

/* Rows of the picture: two for each device, then one for each thread. */
static uint32_t row_of(const struct entry *e)
{
	return e->kind >= TRACE_FETCH ? 100u + e->thread :
		2u * e->device + 1 + (e->kind == TRACE_COPY);
}

/* "12.345": microseconds, whatever the locale. */
static void put_us(struct plan_text *t, const char *key, uint64_t ns)
{
	plan_text_put(t, ", \"%s\": %" PRIu64 ".%03u", key, ns / 1000,
		(unsigned int)(ns % 1000));
}

static void put_span(struct plan_text *t, const struct entry *e,
	uint64_t end_ns)
{
	static const char *const category[] = {
		"layer", "layer", "layer", "copy", "wait", "wait",
	};

	plan_text_put(t, ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": %" PRIu32
		", \"cat\": \"%s\", \"name\": ", (int)getpid(), row_of(e),
		category[e->kind]);
	put_name(t, e);
	put_us(t, "ts", e->begin_ns > start_ns ? e->begin_ns - start_ns : 0);
	put_us(t, "dur", end_ns > e->begin_ns ? end_ns - e->begin_ns : 0);
	plan_text_put(t, ", \"args\": {\"bytes\": %" PRIu64
		", \"missed\": %s}}", e->bytes,
		e->kind == TRACE_MISSED ? "true" : "false");
}

static void put_row(struct plan_text *t, uint32_t row, const char *what,
	int number)
{
	plan_text_put(t, ",\n{\"ph\": \"M\", \"pid\": %d, \"tid\": %" PRIu32
		", \"name\": \"thread_name\", \"args\": {\"name\": \"%s %d\"}}",
		(int)getpid(), row, what, number);
}

static void put_head(struct plan_text *t)
{
	plan_text_put(t, "[{\"ph\": \"M\", \"pid\": %d, \"name\": "
		"\"process_name\", \"args\": {\"name\": ", (int)getpid());
	plan_text_string(t, program_invocation_short_name);
	plan_text_put(t, "}}");
	for (int d = 0; d < MAX_DEVICES; d++) {
		if (plan_of[d] == 0)
			continue;
		put_row(t, 2 * (uint32_t)d + 1, "layers of device", d);
		put_row(t, 2 * (uint32_t)d + 2, "copies to device", d);
	}
}

/* A layer lasts until the next one, or until it is passed. */
static void put_entries(struct plan_text *t, uint64_t first, uint64_t nr)
{
	struct entry under_way[MAX_DEVICES], e;
	bool any[MAX_DEVICES] = { false };

	for (uint64_t i = first; i < nr; i++) {
		if (!entry_read(i, &e) || e.device >= MAX_DEVICES)
			continue;
		if (e.kind >= TRACE_COPY) {
			put_span(t, &e, e.end_ns);
			continue;
		}
		if (any[e.device])
			put_span(t, &under_way[e.device], e.begin_ns);
		any[e.device] = e.kind != TRACE_PASSED;
		under_way[e.device] = e;
	}
	for (int d = 0; d < MAX_DEVICES; d++)
		if (any[d])
			put_span(t, &under_way[d], trace_clock());
}

static void trace_write(void)
{
	uint64_t nr = __atomic_load_n(&added, __ATOMIC_ACQUIRE);
	uint64_t first = nr > ENTRIES ? nr - ENTRIES : 0;
	struct plan_text t = { 0 };

	put_head(&t);
	put_entries(&t, first, nr);
	plan_text_put(&t, "]\n");
	if (first > 0)
		log_info("trace_out: the last %u events of %llu", ENTRIES,
			(unsigned long long)nr);
	outfile_save("trace_out", conf.trace_out.text, 0, plan_text_take(&t));
}

void trace_start(void)
{
	void *at;

	if (conf.trace_out.text[0] == '\0')
		return;
	at = mmap(NULL, ENTRIES * sizeof(*ring), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED) {
		log_warn("trace_out: no memory for events");
		return;
	}
	ring = at;
	start_ns = trace_clock();
	trace_on = true;
	init_at_exit(trace_write);
}
