/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer, bit and predicate instructions of the interpreter, one table for
 * each group; values computed by hand from the definitions in PTX.
 */
#include "test/unit/ptx_case.h"
#include "test/unit/unit.h"

#define M32 0xffffffffull
#define M64 0xffffffffffffffffull
#define MIN32 0x80000000ull
#define MIN64 0x8000000000000000ull

static const struct ptx_case arithmetic[] = {
	{ "add.s32", "www", { 0x7fffffff, 1 }, MIN32 },
	{ "add.u64", "ddd", { M64, 2 }, 1 },
	{ "add.u16", "hhh", { 0xffff, 3 }, 2 },
	{ "add.sat.s32", "www", { 0x7fffffff, 1 }, 0x7fffffff },
	{ "add.sat.s32", "www", { MIN32, M32 }, MIN32 },
	{ "sub.sat.s32", "www", { MIN32, 1 }, MIN32 },
	{ "sub.sat.s32", "www", { 5, 7 }, 0xfffffffe },
	{ "sub.s64", "ddd", { 0, 1 }, M64 },
	{ "sub.s16", "hhh", { 0x8000, 1 }, 0x7fff },
	{ "mul.lo.s32", "www", { 0x10001, 0x10001 }, 0x20001 },
	{ "mul.lo.u16", "hhh", { 0x1234, 0x10 }, 0x2340 },
	{ "mul.lo.s64", "ddd", { M64, M64 }, 1 },
	{ "mul.hi.s32", "www", { MIN32, 2 }, M32 },
	{ "mul.hi.u32", "www", { MIN32, 2 }, 1 },
	{ "mul.hi.s16", "hhh", { 0x8000, 2 }, 0xffff },
	{ "mul.hi.u16", "hhh", { 0x8000, 2 }, 1 },
	{ "mul.hi.u64", "ddd", { M64, M64 }, M64 - 1 },
	{ "mul.hi.s64", "ddd", { MIN64, 2 }, M64 },
	{ "mul.wide.s32", "dww", { M32, 2 }, M64 - 1 },
	{ "mul.wide.u32", "dww", { M32, 2 }, 0x1fffffffe },
	{ "mul.wide.s16", "whh", { 0x8000, 0x8000 }, 0x40000000 },
	{ "mul.wide.u16", "whh", { 0xffff, 0xffff }, 0xfffe0001 },
	{ "mul24.lo.s32", "www", { 0x00ffffff, 2 }, 0xfffffffe },
	{ "mul24.lo.u32", "www", { 0xff000003, 4 }, 12 },
	{ "mul24.hi.u32", "www", { 0xffffff, 0xffffff }, 0xfffffe00 },
	{ "mul24.hi.s32", "www", { 0x800000, 2 }, 0xffffff00 },
	{ "mad.lo.s32", "wwww", { 3, M32, 10 }, 7 },
	{ "mad.lo.u64", "dddd", { 1ull << 63, 2, 5 }, 5 },
	{ "mad.hi.s32", "wwww", { MIN32, 2, 3 }, 2 },
	{ "mad.hi.u32", "wwww", { M32, M32, 3 }, 1 },
	{ "mad.hi.sat.s32", "wwww", { 0x7fffffff, 0x7fffffff, 0x7fffffff },
		0x7fffffff },
	{ "mad.wide.s32", "dwwd", { M32, 5, 3 }, M64 - 1 },
	{ "mad.wide.u32", "dwwd", { M32, 2, 3 }, 0x200000001 },
	{ "mad.wide.s16", "whhw", { 0xffff, 5, 3 }, 0xfffffffe },
	{ "mad24.lo.u32", "wwww", { 0xff000003, 4, 5 }, 17 },
	{ "sad.s32", "wwww", { MIN32, 0x7fffffff, 1 }, 0 },
	{ "sad.u32", "wwww", { 3, 10, 100 }, 107 },
	{ "sad.s64", "dddd", { M64, 1, 0 }, 2 },
	{ "neg.s32", "ww", { MIN32 }, MIN32 },
	{ "neg.s16", "hh", { 5 }, 0xfffb },
	{ "neg.s64", "dd", { 1 }, M64 },
	{ "abs.s32", "ww", { MIN32 }, MIN32 },
	{ "abs.s32", "ww", { M32 }, 1 },
	{ "abs.s16", "hh", { 0xfffe }, 2 },
	{ "abs.s64", "dd", { M64 - 4 }, 5 },
	{ "min.s32", "www", { M32, 1 }, M32 },
	{ "min.u32", "www", { M32, 1 }, 1 },
	{ "max.s16", "hhh", { 0x8000, 0x7fff }, 0x7fff },
	{ "max.u16", "hhh", { 0x8000, 0x7fff }, 0x8000 },
	{ "max.s64", "ddd", { MIN64, 0 }, 0 },
	{ "min.u64", "ddd", { MIN64, 5 }, 5 },
	{ "dp4a.s32.s32", "wwww", { 0x80ff017f, 0x02030405, 1000 },
		1000 + 0x7f * 5 + 4 - 3 - 256 },
	{ "dp4a.u32.u32", "wwww", { 0xffffffff, 0x01010101, 1 }, 1021 },
	{ "dp4a.u32.s32", "wwww", { 0xffffffff, 0xffffffff, 0 },
		M32 - 1019 },
	{ "dp2a.lo.s32.s32", "wwww", { 0xffff0002, 0x00000503, 10 }, 11 },
	{ "dp2a.hi.u32.u32", "wwww", { 0x00030002, 0x05040000, 0 }, 23 },
};

