/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of the program: what it touches, on which stream, what was pinned
 * for it, and its result.  The only way from a hook into state.  A hook is
 *
 *	if (!init_active())
 *		return REAL(cuX)(...);
 *	if (!issue_launch(&i, ...))
 *		return i.result;
 *	r = real.cuX(...);
 *	return issue_end(&i, r);
 *
 * and for copies, which may go in pieces,
 *
 *	if (!issue_copy(&i, dst, src, n, stream, how))
 *		return i.result;
 *	while (issue_next(&i, r))
 *		r = real.cuX(i.dst, i.src, i.n);
 *	return issue_end(&i, r);
 *
 * An issue lives on its thread's stack from begin to end.
 */
#ifndef BALLAST_ISSUE_H
#define BALLAST_ISSUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"
#include "shim/tenancy.h"

enum issue_kind {
	ISSUE_PASS,	/* nothing of ours is touched */
	ISSUE_OPEN,	/* resident memory only: an open section */
	ISSUE_HELD,	/* an acquired set */
	ISSUE_PLANNED,	/* an open section, and pins on units of a plan */
};

/* Units that one launch may name on the short way. */
#define ISSUE_UNITS 8

/* How a copy behaves. */
#define ISSUE_SYNC 0x1		/* returns when it is done */
#define ISSUE_FROM_HOST 0x2	/* the source is host memory for certain */
#define ISSUE_FILL 0x4		/* there is no source */

struct issue {
	enum issue_kind kind;
	CUresult result;	/* of our own part; begin sets it in any case */
	struct page_set set;
	struct page_set peer;	/* of a second device; else its device is NULL */
	/* Copies: the piece to issue now, and what is left after it. */
	CUdeviceptr dst;
	CUdeviceptr src;
	size_t n;
	size_t left;
	unsigned how;
	bool pieces;		/* each piece is acquired by itself */
	bool started;
	bool ordered;		/* the source has its bytes already */
	bool splits;		/* the hook can do it in smaller parts */
	bool too_big;		/* refused: such parts may do */
	/* Launches under a plan. */
	struct device *units_of;
	struct unit *units[ISSUE_UNITS];
	struct unit *missed;	/* not whole: the launch goes the long way */
	bool in_order;		/* it was to come now */
	uint32_t units_gen;
	uint8_t nr_units;
	bool entered;		/* a unit's turn began */
};

/* The default stream's handle in either flavour. */
#define ISSUE_LEGACY(s) ((s) == NULL ? CU_STREAM_LEGACY : (s))
#define ISSUE_PTSZ(s) ((s) == NULL ? CU_STREAM_PER_THREAD : (s))

bool issue_launch(struct issue *i, CUfunction f, CUstream s, void **params,
	void **extra) WARN_UNUSED;
/*
 * A copy or fill of n bytes.  Host addresses are given as device addresses.
 * Ranges outside managed memory pass.  A range that leaves its allocation is
 * CUDA_ERROR_INVALID_VALUE, as the driver has it for its own.
 */
bool issue_copy(struct issue *i, CUdeviceptr dst, CUdeviceptr src, size_t n,
	CUstream s, unsigned how) WARN_UNUSED;
/* Ends the piece before (r is its result) and prepares the next. */
bool issue_next(struct issue *i, CUresult r) WARN_UNUSED;
/*
 * Calls that touch several ranges at once: 2D and 3D copies, batches, stream
 * values.  issue_touch() names a range; addresses that are not managed are
 * ignored.  issue_go() then makes all of them present.
 *
 *	issue_touches(&i, stream);
 *	issue_touch(&i, ...);		any number of times
 *	if (!issue_go(&i))
 *		return i.result;	or, where i.too_big, smaller parts
 *	r = real.cuX(...);
 *	return issue_end(&i, r);
 */
void issue_touches(struct issue *i, CUstream s);
void issue_touch(struct issue *i, CUdeviceptr p, size_t n, bool write);
bool issue_go(struct issue *i) WARN_UNUSED;
/*
 * Whether the driver takes a 3D copy of several layers that does not say how
 * many rows a layer has.  A context is current.
 */
bool issue_layers_follow(void);

/*
 * Makes [p, p + n) resident for good, or to the end of p's allocation where n
 * is 0.  Unmanaged memory is fine.  CUDA_SUCCESS, or why it cannot be.
 */
CUresult issue_fix(CUdeviceptr p, size_t n);

/* The same for all addresses of a batch of operations on values. */
CUresult issue_fix_values(const CUstreamBatchMemOpParams *ops, unsigned int n);

/* Ends the call.  Returns r, or our own failure where r is success. */
CUresult issue_end(struct issue *i, CUresult r);

/* ---- memory ---- */

/*
 * cuMemAlloc.  *native is set where the request is the driver's; then nothing
 * was done.
 */
CUresult issue_alloc(CUdeviceptr *p, size_t size, bool *native);
/* cuMemAllocPitch; *native as above. */
CUresult issue_alloc_pitch(CUdeviceptr *p, size_t *pitch, size_t width,
	size_t height, unsigned int element, bool *native);
/* cuMemFree; *native as above. */
CUresult issue_free(CUdeviceptr p, bool *native);
/* The same in stream order. */
CUresult issue_alloc_async(CUdeviceptr *p, size_t size, CUstream s,
	bool *native);
CUresult issue_free_async(CUdeviceptr p, CUstream s, bool *native);
/*
 * The driver had no memory for a request of its own of about `size` bytes.
 * true: some was given back to it, so trying again makes sense.
 */
