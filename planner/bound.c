/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound that needs only sizes (bound.h).  A pool of R bytes frees at most
 * sum min(bytes, R) - R, so no smaller pool than the least R for which that is
 * `need` serves, and need + R bytes must be copied in every iteration.
 */
#include "planner/bound.h"

static double total_ms(const struct bound_model *m)
{
	double sum = 0;

	for (uint32_t i = 0; i < m->nr; i++)
		sum += m->ms[i];
	return sum;
}

static bool frees_enough(const struct bound_model *m, uint64_t pool)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < m->nr; i++)
		sum += m->bytes[i] < pool ? m->bytes[i] : pool;
	return sum >= m->need + pool;
}

double bound_simple(const struct bound_model *m)
{
	double compute = total_ms(m), copies;
	uint64_t low = 1, high = 1;

	if (m->need == 0)
		return compute;
	/* What is freed grows up to the second largest layer, then falls. */
	for (uint32_t i = 0; i < m->nr; i++)
		if (m->bytes[i] > high)
			high = m->bytes[i];
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (frees_enough(m, mid))
			high = mid;
		else
			low = mid + 1;
	}
	copies = ((double)m->need + (double)low) * m->ms_per_byte +
		m->latency_ms;
	return copies > compute ? copies : compute;
}