/* x / 0 is all ones, x % 0 is x, as the hardware's routine has it. */
static const struct ptx_case division[] = {
	{ "div.s32", "www", { 7, 0xfffffffe }, 0xfffffffd },
	{ "div.s32", "www", { MIN32, M32 }, MIN32 },
	{ "div.s32", "www", { 5, 0 }, M32 },
	{ "div.u32", "www", { 5, 0 }, M32 },
	{ "div.u32", "www", { M32, 2 }, 0x7fffffff },
	{ "div.s64", "ddd", { MIN64, M64 }, MIN64 },
	{ "div.s64", "ddd", { M64 - 6, 2 }, M64 - 2 },
	{ "div.u64", "ddd", { M64, 10 }, 1844674407370955161ull },
	{ "div.u16", "hhh", { 1000, 7 }, 142 },
	{ "div.s16", "hhh", { 0x8000, 0xffff }, 0x8000 },
	{ "rem.s32", "www", { 0xfffffff9, 2 }, M32 },
	{ "rem.s32", "www", { MIN32, M32 }, 0 },
	{ "rem.u32", "www", { 5, 0 }, 5 },
	{ "rem.u64", "ddd", { M64, 10 }, 5 },
	{ "rem.s64", "ddd", { M64 - 6, 2 }, M64 },
	{ "rem.u16", "hhh", { 1000, 7 }, 6 },
};

