/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that look across lanes, the functions built in, and what the
 * parser says about text it does not take.
 */
#include "test/unit/ptx_util.h"
#include "test/unit/unit.h"

#define BEGIN PTX_HEAD \
	".visible .entry k(.param .u64 p) {\n" \
	".reg .b64 %p, %o, %x<8>; .reg .b32 %t, %v<8>; .reg .b16 %h<4>;\n" \
	".reg .f32 %f<4>; .reg .pred %q<4>;\n" \
	"ld.param.u64 %p, [p];\n" \
	"mov.u32 %t, %tid.x;\n" \
	"mul.wide.u32 %o, %t, 8;\n" \
	"add.u64 %o, %p, %o;\n"

static void run(struct dev *d, const char *text, uint32_t threads)
{
	uint64_t params = DEV_BASE;

	dev_run_ok(d, text, "k", 1, threads, 0, &params);
}

static uint32_t *words(struct dev *d)
{
	return (uint32_t *)(void *)d->mem;
}

/* The definition in the PTX manual, lane by lane. */
static bool shuffle(int mode, int lane, int b, int c, int *from)
{
	int clamp = c & 31, seg = (c >> 8) & 31, j;
	int top = (lane & seg) | (clamp & ~seg);
	bool p;

	b &= 31;
	switch (mode) {
	case 0:
		j = lane - b;
		p = j >= top;
		break;
	case 1:
		j = lane + b;
		p = j <= top;
		break;
	case 2:
		j = lane ^ b;
		p = j <= top;
		break;
	default:
		j = (lane & seg) | (b & ~seg);
		p = j <= top;
	}
	*from = p ? j : lane;
	return p;
}

START_TEST(test_shuffle)
{
	static const char *const mode[] = { "up", "down", "bfly", "idx" };
	static const int width[] = { 32, 16, 8, 2 };
	struct dev *d = dev_new();
	int m, w, b, l, from, c;
	char text[2048];

	for (m = 0; m < 4; m++) {
		for (w = 0; w < 4; w++) {
			b = 1 + 2 * w + m;
			c = (32 - width[w]) << 8 | (m ? 31 : 0);
			snprintf(text, sizeof(text), "%s"
				"mad.lo.u32 %%v0, %%t, 7, 100;\n"
				"mov.u32 %%v1, %d;\n"
				"shfl.sync.%s.b32 %%v2|%%q0, %%v0, %%v1, %d, -1;\n"
				"selp.u32 %%v3, 1, 0, %%q0;\n"
				"st.global.v2.u32 [%%o], {%%v2, %%v3};\n"
				"ret;\n}\n", BEGIN, b, mode[m], c);
			run(d, text, 32);
			for (l = 0; l < 32; l++) {
				bool p = shuffle(m, l, b, c, &from);

				ck_assert_uint_eq(words(d)[2 * l],
					(uint32_t)from * 7 + 100);
				ck_assert_uint_eq(words(d)[2 * l + 1], p);
			}
		}
	}
	dev_free(d);
}
END_TEST

/* Halves of a warp with masks of their own, at one instruction and at two. */
START_TEST(test_masks)
{
	static const char text[] = BEGIN
	"setp.lt.u32 %q0, %t, 16;\n"
	"selp.b32 %v0, 0x0000ffff, 0xffff0000, %q0;\n"
	"and.b32 %v1, %t, 3;\n"
	"setp.eq.u32 %q1, %v1, 0;\n"
	"vote.sync.ballot.b32 %v2, %q1, %v0;\n"
	"@%q0 bra A;\n"
	"vote.sync.ballot.b32 %v3, !%q1, 0xffff0000;\n"
	"bra B;\n"
	"A:\n"
	"vote.sync.ballot.b32 %v3, %q1, %v0;\n"
	"B:\n"
	"st.global.v2.u32 [%o], {%v2, %v3};\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 32);
	for (t = 0; t < 32; t++) {
		ck_assert_uint_eq(words(d)[2 * t],
			t < 16 ? 0x1111 : 0x11110000);
		ck_assert_uint_eq(words(d)[2 * t + 1],
			t < 16 ? 0x1111 : 0xeeee0000);
	}
	dev_free(d);
}
END_TEST

