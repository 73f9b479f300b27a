/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that others get hold of.  Bytes of shared memory lie in a file, so
 * that another process with a driver of its own can map them: descriptors of
 * cuMemCreate memory, and the older handles of cuMemAlloc memory, which name
 * the file by its owner's process and descriptor.  A network card is played by
 * softcuda_dma_*: it keeps the physical memory that it was once given, whatever
 * is mapped at the address later.  Called by the program.
 */
#include "test/softcuda/share.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/memory.h"
#include "test/softcuda/object.h"
#include "test/softcuda/sim.h"
#include "test/softcuda/softcuda_ctl.h"
#include "test/softcuda/vmm.h"

/* ---- cuMemCreate memory ---------------------------------------------------------- */

static CUresult export(void *out, CUmemGenericAllocationHandle value,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct block *b = vmm_block(value);
	int fd;

	if (!out || !b || flags
	    || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	    || !(b->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (!block_share(b))
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(out, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *out,
	CUmemGenericAllocationHandle value, CUmemAllocationHandleType type,
	unsigned long long flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = export(out, value, type, flags);
	return call_end(&c);
}

static CUresult import(CUmemGenericAllocationHandle *out, int fd,
	CUmemAllocationHandleType type)
{
	struct block *b;
	struct stat st;

	if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	    || fstat(fd, &st))
		return CUDA_ERROR_INVALID_VALUE;
	b = vmm_block_of_file(st.st_ino);
	if (b) {
		*out = vmm_handle(b);
		return CUDA_SUCCESS;
	}
	b = block_import(fd);
	if (!b || !b->prop.requestedHandleTypes || !device_valid(b->device)) {
		if (b)
			block_put(b);
		return CUDA_ERROR_INVALID_VALUE;
	}
	*out = vmm_handle(b);
	block_put(b);
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out,
	void *os_handle, CUmemAllocationHandleType type)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = import(out, (int)(intptr_t)os_handle, type);
	return call_end(&c);
}

/* ---- cuMemAlloc memory: the older handles ------------------------------------------- */

struct ipc_handle {
	char magic[16];
	int pid;
	int fd;
	uint64_t file;
	uint64_t offset;
};
#define MAGIC "softcuda handle"

struct opened {
	uint64_t file;
	struct map *map;
	struct context *context;
	unsigned refs;
	struct opened *next;
};
static struct opened *opened;

static CUresult get_handle(CUipcMemHandle *out, CUdeviceptr address)
{
	struct memory_range range;
	struct ipc_handle h = { .magic = MAGIC, .pid = getpid() };
	struct block *b;

	if (!out || !memory_range(address, &range)
	    || (range.map->region->kind != REGION_ALLOC
	    && range.map->region->kind != REGION_SLAB))
		return CUDA_ERROR_INVALID_VALUE;
	b = range.map->block;
	if (!block_share(b))
		return CUDA_ERROR_INVALID_VALUE;
	h.fd = b->fd;
	h.file = b->file;
	h.offset = range.address - range.map->address;
	memset(out, 0, sizeof(*out));
	memcpy(out, &h, sizeof(h));
	return CUDA_SUCCESS;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = get_handle(out, address);
	return call_end(&c);
}

struct block *share_fetch(int pid, int fd, uint64_t file)
{
	struct block *b;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	b = block_import(fd);
	close(fd);
	if (b && b->file == file && device_valid(b->device))
		return b;
	if (b)
		block_put(b);
	return NULL;
}

static struct opened *open_handle(struct context *ctx,
	const struct ipc_handle *h)
{
	struct block *b = share_fetch(h->pid, h->fd, h->file);
	struct opened *o;
	struct map *m;

	if (!b)
		return NULL;
	m = h->offset < b->size ? memory_open(ctx, b) : NULL;
	if (m)
		m->access[b->device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	block_put(b);
	if (!m)
		return NULL;
	o = object_alloc(sizeof(*o));
	o->file = h->file;
	o->context = ctx;
	o->map = m;
	LL_PREPEND(opened, o);
	return o;
}

static CUresult open_memory(struct context *ctx, CUdeviceptr *out,
	const CUipcMemHandle *handle, unsigned flags)
{
	struct ipc_handle h;
	struct opened *o;

	memcpy(&h, handle, sizeof(h));
	if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(h.magic, MAGIC, sizeof(MAGIC)))
		return CUDA_ERROR_INVALID_HANDLE;
	/* Not within the process that it comes from. */
	if (h.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	LL_FOREACH(opened, o)
		if (o->file == h.file)
			break;
	if (o && o->context != ctx)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!o)
		o = open_handle(ctx, &h);
	if (!o)
		return CUDA_ERROR_INVALID_HANDLE;
	o->refs++;
	*out = o->map->address + h.offset;
	return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle,
	unsigned int flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = open_memory(c.context, out, &handle, flags);
	return call_end(&c);
}

static void close_opened(struct opened *o)
{
	LL_DELETE(opened, o);
	memory_close(o->map);
	free(o);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
	struct opened *o;
	struct call c;

	if (call_begin(&c, __func__, CALL_CONTEXT | CALL_FREES))
		return call_end(&c);
	sim_wait_context(NULL);
	LL_FOREACH(opened, o)
		if (address - o->map->address < o->map->size)
			break;
	if (!o)
		c.result = CUDA_ERROR_INVALID_VALUE;
	else if (!--o->refs)
		close_opened(o);
	return call_end(&c);
}

void share_context_end(struct context *ctx)
{
	struct opened *o, *next;

	LL_FOREACH_SAFE(opened, o, next)
		if (o->context == ctx)
			close_opened(o);
}

/* ---- other devices --------------------------------------------------------------------- */

/* Physical memory as it was when it was asked for; one per open file. */
struct dma {
	uint64_t file;
	int fd;			/* as it was given out */
	uint64_t size;
	struct piece {
		struct block *block;	/* counted */
		uint64_t offset, size;
	} *pieces;
	size_t nr, cap;
	struct dma *next;
};
static struct dma *dmas;

bool share_can_dma(const struct map *m)
{
	if (!m->region || m->block->device < 0)
		return false;
	return m->region->kind == REGION_ALLOC
		|| m->region->kind == REGION_SLAB
		|| (m->region->kind == REGION_RESERVED
		&& m->block->prop.allocFlags.gpuDirectRDMACapable);
}

static void drop(struct dma *d)
{
	size_t i;

	for (i = 0; i < d->nr; i++)
		block_put(d->pieces[i].block);
	free(d->pieces);
	free(d);
}

static bool is_file(const struct dma *d, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == d->file;
}

void share_sweep(void)
{
	struct dma *d, *next;

	LL_FOREACH_SAFE(dmas, d, next) {
		if (is_file(d, d->fd))
			continue;
		LL_DELETE(dmas, d);
		drop(d);
	}
}

/* All pieces of the range, or false. */
static bool collect(struct dma *d, uint64_t address, uint64_t size)
{
	uint64_t at, n;
	struct map *m;

	for (at = address; at < address + size; at += n) {
		m = space_find(at);
		if (!m || !share_can_dma(m) || (d->nr
		    && m->block->device != d->pieces[0].block->device))
			return false;
		n = m->address + m->size - at;
		if (n > address + size - at)
			n = address + size - at;
		d->pieces = object_grow(d->pieces, d->nr, &d->cap,
			sizeof(*d->pieces));
		d->pieces[d->nr].block = m->block;
		d->pieces[d->nr].offset = at - m->address;
		d->pieces[d->nr++].size = n;
		block_get(m->block);
	}
	return true;
}

static int dma_open(uint64_t address, uint64_t size)
{
	struct dma *d = object_alloc(sizeof(*d));
	struct stat st;

	share_sweep();
	d->fd = -1;
	d->size = size;
	if (size && address + size > address && collect(d, address, size))
		d->fd = memfd_create("softcuda-dma", MFD_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &st)) {
		drop(d);
		return -1;
	}
	d->file = st.st_ino;
	LL_PREPEND(dmas, d);
	return d->fd;
}

