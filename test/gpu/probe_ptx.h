/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probes' kernels as PTX text, for the driver's own compiler.
 * probe_ptx_base runs on every device of compute capability 7.5; the others
 * need 9.0 and, where that is missing, fail to load.
 */
#ifndef GPU_PROBE_PTX_H
#define GPU_PROBE_PTX_H

#define PROBE_PTX_HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

/* %i: this thread's number in the grid, %step: threads in the grid. */
#define PROBE_PTX_GRID							\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %n, %ntid.x;\n"					\
	"	mov.u32 %t, %tid.x;\n"					\
	"	mad.lo.u32 %i, %i, %n, %t;\n"				\
	"	mov.u32 %t, %nctaid.x;\n"				\
	"	mul.lo.u32 %step, %t, %n;\n"

#define PROBE_PTX_REGS							\
	"	.reg .pred %q;\n"					\
	"	.reg .u32 %i, %n, %t, %step, %size, %seed, %v, %w, %r;\n" \
	"	.reg .u32 %v0, %v1, %v2, %v3;\n"			\
	"	.reg .u64 %p, %o, %a, %b;\n"

#define PROBE_PTX_POINTER(name, reg)					\
	"	ld.param.u64 " reg ", [" name "];\n"			\
	"	cvta.to.global.u64 " reg ", " reg ";\n"

/* Counts words i of p that are not i * 0x9e3779b1 + seed. */
#define PROBE_PTX_CHECK(name, load)					\
	".visible .entry " name "(.param .u64 p, .param .u32 size,\n"	\
	"	.param .u32 seed, .param .u64 bad)\n"			\
	"{\n"								\
	PROBE_PTX_REGS							\
	PROBE_PTX_GRID							\
	PROBE_PTX_POINTER("p", "%p")					\
	PROBE_PTX_POINTER("bad", "%b")					\
	"	ld.param.u32 %size, [size];\n"				\
	"	ld.param.u32 %seed, [seed];\n"				\
	"again:\n"							\
	"	setp.ge.u32 %q, %i, %size;\n"				\
	"	@%q ret;\n"						\
	"	mul.wide.u32 %o, %i, 4;\n"				\
	"	add.u64 %a, %p, %o;\n"					\
	"	" load " %v, [%a];\n"					\
	"	mad.lo.u32 %w, %i, 0x9e3779b1, %seed;\n"		\
	"	add.u32 %i, %i, %step;\n"				\
	"	setp.eq.u32 %q, %v, %w;\n"				\
	"	@%q bra again;\n"					\
	"	atom.global.add.u32 %v, [%b], 1;\n"			\
	"	bra again;\n"						\
	"}\n"

static const char probe_ptx_base[] =
	PROBE_PTX_HEAD
	".visible .entry nop()\n"
	"{\n"
	"	ret;\n"
	"}\n"
/* As many pointers as a kernel of a matrix product has. */
	".visible .entry nop8(.param .u64 a, .param .u64 b, .param .u64 c,\n"
	"	.param .u64 d, .param .u64 e, .param .u64 f, .param .u64 g,\n"
	"	.param .u64 h)\n"
	"{\n"
	"	ret;\n"
	"}\n"
