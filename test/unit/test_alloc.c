/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c: addresses given out and taken back, claims, and the reach of
 * pointers against a plain restatement of its rule.
 */
#include "shim/alloc.c"

#include "test/unit/unit.h"

#define NR_PAGES 64u
#define BASE 0x200000000000ull

/* As if the GPU had got that far. */
bool event_query(struct event *e)
{
	return e->done;
}

static struct device dev;
static uint64_t words[NR_PAGES];
static struct context ctx, other;

static void setup(void)
{
	memset(&dev, 0, sizeof(dev));
	memset(words, 0, sizeof(words));
	dev.window = BASE;
	dev.page_shift = 21;
	dev.page_size = 1u << 21;
	dev.window_size = (uint64_t)NR_PAGES << 21;
	dev.nr_pages = NR_PAGES;
	dev.words = words;
	lock_init(&dev.alloc_lock, LOCK_ALLOC, "allocations");
	ck_assert_int_eq(alloc_start(&dev), 0);
}

static struct alloc *make(uint64_t size)
{
	struct alloc *a = alloc_create(&dev, &ctx, size);

	if (a == NULL)
		return NULL;
	for (uint32_t i = 0; i < a->nr_pages; i++)
		words[a->first + i] = (uint64_t)a->id << PAGE_ALLOC_SHIFT |
			TIER_RESIDENT;
	alloc_publish(&dev, a);
	return a;
}

static void drop(struct alloc *a)
{
	ck_assert_ptr_eq(alloc_claim(&dev, a->base), a);
	for (uint32_t i = 0; i < a->nr_pages; i++)
		words[a->first + i] = 0;
	alloc_destroy(&dev, a);
}

START_TEST(test_addresses)
{
	struct alloc *live[NR_PAGES] = { 0 };
	int owner[NR_PAGES];

	srand((unsigned)_i);
	memset(owner, -1, sizeof(owner));
	for (int k = 0; k < 4000; k++) {
		int n = rand() % (int)NR_PAGES;

		if (live[n] != NULL) {
			for (uint32_t p = 0; p < live[n]->nr_pages; p++) {
				ck_assert_int_eq(owner[live[n]->first + p], n);
				owner[live[n]->first + p] = -1;
			}
			drop(live[n]);
			live[n] = NULL;
			continue;
		}
		live[n] = make(1 + (uint64_t)rand() % (5u << 21));
		if (live[n] == NULL)
			continue;
		ck_assert_uint_eq(live[n]->base % dev.page_size, 0);
		for (uint32_t p = 0; p < live[n]->nr_pages; p++) {
			ck_assert_int_eq(owner[live[n]->first + p], -1);
			owner[live[n]->first + p] = n;
		}
	}
	for (uint32_t n = 0; n < NR_PAGES; n++)
		if (live[n] != NULL)
			drop(live[n]);
	/* Nothing was lost: the largest allocation fits again. */
	live[0] = make((uint64_t)(NR_PAGES - 1) << 21);
	ck_assert_ptr_nonnull(live[0]);
}
END_TEST

START_TEST(test_limits)
{
	ck_assert_ptr_null(alloc_create(&dev, &ctx, 0));
	ck_assert_ptr_null(alloc_create(&dev, &ctx, UINT64_MAX));
	ck_assert_ptr_null(alloc_create(&dev, &ctx, dev.window_size + 1));
}
END_TEST

START_TEST(test_claim)
{
	struct alloc *a = make(5u << 20), *b;

	ck_assert_ptr_null(alloc_claim(&dev, a->base + 256));
	ck_assert_ptr_null(alloc_claim(&dev, a->base + dev.page_size));
	ck_assert_ptr_eq(alloc_find(&dev, a->base + dev.page_size), a);
	ck_assert_ptr_eq(alloc_claim(&dev, a->base), a);
	ck_assert_ptr_null(alloc_claim(&dev, a->base));
	b = make(1u << 20);
	ck_assert_ptr_null(alloc_claim_of(&dev, &other));
	ck_assert_ptr_eq(alloc_claim_of(&dev, &ctx), b);
	ck_assert_ptr_null(alloc_claim_of(&dev, &ctx));
}
END_TEST

