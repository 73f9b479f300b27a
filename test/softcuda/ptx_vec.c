/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function per row of ptx_ops.def, over all 32 lanes, so that the compiler
 * makes vectors of it.  Built once for any x86-64 and, by ptx_vec_avx2.c, once
 * for machines with AVX2 and FMA; ptx_vec_choose() takes the better one.
 * Called by the interpreter's loop only; no locks.
 *
 * Lanes that are not in the mask are computed like the others and thrown away:
 * no formula may trap or be undefined for any input.
 */
#include <fenv.h>

#include "test/softcuda/ptx_math.h"
#include "test/softcuda/ptx_vm.h"

#ifndef PTX_VEC
#define PTX_VEC ptx_vec_base
#define PTX_VEC_NAME "base"
#endif

/* The rows of one instruction are the same or apart, never shifted. */
#ifdef __clang__
/* it is said for every loop, and some (division) have no vector form */
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANES _Pragma("clang loop vectorize(assume_safety)") \
	for (u32 l = 0; l < PTX_LANES; l++)
#else
#define LANES _Pragma("GCC ivdep") for (u32 l = 0; l < PTX_LANES; l++)
#endif

#define UNUSED __attribute__((unused))

static const u32 bit[PTX_LANES] = {
	1u << 0, 1u << 1, 1u << 2, 1u << 3, 1u << 4, 1u << 5, 1u << 6,
	1u << 7, 1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13,
	1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20,
	1u << 21, 1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27,
	1u << 28, 1u << 29, 1u << 30, 1u << 31,
};

static void blend_u16(u16 *d, const u16 *s, u32 mask)
{
	LANES
		d[l] = mask & bit[l] ? s[l] : d[l];
}

static void blend_u32(u32 *d, const u32 *s, u32 mask)
{
	LANES
		d[l] = mask & bit[l] ? s[l] : d[l];
}

static void blend_u64(u64 *d, const u64 *s, u32 mask)
{
	for (u32 l = 0; l < PTX_LANES; l++)
		if (mask & bit[l])
			d[l] = s[l];
}

/* Rows as bit patterns: the blends above serve floats as well. */
#define BLEND(t, d, s, mask) do { \
	if (sizeof(t) == 2) \
		blend_u16((u16 *)(d), (const u16 *)(s), mask); \
	else if (sizeof(t) == 4) \
		blend_u32((u32 *)(d), (const u32 *)(s), mask); \
	else \
		blend_u64((u64 *)(d), (const u64 *)(s), mask); \
} while (0)

#define RUN(n) static void run_##n(struct ptx_warp *w, \
	const struct ptx_insn *i, u32 mask)
#define SRC(t, v) const t *p##v = PTX_ROW(w, t, i->v)
#define DST(t) \
	t tmp[PTX_LANES], *pd = PTX_ROW(w, t, i->d); \
	t *out = mask == PTX_FULL ? pd : tmp
#define FINISH(t) \
	if (mask != PTX_FULL) \
		BLEND(t, pd, tmp, mask)

/* ---- integers ----------------------------------------------------------- */

