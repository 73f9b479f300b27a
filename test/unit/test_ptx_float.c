/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Float instructions of the interpreter: special values from tables, the
 * correctly rounded ones against the host's on random bits, the approximate
 * ones against the host's in double, conversions against definitions.
 */
#include <fenv.h>
#include <math.h>

#include "test/unit/ptx_case.h"
#include "test/unit/unit.h"

#define NAN32 0x7fffffffull
#define QNAN 0x7fc00123ull
#define INF 0x7f800000ull
#define NINF 0xff800000ull
#define NZERO 0x80000000ull
#define ONE 0x3f800000ull
#define NAN64 0xfff8000000000000ull
#define INF64 0x7ff0000000000000ull

static const struct ptx_case special[] = {
	{ "add.f32", "www", { INF, NINF }, NAN32 },
	{ "add.f32", "www", { QNAN, ONE }, NAN32 },
	{ "add.rn.f32", "www", { ONE, 0x33800000 }, ONE },
	{ "add.rp.f32", "www", { ONE, 0x33800000 }, ONE + 1 },
	{ "add.rz.f32", "www", { ONE, 0xb3800000 }, 0x3f7fffff },
	{ "add.rm.f32", "www", { ONE, 0x80000001 }, 0x3f7fffff },
	{ "add.rm.f32", "www", { ONE, 0xbf800000 }, NZERO },
	{ "add.f32", "www", { ONE, 0xbf800000 }, 0 },
	{ "add.f32", "www", { 1, 1 }, 2 },
	{ "add.ftz.f32", "www", { 1, 1 }, 0 },
	{ "add.ftz.f32", "www", { 0x00800000, 0x80800001 }, NZERO },
	{ "add.ftz.f32", "www", { 0x807fffff, 0x80000000 }, NZERO },
	{ "add.sat.f32", "www", { ONE, ONE }, ONE },
	{ "add.sat.f32", "www", { ONE, QNAN }, 0 },
	{ "sub.sat.f32", "www", { 0, ONE }, 0 },
	{ "mul.f32", "www", { 0, INF }, NAN32 },
	{ "mul.f32", "www", { 0x00800000, 0x3f000000 }, 0x00400000 },
	{ "mul.ftz.f32", "www", { 0x00800000, 0xbf000000 }, NZERO },
	{ "mul.rz.f32", "www", { 0x7f7fffff, 0x40000000 }, 0x7f7fffff },
	{ "mul.rp.f32", "www", { 0x7f7fffff, 0x40000000 }, INF },
	{ "mul.rp.f32", "www", { 0xff7fffff, 0x40000000 }, 0xff7fffff },
	{ "fma.rn.f32", "wwww", { 0x3f800001, 0x3f800001, 0xbf800002 },
		0x28800000 },
	{ "fma.rn.sat.f32", "wwww", { 0x40000000, ONE, ONE }, ONE },
	{ "fma.rm.f32", "wwww", { ONE, ONE, 0x33800000 }, ONE },
	{ "fma.rp.f32", "wwww", { ONE, ONE, 0x33800000 }, ONE + 1 },
	{ "fma.rn.ftz.f32", "wwww", { 1, ONE, 0 }, 0 },
	{ "fma.rn.f32", "wwww", { INF, 0, ONE }, NAN32 },
	{ "mad.rn.f32", "wwww", { 0x40000000, 0x40400000, ONE }, 0x40e00000 },
	{ "div.rn.f32", "www", { ONE, 0 }, INF },
	{ "div.rn.f32", "www", { 0, 0 }, NAN32 },
	{ "div.rn.f32", "www", { ONE, 0x40400000 }, 0x3eaaaaab },
	{ "div.rz.f32", "www", { ONE, 0x40400000 }, 0x3eaaaaaa },
	{ "div.full.f32", "www", { ONE, 0x40000000 }, 0x3f000000 },
	{ "div.approx.f32", "www", { ONE, 0x7e800000 }, 0x00800000 },
	{ "div.approx.f32", "www", { ONE, 0x7e900000 }, 0 },
	{ "div.approx.f32", "www", { ONE, 0x7f000001 }, 0 },
	{ "div.approx.f32", "www", { ONE, 0xff7fffff }, NZERO },
	{ "div.approx.f32", "www", { INF, 0x7f7fffff }, NAN32 },
	{ "div.approx.f32", "www", { ONE, INF }, 0 },
	{ "rcp.rn.f32", "ww", { NZERO }, NINF },
	{ "rcp.rn.f32", "ww", { 0x40400000 }, 0x3eaaaaab },
	{ "rcp.approx.ftz.f32", "ww", { 1 }, INF },
	{ "rcp.approx.f32", "ww", { 0x7f000000 }, 0x00400000 },
	{ "sqrt.rn.f32", "ww", { 0x40000000 }, 0x3fb504f3 },
	{ "sqrt.rp.f32", "ww", { 0x40000000 }, 0x3fb504f4 },
	{ "sqrt.rn.f32", "ww", { NZERO }, NZERO },
	{ "sqrt.rn.f32", "ww", { 0xbf800000 }, NAN32 },
	{ "sqrt.approx.ftz.f32", "ww", { 1 }, 0 },
	{ "rsqrt.approx.f32", "ww", { 0x40800000 }, 0x3f000000 },
	{ "rsqrt.approx.f32", "ww", { 0 }, INF },
	{ "rsqrt.approx.f32", "ww", { NZERO }, NINF },
	{ "min.f32", "www", { NZERO, 0 }, NZERO },
	{ "min.f32", "www", { 0, NZERO }, NZERO },
	{ "max.f32", "www", { NZERO, 0 }, 0 },
	{ "min.f32", "www", { QNAN, ONE }, ONE },
	{ "max.f32", "www", { ONE, QNAN }, ONE },
	{ "max.f32", "www", { QNAN, QNAN }, NAN32 },
	{ "max.ftz.f32", "www", { 1, NZERO }, 0 },
	{ "abs.f32", "ww", { 0xc0000000 }, 0x40000000 },
	{ "neg.f32", "ww", { 0 }, NZERO },
	{ "neg.ftz.f32", "ww", { 1 }, NZERO },
	{ "copysign.f32", "www", { 0xc0000000, ONE }, 0xbf800000 },
	{ "ex2.approx.f32", "ww", { 0x40400000 }, 0x41000000 },
	{ "ex2.approx.f32", "ww", { 0xc3150000 }, 1 },
	{ "ex2.approx.ftz.f32", "ww", { 0xc3150000 }, 0 },
	{ "ex2.approx.f32", "ww", { NINF }, 0 },
	{ "ex2.approx.f32", "ww", { INF }, INF },
	{ "ex2.approx.f32", "ww", { QNAN }, NAN32 },
	{ "lg2.approx.f32", "ww", { 0x41000000 }, 0x40400000 },
	{ "lg2.approx.f32", "ww", { 1 }, 0xc3150000 },
	{ "lg2.approx.ftz.f32", "ww", { 1 }, NINF },
	{ "lg2.approx.f32", "ww", { 0 }, NINF },
	{ "lg2.approx.f32", "ww", { 0xbf800000 }, NAN32 },
	{ "lg2.approx.f32", "ww", { INF }, INF },
	{ "sin.approx.f32", "ww", { NZERO }, NZERO },
	{ "sin.approx.f32", "ww", { INF }, NAN32 },
	{ "cos.approx.f32", "ww", { 0 }, ONE },
	{ "tanh.approx.f32", "ww", { INF }, ONE },
	{ "tanh.approx.f32", "ww", { NZERO }, NZERO },
	{ "tanh.approx.f32", "ww", { QNAN }, NAN32 },
	{ "testp.finite.f32", "pw", { INF }, 0 },
	{ "testp.infinite.f32", "pw", { NINF }, 1 },
	{ "testp.notanumber.f32", "pw", { QNAN }, 1 },
	{ "testp.number.f32", "pw", { INF }, 1 },
	{ "testp.normal.f32", "pw", { 1 }, 0 },
	{ "testp.subnormal.f32", "pw", { NZERO | 1 }, 1 },
	{ "testp.subnormal.f64", "pd", { 1 }, 1 },
	{ "testp.finite.f64", "pd", { NAN64 }, 0 },
	{ "add.f64", "ddd", { INF64, INF64 | 1ull << 63 }, NAN64 },
	{ "add.rp.f64", "ddd", { 0x3ff0000000000000, 1 },
		0x3ff0000000000001 },
	{ "mul.rz.f64", "ddd", { 0x7fefffffffffffff, 0x4000000000000000 },
		0x7fefffffffffffff },
	{ "fma.rn.f64", "dddd", { 0x3ff0000000000001, 0x3ff0000000000001,
		0xbff0000000000002 }, 0x3970000000000000 },
	{ "rcp.rn.f64", "dd", { 0x4008000000000000 }, 0x3fd5555555555555 },
	{ "rcp.approx.ftz.f64", "dd", { 0x4000000012345678 },
		0x3fe0000000000000 },
	{ "min.f64", "ddd", { 0, 1ull << 63 }, 1ull << 63 },
	{ "max.f64", "ddd", { NAN64, 5 }, 5 },
	{ "copysign.f64", "ddd", { 1ull << 63, 5 }, 1ull << 63 | 5 },
};

