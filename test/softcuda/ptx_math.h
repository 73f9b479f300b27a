/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-lane arithmetic for ptx_vec.c and ptx_cvt.c.  Every function has one
 * result on every machine: only IEEE operations, no library function whose
 * last bit may differ, and the files are compiled without contraction of
 * products and sums.
 *
 * The approximate instructions (ex2, lg2, sin, cos, tanh, rsqrt) are computed
 * in double with an error far below half a unit of float, then rounded to
 * float.  rcp, sqrt and div in their approximate forms are the correctly
 * rounded ones, except where PTX gives div.approx another result.  For sin and
 * cos of more than 2^27 the argument is first reduced modulo the double next
 * to 2 pi.  A NaN that arithmetic produces is always the one that the hardware
 * makes: 0x7fffffff, 0xfff8000000000000, 0x7fff.
 */
#ifndef SOFTCUDA_PTX_MATH_H
#define SOFTCUDA_PTX_MATH_H

#include <math.h>
#include <string.h>

#include "test/softcuda/ptx_int.h"

static inline u32 f32_bits(f32 x)
{
	u32 u;

	memcpy(&u, &x, 4);
	return u;
}

static inline f32 bits_f32(u32 u)
{
	f32 x;

	memcpy(&x, &u, 4);
	return x;
}

static inline u64 f64_bits(f64 x)
{
	u64 u;

	memcpy(&u, &x, 8);
	return u;
}

static inline f64 bits_f64(u64 u)
{
	f64 x;

	memcpy(&x, &u, 8);
	return x;
}

static inline f32 nan32(f32 x)
{
	return x == x ? x : bits_f32(0x7fffffff);
}

static inline f64 nan64(f64 x)
{
	return x == x ? x : bits_f64(0xfff8000000000000ull);
}

static inline f32 flush32(f32 x)
{
	u32 u = f32_bits(x);

	return bits_f32(u & 0x7f800000 ? u : u & 0x80000000);
}

/* NaN becomes +0. */
static inline f32 sat32(f32 x)
{
	x = x > 0.0f ? x : 0.0f;
	return x < 1.0f ? x : 1.0f;
}

static inline f32 fma32(f32 a, f32 b, f32 c)
{
	return __builtin_fmaf(a, b, c);
}

static inline f64 fma64(f64 a, f64 b, f64 c)
{
	return __builtin_fma(a, b, c);
}

/* -0 is less than +0; of a NaN and a number the number. */
static inline f32 min32(f32 a, f32 b)
{
	f32 r = a < b ? a : b;

	r = a == b ? bits_f32(f32_bits(a) | f32_bits(b)) : r;
	r = b != b ? a : r;
	return nan32(r);
}

static inline f32 max32(f32 a, f32 b)
{
	f32 r = a > b ? a : b;

	r = a == b ? bits_f32(f32_bits(a) & f32_bits(b)) : r;
	r = b != b ? a : r;
	return nan32(r);
}

static inline f64 min64(f64 a, f64 b)
{
	f64 r = a < b ? a : b;

	r = a == b ? bits_f64(f64_bits(a) | f64_bits(b)) : r;
	r = b != b ? a : r;
	return nan64(r);
}

static inline f64 max64(f64 a, f64 b)
{
	f64 r = a > b ? a : b;

	r = a == b ? bits_f64(f64_bits(a) & f64_bits(b)) : r;
	r = b != b ? a : r;
	return nan64(r);
}

/* PTX: beyond 2^126 the divisor's reciprocal is taken as 0. */
static inline f32 div_approx(f32 a, f32 b)
{
	f32 m = __builtin_fabsf(b);
	f32 zero = bits_f32((f32_bits(a) ^ f32_bits(b)) & 0x80000000);
	f32 big = __builtin_fabsf(a) <= 0x1.fffffep127f ? zero :
		bits_f32(0x7fffffff);

	return m > 0x1p126f && m <= 0x1.fffffep127f ? big : a / b;
}

