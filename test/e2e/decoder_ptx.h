/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of decoder.c as PTX text.  Every reduction has a fixed order and
 * no atomics are used, so a result does not depend on scheduling.
 *
 * Shapes: f32 throughout; matrices are row-major, a row is an output.
 */
#ifndef E2E_DECODER_PTX_H
#define E2E_DECODER_PTX_H

/* ---- pieces of matvec ---------------------------------------------------- */

/* Four columns of row `r`, `off` bytes into the current 512 columns. */
#define MATVEC_FMA(r, off)						\
	"	ld.global.v4.f32 {%w0, %w1, %w2, %w3}, [%row" #r "+" #off "];\n" \
	"	fma.rn.f32 %sum" #r ", %w0, %x0, %sum" #r ";\n"		\
	"	fma.rn.f32 %sum" #r ", %w1, %x1, %sum" #r ";\n"		\
	"	fma.rn.f32 %sum" #r ", %w2, %x2, %sum" #r ";\n"		\
	"	fma.rn.f32 %sum" #r ", %w3, %x3, %sum" #r ";\n"

#define MATVEC_COLUMNS(off)						\
	"	ld.global.v4.f32 {%x0, %x1, %x2, %x3}, [%px+" #off "];\n" \
	MATVEC_FMA(0, off) MATVEC_FMA(1, off) MATVEC_FMA(2, off)	\
	MATVEC_FMA(3, off) MATVEC_FMA(4, off) MATVEC_FMA(5, off)	\
	MATVEC_FMA(6, off) MATVEC_FMA(7, off)

/* Row r starts one row after row q. */
#define MATVEC_ROW(r, q)						\
	"	add.u64 %row" #r ", %row" #q ", %stride;\n"

#define MATVEC_NEXT(r)							\
	"	add.u64 %row" #r ", %row" #r ", 2048;\n"

#define MATVEC_ZERO(r)							\
	"	mov.f32 %sum" #r ", 0f00000000;\n"

/*
 * Lanes whose bit `bit` is set (%p) go on with row b, the others with row a;
 * both give away the half of the row they drop and take the half they keep.
 */
#define MATVEC_FOLD(a, b, bit)						\
	"	selp.f32 %give, %sum" #a ", %sum" #b ", %p;\n"		\
	"	selp.f32 %keep, %sum" #b ", %sum" #a ", %p;\n"		\
	"	shfl.sync.bfly.b32 %give, %give, " #bit ", 31, 0xffffffff;\n" \
	"	add.rn.f32 %sum" #a ", %keep, %give;\n"

#define MATVEC_HAS_BIT(bit)						\
	"	and.b32 %i, %lane, " #bit ";\n"				\
	"	setp.ne.u32 %p, %i, 0;\n"

/* ---- start of gate and add ----------------------------------------------- */

/* Leaves a[i] and b[i] in %v and %u, the address of a[i] in %a. */
#define DECODER_ELEMENT(name)						\
	".visible .entry " name "(.param .u64 a, .param .u64 b,\n"	\
	"	.param .u32 size)\n"					\
	"{\n"								\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %i, %n, %t;\n"				\
	"	.reg .u64 %a, %b, %o;\n"				\
	"	.reg .f32 %v, %u, %s;\n"				\
	"\n"								\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %n, %ntid.x;\n"					\
	"	mov.u32 %t, %tid.x;\n"					\
	"	mad.lo.u32 %i, %i, %n, %t;\n"				\
	"	ld.param.u32 %n, [size];\n"				\
	"	setp.ge.u32 %p, %i, %n;\n"				\
	"	@%p ret;\n"						\
	"	mul.wide.u32 %o, %i, 4;\n"				\
	"	ld.param.u64 %a, [a];\n"				\
	"	cvta.to.global.u64 %a, %a;\n"				\
	"	add.u64 %a, %a, %o;\n"					\
	"	ld.param.u64 %b, [b];\n"				\
	"	cvta.to.global.u64 %b, %b;\n"				\
	"	add.u64 %b, %b, %o;\n"					\
	"	ld.global.f32 %v, [%a];\n"				\
	"	ld.global.f32 %u, [%b];\n"

/* ---- pieces of argmax ---------------------------------------------------- */

