/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches.  A kernel runs, as a whole, at its virtual start; how long it
 * seems to take comes from what it did.  Parameters are copied when it is
 * launched.  Called by the program; guarded by the driver's lock.
 */
#include "test/softcuda/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/access.h"
#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/knobs.h"
#include "test/softcuda/memory.h"
#include "test/softcuda/module.h"
#include "test/softcuda/occupancy.h"
#include "test/softcuda/paging.h"
#include "test/softcuda/report.h"
#include "test/softcuda/stream.h"

/* Mappings up to this size are handed to the interpreter as one run. */
#define RUN_MAX (64u << 20)

struct launch {
	struct op op;
	struct module *module;		/* counted */
	struct function *function;	/* borrowed from the module */
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared;
	uint8_t *params;		/* owned */
	struct map **used;		/* owned; mappings it was let at; only
					 * to be compared once it has run */
	size_t nr_used, cap_used;
	struct map *last[2];		/* latest touched, by write */
	bool paged;			/* accesses off the device count */
	bool strayed;			/* said so already */
};

static void note_use(struct launch *l, struct map *m)
{
	if (l->nr_used && l->used[l->nr_used - 1] == m)
		return;
	l->used = object_grow(l->used, l->nr_used, &l->cap_used,
		sizeof(*l->used));
	l->used[l->nr_used++] = m;
}

static bool translate(void *self, uint64_t address, bool write,
	struct ptx_run *out)
{
	unsigned want = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		: CU_MEM_ACCESS_FLAGS_PROT_READ;
	struct launch *l = self;
	struct map *m = access_find(address);
	uint64_t off = 0, size;

	if (!m || (space_access(m, l->op.context) & want) != want)
		return false;
	note_use(l, m);
	size = m->size;
	if (size > RUN_MAX && m->region) {
		off = (address - m->address) & ~(uint64_t)(BLOCK_FILL - 1);
		size = size - off < BLOCK_FILL ? size - off : BLOCK_FILL;
	}
	out->address = m->address + off;
	out->size = size;
	out->host = block_bytes(m->block, off, size);
	return true;
}

/* Within mapped memory, but not within an allocation: no hardware sees it. */
static void stray(struct launch *l, uint64_t address, bool write)
{
	if (l->strayed)
		return;
	l->strayed = true;
	report_rule("bounds", "kernel %s (operation %llu, stream %llu) %s "
		"%#llx, which is in no allocation", l->function->info.name,
		(unsigned long long)l->op.number,
		(unsigned long long)l->op.stream_id, write ? "writes" : "reads",
		(unsigned long long)address);
}

static void touch(void *self, uint64_t address, uint64_t size, bool write)
{
	struct launch *l = self;
	struct map *m;
	uint64_t n;

	for (; size; address += n, size -= n) {
		m = l->last[write];
		if (!m || address - m->address >= m->size)
			m = l->last[write] = access_find(address);
		if (!m)
			return;
		n = m->address + m->size - address;
		if (n > size)
			n = size;
		if (l->paged)
			paging_touch(m->block, address - m->address, n, write);
		if (!knobs.race)
			continue;
		if (memory_has_ends(m) && memory_reach_running(m, address) < n)
			stray(l, address, write);
		race_touch(&m->block->shadow, address - m->address, n, write,
			address);
	}
}

static void print(void *self, const char *text, size_t len)
{
	fwrite(text, 1, len, stdout);
}

static CUresult result_of(enum ptx_status s)
{
	switch (s) {
	case PTX_ILLEGAL_ADDRESS:
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	case PTX_MISALIGNED:
		return CUDA_ERROR_MISALIGNED_ADDRESS;
	case PTX_ASSERT:
		return CUDA_ERROR_ASSERT;
	case PTX_DEADLOCK:
		return CUDA_ERROR_LAUNCH_TIMEOUT;
	case PTX_BAD_LAUNCH:
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	default:
		return CUDA_ERROR_LAUNCH_FAILED;
	}
}

static void fail(struct launch *l, enum ptx_status s,
	const struct ptx_fault *f)
{
	struct map *m = access_find(f->address);

	context_kill(l->op.context, result_of(s));
	report_rule("kernel", "%s (operation %llu, stream %llu): %s at ptx "
		"line %u, block (%u,%u,%u), thread (%u,%u,%u), address %#llx "
		"(%s): %s", l->function->info.name,
		(unsigned long long)l->op.number,
		(unsigned long long)l->op.stream_id, ptx_status_name(s),
		f->line, f->block[0], f->block[1], f->block[2], f->thread[0],
		f->thread[1], f->thread[2], (unsigned long long)f->address,
		m ? "mapped" : "not mapped", f->message);
}

