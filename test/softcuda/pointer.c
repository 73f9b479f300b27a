/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program can ask about a pointer.  Called by the program; guarded by
 * the driver's lock.
 */
#include "test/softcuda/memory.h"

#include <string.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/hostmem.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/share.h"

/* The size of an attribute's answer, 0 for one that is not answered. */
static size_t size_of(CUpointer_attribute attr)
{
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return 8;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		return 4;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		return 1;
	default:
		return 0;
	}
}

/* What is known of one pointer. */
struct about {
	struct context *caller;
	uint64_t address;
	struct map *map;		/* NULL: reserved, nothing mapped */
	struct region *region;		/* NULL: host */
	struct hostmem *host;
	uint64_t start, size;		/* allocation or reservation */
	struct context *context;
};

static bool look(struct context *caller, uint64_t address, struct about *a)
{
	struct memory_range range;

	memset(a, 0, sizeof(*a));
	a->caller = caller;
	a->address = address;
	a->host = space_holds(address) ? NULL : hostmem_find(address);
	if (a->host) {
		a->map = &a->host->map;
		a->start = a->map->address;
		a->size = a->map->size;
		a->context = a->host->context;
		return true;
	}
	a->region = space_region(address);
	if (!a->region)
		return false;
	a->map = space_find(address);
	a->start = a->region->address;
	a->size = a->region->size;
	a->context = a->region->context;
	if (a->region->kind == REGION_RESERVED)
		return true;
	if (!memory_range(address, &range))
		return false;
	a->start = range.address;
	a->size = range.size;
	return true;
}

static CUresult number(const struct about *a, CUpointer_attribute attr,
	uint64_t *out)
{
	bool needs_map = attr == CU_POINTER_ATTRIBUTE_MAPPING_SIZE
		|| attr == CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR
		|| attr == CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID
		|| attr == CU_POINTER_ATTRIBUTE_BUFFER_ID;

	if (needs_map && !a->map)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attr) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*out = (uintptr_t)(knobs.pool_context && !a->host && a->map
			&& a->region->kind == REGION_POOL
			? mempool_context(a->map, a->address) : a->context);
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*out = a->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*out = a->address;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!a->host)
			return CUDA_ERROR_INVALID_VALUE;
		*out = a->address;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		/* Allocations of a slab must differ: their offset makes it. */
		*out = a->map->buffer_id << 24
			| (a->start - a->map->address) >> 9;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*out = (uint64_t)(a->context ? a->context->device
			: a->map && a->map->block->device >= 0
			? a->map->block->device : a->caller->device);
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*out = !a->host && (a->region->kind == REGION_ALLOC
			|| a->region->kind == REGION_SLAB);
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*out = !a->host && a->map && share_can_dma(a->map);
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*out = a->map ? a->map->block->prop.requestedHandleTypes : 0;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*out = !a->host && a->region->kind == REGION_POOL
			? (uintptr_t)mempool_of(a->map) : 0;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*out = a->start;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*out = a->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*out = a->map != NULL;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*out = a->map ? space_access(a->map, a->caller) : 0;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*out = a->map->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*out = a->map->address;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*out = a->map->block->id;
		break;
	default:
		*out = 0;
		break;
	}
	return CUDA_SUCCESS;
}

static CUresult get_attribute(struct context *ctx, void *out,
	CUpointer_attribute attr, CUdeviceptr address)
{
	size_t size = size_of(attr);
	struct about a;
	uint64_t value;
	CUresult r;

	if (!out || (!size && attr != CU_POINTER_ATTRIBUTE_P2P_TOKENS))
		return CUDA_ERROR_INVALID_VALUE;
	if (!size)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!look(ctx, address, &a))
		return CUDA_ERROR_INVALID_VALUE;
	r = number(&a, attr, &value);
	if (!r)
		memcpy(out, &value, size);
	return r;
}

CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attr,
	CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_attribute(c.context, out, attr, address);
	return call_end(&c);
}

/* Unlike the single one, this answers zeros for a pointer it does not know. */
static CUresult get_attributes(struct context *ctx, unsigned n,
	CUpointer_attribute *attr, void **out, CUdeviceptr address)
{
	struct about a;
	uint64_t value;
	unsigned i;
	bool found;

	if (!n || !attr || !out)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n; i++)
		if (!out[i] || !size_of(attr[i]))
			return CUDA_ERROR_INVALID_VALUE;
	found = look(ctx, address, &a);
	for (i = 0; i < n; i++) {
		value = attr[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
			? (uint64_t)-2 : 0;
		if (found && number(&a, attr[i], &value))
			value = 0;
		memcpy(out[i], &value, size_of(attr[i]));
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerGetAttributes(unsigned int n, CUpointer_attribute *attr,
	void **out, CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_attributes(c.context, n, attr, out, address);
	return call_end(&c);
}

/* Copies are ordered as this attribute wants it already; VMM: F-2.7. */
static CUresult set_attribute(struct context *ctx, const void *value,
	CUpointer_attribute attr, CUdeviceptr address)
{
	struct about a;

	if (!value || attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
	    || !look(ctx, address, &a))
		return CUDA_ERROR_INVALID_VALUE;
	return a.region && a.region->kind == REGION_RESERVED
		&& !knobs.vmm_sync_memops
		? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attr,
	CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = set_attribute(c.context, value, attr, address);
	return call_end(&c);
}