/* a NaN is unordered; ne is ordered, neu is not */
static const struct ptx_case compare[] = {
	{ "setp.eq.f32", "pww", { QNAN, QNAN }, 0 },
	{ "setp.ne.f32", "pww", { QNAN, ONE }, 0 },
	{ "setp.neu.f32", "pww", { QNAN, ONE }, 1 },
	{ "setp.neu.f32", "pww", { ONE, ONE }, 0 },
	{ "setp.equ.f32", "pww", { QNAN, ONE }, 1 },
	{ "setp.equ.f32", "pww", { 0, NZERO }, 1 },
	{ "setp.ltu.f32", "pww", { ONE, QNAN }, 1 },
	{ "setp.lt.f32", "pww", { ONE, QNAN }, 0 },
	{ "setp.leu.f32", "pww", { INF, ONE }, 0 },
	{ "setp.gtu.f32", "pww", { QNAN, ONE }, 1 },
	{ "setp.geu.f32", "pww", { 0, ONE }, 0 },
	{ "setp.num.f32", "pww", { INF, ONE }, 1 },
	{ "setp.num.f32", "pww", { QNAN, ONE }, 0 },
	{ "setp.nan.f32", "pww", { ONE, QNAN }, 1 },
	{ "setp.gt.f32", "pww", { 1, 0 }, 1 },
	{ "setp.gt.ftz.f32", "pww", { 1, 0 }, 0 },
	{ "setp.ge.f64", "pdd", { NAN64, 0 }, 0 },
	{ "setp.geu.f64", "pdd", { NAN64, 0 }, 1 },
	{ "set.lt.f32.f32", "www", { 0, ONE }, ONE },
	{ "set.nan.u32.f32", "www", { 0, QNAN }, 0xffffffff },
	{ "set.gt.ftz.u32.f32", "www", { 1, 0 }, 0 },
};

