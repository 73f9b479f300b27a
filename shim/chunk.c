/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: creation under the budget, recycling.  All state is guarded by the
 * device's pool_lock; the array of handles never moves, so that an owner may
 * read its handle without it.
 */
#include "shim/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/api_table.h"
#include "shim/log.h"
#include "shim/stats.h"

struct chunks {
	CUmemGenericAllocationHandle *handles;	/* owned; 0: no handle */
	uint32_t max;
	uint32_t nr_used;	/* entries ever used */
	uint32_t nr_live;	/* with a handle */
	uint32_t *idle;		/* owned; stack of recycled chunks */
	uint32_t nr_idle;
	uint32_t *holes;	/* owned; stack of entries without a handle */
	uint32_t nr_holes;
};

static void *table(uint32_t n, size_t size)
{
	void *p = mmap(NULL, (size_t)n * size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

int chunk_start(struct device *d)
{
	struct chunks *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -ENOMEM;
	c->max = (uint32_t)(d->total >> d->page_shift) + 1;
	c->handles = table(c->max, sizeof(*c->handles));
	c->idle = table(c->max, sizeof(*c->idle));
	c->holes = table(c->max, sizeof(*c->holes));
	if (c->handles == NULL || c->idle == NULL || c->holes == NULL) {
		free(c);
		return -ENOMEM;
	}
	d->chunks = c;
	return 0;
}

static uint32_t create(struct device *d, CUresult *r)
{
	struct chunks *c = d->chunks;
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle h = 0;
	uint32_t i;
	int rdma = 0;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = d->ordinal;
	/* As plain allocations are, where the device can. */
	if (real.cuDeviceGetAttribute(&rdma,
	    CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
	    d->ordinal) == CUDA_SUCCESS && rdma)
		prop.allocFlags.gpuDirectRDMACapable = 1;
	*r = real.cuMemCreate(&h, d->page_size, &prop, 0);
	if (*r != CUDA_SUCCESS)
		return CHUNK_NONE;
	i = c->nr_holes > 0 ? c->holes[--c->nr_holes] : c->nr_used++;
	c->handles[i] = h;
	c->nr_live++;
	stat_add(create_calls, 1);
	stat_add(gpu_bytes, d->page_size);
	stat_max(gpu_peak, stat_get(gpu_bytes));
	return i;
}

uint32_t chunk_take(struct device *d, uint32_t want, uint32_t *out)
{
	struct chunks *c = d->chunks;
	uint32_t n = 0, i;
	CUresult r;

	while (n < want && c->nr_idle > 0)
		out[n++] = c->idle[--c->nr_idle];
	while (n < want && c->nr_live < d->budget >> d->page_shift &&
	       c->nr_live < c->max) {
		i = create(d, &r);
		if (i == CHUNK_NONE && r != CUDA_ERROR_OUT_OF_MEMORY) {
			log_warn("a chunk cannot be made: %s",
				api_result_name(r));
			break;
		}
		if (i == CHUNK_NONE) {
			/*
			 * Less is free than there was at the start.  What we
			 * hold is the budget from now on.
			 */
			d->budget = (uint64_t)c->nr_live << d->page_shift;
			stat_set(gpu_budget, d->budget);
			log_dbg("the driver has no more memory: budget is now "
				"%llu bytes", (unsigned long long)d->budget);
			break;
		}
		out[n++] = i;
	}
	return n;
}

void chunk_recycle(struct device *d, uint32_t chunk)
{
	d->chunks->idle[d->chunks->nr_idle++] = chunk;
}

uint32_t chunk_surrender(struct device *d, uint32_t n)
{
	struct chunks *c = d->chunks;
	uint32_t done = 0, i;

	while (done < n && c->nr_idle > 0) {
		i = c->idle[--c->nr_idle];
		real.cuMemRelease(c->handles[i]);
		c->handles[i] = 0;
		c->holes[c->nr_holes++] = i;
		c->nr_live--;
		stat_sub(gpu_bytes, d->page_size);
		done++;
	}
	if (done > 0) {
		d->budget = (uint64_t)c->nr_live << d->page_shift;
		stat_set(gpu_budget, d->budget);
	}
	return done;
}

CUmemGenericAllocationHandle chunk_handle(const struct device *d,
	uint32_t chunk)
{
	return d->chunks->handles[chunk];
}

uint32_t chunk_nr_available(const struct device *d)
{
	const struct chunks *c = d->chunks;
	uint64_t most = d->budget >> d->page_shift;

	return c->nr_idle + (uint32_t)(most > c->nr_live ? most - c->nr_live :
		0);
}

uint32_t chunk_nr_live(const struct device *d)
{
	return d->chunks->nr_live;
}

uint32_t chunk_nr_idle(const struct device *d)
{
	return d->chunks->nr_idle;
}