/* A chain of `size` dependent steps; `p` is written in no case that occurs. */
	".visible .entry spin(.param .u64 p, .param .u32 size)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_POINTER("p", "%p")
	"	ld.param.u32 %size, [size];\n"
	"	mov.u32 %v, %size;\n"
	"	mov.u32 %i, 0;\n"
	"again:\n"
	"	mad.lo.u32 %v, %v, 1664525, 1013904223;\n"
	"	add.u32 %i, %i, 1;\n"
	"	setp.lt.u32 %q, %i, %size;\n"
	"	@%q bra again;\n"
	"	setp.ne.u32 %q, %v, 0x12345;\n"
	"	@%q ret;\n"
	"	st.global.u32 [%p], %v;\n"
	"	ret;\n"
	"}\n"
	".visible .entry fill(.param .u64 p, .param .u32 size,\n"
	"	.param .u32 seed)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_GRID
	PROBE_PTX_POINTER("p", "%p")
	"	ld.param.u32 %size, [size];\n"
	"	ld.param.u32 %seed, [seed];\n"
	"again:\n"
	"	setp.ge.u32 %q, %i, %size;\n"
	"	@%q ret;\n"
	"	mul.wide.u32 %o, %i, 4;\n"
	"	add.u64 %a, %p, %o;\n"
	"	mad.lo.u32 %w, %i, 0x9e3779b1, %seed;\n"
	"	st.global.u32 [%a], %w;\n"
	"	add.u32 %i, %i, %step;\n"
	"	bra again;\n"
	"}\n"
	PROBE_PTX_CHECK("check", "ld.global.u32")
	PROBE_PTX_CHECK("check_nc", "ld.global.nc.u32")
/* Reads `size` pieces of 16 bytes, `rounds` times; `out` as in spin. */
	".visible .entry read(.param .u64 p, .param .u32 size,\n"
	"	.param .u32 rounds, .param .u64 out)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_GRID
	PROBE_PTX_POINTER("p", "%p")
	PROBE_PTX_POINTER("out", "%b")
	"	ld.param.u32 %size, [size];\n"
	"	ld.param.u32 %r, [rounds];\n"
	"	mov.u32 %v, 0;\n"
	"	mov.u32 %seed, %i;\n"
	"round:\n"
	"	mov.u32 %i, %seed;\n"
	"	bra test;\n"
	"again:\n"
	"	mul.wide.u32 %o, %i, 16;\n"
	"	add.u64 %a, %p, %o;\n"
	"	ld.volatile.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a];\n"
	"	xor.b32 %v0, %v0, %v1;\n"
	"	xor.b32 %v2, %v2, %v3;\n"
	"	xor.b32 %v0, %v0, %v2;\n"
	"	add.u32 %v, %v, %v0;\n"
	"	add.u32 %i, %i, %step;\n"
	"test:\n"
	"	setp.lt.u32 %q, %i, %size;\n"
	"	@%q bra again;\n"
	"	sub.u32 %r, %r, 1;\n"
	"	setp.ne.u32 %q, %r, 0;\n"
	"	@%q bra round;\n"
	"	setp.ne.u32 %q, %v, 0x12345;\n"
	"	@%q ret;\n"
	"	st.global.u32 [%b], %v;\n"
	"	ret;\n"
	"}\n"
/* One word from `p` to `out`; one word to `p`. */
	".visible .entry peek(.param .u64 p, .param .u64 out)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_POINTER("p", "%p")
	PROBE_PTX_POINTER("out", "%b")
	"	ld.global.u32 %v, [%p];\n"
	"	st.global.u32 [%b], %v;\n"
	"	ret;\n"
	"}\n"
	".visible .entry poke(.param .u64 p, .param .u32 size)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_POINTER("p", "%p")
	"	ld.param.u32 %v, [size];\n"
	"	st.global.u32 [%p], %v;\n"
	"	ret;\n"
	"}\n";

/*
 * early lets its dependents start at once and then goes on for `size` steps;
 * late looks at the first and the last word before any wait of its own.
 */
static const char probe_ptx_pdl[] =
	".version 7.8\n.target sm_90\n.address_size 64\n"
	".visible .entry early(.param .u64 p, .param .u32 size)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_POINTER("p", "%p")
	"	griddepcontrol.launch_dependents;\n"
	"	ld.param.u32 %size, [size];\n"
	"	mov.u32 %v, %size;\n"
	"	mov.u32 %i, 0;\n"
	"again:\n"
	"	mad.lo.u32 %v, %v, 1664525, 1013904223;\n"
	"	add.u32 %i, %i, 1;\n"
	"	setp.lt.u32 %q, %i, %size;\n"
	"	@%q bra again;\n"
	"	setp.eq.u32 %q, %v, 0x12345;\n"
	"	@%q st.global.u32 [%p+4], %v;\n"
	"	mov.u32 %v, 1;\n"
	"	st.volatile.global.u32 [%p], %v;\n"
	"	ret;\n"
	"}\n"
