/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapping, unmapping and rights in reservations of the window.  Each call
 * decides under vmm_lock, marks what it changes as busy, and works without the
 * lock.
 */
#include "shim/vmm_int.h"

#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/log.h"
#include "shim/stats.h"
#include "shim/tenancy.h"

/* One cuMemMap: what goes where. */
struct request {
	CUdeviceptr p;
	size_t size;
	size_t offset;
	CUmemGenericAllocationHandle value;
	struct device *device;		/* NULL: an address of the driver's */
	struct vmm_handle *handle;	/* busy; NULL: a handle of the driver's */
	struct mapping *mapping;	/* busy; NULL: as device */
};

/* ---- map ---- */

static bool whole_pages(const struct device *d, uint64_t x)
{
	return (x & (d->page_size - 1)) == 0;
}

/* The first thing in [p, p + size) of a reservation. */
static struct mapping *in_the_way(const struct reservation *in, CUdeviceptr p,
	size_t size)
	REQUIRES(&vmm_lock)
{
	for (size_t off = 0; off < size; off += in->device->page_size) {
		struct mapping *m = vmm_mapping_at(in, p + off);

		if (m != NULL)
			return m;
	}
	return NULL;
}

static CUresult mapping_enter(struct request *q, struct reservation *in)
	REQUIRES(&vmm_lock)
{
	struct mapping *m = calloc(1, sizeof(*m));
	uint32_t end = device_page(in->device, q->p + q->size - 1) + 1;
	unsigned shift = in->device->page_shift;

	if (m == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->in = in;
	m->base = q->p;
	m->size = q->size;
	m->busy = true;
	for (size_t i = 0; i < q->size >> shift; i++)
		in->at[((q->p - in->base) >> shift) + i] = m;
	in->nr_mapped++;
	if (in->alloc->top < end)
		__atomic_store_n(&in->alloc->top, end, __ATOMIC_RELAXED);
	q->mapping = m;
	return CUDA_SUCCESS;
}

/*
 * Looks for the place; true when the request is decided, with *r.  May wait
 * and move others away; then all must be looked at again.
 */
static bool place_find(struct request *q, CUresult *r) REQUIRES(&vmm_lock)
{
	struct reservation *in = vmm_reservation(q->p);
	struct vmm_handle *h = q->handle;
	struct mapping *old;

	*r = CUDA_ERROR_INVALID_VALUE;
	if (in == NULL || !whole_pages(in->device, q->p) ||
	    !whole_pages(in->device, q->size) ||
	    q->size > in->base + in->size - q->p)
		return true;
	old = in_the_way(in, q->p, q->size);
	if (old == NULL) {
		*r = mapping_enter(q, in);
		return true;
	}
	if (vmm_is_busy(old)) {
		vmm_wait();
		return false;
	}
	if (!old->unmapped)
		return true;
	if (h != NULL && old->handle == h && old->base == q->p) {
		/* Back to where it was. */
		old->unmapped = false;
		in->nr_mapped++;
		*r = CUDA_SUCCESS;
		return true;
	}
	*r = vmm_park(old);
	return *r != CUDA_SUCCESS;
}

static CUresult map_begin(struct request *q) REQUIRES(&vmm_lock)
{
	CUresult r = CUDA_SUCCESS;

	do {
		q->handle = NULL;
		if (vmm_is_handle(q->value)) {
			q->handle = vmm_handle_get(q->value);
			if (q->handle == NULL || q->handle->refs == 0 ||
			    q->handle->size != q->size)
				return CUDA_ERROR_INVALID_VALUE;
		}
		if (q->offset != 0 || q->size == 0)
			return CUDA_ERROR_INVALID_VALUE;
	} while (q->device != NULL && !place_find(q, &r));
	if (r == CUDA_SUCCESS && q->handle != NULL &&
	    (q->mapping != NULL || q->device == NULL))
		q->handle->busy = true;
	return r;
}

/* Memory of ours at the place. */
static CUresult map_managed(struct request *q)
{
	struct vmm_handle *h = q->handle;
	struct device *d = q->device;
	struct alloc *whole = q->mapping->in->alloc;
	uint32_t first = device_page(d, q->p);
	struct alloc part;

	if (h->state == VMM_MANAGED)
		return vmm_move(h, whole, first);
	tenancy_part(&part, d, whole, first, q->size);
	return tenancy_back(d, &part);
}

/* *managed: the bytes are ours at the new place. */
static CUresult map_work(struct request *q, bool *managed)
{
	struct vmm_handle *h = q->handle;
	CUresult r = CUDA_SUCCESS;
	bool lost;

	*managed = false;
	if (h == NULL)
		return real.cuMemMap(q->p, q->size, 0, q->value, 0);
	/* At two addresses at once, or where no table of ours reaches. */
	if (h->state != VMM_NATIVE && (h->device != q->device ||
	    (h->mapping != NULL && !h->mapping->unmapped)))
		r = vmm_nativize(h, &lost);
	if (r != CUDA_SUCCESS)
		return r;
	if (h->state == VMM_NATIVE)
		return real.cuMemMap(q->p, q->size, 0, h->native, 0);
	*managed = true;
	return map_managed(q);
}

/* The handle has its bytes at the new place, and nothing at the old one. */
static void place_take(struct request *q) REQUIRES(&vmm_lock)
{
	struct vmm_handle *h = q->handle;

	if (h->state == VMM_EMPTY)
		vmm_handle_begins(h, VMM_MANAGED);
	else if (h->mapping != NULL)
		vmm_mapping_remove(h->mapping);
	else
		alloc_unreserve(h->device, h->home);
	h->mapping = q->mapping;
	h->home = q->mapping->in->alloc;
	h->first = device_page(h->device, q->p);
	q->mapping->handle = h;
}

CUresult vmm_map(CUdeviceptr p, size_t size, size_t offset,
	CUmemGenericAllocationHandle value)
{
	struct request q = {
		.p = p, .size = size, .offset = offset, .value = value,
		.device = device_find(p),
	};
	bool managed, busy;
	CUresult r;

	lock_acquire(&vmm_lock);
	r = map_begin(&q);
	busy = q.mapping != NULL || q.device == NULL;
	if (r != CUDA_SUCCESS || !busy)
		goto out;
	lock_release(&vmm_lock);
	r = map_work(&q, &managed);
	lock_acquire(&vmm_lock);
	if (q.handle != NULL)
		q.handle->busy = false;
	if (q.mapping != NULL) {
		q.mapping->busy = false;
		if (r != CUDA_SUCCESS)
			vmm_mapping_remove(q.mapping);
		else if (managed)
			place_take(&q);
	}
	vmm_wake();
out:
	lock_release(&vmm_lock);
	return r;
}

/* ---- whole mappings ---- */

/*
 * Whether [p, p + size) is made of whole mappings of one reservation that
 * nobody is changing.  May wait.
 */
static bool is_tiled(CUdeviceptr p, size_t size) REQUIRES(&vmm_lock)
{
	struct reservation *in;
	struct mapping *m;
	CUdeviceptr at;

again:
	in = vmm_reservation(p);
	if (in == NULL || size == 0 || size > in->base + in->size - p)
		return false;
	for (at = p; at < p + size; at += m->size) {
		m = vmm_mapping_at(in, at);
		if (m != NULL && vmm_is_busy(m)) {
			vmm_wait();
			goto again;
		}
		if (m == NULL || m->unmapped || m->base != at ||
		    m->size > p + size - at)
			return false;
	}
	return true;
}

/* The mapping that starts at p; for the second look, after an unlock. */
static struct mapping *mapping_from(CUdeviceptr p) REQUIRES(&vmm_lock)
{
	struct reservation *in = vmm_reservation(p);
	struct mapping *m = in == NULL ? NULL : vmm_mapping_at(in, p);

	return m != NULL && m->base == p && !m->unmapped && !vmm_is_busy(m) ?
		m : NULL;
}

static CUresult unmap_one(struct mapping *m) REQUIRES(&vmm_lock)
{
	CUresult r = CUDA_SUCCESS;

	if (m->handle == NULL) {
		m->busy = true;
		lock_release(&vmm_lock);
		r = real.cuMemUnmap(m->base, m->size);
		lock_acquire(&vmm_lock);
		m->busy = false;
		if (r == CUDA_SUCCESS)
			vmm_mapping_remove(m);
		vmm_wake();
		return r;
	}
	if (m->handle->refs == 0)
		return vmm_handle_drop(m->handle);
	m->unmapped = true;
	m->access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	m->in->nr_mapped--;
	return r;
}

CUresult vmm_unmap(CUdeviceptr p, size_t size)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	CUdeviceptr at = p;
	struct mapping *m;

	lock_acquire(&vmm_lock);
	if (is_tiled(p, size))
		r = CUDA_SUCCESS;
	while (r == CUDA_SUCCESS && at < p + size) {
		m = mapping_from(at);
		if (m == NULL) {
			r = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		at += m->size;
		r = unmap_one(m);
	}
	lock_release(&vmm_lock);
	return r;
}

/* ---- rights ---- */

static bool is_own(const struct device *d, const CUmemLocation *where)
{
	return where->type == CU_MEM_LOCATION_TYPE_DEVICE &&
		where->id == d->ordinal;
}

/* Rights that only the driver can give: other devices, the host. */
static bool asks_more(const struct device *d, const CUmemAccessDesc *desc,
	size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_own(d, &desc[i].location) &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE)
			return true;
	return false;
}