/* Takes (%u, %j) if it beats the best so far, (%v, %i). */
#define ARGMAX_TAKE							\
	"	setp.gt.f32 %p, %u, %v;\n"				\
	"	setp.eq.f32 %r, %u, %v;\n"				\
	"	setp.lt.and.u32 %r, %j, %i, %r;\n"			\
	"	or.pred %p, %p, %r;\n"					\
	"	selp.f32 %v, %u, %v, %p;\n"				\
	"	selp.b32 %i, %j, %i, %p;\n"

#define ARGMAX_FOLD(lane)						\
	"	shfl.sync.bfly.b32 %u, %v, " #lane ", 31, 0xffffffff;\n" \
	"	shfl.sync.bfly.b32 %j, %i, " #lane ", 31, 0xffffffff;\n" \
	ARGMAX_TAKE

static const char decoder_ptx[] =
	".version 7.0\n"
	".target sm_75\n"
	".address_size 64\n"

/* ---- embed: x = table[token] --------------------------------------------- */
	".visible .entry embed(.param .u64 x, .param .u64 table, .param .u32 token,\n"
	"	.param .u32 dim)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %a, %b, %c;\n"
	"	.reg .u64 %x, %t, %o;\n"
	"	.reg .f32 %v;\n"
	"\n"
	"	mov.u32 %a, %ctaid.x;\n"
	"	mov.u32 %b, %ntid.x;\n"
	"	mov.u32 %c, %tid.x;\n"
	"	mad.lo.u32 %i, %a, %b, %c;\n"
	"	ld.param.u32 %n, [dim];\n"
	"	setp.ge.u32 %p, %i, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %x, [x];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	ld.param.u64 %t, [table];\n"
	"	cvta.to.global.u64 %t, %t;\n"
	"	ld.param.u32 %a, [token];\n"
	"	mad.lo.u32 %a, %a, %n, %i;	// element in the table\n"
	"	mul.wide.u32 %o, %a, 4;\n"
	"	add.u64 %t, %t, %o;\n"
	"	ld.global.f32 %v, [%t];\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %x, %x, %o;\n"
	"	st.global.f32 [%x], %v;\n"
	"	ret;\n"
	"}\n"

/*
 * ---- rmsnorm: y = x / sqrt(mean(x * x) + 1e-5) * w -----------------------
 * One block of 256 threads.
 */
	".visible .entry rmsnorm(.param .u64 y, .param .u64 x, .param .u64 w,\n"
	"	.param .u32 dim)\n"
	"{\n"
	"	.shared .align 4 .f32 part[8];\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %me, %i, %n, %lane, %at;\n"
	"	.reg .u64 %y, %x, %w, %o, %q;\n"
	"	.reg .f32 %v, %u, %sum;\n"
	"\n"
	"	ld.param.u64 %y, [y];\n"
	"	cvta.to.global.u64 %y, %y;\n"
	"	ld.param.u64 %x, [x];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	ld.param.u64 %w, [w];\n"
	"	cvta.to.global.u64 %w, %w;\n"
	"	ld.param.u32 %n, [dim];\n"
	"	mov.u32 %me, %tid.x;\n"
	"	mov.f32 %sum, 0f00000000;\n"
	"	mov.u32 %i, %me;\n"
	"	bra SQUARES_END;\n"
	"SQUARES:\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %q, %x, %o;\n"
	"	ld.global.f32 %v, [%q];\n"
	"	fma.rn.f32 %sum, %v, %v, %sum;\n"
	"	add.u32 %i, %i, 256;\n"
	"SQUARES_END:\n"
	"	setp.lt.u32 %p, %i, %n;\n"
	"	@%p bra SQUARES;\n"
	"\n"
	"	// Sum over the warp, then over the eight warps in their order.\n"
	"	shfl.sync.bfly.b32 %v, %sum, 16, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum, %sum, %v;\n"
	"	shfl.sync.bfly.b32 %v, %sum, 8, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum, %sum, %v;\n"
	"	shfl.sync.bfly.b32 %v, %sum, 4, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum, %sum, %v;\n"
	"	shfl.sync.bfly.b32 %v, %sum, 2, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum, %sum, %v;\n"
	"	shfl.sync.bfly.b32 %v, %sum, 1, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum, %sum, %v;\n"
	"	and.b32 %lane, %me, 31;\n"
	"	setp.eq.u32 %p, %lane, 0;\n"
	"	shr.u32 %at, %me, 5;\n"
	"	shl.b32 %at, %at, 2;\n"
	"	mov.u32 %i, part;\n"
	"	add.u32 %at, %at, %i;\n"
	"	@%p st.shared.f32 [%at], %sum;\n"
	"	bar.sync 0;\n"
	"	mov.f32 %sum, 0f00000000;\n"
	"	mov.u32 %at, 0;\n"
	"PARTS:\n"
	"	ld.shared.f32 %v, [%i];\n"
	"	add.rn.f32 %sum, %sum, %v;\n"
	"	add.u32 %i, %i, 4;\n"
	"	add.u32 %at, %at, 1;\n"
	"	setp.lt.u32 %p, %at, 8;\n"
	"	@%p bra PARTS;\n"
	"\n"
	"	cvt.rn.f32.u32 %v, %n;\n"
	"	div.rn.f32 %sum, %sum, %v;\n"
	"	add.rn.f32 %sum, %sum, 0f3727C5AC;	// 1e-5\n"
	"	sqrt.rn.f32 %sum, %sum;\n"
	"	rcp.rn.f32 %sum, %sum;\n"
	"	mov.u32 %i, %me;\n"
	"	bra SCALE_END;\n"
	"SCALE:\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %q, %x, %o;\n"
	"	ld.global.f32 %v, [%q];\n"
	"	mul.rn.f32 %v, %v, %sum;\n"
	"	add.u64 %q, %w, %o;\n"
	"	ld.global.f32 %u, [%q];\n"
	"	mul.rn.f32 %v, %v, %u;\n"
	"	add.u64 %q, %y, %o;\n"
	"	st.global.f32 [%q], %v;\n"
	"	add.u32 %i, %i, 256;\n"
	"SCALE_END:\n"
	"	setp.lt.u32 %p, %i, %n;\n"
	"	@%p bra SCALE;\n"
	"	ret;\n"
	"}\n"

