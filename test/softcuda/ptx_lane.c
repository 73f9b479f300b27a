/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that look across lanes (shfl, vote, match, redux, activemask),
 * special registers, moves that pack and unpack, window addresses.  Called by
 * the interpreter's loop, which has made sure that all lanes named by a .sync
 * mask are there; no locks.
 */
#include "test/softcuda/ptx_vm.h"

void ptx_nop_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	(void)w, (void)i, (void)mask;
}

static void put_pred(struct ptx_warp *w, u32 row, u32 value, u32 mask)
{
	u32 *p = PTX_ROW(w, u32, row);

	*p = (*p & ~mask) | (value & mask);
}

/* c packs the clamp (bits 0-4) and the segment mask (bits 8-12). */
void ptx_shfl_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 *d = PTX_ROW(w, u32, i->d), in[PTX_LANES], ok = 0, m;
	const u32 *b = PTX_ROW(w, u32, i->b), *c = PTX_ROW(w, u32, i->c);

	memcpy(in, PTX_ROW(w, u32, i->a), sizeof(in));
	for (m = mask; m; m &= m - 1) {
		s32 l = __builtin_ctz(m), by = b[l] & 31, j = 0;
		s32 clamp = c[l] & 31, seg = (c[l] >> 8) & 31;
		s32 top = (l & seg) | (clamp & ~seg), low = l & seg;
		bool p = false;

		switch (i->op) {
		case PTX_SHFL_UP:
			j = l - by;
			p = j >= top;
			break;
		case PTX_SHFL_DOWN:
			j = l + by;
			p = j <= top;
			break;
		case PTX_SHFL_BFLY:
			j = l ^ by;
			p = j <= top;
			break;
		default:
			j = low | (by & ~seg);
			p = j <= top;
		}
		if (!p)
			j = l;
		d[l] = in[j];
		ok |= (u32)p << l;
	}
	if (i->e)
		put_pred(w, i->e, ok, mask);
}

void ptx_vote_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 p = *PTX_ROW(w, u32, i->a), r = 0, m;

	if (i->flags & PTX_F_NOT_C)
		p = ~p;
	p &= mask;
	switch (i->op) {
	case PTX_VOTE_ALL:
		r = p == mask;
		break;
	case PTX_VOTE_ANY:
		r = p != 0;
		break;
	case PTX_VOTE_UNI:
		r = p == mask || p == 0;
		break;
	default:
		for (m = mask; m; m &= m - 1)
			PTX_ROW(w, u32, i->d)[__builtin_ctz(m)] = p;
		return;
	}
	put_pred(w, i->d, r ? PTX_FULL : 0, mask);
}

void ptx_activemask_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 m;

	for (m = mask; m; m &= m - 1)
		PTX_ROW(w, u32, i->d)[__builtin_ctz(m)] = mask;
}

static u64 value(struct ptx_warp *w, const struct ptx_insn *i, u32 lane)
{
	return i->size == 8 ? PTX_ROW(w, u64, i->a)[lane] :
		PTX_ROW(w, u32, i->a)[lane];
}

/* op 0: any, 1: all (with a predicate) */
void ptx_match_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 *d = PTX_ROW(w, u32, i->d), m, n, all;

	if (i->op) {
		all = mask;
		for (m = mask; m; m &= m - 1)
			if (value(w, i, (u32)__builtin_ctz(m)) !=
			    value(w, i, (u32)__builtin_ctz(mask)))
				all = 0;
		for (m = mask; m; m &= m - 1)
			d[__builtin_ctz(m)] = all;
		if (i->e)
			put_pred(w, i->e, all, mask);
		return;
	}
	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m), same = 0;
		u64 v = value(w, i, l);

		for (n = mask; n; n &= n - 1)
			if (value(w, i, (u32)__builtin_ctz(n)) == v)
				same |= n & -n;
		d[l] = same;
	}
}

void ptx_redux_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	const u32 *a = PTX_ROW(w, u32, i->a);
	u32 r = a[__builtin_ctz(mask)], m;

	for (m = mask & (mask - 1); m; m &= m - 1) {
		u32 v = a[__builtin_ctz(m)];
		bool less = i->type == PTX_s32 ? (s32)v < (s32)r : v < r;

		switch (i->op) {
		case PTX_REDUX_ADD:
			r += v;
			break;
		case PTX_REDUX_MIN:
			r = less ? v : r;
			break;
		case PTX_REDUX_MAX:
			r = less ? r : v;
			break;
		case PTX_REDUX_AND:
			r &= v;
			break;
		case PTX_REDUX_OR:
			r |= v;
			break;
		default:
			r ^= v;
		}
	}
	for (m = mask; m; m &= m - 1)
		PTX_ROW(w, u32, i->d)[__builtin_ctz(m)] = r;
}

/* nanosleep: time passes for whoever reads a clock. */
void ptx_sleep_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	w->x->skew += PTX_ROW(w, u32, i->a)[__builtin_ctz(mask)];
}