static inline f32 rsqrt32(f32 a)
{
	return (f32)(1.0 / __builtin_sqrt((f64)a));
}

/* The upper word of a double, as rcp.approx.ftz.f64 sees and gives it. */
static inline f64 high64(f64 x)
{
	u64 u = f64_bits(x) & 0xffffffff00000000ull;

	return bits_f64(u & 0x7ff0000000000000ull ? u :
		u & 0x8000000000000000ull);
}

/* 2^x for |x| <= 1000, Taylor series of the fraction. */
static inline f64 ptx_exp2(f64 x)
{
	f64 shifted = x + 0x1.8p52;
	f64 f = x - (shifted - 0x1.8p52);
	u64 n = f64_bits(shifted);
	f64 p = 0x1.816193166d0f9p-40;

	p = p * f + 0x1.c3bd650fc2986p-36;
	p = p * f + 0x1.e8cac7351bb25p-32;
	p = p * f + 0x1.e4cf5158b8ecap-28;
	p = p * f + 0x1.b5253d395e7c4p-24;
	p = p * f + 0x1.62c0223a5c824p-20;
	p = p * f + 0x1.ffcbfc588b0c7p-17;
	p = p * f + 0x1.430912f86c787p-13;
	p = p * f + 0x1.5d87fe78a6731p-10;
	p = p * f + 0x1.3b2ab6fba4e77p-7;
	p = p * f + 0x1.c6b08d704a0c0p-5;
	p = p * f + 0x1.ebfbdff82c58fp-3;
	p = p * f + 0x1.62e42fefa39efp-1;
	p = p * f + 1.0;
	return p * bits_f64((n + 1023) << 52);
}

static inline f32 ptx_ex2(f32 x)
{
	f64 d = x;
	f64 in = d < 200.0 ? d : 200.0;

	in = in > -200.0 ? in : -200.0;
	in = x == x ? in : 0.0;
	return x == x ? (f32)ptx_exp2(in) : x;
}

/* log2 by the series of artanh((m - 1) / (m + 1)), m near 1. */
static inline f32 ptx_lg2(f32 x)
{
	u64 u = f64_bits((f64)x);
	u64 low = u & 0xfffffffffffffull;
	u64 up = low > 0x6a09e667f3bcdull;
	f64 m = bits_f64((1023 - up) << 52 | low);
	f64 e = bits_f64(0x4330000000000000ull | (((u >> 52) & 0x7ff) + up)) -
		(0x1p52 + 1023.0);
	f64 s = (m - 1.0) / (m + 1.0);
	f64 z = s * s;
	f64 p = 0x1.1964ec6fc9491p-3;
	f32 r;

	p = p * z + 0x1.3703c1f4d0ffep-3;
	p = p * z + 0x1.5b9ac9b743f0dp-3;
	p = p * z + 0x1.89f3b1694cffep-3;
	p = p * z + 0x1.c68f568d31760p-3;
	p = p * z + 0x1.0c9a84994022dp-2;
	p = p * z + 0x1.484b13d7c02a9p-2;
	p = p * z + 0x1.a61762a7aded9p-2;
	p = p * z + 0x1.2776c50ef9bfep-1;
	p = p * z + 0x1.ec709dc3a03fdp-1;
	p = p * z + 0x1.71547652b82fep+1;
	r = (f32)(e + s * p);
	r = x == __builtin_inff() ? x : r;
	r = x == 0.0f ? -__builtin_inff() : r;
	return x >= 0.0f ? r : bits_f32(0x7fffffff);
}