static const struct ptx_case half[] = {
	{ "add.f16", "hhh", { 0x3c00, 0x3c00 }, 0x4000 },
	{ "add.rn.f16", "hhh", { 0x3c00, 0x1000 }, 0x3c00 },
	{ "add.f16", "hhh", { 0x7bff, 0x7bff }, 0x7c00 },
	{ "add.f16", "hhh", { 0x7c00, 0xfc00 }, 0x7fff },
	{ "add.f16", "hhh", { 1, 1 }, 2 },
	{ "add.ftz.f16", "hhh", { 1, 1 }, 0 },
	{ "add.sat.f16", "hhh", { 0x3c00, 0x3c00 }, 0x3c00 },
	{ "sub.f16", "hhh", { 0x3c00, 0x4000 }, 0xbc00 },
	{ "mul.f16", "hhh", { 0x0400, 0x3800 }, 0x0200 },
	{ "mul.f16", "hhh", { 0x3555, 0x4200 }, 0x3c00 },
	{ "fma.rn.f16", "hhhh", { 0x3c01, 0x3c01, 0xbc02 }, 0x0010 },
	{ "fma.rn.sat.f16", "hhhh", { 0x4000, 0x4000, 0 }, 0x3c00 },
	{ "add.f16x2", "www", { 0x3c004000, 0x40003c00 }, 0x42004200 },
	{ "fma.rn.f16x2", "wwww", { 0x3c004000, 0x40004000, 0x3c00bc00 },
		0x42004200 },
	{ "neg.f16", "hh", { 0x3c00 }, 0xbc00 },
	{ "abs.f16x2", "ww", { 0xbc00c000 }, 0x3c004000 },
	{ "setp.lt.f16", "phh", { 0xbc00, 0x3c00 }, 1 },
	{ "setp.eq.f16", "phh", { 0x7e00, 0x7e00 }, 0 },
	{ "setp.gtu.f16", "phh", { 0x7e00, 0x3c00 }, 1 },
	{ "set.lt.f16x2.f16x2", "www", { 0x3c004000, 0x40003c00 },
		0x3c000000 },
	{ "set.neu.u32.f16x2", "www", { 0x3c007e00, 0x3c003c00 }, 0xffff },
	{ "set.gt.f16.f16", "hhh", { 0x4000, 0x3c00 }, 0x3c00 },
	{ "set.eq.u32.f16", "whh", { 0x3c00, 0x3c00 }, 0xffffffff },
};

