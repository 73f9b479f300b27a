/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow of the interpreter: divergence, loops of different length,
 * returns, calls, barriers, lanes that wait for lanes.
 */
#include "test/unit/ptx_util.h"
#include "test/unit/unit.h"

/* Kernel k(p): %out is the thread's own word of p, %t its number. */
#define KERNEL(decl, body) PTX_HEAD \
	".visible .entry k(.param .u64 p) {\n" \
	".reg .b64 %p, %out, %o; .reg .b32 %t, %s;\n" decl \
	"ld.param.u64 %p, [p];\n" \
	"mov.u32 %t, %tid.x;\n" \
	"mul.wide.u32 %o, %t, 4;\n" \
	"add.u64 %out, %p, %o;\n" \
	"mov.u32 %s, 0;\n" \
	body "}\n"
#define STORE "st.global.u32 [%out], %s;\nret;\n"

static uint32_t *words(struct dev *d)
{
	return (uint32_t *)(void *)d->mem;
}

static void run(struct dev *d, const char *text, uint32_t threads)
{
	uint64_t params = DEV_BASE;

	dev_run_ok(d, text, "k", 1, threads, 0, &params);
}

/* Nested ifs within a loop whose length depends on the lane, with a break. */
START_TEST(test_loops)
{
	static const char text[] = KERNEL(
	".reg .b32 %i, %j, %a; .reg .pred %q<8>;\n",
	"mov.u32 %i, 0;\n"
	"OUTER:\n"
	"rem.u32 %a, %t, 11;\n"
	"setp.ge.u32 %q0, %i, %a;\n"
	"@%q0 bra END;\n"
	"and.b32 %a, %i, 1;\n"
	"setp.eq.u32 %q1, %a, 0;\n"
	"@%q1 bra EVEN;\n"
	"mov.u32 %j, 0;\n"
	"INNER:\n"
	"mad.lo.u32 %s, %j, %i, %s;\n"
	"add.u32 %s, %s, 1;\n"
	"setp.gt.u32 %q2, %s, 60;\n"
	"@%q2 bra NEXT;\n"
	"add.u32 %j, %j, 1;\n"
	"and.b32 %a, %t, 7;\n"
	"setp.lt.u32 %q3, %j, %a;\n"
	"@%q3 bra INNER;\n"
	"bra.uni NEXT;\n"
	"EVEN:\n"
	"setp.lt.u32 %q4, %t, 16;\n"
	"@%q4 add.u32 %s, %s, 2;\n"
	"@!%q4 add.u32 %s, %s, 3;\n"
	"NEXT:\n"
	"add.u32 %i, %i, 1;\n"
	"bra OUTER;\n"
	"END:\n" STORE);
	struct dev *d = dev_new();
	uint32_t t, i, j, s;

	run(d, text, 77);
	for (t = 0; t < 77; t++) {
		for (i = s = 0; i < t % 11; i++) {
			if (i % 2 == 0) {
				s += t < 16 ? 2 : 3;
				continue;
			}
			j = 0;
			do {
				s += j * i + 1;
				if (s > 60)
					break;
			} while (++j < (t & 7));
		}
		ck_assert_uint_eq(words(d)[t], s);
	}
	ck_assert_uint_eq(words(d)[77], 0);
	dev_free(d);
}
END_TEST

/*
 * Lanes meet again behind an if: all 32 are active there.  Reconvergence is
 * what makes the interpreter fast, so it is checked by count.
 */
START_TEST(test_reconverge)
{
	static const char text[] = KERNEL(
	".reg .pred %q<2>; .reg .b32 %m;\n",
	"setp.lt.u32 %q0, %t, 5;\n"
	"@%q0 bra A;\n"
	"add.u32 %s, %s, 1;\n"
	"bra B;\n"
	"A:\n"
	"add.u32 %s, %s, 2;\n"
	"B:\n"
	"activemask.b32 %m;\n"
	"st.global.u32 [%out], %m;\n"
	"ret;\n");
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_uint_eq(words(d)[t], 0xffffffff);
	/* 6 before the branch, which 5 take, 2 and 1 in its arms, 3 behind */
	ck_assert_uint_eq(d->count.warp_instructions, 6 + 1 + 2 + 1 + 3);
	ck_assert_uint_eq(d->count.lane_instructions,
		32 * 6 + 5 + 27 * 2 + 5 + 32 * 3);
	dev_free(d);
}
END_TEST

