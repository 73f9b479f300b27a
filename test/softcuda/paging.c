/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory off the device, see paging.h.  Two models, both kinder than what has
 * been measured, since they are what others are compared with.
 *
 * Host memory that a kernel reaches at its address.  Each sector of 32 bytes
 * crosses the link once for a kernel, however often it is read (no cache is
 * modelled elsewhere), at the rate of copies times an efficiency: reads by
 * kernels reached 35 of some 55 GB/s on an H100 with PCIe 5 while writes
 * reached 53 (nvbandwidth issue 24), and 11 to 12 of some 25 GB/s on a card
 * with PCIe 4 (GreenBoost's README).  The better of these is taken.
 *
 * SOFTCUDA_UVM.  The driver of unified memory handles 2 MiB of addresses at a
 * time: faults in them are served together, one such block after another.
 * Serving takes FAULT_NS beside the copy: the literature since Zheng et al.
 * (HPCA 2016) has 20 to 50 us.  Its prefetcher
 * has a tree of 64 KiB leaves over each block and fetches the rest of a
 * subtree of which more than 51 % are there or asked for (uvm_perf_prefetch.c
 * of NVIDIA's open kernel modules).  Here all faults of a kernel in a block
 * come at once, copies run at the full rate of the link, only what was written
 * goes back, and pages leave by their last use, which the driver does not know.
 */
#include "test/softcuda/paging.h"

#include <stdlib.h>
#include <utlist.h>

#include "test/softcuda/block.h"
#include "test/softcuda/device.h"
#include "test/softcuda/hostmem.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/object.h"
#include "test/softcuda/report.h"

#define SECTOR 32u
#define READ_EFFICIENCY 0.64
#define WRITE_EFFICIENCY 0.96

#define UVM_PAGE (2u << 20)
#define UVM_LEAF (64u << 10)
#define UVM_LEAVES (UVM_PAGE / UVM_LEAF)
#define DENSITY_PERCENT 51
#define FAULT_NS 30000
#define HOST_BYTES (16ull << 30)	/* for managed memory */

/* Sets of leaves have one bit for each. */
struct uvm_page {
	struct block *block;
	uint64_t size;			/* the block's last one may be less */
	uint32_t resident, dirty;
	uint32_t data;			/* hold something, here or there */
	uint32_t read, written;		/* by the kernel that runs */
	bool listed;			/* on the device, in `used` */
	struct uvm_page *prev, *next;	/* by last use */
	struct uvm_page *touched;	/* by the kernel that runs, in order */
};

/* Host memory that the running kernel has touched; one bit a sector. */
struct seen {
	struct block *block;
	uint64_t *bits[2];		/* owned; by write */
	uint64_t nr[2];			/* bits set */
	struct seen *next;
};

static uint64_t managed;		/* bytes in all */
static struct uvm_page *lru[DEVICE_MAX];
static uint64_t used[DEVICE_MAX];
static struct uvm_page *first_touched, *last_touched;
static struct seen *seen;
static uint64_t host_bytes;

bool paging_wanted(void)
{
	return knobs.uvm || knobs.host_vmm || hostmem_count() > 0;
}

uint64_t paging_used(int device)
{
	return used[device];
}

/* ---- host memory ---- */

static struct seen *seen_of(struct block *b)
{
	uint64_t words = b->size / SECTOR / 64 + 1;
	struct seen *s;

	if (b->seen)
		return b->seen;
	s = object_alloc(sizeof(*s));
	s->block = b;
	s->bits[0] = object_alloc(words * sizeof(*s->bits[0]));
	s->bits[1] = object_alloc(words * sizeof(*s->bits[1]));
	LL_PREPEND(seen, s);
	b->seen = s;
	return s;
}

static void touch_host(struct block *b, uint64_t off, uint64_t size,
	bool write)
{
	struct seen *s = seen_of(b);
	uint64_t i;

	host_bytes += size;
	for (i = off / SECTOR; i <= (off + size - 1) / SECTOR; i++) {
		s->nr[write] += !(s->bits[write][i / 64] >> i % 64 & 1);
		s->bits[write][i / 64] |= 1ull << i % 64;
	}
}

static uint64_t end_host(uint64_t *ways)
{
	struct seen *s, *next;
	uint64_t in = 0, out = 0;
	double ns_in, ns_out;

	LL_FOREACH_SAFE(seen, s, next) {
		in += s->nr[false] * SECTOR;
		out += s->nr[true] * SECTOR;
		s->block->seen = NULL;
		free(s->bits[0]);
		free(s->bits[1]);
		free(s);
	}
	seen = NULL;
	stats.mapped_bytes += in + out;
	ways[LINK_IN] = (uint64_t)((double)in / knobs.h2d_gbps);
	ways[LINK_OUT] = (uint64_t)((double)out / knobs.d2h_gbps);
	ns_in = (double)in / (knobs.h2d_gbps * READ_EFFICIENCY);
	ns_out = (double)out / (knobs.d2h_gbps * WRITE_EFFICIENCY);
	return (uint64_t)(ns_in > ns_out ? ns_in : ns_out);
}

/* ---- managed pages ---- */

bool paging_manage(struct block *b)
{
	uint64_t nr = (b->size + UVM_PAGE - 1) / UVM_PAGE, i;

	if (b->size > HOST_BYTES || managed > HOST_BYTES - b->size)
		return false;
	managed += b->size;
	b->uvm = object_alloc(nr * sizeof(*b->uvm));
	for (i = 0; i < nr; i++) {
		b->uvm[i].block = b;
		b->uvm[i].size = i + 1 < nr ? UVM_PAGE
			: b->size - i * UVM_PAGE;
	}
	return true;
}

static void list_add(struct uvm_page *p)
{
	DL_APPEND(lru[p->block->device], p);
	used[p->block->device] += p->size;
	p->listed = true;
}

static void list_remove(struct uvm_page *p)
{
	DL_DELETE(lru[p->block->device], p);
	used[p->block->device] -= p->size;
	p->listed = false;
}

void paging_forget(struct block *b)
{
	uint64_t i;

	for (i = 0; b->uvm && i * UVM_PAGE < b->size; i++)
		if (b->uvm[i].listed)
			list_remove(&b->uvm[i]);
	if (b->uvm)
		managed -= b->size;
	free(b->uvm);
	b->uvm = NULL;
}

static bool has_room(const struct uvm_page *p)
{
	int device = p->block->device;
	uint64_t taken = block_used(device) + used[device];

	return taken <= knobs.memory && p->size <= knobs.memory - taken;
}

/* Bits of the leaves that hold [off, off + size) of a page. */
static uint32_t leaves(uint64_t off, uint64_t size)
{
	unsigned first = (unsigned)(off / UVM_LEAF);
	unsigned last = (unsigned)((off + size - 1) / UVM_LEAF);

	return UINT32_MAX << first & UINT32_MAX >> (UVM_LEAVES - 1 - last);
}

static void touch_managed(struct block *b, uint64_t off, uint64_t size,
	bool write)
{
	struct uvm_page *p;
	uint64_t at, n;
	uint32_t bits;

	for (; size; off += n, size -= n) {
		p = &b->uvm[off / UVM_PAGE];
		at = off % UVM_PAGE;
		n = UVM_PAGE - at < size ? UVM_PAGE - at : size;
		bits = leaves(at, n);
		if (!(p->read | p->written)) {
			if (last_touched)
				last_touched->touched = p;
			else
				first_touched = p;
			last_touched = p;
		}
		if (write)
			p->written |= bits;
		else
			p->read |= bits;
	}
}

/* The least recently used page makes way; how long that takes. */
static uint64_t evict(int device)
{
	struct uvm_page *p = lru[device];
	uint64_t bytes = (uint64_t)__builtin_popcount(p->dirty) * UVM_LEAF;

	list_remove(p);
	p->resident = p->dirty = 0;
	stats.uvm_out_bytes += bytes;
	return (uint64_t)((double)bytes / knobs.d2h_gbps);
}

/* What comes along: subtrees of which enough is there or asked for. */
static uint32_t density(uint32_t want, uint32_t all)
{
	unsigned n, i;
	uint32_t mask;

	for (n = 2; n <= UVM_LEAVES; n *= 2)
		for (i = 0; i < UVM_LEAVES; i += n) {
			mask = (n == 32 ? UINT32_MAX : (1u << n) - 1) << i & all;
			if (__builtin_popcount(want & mask) * 100
			    > DENSITY_PERCENT * __builtin_popcount(mask))
				want |= mask;
		}
	return want;
}

static uint64_t serve(struct uvm_page *p)
{
	uint32_t all = leaves(0, p->size), asked = p->read | p->written;
	uint64_t ns = 0, bytes;
	uint32_t want;

	if (p->listed)
		list_remove(p);
	while (!has_room(p) && lru[p->block->device])
		ns += evict(p->block->device);
	list_add(p);
	if (asked & ~p->resident) {
		want = density(asked | p->resident, all);
		bytes = (uint64_t)__builtin_popcount(want & ~p->resident
			& p->data) * UVM_LEAF;
		ns += FAULT_NS + (uint64_t)((double)bytes / knobs.h2d_gbps);
		p->resident |= want;
		stats.uvm_faults++;
		stats.uvm_in_bytes += bytes;
	}
	p->data |= p->written;
	p->dirty |= p->written;
	return ns;
}

static uint64_t end_managed(void)
{
	struct uvm_page *p, *next;
	uint64_t ns = 0;

	for (p = first_touched; p; p = next) {
		next = p->touched;
		ns += serve(p);
		p->read = p->written = 0;
		p->touched = NULL;
	}
	first_touched = last_touched = NULL;
	return ns;
}

/* ---- both ---- */

void paging_touch(struct block *b, uint64_t off, uint64_t size, bool write)
{
	if (!size)
		return;
	if (b->uvm)
		touch_managed(b, off, size, write);
	else if (b->device == BLOCK_HOST)
		touch_host(b, off, size, write);
}

struct paging_cost paging_end(void)
{
	struct paging_cost c = { .host_bytes = host_bytes };

	c.link_ns = end_host(c.ways_ns);
	c.fault_ns = end_managed();
	host_bytes = 0;
	return c;
}

/*
 * Bytes go to where the page is; a page without data is made on the device
 * while there is room, in host memory after that.
 */
void paging_copy(struct block *b, uint64_t off, uint64_t size, bool write)
{
	struct uvm_page *p;
	uint64_t at, n;
	uint32_t bits;

	for (; b->uvm && write && size; off += n, size -= n) {
		p = &b->uvm[off / UVM_PAGE];
		at = off % UVM_PAGE;
		n = UVM_PAGE - at < size ? UVM_PAGE - at : size;
		bits = leaves(at, n);
		if (!p->listed && !p->data && has_room(p))
			list_add(p);
		if (p->listed) {
			p->resident |= bits & ~p->data;
			p->dirty |= bits & p->resident;
		}
		p->data |= bits;
	}
}