bool issue_make_room(size_t size);
/* An allocation that the driver made (r) or freed for the program. */
void issue_native(CUresult r, const CUdeviceptr *p, size_t size);
void issue_native_freed(void);
/* cuMemGetInfo: adjusts *free_bytes as report_memory says. */
void issue_memory_info(size_t *free_bytes, size_t total);
/* cuMemGetAddressRange of a managed address; false: not ours. */
bool issue_address_range(CUdeviceptr p, CUdeviceptr *base, size_t *size,
	CUresult *r);

/* Attributes of a managed pointer; false: not ours. */
bool issue_pointer_attribute(void *data, CUpointer_attribute attr,
	CUdeviceptr p, CUresult *r);
bool issue_pointer_attributes(unsigned int n, CUpointer_attribute *attrs,
	void **data, CUdeviceptr p, CUresult *r);
bool issue_sync_memops(const void *value, CUpointer_attribute attr,
	CUdeviceptr p, CUresult *r);
/* Whether a pointer cannot go to another process; says so once. */
bool issue_ipc_refused(CUdeviceptr p);

/* ---- contexts, streams, modules ---- */

/*
 * The current context may use the memory of peer's device from now on:
 * managed memory there becomes accessible too.
 */
CUresult issue_peer_enabled(CUcontext peer);
/* The same for the devices that a pool's memory was made accessible to. */
CUresult issue_pool_shared(CUmemoryPool pool, const CUmemAccessDesc *desc,
	size_t n);
/* The program has set the pool that some device allocates from. */
void issue_pool_set(void);
/* The driver's answer about a pool is completed by what is managed there. */
void issue_pool_attribute(CUmemoryPool pool, CUmemPool_attribute attr,
	cuuint64_t *value);
void issue_pool_attribute_set(CUmemoryPool pool, CUmemPool_attribute attr);
void issue_stream_created(CUstream s, unsigned flags);
void issue_stream_destroyed(CUstream s);
void issue_context_created(CUcontext c, CUdevice ordinal);
/* Before a context is destroyed: frees what is managed in it. */
void issue_context_ends(CUcontext c);
/* cuCtxAttach takes one more detach to end the context. */
void issue_context_attached(CUcontext c);
void issue_context_detaches(CUcontext c);
/* Before a primary context is reset; after one was released. */
void issue_primary_retained(CUdevice ordinal, CUcontext c);
void issue_primary_resets(CUdevice ordinal);
void issue_primary_released(CUdevice ordinal);
/*
 * Green contexts.  One was made, and has retained the primary context; a stream
 * of one was made; one is about to be destroyed, and then has been: the call in
 * between tells which device it was of, -1: nobody knows.
 */
void issue_green_created(CUdevice ordinal);
void issue_green_stream_created(CUstream s, CUgreenCtx green, unsigned flags);
CUdevice issue_green_ends(CUgreenCtx green);
void issue_green_ended(CUdevice ordinal);
/* A kernel handle that launches may use in a function's place. */
void issue_kernel_known(CUkernel k);
/*
 * Before a host function, or a wait for a value, is queued; after an event is
 * shared with another process.
 */
void issue_host_function(void);
/*
 * The calling thread is about to wait for the GPU; for a stream, or NULL.  No
 * lock held.
 */
void issue_waits(CUstream s);
/* The same for a thread that only looks, or passes on; it is not kept. */
void issue_comes_by(CUstream s);
void issue_module_unloaded(void);
/* Before any stream begins to capture, active or not. */
void issue_capture_begins(void);
/*
 * Whether a stream may begin to capture, or a graph get a node; false: *r says
 * why not.
 */
bool issue_may_capture(CUresult *r);
/* The same for a launch whose parameters Ballast does not see. */
bool issue_launch_blind(void);

/*
 * ---- the program's own virtual memory ----
 *
 * *native is set where neither handle nor address is ours; then nothing was
 * done, and the call is the driver's.
 */

CUresult issue_vmm_create(CUmemGenericAllocationHandle *out, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags,
	bool *native);
CUresult issue_vmm_release(CUmemGenericAllocationHandle value, bool *native);
CUresult issue_vmm_retain(CUmemGenericAllocationHandle *out, CUdeviceptr p,
	bool *native);
/* The driver has retained *h: perhaps one of ours stands for it. */
void issue_vmm_retained(CUmemGenericAllocationHandle *h);
CUresult issue_vmm_properties(CUmemAllocationProp *out,
	CUmemGenericAllocationHandle value, bool *native);
CUresult issue_vmm_export(CUmemGenericAllocationHandle value, bool *native);
/* The driver's answer, made to fit our pages. */
void issue_vmm_granularity(size_t *out, const CUmemAllocationProp *prop);
CUresult issue_vmm_reserve(CUdeviceptr *out, size_t size, size_t align,
	CUdeviceptr hint, unsigned long long flags, bool *native);
CUresult issue_vmm_unreserve(CUdeviceptr p, size_t size, bool *native);
CUresult issue_vmm_map(CUdeviceptr p, size_t size, size_t offset,
	CUmemGenericAllocationHandle value, unsigned long long flags,
	bool *native);
CUresult issue_vmm_unmap(CUdeviceptr p, size_t size, bool *native);
CUresult issue_vmm_set_access(CUdeviceptr p, size_t size,
	const CUmemAccessDesc *desc, size_t n, bool *native);
CUresult issue_vmm_get_access(unsigned long long *flags,
	const CUmemLocation *where, CUdeviceptr p, bool *native);

/*
 * Whether something that lasts (a multicast object, a sparse array) is to hold
 * memory that must be able to move; then it is refused, and that is said once.
 */
bool issue_vmm_held(CUmemGenericAllocationHandle value);
bool issue_vmm_held_at(CUdeviceptr p);

/* Called once, when cuInit has succeeded. */
bool issue_start(void);

#endif
