/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices: reserving the address window, probing what the driver can do, and
 * the two mapping primitives.  A device that cannot be managed is remembered,
 * so that the probe runs once.
 */
#include "shim/device.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/api_table.h"
#include "shim/conf.h"
#include "shim/log.h"
#include "shim/stats.h"

struct device *device_list[DEVICE_MAX];
int device_nr;

static struct lock device_lock = LOCK_INITIALIZER(LOCK_HANDLES, "devices");
static struct device device_storage[DEVICE_MAX] GUARDED_BY(device_lock);
/* 0 unknown, 1 managed, -1 not manageable; by ordinal. */
static int device_verdict[DEVICE_MAX] GUARDED_BY(device_lock);

/* By ordinal: a bit for every device that may use its memory; atomic. */
static uint32_t device_peers[DEVICE_MAX];

/* A page must fit into one segment of the arena. */
#define PAGE_MOST (64ull << 20)

static CUmemAllocationProp device_prop(CUdevice ordinal)
{
	CUmemAllocationProp prop;

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = ordinal;
	return prop;
}

void device_peer_add(CUdevice of, CUdevice by)
{
	if (of >= 0 && of < DEVICE_MAX && by >= 0 && by < DEVICE_MAX)
		__atomic_fetch_or(&device_peers[of], 1u << by,
			__ATOMIC_ACQ_REL);
}

CUresult device_grant(struct device *d, CUdeviceptr va, uint32_t n)
{
	uint32_t peers = __atomic_load_n(&device_peers[d->ordinal],
		__ATOMIC_ACQUIRE);
	CUmemAccessDesc desc[DEVICE_MAX];
	size_t nr = 0;

	for (int i = 0; i < DEVICE_MAX; i++)
		if (i == d->ordinal || (peers & 1u << i) != 0)
			desc[nr++] = (CUmemAccessDesc){
				.location = {
					.type = CU_MEM_LOCATION_TYPE_DEVICE,
					.id = i,
				},
				.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
			};
	stat_add(map_calls, 1);
	return real.cuMemSetAccess(va, n * d->page_size, desc, nr);
}

CUresult device_map(struct device *d, CUdeviceptr va, uint32_t n,
	const CUmemGenericAllocationHandle *handles)
{
	CUresult r = CUDA_SUCCESS;
	uint32_t i;

	for (i = 0; i < n; i++) {
		r = real.cuMemMap(va + i * d->page_size, d->page_size, 0,
			handles[i], 0);
		stat_add(map_calls, 1);
		if (r != CUDA_SUCCESS)
			break;
	}
	if (r == CUDA_SUCCESS)
		r = device_grant(d, va, n);
	if (r != CUDA_SUCCESS && i > 0)
		device_unmap(d, va, i);
	return r;
}

CUresult device_unmap(struct device *d, CUdeviceptr va, uint32_t n)
{
	CUresult r = real.cuMemUnmap(va, n * d->page_size);

	stat_add(map_calls, 1);
	if (r != CUDA_SUCCESS)
		log_err("unmapping %u pages at %#llx failed: %s", n, va,
			api_result_name(r));
	return r;
}

/* The largest grantable window up to what the configuration asks for. */
static CUdeviceptr reserve(uint64_t want, uint64_t least, uint64_t align,
	uint64_t *got)
{
	CUdeviceptr va = 0;

	for (uint64_t size = want; size >= least; size /= 2) {
		size &= ~(align - 1);
		if (real.cuMemAddressReserve(&va, size, align, 0, 0) ==
		    CUDA_SUCCESS) {
			*got = size;
			return va;
		}
	}
	return 0;
}

