/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every spelling of an instruction that was seen in compiled programs (the
 * census of cuda-samples, llm.c and kernels of our own) is understood and can
 * be executed, by full and by partial warps.  What each computes is tested
 * with its kind elsewhere.
 */
#include "test/unit/ptx_util.h"
#include "test/unit/unit.h"

static const char *const seen[] = {
	"abs.f32 %f0,%f1",
	"abs.f64 %g0,%g1",
	"abs.s32 %r0,%r1",
	"activemask.b32 %r0",
	"add.cc.u32 %r0,%r1,%r2",
	"add.f16x2 %r0,%r1,%r2",
	"add.f32 %f0,%f1,%f2",
	"add.f64 %g0,%g1,%g2",
	"add.rn.f32 %f0,%f1,%f2",
	"add.rn.f64 %g0,%g1,%g2",
	"add.s16 %h0,%h1,%h2",
	"add.s32 %r0,%r1,%r2",
	"add.s64 %d0,%d1,%d2",
	"add.u64 %d0,%d1,%d2",
	"addc.cc.u32 %r0,%r1,%r2",
	"addc.u32 %r0,%r1,%r2",
	"and.b16 %h0,%h1,%h2",
	"and.b32 %r0,%r1,%r2",
	"and.b64 %d0,%d1,%d2",
	"and.pred %p0,%p1,%p2",
	"atom.add.acq_rel.cta.u64 %d0,[%d1],%d1",
	"atom.add.acquire.cta.u32 %r0,[%d1],%r1",
	"atom.add.relaxed.cta.u32 %r0,[%d1],%r1",
	"atom.add.relaxed.cta.u64 %d0,[%d1],%d1",
	"atom.add.release.gpu.u32 %r0,[%d1],%r1",
	"atom.global.add.f32 %f0,[%d1],%f1",
	"atom.global.add.f64 %g0,[%d1],%g1",
	"atom.global.add.u32 %r0,[%d1],%r1",
	"atom.global.and.b32 %r0,[%d1],%r1",
	"atom.global.cas.b32 %r0,[%d1],%r1,%r2",
	"atom.global.cas.b64 %d0,[%d1],%d1,%d2",
	"atom.global.dec.u32 %r0,[%d1],%r1",
	"atom.global.exch.b32 %r0,[%d1],%r1",
	"atom.global.inc.u32 %r0,[%d1],%r1",
	"atom.global.max.s32 %r0,[%d1],%r1",
	"atom.global.max.u32 %r0,[%d1],%r1",
	"atom.global.min.s32 %r0,[%d1],%r1",
	"atom.global.or.b32 %r0,[%d1],%r1",
	"atom.global.sys.add.f64 %g0,[%d1],%g1",
	"atom.global.sys.add.u32 %r0,[%d1],%r1",
	"atom.global.sys.and.b32 %r0,[%d1],%r1",
	"atom.global.sys.cas.b32 %r0,[%d1],%r1,%r2",
	"atom.global.sys.dec.u32 %r0,[%d1],%r1",
	"atom.global.sys.exch.b32 %r0,[%d1],%r1",
	"atom.global.sys.inc.u32 %r0,[%d1],%r1",
	"atom.global.sys.max.s32 %r0,[%d1],%r1",
	"atom.global.sys.min.s32 %r0,[%d1],%r1",
	"atom.global.sys.or.b32 %r0,[%d1],%r1",
	"atom.global.sys.xor.b32 %r0,[%d1],%r1",
	"atom.global.xor.b32 %r0,[%d1],%r1",
	"atom.or.acq_rel.cta.b32 %r0,[%d1],%r1",
	"atom.shared.add.f32 %f0,[sm],%f1",
	"atom.shared.add.f64 %g0,[sm],%g1",
	"atom.shared.add.u32 %r0,[sm],%r1",
	"atom.shared.exch.b32 %r0,[sm],%r1",
	"bar.sync 0",
	"bar.warp.sync %r4",
	"barrier.sync 0",
	"bfi.b32 %r0,%r1,%r2,%r3,%r4",
	"bfi.b64 %d0,%d1,%d2,%r3,%r4",
	"bfind.shiftamt.u32 %r0,%r1",
	"bra L",
	"bra.uni L",
	"brev.b32 %r0,%r1",
	"call.uni fn",
	"clz.b32 %r0,%r1",
	"clz.b64 %r0,%d1",
	"copysign.f32 %f0,%f1,%f2",
	"cvt.f32.f16 %f0,%h1",
	"cvt.f64.f32 %g0,%f1",
	"cvt.rmi.f32.f32 %f0,%f1",
	"cvt.rn.f16.f32 %h0,%f1",
	"cvt.rn.f32.f64 %f0,%g1",
	"cvt.rn.f32.s32 %f0,%r1",
	"cvt.rn.f32.u32 %f0,%r1",
	"cvt.rn.f64.s32 %g0,%r1",
	"cvt.rn.f64.s64 %g0,%d1",
	"cvt.rni.f32.f32 %f0,%f1",
	"cvt.rni.s32.f32 %r0,%f1",
	"cvt.rni.s32.f64 %r0,%g1",
	"cvt.rzi.f32.f32 %f0,%f1",
	"cvt.rzi.s32.f32 %r0,%f1",
	"cvt.rzi.u32.f32 %r0,%f1",
	"cvt.s32.s8 %r0,%h1",
	"cvt.s64.s32 %d0,%r1",
	"cvt.sat.f32.f32 %f0,%f1",
	"cvt.u16.u32 %h0,%r1",
	"cvt.u32.u16 %r0,%h1",
	"cvt.u32.u64 %r0,%d1",
	"cvt.u64.u16 %d0,%h1",
	"cvt.u64.u32 %d0,%r1",
	"cvta.global.u64 %d0,%d1",
	"cvta.local.u64 %d0,%d1",
	"cvta.shared.u64 %d0,%d1",
	"cvta.to.global.u64 %d0,%d1",
	"div.approx.f32 %f0,%f1,%f2",
	"div.approx.ftz.f32 %f0,%f1,%f2",
	"div.rn.f32 %f0,%f1,%f2",
	"div.rn.f64 %g0,%g1,%g2",
	"div.s32 %r0,%r1,%r2",
	"div.s64 %d0,%d1,%d2",
	"div.u16 %h0,%h1,%h2",
	"div.u32 %r0,%r1,%r2",
	"dp4a.s32.s32 %r0,%r1,%r2,%r3",
	"ex2.approx.f32 %f0,%f1",
	"ex2.approx.ftz.f32 %f0,%f1",
	"fence.sc.cta",
	"fma.rm.f32 %f0,%f1,%f2,%f3",
	"fma.rn.f16 %h0,%h1,%h2,%h3",
	"fma.rn.f16x2 %r0,%r1,%r2,%r3",
	"fma.rn.f32 %f0,%f1,%f2,%f3",
	"fma.rn.f64 %g0,%g1,%g2,%g3",
	"ld.acquire.cta.b64 %d0,[%d1]",
	"ld.acquire.cta.u32 %r0,[%d1]",
	"ld.acquire.gpu.u32 %r0,[%d1]",
	"ld.acquire.sys.global.u8 %h0,[%d1]",
	"ld.const.f32 %f0,[cm]",
	"ld.const.u32 %r0,[cm]",
	"ld.global.cs.f32 %f0,[%d1]",
	"ld.global.f32 %f0,[%d1]",
	"ld.global.f64 %g0,[%d1]",
	"ld.global.nc.f32 %f0,[%d1]",
	"ld.global.nc.f64 %g0,[%d1]",
	"ld.global.nc.u32 %r0,[%d1]",
	"ld.global.nc.u64 %d0,[%d1]",
	"ld.global.nc.v2.f32 {%f0,%f1},[%d1]",
	"ld.global.nc.v2.f64 {%g0,%g1},[%d1]",
	"ld.global.nc.v4.u32 {%r0,%r1,%r2,%r3},[%d1]",
	"ld.global.s8 %h0,[%d1]",
	"ld.global.u16 %h0,[%d1]",
	"ld.global.u32 %r0,[%d1]",
	"ld.global.u64 %d0,[%d1]",
	"ld.global.u8 %h0,[%d1]",
	"ld.global.v2.u32 {%r0,%r1},[%d1]",
	"ld.global.v4.f32 {%f0,%f1,%f2,%f3},[%d1]",
	"ld.global.v4.u32 {%r0,%r1,%r2,%r3},[%d1]",
	"ld.local.f32 %f0,[lm]",
	"ld.local.u32 %r0,[lm]",
	"ld.local.u64 %d0,[lm]",
	"ld.local.u8 %h0,[lm]",
	"ld.param.b32 %r0,[pp]",
	"ld.param.f32 %f0,[pp]",
	"ld.param.f64 %g0,[pp]",
	"ld.param.u16 %h0,[pp]",
	"ld.param.u32 %r0,[pp]",
	"ld.param.u64 %d0,[pp]",
	"ld.param.u8 %h0,[pp]",
	"ld.param.v2.u32 {%r0,%r1},[pp]",
	"ld.param.v2.u8 {%h0,%h1},[pp]",
	"ld.relaxed.cta.b32 %r0,[%d1]",
	"ld.shared.f32 %f0,[sm]",
	"ld.shared.f64 %g0,[sm]",
	"ld.shared.u16 %h0,[sm]",
	"ld.shared.u32 %r0,[sm]",
	"ld.shared.u64 %d0,[sm]",
	"ld.shared.u8 %h0,[sm]",
	"ld.shared.v2.f32 {%f0,%f1},[sm]",
	"ld.shared.v2.f64 {%g0,%g1},[sm]",
	"ld.shared.v2.u16 {%h0,%h1},[sm]",
	"ld.shared.v4.f32 {%f0,%f1,%f2,%f3},[sm]",
	"ld.shared.v4.u32 {%r0,%r1,%r2,%r3},[sm]",
	"ld.volatile.global.u32 %r0,[%d1]",
	"ld.volatile.shared.f32 %f0,[sm]",
	"ld.volatile.shared.u32 %r0,[sm]",
	"lg2.approx.f32 %f0,%f1",
	"mad.lo.cc.u32 %r0,%r1,%r2,%r3",
	"mad.lo.s32 %r0,%r1,%r2,%r3",
	"mad.wide.u32 %d0,%r1,%r2,%d3",
	"madc.hi.cc.u32 %r0,%r1,%r2,%r3",
	"madc.hi.u32 %r0,%r1,%r2,%r3",
	"madc.lo.cc.u32 %r0,%r1,%r2,%r3",
	"match.any.sync.b32 %r0,%r1,%r4",
	"match.any.sync.b64 %r0,%d1,%r4",
	"max.f32 %f0,%f1,%f2",
	"max.f64 %g0,%g1,%g2",
	"max.s32 %r0,%r1,%r2",
	"max.u16 %h0,%h1,%h2",
	"max.u32 %r0,%r1,%r2",
	"membar.gl",
	"membar.sys",
	"min.f32 %f0,%f1,%f2",
	"min.s32 %r0,%r1,%r2",
	"min.u16 %h0,%h1,%h2",
	"min.u32 %r0,%r1,%r2",
	"mov.b32 %r0,%r1",
	"mov.b64 %d0,%d1",
	"mov.f32 %f0,%f1",
	"mov.f64 %g0,%g1",
	"mov.pred %p0,%p1",
	"mov.u16 %h0,%h1",
	"mov.u32 %r0,%r1",
	"mov.u64 %d0,%d1",
	"mul.f16x2 %r0,%r1,%r2",
	"mul.f32 %f0,%f1,%f2",
	"mul.f64 %g0,%g1,%g2",
	"mul.hi.s32 %r0,%r1,%r2",
	"mul.hi.u32 %r0,%r1,%r2",
	"mul.hi.u64 %d0,%d1,%d2",
	"mul.lo.s32 %r0,%r1,%r2",
	"mul.lo.s64 %d0,%d1,%d2",
	"mul.lo.u32 %r0,%r1,%r2",
	"mul.rn.f32 %f0,%f1,%f2",
	"mul.rn.f64 %g0,%g1,%g2",
	"mul.wide.s32 %d0,%r1,%r2",
	"mul.wide.u32 %d0,%r1,%r2",
	"nanosleep.u32 %r1",
	"neg.f32 %f0,%f1",
	"neg.f64 %g0,%g1",
	"neg.s32 %r0,%r1",
	"neg.s64 %d0,%d1",
	"not.b32 %r0,%r1",
	"not.pred %p0,%p1",
	"or.b16 %h0,%h1,%h2",
	"or.b32 %r0,%r1,%r2",
	"or.b64 %d0,%d1,%d2",
	"or.pred %p0,%p1,%p2",
	"popc.b32 %r0,%r1",
	"prmt.b32 %r0,%r1,%r2,%r3",
	"rcp.approx.ftz.f32 %f0,%f1",
	"rcp.rn.f32 %f0,%f1",
	"red.and.release.cta.b32 [%d1],%r1",
	"rem.s32 %r0,%r1,%r2",
	"rem.u32 %r0,%r1,%r2",
	"rem.u64 %d0,%d1,%d2",
	"ret",
	"rsqrt.approx.f32 %f0,%f1",
	"selp.b16 %h0,%h1,%h2,%p1",
	"selp.b32 %r0,%r1,%r2,%p1",
	"selp.b64 %d0,%d1,%d2,%p1",
	"selp.f32 %f0,%f1,%f2,%p1",
	"selp.f64 %g0,%g1,%g2,%p1",
	"selp.u16 %h0,%h1,%h2,%p1",
	"selp.u32 %r0,%r1,%r2,%p1",
	"selp.u64 %d0,%d1,%d2,%p1",
	"setp.eq.b16 %p0,%h1,%h2",
	"setp.eq.b32 %p0,%r1,%r2",
	"setp.eq.f32 %p0,%f1,%f2",
	"setp.eq.f64 %p0,%g1,%g2",
	"setp.eq.s16 %p0,%h1,%h2",
	"setp.eq.s32 %p0,%r1,%r2",
	"setp.eq.s64 %p0,%d1,%d2",
	"setp.ge.f32 %p0,%f1,%f2",
	"setp.ge.s32 %p0,%r1,%r2",
	"setp.ge.s64 %p0,%d1,%d2",
	"setp.ge.u32 %p0,%r1,%r2",
	"setp.ge.u64 %p0,%d1,%d2",
	"setp.geu.f32 %p0,%f1,%f2",
	"setp.gt.f32 %p0,%f1,%f2",
	"setp.gt.s16 %p0,%h1,%h2",
	"setp.gt.s32 %p0,%r1,%r2",
	"setp.gt.s64 %p0,%d1,%d2",
	"setp.gt.u32 %p0,%r1,%r2",
	"setp.gt.u64 %p0,%d1,%d2",
	"setp.gtu.f32 %p0,%f1,%f2",
	"setp.le.s32 %p0,%r1,%r2",
	"setp.le.u16 %p0,%h1,%h2",
	"setp.le.u32 %p0,%r1,%r2",
	"setp.le.u64 %p0,%d1,%d2",
	"setp.leu.f32 %p0,%f1,%f2",
	"setp.lt.f32 %p0,%f1,%f2",
	"setp.lt.f64 %p0,%g1,%g2",
	"setp.lt.s32 %p0,%r1,%r2",
	"setp.lt.s64 %p0,%d1,%d2",
	"setp.lt.u16 %p0,%h1,%h2",
	"setp.lt.u32 %p0,%r1,%r2",
	"setp.lt.u64 %p0,%d1,%d2",
	"setp.ltu.f32 %p0,%f1,%f2",
	"setp.ltu.f64 %p0,%g1,%g2",
	"setp.ne.s16 %p0,%h1,%h2",
	"setp.ne.s32 %p0,%r1,%r2",
	"setp.ne.s64 %p0,%d1,%d2",
	"setp.neu.f32 %p0,%f1,%f2",
	"shf.l.wrap.b32 %r0,%r1,%r2,%r3",
	"shfl.sync.bfly.b32 %r0|%p0,%r1,%r2,%r3,%r4",
	"shfl.sync.down.b32 %r0|%p0,%r1,%r2,%r3,%r4",
	"shfl.sync.idx.b32 %r0|%p0,%r1,%r2,%r3,%r4",
	"shfl.sync.up.b32 %r0|%p0,%r1,%r2,%r3,%r4",
	"shl.b16 %h0,%h1,%r2",
	"shl.b32 %r0,%r1,%r2",
	"shl.b64 %d0,%d1,%r2",
	"shr.s32 %r0,%r1,%r2",
	"shr.s64 %d0,%d1,%r2",
	"shr.u32 %r0,%r1,%r2",
	"shr.u64 %d0,%d1,%r2",
	"sin.approx.f32 %f0,%f1",
	"sqrt.rn.f32 %f0,%f1",
	"sqrt.rn.f64 %g0,%g1",
	"st.global.cs.f32 [%d1],%f0",
	"st.global.f32 [%d1],%f0",
	"st.global.f64 [%d1],%g0",
	"st.global.u16 [%d1],%h0",
	"st.global.u32 [%d1],%r0",
	"st.global.u64 [%d1],%d0",
	"st.global.u8 [%d1],%h0",
	"st.global.v2.f32 [%d1],{%f0,%f1}",
	"st.global.v2.u32 [%d1],{%r0,%r1}",
	"st.global.v4.f32 [%d1],{%f0,%f1,%f2,%f3}",
	"st.global.v4.u32 [%d1],{%r0,%r1,%r2,%r3}",
	"st.local.u16 [lm],%h0",
	"st.local.u32 [lm],%r0",
	"st.local.u64 [lm],%d0",
	"st.local.u8 [lm],%h0",
	"st.local.v2.u32 [lm],{%r0,%r1}",
	"st.local.v2.u8 [lm],{%h0,%h1}",
	"st.local.v4.f32 [lm],{%f0,%f1,%f2,%f3}",
	"st.param.b32 [q],%r0",
	"st.param.b64 [q],%d0",
	"st.param.f32 [q],%f0",
	"st.param.f64 [q],%g0",
	"st.relaxed.cta.b32 [%d1],%r0",
	"st.release.sys.global.u8 [%d1],%h0",
	"st.shared.f32 [sm],%f0",
	"st.shared.f64 [sm],%g0",
	"st.shared.u16 [sm],%h0",
	"st.shared.u32 [sm],%r0",
	"st.shared.u64 [sm],%d0",
	"st.shared.u8 [sm],%h0",
	"st.shared.v2.f32 [sm],{%f0,%f1}",
	"st.shared.v2.u16 [sm],{%h0,%h1}",
	"st.shared.v4.u32 [sm],{%r0,%r1,%r2,%r3}",
	"st.volatile.shared.f32 [sm],%f0",
	"st.volatile.shared.u32 [sm],%r0",
	"sub.cc.u32 %r0,%r1,%r2",
	"sub.f32 %f0,%f1,%f2",
	"sub.s32 %r0,%r1,%r2",
	"sub.s64 %d0,%d1,%d2",
	"subc.cc.u32 %r0,%r1,%r2",
	"subc.u32 %r0,%r1,%r2",
	"trap",
	"vote.sync.all.pred %p0,%p1,%r4",
	"vote.sync.any.pred %p0,%p1,%r4",
	"vote.sync.ballot.b32 %r0,%p1,%r4",
	"xor.b32 %r0,%r1,%r2",
	"xor.b64 %d0,%d1,%d2",
	"xor.pred %p0,%p1,%p2",
};

