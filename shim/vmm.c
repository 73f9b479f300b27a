/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles and reservations: the tables, and what needs no mapping to change.
 */
#include "shim/vmm_int.h"

#include <stdlib.h>
#include <string.h>

#include "shim/api_table.h"
#include "shim/log.h"
#include "shim/stats.h"
#include "shim/status.h"
#include "shim/tenancy.h"

/*
 * Our numbers: no address of a process has such upper bits, and the driver's
 * are small or addresses.  Below: a generation, then the index.
 */
#define TAG 0xba11ull
#define TAG_SHIFT 48
#define GENERATION_SHIFT 32
#define MAX_HANDLES (1u << 24)

/* Of the window; the rest is for plain allocations. */
#define RESERVE_SHARE 2

struct lock vmm_lock = LOCK_INITIALIZER(LOCK_HANDLES, "virtual memory");
static pthread_cond_t vmm_cond;
static bool cond_ready GUARDED_BY(vmm_lock);

static struct {
	struct vmm_handle **at;		/* owned; NULL: free */
	uint16_t *generation;		/* owned */
	uint32_t nr;
	uint32_t max;
	uint32_t *reuse;		/* owned; stack of free entries */
	uint32_t nr_reuse;
} table GUARDED_BY(vmm_lock);

/* By device: bytes of handles that never were mapped; reserved bytes. */
static uint64_t promised[DEVICE_MAX] GUARDED_BY(vmm_lock);
static uint64_t reserved[DEVICE_MAX] GUARDED_BY(vmm_lock);

void vmm_wait(void)
{
	if (!cond_ready)
		cond_init(&vmm_cond);
	cond_ready = true;
	lock_wait(&vmm_lock, &vmm_cond, lock_now_ns() + 1000000000ull);
}

void vmm_wake(void)
{
	if (cond_ready)
		pthread_cond_broadcast(&vmm_cond);
}

/* ---- handles ---- */

bool vmm_is_handle(CUmemGenericAllocationHandle value)
{
	return value >> TAG_SHIFT == TAG;
}

static struct vmm_handle *find(CUmemGenericAllocationHandle value)
	REQUIRES(&vmm_lock)
{
	uint32_t i = (uint32_t)value;

	return vmm_is_handle(value) && i < table.nr && table.at[i] != NULL &&
		table.at[i]->value == value ? table.at[i] : NULL;
}

struct vmm_handle *vmm_handle_get(CUmemGenericAllocationHandle value)
{
	struct vmm_handle *h;

	while ((h = find(value)) != NULL && h->busy)
		vmm_wait();
	return h;
}

struct device *vmm_device(CUmemGenericAllocationHandle value)
{
	struct vmm_handle *h;
	struct device *d;

	lock_acquire(&vmm_lock);
	h = find(value);
	d = h == NULL ? NULL : h->device;
	lock_release(&vmm_lock);
	return d;
}

static bool table_grow(void) REQUIRES(&vmm_lock)
{
	uint32_t n = table.max * 2 + 64;
	void *at, *generation, *reuse;

	if (table.nr < table.max)
		return true;
	if (n > MAX_HANDLES)
		return false;
	/* What has grown stays grown, whichever of them fails. */
	at = realloc(table.at, n * sizeof(*table.at));
	if (at != NULL)
		table.at = at;
	generation = realloc(table.generation, n * sizeof(*table.generation));
	if (generation != NULL)
		table.generation = generation;
	reuse = realloc(table.reuse, n * sizeof(*table.reuse));
	if (reuse != NULL)
		table.reuse = reuse;
	if (at == NULL || generation == NULL || reuse == NULL)
		return false;
	memset(table.generation + table.max, 0,
		(n - table.max) * sizeof(*table.generation));
	table.max = n;
	return true;
}

static bool handle_enter(struct vmm_handle *h) REQUIRES(&vmm_lock)
{
	uint32_t i;

	if (table.nr_reuse > 0)
		i = table.reuse[--table.nr_reuse];
	else if (table_grow())
		i = table.nr++;
	else
		return false;
	table.at[i] = h;
	h->value = TAG << TAG_SHIFT |
		(uint64_t)table.generation[i]++ << GENERATION_SHIFT | i;
	return true;
}

void vmm_handle_destroy(struct vmm_handle *h)
{
	uint32_t i = (uint32_t)h->value;

	if (h->state == VMM_EMPTY)
		promised[h->device->ordinal] -= h->size;
	table.at[i] = NULL;
	table.reuse[table.nr_reuse++] = i;
	free(h);
	vmm_wake();
}

