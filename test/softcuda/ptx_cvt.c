/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cvt in all its forms, lane by lane; the common ones have rows of their own
 * in ptx_ops.def.  Called by the interpreter's loop; no locks.
 *
 * A float is held as a double, which is exact for f16, bf16, f32 and f64; an
 * integer as 64 bits, extended by the sign of its type.
 */
#include "test/softcuda/ptx_math.h"
#include "test/softcuda/ptx_vm.h"

static u64 read_lane(struct ptx_warp *w, u32 row, u32 lane, unsigned bytes)
{
	switch (bytes) {
	case 2:
		return PTX_ROW(w, u16, row)[lane];
	case 4:
		return PTX_ROW(w, u32, row)[lane];
	default:
		return PTX_ROW(w, u64, row)[lane];
	}
}

static void write_lane(struct ptx_warp *w, u32 row, u32 lane, unsigned bytes,
	u64 v)
{
	switch (bytes) {
	case 2:
		PTX_ROW(w, u16, row)[lane] = (u16)v;
		break;
	case 4:
		PTX_ROW(w, u32, row)[lane] = (u32)v;
		break;
	default:
		PTX_ROW(w, u64, row)[lane] = v;
	}
}

static u64 extend(enum ptx_type t, u64 v)
{
	unsigned bits = 8 * ptx_type_size(t);

	if (bits == 64)
		return v;
	v &= (1ull << bits) - 1;
	if (ptx_type_is_signed(t) && v >> (bits - 1))
		v |= ~0ull << bits;
	return v;
}

static f64 float_in(enum ptx_type t, u64 v, bool ftz)
{
	switch (t) {
	case PTX_f16:
		return ptx_h2f((u16)v);
	case PTX_bf16:
		return ptx_b2f((u16)v);
	case PTX_f32:
		return ftz ? flush32(bits_f32((u32)v)) : bits_f32((u32)v);
	default:
		return bits_f64(v);
	}
}

/* Bits of a float type as a number. */
static f64 float_value(enum ptx_type t, u64 v)
{
	return float_in(t, v, false);
}

/*
 * `r` is the number nearest to d (over or under it, as `over` and `equal`
 * say): steps to the neighbour that the mode asks for.  Sign and magnitude, so
 * a step is 1.
 */
static u64 step(u64 r, u64 sign_bit, int over, bool negative, u8 rnd)
{
	bool away;

	/* over: r > d is 1, r < d is -1 */
	switch (rnd) {
	case PTX_RZ:
		if (negative ? over < 0 : over > 0)
			return r - 1;
		return r;
	case PTX_RM:
		if (over <= 0)
			return r;
		break;
	case PTX_RP:
		if (over >= 0)
			return r;
		break;
	default:
		return r;
	}
	/* move down for RM, up for RP */
	if (!(r & ~sign_bit))
		return rnd == PTX_RM ? sign_bit | 1 : 1;
	away = rnd == PTX_RM ? (r & sign_bit) != 0 : !(r & sign_bit);
	return away ? r + 1 : r - 1;
}

static int compare(long double a, long double b)
{
	return a > b ? 1 : a < b ? -1 : 0;
}

static u64 nearest(enum ptx_type t, f64 d)
{
	switch (t) {
	case PTX_f16:
		return ptx_d2h(d);
	case PTX_bf16:
		return ptx_d2b(d);
	case PTX_f32:
		return f32_bits(nan32((f32)d));
	default:
		return f64_bits(nan64(d));
	}
}

static u64 float_out(enum ptx_type t, f64 d, u8 rnd)
{
	u64 r = nearest(t, d);
	u64 sign = 1ull << (8 * ptx_type_size(t) - 1);

	if (rnd == PTX_RN || d != d)
		return r;
	return step(r, sign, compare(float_value(t, r), d), signbit(d), rnd);
}

