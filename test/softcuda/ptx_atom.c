/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom and red: lanes one after another, in lane order.  Called by the
 * interpreter's loop; no locks (warps run one at a time).
 */
#include "test/softcuda/ptx_math.h"
#include "test/softcuda/ptx_vm.h"

static f32 add_f32(f32 a, f32 b, bool ftz)
{
	f32 r;

	if (ftz) {
		a = flush32(a);
		b = flush32(b);
	}
	r = nan32(a + b);
	return ftz ? flush32(r) : r;
}

static u32 add_x2(u32 a, u32 b, enum ptx_type t)
{
	u32 r = 0, k;

	for (k = 0; k < 32; k += 16) {
		u16 x = (u16)(a >> k), y = (u16)(b >> k);

		x = t == PTX_f16x2 ? ptx_f2h(ptx_h2f(x) + ptx_h2f(y)) :
			ptx_d2b((f64)ptx_b2f(x) + ptx_b2f(y));
		r |= (u32)x << k;
	}
	return r;
}

static u64 add(const struct ptx_insn *i, u64 a, u64 b, bool global)
{
	switch (i->type) {
	case PTX_f32:
		/* PTX: denormals are flushed in global memory only */
		return f32_bits(add_f32(bits_f32((u32)a), bits_f32((u32)b),
			global));
	case PTX_f64:
		return f64_bits(nan64(bits_f64(a) + bits_f64(b)));
	case PTX_f16:
		return ptx_f2h(ptx_h2f((u16)a) + ptx_h2f((u16)b));
	case PTX_bf16:
		return ptx_d2b((f64)ptx_b2f((u16)a) + ptx_b2f((u16)b));
	case PTX_f16x2: case PTX_bf16x2:
		return add_x2((u32)a, (u32)b, i->type);
	default:
		return a + b;
	}
}

static bool less(enum ptx_type t, u64 a, u64 b)
{
	switch (t) {
	case PTX_s32:
		return (s32)a < (s32)b;
	case PTX_s64:
		return (s64)a < (s64)b;
	default:
		return a < b;
	}
}

static u64 apply(const struct ptx_insn *i, u64 old, u64 b, u64 c, bool global)
{
	switch (i->op) {
	case PTX_ATOM_ADD:
		return add(i, old, b, global);
	case PTX_ATOM_INC:
		return old >= b ? 0 : old + 1;
	case PTX_ATOM_DEC:
		return old == 0 || old > b ? b : old - 1;
	case PTX_ATOM_MIN:
		return less(i->type, b, old) ? b : old;
	case PTX_ATOM_MAX:
		return less(i->type, old, b) ? b : old;
	case PTX_ATOM_AND:
		return old & b;
	case PTX_ATOM_OR:
		return old | b;
	case PTX_ATOM_XOR:
		return old ^ b;
	case PTX_ATOM_CAS:
		return old == b ? c : old;
	default:
		return b;
	}
}

static u64 get(struct ptx_warp *w, u32 row, u32 lane, u32 bytes)
{
	return bytes == 8 ? PTX_ROW(w, u64, row)[lane] : bytes == 4 ?
		PTX_ROW(w, u32, row)[lane] : PTX_ROW(w, u16, row)[lane];
}

static void put(struct ptx_warp *w, const struct ptx_insn *i, u32 lane, u64 v)
{
	if (i->size == 8)
		PTX_ROW(w, u64, i->d)[lane] = v;
	else if (i->size == 4)
		PTX_ROW(w, u32, i->d)[lane] = (u32)v;
	else
		PTX_ROW(w, u16, i->d)[lane] = (u16)v;
}

static void tell(struct ptx_exec *x, u64 address, u64 size)
{
	x->count->bytes_read += size;
	x->count->bytes_written += size;
	if (x->memory->touch)
		x->memory->touch(x->memory->self, address, size, true);
}

void ptx_atom_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	u64 addr[PTX_LANES], start = 0, end = 0;
	u32 m;

	ptx_addresses(w, i, addr);
	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 old = 0, new, a = addr[l];
		bool global = ptx_is_global(i->space, a);
		u8 *p = ptx_lane_pointer(w, i, l, i->space, a, i->size, true);

		if (!p)
			break;
		memcpy(&old, p, i->size);
		new = apply(i, old, get(w, i->b, l, i->size),
			i->op == PTX_ATOM_CAS ? get(w, i->c, l, i->size) : 0,
			global);
		memcpy(p, &new, i->size);
		if (i->d)
			put(w, i, l, old);
		if (!global)
			continue;
		if (end && (a == end || a == end - i->size)) {
			end = a + i->size;
			continue;
		}
		if (end)
			tell(w->x, start, end - start);
		start = a;
		end = a + i->size;
	}
	if (end)
		tell(w->x, start, end - start);
}
