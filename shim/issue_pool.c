/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs are told of a default pool.  Managed memory stands for memory of
 * that pool, so it counts there, as used and as reserved, until it is freed: what
 * is kept of it after that is not for others to have.
 */
#include "shim/api_table.h"
#include "shim/init.h"
#include "shim/issue_int.h"

struct pool_sum {
	uint64_t now, high;	/* managed; the driver's with it */
};

static struct lock sums_lock = LOCK_INITIALIZER(LOCK_STATS, "pools");
static struct pool_sum used[DEVICE_MAX] GUARDED_BY(sums_lock);
static struct pool_sum reserved[DEVICE_MAX] GUARDED_BY(sums_lock);

/* What the driver has in the device's default pool; 0 where it does not say. */
static uint64_t native(CUdevice ordinal, CUmemPool_attribute attr)
{
	CUmemoryPool pool;
	cuuint64_t n = 0;

	if (real.cuDeviceGetDefaultMemPool(&pool, ordinal) != CUDA_SUCCESS ||
	    real.cuMemPoolGetAttribute(pool, attr, &n) != CUDA_SUCCESS)
		return 0;
	return n;
}

static void sum_add(struct pool_sum *s, uint64_t n, uint64_t others)
	REQUIRES(&sums_lock)
{
	s->now += n;
	if (s->high < s->now + others)
		s->high = s->now + others;
}

static uint64_t bytes_of(const struct device *d, const struct alloc *a)
{
	return (uint64_t)a->nr_pages << d->page_shift;
}

void issue_pool_taken(const struct device *d, struct alloc *a)
{
	CUdevice o = d->ordinal;
	uint64_t u, r;

	if (!a->async || o >= DEVICE_MAX)
		return;
	/* The driver is asked before the lock is taken. */
	u = native(o, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
	r = native(o, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
	lock_acquire(&sums_lock);
	sum_add(&used[o], alloc_bytes(a), u);
	sum_add(&reserved[o], bytes_of(d, a), r);
	lock_release(&sums_lock);
	a->used = true;
}

void issue_pool_freed(const struct device *d, struct alloc *a)
{
	if (!a->used)
		return;
	a->used = false;
	lock_acquire(&sums_lock);
	used[d->ordinal].now -= alloc_bytes(a);
	reserved[d->ordinal].now -= bytes_of(d, a);
	lock_release(&sums_lock);
}

static bool is_used(CUmemPool_attribute attr)
{
	return attr == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
		attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

static bool is_high(CUmemPool_attribute attr)
{
	return attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH ||
		attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
}

static bool is_sum(CUmemPool_attribute attr)
{
	return is_used(attr) || is_high(attr) ||
		attr == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
}

void issue_pool_attribute(CUmemoryPool pool, CUmemPool_attribute attr,
	cuuint64_t *value)
{
	struct pool_sum *s;
	uint64_t others;
	CUdevice o;

	if (!is_sum(attr))
		return;
	init_enter();
	if (issue_device_of_pool(pool, &o)) {
		others = native(o, is_used(attr) ?
			CU_MEMPOOL_ATTR_USED_MEM_CURRENT :
			CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
		lock_acquire(&sums_lock);
		s = is_used(attr) ? &used[o] : &reserved[o];
		sum_add(s, 0, others);
		if (!is_high(attr))
			*value += s->now;
		else if (*value < s->high)
			*value = s->high;
		lock_release(&sums_lock);
	}
	init_leave();
}

void issue_pool_attribute_set(CUmemoryPool pool, CUmemPool_attribute attr)
{
	CUdevice o;

	if (!is_high(attr))
		return;
	init_enter();
	if (issue_device_of_pool(pool, &o)) {
		lock_acquire(&sums_lock);
		if (is_used(attr))
			used[o].high = 0;
		else
			reserved[o].high = 0;
		lock_release(&sums_lock);
	}
	init_leave();
}