/* long double holds every 64-bit integer. */
static u64 int_to_float(enum ptx_type t, long double v, u8 rnd)
{
	u64 sign = 1ull << (8 * ptx_type_size(t) - 1), r;
	f64 d = (f64)v;

	if (t == PTX_f32) {
		r = f32_bits((f32)v);
	} else if (t == PTX_f64) {
		r = f64_bits(d);
	} else {
		/* cut bits go into the last one, so that ties are none */
		if (compare(d, v) && !(f64_bits(d) & 1))
			d = bits_f64(f64_bits(d) +
				(compare(d, v) == (d > 0 ? 1 : -1) ? -1 : 1));
		r = nearest(t, d);
	}
	return step(r, sign, compare(float_value(t, r), v), v < 0, rnd);
}

static f64 integral(f64 d, u8 rnd)
{
	switch (rnd) {
	case PTX_RZ:
		return trunc(d);
	case PTX_RM:
		return floor(d);
	case PTX_RP:
		return ceil(d);
	default:
		return rint(d);
	}
}

/* Out of range is the nearest integer of the type. */
static u64 float_to_int(enum ptx_type t, enum ptx_type st, f64 d, u8 rnd)
{
	unsigned bits = 8 * ptx_type_size(t);
	bool wide = st == PTX_f64 || bits == 64;

	if (d != d)
		return wide ? 1ull << (bits - 1) : 0;
	d = integral(d, rnd);
	if (ptx_type_is_signed(t)) {
		f64 top = ldexp(1.0, (int)bits - 1);

		if (d >= top)
			return (1ull << (bits - 1)) - 1;
		if (d < -top)
			return extend(t, 1ull << (bits - 1));
		return (u64)(s64)d;
	}
	if (d <= 0)
		return 0;
	if (d >= ldexp(1.0, (int)bits))
		return bits == 64 ? ~0ull : (1ull << bits) - 1;
	return (u64)d;
}

static u64 int_sat(enum ptx_type t, enum ptx_type st, u64 v)
{
	unsigned bits = 8 * ptx_type_size(t);
	bool neg = ptx_type_is_signed(st) && (s64)v < 0;

	if (ptx_type_is_signed(t)) {
		u64 top = (1ull << (bits - 1)) - 1;

		if (neg)
			return (s64)v < -(s64)top - 1 ? ~top : v;
		return v > top ? top : v;
	}
	if (neg)
		return 0;
	if (bits < 64 && v >> bits)
		return (1ull << bits) - 1;
	return v;
}

static u64 from_float(const struct ptx_insn *i, u64 v)
{
	enum ptx_type t = i->type, st = i->stype;
	bool ftz = i->flags & PTX_F_FTZ;
	f64 d = float_in(st, v, ftz);

	if (!ptx_type_is_float(t))
		return float_to_int(t, st, d, i->rnd);
	if (i->flags & PTX_F_INT)
		d = integral(d, i->rnd);
	if (i->flags & PTX_F_SAT) {
		d = d > 0 ? d : 0;
		d = d < 1 ? d : 1;
	}
	v = float_out(t, d, i->flags & PTX_F_INT ? PTX_RN : i->rnd);
	if (ftz && t == PTX_f32)
		v = f32_bits(flush32(bits_f32((u32)v)));
	return v;
}

static u64 from_int(const struct ptx_insn *i, u64 v)
{
	enum ptx_type t = i->type, st = i->stype;

	v = extend(st, v);
	if (ptx_type_is_float(t)) {
		long double d = ptx_type_is_signed(st) ? (long double)(s64)v :
			(long double)v;

		if (i->flags & PTX_F_SAT)
			d = d > 0 ? 1 : 0;
		return int_to_float(t, d, i->rnd);
	}
	if (i->flags & PTX_F_SAT)
		v = int_sat(t, st, v);
	return v;
}

void ptx_cvt_run(struct ptx_warp *w, const struct ptx_insn *i, u32 mask)
{
	bool is_float = ptx_type_is_float(i->stype);
	u32 m;

	for (m = mask; m; m &= m - 1) {
		u32 l = (u32)__builtin_ctz(m);
		u64 v = read_lane(w, i->a, l, i->sregsize);

		v = is_float ? from_float(i, v) : from_int(i, v);
		write_lane(w, i->d, l, i->regsize, extend(i->type, v));
	}
}