#define NR (sizeof(seen) / sizeof(seen[0]))

/* %d1 points to memory, %r4 is the mask of active lanes, the rest is small. */
#define BEFORE PTX_HEAD \
	".const .align 16 .b8 cm[64];\n" \
	".func fn() { ret; }\n" \
	".func pf(.param .align 16 .b8 q[32]) { ret; }\n" \
	".visible .entry k(.param .u64 p, .param .align 16 .b8 pp[32]) {\n" \
	".reg .pred %p<3>; .reg .b16 %h<5>; .reg .b32 %r<6>;\n" \
	".reg .b64 %d<5>; .reg .f32 %f<5>; .reg .f64 %g<5>;\n" \
	".shared .align 16 .b8 sm[64]; .local .align 16 .b8 lm[64];\n" \
	"mov.u32 %r0, 0; mov.u32 %r1, 9; mov.u32 %r2, 3; mov.u32 %r3, 31;\n" \
	"mov.u16 %h1, 7; mov.u16 %h2, 2; mov.u16 %h3, 1;\n" \
	"mov.u64 %d2, 5; mov.u64 %d3, 6; ld.param.u64 %d1, [p];\n" \
	"mov.f32 %f1, 0f3fc00000; mov.f32 %f2, 0f40000000;\n" \
	"mov.f32 %f3, 0f3f800000; mov.f64 %g1, 0d3ff8000000000000;\n" \
	"mov.f64 %g2, 0d4000000000000000; mov.f64 %g3, 0d3ff0000000000000;\n" \
	"setp.eq.u32 %p1, %r1, 9; setp.eq.u32 %p2, %r1, 8;\n" \
	"activemask.b32 %r4;\n"