/*
 * ---- matvec: y = W x -------------------------------------------------------
 * A warp makes eight rows.  Lane l reads columns 4l .. 4l+3 of every 128, so a
 * warp's load is 512 contiguous bytes, and one load of x serves eight rows.
 * rows is a multiple of 8, cols of 512.
 */
	".visible .entry matvec(.param .u64 y, .param .u64 w, .param .u64 x,\n"
	"	.param .u32 rows, .param .u32 cols)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %lane, %first, %cols;\n"
	"	.reg .u64 %px, %y, %stride, %o;\n"
	"	.reg .u64 %row<8>;\n"
	"	.reg .f32 %w<4>, %x<4>, %sum<8>, %give, %keep;\n"
	"\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	mov.u32 %n, %ntid.x;\n"
	"	mov.u32 %lane, %tid.x;\n"
	"	mad.lo.u32 %first, %i, %n, %lane;\n"
	"	shr.u32 %first, %first, 5;\n"
	"	shl.b32 %first, %first, 3;	// this warp's first row\n"
	"	and.b32 %lane, %lane, 31;\n"
	"	ld.param.u32 %n, [rows];\n"
	"	setp.ge.u32 %p, %first, %n;\n"
	"	@%p ret;\n"
	"	ld.param.u64 %px, [x];\n"
	"	cvta.to.global.u64 %px, %px;\n"
	"	ld.param.u64 %row0, [w];\n"
	"	cvta.to.global.u64 %row0, %row0;\n"
	"	ld.param.u32 %cols, [cols];\n"
	"	mul.wide.u32 %stride, %cols, 4;\n"
	"	mul.wide.u32 %o, %lane, 16;\n"
	"	add.u64 %px, %px, %o;\n"
	"	add.u64 %row0, %row0, %o;\n"
	"	cvt.u64.u32 %o, %first;\n"
	"	mad.lo.u64 %row0, %o, %stride, %row0;\n"
	MATVEC_ROW(1, 0) MATVEC_ROW(2, 1) MATVEC_ROW(3, 2) MATVEC_ROW(4, 3)
	MATVEC_ROW(5, 4) MATVEC_ROW(6, 5) MATVEC_ROW(7, 6)
	MATVEC_ZERO(0) MATVEC_ZERO(1) MATVEC_ZERO(2) MATVEC_ZERO(3)
	MATVEC_ZERO(4) MATVEC_ZERO(5) MATVEC_ZERO(6) MATVEC_ZERO(7)
	"COLUMNS:\n"
	MATVEC_COLUMNS(0) MATVEC_COLUMNS(512)
	MATVEC_COLUMNS(1024) MATVEC_COLUMNS(1536)
	"	add.u64 %px, %px, 2048;\n"
	MATVEC_NEXT(0) MATVEC_NEXT(1) MATVEC_NEXT(2) MATVEC_NEXT(3)
	MATVEC_NEXT(4) MATVEC_NEXT(5) MATVEC_NEXT(6) MATVEC_NEXT(7)
	"	sub.u32 %cols, %cols, 512;\n"
	"	setp.ne.u32 %p, %cols, 0;\n"
	"	@%p bra COLUMNS;\n"
	"\n"
	"	// Eight rows x 32 lanes to one row for every four lanes.\n"
	MATVEC_HAS_BIT(16)
	MATVEC_FOLD(0, 4, 16) MATVEC_FOLD(1, 5, 16)
	MATVEC_FOLD(2, 6, 16) MATVEC_FOLD(3, 7, 16)
	MATVEC_HAS_BIT(8)
	MATVEC_FOLD(0, 2, 8) MATVEC_FOLD(1, 3, 8)
	MATVEC_HAS_BIT(4)
	MATVEC_FOLD(0, 1, 4)
	"	shfl.sync.bfly.b32 %give, %sum0, 2, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum0, %sum0, %give;\n"
	"	shfl.sync.bfly.b32 %give, %sum0, 1, 31, 0xffffffff;\n"
	"	add.rn.f32 %sum0, %sum0, %give;\n"
	"	and.b32 %i, %lane, 3;\n"
	"	setp.ne.u32 %p, %i, 0;\n"
	"	@%p ret;\n"
	"	shr.u32 %i, %lane, 2;		// the row that is left here\n"
	"	add.u32 %i, %i, %first;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	ld.param.u64 %y, [y];\n"
	"	cvta.to.global.u64 %y, %y;\n"
	"	add.u64 %y, %y, %o;\n"
	"	st.global.f32 [%y], %sum0;\n"
	"	ret;\n"
	"}\n"