static const struct ptx_case bits[] = {
	{ "and.b32", "www", { 0xff00ff00, 0x0ff00ff0 }, 0x0f000f00 },
	{ "or.b64", "ddd", { 1ull << 63, 1 }, MIN64 | 1 },
	{ "xor.b16", "hhh", { 0xffff, 0x00ff }, 0xff00 },
	{ "not.b32", "ww", { 0 }, M32 },
	{ "not.b64", "dd", { M64 - 1 }, 1 },
	{ "cnot.b32", "ww", { 0 }, 1 },
	{ "cnot.b32", "ww", { 5 }, 0 },
	{ "cnot.b64", "dd", { 1ull << 40 }, 0 },
	{ "shl.b32", "www", { 1, 31 }, MIN32 },
	{ "shl.b32", "www", { 1, 32 }, 0 },
	{ "shl.b32", "www", { 1, M32 }, 0 },
	{ "shl.b64", "ddw", { 1, 63 }, MIN64 },
	{ "shl.b64", "ddw", { 1, 64 }, 0 },
	{ "shl.b16", "hhw", { 1, 15 }, 0x8000 },
	{ "shl.b16", "hhw", { 1, 16 }, 0 },
	{ "shr.u32", "www", { MIN32, 31 }, 1 },
	{ "shr.u32", "www", { MIN32, 32 }, 0 },
	{ "shr.s32", "www", { MIN32, 4 }, 0xf8000000 },
	{ "shr.s32", "www", { MIN32, 100 }, M32 },
	{ "shr.s64", "ddw", { MIN64, 64 }, M64 },
	{ "shr.u64", "ddw", { MIN64, 64 }, 0 },
	{ "shr.s16", "hhw", { 0x8000, 3 }, 0xf000 },
	{ "shr.u16", "hhw", { 0x8000, 3 }, 0x1000 },
	{ "shr.b64", "ddw", { MIN64, 1 }, 1ull << 62 },
	{ "shf.l.wrap.b32", "wwww", { 0x11223344, 0x55667788, 40 },
		0x66778811 },
	{ "shf.l.clamp.b32", "wwww", { 0x11223344, 0x55667788, 40 },
		0x11223344 },
	{ "shf.r.wrap.b32", "wwww", { 0x11223344, 0x55667788, 40 },
		0x88112233 },
	{ "shf.r.clamp.b32", "wwww", { 0x11223344, 0x55667788, 40 },
		0x55667788 },
	{ "shf.r.wrap.b32", "wwww", { 1, 2, 0 }, 1 },
	{ "popc.b32", "ww", { 0xf0f0f0f1 }, 17 },
	{ "popc.b64", "wd", { M64 }, 64 },
	{ "clz.b32", "ww", { 0 }, 32 },
	{ "clz.b32", "ww", { 1 }, 31 },
	{ "clz.b64", "wd", { 0 }, 64 },
	{ "clz.b64", "wd", { 1ull << 40 }, 23 },
	{ "brev.b32", "ww", { 1 }, MIN32 },
	{ "brev.b32", "ww", { 0x12345678 }, 0x1e6a2c48 },
	{ "brev.b64", "dd", { 3 }, 3ull << 62 },
	{ "bfind.u32", "ww", { 0 }, M32 },
	{ "bfind.u32", "ww", { 0x10 }, 4 },
	{ "bfind.s32", "ww", { M32 }, M32 },
	{ "bfind.s32", "ww", { 0xffffffef }, 4 },
	{ "bfind.u64", "wd", { 1ull << 50 }, 50 },
	{ "bfind.s64", "wd", { ~(1ull << 50) }, 50 },
	{ "bfind.shiftamt.u32", "ww", { 0x10 }, 27 },
	{ "bfind.shiftamt.u32", "ww", { 0 }, M32 },
	{ "bfe.u32", "wwww", { 0x12345678, 8, 12 }, 0x456 },
	{ "bfe.u32", "wwww", { 0x12345678, 28, 12 }, 1 },
	{ "bfe.u32", "wwww", { 0x12345678, 40, 4 }, 0 },
	{ "bfe.s32", "wwww", { 0x00000f00, 8, 4 }, M32 },
	{ "bfe.s32", "wwww", { 0x80000000, 40, 4 }, M32 },
	{ "bfe.s32", "wwww", { 0x80000000, 0, 0 }, 0 },
	{ "bfe.s32", "wwww", { 0x80000000, 28, 20 }, 0xfffffff8 },
	{ "bfe.u64", "ddww", { 0x123456789abcdef0, 60, 8 }, 1 },
	{ "bfe.s64", "ddww", { 0xf0, 4, 4 }, M64 },
	{ "bfi.b32", "wwwww", { 0xff, 0, 4, 8 }, 0xff0 },
	{ "bfi.b32", "wwwww", { 0, M32, 4, 8 }, 0xfffff00f },
	{ "bfi.b32", "wwwww", { 0, M32, 33, 8 }, M32 },
	{ "bfi.b32", "wwwww", { 5, M32, 28, 200 }, 0x5fffffff },
	{ "bfi.b64", "dddww", { 5, 0, 61, 3 }, 5ull << 61 },
	{ "prmt.b32", "wwww", { 0x33221100, 0x77665544, 0x7654 }, 0x77665544 },
	{ "prmt.b32", "wwww", { 0x33221180, 0x77665544, 0x0819 }, 0x80ff1100 },
	{ "prmt.b32.f4e", "wwww", { 0x33221100, 0x77665544, 2 }, 0x55443322 },
	{ "prmt.b32.b4e", "wwww", { 0x33221100, 0x77665544, 1 }, 0x66770011 },
	{ "prmt.b32.rc8", "wwww", { 0x33221100, 0x77665544, 2 }, 0x22222222 },
	{ "prmt.b32.ecl", "wwww", { 0x33221100, 0x77665544, 1 }, 0x33221111 },
	{ "prmt.b32.ecr", "wwww", { 0x33221100, 0x77665544, 1 }, 0x11111100 },
	{ "prmt.b32.rc16", "wwww", { 0x33221100, 0x77665544, 1 }, 0x33223322 },
	{ "lop3.b32 0xe8", "wwww", { 0xff00, 0xf0f0, 0xcccc }, 0xfcc0 },
	{ "lop3.b32 0x96", "wwww", { 0xff00, 0xf0f0, 0xcccc }, 0xc33c },
	{ "lop3.b32 0x01", "wwww", { 0xff00, 0xf0f0, 0xcccc }, 0xffff0003 },
	{ "bmsk.clamp.b32", "www", { 4, 8 }, 0xff0 },
	{ "bmsk.clamp.b32", "www", { 40, 8 }, 0 },
	{ "bmsk.wrap.b32", "www", { 36, 8 }, 0xff0 },
};