static u64 uniform_sreg(const struct ptx_warp *w, u32 reg)
{
	const struct ptx_exec *x = w->x;
	const struct ptx_launch *l = x->launch;

	switch (reg) {
	case PTX_SREG_NTID_X: case PTX_SREG_NTID_Y: case PTX_SREG_NTID_Z:
		return l->block[reg - PTX_SREG_NTID_X];
	case PTX_SREG_CTAID_X: case PTX_SREG_CTAID_Y: case PTX_SREG_CTAID_Z:
		return x->ctaid[reg - PTX_SREG_CTAID_X];
	case PTX_SREG_NCTAID_X: case PTX_SREG_NCTAID_Y:
	case PTX_SREG_NCTAID_Z:
		return l->grid[reg - PTX_SREG_NCTAID_X];
	case PTX_SREG_WARPID:
		return w->index;
	case PTX_SREG_NWARPID:
		return PTX_MAX_WARPS;
	case PTX_SREG_NSMID:
		return 1;
	case PTX_SREG_CLOCK: case PTX_SREG_CLOCK64:
		return x->clock + x->skew;
	case PTX_SREG_CLOCK_HI:
		return (x->clock + x->skew) >> 32;
	/* one tick of the clock is one nanosecond */
	case PTX_SREG_GLOBALTIMER: case PTX_SREG_GLOBALTIMER_LO:
		return x->clock + x->skew;
	case PTX_SREG_GLOBALTIMER_HI:
		return (x->clock + x->skew) >> 32;
	case PTX_SREG_DYNAMIC_SMEM:
		return l->dynamic_shared;
	case PTX_SREG_TOTAL_SMEM:
		return x->shared_size;
	default:		/* smid, gridid */
		return 0;
	}
}

static u32 lane_sreg(const struct ptx_warp *w, u32 reg, u32 lane)
{
	switch (reg) {
	case PTX_SREG_TID_X: case PTX_SREG_TID_Y: case PTX_SREG_TID_Z:
		return w->tid[reg - PTX_SREG_TID_X][lane];
	case PTX_SREG_LANEID:
		return lane;
	case PTX_SREG_LANEMASK_EQ:
		return 1u << lane;
	case PTX_SREG_LANEMASK_LT:
		return (1u << lane) - 1;
	case PTX_SREG_LANEMASK_LE:
		return (2u << lane) - 1;
	case PTX_SREG_LANEMASK_GT:
		return ~((2u << lane) - 1);
	default:
		return ~((1u << lane) - 1);
	}
}

void ptx_sreg_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 reg = i->target, m;
	bool by_lane = reg <= PTX_SREG_TID_Z || reg == PTX_SREG_LANEID ||
		(reg >= PTX_SREG_LANEMASK_EQ && reg <= PTX_SREG_LANEMASK_GE);
	u64 v = by_lane ? 0 : uniform_sreg(w, reg);

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);

		if (by_lane)
			v = lane_sreg(w, reg, l);
		if (i->regsize == 8)
			PTX_ROW(w, u64, i->d)[l] = v;
		else if (i->regsize == 4)
			PTX_ROW(w, u32, i->d)[l] = (u32)v;
		else
			PTX_ROW(w, u16, i->d)[l] = (u16)v;
	}
}

/* Address of a variable in the running frame's local memory. */
void ptx_lea_local_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u64 v = w->local_base + (u64)i->imm;
	u32 m;

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);

		if (i->regsize == 8)
			PTX_ROW(w, u64, i->d)[l] = v;
		else
			PTX_ROW(w, u32, i->d)[l] = (u32)v;
	}
}

/* imm is the window's base; op: 0 to generic, 1 from generic */
void ptx_cvta_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u64 by = i->op ? 0 - (u64)i->imm : (u64)i->imm;
	u32 m;

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 v = i->sregsize == 8 ? PTX_ROW(w, u64, i->a)[l] :
			PTX_ROW(w, u32, i->a)[l];

		if (i->regsize == 8)
			PTX_ROW(w, u64, i->d)[l] = v + by;
		else
			PTX_ROW(w, u32, i->d)[l] = (u32)(v + by);
	}
}

void ptx_isspacep_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u32 r = 0, m;

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 a = PTX_ROW(w, u64, i->a)[l];
		bool in;

		if (i->imm)
			in = a - (u64)i->imm < PTX_WINDOW;
		else
			in = a - PTX_SHARED_BASE >= PTX_WINDOW &&
				a - PTX_LOCAL_BASE >= PTX_WINDOW &&
				a - PTX_PARAM_BASE >= PTX_WINDOW;
		r |= (u32)in << l;
	}
	put_pred(w, i->d, r, mask);
}

static u64 get(struct ptx_warp *w, u32 row, u32 lane, u32 bytes)
{
	return bytes == 8 ? PTX_ROW(w, u64, row)[lane] : bytes == 4 ?
		PTX_ROW(w, u32, row)[lane] : PTX_ROW(w, u16, row)[lane];
}

static void put(struct ptx_warp *w, u32 row, u32 lane, u32 bytes, u64 v)
{
	if (bytes == 8)
		PTX_ROW(w, u64, row)[lane] = v;
	else if (bytes == 4)
		PTX_ROW(w, u32, row)[lane] = (u32)v;
	else
		PTX_ROW(w, u16, row)[lane] = (u16)v;
}

/* mov d, {a, b, c, e}: size is one element's, the first is lowest */
void ptx_mov_pack_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	const u32 row[4] = { i->a, i->b, i->c, i->e };
	u32 m, k;

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 v = 0;

		for (k = 0; k < i->vec; k++)
			v |= get(w, row[k], l, i->size) << (8 * i->size * k);
		put(w, i->d, l, i->regsize, v);
	}
}

/* mov {d, b, c, e}, a; a row of 0 is the sink `_` */
void ptx_mov_unpack_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	const u32 row[4] = { i->d, i->b, i->c, i->e };
	u32 m, k;

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 v = get(w, i->a, l, i->sregsize);

		for (k = 0; k < i->vec; k++)
			if (row[k])
				put(w, row[k], l, i->size,
					v >> (8 * i->size * k));
	}
}