static const struct ptx_case convert[] = {
	{ "cvt.s32.s8", "ww", { 0x1280 }, 0xffffff80 },
	{ "cvt.u32.u8", "ww", { 0x1280 }, 0x80 },
	{ "cvt.u16.u32", "hw", { 0x12345678 }, 0x5678 },
	{ "cvt.s64.s32", "dw", { 0x80000000 }, 0xffffffff80000000 },
	{ "cvt.u64.u32", "dw", { 0x80000000 }, 0x80000000 },
	{ "cvt.u32.u64", "wd", { 0x123456789 }, 0x23456789 },
	{ "cvt.s16.s8", "hh", { 0x00ff }, 0xffff },
	{ "cvt.u8.u32", "ww", { 0x1234 }, 0x34 },
	{ "cvt.s8.s32", "ww", { 0x1280 }, 0xffffff80 },
	{ "cvt.sat.u8.s32", "ww", { 0xffffffff }, 0 },
	{ "cvt.sat.u8.s32", "ww", { 300 }, 255 },
	{ "cvt.sat.s8.s32", "ww", { 0xfffff000 }, 0xffffff80 },
	{ "cvt.sat.s32.s64", "wd", { 1ull << 40 }, 0x7fffffff },
	{ "cvt.sat.s32.u32", "ww", { 0x80000000 }, 0x7fffffff },
	{ "cvt.sat.u32.s64", "wd", { 1ull << 63 }, 0 },
	{ "cvt.rn.f32.s32", "ww", { 0xffffffff }, 0xbf800000 },
	{ "cvt.rn.f32.u32", "ww", { 0xffffffff }, 0x4f800000 },
	{ "cvt.rz.f32.u32", "ww", { 0xffffffff }, 0x4f7fffff },
	{ "cvt.rn.f32.s32", "ww", { 0x01000001 }, 0x4b800000 },
	{ "cvt.rp.f32.s32", "ww", { 0x01000001 }, 0x4b800001 },
	{ "cvt.rm.f32.s32", "ww", { 0xfeffffff }, 0xcb800001 },
	{ "cvt.rn.f32.s64", "wd", { 1ull << 63 }, 0xdf000000 },
	{ "cvt.rn.f32.u64", "wd", { ~0ull }, 0x5f800000 },
	{ "cvt.rz.f32.u64", "wd", { ~0ull }, 0x5f7fffff },
	{ "cvt.rn.f64.s64", "dd", { ~0ull }, 0xbff0000000000000 },
	{ "cvt.rn.f64.u64", "dd", { ~0ull }, 0x43f0000000000000 },
	{ "cvt.rz.f64.u64", "dd", { ~0ull }, 0x43efffffffffffff },
	{ "cvt.rn.f64.s32", "dw", { 0x80000000 }, 0xc1e0000000000000 },
	{ "cvt.rn.f32.u16", "wh", { 0xffff }, 0x477fff00 },
	{ "cvt.rn.f32.s8", "ww", { 0x80 }, 0xc3000000 },
	{ "cvt.rzi.s32.f32", "ww", { 0xbfc00000 }, 0xffffffff },
	{ "cvt.rni.s32.f32", "ww", { 0x40200000 }, 2 },
	{ "cvt.rmi.s32.f32", "ww", { 0xbf000000 }, 0xffffffff },
	{ "cvt.rpi.s32.f32", "ww", { 0x3f000000 }, 1 },
	{ "cvt.rzi.s32.f32", "ww", { 0x7f000000 }, 0x7fffffff },
	{ "cvt.rzi.s32.f32", "ww", { NINF }, 0x80000000 },
	{ "cvt.rzi.s32.f32", "ww", { 0xcf000000 }, 0x80000000 },
	{ "cvt.rzi.s32.f32", "ww", { QNAN }, 0 },
	{ "cvt.rzi.u32.f32", "ww", { 0xbf800000 }, 0 },
	{ "cvt.rzi.u32.f32", "ww", { INF }, 0xffffffff },
	{ "cvt.rzi.s64.f32", "dw", { QNAN }, 1ull << 63 },
	{ "cvt.rzi.s32.f64", "wd", { NAN64 }, 0x80000000 },
	{ "cvt.rzi.u64.f64", "dd", { 0x43efffffffffffff },
		0xfffffffffffff800 },
	{ "cvt.rzi.u64.f64", "dd", { INF64 }, ~0ull },
	{ "cvt.rzi.s16.f32", "hw", { 0x47800000 }, 0x7fff },
	{ "cvt.rni.s64.f64", "dd", { 0xc004000000000000 }, ~0ull - 1 },
	{ "cvt.rni.f32.f32", "ww", { 0x40200000 }, 0x40000000 },
	{ "cvt.rmi.f32.f32", "ww", { 0xbf000000 }, 0xbf800000 },
	{ "cvt.rpi.f32.f32", "ww", { 0xbf000000 }, NZERO },
	{ "cvt.rzi.f64.f64", "dd", { 0xbff8000000000000 },
		0xbff0000000000000 },
	{ "cvt.sat.f32.f32", "ww", { 0x40000000 }, ONE },
	{ "cvt.sat.f32.f32", "ww", { QNAN }, 0 },
	{ "cvt.ftz.sat.f32.f32", "ww", { 1 }, 0 },
	{ "cvt.f64.f32", "dw", { 1 }, 0x36a0000000000000 },
	{ "cvt.ftz.f64.f32", "dw", { 1 }, 0 },
	{ "cvt.rn.f32.f64", "wd", { 0x3ff0000010000000 }, ONE },
	{ "cvt.rn.f32.f64", "wd", { 0x3ff0000030000000 }, ONE + 2 },
	{ "cvt.rp.f32.f64", "wd", { 0x3ff0000000000001 }, ONE + 1 },
	{ "cvt.rm.f32.f64", "wd", { 0xbff0000000000001 }, 0xbf800001 },
	{ "cvt.rz.f32.f64", "wd", { 0x7fe0000000000000 }, 0x7f7fffff },
	{ "cvt.rn.f32.f64", "wd", { NAN64 }, NAN32 },
	{ "cvt.rm.f32.f64", "wd", { 0x8000000000000001 }, 0x80000001 },
	{ "cvt.rp.f32.f64", "wd", { 1 }, 1 },
	{ "cvt.rp.f32.f64", "wd", { 0x8000000000000001 }, NZERO },
	{ "cvt.f32.f16", "wh", { 0x3c00 }, ONE },
	{ "cvt.f32.f16", "wh", { 1 }, 0x33800000 },
	{ "cvt.f32.f16", "wh", { 0xfc00 }, NINF },
	{ "cvt.f32.f16", "wh", { 0x7e01 }, NAN32 },
	{ "cvt.rn.f16.f32", "hw", { ONE }, 0x3c00 },
	{ "cvt.rn.f16.f32", "hw", { 0x477fefff }, 0x7bff },
	{ "cvt.rn.f16.f32", "hw", { 0x477ff000 }, 0x7c00 },
	{ "cvt.rz.f16.f32", "hw", { 0x477ff000 }, 0x7bff },
	{ "cvt.rn.f16.f32", "hw", { 0x33000000 }, 0 },
	{ "cvt.rn.f16.f32", "hw", { 0x33000001 }, 1 },
	{ "cvt.rn.f16.f32", "hw", { 0x33c00000 }, 2 },
	{ "cvt.rn.f16.f32", "hw", { 0x387fc000 }, 0x03ff },
	{ "cvt.rn.f16.f32", "hw", { 0x387ff000 }, 0x0400 },
	{ "cvt.rn.f16.f32", "hw", { 0x3f801000 }, 0x3c00 },
	{ "cvt.rn.f16.f32", "hw", { 0x3f803000 }, 0x3c02 },
	{ "cvt.rn.f16.f32", "hw", { 0xff800001 }, 0x7fff },
	{ "cvt.rn.f16.f64", "hd", { 0x3ff0020000000001 }, 0x3c01 },
	{ "cvt.rn.f16.s32", "hw", { 0xffffffff }, 0xbc00 },
	{ "cvt.rn.f16.u32", "hw", { 2049 }, 0x6800 },
	{ "cvt.rp.f16.u32", "hw", { 2049 }, 0x6801 },
	{ "cvt.rzi.s32.f16", "wh", { 0xc100 }, 0xfffffffe },
	{ "cvt.f64.f16", "dh", { 0x3800 }, 0x3fe0000000000000 },
};