/* Some lanes leave early, by guarded ret and exit, at different places. */
START_TEST(test_early_exit)
{
	static const char text[] = KERNEL(
	".reg .pred %q<4>; .reg .b32 %r, %m;\n",
	"setp.lt.u32 %q0, %t, 3;\n"
	"@%q0 ret;\n"
	"setp.gt.u32 %q1, %t, 40;\n"
	"@%q1 exit;\n"
	"and.b32 %r, %t, 1;\n"
	"setp.eq.u32 %q2, %r, 0;\n"
	"@%q2 bra EVEN;\n"
	"st.global.u32 [%out], 7;\n"
	"ret;\n"
	"EVEN:\n"
	"activemask.b32 %m;\n"
	"st.global.u32 [%out], %m;\n"
	"ret;\n");
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 64);
	for (t = 0; t < 64; t++)
		ck_assert_uint_eq(words(d)[t], t < 3 || t > 40 ? 0 :
			t % 2 ? 7 : t < 32 ? 0x55555550 : 0x155);
	dev_free(d);
}
END_TEST

/* A join above its branches, cold code behind the return. */
START_TEST(test_odd_layout)
{
	static const char text[] = KERNEL(
	".reg .pred %q<4>; .reg .b32 %x;\n",
	"and.b32 %x, %t, 3;\n"
	"setp.eq.u32 %q0, %x, 2;\n"
	"@%q0 bra COLD;\n"
	"bra WARM;\n"
	"BACK:\n"
	"add.u32 %s, %s, 100;\n"
	"shfl.sync.idx.b32 %s, %s, 2, 31, -1;\n"
	"st.global.u32 [%out], %s;\n"
	"ret;\n"
	"WARM:\n"
	"add.u32 %s, %s, 1;\n"
	"bra BACK;\n"
	"COLD:\n"
	"add.u32 %s, %s, 5;\n"
	"bra BACK;\n");
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_uint_eq(words(d)[t], 105);
	dev_free(d);
}
END_TEST

START_TEST(test_branch_table)
{
	static const char text[] = KERNEL(
	".reg .b32 %x;\n",
	"and.b32 %x, %t, 3;\n"
	"ts: .branchtargets L0, L1, L2, L1;\n"
	"brx.idx %x, ts;\n"
	"L0: add.u32 %s, %s, 10;\n"
	"L1: add.u32 %s, %s, 20;\n"
	"L2: add.u32 %s, %s, 30;\n" STORE);
	static const uint32_t want[] = { 60, 50, 30, 50 };
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 40);
	for (t = 0; t < 40; t++)
		ck_assert_uint_eq(words(d)[t], want[t & 3]);
	dev_free(d);
}
END_TEST

/* Labels and registers of an inner scope hide the outer ones. */
START_TEST(test_scopes)
{
	static const char text[] = KERNEL(
	".reg .pred %q;\n",
	"setp.lt.u32 %q, %t, 4;\n"
	"@%q bra L;\n"
	"{ .reg .b32 %s; .reg .pred %q;\n"
	"setp.gt.u32 %q, %t, 6;\n"
	"@%q bra L;\n"
	"mov.u32 %s, 9;\n"
	"st.global.u32 [%out], %s;\n"
	"ret;\n"
	"L: mov.u32 %s, 8;\n"
	"st.global.u32 [%out], %s;\n"
	"ret;\n}\n"
	"L: mov.u32 %s, 7;\n" STORE);
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 10);
	for (t = 0; t < 10; t++)
		ck_assert_uint_eq(words(d)[t], t < 4 ? 7 : t > 6 ? 8 : 9);
	dev_free(d);
}
END_TEST

/* ---- calls -------------------------------------------------------------- */

#define CALLS PTX_HEAD \
	".func (.param .b32 r) fib(.param .b32 n)\n;\n" \
	".func (.param .b32 r) fib(.param .b32 n)\n" \
	"{\n" \
	".reg .b32 %n, %a, %b; .reg .pred %q;\n" \
	"ld.param.u32 %n, [n];\n" \
	"setp.lt.u32 %q, %n, 2;\n" \
	"@%q bra LEAF;\n" \
	"{ .param .b32 x, y;\n" \
	"add.u32 %a, %n, -1;\n" \
	"st.param.b32 [x], %a;\n" \
	"call.uni (y), fib, (x);\n" \
	"ld.param.b32 %a, [y]; }\n" \
	"{ .param .b32 x, y;\n" \
	"add.u32 %b, %n, -2;\n" \
	"st.param.b32 [x+0], %b;\n" \
	"call (y), fib, (x);\n" \
	"ld.param.b32 %b, [y+0]; }\n" \
	"add.u32 %n, %a, %b;\n" \
	"LEAF:\n" \
	"st.param.b32 [r], %n;\n" \
	"ret;\n}\n"

