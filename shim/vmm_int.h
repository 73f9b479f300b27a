/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What vmm.c, vmm_map.c and vmm_native.c share.  Everything is guarded by
 * vmm_lock, but for objects that a thread has marked busy: nobody else changes
 * those, and it may look at them without the lock.
 */
#ifndef BALLAST_VMM_INT_H
#define BALLAST_VMM_INT_H

#include <stdint.h>

#include "shim/alloc.h"
#include "shim/lock.h"
#include "shim/vmm.h"

enum vmm_state {
	VMM_EMPTY,	/* never mapped: no memory yet */
	VMM_MANAGED,	/* the pages of `home` from `first` on have its bytes */
	VMM_NATIVE,	/* `native` has them */
};

struct vmm_handle {
	CUmemGenericAllocationHandle value;
	struct device *device;
	uint64_t size;
	CUmemAllocationProp prop;
	unsigned refs;		/* of the program; 0: lives while mapped */
	bool busy;
	enum vmm_state state;
	CUmemGenericAllocationHandle native;
	struct alloc *home;	/* borrowed of a reservation; see mapping */
	uint32_t first;
	/*
	 * MANAGED: where it is, or was when it lost its mapping.  NULL: its
	 * bytes are parked in `home`, an allocation of its own.
	 */
	struct mapping *mapping;
};

struct mapping {
	struct reservation *in;
	CUdeviceptr base;
	uint64_t size;
	struct vmm_handle *handle;	/* NULL: the driver's own mapping */
	unsigned access;		/* of the device, where managed */
	/*
	 * The program has unmapped it.  The bytes stay here until the handle
	 * is released or mapped again, or the place is needed.
	 */
	bool unmapped;
	bool busy;
};

struct reservation {
	struct device *device;
	struct alloc *alloc;	/* owned */
	CUdeviceptr base;
	uint64_t size;
	uint32_t first;		/* page */
	uint32_t nr_pages;
	uint32_t nr_mapped;	/* mappings the program knows of */
	struct mapping **at;	/* owned; by page */
};

extern struct lock vmm_lock;

/* Until somebody calls vmm_wake(). */
void vmm_wait(void) REQUIRES(&vmm_lock);
void vmm_wake(void) REQUIRES(&vmm_lock);

/* The handle when it is not busy; NULL: there is none.  May wait. */
struct vmm_handle *vmm_handle_get(CUmemGenericAllocationHandle value)
	REQUIRES(&vmm_lock);
void vmm_handle_destroy(struct vmm_handle *h) REQUIRES(&vmm_lock);
/* An empty one has got memory. */
void vmm_handle_begins(struct vmm_handle *h, enum vmm_state state)
	REQUIRES(&vmm_lock);

struct reservation *vmm_reservation(CUdeviceptr p) REQUIRES(&vmm_lock);
/* What lies at an address of r; NULL: nothing. */
struct mapping *vmm_mapping_at(const struct reservation *r, CUdeviceptr p)
	REQUIRES(&vmm_lock);
static inline bool vmm_is_busy(const struct mapping *m)
{
	return m->busy || (m->handle != NULL && m->handle->busy);
}
/* Takes m out of its reservation and frees it. */
void vmm_mapping_remove(struct mapping *m) REQUIRES(&vmm_lock);

/*
 * What follows drops vmm_lock meanwhile.  h is not busy.
 */
/* Frees the memory of a handle that nobody can reach any more, and itself. */
CUresult vmm_handle_drop(struct vmm_handle *h) REQUIRES(&vmm_lock);
/* Takes the bytes of an unmapped mapping elsewhere; removes it. */
CUresult vmm_park(struct mapping *m) REQUIRES(&vmm_lock);

/*
 * Moves a busy handle's bytes to pages of another allocation.  No lock.
 */
CUresult vmm_move(struct vmm_handle *h, struct alloc *to, uint32_t first);
/*
 * Turns a busy handle into a native one; its mapping, if it has one, stays
 * where it is.  *lost: the mapping is gone, the bytes are not.  No lock.
 */
CUresult vmm_nativize(struct vmm_handle *h, bool *lost);

#endif