void vmm_handle_begins(struct vmm_handle *h, enum vmm_state state)
{
	promised[h->device->ordinal] -= h->size;
	h->state = state;
	if (state != VMM_MANAGED)
		return;
	status_note_managed();
	stat_add(managed_allocs, 1);
	stat_add(managed_bytes, h->size);
	stat_max(managed_peak, stat_get(managed_bytes));
}

CUresult vmm_create(struct device *d, size_t size,
	const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *out)
{
	struct vmm_handle *h = calloc(1, sizeof(*h));
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (h == NULL)
		return r;
	h->device = d;
	h->size = size;
	h->prop = *prop;
	h->refs = 1;
	lock_acquire(&vmm_lock);
	/* A program expects to hear here, not when it maps. */
	if (size <= UINT64_MAX - promised[d->ordinal] &&
	    tenancy_fits(d, promised[d->ordinal] + size) && handle_enter(h)) {
		promised[d->ordinal] += size;
		*out = h->value;
		r = CUDA_SUCCESS;
	}
	lock_release(&vmm_lock);
	if (r != CUDA_SUCCESS)
		free(h);
	return r;
}

CUresult vmm_release(CUmemGenericAllocationHandle value)
{
	CUmemGenericAllocationHandle native = 0;
	CUresult r = CUDA_SUCCESS;
	struct vmm_handle *h;

	lock_acquire(&vmm_lock);
	h = vmm_handle_get(value);
	if (h == NULL || h->refs == 0) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (--h->refs > 0) {
		;
	} else if (h->state == VMM_EMPTY) {
		vmm_handle_destroy(h);
	} else if (h->state == VMM_NATIVE) {
		native = h->native;
		vmm_handle_destroy(h);
	} else if (h->mapping == NULL || h->mapping->unmapped) {
		r = vmm_handle_drop(h);
		if (r != CUDA_SUCCESS)
			h->refs++;	/* it can be tried again */
	}
	lock_release(&vmm_lock);
	/* Its memory lives on while it is mapped. */
	return native != 0 ? real.cuMemRelease(native) : r;
}

CUresult vmm_properties(CUmemGenericAllocationHandle value,
	CUmemAllocationProp *out)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct vmm_handle *h;

	lock_acquire(&vmm_lock);
	h = find(value);
	if (h != NULL && h->refs > 0 && out != NULL) {
		*out = h->prop;
		r = CUDA_SUCCESS;
	}
	lock_release(&vmm_lock);
	return r;
}

void vmm_translate(CUmemGenericAllocationHandle *value)
{
	CUmemGenericAllocationHandle native = *value;
	bool found = false;

	lock_acquire(&vmm_lock);
	for (uint32_t i = 0; i < table.nr && !found; i++) {
		struct vmm_handle *h = table.at[i];

		if (h != NULL && h->state == VMM_NATIVE &&
		    h->native == native) {
			h->refs++;
			*value = h->value;
			found = true;
		}
	}
	lock_release(&vmm_lock);
	if (found)
		real.cuMemRelease(native);
}

CUresult vmm_retain(CUdeviceptr p, CUmemGenericAllocationHandle *out)
{
	struct reservation *in;
	struct mapping *m;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	bool native = false;

	lock_acquire(&vmm_lock);
	while ((in = vmm_reservation(p)) != NULL &&
	       (m = vmm_mapping_at(in, p)) != NULL && vmm_is_busy(m))
		vmm_wait();
	if (in != NULL && m != NULL && !m->unmapped && out != NULL) {
		native = m->handle == NULL;
		r = CUDA_SUCCESS;
		if (!native) {
			m->handle->refs++;
			*out = m->handle->value;
		}
	}
	lock_release(&vmm_lock);
	if (native) {
		r = real.cuMemRetainAllocationHandle(out,
			(void *)(uintptr_t)p);
		if (r == CUDA_SUCCESS)
			vmm_translate(out);
	}
	return r;
}

/* ---- reservations ---- */

struct reservation *vmm_reservation(CUdeviceptr p)
{
	struct device *d = device_find(p);
	struct alloc *a = NULL;
	struct reservation *r;

	/* Without one there may be no table of allocations yet. */
	if (d != NULL && reserved[d->ordinal] > 0)
		a = alloc_at(d, p);
	r = a == NULL ? NULL : a->reservation;
	return r != NULL && p - r->base < r->size ? r : NULL;
}