/* out[0] = what stands at p, out[1] = what early has left in done. */
	".visible .entry late(.param .u64 p, .param .u64 done,\n"
	"	.param .u64 out)\n"
	"{\n"
	PROBE_PTX_REGS
	PROBE_PTX_POINTER("p", "%p")
	PROBE_PTX_POINTER("done", "%a")
	PROBE_PTX_POINTER("out", "%b")
	"	ld.volatile.global.u32 %v, [%p];\n"
	"	ld.volatile.global.u32 %w, [%a];\n"
	"	st.global.u32 [%b], %v;\n"
	"	st.global.u32 [%b+4], %w;\n"
	"	griddepcontrol.wait;\n"
	"	ret;\n"
	"}\n";

/*
 * check_bulk: as check, but the bytes come by the bulk copy engine, 4096 at a
 * time for each block of 128 threads; `size` in words, a multiple of 1024.
 */
static const char probe_ptx_bulk[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry check_bulk(.param .u64 p, .param .u32 size,\n"
	"	.param .u32 seed, .param .u64 bad)\n"
	"{\n"
	PROBE_PTX_REGS
	"	.reg .u32 %bar, %buf, %phase, %first, %k;\n"
	"	.reg .pred %lead;\n"
	"	.shared .align 128 .b8 tile[4096];\n"
	"	.shared .align 8 .b64 full;\n"
	PROBE_PTX_POINTER("p", "%p")
	PROBE_PTX_POINTER("bad", "%b")
	"	ld.param.u32 %size, [size];\n"
	"	ld.param.u32 %seed, [seed];\n"
	"	mov.u32 %bar, full;\n"
	"	mov.u32 %buf, tile;\n"
	"	mov.u32 %t, %tid.x;\n"
	"	setp.eq.u32 %lead, %t, 0;\n"
	"	@%lead mbarrier.init.shared.b64 [%bar], 1;\n"
	"	@%lead fence.proxy.async;\n"
	"	bar.sync 0;\n"
	"	mov.u32 %phase, 0;\n"
	"	mov.u32 %first, %ctaid.x;\n"
	"	shl.b32 %first, %first, 10;\n"
	"	mov.u32 %step, %nctaid.x;\n"
	"	shl.b32 %step, %step, 10;\n"
	"tile_next:\n"
	"	setp.ge.u32 %q, %first, %size;\n"
	"	@%q ret;\n"
	"	mul.wide.u32 %o, %first, 4;\n"
	"	add.u64 %a, %p, %o;\n"
	"	@%lead mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 4096;\n"
	"	@%lead cp.async.bulk.shared::cluster.global"
	".mbarrier::complete_tx::bytes [%buf], [%a], 4096, [%bar];\n"
	"wait:\n"
	"	mbarrier.try_wait.parity.shared.b64 %q, [%bar], %phase;\n"
	"	@!%q bra wait;\n"
	"	xor.b32 %phase, %phase, 1;\n"
	"	mov.u32 %k, %t;\n"
	"word:\n"
	"	shl.b32 %r, %k, 2;\n"
	"	add.u32 %r, %r, %buf;\n"
	"	ld.shared.u32 %v, [%r];\n"
	"	add.u32 %i, %first, %k;\n"
	"	mad.lo.u32 %w, %i, 0x9e3779b1, %seed;\n"
	"	setp.ne.u32 %q, %v, %w;\n"
	"	@%q atom.global.add.u32 %v, [%b], 1;\n"
	"	add.u32 %k, %k, 128;\n"
	"	setp.lt.u32 %q, %k, 1024;\n"
	"	@%q bra word;\n"
	"	bar.sync 0;\n"
	"	add.u32 %first, %first, %step;\n"
	"	bra tile_next;\n"
	"}\n";

#endif
