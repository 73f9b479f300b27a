/* SPDX-License-Identifier: Apache-2.0 */
/* Atomics in the interpreter: each operation, global and shared, and floats. */
#include "test/unit/ptx_one.h"
#include "test/unit/unit.h"

struct atom_case {
	const char *op;
	int bytes;
	uint64_t start;
	uint64_t end;		/* after 32 lanes with b = lane number */
};

static const struct atom_case atoms[] = {
	{ "add.u32", 4, 5, 501 },
	{ "add.s32", 4, 0xfffffff0, 480 },
	{ "add.u64", 8, 1ull << 40, (1ull << 40) + 496 },
	{ "inc.u32", 4, 60, 31 },
	{ "dec.u32", 4, 0, 31 },
	{ "min.u32", 4, 100, 0 },
	{ "min.s32", 4, 0xffffffff, 0xffffffff },
	{ "max.s32", 4, 0xffffffff, 31 },
	{ "max.u64", 8, 10, 31 },
	{ "and.b32", 4, 0xffff, 0 },
	{ "or.b32", 4, 0x100, 0x11f },
	{ "xor.b32", 4, 1, 1 },
	{ "or.b64", 8, 1ull << 40, (1ull << 40) + 31 },
	{ "exch.b32", 4, 7, 31 },
	{ "exch.b64", 8, 7, 31 },
	{ "sys.add.u32", 4, 0, 496 },
	{ "relaxed.gpu.add.u32", 4, 0, 496 },
};

static void atom_text(char *text, size_t size, const struct atom_case *c,
	bool shared)
{
	const char *t = c->bytes == 4 ? "u32" : "u64";
	const char *order = strncmp(c->op, "relaxed.gpu.", 12) ? "" :
		".relaxed.gpu";
	const char *op = *order ? c->op + 12 : c->op;
	const char *sys = strncmp(op, "sys.", 4) ? "" : ".sys";
	const char *space = shared ? "shared" : "global";

	op += *sys ? 4 : 0;
	snprintf(text, size, "%s"
		".shared .align 8 .b8 cell[8]; .reg .b%d %%b, %%o;\n"
		"cvt.%s.u32 %%b, %%t;\n"
		"mul.wide.u32 %%x0, %%t, 8;\n"
		"add.u64 %%x1, %%p, %%x0;\n"
		"mov.u64 %%x2, %s;\n"
		"ld.global.%s %%o, [%%p];\n"
		"st.%s.%s [%%x2], %%o;\n"
		"bar.sync 0;\n"
		"atom%s%s.%s.%s %%o, [%%x2], %%b;\n"
		"st.global.%s [%%x1+64], %%o;\n"
		"bar.sync 0;\n"
		"ld.%s.%s %%o, [%%x2];\n"
		"st.global.%s [%%p+8], %%o;\n"
		"ret;\n}\n", ONE_BEGIN, c->bytes * 8, t, shared ? "cell" : "%p",
		t, space, t, order, sys, space, op, t, space, t, t);
}

START_TEST(test_atomics)
{
	const struct atom_case *c = &atoms[_i / 2];
	const char *dir = getenv("PTX_CASES_TO");
	struct dev *d = dev_new();
	uint64_t *m = (uint64_t *)(void *)d->mem, n;
	char text[2048];

	atom_text(text, sizeof(text), c, _i % 2);
	if (dir) {
		char path[256];
		FILE *f;

		snprintf(path, sizeof(path), "%s/atom-%d.ptx", dir, _i);
		f = fopen(path, "w");
		ck_assert_ptr_nonnull(f);
		fputs(text, f);
		fclose(f);
	}
	m[0] = c->start;
	one_run(d, text, 32);
	ck_assert_msg(m[1] == c->end, "%s: %llx", c->op,
		(unsigned long long)m[1]);
	/* the lanes went one after another, each saw what was before it */
	ck_assert_uint_eq(m[8], c->start);
	if (!strcmp(c->op, "add.u32"))
		for (n = 0; n < 32; n++)
			ck_assert_uint_eq(m[8 + n], 5 + n * (n - 1) / 2);
	if (!strcmp(c->op, "exch.b32"))
		for (n = 1; n < 32; n++)
			ck_assert_uint_eq(m[8 + n], n - 1);
	dev_free(d);
}
END_TEST

START_TEST(test_atomics_float)
{
	static const char text[] = ONE_BEGIN
	".shared .f32 sum; .reg .f64 %d; .reg .f32 %g;\n"
	"setp.eq.u32 %q0, %t, 0;\n"
	"@%q0 st.shared.f32 [sum], 0f00000001;\n"
	"cvt.rn.f32.u32 %f0, %t;\n"
	"cvt.rn.f64.u32 %d, %t;\n"
	"red.global.add.f32 [%p], %f0;\n"
	"red.global.add.f64 [%p+8], %d;\n"
	"@%q0 atom.shared.add.f32 %f1, [sum], 0f00000001;\n"
	"@%q0 ld.shared.f32 %f1, [sum];\n"
	"@%q0 st.global.f32 [%p+16], %f1;\n"
	"@%q0 red.global.add.f32 [%p+20], 0f00000001;\n"
	"atom.global.cas.b32 %v0, [%p+24], %t, 1;\n"
	"red.global.add.u64 [%p+32], 1;\n"
	"red.release.cta.global.and.b32 [%p+28], -2;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t *w = one_words(d);
	float f;
	double g;

	w[5] = 1;
	w[6] = 5;
	w[7] = 0xff;
	one_run(d, text, 32);
	memcpy(&f, w, 4);
	memcpy(&g, w + 2, 8);
	ck_assert(f == 496.0f && g == 496.0);
	ck_assert_uint_eq(w[4], 2);	/* shared: denormals stay */
	ck_assert_uint_eq(w[5], 0);	/* global: they are flushed */
	ck_assert_uint_eq(w[6], 1);
	ck_assert_uint_eq(w[7], 0xfe);
	ck_assert_uint_eq(w[8], 32);
	dev_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_atomic");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, test_atomics, 0,
		2 * (int)(sizeof(atoms) / sizeof(atoms[0])));
	tcase_add_test(t, test_atomics_float);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