/* Recursion whose depth differs between lanes, called under a branch. */
START_TEST(test_recursion)
{
	static const char text[] = CALLS
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %o; .reg .b32 %t, %s; .reg .pred %q;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %o, %t, 4;\nadd.u64 %p, %p, %o;\n"
	"mov.u32 %s, 1000;\n"
	"setp.eq.u32 %q, %t, 5;\n"
	"@%q bra SKIP;\n"
	"rem.u32 %s, %t, 12;\n"
	"{ .param .b32 x, y;\n"
	"st.param.b32 [x], %s;\n"
	"call.uni (y), fib, (x);\n"
	"ld.param.b32 %s, [y]; }\n"
	"SKIP:\n"
	"st.global.u32 [%p], %s;\nret;\n}\n";
	static const uint32_t fib[] = { 0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55,
		89 };
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 50);
	for (t = 0; t < 50; t++)
		ck_assert_uint_eq(words(d)[t], t == 5 ? 1000 : fib[t % 12]);
	dev_free(d);
}
END_TEST

/*
 * A struct by value and one as the result; the callee writes its copy.  Its
 * local array has an address that is passed on.
 */
START_TEST(test_call_struct)
{
	static const char text[] = PTX_HEAD
	".func fill(.param .b64 where, .param .b32 v)\n{\n"
	".reg .b64 %w; .reg .b32 %v;\n"
	"ld.param.u64 %w, [where];\nld.param.u32 %v, [v];\n"
	"st.u32 [%w], %v;\n"
	"add.u32 %v, %v, 1;\n"
	"st.u32 [%w+4], %v;\n"
	"ret;\n}\n"
	".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16])\n{\n"
	".local .align 8 .b8 buf[8];\n"
	".reg .b64 %a, %b, %l, %g; .reg .b32 %t, %x, %y;\n"
	"ld.param.v2.u64 {%a, %b}, [s];\n"
	"mov.u64 %l, buf;\n"
	"cvta.local.u64 %g, %l;\n"
	"mov.u32 %t, %tid.x;\n"
	"{ .param .b64 p0; .param .b32 p1;\n"
	"st.param.b64 [p0], %g;\nst.param.b32 [p1], %t;\n"
	"call.uni fill, (p0, p1); }\n"
	"ld.local.v2.u32 {%x, %y}, [%l];\n"
	"mad.lo.u32 %x, %x, 1000, %y;\n"
	"cvt.u64.u32 %l, %x;\n"
	"add.u64 %a, %a, %l;\n"
	"st.param.v2.b64 [r], {%b, %a};\n"
	"ret;\n}\n"
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %o, %a, %b; .reg .b32 %t;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %o, %t, 16;\nadd.u64 %p, %p, %o;\n"
	"{ .param .align 8 .b8 x[16]; .param .align 8 .b8 y[16];\n"
	"st.param.b64 [x], %o;\nst.param.b64 [x+8], 77;\n"
	"call.uni (y), swap, (x);\n"
	"ld.param.b64 %a, [y];\nld.param.b64 %b, [y+8]; }\n"
	"st.global.v2.u64 [%p], {%a, %b};\nret;\n}\n";
	struct dev *d = dev_new();
	uint64_t *m = (uint64_t *)(void *)d->mem;
	uint32_t t;

	run(d, text, 33);
	for (t = 0; t < 33; t++) {
		ck_assert_uint_eq(m[2 * t], 77);
		ck_assert_uint_eq(m[2 * t + 1], 16 * t + 1001 * t + 1);
	}
	dev_free(d);
}
END_TEST

START_TEST(test_endless_recursion)
{
	static const char text[] = PTX_HEAD
	".func f() { call.uni f; ret; }\n"
	".visible .entry k() { call.uni f; ret; }\n";
	struct dev *d = dev_new();

	ck_assert_int_eq(dev_run(d, text, "k", 1, 1, 0, NULL),
		PTX_ILLEGAL_ADDRESS);
	ck_assert_ptr_nonnull(strstr(d->fault.message, "stack is full"));
	dev_free(d);
}
END_TEST

/* ---- barriers ----------------------------------------------------------- */