/* sin(x + quarter * pi / 2) */
static inline f32 ptx_sincos(f32 x, u64 quarter)
{
	f64 d = x, shifted, k, r, z, s, c, v;
	u64 q;

	if (!(__builtin_fabsf(x) <= 0x1.fffffep127f))
		return bits_f32(0x7fffffff);
	if (__builtin_fabs(d) > 0x1p27)
		d = fmod(d, 0x1.921fb54442d18p+2);	/* exact */
	shifted = d * 0x1.45f306dc9c883p-1 + 0x1.8p52;
	k = shifted - 0x1.8p52;
	q = f64_bits(shifted) + quarter;
	/* pi / 2 in three parts; k times either of the first two is exact */
	r = ((d - k * 0x1.921fb5p+0) - k * 0x1.110b46p-26) -
		k * 0x1.1a62633145c07p-54;
	z = r * r;
	s = 0x1.952c77030ad4ap-49;
	s = s * z + -0x1.ae7f3e733b81fp-41;
	s = s * z + 0x1.6124613a86d09p-33;
	s = s * z + -0x1.ae64567f544e4p-26;
	s = s * z + 0x1.71de3a556c734p-19;
	s = s * z + -0x1.a01a01a01a01ap-13;
	s = s * z + 0x1.1111111111111p-7;
	s = s * z + -0x1.5555555555555p-3;
	s = r + r * z * s;
	c = 0x1.ae7f3e733b81fp-45;
	c = c * z + -0x1.93974a8c07c9dp-37;
	c = c * z + 0x1.1eed8eff8d898p-29;
	c = c * z + -0x1.27e4fb7789f5cp-22;
	c = c * z + 0x1.a01a01a01a01ap-16;
	c = c * z + -0x1.6c16c16c16c17p-10;
	c = c * z + 0x1.5555555555555p-5;
	c = c * z + -0.5;
	c = 1.0 + z * c;
	v = q & 1 ? c : s;
	return (f32)(q & 2 ? -v : v);
}

static inline f32 ptx_sin(f32 x)
{
	return x == 0.0f ? x : ptx_sincos(x, 0);
}

static inline f32 ptx_cos(f32 x)
{
	return ptx_sincos(x, 1);
}

static inline f32 ptx_tanh(f32 x)
{
	f64 d = x, m = __builtin_fabs(d);
	f64 in = m < 20.0 ? m : 20.0;
	f64 t = ptx_exp2(2.0 * in * 0x1.71547652b82fep+0);
	f64 z = d * d;
	f64 big = 1.0 - 2.0 / (t + 1.0);
	f64 small = d * (1.0 - z * (1.0 / 3.0 - z * (2.0 / 15.0)));

	big = d < 0 ? -big : big;
	return x != x ? x : (f32)(m < 0x1p-9 ? small : big);
}

/* ---- half and bfloat ---------------------------------------------------- */

static inline f32 ptx_h2f(u16 h)
{
	u32 m = h & 0x7fffu;
	u32 u = f32_bits(bits_f32(m << 13) * 0x1p112f);

	u |= m >= 0x7c00 ? 0x7f800000 : 0;
	return bits_f32(u | (u32)(h & 0x8000) << 16);
}

/* Round to nearest even. */
static inline u16 ptx_f2h(f32 x)
{
	u32 u = f32_bits(x), sign = (u >> 16) & 0x8000, m = u & 0x7fffffff;
	u32 normal = (m + 0xfff + ((m >> 13) & 1) - 0x38000000) >> 13;
	u32 tiny = f32_bits(bits_f32(m < 0x38800000 ? m : 0) + 0.5f) -
		0x3f000000;
	u32 r = m < 0x38800000 ? tiny : normal;

	r = m >= 0x477ff000 ? 0x7c00 : r;
	r |= sign;
	return (u16)(m > 0x7f800000 ? 0x7fff : r);
}

/* A double as a float whose last bit keeps what was cut off. */
static inline f32 f64_to_odd(f64 d)
{
	f32 f = (f32)d;
	u32 u = f32_bits(f);

	if (d != d || (f64)f == d)
		return f;
	if (__builtin_fabs((f64)f) > __builtin_fabs(d))
		u--;
	return bits_f32(u | 1);
}

/* Two halves' product plus a third in double needs one rounding only. */
static inline u16 ptx_d2h(f64 d)
{
	return ptx_f2h(f64_to_odd(d));
}

static inline f32 ptx_b2f(u16 b)
{
	return bits_f32((u32)b << 16);
}

