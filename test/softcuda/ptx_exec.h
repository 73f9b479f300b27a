/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the loop that runs instructions (ptx_exec.c) and what parts, joins
 * and ends lanes (ptx_control.c).
 */
#ifndef SOFTCUDA_PTX_EXEC_H
#define SOFTCUDA_PTX_EXEC_H

#include "test/softcuda/ptx_vm.h"

#define POISON 0xcd		/* fresh shared and local memory */

static inline u32 ptx_depth(const struct ptx_frag *f)
{
	return f->call ? f->call->depth : 0;
}

void ptx_frag_remove(struct ptx_warp *w, struct ptx_frag *f);
void ptx_call_put(struct ptx_exec *x, struct ptx_call *c);
/* Room for a frame of the deepest call; false: a fault, or no memory. */
bool ptx_grow_regs(struct ptx_warp *w, size_t need);
bool ptx_grow_local(struct ptx_warp *w, u32 need);
/* The rows of a frame that hold constants. */
void ptx_fill_consts(struct ptx_exec *x, const struct ptx_func *f, u8 *frame,
	u32 mask);
/* One instruction for the lanes m of the running fragment; then pick again. */
void ptx_control(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m);
/* Lets lanes go that wait for others of their warp, all of which wait. */
bool ptx_release_warpsync(struct ptx_warp *w);

#endif