static bool page_size_choose(struct device *d)
{
	CUmemAllocationProp prop = device_prop(d->ordinal);
	size_t granularity = 0;
	uint64_t size = conf.chunk;

	if (real.cuMemGetAllocationGranularity(&granularity, &prop,
	    CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS ||
	    granularity == 0 || (granularity & (granularity - 1)) != 0)
		return false;
	if (size == CONF_AUTO)
		size = d->total > (1ull << 30) && granularity < (2u << 20) ?
			2u << 20 : granularity;
	if (size < granularity || (size & (size - 1)) != 0 ||
	    size > PAGE_MOST) {
		log_warn("chunk = %llu must be a power of two from the driver's "
			"granularity (%zu) to 64M; using %zu",
			(unsigned long long)size, granularity, granularity);
		size = granularity;
	}
	d->page_size = size;
	d->page_shift = (unsigned)__builtin_ctzll(size);
	return true;
}

/* Whether a chunk can really be made, mapped and used: vGPUs lie. */
static bool probe(struct device *d)
{
	CUmemAllocationProp prop = device_prop(d->ordinal);
	CUmemGenericAllocationHandle h = 0;
	CUresult r = real.cuMemCreate(&h, d->page_size, &prop, 0);

	if (r == CUDA_ERROR_OUT_OF_MEMORY)
		return true;	/* works, there is just no room */
	if (r == CUDA_SUCCESS) {
		r = device_map(d, d->window, 1, &h);
		if (r == CUDA_SUCCESS)
			r = device_unmap(d, d->window, 1);
		real.cuMemRelease(h);
	}
	if (r != CUDA_SUCCESS)
		log_warn("device %d: virtual memory calls fail (%s)",
			d->ordinal, api_result_name(r));
	return r == CUDA_SUCCESS;
}

static void budget_choose(struct device *d)
{
	size_t free_now = 0, total = 0;
	uint64_t reserve_bytes = conf.gpu_reserve;
	uint64_t want = conf_budget_bytes(&conf.gpu_budget, d->total);
	char text[4][16];
	uint64_t most;

	if (real.cuMemGetInfo_v2(&free_now, &total) != CUDA_SUCCESS)
		free_now = d->total;
	if (reserve_bytes == CONF_AUTO) {
		reserve_bytes = d->total / 16;
		if (reserve_bytes > (256ull << 20))
			reserve_bytes = 256ull << 20;
	}
	most = free_now > reserve_bytes ? free_now - reserve_bytes : 0;
	d->budget = want == CONF_AUTO || want > most ? most : want;
	if (want != CONF_AUTO && want > most)
		log_warn("gpu_budget = %s is more than what is free (%s) less "
			"gpu_reserve (%s): %s", conf_size_text(want, text[0],
			sizeof(text[0])), conf_size_text(free_now, text[1],
			sizeof(text[1])), conf_size_text(reserve_bytes, text[2],
			sizeof(text[2])), conf_size_text(most, text[3],
			sizeof(text[3])));
	d->budget &= ~(d->page_size - 1);
	d->budget_most = d->budget;
	stat_set(gpu_total, d->total);
	stat_set(gpu_budget, d->budget);
}

static bool tables_create(struct device *d)
{
	size_t words = d->nr_pages * sizeof(*d->words);
	size_t pages = d->nr_pages * sizeof(*d->pages);

	/* Sparse: the kernel gives memory only to entries that are used. */
	d->words = mmap(NULL, words, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	d->pages = mmap(NULL, pages, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (d->words != MAP_FAILED && d->pages != MAP_FAILED)
		return true;
	if (d->words != MAP_FAILED)
		munmap(d->words, words);
	if (d->pages != MAP_FAILED)
		munmap(d->pages, pages);
	return false;
}

static const char *device_start(struct device *d)
{
	int vmm = 0;
	size_t total = 0;
	uint64_t pool_size = 0, least;

	if (real.cuDeviceGetAttribute(&vmm,
	    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	    d->ordinal) != CUDA_SUCCESS || !vmm)
		return "it has no virtual memory management";
	if (real.cuDeviceTotalMem_v2(&total, d->ordinal) != CUDA_SUCCESS)
		return "its memory size is unknown";
	d->total = total;
	if (!page_size_choose(d))
		return "its allocation granularity is unknown";
	least = d->total + d->page_size;
	d->window = reserve(conf.window, least, d->page_size, &d->window_size);
	if (d->window == 0)
		return "no addresses for it could be reserved (window)";
	d->nr_pages = d->window_size >> d->page_shift < PAGE_NONE ?
		(uint32_t)(d->window_size >> d->page_shift) : PAGE_NONE - 1;
	if (!probe(d))
		return "its virtual memory management does not work";
	d->pool_base = reserve(d->total, d->page_size, d->page_size,
		&pool_size);
	if (d->pool_base == 0)
		return "no addresses for the pool could be reserved";
	d->pool_max = (uint32_t)(pool_size >> d->page_shift);
	if (!tables_create(d))
		return "there is no host memory for its tables";
	budget_choose(d);
	lock_init(&d->alloc_lock, LOCK_ALLOC, "allocations");
	lock_init(&d->pool_lock, LOCK_POOL, "pool");
	cond_init(&d->pool_cond);
	return NULL;
}

/* Gives back what a failed device_start() got. */
static void device_undo(struct device *d)
{
	if (d->pool_base != 0)
		real.cuMemAddressFree(d->pool_base,
			(uint64_t)d->pool_max << d->page_shift);
	if (d->window != 0)
		real.cuMemAddressFree(d->window, d->window_size);
	d->pool_base = 0;
	d->window = 0;
}

static void announce(struct device *d)
{
	char total[16], budget[16], page[16], least[16];

	log_info("active on device %d: %s of GPU memory, %s of it for managed "
		"data in chunks of %s; allocations of less than %s stay with "
		"the driver", d->ordinal,
		conf_size_text(d->total, total, sizeof(total)),
		conf_size_text(d->budget, budget, sizeof(budget)),
		conf_size_text(d->page_size, page, sizeof(page)),
		conf_size_text(conf.min_alloc, least, sizeof(least)));
}

struct device *device_current(void)
{
	struct device *d = NULL;
	const char *why;
	CUdevice ordinal;

	if (real.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS || ordinal < 0 ||
	    ordinal >= DEVICE_MAX)
		return NULL;
	for (int i = 0; i < __atomic_load_n(&device_nr, __ATOMIC_ACQUIRE); i++)
		if (device_list[i]->ordinal == ordinal)
			return device_list[i];

	lock_acquire(&device_lock);
	for (int i = 0; i < device_nr; i++)
		if (device_list[i]->ordinal == ordinal)
			d = device_list[i];
	if (d == NULL && device_verdict[ordinal] == 0) {
		d = &device_storage[ordinal];
		d->ordinal = ordinal;
		why = device_start(d);
		device_verdict[ordinal] = why == NULL ? 1 : -1;
		if (why == NULL) {
			announce(d);
			device_list[device_nr] = d;
			__atomic_store_n(&device_nr, device_nr + 1,
				__ATOMIC_RELEASE);
		} else {
			log_warn("device %d cannot be managed: %s; its memory "
				"stays with the driver", ordinal, why);
			device_undo(d);
			d = NULL;
		}
	}
	lock_release(&device_lock);
	return d;
}
