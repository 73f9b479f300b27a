/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program may ask about a managed pointer.  Every allocation that
 * stands for a plain one owns a small native twin; the driver is asked about
 * the twin, and what names an address or a size is put right.
 */
#include <string.h>

#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue_int.h"
#include "shim/log.h"
#include "shim/stats.h"
#include "shim/vmm.h"

/* The managed allocation of p, or NULL.  Not a reservation. */
static struct alloc *managed(CUdeviceptr p)
{
	struct device *d = device_find(p);
	struct alloc *a = d == NULL ? NULL : alloc_find(d, p);

	return a != NULL && !a->sparse && p - a->base < a->size ? a : NULL;
}

static CUresult put(void *data, const void *value, size_t size)
{
	memcpy(data, value, size);
	return CUDA_SUCCESS;
}

static CUresult put_u64(void *data, uint64_t v)
{
	return put(data, &v, sizeof(v));
}

static CUresult put_u32(void *data, uint32_t v)
{
	return put(data, &v, sizeof(v));
}

static CUresult put_bool(void *data, bool v)
{
	return put(data, &v, sizeof(v));
}

/* What no twin can tell: addresses, sizes, and what we take away. */
static bool answer_own(void *data, CUpointer_attribute attr,
	const struct alloc *a, CUdeviceptr p, CUresult *r)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*r = put_u64(data, p);
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*r = put_u64(data, a->base);
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*r = put_u64(data, a->size);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*r = put_bool(data, false);	/* issue_ipc_refused() */
		return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*r = put_bool(data, a->sync_memops);
		return true;
	default:
		return false;
	}
}

