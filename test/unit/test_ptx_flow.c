/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow of the interpreter: divergence, loops of different length,
 * returns, calls, special registers.
 */
#include "test/unit/ptx_one.h"
#include "test/unit/unit.h"

/* Nested ifs within a loop whose length depends on the lane, with a break. */
START_TEST(test_loops)
{
	static const char text[] = ONE_KERNEL(
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
	"END:\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t, i, j, s;

	one_run(d, text, 77);
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
		ck_assert_uint_eq(one_words(d)[t], s);
	}
	ck_assert_uint_eq(one_words(d)[77], 0);
	dev_free(d);
}
END_TEST

/*
 * Lanes meet again behind an if: all 32 are active there.  Reconvergence is
 * what makes the interpreter fast, so it is checked by count.
 */
START_TEST(test_reconverge)
{
	static const char text[] = ONE_KERNEL(
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

	one_run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_uint_eq(one_words(d)[t], 0xffffffff);
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
	static const char text[] = ONE_KERNEL(
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

	one_run(d, text, 64);
	for (t = 0; t < 64; t++)
		ck_assert_uint_eq(one_words(d)[t], t < 3 || t > 40 ? 0 :
			t % 2 ? 7 : t < 32 ? 0x55555550 : 0x155);
	dev_free(d);
}
END_TEST

/* A join above its branches, cold code behind the return. */
START_TEST(test_odd_layout)
{
	static const char text[] = ONE_KERNEL(
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

	one_run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_uint_eq(one_words(d)[t], 105);
	dev_free(d);
}
END_TEST

START_TEST(test_branch_table)
{
	static const char text[] = ONE_KERNEL(
	".reg .b32 %x;\n",
	"and.b32 %x, %t, 3;\n"
	"ts: .branchtargets L0, L1, L2, L1;\n"
	"brx.idx %x, ts;\n"
	"L0: add.u32 %s, %s, 10;\n"
	"L1: add.u32 %s, %s, 20;\n"
	"L2: add.u32 %s, %s, 30;\n" ONE_STORE);
	static const uint32_t want[] = { 60, 50, 30, 50 };
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 40);
	for (t = 0; t < 40; t++)
		ck_assert_uint_eq(one_words(d)[t], want[t & 3]);
	dev_free(d);
}
END_TEST

/* Labels and registers of an inner scope hide the outer ones. */
START_TEST(test_scopes)
{
	static const char text[] = ONE_KERNEL(
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
	"L: mov.u32 %s, 7;\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 10);
	for (t = 0; t < 10; t++)
		ck_assert_uint_eq(one_words(d)[t], t < 4 ? 7 : t > 6 ? 8 : 9);
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

	one_run(d, text, 50);
	for (t = 0; t < 50; t++)
		ck_assert_uint_eq(one_words(d)[t], t == 5 ? 1000 : fib[t % 12]);
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

	one_run(d, text, 33);
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
		uint32_t *w = one_words(d) + 4 * n;

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
	tcase_add_test(t, test_special_registers);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
