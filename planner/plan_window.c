/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfer windows: the time in which a layer's transfer can hide.  Called by
 * the tensor selection strategies.
 */
#include "planner/planner.h"

double plan_window_single(uint32_t layer, const uint64_t *offload_bytes,
	const double *duration_ms, void *data)
{
	(void)offload_bytes;
	(void)data;
	return layer > 0 ? duration_ms[layer - 1] : 0;
}

double plan_window_gap_aware(uint32_t layer, const uint64_t *offload_bytes,
	const double *duration_ms, void *data)
{
	double window;

	(void)data;
	if (layer == 0)
		return 0;
	window = duration_ms[layer - 1];
	/* Layer j is free for us unless the one after it loads something. */
	for (uint32_t j = layer - 1; j-- > 0 && !offload_bytes[j + 1];)
		window += duration_ms[j];
	return window;
}