CASE_TEST(special)
CASE_TEST(compare)
CASE_TEST(half)
CASE_TEST(convert)

/* ---- many values at once ------------------------------------------------ */

#define MANY 4096

/* out[i] = op(a[i], b[i], c[i]) over 4-byte or 8-byte words */
static void run_many(struct dev *d, const char *op, int nr, int bytes)
{
	const char *t = bytes == 4 ? "b32" : "b64";
	uint64_t params[1] = { DEV_BASE };
	char text[2048];
	int n, k, size = MANY * bytes;

	n = snprintf(text, sizeof(text), PTX_HEAD
		".visible .entry k(.param .u64 p) {\n"
		".reg .b64 %%p, %%o; .reg .b32 %%t, %%u; .reg .%s %%d, %%s<3>;\n"
		"ld.param.u64 %%p, [p];\n"
		"mov.u32 %%t, %%tid.x;\nmov.u32 %%u, %%ctaid.x;\n"
		"mad.lo.u32 %%t, %%u, 128, %%t;\n"
		"mul.wide.u32 %%o, %%t, %d;\nadd.u64 %%p, %%p, %%o;\n",
		t, bytes);
	for (k = 0; k < nr; k++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			"ld.global.%s %%s%d, [%%p+%d];\n", t, k,
			(k + 1) * size);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %%d", op);
	for (k = 0; k < nr; k++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", %%s%d", k);
	snprintf(text + n, sizeof(text) - (size_t)n,
		";\nst.global.%s [%%p], %%d;\nret;\n}\n", t);
	dev_run_ok(d, text, "k", MANY / 128, 128, 0, params);
}

