/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory, see hostmem.h.  Called by the program, and by copies
 * and kernels that meet a host address.
 */
#include "test/softcuda/hostmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/memcpy.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"
#include "test/softcuda/sim.h"

static struct hostmem **ranges;		/* sorted by address */
static size_t nr_ranges, cap_ranges;

unsigned hostmem_count(void)
{
	return (unsigned)nr_ranges;
}

/* Index of the first range that ends behind `address`. */
static size_t lower_bound(uint64_t address)
{
	size_t lo = 0, hi = nr_ranges, mid;

	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (ranges[mid]->map.address + ranges[mid]->map.size <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct hostmem *hostmem_find(uint64_t address)
{
	size_t i = lower_bound(address);

	return i < nr_ranges && ranges[i]->map.address <= address
		? ranges[i] : NULL;
}

enum hostmem_reach hostmem_reach(uint64_t address, uint64_t size)
{
	size_t i = lower_bound(address);
	const struct map *m;

	if (i == nr_ranges || ranges[i]->map.address >= address + size)
		return HOSTMEM_PAGEABLE;
	m = &ranges[i]->map;
	return m->address <= address && address + size <= m->address + m->size
		? HOSTMEM_PINNED : HOSTMEM_CROSSING;
}

static void add(struct context *ctx, void *p, uint64_t size, bool registered,
	unsigned flags)
{
	struct hostmem *h = object_alloc(sizeof(*h));
	size_t at = lower_bound((uintptr_t)p);

	h->map.address = (uintptr_t)p;
	h->map.size = size;
	h->map.block = block_borrow(p, size);
	h->map.buffer_id = h->map.block->id;
	memset(h->map.access, registered && flags
		& CU_MEMHOSTREGISTER_READ_ONLY ? CU_MEM_ACCESS_FLAGS_PROT_READ
		: CU_MEM_ACCESS_FLAGS_PROT_READWRITE, sizeof(h->map.access));
	h->registered = registered;
	h->flags = flags;
	h->context = ctx;
	ranges = object_grow(ranges, nr_ranges, &cap_ranges, sizeof(*ranges));
	memmove(&ranges[at + 1], &ranges[at],
		(nr_ranges - at) * sizeof(*ranges));
	ranges[at] = h;
	nr_ranges++;
	stats.pinned_bytes += size;
	if (stats.pinned_bytes > stats.pinned_peak_bytes)
		stats.pinned_peak_bytes = stats.pinned_bytes;
}

static void drop(struct hostmem *h)
{
	size_t at = lower_bound(h->map.address);

	memmove(&ranges[at], &ranges[at + 1],
		(nr_ranges - at - 1) * sizeof(*ranges));
	nr_ranges--;
	stats.pinned_bytes -= h->map.size;
	if (!h->registered)
		munmap((void *)(uintptr_t)h->map.address, h->map.size);
	block_put(h->map.block);
	free(h);
}

void hostmem_context_end(struct context *ctx)
{
	size_t i;

	for (i = nr_ranges; i-- > 0; )
		if (ranges[i]->context == ctx)
			drop(ranges[i]);
}

/* ---- allocation -------------------------------------------------------------- */

static CUresult host_alloc(struct context *ctx, void **out, size_t size,
	unsigned flags)
{
	const unsigned all = CU_MEMHOSTALLOC_PORTABLE
		| CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
	void *p;

	if (!out || !size || flags & ~all)
		return CUDA_ERROR_INVALID_VALUE;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	add(ctx, p, size, false, flags);
	*out = p;
	return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void **out, size_t size)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = host_alloc(c.context, out, size,
			CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
	return call_end(&c);
}

CUresult cuMemHostAlloc(void **out, size_t size, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = host_alloc(c.context, out, size, flags);
	return call_end(&c);
}

/* Freeing waits for work, as freeing device memory does. */
static CUresult free_host(void *p)
{
	struct hostmem *h = hostmem_find((uintptr_t)p);

	if (!p)
		return CUDA_SUCCESS;
	if (!h || h->registered || h->map.address != (uintptr_t)p)
		return CUDA_ERROR_INVALID_VALUE;
	context_synchronize(h->context);
	sim_wait_context(NULL);
	h = hostmem_find((uintptr_t)p);
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	drop(h);
	return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *p)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT | CALL_FREES))
		c.result = free_host(p);
	return call_end(&c);
}

/* ---- registration ------------------------------------------------------------- */

static bool is_mapped(void *p, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)p & ~(page - 1);
	uintptr_t end = ((uintptr_t)p + size + page - 1) & ~(page - 1);

	return end > first
		&& !msync((void *)first, end - first, MS_ASYNC);
}

static CUresult host_register(struct context *ctx, void *p, size_t size,
	unsigned flags)
{
	const unsigned all = CU_MEMHOSTREGISTER_PORTABLE
		| CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY
		| CU_MEMHOSTREGISTER_READ_ONLY;

	if (!p || !size || flags & ~all || (uintptr_t)p + size < (uintptr_t)p)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (hostmem_reach((uintptr_t)p, size) != HOSTMEM_PAGEABLE)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	if (!is_mapped(p, size))
		return CUDA_ERROR_INVALID_VALUE;
	add(ctx, p, size, true, flags);
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void *p, size_t size, unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = host_register(c.context, p, size, flags);
	return call_end(&c);
}

static CUresult host_unregister(void *p)
{
	struct hostmem *h = hostmem_find((uintptr_t)p);

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	if (!h || !h->registered || h->map.address != (uintptr_t)p)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	memcpy_check_idle(&h->map, "unregister", "cuMemHostUnregister");
	drop(h);
	return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *p)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT | CALL_FREES))
		c.result = host_unregister(p);
	return call_end(&c);
}

static CUresult device_pointer(CUdeviceptr *out, void *p, unsigned flags)
{
	if (!out || flags || !hostmem_find((uintptr_t)p))
		return CUDA_ERROR_INVALID_VALUE;
	*out = (uintptr_t)p;
	return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *p,
	unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = device_pointer(out, p, flags);
	return call_end(&c);
}

CUresult cuMemHostGetFlags(unsigned int *out, void *p)
{
	struct hostmem *h;
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT)) {
		h = hostmem_find((uintptr_t)p);
		if (!out || !h || h->registered)
			c.result = CUDA_ERROR_INVALID_VALUE;
		else
			*out = h->flags;
	}
	return call_end(&c);
}