static CUresult access_managed(struct mapping *m, const CUmemAccessDesc *desc,
	size_t n) REQUIRES(&vmm_lock)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned)desc[i].flags > CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		    || desc[i].flags == 2)
			return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n; i++)
		if (is_own(m->in->device, &desc[i].location))
			m->access = desc[i].flags;
	return CUDA_SUCCESS;
}

static CUresult access_one(struct mapping *m, const CUmemAccessDesc *desc,
	size_t n) REQUIRES(&vmm_lock)
{
	CUmemGenericAllocationHandle released = 0;
	struct vmm_handle *h = m->handle;
	CUresult r = CUDA_SUCCESS;
	bool lost = false;

	if (h != NULL && !asks_more(m->in->device, desc, n))
		return access_managed(m, desc, n);
	m->busy = true;
	if (h != NULL)
		h->busy = true;
	lock_release(&vmm_lock);
	if (h != NULL)
		r = vmm_nativize(h, &lost);
	if (r == CUDA_SUCCESS)
		r = real.cuMemSetAccess(m->base, m->size, desc, n);
	lock_acquire(&vmm_lock);
	if (!lost)
		m->busy = false;
	if (h != NULL)
		h->busy = false;
	if (h != NULL && h->refs == 0 && h->state == VMM_NATIVE) {
		/* Released already: the mapping keeps the memory. */
		released = h->native;
		vmm_handle_destroy(h);
	}
	vmm_wake();
	lock_release(&vmm_lock);
	if (released != 0)
		real.cuMemRelease(released);
	lock_acquire(&vmm_lock);
	return r;
}