static bool whole_pages(uint64_t x)
{
	return x % (uint64_t)sysconf(_SC_PAGESIZE) == 0;
}

CUresult cuMemGetHandleForAddressRange(void *out, CUdeviceptr address,
	size_t size, CUmemRangeHandleType type, unsigned long long flags)
{
	struct call c;
	int fd = -1;

	if (call_begin(&c, __func__, CALL_CONTEXT))
		return call_end(&c);
	if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags)
		c.result = CUDA_ERROR_NOT_SUPPORTED;
	else if (!out || !whole_pages(address) || !whole_pages(size)
		 || (fd = dma_open(address, size)) < 0)
		c.result = CUDA_ERROR_INVALID_VALUE;
	else
		memcpy(out, &fd, sizeof(fd));
	return call_end(&c);
}

static int transfer(int fd, uint64_t offset, uint8_t *host, uint64_t n,
	bool write)
{
	uint64_t at = 0, skip, part;
	struct dma *d;
	uint8_t *p;
	size_t i;

	LL_FOREACH(dmas, d)
		if (is_file(d, fd))
			break;
	if (!d || offset > d->size || n > d->size - offset)
		return -1;
	for (i = 0; i < d->nr && n; at += d->pieces[i++].size) {
		if (offset >= at + d->pieces[i].size)
			continue;
		skip = offset - at;
		part = d->pieces[i].size - skip;
		if (part > n)
			part = n;
		p = block_bytes(d->pieces[i].block,
			d->pieces[i].offset + skip, part);
		memcpy(write ? p : host, write ? host : p, part);
		host += part;
		offset += part;
		n -= part;
	}
	return 0;
}

__attribute__((visibility("default")))
softcuda_dma_open_fn softcuda_dma_open;
__attribute__((visibility("default")))
softcuda_dma_read_fn softcuda_dma_read;
__attribute__((visibility("default")))
softcuda_dma_write_fn softcuda_dma_write;

int softcuda_dma_open(uint64_t address, uint64_t size)
{
	int fd;

	call_lock();
	fd = dma_open(address, size);
	call_unlock();
	return fd;
}

int softcuda_dma_read(int fd, uint64_t offset, void *to, uint64_t n)
{
	int r;

	call_lock();
	r = transfer(fd, offset, to, n, false);
	call_unlock();
	return r;
}

int softcuda_dma_write(int fd, uint64_t offset, const void *from, uint64_t n)
{
	int r;

	call_lock();
	r = transfer(fd, offset, (uint8_t *)from, n, true);
	call_unlock();
	return r;
}
