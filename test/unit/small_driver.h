/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver for tests that link the library's state and want to act between two
 * of its steps: handles are numbers, streams count the copies that they were
 * given, nothing takes time.  Its rules are those of mappings: an address has
 * one at most, and a handle has at most `limit`.
 */
#ifndef UNIT_SMALL_DRIVER_H
#define UNIT_SMALL_DRIVER_H

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "shim/api_table.h"
#include "shim/conf.h"
#include "test/unit/unit.h"

#define SMALL_PAGE 65536u
#define SMALL_MAPS 64
#define SMALL_EVENTS 256
#define SMALL_STREAMS 16

#define SMALL_CONTEXT ((CUcontext)(uintptr_t)0x1000)
/* A stream of the program's; the library's own come behind it. */
#define SMALL_STREAM ((CUstream)(uintptr_t)8)

static struct {
	pthread_mutex_t lock;		/* guards what follows */
	uint64_t pages;			/* of GPU memory */
	unsigned limit;			/* mappings of a handle; 0: any number */
	struct {
		CUdeviceptr va;
		CUmemGenericAllocationHandle handle;
	} maps[SMALL_MAPS];		/* handle 0: free */
	uint64_t next_address, nr_handles;
	uintptr_t nr_events, nr_streams;
	uint64_t copies;		/* queued so far */
	uint64_t after[SMALL_EVENTS];	/* copies before the event */
	uint64_t seen[SMALL_STREAMS];	/* and before a stream's next work */
	bool busy;			/* no event is complete yet */
	CUevent asked;			/* the last one that it was told of */
	unsigned nr_asked;		/* and how many in a row differed */
	bool host;			/* host memory can be mapped */
	bool breaks;			/* the next copy in is refused */
	bool broken;			/* so is unmapping from then on */
	uint32_t filled;		/* what the last fill wrote */
	/* The other thread's turn, on the thread that called; once. */
	void (*on_record)(CUstream s);
	void (*on_map)(CUresult r);
} small = { .lock = PTHREAD_MUTEX_INITIALIZER, .next_address = 1ull << 32 };