static inline u16 ptx_f2b(f32 x)
{
	u32 u = f32_bits(x);
	u32 r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;

	return (u16)((u & 0x7fffffff) > 0x7f800000 ? 0x7fff : r);
}

static inline u16 ptx_d2b(f64 d)
{
	return ptx_f2b(f64_to_odd(d));
}

/* a * b + c, the product exact, the sum rounded to odd. */
static inline f64 fma_odd(f64 a, f64 b, f64 c)
{
	f64 p = a * b, s = p + c, t = s - p;
	f64 err = (p - (s - t)) + (c - t);
	u64 u = f64_bits(s);

	if (!(__builtin_fabs(s) < __builtin_inf()) || err == 0 || (u & 1))
		return s;
	return bits_f64((err > 0) == (s > 0) ? u + 1 : u - 1);
}

/* ---- integers ----------------------------------------------------------- */

static inline s32 sat_s32(s64 x)
{
	return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (s32)x;
}

/* As the hardware's code has it: x / 0 is all ones, x % 0 is x. */
#define PTX_UDIV(t) \
static inline t div_##t(t a, t b) \
{ \
	return b ? (t)(a / b) : (t)~(t)0; \
} \
static inline t rem_##t(t a, t b) \
{ \
	return b ? (t)(a % b) : a; \
}
#define PTX_SDIV(t, ut) \
static inline t div_##t(t a, t b) \
{ \
	if (b == 0) \
		return -1; \
	return b == -1 ? (t)((ut)0 - (ut)a) : (t)(a / b); \
} \
static inline t rem_##t(t a, t b) \
{ \
	if (b == 0) \
		return a; \
	return b == -1 ? 0 : (t)(a % b); \
}
PTX_UDIV(u16)
PTX_UDIV(u32)
PTX_UDIV(u64)
PTX_SDIV(s16, u16)
PTX_SDIV(s32, u32)
PTX_SDIV(s64, u64)
#undef PTX_UDIV
#undef PTX_SDIV

#define idiv(a, b) _Generic((a), u16: div_u16, s16: div_s16, u32: div_u32, \
	s32: div_s32, u64: div_u64, s64: div_s64)(a, b)
#define irem(a, b) _Generic((a), u16: rem_u16, s16: rem_s16, u32: rem_u32, \
	s32: rem_s32, u64: rem_u64, s64: rem_s64)(a, b)

static inline u64 mulhi_u64(u64 a, u64 b)
{
	return (u64)(((unsigned __int128)a * b) >> 64);
}

static inline s64 mulhi_s64(s64 a, s64 b)
{
	return (s64)(((__int128)a * b) >> 64);
}

static inline u32 u24(u32 a)
{
	return a & 0xffffff;
}

static inline s64 s24(u32 a)
{
	return (s32)(a << 8) >> 8;
}

static inline u64 carry_add_n(u64 a, u64 b, u32 cin, u32 *cout, unsigned bits)
{
	unsigned __int128 s = (unsigned __int128)a + b + cin;

	*cout = (u32)(s >> bits) & 1;
	return (u64)s;
}

/* The flag is the borrow. */
static inline u64 carry_sub_n(u64 a, u64 b, u32 cin, u32 *cout, unsigned bits)
{
	unsigned __int128 s = (unsigned __int128)a - b - cin;

	*cout = (u32)(s >> bits) & 1;
	return (u64)s;
}

static inline u32 shf_l(u32 lo, u32 hi, u32 n)
{
	return (u32)((((u64)hi << 32 | lo) << n) >> 32);
}

static inline u32 shf_r(u32 lo, u32 hi, u32 n)
{
	return (u32)(((u64)hi << 32 | lo) >> n);
}