START_TEST(test_vote)
{
	static const char text[] = BEGIN
	"setp.lt.u32 %q0, %t, 33;\n"
	"setp.eq.u32 %q1, %t, 40;\n"
	"vote.sync.all.pred %q2, %q0, -1;\n"
	"selp.u32 %v0, 1, 0, %q2;\n"
	"vote.sync.any.pred %q2, %q1, -1;\n"
	"@%q2 add.u32 %v0, %v0, 2;\n"
	"vote.sync.uni.pred %q2, %q1, -1;\n"
	"@%q2 add.u32 %v0, %v0, 4;\n"
	"vote.sync.all.pred %q2, !%q1, -1;\n"
	"@%q2 add.u32 %v0, %v0, 8;\n"
	"activemask.b32 %v1;\n"
	"st.global.v2.u32 [%o], {%v0, %v1};\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 45);
	for (t = 0; t < 45; t++) {
		ck_assert_uint_eq(words(d)[2 * t], t < 32 ? 1 + 4 + 8 : 2);
		ck_assert_uint_eq(words(d)[2 * t + 1],
			t < 32 ? 0xffffffff : 0x1fff);
	}
	dev_free(d);
}
END_TEST

START_TEST(test_match)
{
	static const char text[] = BEGIN
	"rem.u32 %v0, %t, 5;\n"
	"match.any.sync.b32 %v1, %v0, -1;\n"
	"cvt.u64.u32 %x0, %v0;\n"
	"shl.b64 %x0, %x0, 40;\n"
	"match.any.sync.b64 %v2, %x0, -1;\n"
	"xor.b32 %v2, %v2, %v1;\n"
	"match.all.sync.b32 %v3|%q0, %v0, -1;\n"
	"@%q0 add.u32 %v2, %v2, 1;\n"
	"add.u32 %v2, %v2, %v3;\n"
	"mov.u32 %v0, 5;\n"
	"match.all.sync.b32 %v3|%q0, %v0, -1;\n"
	"@%q0 add.u32 %v2, %v2, %v3;\n"
	"st.global.v2.u32 [%o], {%v1, %v2};\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t t, k, want;

	run(d, text, 32);
	for (t = 0; t < 32; t++) {
		for (want = k = 0; k < 32; k++)
			want |= (uint32_t)(k % 5 == t % 5) << k;
		ck_assert_uint_eq(words(d)[2 * t], want);
		ck_assert_uint_eq(words(d)[2 * t + 1], 0xffffffff);
	}
	dev_free(d);
}
END_TEST

/* sm_80 */
START_TEST(test_redux)
{
	static const char text[] =
	".version 7.8\n.target sm_80\n.address_size 64\n"
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %o; .reg .b32 %t, %v<8>;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %o, %t, 32;\n"
	"add.u64 %o, %p, %o;\n"
	"sub.u32 %v0, %t, 10;\n"
	"redux.sync.add.s32 %v1, %v0, -1;\n"
	"redux.sync.min.s32 %v2, %v0, -1;\n"
	"redux.sync.min.u32 %v3, %v0, -1;\n"
	"redux.sync.max.s32 %v4, %v0, -1;\n"
	"redux.sync.and.b32 %v5, %t, -1;\n"
	"redux.sync.or.b32 %v6, %t, -1;\n"
	"redux.sync.xor.b32 %v7, %t, -1;\n"
	"st.global.v4.u32 [%o], {%v1, %v2, %v3, %v4};\n"
	"st.global.v2.u32 [%o+16], {%v5, %v6};\n"
	"st.global.u32 [%o+24], %v7;\n"
	"ret;\n}\n";
	static const uint32_t want[] = { 176, (uint32_t)-10, 0, 21, 0, 31, 0 };
	struct dev *d = dev_new();
	uint32_t t;

	run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_mem_eq(words(d) + 8 * t, want, sizeof(want));
	dev_free(d);
}
END_TEST

