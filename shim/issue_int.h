/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the issue_*.c files share.
 */
#ifndef BALLAST_ISSUE_INT_H
#define BALLAST_ISSUE_INT_H

#include "shim/issue.h"
#include "shim/kernarg.h"

/* Empty sets, for slow paths; d may be NULL. */
void issue_sets_init(struct issue *i, struct device *d, CUstream s);
void issue_sets_clear(struct issue *i);
/* The set for pages of d; NULL: there are two other devices already. */
struct page_set *issue_set_of(struct issue *i, struct device *d);
/*
 * Acquires the sets.  false: i->result says why, the set is empty again, and
 * i->too_big whether it was more than the GPU can hold.
 */
bool issue_hold(struct issue *i);
/* Gives back what the issue holds: section or set. */
void issue_let_go(struct issue *i);
/* Ends the issue with an error; always false. */
bool issue_refuse(struct issue *i, CUresult r);
/*
 * Whether the current device allocates in stream order from a pool that the
 * program made.
 */
bool issue_pool_chosen(void);
/* The device whose default pool it is; false: the program made the pool. */
bool issue_device_of_pool(CUmemoryPool pool, CUdevice *of);
/*
 * Memory in stream order was allocated, was freed or is gone.  The caller owns
 * a; no lock held.
 */
void issue_pool_taken(const struct device *d, struct alloc *a);
void issue_pool_freed(const struct device *d, struct alloc *a);
/*
 * The allocation of a range that a copy writes, or reads; false: the range
 * leaves it, or the program's own mappings there do not allow that.
 */
bool issue_range_alloc(CUdeviceptr p, size_t n, bool write, struct device **d,
	struct alloc **a);
/* Whether some of it is not plainly resident; NULL: nothing. */
bool issue_unsettled(const struct alloc *a);

/*
 * The short way of a launch, where a plan is in force.  A section is open.
 * false: the long way; i->missed may name a unit that is not whole.
 */
bool issue_units(struct issue *i, const struct kernarg *k, CUstream s,
	void **params, void **extra);
/* After the launch; closes the section. */
void issue_units_end(struct issue *i);

/* Adds [from, to) of `a`; holes of a reservation are left out. */
bool issue_add_range(struct page_set *s, struct device *d,
	const struct alloc *a, CUdeviceptr from, CUdeviceptr to);

/* The current device with all its parts; NULL: leave memory to the driver. */
struct device *issue_device(void);
/* Notes and logs a request of `call` that neither GPU nor arena could hold. */
void issue_say_full(struct device *d, size_t size, const char *call);

/* Questions about addresses in reservations; false: p is in none. */
bool issue_vmm_attribute(void *data, CUpointer_attribute attr, CUdeviceptr p,
	CUresult *r);
bool issue_vmm_attributes(unsigned int n, const CUpointer_attribute *attrs,
	void **data, CUdeviceptr p, CUresult *r);
bool issue_vmm_range(CUdeviceptr p, CUdeviceptr *base, size_t *size);

#endif