static const struct ptx_case compare[] = {
	{ "setp.eq.s32", "pww", { 5, 5 }, 1 },
	{ "setp.ne.b64", "pdd", { 1ull << 40, 0 }, 1 },
	{ "setp.lt.s32", "pww", { M32, 0 }, 1 },
	{ "setp.lt.u32", "pww", { M32, 0 }, 0 },
	{ "setp.lo.u32", "pww", { 1, 2 }, 1 },
	{ "setp.hs.u32", "pww", { 1, 2 }, 0 },
	{ "setp.ls.u64", "pdd", { 2, 2 }, 1 },
	{ "setp.hi.u16", "phh", { 0x8000, 1 }, 1 },
	{ "setp.ge.s16", "phh", { 0x8000, 1 }, 0 },
	{ "setp.le.s64", "pdd", { MIN64, M64 }, 1 },
	{ "setp.gt.s64", "pdd", { MIN64, M64 }, 0 },
	{ "setp.eq.b16", "phh", { 0xffff, 0xffff }, 1 },
	{ "setp.lt.and.s32", "pwwp", { 1, 2, 0 }, 0 },
	{ "setp.lt.and.s32", "pwwp", { 1, 2, 1 }, 1 },
	{ "setp.lt.or.s32", "pwwp", { 3, 2, 1 }, 1 },
	{ "setp.lt.xor.s32", "pwwp", { 1, 2, 1 }, 0 },
	{ "set.lt.u32.s32", "www", { M32, 0 }, M32 },
	{ "set.lt.s32.u32", "www", { M32, 0 }, 0 },
	{ "set.eq.f32.u32", "www", { 7, 7 }, 0x3f800000 },
	{ "set.ne.and.u32.s32", "wwwp", { 1, 2, 0 }, 0 },
	{ "set.gt.u32.s64", "wdd", { 5, MIN64 }, M32 },
};