static uint64_t seed = 88172645463325252ull;

static uint64_t random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Random bits, with exponents close together in half of the words. */
static void fill32(struct dev *d, uint32_t **out)
{
	int k, n;

	for (k = 0; k < 4; k++)
		out[k] = (uint32_t *)(void *)(d->mem + 4 * k * MANY);
	for (k = 1; k < 4; k++) {
		for (n = 0; n < MANY; n++) {
			out[k][n] = (uint32_t)random64();
			if (n & 1)
				out[k][n] = (out[k][n] & 0x80ffffff) |
					0x3f000000;
		}
	}
}

static void fill64(struct dev *d, uint64_t **out)
{
	int k, n;

	for (k = 0; k < 4; k++)
		out[k] = (uint64_t *)(void *)(d->mem + 8 * k * MANY);
	for (k = 1; k < 4; k++) {
		for (n = 0; n < MANY; n++) {
			out[k][n] = random64();
			if (n & 1)
				out[k][n] = (out[k][n] &
					0x800fffffffffffff) |
					0x3fe0000000000000;
		}
	}
}

static float as32(uint32_t u)
{
	float f;

	memcpy(&f, &u, 4);
	return f;
}

static double as64(uint64_t u)
{
	double f;

	memcpy(&f, &u, 8);
	return f;
}

