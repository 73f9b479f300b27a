/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See period.h.  Called by unit.c once an iteration.
 */
#include "shim/period.h"

static uint64_t median(const struct period *p)
{
	uint32_t nr = p->nr < PERIOD_KEPT ? p->nr : PERIOD_KEPT;
	uint64_t sorted[PERIOD_KEPT];

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t k = i;

		for (; k > 0 && sorted[k - 1] > p->ns[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = p->ns[i];
	}
	if (nr == 0)
		return 0;
	return nr % 2 ? sorted[nr / 2] :
		sorted[nr / 2 - 1] + (sorted[nr / 2] - sorted[nr / 2 - 1]) / 2;
}

uint64_t period_begins(struct period *p, uint64_t now_ns)
{
	if (p->begun_ns != 0 && now_ns >= p->begun_ns) {
		p->last_ns = now_ns - p->begun_ns;
		p->ns[p->nr % PERIOD_KEPT] = p->last_ns;
		p->nr++;
	}
	p->begun_ns = now_ns;
	return median(p);
}
