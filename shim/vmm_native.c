/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of handles on their way: to other pages, to memory of the driver's
 * own, to nowhere.  Called by vmm and vmm_map with the handle to themselves.
 */
#include "shim/vmm_int.h"

#include <stdlib.h>

#include "shim/api_table.h"
#include "shim/log.h"
#include "shim/stats.h"
#include "shim/tenancy.h"

static void part_of(const struct vmm_handle *h, struct alloc *part)
{
	tenancy_part(part, h->device, h->home, h->first, h->size);
}

/* ---- to other pages ---- */

CUresult vmm_move(struct vmm_handle *h, struct alloc *to, uint32_t first)
{
	struct device *d = h->device;
	struct alloc part, place;
	CUresult r;

	part_of(h, &part);
	tenancy_part(&place, d, to, first, h->size);
	r = tenancy_hold(d, &part);
	if (r != CUDA_SUCCESS)
		return r;
	r = tenancy_move(d, &part, &place);
	if (r != CUDA_SUCCESS)
		tenancy_unhold(d, &part);
	else
		alloc_span_move(d, h->home, part.base, h->size, to, place.base);
	return r;
}

CUresult vmm_park(struct mapping *m)
{
	struct vmm_handle *h = m->handle;
	struct device *d = h->device;
	struct alloc *a;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	h->busy = true;
	lock_release(&vmm_lock);
	a = alloc_reserve(d, h->size, d->page_size);
	if (a != NULL) {
		a->top = a->first + a->nr_pages;
		r = vmm_move(h, a, a->first);
		if (r != CUDA_SUCCESS)
			alloc_unreserve(d, a);
	}
	lock_acquire(&vmm_lock);
	h->busy = false;
	if (r == CUDA_SUCCESS) {
		vmm_mapping_remove(m);
		h->mapping = NULL;
		h->home = a;
		h->first = a->first;
	}
	vmm_wake();
	return r;
}

/* ---- to nowhere ---- */

/* The place that the handle's bytes have left. */
static void place_leave(struct vmm_handle *h) REQUIRES(&vmm_lock)
{
	if (h->mapping != NULL)
		vmm_mapping_remove(h->mapping);
	else
		alloc_unreserve(h->device, h->home);
	h->mapping = NULL;
	h->home = NULL;
	stat_sub(managed_bytes, h->size);
}

CUresult vmm_handle_drop(struct vmm_handle *h)
{
	struct device *d = h->device;
	struct alloc part;
	CUresult r;

	h->busy = true;
	lock_release(&vmm_lock);
	part_of(h, &part);
	r = tenancy_hold(d, &part);
	if (r == CUDA_SUCCESS && tenancy_drop_held(d, &part) != CUDA_SUCCESS)
		log_err("memory of a released handle is lost");
	if (r == CUDA_SUCCESS)
		alloc_span_drop(d, h->home, part.base, h->size);
	lock_acquire(&vmm_lock);
	h->busy = false;
	if (r == CUDA_SUCCESS) {
		place_leave(h);
		vmm_handle_destroy(h);
	}
	vmm_wake();
	return r;
}

/* ---- to the driver ---- */

static CUresult native_create(struct vmm_handle *h,
	CUmemGenericAllocationHandle *n)
{
	CUresult r = real.cuMemCreate(n, h->size, &h->prop, 0);

	if (r == CUDA_ERROR_OUT_OF_MEMORY &&
	    tenancy_reclaim(h->device, h->size) > 0)
		r = real.cuMemCreate(n, h->size, &h->prop, 0);
	return r;
}

static CUresult native_map(struct vmm_handle *h, CUdeviceptr p,
	CUmemGenericAllocationHandle n, unsigned access)
{
	CUmemAccessDesc desc = {
		.location = {
			.type = CU_MEM_LOCATION_TYPE_DEVICE,
			.id = h->device->ordinal,
		},
		.flags = (CUmemAccess_flags)access,
	};
	CUresult r = real.cuMemMap(p, h->size, 0, n, 0);

	if (r != CUDA_SUCCESS || access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
		return r;
	r = real.cuMemSetAccess(p, h->size, &desc, 1);
	if (r != CUDA_SUCCESS)
		real.cuMemUnmap(p, h->size);
	return r;
}

/* Copies the bytes to native memory and frees the pages. */
static CUresult bytes_leave(struct vmm_handle *h,
	CUmemGenericAllocationHandle n)
{
	struct device *d = h->device;
	struct alloc part;
	CUdeviceptr at;
	CUresult r;

	r = real.cuMemAddressReserve(&at, h->size, 0, 0, 0);
	if (r != CUDA_SUCCESS)
		return r;
	part_of(h, &part);
	r = native_map(h, at, n, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	if (r == CUDA_SUCCESS) {
		r = tenancy_hold(d, &part);
		if (r == CUDA_SUCCESS) {
			r = tenancy_copy_held(d, &part, at);
			/* What cannot be unmapped is logged, and lost. */
			if (r == CUDA_SUCCESS) {
				tenancy_drop_held(d, &part);
				alloc_span_drop(d, h->home, part.base,
					h->size);
			} else {
				tenancy_unhold(d, &part);
			}
		}
		real.cuMemUnmap(at, h->size);
	}
	real.cuMemAddressFree(at, h->size);
	return r;
}

static void say_native(CUresult r)
{
	if (r == CUDA_SUCCESS)
		log_once(LOG_INFO, "memory that the program maps twice, maps "
			"outside the window or shares with other devices "
			"stays on the GPU");
	else
		log_once(LOG_ERROR, "memory that the program maps twice or "
			"shares with other devices must stay on the GPU: %s; "
			"a larger GPU or manage_vmm = false may help",
			api_result_name(r));
}

CUresult vmm_nativize(struct vmm_handle *h, bool *lost)
{
	CUmemGenericAllocationHandle n = 0;
	struct mapping *m = h->mapping;
	CUresult r = native_create(h, &n);
	bool mapped = m != NULL && !m->unmapped;

	*lost = false;
	if (r == CUDA_SUCCESS && h->state == VMM_MANAGED) {
		r = bytes_leave(h, n);
		if (r != CUDA_SUCCESS)
			real.cuMemRelease(n);
	}
	say_native(r);
	if (r != CUDA_SUCCESS)
		return r;
	if (mapped)
		r = native_map(h, m->base, n, m->access);
	lock_acquire(&vmm_lock);
	if (h->state == VMM_EMPTY) {
		vmm_handle_begins(h, VMM_NATIVE);
	} else if (mapped && r == CUDA_SUCCESS) {
		m->handle = NULL;
		h->mapping = NULL;
		h->home = NULL;
		stat_sub(managed_bytes, h->size);
	} else {
		place_leave(h);
	}
	h->state = VMM_NATIVE;
	h->native = n;
	lock_release(&vmm_lock);
	*lost = r != CUDA_SUCCESS;
	if (*lost)
		log_err("memory at a reserved address could not be mapped "
			"again: %s", api_result_name(r));
	return r;
}