/* Reverse an array of 8 warps through shared memory, twice. */
START_TEST(test_barrier)
{
	static const char text[] = KERNEL(
	".reg .b32 %a, %b, %v; .shared .align 4 .b8 buf[1024];\n",
	"mov.u32 %a, buf;\n"
	"shl.b32 %b, %t, 2;\n"
	"add.u32 %a, %a, %b;\n"
	"mul.lo.u32 %v, %t, 3;\n"
	"st.shared.u32 [%a], %v;\n"
	"bar.sync 0;\n"
	"sub.u32 %b, 1020, %b;\n"
	"mov.u32 %a, buf;\n"
	"add.u32 %a, %a, %b;\n"
	"ld.shared.u32 %s, [%a];\n"
	"barrier.sync 1;\n"
	"st.shared.u32 [%a], %t;\n"
	"bar.sync 0, 256;\n"
	"ld.shared.u32 %v, [buf];\n"
	"mad.lo.u32 %s, %v, 10000, %s;\n" STORE);
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 256);
	for (t = 0; t < 256; t++)
		ck_assert_uint_eq(words(d)[t], 2550000 + 3 * (255 - t));
	dev_free(d);
}
END_TEST

/* Producer and consumer warps with two named barriers, bar.arrive. */
START_TEST(test_named_barriers)
{
	static const char text[] = KERNEL(
	".reg .b32 %i, %v; .reg .pred %q<3>; .shared .u32 cell;\n",
	"setp.lt.u32 %q0, %t, 32;\n"
	"mov.u32 %i, 0;\n"
	"@%q0 bra PRODUCE;\n"
	"CONSUME:\n"
	"bar.sync 1, 64;\n"
	"ld.shared.u32 %v, [cell];\n"
	"mad.lo.u32 %s, %s, 10, %v;\n"
	"bar.arrive 2, 64;\n"
	"add.u32 %i, %i, 1;\n"
	"setp.lt.u32 %q1, %i, 4;\n"
	"@%q1 bra CONSUME;\n"
	"bra OUT;\n"
	"PRODUCE:\n"
	"add.u32 %v, %i, 1;\n"
	"st.shared.u32 [cell], %v;\n"
	"bar.arrive 1, 64;\n"
	"bar.sync 2, 64;\n"
	"add.u32 %i, %i, 1;\n"
	"setp.lt.u32 %q1, %i, 4;\n"
	"@%q1 bra PRODUCE;\n"
	"OUT:\n" STORE);
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 64);
	for (t = 0; t < 64; t++)
		ck_assert_uint_eq(words(d)[t], t < 32 ? 0 : 1234);
	dev_free(d);
}
END_TEST

START_TEST(test_barrier_reduce)
{
	static const char text[] = KERNEL(
	".reg .b32 %v; .reg .pred %q<5>;\n",
	"setp.lt.u32 %q0, %t, 37;\n"
	"bar.red.popc.u32 %s, 0, %q0;\n"
	"bar.red.and.pred %q1, 0, %q0;\n"
	"@%q1 add.u32 %s, %s, 1000;\n"
	"bar.red.or.pred %q2, 0, %q0;\n"
	"@%q2 add.u32 %s, %s, 2000;\n"
	"bar.red.popc.u32 %v, 0, !%q0;\n"
	"mad.lo.u32 %s, %v, 10000, %s;\n" STORE);
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 100);
	for (t = 0; t < 100; t++)
		ck_assert_uint_eq(words(d)[t], 630000 + 2037);
	dev_free(d);
}
END_TEST

/* Threads that have exited are not waited for; halves of a warp may part. */
START_TEST(test_barrier_partial)
{
	static const char text[] = KERNEL(
	".reg .pred %q<3>; .shared .u32 sum; .reg .b32 %v;\n",
	"setp.ge.u32 %q0, %t, 70;\n"
	"@%q0 exit;\n"
	"setp.eq.u32 %q1, %t, 0;\n"
	"@%q1 st.shared.u32 [sum], 0;\n"
	"barrier.sync 0;\n"
	"atom.shared.add.u32 %v, [sum], 1;\n"
	"setp.lt.u32 %q2, %t, 10;\n"
	"@%q2 bra A;\n"
	"barrier.sync 0;\n"
	"bra B;\n"
	"A:\n"
	"barrier.sync 0;\n"
	"B:\n"
	"ld.shared.u32 %s, [sum];\n" STORE);
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 96);
	for (t = 0; t < 96; t++)
		ck_assert_uint_eq(words(d)[t], t < 70 ? 70 : 0);
	dev_free(d);
}
END_TEST

