/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that other devices may use, and the pools that stream-ordered memory
 * comes from: what the program says about them.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue_int.h"

/* Atomic; set for good once the program chose a pool for some device. */
static bool pools_chosen;

/* `by` may use the memory of `of`, managed already or not. */
static CUresult share(CUdevice of, CUdevice by)
{
	CUresult r = CUDA_SUCCESS;

	device_peer_add(of, by);
	for (int n = 0; n < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE); n++)
		if (device_list[n]->ordinal == of && __atomic_load_n(
		    &device_list[n]->tenancy, __ATOMIC_ACQUIRE) != NULL)
			r = tenancy_peer(device_list[n]);
	return r;
}

CUresult issue_peer_enabled(CUcontext peer)
{
	CUdevice from, to;
	CUcontext popped;
	CUresult r = CUDA_SUCCESS;

	init_enter();
	if (real.cuCtxGetDevice(&from) == CUDA_SUCCESS &&
	    real.cuCtxPushCurrent_v2(peer) == CUDA_SUCCESS) {
		if (real.cuCtxGetDevice(&to) == CUDA_SUCCESS && to != from)
			r = share(to, from);
		real.cuCtxPopCurrent_v2(&popped);
	}
	init_leave();
	return r;
}

bool issue_device_of_pool(CUmemoryPool pool, CUdevice *of)
{
	CUmemoryPool p;

	for (CUdevice o = 0; o < DEVICE_MAX; o++) {
		if (real.cuDeviceGetDefaultMemPool(&p, o) != CUDA_SUCCESS)
			break;
		*of = o;
		if (p == pool)
			return true;
	}
	return false;
}

/* Managed memory has no pools, so all of it becomes accessible. */
CUresult issue_pool_shared(CUmemoryPool pool, const CUmemAccessDesc *desc,
	size_t n)
{
	CUresult r = CUDA_SUCCESS;
	CUdevice of;

	init_enter();
	if (issue_device_of_pool(pool, &of))
		for (size_t k = 0; k < n && r == CUDA_SUCCESS; k++)
			if (desc[k].location.type ==
			    CU_MEM_LOCATION_TYPE_DEVICE &&
			    desc[k].location.id != of &&
			    desc[k].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
				r = share(of, desc[k].location.id);
	init_leave();
	return r;
}

void issue_pool_set(void)
{
	__atomic_store_n(&pools_chosen, true, __ATOMIC_RELAXED);
}

bool issue_pool_chosen(void)
{
	CUmemoryPool now, first;
	CUdevice d;

	return __atomic_load_n(&pools_chosen, __ATOMIC_RELAXED) &&
		real.cuCtxGetDevice(&d) == CUDA_SUCCESS &&
		real.cuDeviceGetMemPool(&now, d) == CUDA_SUCCESS &&
		real.cuDeviceGetDefaultMemPool(&first, d) == CUDA_SUCCESS &&
		now != first;
}