/* A kernel reaches host memory evenly all the while. */
static uint64_t cost(struct op *op, const struct ptx_count *n)
{
	struct paging_cost off = paging_end();
	double memory = (double)(n->bytes_read + n->bytes_written
		- off.host_bytes) / knobs.hbm_gbps;
	double work = (double)n->lane_instructions / knobs.lane_gips;
	uint64_t ns;
	int way;

	if ((double)off.link_ns > work)
		work = (double)off.link_ns;
	ns = (uint64_t)knobs.launch_ns + off.fault_ns
		+ (uint64_t)(memory > work ? memory : work);
	for (way = 0; ns && way < NR_LINK_DIRECTIONS; way++)
		op->link.demand[way] = (double)off.ways_ns[way] / (double)ns;
	return ns;
}

static uint64_t start(struct op *op)
{
	struct launch *l = (struct launch *)op;
	const struct ptx_memory memory = {
		.self = l,
		.translate = translate,
		.touch = knobs.race || paging_wanted() ? touch : NULL,
		.print = print,
	};
	struct ptx_launch pl = {
		.dynamic_shared = l->dynamic_shared,
		.params = l->params,
		.memory = &memory,
		.clock = sim_now(),
	};
	struct ptx_count count = { 0 };
	struct ptx_fault fault = { 0 };
	enum ptx_status s;
	char what[64];

	if (op->context->error)
		return 0;
	l->paged = paging_wanted();
	memcpy(pl.grid, l->grid, sizeof(pl.grid));
	memcpy(pl.block, l->block, sizeof(pl.block));
	s = ptx_run(l->function->kernel, &pl, &count, &fault);
	stats.kernels++;
	stats.lane_instructions += count.lane_instructions;
	stats.kernel_bytes += count.bytes_read + count.bytes_written;
	if (knobs.race) {
		snprintf(what, sizeof(what), "kernel %s",
			l->function->info.name);
		race_touch_done(access_stamp(op, what), &op->clock);
	}
	if (s)
		fail(l, s, &fault);
	return cost(op, &count);
}

static void release(struct op *op)
{
	struct launch *l = (struct launch *)op;

	module_put(l->module);
	free(l->params);
	free(l->used);
}

static const struct op_type kernel_type = {
	.name = "kernel",
	.engine = ENGINE_COMPUTE,
	.start = start,
	.release = release,
};

bool launch_uses(const struct op *op, const struct map *m)
{
	const struct launch *l = (const struct launch *)op;
	size_t i;

	if (op->type != &kernel_type || op->state != OP_RUNNING)
		return false;
	for (i = 0; i < l->nr_used; i++)
		if (l->used[i] == m)
			return true;
	return false;
}

const char *launch_kernel_name(const struct op *op)
{
	return op->type == &kernel_type
		? ((const struct launch *)op)->function->info.name : NULL;
}

/* ---- issue ---------------------------------------------------------------------- */

struct request {
	struct function *function;
	unsigned grid[3], block[3];
	unsigned shared;
	CUstream stream;
	enum stream_default zero;
	void **params, **extra;
	bool cooperative;
};

/*
 * All blocks must fit at once, so that they can wait for each other.  Here
 * they run one after another all the same: a kernel that does wait for blocks
 * behind its own never ends.
 */
static CUresult check_cooperative(const struct request *q,
	const struct context *ctx)
{
	uint64_t blocks = (uint64_t)q->grid[0] * q->grid[1] * q->grid[2];
	unsigned fit = occupancy_blocks(q->function,
		q->block[0] * q->block[1] * q->block[2], q->shared);
	static bool said;

	if (blocks > (uint64_t)fit * (unsigned)device_attribute(
	    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ctx->device))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	if (blocks > 1 && !said)
		report_log("cooperative launch of %s: its blocks run one after "
			"another, a barrier of the grid cannot be met",
			q->function->info.name);
	said |= blocks > 1;
	return CUDA_SUCCESS;
}