/*
 * ---- rope: turns pairs (i, i + 32) of every head of 64 by pos / 10000^(i/32)
 * In place; block 0 turns q, block 1 turns k.  A thread has one pair.
 */
	".visible .entry rope(.param .u64 q, .param .u64 k, .param .u32 pos)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %j;\n"
	"	.reg .u64 %v, %k, %o;\n"
	"	.reg .f32 %a, %b, %c, %s, %t, %u;\n"
	"\n"
	"	ld.param.u64 %v, [q];\n"
	"	ld.param.u64 %k, [k];\n"
	"	mov.u32 %i, %ctaid.x;\n"
	"	setp.ne.u32 %p, %i, 0;\n"
	"	selp.b64 %v, %k, %v, %p;\n"
	"	cvta.to.global.u64 %v, %v;\n"
	"	mov.u32 %j, %tid.x;\n"
	"	and.b32 %i, %j, 31;\n"
	"	cvt.rn.f32.u32 %t, %i;\n"
	"	mul.rn.f32 %t, %t, 0fBED49A78;	// -log2(10000) / 32\n"
	"	ex2.approx.f32 %t, %t;\n"
	"	ld.param.u32 %i, [pos];\n"
	"	cvt.rn.f32.u32 %u, %i;\n"
	"	mul.rn.f32 %t, %t, %u;\n"
	"	cos.approx.f32 %c, %t;\n"
	"	sin.approx.f32 %s, %t;\n"
	"	and.b32 %i, %j, 0xffffffe0;	// 32 pairs make 64 elements\n"
	"	add.u32 %i, %i, %j;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %v, %v, %o;\n"
	"	ld.global.f32 %a, [%v];\n"
	"	ld.global.f32 %b, [%v+128];\n"
	"	mul.rn.f32 %t, %b, %s;\n"
	"	neg.f32 %t, %t;\n"
	"	fma.rn.f32 %t, %a, %c, %t;\n"
	"	mul.rn.f32 %u, %b, %c;\n"
	"	fma.rn.f32 %u, %a, %s, %u;\n"
	"	st.global.f32 [%v], %t;\n"
	"	st.global.f32 [%v+128], %u;\n"
	"	ret;\n"
	"}\n"