static void expect_deadlock(const char *text, uint32_t threads,
	const char *what)
{
	struct dev *d = dev_new();
	uint64_t params = DEV_BASE;

	ck_assert_int_eq(dev_run(d, text, "k", 1, threads, 0, &params),
		PTX_DEADLOCK);
	ck_assert_ptr_nonnull(strstr(d->fault.message, what));
	ck_assert_uint_ne(d->fault.line, 0);
	dev_free(d);
}

START_TEST(test_deadlock)
{
	expect_deadlock(KERNEL(".reg .pred %q;\n",
		"setp.lt.u32 %q, %t, 32;\n"
		"@%q bar.sync 1;\n"
		"@!%q bar.sync 2;\n" STORE), 64, "barrier");
	expect_deadlock(KERNEL("", "bar.sync 3, 128;\n" STORE), 64,
		"barrier 3");
	expect_deadlock(KERNEL(".reg .pred %q; .reg .b32 %v;\n",
		"setp.lt.u32 %q, %t, 16;\n"
		"@%q bra A;\n"
		"shfl.sync.idx.b32 %v, %t, 0, 31, -1;\n"
		"bra B;\n"
		"A: vote.sync.ballot.b32 %v, %q, -1;\n"
		"B:\n" STORE), 32, "sync");
}
END_TEST

/* ---- lanes that wait for lanes ------------------------------------------ */

/*
 * A spin lock taken by every lane in turn: the holder must get on although
 * its code is behind the loop where the others spin.
 */
START_TEST(test_spin_lock)
{
	static const char text[] = KERNEL(
	".reg .b32 %old, %v; .reg .pred %q;\n"
	".reg .b64 %lock, %sum;\n",
	"add.u64 %lock, %p, 1024;\n"
	"add.u64 %sum, %p, 1028;\n"
	"SPIN:\n"
	"atom.global.cas.b32 %old, [%lock], 0, 1;\n"
	"setp.ne.u32 %q, %old, 0;\n"
	"@%q bra SPIN;\n"
	"ld.volatile.global.u32 %v, [%sum];\n"
	"add.u32 %v, %v, %t;\n"
	"st.volatile.global.u32 [%sum], %v;\n"
	"membar.gl;\n"
	"atom.global.exch.b32 %old, [%lock], 0;\n"
	"mov.u32 %s, 1;\n" STORE);
	struct dev *d = dev_new();

	run(d, text, 40);
	ck_assert_uint_eq(words(d)[257], 39 * 40 / 2);
	ck_assert_uint_eq(words(d)[39], 1);
	dev_free(d);
}
END_TEST

/* One warp spins until another one of its block has stored. */
START_TEST(test_spin_warp)
{
	static const char text[] = KERNEL(
	".reg .b32 %v; .reg .pred %q<2>; .reg .b64 %flag;\n",
	"add.u64 %flag, %p, 1024;\n"
	"setp.ge.u32 %q0, %t, 32;\n"
	"@%q0 bra SET;\n"
	"SPIN:\n"
	"ld.relaxed.gpu.global.u32 %v, [%flag];\n"
	"setp.eq.u32 %q1, %v, 0;\n"
	"@%q1 bra SPIN;\n"
	"mov.u32 %s, %v;\n"
	"bra OUT;\n"
	"SET:\n"
	"st.release.gpu.global.u32 [%flag], 42;\n"
	"OUT:\n" STORE);
	struct dev *d = dev_new();

	run(d, text, 64);
	ck_assert_uint_eq(words(d)[0], 42);
	ck_assert_uint_eq(words(d)[31], 42);
	ck_assert_uint_eq(words(d)[32], 0);
	dev_free(d);
}
END_TEST

/* bar.warp.sync met at two places, by halves that have parted. */
START_TEST(test_warp_barrier)
{
	static const char text[] = KERNEL(
	".reg .b32 %v; .reg .pred %q; .shared .u32 cell;\n",
	"setp.lt.u32 %q, %t, 16;\n"
	"@%q bra LOW;\n"
	"bar.warp.sync -1;\n"
	"ld.volatile.shared.u32 %s, [cell];\n"
	"bra OUT;\n"
	"LOW:\n"
	"st.volatile.shared.u32 [cell], 99;\n"
	"bar.warp.sync -1;\n"
	"OUT:\n" STORE);
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_uint_eq(words(d)[t], t < 16 ? 0 : 99);
	dev_free(d);
}
END_TEST

