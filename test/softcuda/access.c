/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as operations reach it, see access.h.  Called by memcpy.c and
 * launch.c when their operations have their effect.
 */
#include "test/softcuda/access.h"

#include "test/softcuda/context.h"
#include "test/softcuda/hostmem.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memory.h"
#include "test/softcuda/paging.h"
#include "test/softcuda/report.h"

struct map *access_find(uint64_t address)
{
	struct hostmem *h;

	if (space_holds(address))
		return space_find(address);
	h = hostmem_find(address);
	return h ? &h->map : NULL;
}

/*
 * The driver copies between plain allocations of any devices; mapped memory
 * needs a right, the context's device's or that of the memory's own device;
 * host memory is nobody's own, so any device's will do.
 */
unsigned access_by_copy(const struct map *m, const struct context *ctx)
{
	unsigned access = space_access(m, ctx);

	if (m->context)
		access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	else if (m->block->device >= 0)
		access |= m->access[m->block->device];
	else
		for (int i = 0; m->region && i < DEVICE_MAX; i++)
			access |= m->access[i];
	return access;
}

bool access_usable(uint64_t address, uint64_t size, bool write,
	const struct context *ctx)
{
	unsigned want = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		: CU_MEM_ACCESS_FLAGS_PROT_READ;
	uint64_t end = address + size, reach;
	struct map *m;

	if (end < address)
		return false;
	while (address < end) {
		m = access_find(address);
		if (!m || (access_by_copy(m, ctx) & want) != want)
			return false;
		/* One that leaves its allocation is wrong, whatever follows. */
		reach = memory_reach(m, address);
		if (memory_has_ends(m) && reach < end - address)
			return false;
		address += reach;
	}
	return true;
}

struct race_stamp *access_stamp(struct op *op, const char *what)
{
	struct race_who who = {
		.actor = op->actor,
		.tick = op->tick,
		.clock = &op->clock,
		.op = op->number,
		.stream = op->stream_id,
		.when = sim_now(),
		.what = what,
	};

	if (!op->stamp)
		op->stamp = race_stamp_create(&who);
	return op->stamp;
}

uint64_t access_span(struct op *op, uint64_t address, uint64_t size,
	bool write, uint8_t **bytes)
{
	unsigned want = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		: CU_MEM_ACCESS_FLAGS_PROT_READ;
	struct map *m = access_find(address);
	uint64_t off, n;

	if (!m || (access_by_copy(m, op->context) & want) != want)
		return 0;
	off = address - m->address;
	n = m->size - off < size ? m->size - off : size;
	*bytes = block_bytes(m->block, off, n);
	paging_copy(m->block, off, n, write);
	if (memory_has_ends(m) && memory_reach_running(m, address) < n)
		report_rule("bounds", "%s (operation %llu, stream %llu) %s "
			"%#llx, which is in no allocation any more",
			op->type->name, (unsigned long long)op->number,
			(unsigned long long)op->stream_id,
			write ? "writes" : "reads",
			(unsigned long long)address);
	if (knobs.race)
		race_access(&m->block->shadow, off, n, write,
			access_stamp(op, op->type->name), &op->clock, address);
	return n;
}

void access_fault(struct op *op, uint64_t address, bool write,
	const char *what)
{
	context_kill(op->context, CUDA_ERROR_ILLEGAL_ADDRESS);
	report_rule("access", "%s (operation %llu, stream %llu) %s %#llx, "
		"which is not %s", what, (unsigned long long)op->number,
		(unsigned long long)op->stream_id, write ? "writes" : "reads",
		(unsigned long long)address, access_find(address)
		? "accessible" : "mapped");
}