#define OP1(n, k, td, ta, x) \
RUN(n) \
{ \
	SRC(ta, a); DST(td); \
	LANES { ta a = pa[l]; out[l] = (td)(x); } \
	FINISH(td); \
}
#define OP2(n, k, td, ta, tb, x) \
RUN(n) \
{ \
	SRC(ta, a); SRC(tb, b); DST(td); \
	LANES { ta a = pa[l]; tb b = pb[l]; out[l] = (td)(x); } \
	FINISH(td); \
}
#define OP3(n, k, td, ta, tb, tc, x) \
RUN(n) \
{ \
	SRC(ta, a); SRC(tb, b); SRC(tc, c); DST(td); \
	LANES { \
		ta a = pa[l]; tb b = pb[l]; tc c = pc[l]; \
		out[l] = (td)(x); \
	} \
	FINISH(td); \
}
#define OP4(n, k, td, ta, tb, tc, te, x) \
RUN(n) \
{ \
	SRC(ta, a); SRC(tb, b); SRC(tc, c); SRC(te, e); DST(td); \
	LANES { \
		ta a = pa[l]; tb b = pb[l]; tc c = pc[l]; te e = pe[l]; \
		out[l] = (td)(x); \
	} \
	FINISH(td); \
}
#define OPI3(n, k, td, ta, tb, tc, x) \
RUN(n) \
{ \
	const s64 imm = i->imm; \
	SRC(ta, a); SRC(tb, b); SRC(tc, c); DST(td); \
	LANES { \
		ta a = pa[l]; tb b = pb[l]; tc c = pc[l]; \
		out[l] = (td)(x); \
	} \
	FINISH(td); \
}
#define FSLCT(n, k, t, x) OP3(n, k, t, t, t, f32, c >= 0 ? a : b)
#define FSLCTZ(n, k, t, x) OP3(n, k, t, t, t, f32, c > -0x1p-126f ? a : b)

#define carry_add(a, b, c, o) carry_add_n(a, b, c, o, bits)
#define carry_sub(a, b, c, o) carry_sub_n(a, b, c, o, bits)
#define CARRY_BODY(t, n_bits, x) \
	const u32 bits = n_bits; \
	u32 cc = w->cc, set = 0; \
	t *pd = PTX_ROW(w, t, i->d); \
	for (u32 l = 0; l < PTX_LANES; l++) { \
		u32 cin UNUSED = cc >> l & 1, cout = cin, drop UNUSED; \
		t a = pa[l], b = pb[l], c UNUSED = pc[l], r = (t)(x); \
		set |= cout << l; \
		if (mask >> l & 1) \
			pd[l] = r; \
	} \
	w->cc = (cc & ~mask) | (set & mask);
#define CARRY2(n, k, t, n_bits, x) \
RUN(n) \
{ \
	SRC(t, a); SRC(t, b); \
	const t *pc = pa; \
	CARRY_BODY(t, n_bits, x) \
}
#define CARRY3(n, k, t, n_bits, x) \
RUN(n) \
{ \
	SRC(t, a); SRC(t, b); SRC(t, c); \
	CARRY_BODY(t, n_bits, x) \
}

/* ---- predicates --------------------------------------------------------- */

static inline void put_pred(struct ptx_warp *w, u32 row, u32 value, u32 mask)
{
	u32 *p = PTX_ROW(w, u32, row);

	*p = (*p & ~mask) | (value & mask);
}

#define PRED1(n, k, x) \
RUN(n) \
{ \
	u32 a = *PTX_ROW(w, u32, i->a); \
	put_pred(w, i->d, x, mask); \
}
#define PRED2(n, k, x) \
RUN(n) \
{ \
	u32 a = *PTX_ROW(w, u32, i->a), b = *PTX_ROW(w, u32, i->b); \
	put_pred(w, i->d, x, mask); \
}
#define PRED3(n, k, x) \
RUN(n) \
{ \
	u32 a = *PTX_ROW(w, u32, i->a), b = *PTX_ROW(w, u32, i->b); \
	u32 c = *PTX_ROW(w, u32, i->c); \
	put_pred(w, i->d, x, mask); \
}
#define SEL(n, k, t, x) \
RUN(n) \
{ \
	u32 c = *PTX_ROW(w, u32, i->c); \
	SRC(t, a); SRC(t, b); DST(t); \
	LANES out[l] = c & bit[l] ? pa[l] : pb[l]; \
	FINISH(t); \
}

/* p = cmp op c, q = !cmp op c */
static inline void setp_finish(struct ptx_warp *w, const struct ptx_insn *i,
	u32 mask, u32 m)
{
	u32 n = ~m, c;

	if (i->op != PTX_BOOL_NONE) {
		c = *PTX_ROW(w, u32, i->c);
		if (i->flags & PTX_F_NOT_C)
			c = ~c;
		if (i->op == PTX_BOOL_AND)
			m &= c, n &= c;
		else if (i->op == PTX_BOOL_OR)
			m |= c, n |= c;
		else
			m ^= c, n ^= c;
	}
	if (i->d)
		put_pred(w, i->d, m, mask);
	if (i->e)
		put_pred(w, i->e, n, mask);
}

