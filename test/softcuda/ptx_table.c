/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spelling and operand types of every row of ptx_ops.def, in the order of the
 * function tables of ptx_vec.c.  Read by the decoder; constant.
 */
#include "test/softcuda/ptx_int.h"

#define R PTX_F_RND
#define F PTX_F_FTZ
#define S PTX_F_SAT

#define P PTX_FORM_PLAIN
#define ROW(k, form, allow, nr, ...) { k, form, allow, nr, __VA_ARGS__ },
#define T(t) PTX_##t

#define OP1(n, k, d, a, x) ROW(k, P, 0, 1, T(d), { T(a) })
#define OP2(n, k, d, a, b, x) ROW(k, P, 0, 2, T(d), { T(a), T(b) })
#define OP3(n, k, d, a, b, c, x) ROW(k, P, 0, 3, T(d), { T(a), T(b), T(c) })
#define OP4(n, k, d, a, b, c, e, x) \
	ROW(k, P, 0, 4, T(d), { T(a), T(b), T(c), T(e) })
#define OPI3(n, k, d, a, b, c, x) \
	ROW(k, PTX_FORM_IMM, 0, 3, T(d), { T(a), T(b), T(c) })
#define FSLCT(n, k, t, x) ROW(k, P, 0, 3, T(t), { T(t), T(t), T(f32) })
#define FSLCTZ FSLCT
#define CARRY2(n, k, t, w, x) ROW(k, P, 0, 2, T(t), { T(t), T(t) })
#define CARRY3(n, k, t, w, x) ROW(k, P, 0, 3, T(t), { T(t), T(t), T(t) })
#define PRED1(n, k, x) ROW(k, P, 0, 1, T(pred), { T(pred) })
#define PRED2(n, k, x) ROW(k, P, 0, 2, T(pred), { T(pred), T(pred) })
#define PRED3(n, k, x) ROW(k, P, 0, 3, T(pred), { T(pred), T(pred), T(pred) })
#define SEL(n, k, t, x) ROW(k, P, 0, 3, T(t), { T(t), T(t), T(pred) })
#define TEST(n, k, t, x) ROW(k, P, 0, 1, T(pred), { T(t) })
#define CMP(n, k, t, x) \
	ROW(k, PTX_FORM_COMPARE, 0, 2, T(pred), { T(t), T(t) })
#define FCMP(n, k, t, x) \
	ROW(k, PTX_FORM_COMPARE, F, 2, T(pred), { T(t), T(t) })
#define HCMP(n, k, t, x) \
	ROW(k, PTX_FORM_COMPARE, F, 2, T(pred), { T(t), T(t) }) \
	ROW(k "x2", PTX_FORM_COMPARE, F, 2, T(pred), { T(t##x2), T(t##x2) })
#define BCMP HCMP
#define FOP1(n, k, t, allow, x) \
	ROW(k, PTX_FORM_FLOAT, allow, 1, T(t), { T(t) })
#define FOP2(n, k, t, allow, x) \
	ROW(k, PTX_FORM_FLOAT, allow, 2, T(t), { T(t), T(t) })
#define FOP3(n, k, t, allow, x) \
	ROW(k, PTX_FORM_FLOAT, allow, 3, T(t), { T(t), T(t), T(t) })
#define HALF(k, nr, allow, t, ...) \
	ROW(k, PTX_FORM_HALF, allow, nr, t, { __VA_ARGS__ })
#define HF (R | F | S)
#define HOP1(n, k, x) \
	HALF(k, 1, HF, T(f16), T(f16)) \
	HALF(k "x2", 1, HF, T(f16x2), T(f16x2))
#define HOP2(n, k, x) \
	HALF(k, 2, HF, T(f16), T(f16), T(f16)) \
	HALF(k "x2", 2, HF, T(f16x2), T(f16x2), T(f16x2))
#define HOP3(n, k, x) \
	HALF(k, 3, HF, T(f16), T(f16), T(f16), T(f16)) \
	HALF(k "x2", 3, HF, T(f16x2), T(f16x2), T(f16x2), T(f16x2))
#define BOP2(n, k, t, x) \
	HALF(k, 2, R, T(bf16), T(bf16), T(bf16)) \
	HALF(k "x2", 2, R, T(bf16x2), T(bf16x2), T(bf16x2))
#define BOP3(n, k, t, x) \
	HALF(k, 3, R, T(bf16), T(bf16), T(bf16), T(bf16)) \
	HALF(k "x2", 3, R, T(bf16x2), T(bf16x2), T(bf16x2), T(bf16x2))

const struct ptx_op ptx_ops[] = {
#include "test/softcuda/ptx_ops.def"
};

const unsigned ptx_nr_ops = sizeof(ptx_ops) / sizeof(ptx_ops[0]);

static const u8 type_size[PTX_NR_TYPES] = {
	[PTX_pred] = 4,
	[PTX_b8] = 1, [PTX_u8] = 1, [PTX_s8] = 1,
	[PTX_b16] = 2, [PTX_u16] = 2, [PTX_s16] = 2,
	[PTX_f16] = 2, [PTX_bf16] = 2,
	[PTX_b32] = 4, [PTX_u32] = 4, [PTX_s32] = 4, [PTX_f32] = 4,
	[PTX_f16x2] = 4, [PTX_bf16x2] = 4,
	[PTX_b64] = 8, [PTX_u64] = 8, [PTX_s64] = 8, [PTX_f64] = 8,
};

unsigned ptx_type_size(enum ptx_type t)
{
	return type_size[t];
}

bool ptx_type_is_float(enum ptx_type t)
{
	return t == PTX_f16 || t == PTX_bf16 || t == PTX_f32 || t == PTX_f64;
}

bool ptx_type_is_signed(enum ptx_type t)
{
	return t == PTX_s8 || t == PTX_s16 || t == PTX_s32 || t == PTX_s64;
}

const struct ptx_vec *ptx_vec_choose(void)
{
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	    __builtin_cpu_supports("bmi2"))
		return &ptx_vec_avx2;
	return &ptx_vec_base;
}
