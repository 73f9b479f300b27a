/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory as pages, see host.h.  The table of handles never moves, so that
 * an owner may read its handle without the lock.
 */
#include "shim/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/api_table.h"
#include "shim/arena.h"
#include "shim/context.h"
#include "shim/log.h"
#include "shim/stats.h"

#define PROBE_WORD 0x1b2d3f41u
/*
 * GPUs of this generation are said to reach such memory by copies only, and a
 * kernel that tries would end the program's context.
 */
#define DOUBTFUL_MAJOR 12

struct hosts {
	CUmemAllocationProp prop;
	CUmemGenericAllocationHandle *handles;	/* owned; one for each page */
	uint32_t nr_used;	/* entries ever used */
	uint32_t *holes;	/* owned; stack of entries without a handle */
	uint32_t nr_holes;
};

static int attribute(const struct device *d, CUdevice_attribute which)
{
	int value = 0;

	return real.cuDeviceGetAttribute(&value, which, d->ordinal) ==
		CUDA_SUCCESS ? value : 0;
}

/*
 * A memset is a kernel, a copy is not: both must see the same bytes.  On a
 * stream of ours, since the program may be capturing on its own.
 */
static CUresult use(struct device *d, struct context *c, CUdeviceptr p)
{
	uint32_t words[2] = { 0, 0 };
	CUresult r = real.cuMemsetD32Async(p, PROBE_WORD, d->page_size / 4,
		c->copy), s;

	if (r == CUDA_SUCCESS)
		r = real.cuMemcpyDtoHAsync_v2(words, p + d->page_size -
			sizeof(words), sizeof(words), c->copy);
	s = real.cuStreamSynchronize(c->copy);
	if (r == CUDA_SUCCESS)
		r = s;
	if (r == CUDA_SUCCESS && (words[0] != PROBE_WORD ||
	    words[1] != PROBE_WORD))
		r = CUDA_ERROR_UNKNOWN;
	return r;
}

/* Whether such memory can really be made, mapped at `at`, and used. */
static CUresult probe(struct device *d, CUdeviceptr at,
	const CUmemAllocationProp *prop)
{
	struct context *c = context_current();
	CUmemGenericAllocationHandle h = 0;
	CUresult r, u;

	if (c == NULL || !context_ready(c))
		return CUDA_ERROR_INVALID_CONTEXT;
	r = real.cuMemCreate(&h, d->page_size, prop, 0);
	if (r != CUDA_SUCCESS)
		return r;
	r = device_map(d, at, 1, &h);
	if (r == CUDA_SUCCESS) {
		r = use(d, c, at);
		u = device_unmap(d, at, 1);
		if (r == CUDA_SUCCESS)
			r = u;
	}
	real.cuMemRelease(h);
	return r;
}

static void *table(const struct device *d, size_t size)
{
	void *p = mmap(NULL, d->nr_pages * size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void table_drop(const struct device *d, void *p, size_t size)
{
	if (p != NULL)
		munmap(p, d->nr_pages * size);
}

bool host_supported(const struct device *d)
{
	return attribute(d,
		CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
}

bool host_doubtful(const struct device *d)
{
	return attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) ==
		DOUBTFUL_MAJOR;
}

const char *host_start(struct device *d, CUdeviceptr at)
{
	struct hosts *h;
	size_t granularity = 0;

	if (!host_supported(d))
		return "the driver cannot map host memory there";
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return "there is no memory for its tables";
	h->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	h->prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	h->prop.location.id = attribute(d, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID);
	if (h->prop.location.id < 0)
		h->prop.location.id = 0;
	if (real.cuMemGetAllocationGranularity(&granularity, &h->prop,
	    CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
	    granularity == 0 || d->page_size % granularity != 0) {
		free(h);
		return "host memory does not come in such chunks";
	}
	if (probe(d, at, &h->prop) != CUDA_SUCCESS) {
		free(h);
		return "host memory that was mapped there does not work";
	}
	h->handles = table(d, sizeof(*h->handles));
	h->holes = table(d, sizeof(*h->holes));
	if (h->handles == NULL || h->holes == NULL) {
		table_drop(d, h->handles, sizeof(*h->handles));
		table_drop(d, h->holes, sizeof(*h->holes));
		free(h);
		return "there is no memory for its tables";
	}
	d->hosts = h;
	return NULL;
}

uint32_t host_take(struct device *d, uint32_t want, uint32_t *out)
{
	struct hosts *h = d->hosts;
	CUmemGenericAllocationHandle handle;
	CUresult r;
	uint32_t n;

	for (n = 0; n < want && arena_lend(d->page_size); n++) {
		r = real.cuMemCreate(&handle, d->page_size, &h->prop, 0);
		if (r != CUDA_SUCCESS) {
			log_warn("host memory for a page cannot be had: %s",
				api_result_name(r));
			arena_return(d->page_size);
			break;
		}
		out[n] = h->nr_holes > 0 ? h->holes[--h->nr_holes] :
			h->nr_used++;
		h->handles[out[n]] = handle;
		stat_add(host_bytes, d->page_size);
	}
	return n;
}

void host_give(struct device *d, uint32_t index)
{
	struct hosts *h = d->hosts;

	real.cuMemRelease(h->handles[index]);
	h->handles[index] = 0;
	h->holes[h->nr_holes++] = index;
	arena_return(d->page_size);
	stat_sub(host_bytes, d->page_size);
}

CUmemGenericAllocationHandle host_handle(const struct device *d,
	uint32_t index)
{
	return d->hosts->handles[index];
}