static CUresult small_refuse(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult small_ok(void)
{
	return CUDA_SUCCESS;
}

static CUresult small_current(CUcontext *c)
{
	*c = SMALL_CONTEXT;
	return CUDA_SUCCESS;
}

static CUresult small_device(CUdevice *ordinal)
{
	*ordinal = 0;
	return CUDA_SUCCESS;
}

static CUresult small_attribute(int *value, CUdevice_attribute what,
	CUdevice ordinal)
{
	*value = what ==
		CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
		(small.host && what ==
		CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	return CUDA_SUCCESS;
}

static CUresult small_total(size_t *bytes, CUdevice ordinal)
{
	*bytes = small.pages * SMALL_PAGE;
	return CUDA_SUCCESS;
}

static CUresult small_info(size_t *free_bytes, size_t *total)
{
	*free_bytes = *total = small.pages * SMALL_PAGE;
	return CUDA_SUCCESS;
}

static CUresult small_granularity(size_t *out, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags flags)
{
	*out = SMALL_PAGE;
	return CUDA_SUCCESS;
}

static CUresult small_reserve(CUdeviceptr *out, size_t size, size_t align,
	CUdeviceptr at, unsigned long long flags)
{
	*out = small.next_address;
	small.next_address += size + SMALL_PAGE;
	return CUDA_SUCCESS;
}

static CUresult small_create(CUmemGenericAllocationHandle *out, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	*out = __atomic_add_fetch(&small.nr_handles, 1, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

static CUresult small_map(CUdeviceptr va, size_t size, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult r = CUDA_SUCCESS;
	void (*turn)(CUresult r);
	unsigned n = 0;
	int at = -1;

	pthread_mutex_lock(&small.lock);
	for (int i = 0; i < SMALL_MAPS; i++) {
		n += small.maps[i].handle == handle;
		if (small.maps[i].handle == 0)
			at = i;
		else
			ck_assert_msg(small.maps[i].va != va, "mapped twice");
	}
	ck_assert_int_ge(at, 0);
	if (small.limit > 0 && n >= small.limit) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		small.maps[at].va = va;
		small.maps[at].handle = handle;
	}
	turn = small.on_map;
	pthread_mutex_unlock(&small.lock);
	if (turn != NULL)
		turn(r);
	return r;
}

static CUresult small_unmap(CUdeviceptr va, size_t size)
{
	size_t n = 0;

	if (small.broken)
		return CUDA_ERROR_UNKNOWN;
	pthread_mutex_lock(&small.lock);
	for (int i = 0; i < SMALL_MAPS; i++)
		if (small.maps[i].handle != 0 &&
		    small.maps[i].va - va < size) {
			small.maps[i].handle = 0;
			n++;
		}
	pthread_mutex_unlock(&small.lock);
	ck_assert_uint_eq(n, size / SMALL_PAGE);
	return CUDA_SUCCESS;
}

static CUresult small_access(CUdeviceptr va, size_t size,
	const CUmemAccessDesc *desc, size_t n)
{
	return CUDA_SUCCESS;
}

static CUresult small_copy_in(CUdeviceptr to, const void *from, size_t n,
	CUstream s)
{
	if (small.breaks) {
		small.broken = true;
		return CUDA_ERROR_UNKNOWN;
	}
	__atomic_add_fetch(&small.copies, 1, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

/* Memory holds what was filled in last. */
static CUresult small_copy_out(void *to, CUdeviceptr from, size_t n,
	CUstream s)
{
	for (size_t i = 0; i < n / sizeof(small.filled); i++)
		memcpy((char *)to + i * sizeof(small.filled), &small.filled,
			sizeof(small.filled));
	return CUDA_SUCCESS;
}

static CUresult small_fill(CUdeviceptr to, unsigned int value, size_t n,
	CUstream s)
{
	small.filled = value;
	return CUDA_SUCCESS;
}

static CUresult small_stream(CUstream *s, unsigned int flags)
{
	uintptr_t n = __atomic_add_fetch(&small.nr_streams, 1,
		__ATOMIC_SEQ_CST);

	*s = (CUstream)((uintptr_t)SMALL_STREAM + n);
	return CUDA_SUCCESS;
}

static CUresult small_event(CUevent *e, unsigned int flags)
{
	*e = (CUevent)__atomic_add_fetch(&small.nr_events, 1,
		__ATOMIC_SEQ_CST);
	ck_assert_uint_lt((uintptr_t)*e, SMALL_EVENTS);
	return CUDA_SUCCESS;
}

static CUresult small_record(CUevent e, CUstream s)
{
	void (*turn)(CUstream s);

	pthread_mutex_lock(&small.lock);
	small.after[(uintptr_t)e] = small.copies;
	turn = small.on_record;
	pthread_mutex_unlock(&small.lock);
	if (turn != NULL)
		turn(s);
	return CUDA_SUCCESS;
}

static CUresult small_query(CUevent e)
{
	CUresult r;

	pthread_mutex_lock(&small.lock);
	r = small.busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
	small.nr_asked += small.busy && e != small.asked;
	small.asked = e;
	pthread_mutex_unlock(&small.lock);
	return r;
}

static CUresult small_event_ok(CUevent e)
{
	return CUDA_SUCCESS;
}

static CUresult small_stream_wait(CUstream s, CUevent e, unsigned int flags)
{
	uintptr_t i = (uintptr_t)s;

	pthread_mutex_lock(&small.lock);
	if (i < SMALL_STREAMS && small.seen[i] < small.after[(uintptr_t)e])
		small.seen[i] = small.after[(uintptr_t)e];
	pthread_mutex_unlock(&small.lock);
	return CUDA_SUCCESS;
}

/* A device of so many pages; what is not needed here is not supported. */
static void small_start(uint64_t pages)
{
	void **entry = (void **)&real;

	for (size_t i = 0; i < sizeof(real) / sizeof(*entry); i++)
		entry[i] = (void *)small_refuse;
	real.cuCtxGetCurrent = small_current;
	real.cuCtxGetDevice = small_device;
	real.cuCtxPushCurrent_v2 = (void *)small_ok;
	real.cuCtxPopCurrent_v2 = (void *)small_ok;
	real.cuCtxSynchronize = small_ok;
	real.cuDeviceGetAttribute = small_attribute;
	real.cuDeviceTotalMem_v2 = small_total;
	real.cuMemGetInfo_v2 = small_info;
	real.cuMemGetAllocationGranularity = small_granularity;
	real.cuMemAddressReserve = small_reserve;
	real.cuMemCreate = small_create;
	real.cuMemRelease = (void *)small_ok;
	real.cuMemMap = small_map;
	real.cuMemUnmap = small_unmap;
	real.cuMemSetAccess = small_access;
	real.cuMemHostRegister_v2 = (void *)small_ok;
	real.cuMemcpyHtoDAsync_v2 = small_copy_in;
	real.cuMemcpyDtoHAsync_v2 = small_copy_out;
	real.cuMemsetD32Async = small_fill;
	real.cuStreamCreate = small_stream;
	real.cuStreamSynchronize = (void *)small_ok;
	real.cuEventCreate = small_event;
	real.cuEventRecord = small_record;
	real.cuEventQuery = small_query;
	real.cuEventSynchronize = small_event_ok;
	real.cuStreamWaitEvent = small_stream_wait;
	small.pages = pages;
	conf.policy = POLICY_PLAN;
	conf.guard = GUARD_CAREFUL;
	conf.gpu_budget = (struct conf_budget){ .bytes = CONF_AUTO };
	conf.gpu_reserve = 0;
	conf.pool = CONF_AUTO;
	conf.chunk = CONF_AUTO;
	conf.window = 64ull << 20;
	conf.arena = 16ull << 20;
	conf.wait_ms = 20000;
}

#endif
