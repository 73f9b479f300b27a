/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory, see block.h.  Called by memory.c, vmm.c and hostmem.c.
 */
#include "test/softcuda/block.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/softcuda/device.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"
#include "test/softcuda/paging.h"
#include "test/softcuda/report.h"
#include "test/softcuda/share.h"

/* As f32 a NaN, as an integer or pointer nonsense. */
#define POISON 0x7fc0deadu

static uint64_t used[DEVICE_MAX];
static uint64_t next_id = 1;

CUresult block_charge(int device, uint64_t size)
{
	if (device == BLOCK_HOST)
		return CUDA_SUCCESS;
	if (used[device] + size > knobs.memory)
		share_sweep();
	if (size > knobs.memory || used[device] > knobs.memory - size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	used[device] += size;
	stats.used_bytes += size;
	if (stats.used_bytes > stats.peak_bytes)
		stats.peak_bytes = stats.used_bytes;
	return CUDA_SUCCESS;
}

void block_uncharge(int device, uint64_t size)
{
	if (device == BLOCK_HOST)
		return;
	used[device] -= size;
	stats.used_bytes -= size;
}

uint64_t block_used(int device)
{
	return used[device];
}

static struct block *make(int device, uint64_t size)
{
	struct block *b = object_alloc(sizeof(*b));

	b->device = device;
	b->refs = 1;
	b->id = next_id++;
	b->size = size;
	b->fd = -1;
	return b;
}

CUresult block_create(int device, uint64_t size, struct block **out)
{
	CUresult r = block_charge(device, size);

	if (!r)
		*out = make(device, size);
	return r;
}

struct block *block_create_managed(int device, uint64_t size)
{
	struct block *b = make(device, size);

	if (paging_manage(b))
		return b;
	free(b);
	return NULL;
}

struct block *block_borrow(void *bytes, uint64_t size)
{
	struct block *b = make(BLOCK_HOST, size);

	b->bytes = bytes;
	b->borrowed = true;
	return b;
}

void block_get(struct block *b)
{
	b->refs++;
}

void block_put(struct block *b)
{
	if (--b->refs)
		return;
	if (!b->uvm && !b->imported)
		block_uncharge(b->device, b->size);
	paging_forget(b);
	if (b->bytes && !b->borrowed)
		munmap(b->bytes, b->size);
	if (b->fd >= 0)
		close(b->fd);
	race_shadow_free(b->shadow);
	free(b->filled);
	free(b);
}

static void make_bytes(struct block *b)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	if (b->device == BLOCK_HOST) {
		b->fd = memfd_create("softcuda", MFD_CLOEXEC);
		flags = MAP_SHARED | MAP_NORESERVE;
		if (b->fd >= 0 && ftruncate(b->fd, (off_t)b->size))
			flags = -1;
	}
	b->bytes = mmap(NULL, b->size, PROT_READ | PROT_WRITE, flags, b->fd, 0);
	if (b->bytes == MAP_FAILED) {
		fputs("softcuda: the host is out of memory\n", stderr);
		abort();
	}
	madvise(b->bytes, b->size, MADV_HUGEPAGE);
	b->filled = object_alloc(b->size / BLOCK_FILL + 1);
}

/* Behind the bytes of a shared block: what another process must know. */
struct trailer {
	char magic[16];
	uint64_t size;
	CUmemAllocationProp prop;
	int device;
};
#define MAGIC "softcuda memory"

/* Makes a file of the bytes; -1 when the host has no room for it. */
static int make_file(const struct block *b)
{
	struct trailer t = {
		.magic = MAGIC, .size = b->size, .prop = b->prop,
		.device = b->device,
	};
	int fd = memfd_create("softcuda", MFD_CLOEXEC);
	uint64_t done = 0;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && done < b->size) {
		n = pwrite(fd, b->bytes + done, b->size - done, (off_t)done);
		done += n > 0 ? (uint64_t)n : 0;
	}
	if (fd >= 0 && (done < b->size || pwrite(fd, &t, sizeof(t),
	    (off_t)b->size) != (ssize_t)sizeof(t))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool block_share(struct block *b)
{
	struct stat st;

	if (b->file)
		return true;
	if (b->borrowed || b->uvm || b->fd >= 0)
		return false;
	block_bytes(b, 0, b->size);
	b->fd = make_file(b);
	if (b->fd < 0)
		return false;
	/* At the same address: who looks at the bytes need not know. */
	if (fstat(b->fd, &st) || mmap(b->bytes, b->size, PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_FIXED, b->fd, 0) == MAP_FAILED) {
		fputs("softcuda: the host is out of memory\n", stderr);
		abort();
	}
	b->file = st.st_ino;
	return true;
}

struct block *block_import(int fd)
{
	struct trailer t;
	struct stat st;
	struct block *b;
	void *p;

	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(t)
	    || pread(fd, &t, sizeof(t), st.st_size - (off_t)sizeof(t))
	    != (ssize_t)sizeof(t) || memcmp(t.magic, MAGIC, sizeof(MAGIC))
	    || (uint64_t)st.st_size != t.size + sizeof(t))
		return NULL;
	p = mmap(NULL, t.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return NULL;
	b = make(t.device, t.size);
	b->bytes = p;
	b->imported = true;
	b->prop = t.prop;
	b->file = st.st_ino;
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	b->filled = object_alloc(b->size / BLOCK_FILL + 1);
	memset(b->filled, true, b->size / BLOCK_FILL + 1);
	return b;
}

bool block_show(struct block *b, uint64_t address)
{
	void *want = (void *)(uintptr_t)address;
	void *p;

	block_bytes(b, 0, b->size);
	p = mmap(want, b->size, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_FIXED_NOREPLACE, b->fd, 0);
	if (p != MAP_FAILED && p != want) {
		munmap(p, b->size);
		p = MAP_FAILED;
	}
	return p != MAP_FAILED;
}

void block_hide(struct block *b, uint64_t address)
{
	munmap((void *)(uintptr_t)address, b->size);
}

uint8_t *block_bytes(struct block *b, uint64_t off, uint64_t size)
{
	uint64_t i, j, end, *words;

	if (b->borrowed)
		return b->bytes + off;
	if (!b->bytes)
		make_bytes(b);
	for (i = off / BLOCK_FILL; size && i <= (off + size - 1) / BLOCK_FILL;
	     i++) {
		if (b->filled[i])
			continue;
		b->filled[i] = true;
		end = (i + 1) * BLOCK_FILL < b->size ? BLOCK_FILL
			: b->size - i * BLOCK_FILL;
		words = (uint64_t *)(b->bytes + i * BLOCK_FILL);
		for (j = 0; j < end / 8; j++)
			words[j] = (uint64_t)POISON << 32 | POISON;
	}
	return b->bytes + off;
}
