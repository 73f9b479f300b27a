/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of pages.  Few ranges in nearly every case, so a sorted array.
 */
#include "shim/page_set.h"

#include <stdlib.h>
#include <string.h>

void page_set_init(struct page_set *s, struct device *d, CUstream stream)
{
	s->device = d;
	s->context = s->caller = NULL;
	s->stream = stream;
	s->writes = s->launch = s->cut = false;
	s->nr = 0;
	s->max = PAGE_SET_FEW;
	s->ranges = s->few;
	s->pins = NULL;
	s->nr_pins = 0;
}

void page_set_clear(struct page_set *s)
{
	if (s->ranges != s->few)
		free(s->ranges);
	s->ranges = s->few;
	s->max = PAGE_SET_FEW;
	s->nr = 0;
}

static bool reserve(struct page_set *s)
{
	struct page_range *grown;

	if (s->nr < s->max)
		return true;
	grown = malloc(2 * s->max * sizeof(*grown));
	if (grown == NULL)
		return false;
	memcpy(grown, s->ranges, s->nr * sizeof(*grown));
	if (s->ranges != s->few)
		free(s->ranges);
	s->ranges = grown;
	s->max *= 2;
	return true;
}

bool page_set_add(struct page_set *s, uint32_t first, uint32_t last)
{
	struct page_range *r = s->ranges;
	uint32_t at = 0, end;

	while (at < s->nr && r[at].first + r[at].nr < first)
		at++;
	/* Ranges [at, end) touch or overlap the new one. */
	for (end = at; end < s->nr && r[end].first <= last + 1; end++) {
		if (r[end].first < first)
			first = r[end].first;
		if (r[end].first + r[end].nr - 1 > last)
			last = r[end].first + r[end].nr - 1;
	}
	if (end == at) {
		if (!reserve(s))
			return false;
		r = s->ranges;
		memmove(&r[at + 1], &r[at], (s->nr - at) * sizeof(*r));
		s->nr++;
	} else {
		memmove(&r[at + 1], &r[end], (s->nr - end) * sizeof(*r));
		s->nr -= end - at - 1;
	}
	r[at] = (struct page_range){ .first = first, .nr = last - first + 1 };
	return true;
}

bool page_set_has(const struct page_set *s, uint32_t page)
{
	for (uint32_t i = 0; s != NULL && i < s->nr; i++)
		if (page - s->ranges[i].first < s->ranges[i].nr)
			return true;
	return false;
}

uint64_t page_set_pages(const struct page_set *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->nr; i++)
		n += s->ranges[i].nr;
	return n;
}