/* Reduction tree of a warp, as programs write it. */
START_TEST(test_reduce)
{
	static const char text[] = BEGIN
	"cvt.rn.f32.u32 %f0, %t;\n"
	"mov.u32 %v1, 16;\n"
	"L:\n"
	"mov.b32 %v0, %f0;\n"
	"shfl.sync.down.b32 %v2, %v0, %v1, 31, -1;\n"
	"mov.b32 %f1, %v2;\n"
	"add.f32 %f0, %f0, %f1;\n"
	"shr.u32 %v1, %v1, 1;\n"
	"setp.ne.u32 %q0, %v1, 0;\n"
	"@%q0 bra L;\n"
	"setp.eq.u32 %q1, %t, 0;\n"
	"@%q1 st.global.f32 [%p], %f0;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	float f;

	run(d, text, 32);
	memcpy(&f, d->mem, 4);
	ck_assert(f == 496.0f);
	dev_free(d);
}
END_TEST

/* ---- functions built in ------------------------------------------------- */

START_TEST(test_printf)
{
	static const char text[] = PTX_HEAD
	".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
	".global .align 1 .b8 fmt[40] = {37, 100, 32, 37, 45, 53, 115, 124,\n"
	"37, 46, 50, 102, 32, 37, 108, 108, 120, 32, 37, 37, 37, 99, 10};\n"
	".global .align 1 .b8 str[4] = {97, 98, 99};\n"
	".visible .entry k(.param .u64 p) {\n"
	".local .align 8 .b8 args[48];\n"
	".reg .b64 %p, %a, %x; .reg .b32 %t, %r; .reg .pred %q;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\n"
	"setp.ne.u32 %q, %t, 3;\n"
	"@%q bra OUT;\n"
	"mov.u64 %a, args;\n"
	"sub.u32 %r, 0, %t;\n"
	"st.local.u32 [%a], %r;\n"
	"mov.u64 %x, str;\n"
	"st.local.u64 [%a+8], %x;\n"
	"mov.u64 %x, 0x4002000000000000;\n"
	"st.local.u64 [%a+16], %x;\n"
	"mov.u64 %x, 0x1234567890;\n"
	"st.local.u64 [%a+24], %x;\n"
	"mov.u32 %r, 33;\n"
	"st.local.u32 [%a+32], %r;\n"
	"{ .param .b64 a0; .param .b64 a1; .param .b32 ret;\n"
	"mov.u64 %x, fmt;\n"
	"st.param.b64 [a0], %x;\n"
	"cvta.local.u64 %a, %a;\n"
	"st.param.b64 [a1], %a;\n"
	"call.uni (ret), vprintf, (a0, a1);\n"
	"ld.param.b32 %r, [ret]; }\n"
	"st.global.u32 [%p], %r;\n"
	"OUT: ret;\n}\n";
	static const char want[] = "-3 abc  |2.25 1234567890 %!\n";
	static const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { 8, 1, 1 };
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	uint64_t params = DEV_BASE;
	size_t n;

	for (n = 0; n < 2; n++) {
		struct ptx_variable *v = ptx_module_variable(m, n);

		v->address = DEV_BASE + 4096 + 256 * n;
		memcpy(d->mem + 4096 + 256 * n, v->init, v->size);
	}
	ck_assert_int_eq(dev_run3(d, m, "k", grid, block, 0, &params), PTX_OK);
	ck_assert_uint_eq(d->nr_printed, sizeof(want) - 1);
	ck_assert_mem_eq(d->printed, want, sizeof(want) - 1);
	ck_assert_uint_eq(words(d)[0], 5);
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

START_TEST(test_assert)
{
	static const char text[] = PTX_HEAD
	".extern .func __assertfail(.param .b64 a, .param .b64 b,\n"
	".param .b32 c, .param .b64 d, .param .b64 e);\n"
	".global .align 1 .b8 what[6] = {120, 32, 61, 61, 32, 49};\n"
	".global .align 1 .b8 end[1] = {0};\n"
	".global .align 1 .b8 file[5] = {97, 46, 99, 117};\n"
	".visible .entry k() {\n"
	".reg .b64 %x; .reg .b32 %t; .reg .pred %q;\n"
	"mov.u32 %t, %tid.x;\n"
	"setp.ne.u32 %q, %t, 5;\n"
	"@%q bra OUT;\n"
	"{ .param .b64 a; .param .b64 b; .param .b32 c;\n"
	".param .b64 d; .param .b64 e;\n"
	"mov.u64 %x, what;\nst.param.b64 [a], %x;\n"
	"mov.u64 %x, file;\nst.param.b64 [b], %x;\n"
	"st.param.b32 [c], 12;\n"
	"st.param.b64 [d], %x;\nst.param.b64 [e], 1;\n"
	"call.uni __assertfail, (a, b, c, d, e); }\n"
	"OUT: ret;\n}\n";
	static const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { 8, 1, 1 };
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	size_t n;

	for (n = 0; n < 3; n++) {
		struct ptx_variable *v = ptx_module_variable(m, n);

		v->address = DEV_BASE + (n == 2 ? 64 : 6 * n);
		memcpy(d->mem + (v->address - DEV_BASE), v->init, v->size);
	}
	ck_assert_int_eq(dev_run3(d, m, "k", grid, block, 0, NULL), PTX_ASSERT);
	ck_assert_str_eq(d->fault.message,
		"a.cu:12: a.cu: assertion `x == 1' failed");
	ck_assert_uint_eq(d->fault.thread[0], 5);
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

/* ---- what is not taken -------------------------------------------------- */

static const struct {
	const char *body;		/* of a kernel; NULL: `text` is all */
	const char *text;
	enum ptx_status status;
	unsigned line, column;
	const char *message;
} bad[] = {
	{ "  frob.u32 %v0, %v1;\n", NULL, PTX_UNSUPPORTED, 11, 3,
		"unsupported instruction frob.u32: `frob.u32 %v0, %v1;'" },
	{ "add.u33 %v0, %v1, %v2;\n", NULL, PTX_UNSUPPORTED, 11, 1, "add.u33" },
	{ "add.sat.u32 %v0, %v1, %v2;\n", NULL, PTX_UNSUPPORTED, 11, 1,
		"add.sat.u32" },
	{ "add.ftz.u32 %v0, %v1, %v2;\n", NULL, PTX_UNSUPPORTED, 11, 1, "ftz" },
	{ "fma.rz.f16 %h0, %h1, %h2, %h3;\n", NULL, PTX_UNSUPPORTED, 11, 1,
		"fma.rz.f16" },
	{ "ld.global.v8.f32 %f0, [%p];\n", NULL, PTX_UNSUPPORTED, 11, 1,
		"ld.global.v8.f32" },
	{ "ld.global.f32 %f0, [%zz];\n", NULL, PTX_SYNTAX, 11, 21,
		"unknown register %zz" },
	{ "\nadd.u32 %v0, %v1;\n", NULL, PTX_SYNTAX, 12, 1, "operands" },
	{ "add.u32 %v0, %v1, %o;\n", NULL, PTX_SYNTAX, 11, 19, "type" },
	{ "add.u32 5, %v1, %v0;\n", NULL, PTX_SYNTAX, 11, 9, "register" },
	{ "setp.foo.u32 %q0, %v1, %v0;\n", NULL, PTX_UNSUPPORTED, 11, 1,
		"setp.foo" },
	{ "bra NOWHERE;\n", NULL, PTX_SYNTAX, 11, 5, "no label NOWHERE" },
	{ "call.uni nothing;\n", NULL, PTX_SYNTAX, 11, 10, "nothing" },
	{ "add.f32 %f0, %f1, 1;\n", NULL, PTX_SYNTAX, 11, 19, "float" },
	{ "add.u32 %v0, %v1, %v2\n", NULL, PTX_SYNTAX, 12, 1, "`;'" },
	{ "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%v0}, [%p];\n", NULL,
		PTX_UNSUPPORTED, 11, 1, "wmma" },
	{ "cvt.rn.f32.b32 %f0, %v0;\n", NULL, PTX_UNSUPPORTED, 11, 1, "cvt" },
	{ "atom.global.add.b32 %v0, [%p], 1;\n", NULL, PTX_UNSUPPORTED, 11, 1,
		"atom" },
	{ "fence.proxy.alias;\n", NULL, PTX_UNSUPPORTED, 11, 1, "fence" },
	{ ".frob 1;\n", NULL, PTX_UNSUPPORTED, 11, 1, ".frob" },
	{ "mov.u32 %v0, 0x1_;\n", NULL, PTX_SYNTAX, 11, 14, "number" },
	{ "mov.f32 %f0, 0f123;\n", NULL, PTX_SYNTAX, 11, 14, "8 hex" },
	{ ".reg .b32 %t;\n", NULL, PTX_SYNTAX, 11, 11, "declared twice" },
	{ NULL, "", PTX_SYNTAX, 1, 1, ".version" },
	{ NULL, "hello", PTX_SYNTAX, 1, 1, ".version" },
	{ NULL, ".version 7.0\n", PTX_SYNTAX, 2, 1, ".target" },
	{ NULL, ".version 7.0\n.target sm_75\n.address_size 32\n",
		PTX_UNSUPPORTED, 3, 15, "64" },
	{ NULL, PTX_HEAD ".tex .u32 t;\n", PTX_UNSUPPORTED, 4, 1, "tex" },
	{ NULL, PTX_HEAD ".visible .entry k() {\nret;\n", PTX_SYNTAX, 6, 1,
		"ends" },
	{ NULL, PTX_HEAD "/* no end", PTX_SYNTAX, 4, 1, "comment" },
	{ NULL, PTX_HEAD ".global .u32 a[2] = {1, 2, 3};\n", PTX_SYNTAX, 4, 14,
		"too many" },
	{ NULL, PTX_HEAD ".extern .func f();\n.entry k() {\ncall.uni f;\n}\n",
		PTX_UNSUPPORTED, 6, 1, "f is not in this module" },
};

START_TEST(test_errors)
{
	struct ptx_module *m = (void *)1;
	struct ptx_error e;
	char text[4096];

	if (bad[_i].body)
		snprintf(text, sizeof(text), "%s%sret;\n}\n", BEGIN,
			bad[_i].body);
	else
		snprintf(text, sizeof(text), "%s", bad[_i].text);
	ck_assert_msg(ptx_module_create(text, strlen(text), &m, &e) ==
		bad[_i].status, "%d: %s", _i, e.message);
	ck_assert_ptr_null(m);
	ck_assert_msg(strstr(e.message, bad[_i].message), "%s", e.message);
	ck_assert_msg(e.line == bad[_i].line && e.column == bad[_i].column,
		"%u:%u: %s", e.line, e.column, e.message);
}
END_TEST

/* Any cut of a good text is an error or a module, never a crash. */
START_TEST(test_cut)
{
	static const char text[] = BEGIN
	"add.u32 %v0, %t, (3+4)*2; // comment\n"
	"shfl.sync.idx.b32 %v1|%q0, %v0, 0, 31, -1;\n"
	"@!%q0 bra L;\n"
	"st.global.v2.u32 [%o+-8+16], {%v0, 0x10U};\n"
	"L: ret;\n}\n"
	".const .align 8 .f64 c[2] = {1.0e2, 0d0000000000000000};\n";
	struct ptx_module *m;
	struct ptx_error e;
	size_t n;
	char *copy;

	for (n = 0; n < sizeof(text); n++) {
		copy = malloc(n + 1);
		ck_assert_ptr_nonnull(copy);
		memcpy(copy, text, n);
		if (ptx_module_create(copy, n, &m, &e) == PTX_OK)
			ptx_module_destroy(m);
		else
			ck_assert_uint_gt(e.line, 0);
		free(copy);
	}
	ck_assert_int_eq(ptx_module_create(text, sizeof(text) - 1, &m, &e),
		PTX_OK);
	ptx_module_destroy(m);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_warp");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_shuffle);
	tcase_add_test(t, test_masks);
	tcase_add_test(t, test_vote);
	tcase_add_test(t, test_match);
	tcase_add_test(t, test_redux);
	tcase_add_test(t, test_reduce);
	tcase_add_test(t, test_printf);
	tcase_add_test(t, test_assert);
	tcase_add_loop_test(t, test_errors, 0,
		(int)(sizeof(bad) / sizeof(bad[0])));
	tcase_add_test(t, test_cut);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