static const struct ptx_case choice[] = {
	{ "selp.b32", "wwwp", { 11, 22, 1 }, 11 },
	{ "selp.b32", "wwwp", { 11, 22, 0 }, 22 },
	{ "selp.f64", "dddp", { 1ull << 60, 5, 1 }, 1ull << 60 },
	{ "selp.u16", "hhhp", { 3, 4, 0 }, 4 },
	{ "slct.u32.s32", "wwww", { 1, 2, MIN32 }, 2 },
	{ "slct.u32.s32", "wwww", { 1, 2, 0 }, 1 },
	{ "slct.f32.f32", "wwww", { 1, 2, 0x80000000 }, 1 },
	{ "slct.b64.f32", "dddw", { 1, 2, 0xbf800000 }, 2 },
	{ "slct.u32.f32", "wwww", { 1, 2, 0x7fc00000 }, 2 },
	{ "slct.ftz.u32.f32", "wwww", { 1, 2, 0x80000001 }, 1 },
	{ "slct.u32.f32", "wwww", { 1, 2, 0x80000001 }, 2 },
	{ "mov.b16", "hh", { 0x1234 }, 0x1234 },
	{ "mov.b64", "dd", { MIN64 | 77 }, MIN64 | 77 },
	{ "and.pred", "ppp", { 1, 0 }, 0 },
	{ "or.pred", "ppp", { 1, 0 }, 1 },
	{ "xor.pred", "ppp", { 1, 1 }, 0 },
	{ "not.pred", "pp", { 0 }, 1 },
	{ "mov.pred", "pp", { 1 }, 1 },
};

CASE_TEST(arithmetic)
CASE_TEST(division)
CASE_TEST(bits)
CASE_TEST(compare)
CASE_TEST(choice)

/* 128-bit sum, difference and product by carry chains, against the host. */
START_TEST(test_carry)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p; .reg .b32 %a<4>, %b<4>, %d<4>; .reg .b64 %x<8>;\n"
	"ld.param.u64 %p, [p];\n"
	"ld.global.v4.u32 {%a0, %a1, %a2, %a3}, [%p];\n"
	"ld.global.v4.u32 {%b0, %b1, %b2, %b3}, [%p+16];\n"
	"add.cc.u32 %d0, %a0, %b0;\n"
	"addc.cc.u32 %d1, %a1, %b1;\n"
	"addc.cc.u32 %d2, %a2, %b2;\n"
	"addc.u32 %d3, %a3, %b3;\n"
	"st.global.v4.u32 [%p+32], {%d0, %d1, %d2, %d3};\n"
	"sub.cc.u32 %d0, %a0, %b0;\n"
	"subc.cc.u32 %d1, %a1, %b1;\n"
	"subc.cc.u32 %d2, %a2, %b2;\n"
	"subc.u32 %d3, %a3, %b3;\n"
	"st.global.v4.u32 [%p+48], {%d0, %d1, %d2, %d3};\n"
	"mul.lo.u32 %d0, %a0, %b0;\n"
	"mul.hi.u32 %d1, %a0, %b0;\n"
	"mad.lo.cc.u32 %d1, %a0, %b1, %d1;\n"
	"madc.hi.u32 %d2, %a0, %b1, 0;\n"
	"mad.lo.cc.u32 %d1, %a1, %b0, %d1;\n"
	"madc.hi.cc.u32 %d2, %a1, %b0, %d2;\n"
	"addc.u32 %d3, 0, 0;\n"
	"mad.lo.cc.u32 %d2, %a1, %b1, %d2;\n"
	"madc.hi.u32 %d3, %a1, %b1, %d3;\n"
	"st.global.v4.u32 [%p+64], {%d0, %d1, %d2, %d3};\n"
	"ld.global.v2.u64 {%x0, %x1}, [%p];\n"
	"ld.global.v2.u64 {%x2, %x3}, [%p+16];\n"
	"add.cc.u64 %x4, %x0, %x2;\n"
	"addc.u64 %x5, %x1, %x3;\n"
	"st.global.v2.u64 [%p+80], {%x4, %x5};\n"
	"ret;\n}\n";
	static const uint64_t words[] = { 0, 1, M64, MIN64, M32, 1ull << 32,
		0xfedcba9876543210, 0x0123456789abcdef };
	struct dev *d = dev_new();
	uint64_t *m = (uint64_t *)(void *)d->mem, params = DEV_BASE;
	unsigned __int128 a, b, r;
	size_t k, n;

	for (k = 0; k < 8; k++) {
		for (n = 0; n < 8; n++) {
			m[0] = words[k];
			m[1] = words[(k + 3) % 8];
			m[2] = words[n];
			m[3] = words[(n + 5) % 8];
			dev_run_ok(d, text, "k", 1, 1, 0, &params);
			a = (unsigned __int128)m[1] << 64 | m[0];
			b = (unsigned __int128)m[3] << 64 | m[2];
			r = a + b;
			ck_assert_mem_eq(m + 4, &r, 16);
			ck_assert_mem_eq(m + 10, &r, 16);
			r = a - b;
			ck_assert_mem_eq(m + 6, &r, 16);
			r = (unsigned __int128)m[0] * m[2];
			ck_assert_mem_eq(m + 8, &r, 16);
		}
	}
	dev_free(d);
}
END_TEST

