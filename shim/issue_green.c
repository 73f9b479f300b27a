/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: streams that have a part of the multiprocessors.  Their memory
 * is that of the device's primary context, which they keep alive.  The context
 * that a driver gives for one may be that itself, or stand beside it.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue_int.h"
#include "shim/schedule.h"

/* The record of the context that stands for it; NULL: the driver has none. */
static struct context *context_of(CUgreenCtx green)
{
	CUdevice ordinal = -1;
	CUcontext c, popped;

	if (real.cuCtxFromGreenCtx(&c, green) != CUDA_SUCCESS ||
	    real.cuCtxPushCurrent_v2(c) != CUDA_SUCCESS)
		return NULL;
	if (real.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS)
		ordinal = -1;
	real.cuCtxPopCurrent_v2(&popped);
	return ordinal < 0 ? NULL : context_note(c, ordinal);
}

void issue_green_created(CUdevice ordinal)
{
	CUcontext primary;

	init_enter();
	if (real.cuDevicePrimaryCtxRetain(&primary, ordinal) ==
	    CUDA_SUCCESS) {
		context_primary_retained(ordinal, primary);
		real.cuDevicePrimaryCtxRelease_v2(ordinal);
	}
	init_leave();
}

void issue_green_stream_created(CUstream s, CUgreenCtx green, unsigned flags)
{
	struct context *c;

	init_enter();
	c = context_of(green);
	if (c != NULL)
		context_stream_created(c, s, flags);
	else
		context_stream_missed();
	init_leave();
}

CUdevice issue_green_ends(CUgreenCtx green)
{
	struct context *c;

	init_enter();
	c = context_of(green);
	/* Events and streams of ours in it would go; memory stays. */
	if (c != NULL && !context_is_primary(c->handle)) {
		for (int n = 0; n < __atomic_load_n(&device_nr,
		     __ATOMIC_ACQUIRE); n++)
			if (__atomic_load_n(&device_list[n]->tenancy,
			    __ATOMIC_ACQUIRE) != NULL)
				schedule_context_ends(device_list[n], c);
		context_retire(c);
	}
	init_leave();
	return c == NULL ? -1 : c->ordinal;
}

void issue_green_ended(CUdevice ordinal)
{
	if (ordinal >= 0)
		issue_primary_released(ordinal);
}
