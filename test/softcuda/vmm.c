/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management with the real driver's rules: mappings start at
 * offset 0 and cover a whole handle, unmapping takes whole mappings, rights
 * belong to the mapping and go with it, one handle may be mapped at many
 * addresses.  Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/space.h"

#include <stdlib.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/device.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memcpy.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/sim.h"
#include "test/softcuda/vmm.h"

/* The thread sanitizer keeps the program from device addresses. */
#ifdef __SANITIZE_THREAD__
#define CAN_SHOW false
#else
#define CAN_SHOW true
#endif

/* One per handle value; several calls may have given the same one out. */
struct handle {
	uint64_t value;
	unsigned refs;
	struct block *block;		/* counted */
	UT_hash_handle hh;
};

static struct handle *handles;
static uint64_t next_value = 0x100001;

unsigned vmm_nr_handles(void)
{
	return HASH_COUNT(handles);
}

static struct handle *find(uint64_t value)
{
	struct handle *h;

	HASH_FIND(hh, handles, &value, sizeof(value), h);
	return h;
}

static bool aligned(uint64_t x)
{
	return x % knobs.granularity == 0;
}

static CUresult supported(void)
{
	return knobs.vmm ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- handles ------------------------------------------------------------------ */

/* The block's device for a location, or an error. */
static CUresult locate(const CUmemAllocationProp *p, int *device)
{
	if (!p || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (p->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		*device = p->location.id;
		return device_valid(*device) ? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		*device = BLOCK_HOST;
		return knobs.host_vmm ? CUDA_SUCCESS
			: CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

uint64_t vmm_handle(struct block *b)
{
	struct handle *h = b->handle ? find(b->handle) : NULL;

	if (!h) {
		h = object_alloc(sizeof(*h));
		h->value = next_value++;
		h->block = b;
		block_get(b);
		b->handle = h->value;
		HASH_ADD(hh, handles, value, sizeof(h->value), h);
	}
	h->refs++;
	return h->value;
}

struct block *vmm_block(uint64_t value)
{
	struct handle *h = find(value);

	return h ? h->block : NULL;
}

struct block *vmm_block_of_file(uint64_t file)
{
	struct handle *h, *next;

	HASH_ITER(hh, handles, h, next)
		if (h->block->file == file)
			return h->block;
	return NULL;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct block *b;
	int device;
	CUresult r = supported();

	if (r)
		return r;
	if (!out || !size || !aligned(size) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = locate(prop, &device);
	if (r)
		return r;
	if (prop->requestedHandleTypes
	    & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	    || (prop->requestedHandleTypes && device == BLOCK_HOST)) {
		report_log("cuMemCreate: such memory cannot be shared with "
			"other processes");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	r = block_create(device, size, &b);
	if (r)
		return r;
	b->prop = *prop;
	*out = vmm_handle(b);
	block_put(b);
	stats.creates++;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = create(out, size, prop, flags);
	return call_end(&c);
}

static CUresult release(CUmemGenericAllocationHandle value)
{
	struct handle *h = find(value);

	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	stats.releases++;
	if (--h->refs)
		return CUDA_SUCCESS;
	HASH_DEL(handles, h);
	h->block->handle = 0;
	block_put(h->block);
	free(h);
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle value)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = release(value);
	return call_end(&c);
}

/* A handle for what is mapped, even if all others have been released. */
static CUresult retain(CUmemGenericAllocationHandle *out, void *address)
{
	struct map *m = space_find((uintptr_t)address);

	if (!out || !m || m->region->kind != REGION_RESERVED)
		return CUDA_ERROR_INVALID_VALUE;
	*out = vmm_handle(m->block);
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out,
	void *address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		c.result = supported();
		if (!c.result)
			c.result = retain(out, address);
	}
	return call_end(&c);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out,
	CUmemGenericAllocationHandle value)
{
	struct handle *h;
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT)) {
		h = find(value);
		if (!out || !h)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else
			*out = h->block->prop;
	}
	return call_end(&c);
}

static CUresult granularity(size_t *out, const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags flags)
{
	int device;
	CUresult r = supported();

	if (r)
		return r;
	if (!out || (unsigned)flags > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	r = locate(prop, &device);
	if (!r)
		*out = knobs.granularity;
	return r;
}

CUresult cuMemGetAllocationGranularity(size_t *out,
	const CUmemAllocationProp *prop,
	CUmemAllocationGranularity_flags flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = granularity(out, prop, flags);
	return call_end(&c);
}

/* ---- address ranges ------------------------------------------------------------- */

static CUresult reserve(CUdeviceptr *out, size_t size, size_t align,
	CUdeviceptr hint, unsigned long long flags)
{
	struct region *r;
	CUresult result = supported();

	if (result)
		return result;
	if (!out || !size || !aligned(size) || flags || align & (align - 1))
		return CUDA_ERROR_INVALID_VALUE;
	r = space_reserve(size, align, hint, REGION_RESERVED);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = r->address;
	return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t size, size_t align,
	CUdeviceptr hint, unsigned long long flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = reserve(out, size, align, hint, flags);
	return call_end(&c);
}

static CUresult address_free(CUdeviceptr address, size_t size)
{
	struct region *r = space_region(address);

	if (!r || r->kind != REGION_RESERVED || r->address != address
	    || r->size != size)
		return CUDA_ERROR_INVALID_VALUE;
	if (r->nr_maps) {
		report_rule("addressfree", "cuMemAddressFree of %#llx with %u "
			"mappings in it", (unsigned long long)address,
			r->nr_maps);
		return CUDA_ERROR_INVALID_VALUE;
	}
	space_release(r);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = address_free(address, size);
	return call_end(&c);
}

/* ---- mappings ---------------------------------------------------------------------- */

static bool range_is_unmapped(uint64_t address, uint64_t size)
{
	uint64_t at;

	for (at = address; at < address + size; at += knobs.granularity)
		if (space_find(at))
			return false;
	return true;
}

static CUresult check_map(CUdeviceptr address, size_t size, size_t offset,
	const struct handle *h, const struct region *r)
{
	const char *why = NULL;

	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	if (offset)
		why = "the offset is not 0";
	else if (!aligned(address) || !aligned(size))
		why = "address or size is not aligned";
	else if (size > h->block->size
	    || (size < h->block->size && !knobs.map_prefix))
		why = "it does not cover the whole handle";
	else if (!r || r->kind != REGION_RESERVED
	    || address + size > r->address + r->size)
		why = "it does not lie in a reservation";
	else if (!range_is_unmapped(address, size))
		why = "something is mapped there";
	if (!why)
		return CUDA_SUCCESS;
	report_rule("map", "cuMemMap of %#llx, %llu bytes: %s",
		(unsigned long long)address, (unsigned long long)size, why);
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult map(CUdeviceptr address, size_t size, size_t offset,
	CUmemGenericAllocationHandle value, unsigned long long flags)
{
	struct handle *h = find(value);
	struct region *r = space_region(address);
	CUresult result = supported();

	if (!result && (flags || !size))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = check_map(address, size, offset, h, r);
	if (result)
		return result;
	space_map(r, address, size, h->block);
	stats.maps++;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
	CUmemGenericAllocationHandle value, unsigned long long flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = map(address, size, offset, value, flags);
	return call_end(&c);
}

/*
 * Whether [address, address + size) is made of whole mappings of reservations.
 * With a rule's name, a partial one is reported.
 */
static bool whole_mappings(uint64_t address, uint64_t size, const char *rule,
	const char *call)
{
	uint64_t at = address;
	struct map *m;

	while (at < address + size) {
		m = space_find(at);
		if (!m || m->region->kind != REGION_RESERVED)
			break;
		if (m->address != at || at + m->size > address + size)
			break;
		at += m->size;
	}
	if (at == address + size)
		return true;
	report_rule(rule, "%s of %#llx, %llu bytes: not made of whole mappings "
		"at %#llx", call, (unsigned long long)address,
		(unsigned long long)size, (unsigned long long)at);
	return false;
}

static bool is_host(const CUmemLocation *where)
{
	return where->type == CU_MEM_LOCATION_TYPE_HOST
		|| where->type == CU_MEM_LOCATION_TYPE_HOST_NUMA
		|| where->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static bool has_access(const struct map *m)
{
	int i, any = m->host_access;

	for (i = 0; i < DEVICE_MAX; i++)
		any |= m->access[i];
	return any;
}

static CUresult unmap(CUdeviceptr address, size_t size)
{
	uint64_t at, next;
	struct map *m;
	CUresult r = supported();

	if (r)
		return r;
	if (knobs.unmap_waits)
		sim_wait_context(NULL);
	if (!size || address + size < address
	    || !whole_mappings(address, size, "unmap", "cuMemUnmap"))
		return CUDA_ERROR_INVALID_VALUE;
	for (at = address; at < address + size; at = next) {
		m = space_find(at);
		next = at + m->size;
		memcpy_check_idle(m, "unmap", "cuMemUnmap");
		if (has_access(m))
			m->block->accessible--;
		if (m->host_access)
			block_hide(m->block, m->address);
		space_unmap(m);
		stats.unmaps++;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT | CALL_FREES))
		c.result = unmap(address, size);
	return call_end(&c);
}

/* ---- rights ------------------------------------------------------------------------ */

static CUresult check_desc(const CUmemAccessDesc *d)
{
	if (d->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE
	    && d->flags != CU_MEM_ACCESS_FLAGS_PROT_READ
	    && d->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		if (d->flags == CU_MEM_ACCESS_FLAGS_PROT_READ
		    && !knobs.alias_readonly)
			return CUDA_ERROR_NOT_SUPPORTED;
		return device_valid(d->location.id) ? CUDA_SUCCESS
			: CUDA_ERROR_INVALID_DEVICE;
	}
	if (!is_host(&d->location))
		return CUDA_ERROR_INVALID_VALUE;
	return knobs.host_vmm && CAN_SHOW ? CUDA_SUCCESS
		: CUDA_ERROR_NOT_SUPPORTED;
}

/* The host reaches only host memory, at the very address of the mapping. */
static CUresult grant_host(struct map *m, const CUmemAccessDesc *d)
{
	if (m->block->device != BLOCK_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	if (d->flags && !m->host_access && !block_show(m->block, m->address))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!d->flags && m->host_access)
		block_hide(m->block, m->address);
	m->host_access = (uint8_t)d->flags;
	return CUDA_SUCCESS;
}

static CUresult grant(struct map *m, const CUmemAccessDesc *d, size_t n)
{
	bool before = has_access(m);
	CUresult r = CUDA_SUCCESS;
	size_t i;

	for (i = 0; i < n && !r; i++) {
		if (is_host(&d[i].location))
			r = grant_host(m, &d[i]);
		else
			m->access[d[i].location.id] = (uint8_t)d[i].flags;
	}
	m->block->accessible += (unsigned)has_access(m) - (unsigned)before;
	return r;
}

static CUresult set_access(CUdeviceptr address, size_t size,
	const CUmemAccessDesc *d, size_t n)
{
	uint64_t at;
	struct map *m;
	CUresult r = supported();
	size_t i;

	if (!r && (!d || !n || !size || address + size < address))
		r = CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n && !r; i++)
		r = check_desc(&d[i]);
	if (r)
		return r;
	if (!whole_mappings(address, size, "setaccess", "cuMemSetAccess"))
		return CUDA_ERROR_INVALID_VALUE;
	for (at = address; at < address + size; at += m->size) {
		m = space_find(at);
		if (knobs.alias_limit && !has_access(m)
		    && m->block->accessible >= (uint64_t)knobs.alias_limit)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (at = address; at < address + size && !r; at += m->size) {
		m = space_find(at);
		r = grant(m, d, n);
	}
	stats.set_accesses++;
	return r;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t size,
	const CUmemAccessDesc *desc, size_t n)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = set_access(address, size, desc, n);
	return call_end(&c);
}

static CUresult get_access(unsigned long long *flags,
	const CUmemLocation *where, CUdeviceptr address)
{
	struct map *m = space_find(address);

	if (!flags || !where || !m
	    || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_valid(where->id))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = m->access[where->id];
	return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where,
	CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = get_access(flags, where, address);
	return call_end(&c);
}