static uint32_t want32(float f)
{
	uint32_t u;

	memcpy(&u, &f, 4);
	return f != f ? 0x7fffffff : u;
}

static uint64_t want64(double f)
{
	uint64_t u;

	memcpy(&u, &f, 8);
	return f != f ? NAN64 : u;
}

static volatile float va, vb, vc;
static volatile double wa, wb, wc;

static float host32(int op)
{
	switch (op) {
	case 0:
		return va + vb;
	case 1:
		return va - vb;
	case 2:
		return va * vb;
	case 3:
		return va / vb;
	case 4:
		return fmaf(va, vb, vc);
	default:
		return sqrtf(va);
	}
}

static double host64(int op)
{
	switch (op) {
	case 0:
		return wa + wb;
	case 1:
		return wa - wb;
	case 2:
		return wa * wb;
	case 3:
		return wa / wb;
	case 4:
		return fma(wa, wb, wc);
	default:
		return sqrt(wa);
	}
}

static const char *const rounded[] = { "add", "sub", "mul", "div", "fma",
	"sqrt" };
static const int sources[] = { 2, 2, 2, 2, 3, 1 };
static const char *const mode[] = { "rn", "rz", "rm", "rp" };
static const int host_mode[] = { FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
	FE_UPWARD };

START_TEST(test_rounded)
{
	struct dev *d = dev_new();
	int op = _i / 4, m = _i % 4, n;
	uint32_t *v[4];
	uint64_t *w[4];
	char text[32];

	fill32(d, v);
	snprintf(text, sizeof(text), "%s.%s.f32", rounded[op], mode[m]);
	run_many(d, text, sources[op], 4);
	fesetround(host_mode[m]);
	for (n = 0; n < MANY; n++) {
		uint32_t want;

		va = as32(v[1][n]);
		vb = as32(v[2][n]);
		vc = as32(v[3][n]);
		want = want32(host32(op));
		if (v[0][n] != want)
			ck_abort_msg("%s %a %a %a: %x, not %x", text,
				(double)va, (double)vb, (double)vc, v[0][n],
				want);
	}
	fesetround(FE_TONEAREST);
	fill64(d, w);
	snprintf(text, sizeof(text), "%s.%s.f64", rounded[op], mode[m]);
	run_many(d, text, sources[op], 8);
	fesetround(host_mode[m]);
	for (n = 0; n < MANY; n++) {
		uint64_t want;

		wa = as64(w[1][n]);
		wb = as64(w[2][n]);
		wc = as64(w[3][n]);
		want = want64(host64(op));
		if (w[0][n] != want)
			ck_abort_msg("%s %a %a %a: %llx, not %llx", text, wa,
				wb, wc, (unsigned long long)w[0][n],
				(unsigned long long)want);
	}
	fesetround(FE_TONEAREST);
	dev_free(d);
}
END_TEST