static inline u32 brev32(u32 x)
{
	x = ((x >> 1) & 0x55555555) | (x & 0x55555555) << 1;
	x = ((x >> 2) & 0x33333333) | (x & 0x33333333) << 2;
	x = ((x >> 4) & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(x);
}

static inline u32 msb64(u64 x)
{
	return x ? 63 - (u32)__builtin_clzll(x) : 0xffffffff;
}

static inline u32 msb_shift(u32 msb, u32 top)
{
	return msb == 0xffffffff ? msb : top - msb;
}

static inline u64 low_bits(u32 n)
{
	return n >= 64 ? ~0ull : (1ull << n) - 1;
}

static inline u64 bfe_u(u64 a, u32 pos, u32 len, u32 width)
{
	return pos >= width ? 0 : (a >> pos) & low_bits(len);
}

static inline u64 bfe_s(s64 a, u32 pos, u32 len, u32 width)
{
	u32 top = pos + len - 1;
	u64 sign, v;

	if (len == 0)
		return 0;
	if (top > width - 1)
		top = width - 1;
	sign = (u64)(a >> top) & 1;
	if (pos >= width)
		return sign ? ~0ull : 0;
	v = (u64)a >> pos;
	len = top - pos + 1;
	return (v & low_bits(len)) | (sign ? ~low_bits(len) : 0);
}

static inline u64 bfi(u64 a, u64 b, u32 pos, u32 len, u32 width)
{
	u64 m;

	if (pos >= width)
		return b;
	m = low_bits(len) << pos;
	return (b & ~m) | ((a << pos) & m);
}

static inline u32 bmsk_clamp(u32 pos, u32 len)
{
	return pos > 31 ? 0 : (u32)(low_bits(len > 32 ? 32 : len) << pos);
}

static inline u32 prmt(u32 a, u32 b, u32 sel)
{
	u64 bytes = (u64)b << 32 | a;
	u32 r = 0, k;

	for (k = 0; k < 4; k++) {
		u32 s = sel >> (4 * k);
		u32 v = (u32)(bytes >> (8 * (s & 7))) & 0xff;

		if (s & 8)
			v = v & 0x80 ? 0xff : 0;
		r |= v << (8 * k);
	}
	return r;
}

static inline u32 prmt_f4e(u32 c)
{
	return 0x3210 + 0x1111 * (c & 3);
}

static inline u32 prmt_b4e(u32 c)
{
	static const u16 sel[4] = { 0x5670, 0x6701, 0x7012, 0x0123 };

	return sel[c & 3];
}

static inline u32 prmt_ecl(u32 c)
{
	static const u16 sel[4] = { 0x3210, 0x3211, 0x3222, 0x3333 };

	return sel[c & 3];
}

static inline u32 prmt_ecr(u32 c)
{
	static const u16 sel[4] = { 0x0000, 0x1110, 0x2210, 0x3210 };

	return sel[c & 3];
}

static inline u32 lop3(u32 a, u32 b, u32 c, u32 table)
{
	u32 r = 0, k;

	for (k = 0; k < 8; k++)
		if (table >> k & 1)
			r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) &
				(k & 1 ? c : ~c);
	return r;
}

static inline u32 dp4a(u32 a, u32 b, u32 c, bool sa, bool sb)
{
	u32 k;

	for (k = 0; k < 4; k++) {
		s32 x = sa ? (s8)(a >> 8 * k) : (u8)(a >> 8 * k);
		s32 y = sb ? (s8)(b >> 8 * k) : (u8)(b >> 8 * k);

		c += (u32)(x * y);
	}
	return c;
}

static inline u32 dp2a(u32 a, u32 b, u32 c, bool sa, bool sb)
{
	u32 k;

	for (k = 0; k < 2; k++) {
		s32 x = sa ? (s16)(a >> 16 * k) : (u16)(a >> 16 * k);
		s32 y = sb ? (s8)(b >> 8 * k) : (u8)(b >> 8 * k);

		c += (u32)(x * y);
	}
	return c;
}

/* Towards zero; out of range is the nearest integer, NaN is 0. */
static inline s32 f2i32(f32 x)
{
	f32 in = x >= -0x1p31f ? x : -0x1p31f;

	in = in < 0x1p31f ? in : 0.0f;
	return x != x ? 0 : x >= 0x1p31f ? INT32_MAX : (s32)in;
}

#endif
