/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools that processes share.  A pool's descriptor is a file that says which
 * device it is of; a pointer's data say where its segment's file is.  What was
 * imported ends with its free in this process, and belongs to the other one all
 * the while.  Called by the program; guarded by the driver's lock.
 */
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/softcuda/block.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/mempool.h"
#include "test/softcuda/share.h"

#define POOL_MAGIC "softcuda pool"
#define POINTER_MAGIC "softcuda pointer"

struct pool_file {
	char magic[16];
	int device;
};

struct pointer_data {
	char magic[24];
	int pid, fd;			/* where the segment's file is */
	uint64_t file, pool;		/* numbers of files */
	uint32_t offset, size;		/* in units of UNIT, and bytes of `tail` */
	uint32_t tail;
};
#define UNIT 512u

_Static_assert(sizeof(struct pointer_data) <= sizeof(CUmemPoolPtrExportData),
	"there is room");

/* ---- pools ---------------------------------------------------------------- */

/* Its file, which lives as long as the pool. */
static bool make_file(struct mempool *p)
{
	struct pool_file f = { .magic = POOL_MAGIC, .device = p->device };
	struct stat st;

	if (p->fd >= 0)
		return true;
	p->fd = memfd_create("softcuda-pool", MFD_CLOEXEC);
	if (p->fd < 0 || pwrite(p->fd, &f, sizeof(f), 0) != sizeof(f)
	    || fstat(p->fd, &st))
		return false;
	p->file = st.st_ino;
	return true;
}

static CUresult export_pool(void *out, CUmemoryPool pool,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct mempool *p = object_find(pool, OBJECT_MEMPOOL);
	int fd;

	if (!out || !p || !p->shared || flags
	    || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (!make_file(p))
		return CUDA_ERROR_OUT_OF_MEMORY;
	fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	memcpy(out, &fd, sizeof(fd));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = export_pool(out, pool, type, flags);
	return call_end(&c);
}

static CUresult import_pool(CUmemoryPool *out, int fd,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct pool_file f;
	struct mempool *p;
	struct stat st;

	if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	    || fstat(fd, &st) || pread(fd, &f, sizeof(f), 0) != sizeof(f)
	    || memcmp(f.magic, POOL_MAGIC, sizeof(POOL_MAGIC))
	    || !device_valid(f.device))
		return CUDA_ERROR_INVALID_VALUE;
	p = mempool_create(f.device, 0);
	p->imported = true;
	p->file = st.st_ino;
	*out = (CUmemoryPool)p;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_INIT))
		c.result = import_pool(out, (int)(intptr_t)handle, type,
			flags);
	return call_end(&c);
}

/* ---- pointers -------------------------------------------------------------- */

static CUresult export_pointer(CUmemPoolPtrExportData *out,
	CUdeviceptr address)
{
	struct pointer_data d = { .magic = POINTER_MAGIC, .pid = getpid() };
	struct map *m = space_find(address);
	struct memory_range range;
	struct mempool *p;
	struct block *b;

	if (!out || !m || !m->region || m->region->kind != REGION_POOL
	    || !mempool_range(m, address, &range) || range.address != address)
		return CUDA_ERROR_INVALID_VALUE;
	p = mempool_of(m);
	if (!p->shared || !make_file(p))
		return CUDA_ERROR_INVALID_VALUE;
	b = m->block;
	if (!block_share(b))
		return CUDA_ERROR_OUT_OF_MEMORY;
	d.fd = b->fd;
	d.file = b->file;
	d.pool = p->file;
	d.offset = (uint32_t)((address - m->address) / UNIT);
	d.size = (uint32_t)(range.size / UNIT);
	d.tail = (uint32_t)(range.size % UNIT);
	memset(out, 0, sizeof(*out));
	memcpy(out, &d, sizeof(d));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out,
	CUdeviceptr address)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = export_pointer(out, address);
	return call_end(&c);
}

static CUresult import_pointer(struct context *ctx, CUdeviceptr *out,
	CUmemoryPool pool, const CUmemPoolPtrExportData *data)
{
	struct mempool *p = object_find(pool, OBJECT_MEMPOOL);
	struct pointer_data d;
	uint64_t off, size;
	struct block *b;

	if (!out || !p || !p->imported || !data)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&d, data, sizeof(d));
	if (memcmp(d.magic, POINTER_MAGIC, sizeof(POINTER_MAGIC))
	    || d.pool != p->file)
		return CUDA_ERROR_INVALID_VALUE;
	b = share_fetch(d.pid, d.fd, d.file);
	if (!b)
		return CUDA_ERROR_INVALID_VALUE;
	off = (uint64_t)d.offset * UNIT;
	size = (uint64_t)d.size * UNIT + d.tail;
	*out = b->device == p->device && off < b->size && size
		&& size <= b->size - off
		? mempool_adopt(p, ctx, b, off, size) : 0;
	block_put(b);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool,
	CUmemPoolPtrExportData *data)
{
	struct call c;

	if (!call_begin(&c, __func__, CALL_CONTEXT))
		c.result = import_pointer(c.context, out, pool, data);
	return call_end(&c);
}