static double exact(int op, double x)
{
	switch (op) {
	case 0:
		return exp2(x);
	case 1:
		return log2(x);
	case 2:
		return sin(x);
	case 3:
		return cos(x);
	case 4:
		return tanh(x);
	default:
		return 1.0 / sqrt(x);
	}
}

/* Within half a unit and a little of the exact value: that is, rounded. */
START_TEST(test_approximate)
{
	static const char *const name[] = { "ex2", "lg2", "sin", "cos", "tanh",
		"rsqrt" };
	struct dev *d = dev_new();
	uint32_t *v[4];
	char text[32];
	int n;

	fill32(d, v);
	for (n = 0; n < MANY; n++) {
		float x = as32(v[1][n]);

		/* a useful range: x with small exponents, both signs */
		v[1][n] = want32(ldexpf((float)(int32_t)v[1][n], -31 +
			(int)(v[2][n] % 40) - 20));
		if ((_i == 1 || _i == 5) && (v[1][n] >> 31))
			v[1][n] &= 0x7fffffff;
		if (n % 8 == 7 && x == x && fabsf(x) < 1e8f)
			v[1][n] = want32(_i == 1 || _i == 5 ? fabsf(x) : x);
	}
	snprintf(text, sizeof(text), "%s.approx.f32", name[_i]);
	run_many(d, text, 1, 4);
	for (n = 0; n < MANY; n++) {
		double x = as32(v[1][n]), want = exact(_i, x);
		float got = as32(v[0][n]), to = (float)want;
		double ulp = fabs((double)nextafterf(to, INFINITY) - to);

		if (got == to)
			continue;
		if (!(fabs(got - want) <= 0.5000001 * ulp))
			ck_abort_msg("%s(%a): %a, not %a", text, x, (double)got,
				want);
	}
	dev_free(d);
}
END_TEST

/* Every f16: to f32 and back, and the sum with its neighbours in the table. */
START_TEST(test_all_halves)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %o; .reg .b32 %t, %b; .reg .b16 %h, %g; .reg .f32 %f;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.x;\n"
	"mad.lo.u32 %t, %b, 256, %t;\n"
	"cvt.u16.u32 %h, %t;\n"
	"cvt.f32.f16 %f, %h;\n"
	"cvt.rn.f16.f32 %g, %f;\n"
	"mul.wide.u32 %o, %t, 8;\n"
	"add.u64 %p, %p, %o;\n"
	"st.global.f32 [%p], %f;\n"
	"st.global.b16 [%p+4], %g;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint64_t params = DEV_BASE;
	uint32_t h;

	dev_run_ok(d, text, "k", 256, 256, 0, &params);
	for (h = 0; h < 65536; h++) {
		int e = (h >> 10) & 31, m = h & 1023;
		double v = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
		uint16_t back;
		float got;

		memcpy(&got, d->mem + 8 * h, 4);
		memcpy(&back, d->mem + 8 * h + 4, 2);
		if (e == 31 && m) {
			ck_assert(got != got);
			ck_assert_uint_eq(back, 0x7fff);
			continue;
		}
		v = e == 31 ? INFINITY : v;
		ck_assert(got == (float)(h >> 15 ? -v : v));
		ck_assert_uint_eq(back, h);
	}
	dev_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_float");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_special);
	tcase_add_test(t, test_compare);
	tcase_add_test(t, test_half);
	tcase_add_test(t, test_convert);
	tcase_add_loop_test(t, test_rounded, 0, 24);
	tcase_add_loop_test(t, test_approximate, 0, 6);
	tcase_add_test(t, test_all_halves);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