/* The second result of setp, and a negated third source. */
START_TEST(test_setp_pair)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %o; .reg .b32 %t, %v<5>; .reg .pred %q<6>;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %o, %t, 16;\n"
	"add.u64 %p, %p, %o;\n"
	"setp.gt.u32 %q0, %t, 20;\n"
	"setp.lt.and.u32 %q1|%q2, %t, 10, !%q0;\n"
	"setp.eq.or.u32 %q3|%q4, %t, 15, %q0;\n"
	"selp.u32 %v0, 1, 0, %q1;\n"
	"selp.u32 %v1, 1, 0, %q2;\n"
	"selp.u32 %v2, 1, 0, %q3;\n"
	"selp.u32 %v3, 1, 0, %q4;\n"
	"st.global.v4.u32 [%p], {%v0, %v1, %v2, %v3};\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint64_t params = DEV_BASE;
	uint32_t t;

	dev_run_ok(d, text, "k", 1, 32, 0, &params);
	for (t = 0; t < 32; t++) {
		uint32_t want[4] = { t < 10, t >= 10 && t <= 20,
			t == 15 || t > 20, t != 15 || t > 20 };

		ck_assert_mem_eq(d->mem + 16 * t, want, 16);
	}
	dev_free(d);
}
END_TEST

/* mov between vectors and scalars */
START_TEST(test_pack)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %x; .reg .b32 %a, %b, %c; .reg .b16 %h<4>;\n"
	"ld.param.u64 %p, [p];\n"
	"ld.global.u64 %x, [%p];\n"
	"mov.b64 {%a, %b}, %x;\n"
	"mov.b64 %x, {%b, %a};\n"
	"st.global.u64 [%p+8], %x;\n"
	"mov.b64 {%h0, %h1, %h2, %h3}, %x;\n"
	"mov.b32 %c, {%h3, %h0};\n"
	"st.global.u32 [%p+16], %c;\n"
	"mov.b32 {%h0, _}, %c;\n"
	"st.global.u16 [%p+20], %h0;\n"
	"mov.b64 %x, {%h0, %h1, %h2, %h3};\n"
	"st.global.u64 [%p+24], %x;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint64_t *m = (uint64_t *)(void *)d->mem, params = DEV_BASE;

	m[0] = 0x0011223344556677;
	dev_run_ok(d, text, "k", 1, 1, 0, &params);
	ck_assert_uint_eq(m[1], 0x4455667700112233);
	ck_assert_uint_eq(m[2], 0x0000445522334455);
	ck_assert_uint_eq(m[3], 0x4455667700114455);
	dev_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_int");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_arithmetic);
	tcase_add_test(t, test_division);
	tcase_add_test(t, test_bits);
	tcase_add_test(t, test_compare);
	tcase_add_test(t, test_choice);
	tcase_add_test(t, test_carry);
	tcase_add_test(t, test_setp_pair);
	tcase_add_test(t, test_pack);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