#define AFTER "L:\nret;\n}\n"

static enum ptx_status run(struct dev *d, const char *op, uint32_t threads)
{
	struct {
		uint64_t p;
		uint64_t pad;
		uint8_t pp[32];
	} params = { .p = DEV_BASE };
	const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { threads, 1, 1 };
	char text[4096];
	struct ptx_module *m;
	enum ptx_status s;
	int n;

	/* A parameter of a call is written inside the call's braces. */
	if (strncmp(op, "st.param", 8) == 0)
		n = snprintf(text, sizeof(text), "%s{ .param .align 16 .b8 "
			"q[32];\n%s;\ncall.uni pf, (q);\n}\n%s", BEFORE, op,
			AFTER);
	else
		n = snprintf(text, sizeof(text), "%s%s;\n%s", BEFORE, op,
			AFTER);
	ck_assert_int_lt(n, (int)sizeof(text));
	m = dev_load(d, text);
	ptx_module_variable(m, 0)->address = DEV_BASE + 4096;
	ck_assert_int_eq(ptx_module_relocate(m, &d->error), PTX_OK);
	s = dev_run3(d, m, "k", grid, block, 0, &params);
	ptx_module_destroy(m);
	return s;
}

START_TEST(test_seen)
{
	struct dev *d = dev_new();
	const char *op = seen[_i];
	enum ptx_status want = strncmp(op, "trap", 4) == 0 ? PTX_TRAP : PTX_OK;

	for (uint32_t threads = 32; threads > 0; threads = threads * 7 / 32) {
		enum ptx_status s = run(d, op, threads);

		ck_assert_msg(s == want, "%s by %u threads: %s, line %u: %s",
			op, threads, ptx_status_name(s), d->fault.line,
			d->fault.message);
	}
	dev_free(d);
}
END_TEST

/* A line that is none is noticed, or the rest would say nothing. */
START_TEST(test_unseen)
{
	static const char text[] = BEFORE "add.f16x3 %r0,%r1,%r2;\n" AFTER;
	struct ptx_error error;
	struct ptx_module *m;

	ck_assert_int_eq(ptx_module_create(text, strlen(text), &m, &error),
		PTX_UNSUPPORTED);
	ck_assert_uint_eq(NR, 335);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_seen");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_seen, 0, (int)NR);
	tcase_add_test(t, test_unseen);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