START_TEST(test_freed)
{
	struct event early = { .done = true }, late = { .done = false };
	struct alloc *a = make(1u << 20), *b = make(1u << 20);

	ck_assert_ptr_null(alloc_freed_take(&dev, true));
	ck_assert_ptr_eq(alloc_claim(&dev, a->base), a);
	ck_assert_ptr_eq(alloc_claim(&dev, b->base), b);
	alloc_freed_add(&dev, a, &late);
	alloc_freed_add(&dev, b, &early);
	ck_assert_ptr_eq(alloc_freed_take(&dev, false), b);
	ck_assert_ptr_null(alloc_freed_take(&dev, false));
	ck_assert_ptr_eq(alloc_freed_take(&dev, true), a);
	ck_assert_ptr_null(alloc_freed_take(&dev, true));
}
END_TEST

/* The rule in the header, word for word, over units. */
static void reach_plainly(const bool *span, const bool *passed, uint64_t n,
	uint64_t p, uint64_t most, uint64_t *from, uint64_t *to)
{
	bool above;

	*from = 0;
	*to = n;
	for (uint64_t i = 0; i <= p; i++)
		if (span[i] && passed[i])
			*from = i;
	for (uint64_t i = n - 1; i > p; i--)
		if (span[i] && passed[i])
			*to = i;
	for (uint64_t i = 0; i <= p && p - *from > most; i++)
		if (span[i]) {
			for (uint64_t k = i; k <= p; k++)
				if (span[k])
					*from = k;
			break;
		}
	above = *to - p <= most;
	if (!above)
		for (uint64_t i = p + 1; i <= p + most && i < n; i++)
			if (span[i]) {
				above = true;
				*to = i;
			}
	for (uint64_t i = p + 1; i < n && !above; i++)
		if (span[i]) {
			above = true;
			*to = i;
		}
}

START_TEST(test_reach)
{
	enum { UNITS = 40, UNIT = 4096 };
	bool span[UNITS] = { false }, passed[UNITS] = { false };
	struct alloc *a = make(UNITS * UNIT);

	srand((unsigned)_i);
	for (int k = 0; k < 300; k++) {
		uint64_t at = (uint64_t)rand() % UNITS, from, to;
		CUdeviceptr lo, hi;
		uint64_t most = rand() % 3 != 0 ? UNITS :
			1 + (uint64_t)rand() % UNITS;

		if (rand() % 3 == 0) {
			alloc_span_add(&dev, a, a->base + at * UNIT);
			if (!span[at])
				passed[at] = false;
			span[at] = true;
			continue;
		}
		if (span[at])
			passed[at] = true;
		reach_plainly(span, passed, UNITS, at, most, &from, &to);
		alloc_reach(&dev, a, a->base + at * UNIT, most * UNIT, &lo,
			&hi);
		ck_assert_uint_eq(lo - a->base, from * UNIT);
		ck_assert_uint_eq(hi - a->base, to * UNIT);
	}
}
END_TEST

START_TEST(test_reach_interior)
{
	struct alloc *a = make(1u << 20);
	CUdeviceptr lo, hi;

	/* Without uploads a pointer reaches all of its allocation. */
	alloc_reach(&dev, a, a->base + 12345, UINT64_MAX, &lo, &hi);
	ck_assert_uint_eq(lo, a->base);
	ck_assert_uint_eq(hi, a->base + a->size);
	/* An upload alone bounds nothing; one that was passed does. */
	alloc_span_add(&dev, a, a->base);
	alloc_span_add(&dev, a, a->base + 4096);
	alloc_span_add(&dev, a, a->base + 8192);
	alloc_reach(&dev, a, a->base, UINT64_MAX, &lo, &hi);
	ck_assert_uint_eq(hi, a->base + a->size);
	alloc_reach(&dev, a, a->base + 8192, UINT64_MAX, &lo, &hi);
	ck_assert_uint_eq(lo, a->base + 8192);
	alloc_reach(&dev, a, a->base, UINT64_MAX, &lo, &hi);
	ck_assert_uint_eq(hi, a->base + 8192);
	/* A pointer into a tensor's middle reaches its beginning too. */
	alloc_reach(&dev, a, a->base + 5000, UINT64_MAX, &lo, &hi);
	ck_assert_uint_eq(lo, a->base);
	ck_assert_uint_eq(hi, a->base + 8192);
}
END_TEST