static u32 third(const struct ptx_warp *w, const struct ptx_insn *i, u32 m)
{
	u32 c = i->op ? *PTX_ROW(w, u32, i->c) : 0;

	if (i->flags & PTX_F_NOT_C)
		c = ~c;
	return i->op == PTX_BOOL_AND ? m & c : i->op == PTX_BOOL_OR ? m | c :
		i->op == PTX_BOOL_XOR ? m ^ c : m;
}

/* What `true` is in the result's type. */
static u32 truth(u8 type)
{
	switch (type) {
	case PTX_f32:
		return 0x3f800000;
	case PTX_f16: case PTX_f16x2:
		return 0x3c00;
	case PTX_bf16: case PTX_bf16x2:
		return 0x3f80;
	default:
		return 0xffffffff;
	}
}

static void set_finish(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	u32 m)
{
	u32 one = truth(i->type);

	m = third(w, i, m);
	for (u32 l = 0; l < PTX_LANES; l++) {
		if (!(mask >> l & 1))
			continue;
		if (i->regsize == 2)
			PTX_ROW(w, u16, i->d)[l] = m >> l & 1 ? (u16)one : 0;
		else
			PTX_ROW(w, u32, i->d)[l] = m >> l & 1 ? one : 0;
	}
}

/* Packed halves: p and q are the low and the high one's. */
static void setp_pair(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	u32 low, u32 high)
{
	low = third(w, i, low);
	high = third(w, i, high);
	if (i->d)
		put_pred(w, i->d, low, mask);
	if (i->e)
		put_pred(w, i->e, high, mask);
}

static void set_pair(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	u32 low, u32 high)
{
	u32 one = truth(i->type) & 0xffff;
	u32 *d = PTX_ROW(w, u32, i->d);

	low = third(w, i, low);
	high = third(w, i, high);
	for (u32 l = 0; l < PTX_LANES; l++)
		if (mask >> l & 1)
			d[l] = (low >> l & 1 ? one : 0) |
				(high >> l & 1 ? one << 16 : 0);
}