/* Asks for a small allocation like it.  false: not to be had now. */
static bool ask_pool_context(CUmemoryPool pool, CUcontext *out)
{
	const CUstream s = CU_STREAM_PER_THREAD;
	CUdeviceptr p;
	CUresult r;

	/* It would become a node of the graph. */
	if (context_is_capturing(s))
		return false;
	r = real.cuMemAllocFromPoolAsync(&p, 1, pool, s);
	if (r == CUDA_ERROR_OUT_OF_MEMORY && issue_make_room(1))
		r = real.cuMemAllocFromPoolAsync(&p, 1, pool, s);
	if (r != CUDA_SUCCESS)
		return false;
	r = real.cuPointerGetAttribute(out, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	real.cuMemFreeAsync(p, s);
	return r == CUDA_SUCCESS;
}

/*
 * The context that memory of a pool belongs to: none, or that which it was
 * allocated in.  No document says which, so the driver is asked, once.
 */
static CUcontext pool_context(const struct alloc *a)
{
	static int verdict;	/* atomic; 0: not known, 1: it has, -1: none */
	int v = __atomic_load_n(&verdict, __ATOMIC_RELAXED);
	CUmemoryPool pool = NULL;
	CUcontext of = NULL;

	if (v == 0 && real.cuDeviceGetDefaultMemPool(&pool,
	    a->context->ordinal) == CUDA_SUCCESS &&
	    ask_pool_context(pool, &of)) {
		v = of != NULL ? 1 : -1;
		__atomic_store_n(&verdict, v, __ATOMIC_RELAXED);
	}
	return v > 0 ? a->context->handle : NULL;
}

/*
 * Allocations in stream order have no twin; they stand for those of the
 * device's default pool.
 */
static CUresult answer_plain(void *data, CUpointer_attribute attr,
	const struct alloc *a)
{
	CUmemoryPool pool = NULL;

	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		return put_u64(data, (uintptr_t)pool_context(a));
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		real.cuDeviceGetDefaultMemPool(&pool, a->context->ordinal);
		return put(data, &pool, sizeof(pool));
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		return put_u32(data, CU_MEMORYTYPE_DEVICE);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return put_u64(data, a->serial);
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		return put_u32(data, (uint32_t)a->context->ordinal);
	case CU_POINTER_ATTRIBUTE_MAPPED:
		return put_bool(data, true);
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return put_u32(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		return put_u64(data, 0);
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return put_bool(data, false);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/*
 * Without a current context a driver may refuse to answer.  Then it is asked
 * about p as well: that is an address which it has reserved for us.
 */
static bool no_context(void)
{
	CUcontext c = NULL;

	return real.cuCtxGetCurrent(&c) != CUDA_SUCCESS || c == NULL;
}

static bool declined(CUpointer_attribute attr, CUdeviceptr p, CUresult *r)
{
	uint64_t answer[2];

	init_enter();
	*r = !no_context() ? CUDA_SUCCESS :
		real.cuPointerGetAttribute(answer, attr, p);
	init_leave();
	return *r == CUDA_ERROR_INVALID_CONTEXT;
}

bool issue_address_range(CUdeviceptr p, CUdeviceptr *base, size_t *size,
	CUresult *r)
{
	struct alloc *a = managed(p);

	if (a == NULL && !issue_vmm_range(p, base, size))
		return false;
	if (a != NULL) {
		*base = a->base;
		*size = a->size;
	}
	init_enter();
	*r = no_context() ? real.cuMemGetAddressRange_v2(NULL, NULL, p) :
		CUDA_SUCCESS;
	init_leave();
	if (*r != CUDA_ERROR_INVALID_CONTEXT)
		*r = CUDA_SUCCESS;
	return true;
}

bool issue_pointer_attribute(void *data, CUpointer_attribute attr,
	CUdeviceptr p, CUresult *r)
{
	struct alloc *a = data == NULL ? NULL : managed(p);

	if (data != NULL && device_find(p) != NULL && declined(attr, p, r))
		return true;
	if (a == NULL)
		return issue_vmm_attribute(data, attr, p, r);
	if (answer_own(data, attr, a, p, r))
		return true;
	init_enter();
	*r = a->twin != 0 ? real.cuPointerGetAttribute(data, attr, a->twin) :
		answer_plain(data, attr, a);
	init_leave();
	return true;
}

bool issue_pointer_attributes(unsigned int n, CUpointer_attribute *attrs,
	void **data, CUdeviceptr p, CUresult *r)
{
	struct alloc *a = attrs == NULL || data == NULL ? NULL : managed(p);

	if (n > 0 && attrs != NULL && data != NULL &&
	    device_find(p) != NULL && declined(attrs[0], p, r))
		return true;
	if (a == NULL)
		return issue_vmm_attributes(n, attrs, data, p, r);
	*r = CUDA_SUCCESS;
	init_enter();
	/* As the driver does it: what a pointer has not got reads as zero. */
	if (a->twin != 0)
		*r = real.cuPointerGetAttributes(n, attrs, data, a->twin);
	for (unsigned int i = 0; i < n && *r == CUDA_SUCCESS; i++) {
		CUresult one;

		if (data[i] == NULL)
			continue;
		if (!answer_own(data[i], attrs[i], a, p, &one) &&
		    a->twin == 0 &&
		    answer_plain(data[i], attrs[i], a) != CUDA_SUCCESS &&
		    attrs[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER)
			put_u64(data[i], 0);
	}
	init_leave();
	return true;
}

bool issue_sync_memops(const void *value, CUpointer_attribute attr,
	CUdeviceptr p, CUresult *r)
{
	struct alloc *a = managed(p);
	struct vmm_info v;

	if (attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || value == NULL)
		return false;
	/* Who asks for this is about to let a device read the memory. */
	if (a == NULL && vmm_info(p, &v) && v.size > 0 && !v.native) {
		/* Even if the driver refuses it for mapped memory. */
		*r = issue_fix(v.base, v.size);
		return *r != CUDA_SUCCESS;
	}
	if (a == NULL)
		return false;
	*r = issue_fix(a->base, 0);
	if (*r == CUDA_SUCCESS)
		a->sync_memops = *(const unsigned int *)value != 0;
	return true;
}

bool issue_ipc_refused(CUdeviceptr p)
{
	struct alloc *a = managed(p);

	if (a == NULL)
		return false;
	stat_add(refused, 1);
	log_once(LOG_ERROR, "sharing memory with another process (cuIpc) is "
		"refused: the allocation of %llu bytes is managed; a larger "
		"min_alloc leaves it to the driver",
		(unsigned long long)a->size);
	return true;
}