CUresult vmm_set_access(CUdeviceptr p, size_t size,
	const CUmemAccessDesc *desc, size_t n)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	CUdeviceptr at = p;
	struct mapping *m;

	if (desc == NULL || n == 0)
		return r;
	lock_acquire(&vmm_lock);
	if (is_tiled(p, size))
		r = CUDA_SUCCESS;
	while (r == CUDA_SUCCESS && at < p + size) {
		m = mapping_from(at);
		if (m == NULL) {
			r = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		at += m->size;
		r = access_one(m, desc, n);
	}
	lock_release(&vmm_lock);
	return r;
}

CUresult vmm_get_access(unsigned long long *flags, const CUmemLocation *where,
	CUdeviceptr p)
{
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct reservation *in;
	struct mapping *m = NULL;
	bool native = false;

	lock_acquire(&vmm_lock);
	in = vmm_reservation(p);
	if (in != NULL)
		m = vmm_mapping_at(in, p);
	if (m != NULL && m->unmapped)
		m = NULL;
	if (m != NULL && m->handle == NULL) {
		native = true;
	} else if (m != NULL && flags != NULL && where != NULL &&
		   where->type == CU_MEM_LOCATION_TYPE_DEVICE) {
		*flags = is_own(in->device, where) ? m->access :
			CU_MEM_ACCESS_FLAGS_PROT_NONE;
		r = CUDA_SUCCESS;
	}
	lock_release(&vmm_lock);
	return native ? real.cuMemGetAccess(flags, where, p) : r;
}