/* Reservations: pages come and go, the address stays taken. */
START_TEST(test_sparse)
{
	const uint64_t page = 1u << 21;
	struct alloc *a = alloc_reserve(&dev, 8 * page, 4 * page);
	uint32_t at, base;

	ck_assert_ptr_nonnull(a);
	base = a->first;
	/* Room for an aligned start; no memory, so nothing but a reservation. */
	ck_assert_uint_ge(a->nr_pages, 11);
	ck_assert_ptr_null(alloc_find(&dev, a->base));
	ck_assert_ptr_eq(alloc_at(&dev, a->base + 5 * page), a);
	ck_assert_ptr_null(alloc_claim(&dev, a->base));
	at = base;
	ck_assert_uint_eq(alloc_run(&dev, a, &at, base + 8), 0);
	for (uint32_t i = 2; i < 7; i++)
		if (i != 4)
			words[base + i] = (uint64_t)a->id <<
				PAGE_ALLOC_SHIFT | TIER_STREAMED;
	/* What lies beyond the highest page ever used is not looked at. */
	a->top = base + 6;
	at = base;
	ck_assert_uint_eq(alloc_run(&dev, a, &at, base + 8), 2);
	ck_assert_uint_eq(at, base + 2);
	at += 2;
	ck_assert_uint_eq(alloc_run(&dev, a, &at, base + 8), 1);
	ck_assert_uint_eq(at, base + 5);
	a->top = base + 7;
	at = base + 3;
	ck_assert_uint_eq(alloc_run(&dev, a, &at, base + 3), 0);
	at = base + 3;
	ck_assert_uint_eq(alloc_run(&dev, a, &at, base + 4), 1);
	ck_assert_ptr_eq(alloc_find(&dev, a->base + 2 * page), a);
	ck_assert_ptr_null(alloc_find(&dev, a->base + 4 * page));
	ck_assert_ptr_null(alloc_claim(&dev, a->base + 2 * page));
	for (uint32_t i = 0; i < a->nr_pages; i++)
		words[base + i] = alloc_empty_word(a);
	alloc_unreserve(&dev, a);
	ck_assert_ptr_null(alloc_at(&dev, device_address(&dev, base)));
	ck_assert_ptr_nonnull(make(NR_PAGES / 2 << 21));
}
END_TEST

/* Spans go with the bytes, and out with them. */
START_TEST(test_span_move)
{
	const uint64_t page = 1u << 21;
	struct alloc *a = alloc_reserve(&dev, 8 * page, page);
	struct alloc *b = alloc_reserve(&dev, 4 * page, page);
	CUdeviceptr lo, hi;

	for (int i = 0; i < 8; i++)
		alloc_span_add(&dev, a, a->base + (uint64_t)i * page / 2);
	alloc_reach(&dev, a, a->base + page, UINT64_MAX, &lo, &hi);
	alloc_span_move(&dev, a, a->base + page, page, b, b->base + 2 * page);
	ck_assert_uint_eq(a->nr_spans, 6);
	ck_assert_uint_eq(b->nr_spans, 2);
	/* It was passed where it was; that still holds where it is. */
	alloc_reach(&dev, b, b->base, UINT64_MAX, &lo, &hi);
	ck_assert_uint_eq(lo, b->base);
	ck_assert_uint_eq(hi, b->base + 2 * page);
	alloc_span_drop(&dev, b, b->base + 2 * page, page);
	ck_assert_uint_eq(b->nr_spans, 0);
	/* Where nothing was uploaded, a cut is at the given distance. */
	alloc_reach(&dev, b, b->base + 2 * page, page, &lo, &hi);
	ck_assert_uint_eq(lo, b->base + page);
	ck_assert_uint_eq(hi, b->base + 3 * page);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("alloc");
	TCase *t = tcase_create("alloc");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, test_addresses, 1, 6);
	tcase_add_test(t, test_limits);
	tcase_add_test(t, test_claim);
	tcase_add_test(t, test_freed);
	tcase_add_loop_test(t, test_reach, 1, 30);
	tcase_add_test(t, test_reach_interior);
	tcase_add_test(t, test_sparse);
	tcase_add_test(t, test_span_move);
	suite_add_tcase(s, t);
	return unit_run(s);
}