struct mapping *vmm_mapping_at(const struct reservation *r, CUdeviceptr p)
{
	return r->at[(p - r->base) >> r->device->page_shift];
}

void vmm_mapping_remove(struct mapping *m)
{
	struct reservation *in = m->in;
	unsigned shift = in->device->page_shift;
	uint32_t first = (uint32_t)((m->base - in->base) >> shift);

	for (uint32_t i = 0; i < m->size >> shift; i++)
		in->at[first + i] = NULL;
	if (!m->unmapped)
		in->nr_mapped--;
	free(m);
	vmm_wake();
}

static CUdeviceptr round_up(CUdeviceptr p, size_t align)
{
	return (p + align - 1) & ~(CUdeviceptr)(align - 1);
}

CUdeviceptr vmm_reserve(struct device *d, size_t size, size_t align)
{
	struct reservation *r = calloc(1, sizeof(*r));
	uint64_t most = d->window_size / RESERVE_SHARE;

	if (align < d->page_size)
		align = d->page_size;
	if (r == NULL || size > most || align > most)
		goto fail;
	r->device = d;
	r->size = size;
	r->nr_pages = (uint32_t)((size + d->page_size - 1) >> d->page_shift);
	r->at = calloc(r->nr_pages, sizeof(struct mapping *));
	if (r->at == NULL)
		goto fail;
	lock_acquire(&vmm_lock);
	if (reserved[d->ordinal] + size + align <= most)
		r->alloc = alloc_reserve(d, (uint64_t)r->nr_pages <<
			d->page_shift, align);
	if (r->alloc != NULL) {
		r->base = round_up(r->alloc->base, align);
		r->first = device_page(d, r->base);
		r->alloc->reservation = r;
		reserved[d->ordinal] += size;
	}
	lock_release(&vmm_lock);
	if (r->alloc != NULL)
		return r->base;
fail:
	if (r != NULL)
		free(r->at);
	free(r);
	return 0;
}

CUresult vmm_unreserve(CUdeviceptr p, size_t size)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct reservation *in;
	uint32_t i;

	lock_acquire(&vmm_lock);
	for (;;) {
		in = vmm_reservation(p);
		if (in == NULL || in->base != p || in->size != size ||
		    in->nr_mapped > 0)
			goto out;
		for (i = 0; i < in->nr_pages && in->at[i] == NULL; i++)
			;
		if (i == in->nr_pages)
			break;
		if (vmm_is_busy(in->at[i])) {
			vmm_wait();
			continue;
		}
		r = vmm_park(in->at[i]);
		if (r != CUDA_SUCCESS)
			goto out;
		r = CUDA_ERROR_INVALID_VALUE;
	}
	reserved[in->device->ordinal] -= in->size;
	alloc_unreserve(in->device, in->alloc);
	free(in->at);
	free(in);
	r = CUDA_SUCCESS;
out:
	lock_release(&vmm_lock);
	return r;
}

bool vmm_info(CUdeviceptr p, struct vmm_info *info)
{
	struct reservation *in;
	struct mapping *m;

	if (device_find(p) == NULL)
		return false;
	memset(info, 0, sizeof(*info));
	lock_acquire(&vmm_lock);
	in = vmm_reservation(p);
	m = in == NULL ? NULL : vmm_mapping_at(in, p);
	if (in != NULL) {
		info->device = in->device;
		info->range = in->base;
		info->range_size = in->size;
	}
	if (m != NULL && !m->unmapped) {
		info->base = m->base;
		info->size = m->size;
		info->native = m->handle == NULL;
	}
	if (info->size > 0 && !info->native) {
		info->id = m->handle->value;
		info->access = m->access;
		info->rdma = m->handle->prop.allocFlags.gpuDirectRDMACapable;
	}
	lock_release(&vmm_lock);
	return in != NULL;
}

bool vmm_usable(CUdeviceptr p, size_t n, bool write)
{
	unsigned want = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE :
		CU_MEM_ACCESS_FLAGS_PROT_READ;
	CUdeviceptr at = p;
	struct reservation *in;
	struct mapping *m;
	bool ok;

	lock_acquire(&vmm_lock);
	in = vmm_reservation(p);
	ok = in != NULL;
	while (ok && at - p < n) {
		m = at - in->base < in->size ? vmm_mapping_at(in, at) : NULL;
		ok = m != NULL && !m->unmapped && (m->handle == NULL ||
			(m->access & want) == want);
		if (ok)
			at = m->base + m->size;
	}
	lock_release(&vmm_lock);
	return ok;
}
