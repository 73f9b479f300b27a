/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values in memory that streams wait for and write.  The CPU, a kernel, a copy
 * or another stream may bring the value; what was done before an operation
 * brought it is ordered before what comes after the wait.  These accesses are
 * atomic, so the race detector does not see them as accesses.  Called by the
 * program; guarded by the driver's lock.
 */
#include "test/softcuda/access.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memory.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

struct memop {
	struct op op;
	uint64_t address, value;
	unsigned width;			/* 4 or 8 */
	unsigned how;			/* CUstreamWaitValue_flags */
};

/* By address: all that is ordered before values written there. */
struct release {
	uint64_t address;
	struct race_clock clock;
	UT_hash_handle hh;
};

static struct release *releases;

/* NULL, and a dead context, when the memory is gone. */
static uint8_t *bytes_at(struct memop *m, bool write)
{
	struct map *map = access_find(m->address);

	if (map && m->address + m->width <= map->address + map->size)
		return block_bytes(map->block, m->address - map->address,
			m->width);
	access_fault(&m->op, m->address, write, m->op.type->name);
	return NULL;
}

static bool has_come(struct op *op)
{
	struct memop *m = (struct memop *)op;
	uint64_t now = 0, high = 1ull << (8 * m->width - 1);
	uint8_t *at;

	if (op->context->error)
		return true;
	at = bytes_at(m, false);
	if (!at)
		return true;
	/* The CPU may be writing it, without our lock. */
	now = m->width == 4
		? __atomic_load_n((uint32_t *)at, __ATOMIC_ACQUIRE)
		: __atomic_load_n((uint64_t *)at, __ATOMIC_ACQUIRE);
	switch (m->how) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return !((now - m->value) & high);
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == m->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & m->value) != 0;
	default:
		return (~(now | m->value) & (high | (high - 1))) != 0;
	}
}

static void acquire(struct op *op)
{
	struct memop *m = (struct memop *)op;
	struct map *map = access_find(m->address);
	struct release *r;

	if (!knobs.race || !map)
		return;
	race_acquire(map->block->shadow, m->address - map->address, m->width,
		&op->clock);
	HASH_FIND(hh, releases, &m->address, sizeof(m->address), r);
	if (r)
		race_clock_join(&op->clock, &r->clock);
	op->acquired = true;
}

static void release(const struct memop *m)
{
	struct release *r;

	if (!knobs.race)
		return;
	HASH_FIND(hh, releases, &m->address, sizeof(m->address), r);
	if (!r) {
		r = object_alloc(sizeof(*r));
		r->address = m->address;
		HASH_ADD(hh, releases, address, sizeof(r->address), r);
	}
	race_clock_join(&r->clock, &m->op.clock);
}

static void put_value(struct op *op)
{
	struct memop *m = (struct memop *)op;
	uint8_t *at = op->context->error ? NULL : bytes_at(m, true);

	if (!at)
		return;
	release(m);
	if (m->width == 4)
		__atomic_store_n((uint32_t *)at, (uint32_t)m->value,
			__ATOMIC_RELEASE);
	else
		__atomic_store_n((uint64_t *)at, m->value, __ATOMIC_RELEASE);
}

static const struct op_type wait_type = {
	.name = "wait for a value",
	.engine = ENGINE_NONE,
	.finish = acquire,
	.may_end = has_come,
};
static const struct op_type write_type = {
	.name = "write of a value",
	.engine = ENGINE_NONE,
	.finish = put_value,
};

static CUresult submit(struct stream *s, const struct memop *want, bool write)
{
	struct memop *m;

	if (!want->address || want->address % want->width
	    || !access_usable(want->address, want->width, write, s->context))
		return CUDA_ERROR_INVALID_VALUE;
	m = (struct memop *)op_create(write ? &write_type : &wait_type,
		sizeof(*m));
	m->address = want->address;
	m->value = want->value;
	m->width = want->width;
	m->how = want->how;
	stream_submit(s, &m->op);
	op_put(&m->op);
	return CUDA_SUCCESS;
}

static CUresult wait_value(struct stream *s, uint64_t address, uint64_t value,
	unsigned width, unsigned flags)
{
	const struct memop m = { .address = address, .value = value,
		.width = width, .how = flags };

	if (flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags > CU_STREAM_WAIT_VALUE_NOR)
		return CUDA_ERROR_INVALID_VALUE;
	return submit(s, &m, false);
}

static CUresult write_value(struct stream *s, uint64_t address, uint64_t value,
	unsigned width, unsigned flags)
{
	const struct memop m = { .address = address, .value = value,
		.width = width };

	if (flags & ~(unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
		return CUDA_ERROR_INVALID_VALUE;
	return submit(s, &m, true);
}

static CUresult one(struct stream *s, const CUstreamBatchMemOpParams *p)
{
	switch (p->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return wait_value(s, p->waitValue.address,
			(uint32_t)p->waitValue.value64, 4, p->waitValue.flags);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return wait_value(s, p->waitValue.address,
			p->waitValue.value64, 8, p->waitValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return write_value(s, p->writeValue.address,
			(uint32_t)p->writeValue.value64, 4,
			p->writeValue.flags);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return write_value(s, p->writeValue.address,
			p->writeValue.value64, 8, p->writeValue.flags);
	case CU_STREAM_MEM_OP_BARRIER:
		return CUDA_SUCCESS;	/* everything is in order here */
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult batch(struct stream *s, unsigned n,
	const CUstreamBatchMemOpParams *p, unsigned flags)
{
	CUresult r = CUDA_SUCCESS;
	unsigned i;

	if (!n || n > 256 || !p || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < n && !r; i++)
		r = one(s, &p[i]);
	return r;
}

#define ON_STREAM(name, zero, action, ...) \
CUresult name(CUstream stream, __VA_ARGS__) \
{ \
	struct stream *s; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) { \
		c.result = stream_find(c.context, stream, zero, &s); \
		if (!c.result) \
			c.result = action; \
	} \
	return call_end(&c); \
}

/* Both ABI versions do the same; what devices could do differed. */
#define ON_STREAM4(name, action, ...) \
	ON_STREAM(name, STREAM_0_LEGACY, action, __VA_ARGS__) \
	ON_STREAM(name##_ptsz, STREAM_0_PER_THREAD, action, __VA_ARGS__) \
	ON_STREAM(name##_v2, STREAM_0_LEGACY, action, __VA_ARGS__) \
	ON_STREAM(name##_v2_ptsz, STREAM_0_PER_THREAD, action, __VA_ARGS__)

ON_STREAM4(cuStreamWaitValue32, wait_value(s, at, value, 4, flags),
	CUdeviceptr at, cuuint32_t value, unsigned int flags)
ON_STREAM4(cuStreamWaitValue64, wait_value(s, at, value, 8, flags),
	CUdeviceptr at, cuuint64_t value, unsigned int flags)
ON_STREAM4(cuStreamWriteValue32, write_value(s, at, value, 4, flags),
	CUdeviceptr at, cuuint32_t value, unsigned int flags)
ON_STREAM4(cuStreamWriteValue64, write_value(s, at, value, 8, flags),
	CUdeviceptr at, cuuint64_t value, unsigned int flags)
ON_STREAM4(cuStreamBatchMemOp, batch(s, n, op, flags), unsigned int n,
	CUstreamBatchMemOpParams *op, unsigned int flags)