#define CMP_MASK(n, k, t, x) \
static inline u32 mask_##n(const t *pa, const t *pb) \
{ \
	u32 m = 0; \
	LANES { t a = pa[l], b = pb[l]; m |= (x) ? bit[l] : 0; } \
	return m; \
}
#define CMP(n, k, t, x) \
CMP_MASK(n, k, t, x) \
RUN(setp_##n) \
{ \
	SRC(t, a); SRC(t, b); \
	setp_finish(w, i, mask, mask_##n(pa, pb)); \
} \
RUN(set_##n) \
{ \
	SRC(t, a); SRC(t, b); \
	set_finish(w, i, mask, mask_##n(pa, pb)); \
}
#define FCMP(n, k, t, x) \
CMP_MASK(n, k, t, x) \
static u32 flush_##n(const t *pa, const t *pb) \
{ \
	t a[PTX_LANES], b[PTX_LANES]; \
	LANES { a[l] = flush32(pa[l]); b[l] = flush32(pb[l]); } \
	return mask_##n(a, b); \
} \
RUN(setp_##n) \
{ \
	SRC(t, a); SRC(t, b); \
	setp_finish(w, i, mask, i->flags & PTX_F_FTZ ? \
		flush_##n(pa, pb) : mask_##n(pa, pb)); \
} \
RUN(set_##n) \
{ \
	SRC(t, a); SRC(t, b); \
	set_finish(w, i, mask, i->flags & PTX_F_FTZ ? \
		flush_##n(pa, pb) : mask_##n(pa, pb)); \
}
/* One comparison of half k of each lane. */
#define HALF_CMP(n, in, tiny, x) \
static u32 half_##n(const u16 *pa, const u16 *pb, u32 nr, u32 k, bool ftz) \
{ \
	u32 m = 0; \
	LANES { \
		f32 a = in(pa[nr * l + k]), b = in(pb[nr * l + k]); \
		a = ftz && __builtin_fabsf(a) < tiny ? 0.0f : a; \
		b = ftz && __builtin_fabsf(b) < tiny ? 0.0f : b; \
		m |= (x) ? bit[l] : 0; \
	} \
	return m; \
} \
RUN(setp_##n) \
{ \
	SRC(u16, a); SRC(u16, b); \
	setp_finish(w, i, mask, \
		half_##n(pa, pb, 1, 0, i->flags & PTX_F_FTZ)); \
} \
RUN(set_##n) \
{ \
	SRC(u16, a); SRC(u16, b); \
	set_finish(w, i, mask, \
		half_##n(pa, pb, 1, 0, i->flags & PTX_F_FTZ)); \
} \
RUN(setp_##n##x2) \
{ \
	bool ftz = i->flags & PTX_F_FTZ; \
	SRC(u16, a); SRC(u16, b); \
	setp_pair(w, i, mask, half_##n(pa, pb, 2, 0, ftz), \
		half_##n(pa, pb, 2, 1, ftz)); \
} \
RUN(set_##n##x2) \
{ \
	bool ftz = i->flags & PTX_F_FTZ; \
	SRC(u16, a); SRC(u16, b); \
	set_pair(w, i, mask, half_##n(pa, pb, 2, 0, ftz), \
		half_##n(pa, pb, 2, 1, ftz)); \
}
#define HCMP(n, k, t, x) HALF_CMP(n, ptx_h2f, 0x1p-14f, x)
#define BCMP(n, k, t, x) HALF_CMP(n, ptx_b2f, 0x1p-126f, x)
#define TEST(n, k, t, x) \
RUN(n) \
{ \
	u32 m = 0; \
	SRC(t, a); \
	LANES { t a = pa[l]; m |= (x) ? bit[l] : 0; } \
	put_pred(w, i->d, m, mask); \
}

/* ---- float -------------------------------------------------------------- */

static int round_mode(u8 rnd)
{
	switch (rnd) {
	case PTX_RZ:
		return FE_TOWARDZERO;
	case PTX_RM:
		return FE_DOWNWARD;
	case PTX_RP:
		return FE_UPWARD;
	default:
		return FE_TONEAREST;
	}
}

/* The core is called, not inlined, so that no operation leaves the bracket. */
static void round_call_f32(const struct ptx_insn *i,
	void (*core)(f32 *, const f32 *, const f32 *, const f32 *),
	f32 *r, const f32 *a, const f32 *b, const f32 *c)
{
	if (i->rnd != PTX_RN)
		fesetround(round_mode(i->rnd));
	core(r, a, b, c);
	if (i->rnd != PTX_RN)
		fesetround(FE_TONEAREST);
}

static const f32 *flush_row(f32 *to, const f32 *from, bool ftz)
{
	if (!ftz)
		return from;
	LANES
		to[l] = flush32(from[l]);
	return to;
}

static void general_f32(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	void (*core)(f32 *, const f32 *, const f32 *, const f32 *))
{
	bool ftz = i->flags & PTX_F_FTZ;
	f32 a[PTX_LANES], b[PTX_LANES], c[PTX_LANES], r[PTX_LANES];

	round_call_f32(i, core, r,
		flush_row(a, PTX_ROW(w, f32, i->a), ftz),
		flush_row(b, PTX_ROW(w, f32, i->b), ftz),
		flush_row(c, PTX_ROW(w, f32, i->c), ftz));
	if (ftz)
		LANES
			r[l] = flush32(r[l]);
	if (i->flags & PTX_F_SAT)
		LANES
			r[l] = sat32(r[l]);
	blend_u32(PTX_ROW(w, u32, i->d), (const u32 *)r, mask);
}

static void general_f64(struct ptx_warp *w, const struct ptx_insn *i, u32 mask,
	void (*core)(f64 *, const f64 *, const f64 *, const f64 *))
{
	f64 r[PTX_LANES];

	if (i->rnd != PTX_RN)
		fesetround(round_mode(i->rnd));
	core(r, PTX_ROW(w, f64, i->a), PTX_ROW(w, f64, i->b),
		PTX_ROW(w, f64, i->c));
	if (i->rnd != PTX_RN)
		fesetround(FE_TONEAREST);
	blend_u64(PTX_ROW(w, u64, i->d), (const u64 *)r, mask);
}

/* Unused sources have offset 0, which is a row as good as any. */
#define FOP(n, t, load, x) \
static __attribute__((noinline)) void core_##n(t *out, const t *pa, \
	const t *pb, const t *pc) \
{ \
	LANES { load out[l] = (x); } \
} \
RUN(n) \
{ \
	SRC(t, a); SRC(t, b); SRC(t, c); DST(t); \
	LANES { load out[l] = (x); } \
	FINISH(t); \
} \
static void general_##n(struct ptx_warp *w, const struct ptx_insn *i, \
	u32 mask) \
{ \
	general_##t(w, i, mask, core_##n); \
}
#define FOP1(n, k, t, allow, x) FOP(n, t, t a = pa[l]; (void)pb; (void)pc;, x)
#define FOP2(n, k, t, allow, x) \
	FOP(n, t, t a = pa[l]; t b = pb[l]; (void)pc;, x)
#define FOP3(n, k, t, allow, x) \
	FOP(n, t, t a = pa[l]; t b = pb[l]; t c = pc[l];, x)

/* ---- f16, bf16: one or two in a lane ------------------------------------ */

static inline f32 half_in(u16 h, u8 flags)
{
	if ((flags & PTX_F_FTZ) && !(h & 0x7c00))
		h &= 0x8000;
	return ptx_h2f(h);
}

static inline u16 half_out(u16 h, u8 flags)
{
	if ((flags & PTX_F_FTZ) && !(h & 0x7c00))
		h &= 0x8000;
	if (flags & PTX_F_SAT)
		h = h & 0x8000 || h > 0x7c00 ? 0 : h > 0x3c00 ? 0x3c00 : h;
	return h;
}

static inline f32 bhalf_in(u16 h, u8 flags)
{
	(void)flags;
	return ptx_b2f(h);
}

static inline u16 bhalf_out(u16 h, u8 flags)
{
	(void)flags;
	return h;
}

#define HALF_ROUND(x) _Generic((x), f32: ptx_f2h, f64: ptx_d2h)(x)
#define BHALF_ROUND(x) _Generic((x), f32: ptx_f2b, f64: ptx_d2b)(x)

#define HALF(n, in, load, done) \
static inline void half_##n(u16 *out, const u16 *pa, const u16 *pb, \
	const u16 *pc, u32 nr, const u8 flags) \
{ \
	for (u32 l = 0; l < nr; l++) { load out[l] = done; } \
} \
RUN(n) \
{ \
	u16 r[PTX_LANES]; \
	half_##n(r, PTX_ROW(w, u16, i->a), PTX_ROW(w, u16, i->b), \
		PTX_ROW(w, u16, i->c), PTX_LANES, 0); \
	blend_u16(PTX_ROW(w, u16, i->d), r, mask); \
} \
RUN(n##x2) \
{ \
	u32 r[PTX_LANES]; \
	half_##n((u16 *)r, PTX_ROW(w, u16, i->a), PTX_ROW(w, u16, i->b), \
		PTX_ROW(w, u16, i->c), 2 * PTX_LANES, 0); \
	blend_u32(PTX_ROW(w, u32, i->d), r, mask); \
} \
static void general_##n(struct ptx_warp *w, const struct ptx_insn *i, \
	u32 mask) \
{ \
	u16 r[PTX_LANES]; \
	half_##n(r, PTX_ROW(w, u16, i->a), PTX_ROW(w, u16, i->b), \
		PTX_ROW(w, u16, i->c), PTX_LANES, i->flags); \
	blend_u16(PTX_ROW(w, u16, i->d), r, mask); \
} \
static void general_##n##x2(struct ptx_warp *w, const struct ptx_insn *i, \
	u32 mask) \
{ \
	u32 r[PTX_LANES]; \
	half_##n((u16 *)r, PTX_ROW(w, u16, i->a), PTX_ROW(w, u16, i->b), \
		PTX_ROW(w, u16, i->c), 2 * PTX_LANES, i->flags); \
	blend_u32(PTX_ROW(w, u32, i->d), r, mask); \
}
#define LD1(in, t) t a = in(pa[l], flags); (void)pb; (void)pc;
#define LD2(in, t) t a = in(pa[l], flags); t b = in(pb[l], flags); (void)pc;
#define LD3(in, t) t a = in(pa[l], flags); t b = in(pb[l], flags); \
	t c = in(pc[l], flags);
#define HOP1(n, k, x) HALF(n, half_in, LD1(half_in, f32), \
	half_out(HALF_ROUND(x), flags))
#define HOP2(n, k, x) HALF(n, half_in, LD2(half_in, f32), \
	half_out(HALF_ROUND(x), flags))
#define HOP3(n, k, x) HALF(n, half_in, LD3(half_in, f32), \
	half_out(HALF_ROUND(x), flags))
#define BOP2(n, k, t, x) HALF(n, bhalf_in, LD2(bhalf_in, t), \
	bhalf_out(BHALF_ROUND(x), flags))
#define BOP3(n, k, t, x) HALF(n, bhalf_in, LD3(bhalf_in, t), \
	bhalf_out(BHALF_ROUND(x), flags))

#include "test/softcuda/ptx_ops.def"

/* ---- tables ------------------------------------------------------------- */

#undef OP1
#undef OP2
#undef OP3
#undef OP4
#undef OPI3
#undef FSLCT
#undef FSLCTZ
#undef CARRY2
#undef CARRY3
#undef PRED1
#undef PRED2
#undef PRED3
#undef SEL
#undef CMP
#undef FCMP
#undef HCMP
#undef BCMP
#undef TEST
#undef FOP1
#undef FOP2
#undef FOP3
#undef HOP1
#undef HOP2
#undef HOP3
#undef BOP2
#undef BOP3

#define OP1(n, ...) ROW(run_##n, NULL)
#define OP2 OP1
#define OP3 OP1
#define OP4 OP1
#define OPI3 OP1
#define FSLCT OP1
#define FSLCTZ OP1
#define CARRY2 OP1
#define CARRY3 OP1
#define PRED1 OP1
#define PRED2 OP1
#define PRED3 OP1
#define SEL OP1
#define TEST OP1
#define CMP(n, ...) ROW(run_setp_##n, run_set_##n)
#define FCMP CMP
#define HCMP(n, ...) ROW(run_setp_##n, run_set_##n) \
	ROW(run_setp_##n##x2, run_set_##n##x2)
#define BCMP HCMP
#define FOP1(n, ...) ROW(run_##n, general_##n)
#define FOP2 FOP1
#define FOP3 FOP1
#define HOP1(n, ...) ROW(run_##n, general_##n) ROW(run_##n##x2, general_##n##x2)
#define HOP2 HOP1
#define HOP3 HOP1
#define BOP2 HOP1
#define BOP3 HOP1

#define ROW(r, g) r,
static ptx_run_fn *const run_table[] = {
#include "test/softcuda/ptx_ops.def"
};
#undef ROW
#define ROW(r, g) g,
static ptx_run_fn *const general_table[] = {
#include "test/softcuda/ptx_ops.def"
};
#undef ROW

#include "test/softcuda/ptx_vec_mem.h"

const struct ptx_vec PTX_VEC = {
	.name = PTX_VEC_NAME,
	.run = run_table,
	.general = general_table,
	.load = vec_load,
	.store = vec_store,
};