/*
 * ---- attention: out = softmax(q K / 8) V ----------------------------------
 * A block of one warp for each head of 64; a lane has two of the 64 elements.
 * K and V hold a row of all heads, `row` elements, for every position.  The
 * softmax is made on the way: m is the greatest score so far, sum and acc are
 * relative to exp(m).
 */
	".visible .entry attention(.param .u64 out, .param .u64 q, .param .u64 k,\n"
	"	.param .u64 v, .param .u32 positions, .param .u32 row)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %i, %n, %head;\n"
	"	.reg .u64 %out, %q, %k, %v, %o, %stride;\n"
	"	.reg .f32 %q0, %q1, %a, %b, %s, %t, %m, %new, %sum, %acc0, %acc1;\n"
	"\n"
	"	ld.param.u64 %out, [out];\n"
	"	cvta.to.global.u64 %out, %out;\n"
	"	ld.param.u64 %q, [q];\n"
	"	cvta.to.global.u64 %q, %q;\n"
	"	ld.param.u64 %k, [k];\n"
	"	cvta.to.global.u64 %k, %k;\n"
	"	ld.param.u64 %v, [v];\n"
	"	cvta.to.global.u64 %v, %v;\n"
	"	ld.param.u32 %n, [positions];\n"
	"	ld.param.u32 %i, [row];\n"
	"	mul.wide.u32 %stride, %i, 4;\n"
	"	mov.u32 %head, %ctaid.x;\n"
	"	shl.b32 %head, %head, 8;	// 64 elements of 4 bytes\n"
	"	mov.u32 %i, %tid.x;\n"
	"	shl.b32 %i, %i, 3;\n"
	"	add.u32 %i, %i, %head;\n"
	"	cvt.u64.u32 %o, %i;\n"
	"	add.u64 %out, %out, %o;\n"
	"	add.u64 %q, %q, %o;\n"
	"	add.u64 %k, %k, %o;\n"
	"	add.u64 %v, %v, %o;\n"
	"	ld.global.v2.f32 {%q0, %q1}, [%q];\n"
	"	mul.rn.f32 %q0, %q0, 0f3E38AA3B;	// log2(e) / 8: scores base 2\n"
	"	mul.rn.f32 %q1, %q1, 0f3E38AA3B;\n"
	"	mov.f32 %m, 0fFF800000;			// -infinity\n"
	"	mov.f32 %sum, 0f00000000;\n"
	"	mov.f32 %acc0, 0f00000000;\n"
	"	mov.f32 %acc1, 0f00000000;\n"
	"POSITION:\n"
	"	ld.global.v2.f32 {%a, %b}, [%k];\n"
	"	mul.rn.f32 %s, %q0, %a;\n"
	"	fma.rn.f32 %s, %q1, %b, %s;\n"
	"	shfl.sync.bfly.b32 %t, %s, 16, 31, 0xffffffff;\n"
	"	add.rn.f32 %s, %s, %t;\n"
	"	shfl.sync.bfly.b32 %t, %s, 8, 31, 0xffffffff;\n"
	"	add.rn.f32 %s, %s, %t;\n"
	"	shfl.sync.bfly.b32 %t, %s, 4, 31, 0xffffffff;\n"
	"	add.rn.f32 %s, %s, %t;\n"
	"	shfl.sync.bfly.b32 %t, %s, 2, 31, 0xffffffff;\n"
	"	add.rn.f32 %s, %s, %t;\n"
	"	shfl.sync.bfly.b32 %t, %s, 1, 31, 0xffffffff;\n"
	"	add.rn.f32 %s, %s, %t;\n"
	"	max.f32 %new, %m, %s;\n"
	"	sub.rn.f32 %t, %m, %new;\n"
	"	ex2.approx.f32 %t, %t;		// what was so far shrinks by this\n"
	"	sub.rn.f32 %s, %s, %new;\n"
	"	ex2.approx.f32 %s, %s;\n"
	"	mov.f32 %m, %new;\n"
	"	fma.rn.f32 %sum, %sum, %t, %s;\n"
	"	ld.global.v2.f32 {%a, %b}, [%v];\n"
	"	mul.rn.f32 %a, %a, %s;\n"
	"	mul.rn.f32 %b, %b, %s;\n"
	"	fma.rn.f32 %acc0, %acc0, %t, %a;\n"
	"	fma.rn.f32 %acc1, %acc1, %t, %b;\n"
	"	add.u64 %k, %k, %stride;\n"
	"	add.u64 %v, %v, %stride;\n"
	"	sub.u32 %n, %n, 1;\n"
	"	setp.ne.u32 %p, %n, 0;\n"
	"	@%p bra POSITION;\n"
	"	div.rn.f32 %acc0, %acc0, %sum;\n"
	"	div.rn.f32 %acc1, %acc1, %sum;\n"
	"	st.global.v2.f32 [%out], {%acc0, %acc1};\n"
	"	ret;\n"
	"}\n"