/* Clocks move, and a loop that waits for one ends. */
START_TEST(test_clock)
{
	static const char text[] = KERNEL(
	".reg .b64 %a, %b; .reg .pred %q; .reg .b32 %c, %e;\n",
	"mov.u64 %a, %clock64;\n"
	"WAIT:\n"
	"mov.u64 %b, %clock64;\n"
	"sub.u64 %b, %b, %a;\n"
	"setp.lt.u64 %q, %b, 5000;\n"
	"@%q bra WAIT;\n"
	"mov.u32 %c, %clock;\n"
	"nanosleep.u32 1000;\n"
	"mov.u32 %e, %clock;\n"
	"sub.u32 %s, %e, %c;\n" STORE);
	struct dev *d = dev_new();

	d->clock = 1ull << 40;
	run(d, text, 32);
	ck_assert_uint_eq(words(d)[0], 1002);
	ck_assert_uint_ge(d->count.warp_instructions, 5000);
	ck_assert_uint_lt(d->count.warp_instructions, 5100);
	dev_free(d);
}
END_TEST

START_TEST(test_special_registers)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %o; .reg .b32 %v, %w, %x, %y; .reg .b16 %h;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %v, %ctaid.z;\n"
	"mov.u32 %w, %nctaid.y; mov.u32 %x, %ctaid.y;\n"
	"mad.lo.u32 %v, %v, %w, %x;\n"
	"mov.u32 %w, %nctaid.x; mov.u32 %x, %ctaid.x;\n"
	"mad.lo.u32 %v, %v, %w, %x;\n"
	"mov.u32 %w, %ntid.z; mov.u32 %x, %tid.z;\n"
	"mad.lo.u32 %v, %v, %w, %x;\n"
	"mov.u32 %w, %ntid.y; mov.u32 %x, %tid.y;\n"
	"mad.lo.u32 %v, %v, %w, %x;\n"
	"mov.u32 %w, %ntid.x; mov.u32 %x, %tid.x;\n"
	"mad.lo.u32 %v, %v, %w, %x;\n"
	"mul.wide.u32 %o, %v, 16;\n"
	"add.u64 %p, %p, %o;\n"
	"mov.u32 %x, %laneid;\n"
	"mov.u32 %w, %warpid;\n"
	"mad.lo.u32 %x, %w, 100, %x;\n"
	"mov.u32 %w, %lanemask_lt;\n"
	"mov.u32 %y, %lanemask_ge;\n"
	"xor.b32 %w, %w, %y;\n"
	"st.global.v2.u32 [%p], {%v, %x};\n"
	"st.global.u32 [%p+8], %w;\n"
	"cvt.u16.u32 %h, %tid.y;\n"
	"st.global.u16 [%p+12], %h;\n"
	"ret;\n}\n";
	static const uint32_t grid[3] = { 2, 3, 2 }, block[3] = { 5, 3, 4 };
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	uint64_t params = DEV_BASE;
	uint32_t n, t;

	ck_assert_int_eq(dev_run3(d, m, "k", grid, block, 0, &params), PTX_OK);
	for (n = 0; n < 12 * 60; n++) {
		uint32_t *w = words(d) + 4 * n;

		t = n % 60;
		ck_assert_uint_eq(w[0], n);
		ck_assert_uint_eq(w[1], t / 32 * 100 + t % 32);
		ck_assert_uint_eq(w[2], 0xffffffff);
		ck_assert_uint_eq(w[3], t / 5 % 3);
	}
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_flow");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_loops);
	tcase_add_test(t, test_reconverge);
	tcase_add_test(t, test_early_exit);
	tcase_add_test(t, test_odd_layout);
	tcase_add_test(t, test_branch_table);
	tcase_add_test(t, test_scopes);
	tcase_add_test(t, test_recursion);
	tcase_add_test(t, test_call_struct);
	tcase_add_test(t, test_endless_recursion);
	tcase_add_test(t, test_barrier);
	tcase_add_test(t, test_named_barriers);
	tcase_add_test(t, test_barrier_reduce);
	tcase_add_test(t, test_barrier_partial);
	tcase_add_test(t, test_deadlock);
	tcase_add_test(t, test_spin_lock);
	tcase_add_test(t, test_spin_warp);
	tcase_add_test(t, test_warp_barrier);
	tcase_add_test(t, test_clock);
	tcase_add_test(t, test_special_registers);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
