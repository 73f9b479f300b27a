/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two builds of the interpreter's vector code agree: every row of the
 * operation table, on random and on special lanes, with every mask shape and
 * every modifier that the row allows, bit for bit.  So a result does not depend
 * on the machine.
 */
#include <stdlib.h>

#include "test/softcuda/ptx_vm.h"
#include "test/unit/unit.h"

#define ROWS 8			/* of 64 bits */
#define ROW_BYTES (8 * PTX_LANES)

static u64 seed = 0x9e3779b97f4a7c15ull;

static u64 random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static const u64 special[] = {
	0, ~0ull, 0x8000000080000000ull, 0x7fffffff7fffffffull,
	0x7f8000007f800000ull, 0xff800000ff800000ull, 0x7fc000017fc00001ull,
	0x3f8000003f800000ull, 0xbf800000bf800000ull, 0x0000000100000001ull,
	0x807fffff807fffffull, 0x7f7fffff7f7fffffull, 0x7ff0000000000000ull,
	0xfff8000000000001ull, 0x3ff0000000000000ull, 0x000fffffffffffffull,
	0x7c007c007c007c00ull, 0x7e017e017e017e01ull, 0x03ff03ff03ff03ffull,
	31, 32, 63, 64, 0x4b0000004b000000ull, 0x42c8000042c80000ull,
};

static void fill(u8 *frame)
{
	u64 *w = (u64 *)(void *)frame;
	u32 k;

	for (k = 0; k < ROWS * PTX_LANES; k++) {
		w[k] = random64();
		if (k % 3 == 0)
			w[k] = special[random64() %
				(sizeof(special) / sizeof(special[0]))];
		if (k % 3 == 1)		/* exponents near 1 */
			w[k] = (w[k] & 0x80ffffff80ffffffull) |
				0x3f0000003f000000ull;
	}
}

static void run_both(ptx_run_fn *a, ptx_run_fn *b, const struct ptx_insn *i,
	u32 mask, const char *key)
{
	static _Alignas(64) u8 one[ROWS * ROW_BYTES], two[ROWS * ROW_BYTES];
	struct ptx_warp *w = calloc(1, sizeof(*w));
	u32 cc = (u32)random64(), after;

	ck_assert_ptr_nonnull(w);
	fill(one);
	memcpy(two, one, sizeof(one));
	w->frame = one;
	w->cc = cc;
	a(w, i, mask);
	w->frame = two;
	after = w->cc;
	w->cc = cc;
	b(w, i, mask);
	ck_assert_msg(!memcmp(one, two, sizeof(one)) && w->cc == after,
		"%s, mask %x, flags %x, rounding %u", key, mask, i->flags,
		i->rnd);
	free(w);
}

static void run_row(unsigned row)
{
	static const u32 masks[] = { PTX_FULL, 1, 0x0fffffff, 0xa5a50f0f };
	const struct ptx_op *o = &ptx_ops[row];
	u32 n;

	for (n = 0; n < 48; n++) {
		struct ptx_insn i = { .d = ROW_BYTES, .a = 2 * ROW_BYTES,
			.b = 3 * ROW_BYTES, .c = 4 * ROW_BYTES,
			.e = 5 * ROW_BYTES, .imm = (s64)(random64() & 255),
			.type = n & 1 ? PTX_f32 : PTX_u32, .regsize = 4 };
		bool general = n >= 16;

		if (n % 5 == 0 && o->d != PTX_pred &&
		    ptx_type_size(o->d) == ptx_type_size(o->s[0]))
			i.d = i.a;	/* in place */
		if (general && !ptx_vec_base.general[row])
			break;
		if (general) {
			i.flags = n & 7 & (PTX_F_FTZ | PTX_F_SAT) & o->allow;
			if (o->form == PTX_FORM_FLOAT &&
			    (o->allow & PTX_F_RND))
				i.rnd = (n >> 2) & 3;
		}
		if (o->form == PTX_FORM_COMPARE)
			i.op = n & 3;
		run_both(general ? ptx_vec_base.general[row] :
				ptx_vec_base.run[row],
			general ? ptx_vec_avx2.general[row] :
				ptx_vec_avx2.run[row],
			&i, masks[n % 4], o->key);
	}
}

START_TEST(test_same)
{
	unsigned k;

	if (ptx_vec_choose() != &ptx_vec_avx2)
		return;		/* this machine can run one build only */
	ck_assert_uint_gt(ptx_nr_ops, 400);
	for (k = 0; k < ptx_nr_ops; k++)
		run_row(k);
}
END_TEST

/* No two rows have one spelling: the second would never be found. */
START_TEST(test_unique)
{
	unsigned k, n;

	for (k = 0; k < ptx_nr_ops; k++)
		for (n = k + 1; n < ptx_nr_ops; n++)
			ck_assert_msg(strcmp(ptx_ops[k].key, ptx_ops[n].key) ||
				ptx_ops[k].form != ptx_ops[n].form,
				"%s twice", ptx_ops[k].key);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_vec");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_same);
	tcase_add_test(t, test_unique);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
