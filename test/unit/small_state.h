/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's state, linked as it is, on the small driver: a device with one
 * context, allocations, launches the long way, plans made by hand.
 */
#ifndef UNIT_SMALL_STATE_H
#define UNIT_SMALL_STATE_H

#include <stdlib.h>

#include "shim/init.h"
#include "shim/issue_int.h"
#include "shim/phase_int.h"
#include "shim/pool_int.h"
#include "shim/schedule.h"
#include "shim/section.h"
#include "test/unit/small_driver.h"

/* Of the modules that are left out. */
struct real_api real;
__thread int init_depth;

bool api_has(const void *real_entry)
{
	return real_entry != (void *)small_refuse;
}

const char *api_result_name(CUresult r)
{
	return "an error";
}

void init_at_exit(void (*fn)(void))
{
}

#ifdef SAN_BUILD
/* The tables are mappings, in which it looks for no pointers. */
EXPORT const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* ---- a device ---- */

static struct device *d;
static struct context *c;

static inline void start(uint64_t pages)
{
	small_start(pages);
	d = issue_device();
	c = context_current();
	ck_assert_ptr_nonnull(d);
	ck_assert_ptr_nonnull(c);
	ck_assert(context_ready(c));
}

/* Its first page. */
static inline uint32_t memory(uint32_t pages)
{
	struct alloc *a = alloc_create(d, c, (uint64_t)pages * SMALL_PAGE);

	ck_assert_ptr_nonnull(a);
	ck_assert_int_eq(tenancy_back(d, a), CUDA_SUCCESS);
	alloc_publish(d, a);
	return a->first;
}

static inline void set_of(struct page_set *s, uint32_t page)
{
	page_set_init(s, d, SMALL_STREAM);
	s->caller = s->context = c;
	s->launch = true;
	ck_assert(page_set_add(s, page, page));
}

/* A launch that goes the long way. */
static inline CUresult use(uint32_t page)
{
	struct page_set s;
	CUresult r;

	set_of(&s, page);
	r = tenancy_acquire(&s);
	if (r == CUDA_SUCCESS)
		tenancy_release(&s);
	page_set_clear(&s);
	return r;
}

/* Of a plan: nr pages with slots of their own, copied one by one. */
struct layer {
	uint32_t page, nr, slot;
};

static inline struct schedule *plan(const struct layer *l, uint32_t n)
{
	struct schedule *sc = schedule_create(n);
	uint32_t pages = 0;

	ck_assert_ptr_nonnull(sc);
	for (uint32_t i = 0; i < n; i++)
		pages += l[i].nr;
	sc->pieces = calloc(pages, sizeof(*sc->pieces));
	ck_assert(sc->pieces != NULL && visits_init(&sc->visits, n, n, n));
	for (uint32_t i = 0; i < n; i++) {
		struct unit *u = &sc->units[i];

		u->layer = i;
		u->nr = u->nr_pieces = l[i].nr;
		u->first_piece = sc->nr_pieces;
		u->pages = calloc(u->nr, sizeof(*u->pages));
		u->slots = calloc(u->nr, sizeof(*u->slots));
		ck_assert(u->pages != NULL && u->slots != NULL);
		for (uint32_t k = 0; k < u->nr; k++) {
			u->pages[k] = l[i].page + k;
			u->slots[k] = l[i].slot + k;
			sc->pieces[sc->nr_pieces++] =
				(struct unit_piece){ i, k, 1 };
			if (sc->nr_slots < u->slots[k] + 1)
				sc->nr_slots = u->slots[k] + 1;
		}
		visits_add(&sc->visits, i);
		visits_add_use(&sc->visits, i);
	}
	visits_close(&sc->visits);
	return sc;
}

static inline struct schedule *install(const struct layer *l, uint32_t n)
{
	struct schedule *sc = plan(l, n);

	ck_assert_int_eq(schedule_install(d, sc, c), CUDA_SUCCESS);
	return sc;
}

/* A launch on a unit whose pages are there. */
static inline void launch(struct unit *u)
{
	CUresult r;

	section_open();
	ck_assert(unit_enter(d, u, SMALL_STREAM, c, &r));
	ck_assert_int_eq(r, CUDA_SUCCESS);
	(void)!unit_launched(d, u, SMALL_STREAM);
	section_close();
}

/* What the device is at; not yet where launches come by. */
static inline struct phase *watched(enum phase_id id)
{
	struct phase *p = calloc(1, sizeof(*p));

	ck_assert_ptr_nonnull(p);
	p->device = d;
	p->id = id;
	p->patience = 3;
	p->observer = observe_create();
	p->timing = timing_create();
	ck_assert(p->observer != NULL && p->timing != NULL);
	lock_init(&p->lock, LOCK_PHASE, "phase");
	return p;
}

#endif
