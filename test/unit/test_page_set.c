/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page_set.c against a bitmap.
 */
#include "shim/page_set.h"

#include <stdlib.h>
#include <string.h>

#include "test/unit/unit.h"

#define PAGES 200

static void same(const struct page_set *s, const bool *want)
{
	uint32_t n = 0, end = 0;

	for (uint32_t i = 0; i < s->nr; i++) {
		ck_assert_uint_gt(s->ranges[i].nr, 0);
		/* In order, and with at least a page between them. */
		if (i > 0)
			ck_assert_uint_gt(s->ranges[i].first, end);
		end = s->ranges[i].first + s->ranges[i].nr;
	}
	for (uint32_t p = 0; p < PAGES; p++) {
		ck_assert_int_eq(page_set_has(s, p), want[p]);
		n += want[p];
	}
	ck_assert_uint_eq(page_set_pages(s), n);
	n = 0;
	for_each_page(s, r, page) {
		ck_assert(want[page]);
		n++;
	}
	ck_assert_uint_eq(page_set_pages(s), n);
}

START_TEST(test_random)
{
	struct page_set s;
	bool want[PAGES];

	srand((unsigned)_i + 1);
	page_set_init(&s, NULL, NULL);
	for (int round = 0; round < 3; round++) {
		memset(want, 0, sizeof(want));
		for (int k = 0; k < 60; k++) {
			uint32_t first = (uint32_t)rand() % PAGES;
			uint32_t last = first + (uint32_t)rand() % 4;

			if (last >= PAGES)
				last = PAGES - 1;
			ck_assert(page_set_add(&s, first, last));
			memset(want + first, 1, last - first + 1);
			same(&s, want);
		}
		page_set_clear(&s);
		ck_assert_uint_eq(page_set_pages(&s), 0);
	}
}
END_TEST

START_TEST(test_many_ranges)
{
	struct page_set s;
	bool want[PAGES] = { false };

	page_set_init(&s, NULL, NULL);
	for (uint32_t p = 0; p < PAGES; p += 2) {
		ck_assert(page_set_add(&s, p, p));
		want[p] = true;
	}
	ck_assert_uint_eq(s.nr, PAGES / 2);
	same(&s, want);
	ck_assert(page_set_add(&s, 0, PAGES - 1));
	ck_assert_uint_eq(s.nr, 1);
	page_set_clear(&s);
}
END_TEST

START_TEST(test_null)
{
	ck_assert(!page_set_has(NULL, 0));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("page_set");
	TCase *t = tcase_create("page_set");

	tcase_add_loop_test(t, test_random, 0, 6);
	tcase_add_test(t, test_many_ranges);
	tcase_add_test(t, test_null);
	suite_add_tcase(s, t);
	return unit_run(s);
}
