/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The running state: launch, block, warp, fragment.  Shared by ptx_exec.c and
 * the operation files.  A warp's registers are rows of 32 lanes in one frame
 * for each active call; a fragment is a set of lanes that are at the same
 * place with the same callers.
 */
#ifndef SOFTCUDA_PTX_VM_H
#define SOFTCUDA_PTX_VM_H

#include <string.h>

#include "test/softcuda/ptx_int.h"

#define PTX_MAX_WARPS 32
#define PTX_NR_BARRIERS 16
#define PTX_MAX_DEPTH 256
#define PTX_CACHE_SLOTS 64
#define PTX_KNOWN_RUNS 16

/* One call in progress; shared by the fragments that came from it. */
struct ptx_call {
	struct ptx_call *parent;
	u32 refs;
	u32 depth;
	u32 ret;		/* where the caller goes on */
	u32 site;
	u32 func;		/* the caller */
	u32 frame, local;	/* the caller's */
};

enum ptx_frag_state {
	PTX_RUNNABLE,
	PTX_AT_SYNC,		/* at a .sync instruction, lanes are missing */
	PTX_AT_BARRIER,		/* after a bar, until it is complete */
};

struct ptx_frag {
	u32 pc;
	u32 mask;
	u8 state;
	u8 barrier;
	u32 func;
	u32 frame, local;
	struct ptx_call *call;	/* reference held; NULL in the kernel */
	u64 stamp;		/* when it last ran */
};

struct ptx_barrier {
	u32 arrived;		/* threads */
	u32 expected;		/* 0: all threads that have not exited */
	u32 popc, all, any;	/* of bar.red */
};

struct ptx_cached {
	u64 address;
	u64 size;
	u8 *host;
	bool write;
};

struct ptx_exec;

struct ptx_warp {
	u8 *frame;		/* rows of the running fragment */
	struct ptx_exec *x;
	u32 local_base;		/* of the running fragment */
	u32 cc;			/* carry flags */
	u32 index;
	u32 valid;		/* lanes that exist */
	u32 alive;		/* lanes that have not exited */
	u8 *regs;		/* owned */
	size_t regs_size;
	u8 *local;		/* owned: 32 stretches of local_stride */
	u32 local_stride;
	struct ptx_frag frag[PTX_LANES];
	u32 nr_frags;
	u32 tid[3][PTX_LANES];
};

struct ptx_exec {
	const struct ptx_kernel *kernel;
	const struct ptx_module *module;
	const struct ptx_launch *launch;
	const struct ptx_memory *memory;
	struct ptx_count *count;
	struct ptx_fault *fault;
	enum ptx_status status;
	u64 base_clock;		/* instructions, on the launch's start value */
	u64 clock;		/* the same, exact while a clock is read */
	u64 skew;		/* slept */
	u32 ctaid[3];
	u32 nr_threads, nr_warps;
	u32 live_threads;
	u8 *shared;		/* owned */
	u32 shared_size;
	u8 *params;		/* copy of the launch's, zero padded */
	u32 params_size;
	struct ptx_warp *warps;
	struct ptx_call *free_calls;
	struct ptx_barrier barrier[PTX_NR_BARRIERS];
	struct ptx_cached cache[PTX_CACHE_SLOTS];
	struct ptx_cached known[PTX_KNOWN_RUNS];
	u32 next_known;
};

#define PTX_ROW(w, t, off) \
	((t *)__builtin_assume_aligned((w)->frame + (off), 4))

/* ptx_mem.c */
u8 *ptx_global_slow(struct ptx_exec *x, u32 slot, u64 address, u64 size,
	bool write);
/*
 * Host memory of one lane's access in any space, or NULL with the fault noted.
 */
u8 *ptx_lane_pointer(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	enum ptx_space space, u64 address, u32 size, bool write);
/* The address of an access, all lanes. */
void ptx_addresses(struct ptx_warp *w, const struct ptx_insn *i, u64 *out);
void ptx_fault_at(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	enum ptx_status status, u64 address, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
bool ptx_is_global(enum ptx_space space, u64 address);
/* Copies a NUL-terminated text of generic address space. */
bool ptx_read_text(struct ptx_warp *w, const struct ptx_insn *i, u32 lane,
	u64 address, char *out, size_t size);

/* ptx_print.c */
void ptx_builtin(struct ptx_warp *w, const struct ptx_insn *i, u32 mask);

/* NULL when [address, address + size) is not one run known to this slot. */
static inline u8 *ptx_global(struct ptx_exec *x, u32 slot, u64 address,
	u64 size, bool write)
{
	struct ptx_cached *c = &x->cache[slot % PTX_CACHE_SLOTS];
	u64 off = address - c->address;

	if (off < c->size && size <= c->size - off && c->write >= write)
		return c->host + off;
	return ptx_global_slow(x, slot, address, size, write);
}

#endif