/* ---- gate: a = silu(a) * b ----------------------------------------------- */
	DECODER_ELEMENT("gate")
	"	mul.rn.f32 %s, %v, 0fBFB8AA3B;	// -log2(e)\n"
	"	ex2.approx.f32 %s, %s;\n"
	"	add.rn.f32 %s, %s, 0f3F800000;\n"
	"	div.rn.f32 %v, %v, %s;\n"
	"	mul.rn.f32 %v, %v, %u;\n"
	"	st.global.f32 [%a], %v;\n"
	"	ret;\n"
	"}\n"

/* ---- add: a = a + b ------------------------------------------------------ */
	DECODER_ELEMENT("add")
	"	add.rn.f32 %v, %v, %u;\n"
	"	st.global.f32 [%a], %v;\n"
	"	ret;\n"
	"}\n"

/*
 * ---- argmax: the index of the greatest element, the lowest of equals -----
 * One block of 256 threads; size is at least 256.
 */
	".visible .entry argmax(.param .u64 out, .param .u64 x, .param .u32 size)\n"
	"{\n"
	"	.shared .align 4 .f32 value[8];\n"
	"	.shared .align 4 .u32 index[8];\n"
	"	.reg .pred %p, %r;\n"
	"	.reg .u32 %i, %j, %n, %me, %at, %pv, %pi;\n"
	"	.reg .u64 %x, %q, %o;\n"
	"	.reg .f32 %v, %u;\n"
	"\n"
	"	ld.param.u64 %x, [x];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	ld.param.u32 %n, [size];\n"
	"	mov.u32 %me, %tid.x;\n"
	"	mov.u32 %i, %me;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %q, %x, %o;\n"
	"	ld.global.f32 %v, [%q];\n"
	"	add.u32 %j, %i, 256;\n"
	"	bra SCAN_END;\n"
	"SCAN:\n"
	"	mul.wide.u32 %o, %j, 4;\n"
	"	add.u64 %q, %x, %o;\n"
	"	ld.global.f32 %u, [%q];\n"
	ARGMAX_TAKE
	"	add.u32 %j, %j, 256;\n"
	"SCAN_END:\n"
	"	setp.lt.u32 %p, %j, %n;\n"
	"	@%p bra SCAN;\n"
	ARGMAX_FOLD(16) ARGMAX_FOLD(8) ARGMAX_FOLD(4) ARGMAX_FOLD(2)
	ARGMAX_FOLD(1)
	"	mov.u32 %pv, value;\n"
	"	mov.u32 %pi, index;\n"
	"	shr.u32 %at, %me, 5;\n"
	"	shl.b32 %at, %at, 2;\n"
	"	add.u32 %pv, %pv, %at;\n"
	"	add.u32 %pi, %pi, %at;\n"
	"	and.b32 %j, %me, 31;\n"
	"	setp.eq.u32 %p, %j, 0;\n"
	"	@%p st.shared.f32 [%pv], %v;\n"
	"	@%p st.shared.u32 [%pi], %i;\n"
	"	bar.sync 0;\n"
	"	setp.ne.u32 %p, %me, 0;\n"
	"	@%p ret;\n"
	"	mov.u32 %at, 0;\n"
	"WARPS:\n"
	"	ld.shared.f32 %u, [%pv];\n"
	"	ld.shared.u32 %j, [%pi];\n"
	ARGMAX_TAKE
	"	add.u32 %pv, %pv, 4;\n"
	"	add.u32 %pi, %pi, 4;\n"
	"	add.u32 %at, %at, 1;\n"
	"	setp.lt.u32 %p, %at, 8;\n"
	"	@%p bra WARPS;\n"
	"	ld.param.u64 %x, [out];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	st.global.u32 [%x], %i;\n"
	"	ret;\n"
	"}\n";

#endif