static CUresult check(const struct request *q)
{
	const struct ptx_kernel_info *info = &q->function->info;
	static const unsigned max_block[3] = { 1024, 1024, 64 };
	static const unsigned max_grid[3] = { 2147483647, 65535, 65535 };
	uint64_t threads = 1;
	int i;

	for (i = 0; i < 3; i++) {
		if (!q->grid[i] || q->grid[i] > max_grid[i] || !q->block[i]
		    || q->block[i] > max_block[i])
			return CUDA_ERROR_INVALID_VALUE;
		threads *= q->block[i];
	}
	if (threads > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads > info->max_threads)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (q->shared > (unsigned)q->function->max_dynamic_shared)
		return CUDA_ERROR_INVALID_VALUE;
	if (q->params && q->extra)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* The packed buffer that `extra` names. */
static CUresult read_extra(void **extra, const void **buf, size_t *size)
{
	const size_t *given = NULL;
	size_t i;

	*buf = NULL;
	for (i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			*buf = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			given = extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!*buf || !given)
		return CUDA_ERROR_INVALID_VALUE;
	*size = *given;
	return CUDA_SUCCESS;
}

static CUresult pack(const struct request *q, uint8_t *to)
{
	const struct ptx_kernel_info *info = &q->function->info;
	const void *buf;
	size_t size, i;
	CUresult r;

	if (!info->nr_params)
		return CUDA_SUCCESS;
	if (q->extra) {
		r = read_extra(q->extra, &buf, &size);
		if (r)
			return r;
		/* Trailing padding may be missing or too much. */
		memcpy(to, buf, size < info->params_size ? size
			: info->params_size);
		i = info->nr_params - 1;
		return size >= info->params[i].offset + info->params[i].size
			? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
	if (!q->params)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < info->nr_params; i++) {
		if (!q->params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(to + info->params[i].offset, q->params[i],
			info->params[i].size);
	}
	return CUDA_SUCCESS;
}

static CUresult launch(struct context *ctx, CUfunction handle,
	struct request *q)
{
	struct stream *s;
	struct launch *l;
	uint8_t *params;
	CUresult r;

	r = stream_find(ctx, q->stream, q->zero, &s);
	if (r)
		return r;
	/* A kernel's function is that of the stream's context. */
	r = function_find(handle, s->context, &q->function);
	if (r)
		return r;
	r = check(q);
	if (!r && q->cooperative)
		r = check_cooperative(q, s->context);
	if (r)
		return r;
	if (q->function->module->context != s->context)
		return CUDA_ERROR_INVALID_HANDLE;
	params = object_alloc(q->function->info.params_size + 16);
	r = pack(q, params);
	if (r) {
		free(params);
		return r;
	}
	l = (struct launch *)op_create(&kernel_type, sizeof(*l));
	l->function = q->function;
	l->module = q->function->module;
	module_get(l->module);
	memcpy(l->grid, q->grid, sizeof(l->grid));
	memcpy(l->block, q->block, sizeof(l->block));
	l->dynamic_shared = q->shared;
	l->params = params;
	stream_submit(s, &l->op);
	op_put(&l->op);
	return CUDA_SUCCESS;
}

#define LAUNCH(name, the_zero) \
CUresult name(CUfunction f, unsigned int gx, unsigned int gy, \
	unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, \
	unsigned int shared, CUstream stream, void **params, void **extra) \
{ \
	struct request q = { .grid = { gx, gy, gz }, .block = { bx, by, bz }, \
		.shared = shared, .stream = stream, .zero = the_zero, \
		.params = params, .extra = extra }; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = launch(c.context, f, &q); \
	return call_end(&c); \
}

LAUNCH(cuLaunchKernel, STREAM_0_LEGACY)
LAUNCH(cuLaunchKernel_ptsz, STREAM_0_PER_THREAD)

#define COOPERATIVE(name, the_zero) \
CUresult name(CUfunction f, unsigned int gx, unsigned int gy, \
	unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, \
	unsigned int shared, CUstream stream, void **params) \
{ \
	struct request q = { .grid = { gx, gy, gz }, .block = { bx, by, bz }, \
		.shared = shared, .stream = stream, .zero = the_zero, \
		.params = params, .cooperative = true }; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = launch(c.context, f, &q); \
	return call_end(&c); \
}

COOPERATIVE(cuLaunchCooperativeKernel, STREAM_0_LEGACY)
COOPERATIVE(cuLaunchCooperativeKernel_ptsz, STREAM_0_PER_THREAD)

/*
 * Attributes that change nothing here.  Programmatic serialisation is a leave
 * to begin early, which this driver does not take.
 */
static bool is_hint(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return true;
	default:
		return false;
	}
}

static CUresult launch_ex(struct context *ctx, const CUlaunchConfig *config,
	CUfunction f, void **params, void **extra, enum stream_default zero)
{
	bool cooperative = false;
	struct request q;
	unsigned i;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < config->numAttrs; i++) {
		if (is_hint(config->attrs[i].id))
			continue;
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
			cooperative = config->attrs[i].value.cooperative;
			continue;
		}
		report_log("cuLaunchKernelEx: attribute %d is not supported",
			config->attrs[i].id);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	q = (struct request) {
		.grid = { config->gridDimX, config->gridDimY,
			config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY,
			config->blockDimZ },
		.shared = config->sharedMemBytes,
		.stream = config->hStream,
		.zero = zero,
		.params = params,
		.extra = extra,
		.cooperative = cooperative,
	};
	return launch(ctx, f, &q);
}

#define LAUNCH_EX(name, zero) \
CUresult name(const CUlaunchConfig *config, CUfunction f, void **params, \
	void **extra) \
{ \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) \
		c.result = launch_ex(c.context, config, f, params, extra, zero); \
	return call_end(&c); \
}

LAUNCH_EX(cuLaunchKernelEx, STREAM_0_LEGACY)
LAUNCH_EX(cuLaunchKernelEx_ptsz, STREAM_0_PER_THREAD)
