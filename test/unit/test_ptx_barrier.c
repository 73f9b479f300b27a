/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes and warps that wait for each other in the interpreter: barriers, locks,
 * clocks, and waits that never end.
 */
#include "test/unit/ptx_one.h"
#include "test/unit/unit.h"

/* Reverse an array of 8 warps through shared memory, twice. */
START_TEST(test_barrier)
{
	static const char text[] = ONE_KERNEL(
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
	"mad.lo.u32 %s, %v, 10000, %s;\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 256);
	for (t = 0; t < 256; t++)
		ck_assert_uint_eq(one_words(d)[t], 2550000 + 3 * (255 - t));
	dev_free(d);
}
END_TEST

/* Producer and consumer warps with two named barriers, bar.arrive. */
START_TEST(test_named_barriers)
{
	static const char text[] = ONE_KERNEL(
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
	"OUT:\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 64);
	for (t = 0; t < 64; t++)
		ck_assert_uint_eq(one_words(d)[t], t < 32 ? 0 : 1234);
	dev_free(d);
}
END_TEST

START_TEST(test_barrier_reduce)
{
	static const char text[] = ONE_KERNEL(
	".reg .b32 %v; .reg .pred %q<5>;\n",
	"setp.lt.u32 %q0, %t, 37;\n"
	"bar.red.popc.u32 %s, 0, %q0;\n"
	"bar.red.and.pred %q1, 0, %q0;\n"
	"@%q1 add.u32 %s, %s, 1000;\n"
	"bar.red.or.pred %q2, 0, %q0;\n"
	"@%q2 add.u32 %s, %s, 2000;\n"
	"bar.red.popc.u32 %v, 0, !%q0;\n"
	"mad.lo.u32 %s, %v, 10000, %s;\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 100);
	for (t = 0; t < 100; t++)
		ck_assert_uint_eq(one_words(d)[t], 630000 + 2037);
	dev_free(d);
}
END_TEST

/* Threads that have exited are not waited for; halves of a warp may part. */
START_TEST(test_barrier_partial)
{
	static const char text[] = ONE_KERNEL(
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
	"ld.shared.u32 %s, [sum];\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 96);
	for (t = 0; t < 96; t++)
		ck_assert_uint_eq(one_words(d)[t], t < 70 ? 70 : 0);
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
	expect_deadlock(ONE_KERNEL(".reg .pred %q;\n",
		"setp.lt.u32 %q, %t, 32;\n"
		"@%q bar.sync 1;\n"
		"@!%q bar.sync 2;\n" ONE_STORE), 64, "barrier");
	expect_deadlock(ONE_KERNEL("", "bar.sync 3, 128;\n" ONE_STORE), 64,
		"barrier 3");
	expect_deadlock(ONE_KERNEL(".reg .pred %q; .reg .b32 %v;\n",
		"setp.lt.u32 %q, %t, 16;\n"
		"@%q bra A;\n"
		"shfl.sync.idx.b32 %v, %t, 0, 31, -1;\n"
		"bra B;\n"
		"A: vote.sync.ballot.b32 %v, %q, -1;\n"
		"B:\n" ONE_STORE), 32, "sync");
}
END_TEST

/* ---- lanes that wait for lanes ------------------------------------------ */

/*
 * A spin lock taken by every lane in turn: the holder must get on although
 * its code is behind the loop where the others spin.
 */
START_TEST(test_spin_lock)
{
	static const char text[] = ONE_KERNEL(
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
	"mov.u32 %s, 1;\n" ONE_STORE);
	struct dev *d = dev_new();

	one_run(d, text, 40);
	ck_assert_uint_eq(one_words(d)[257], 39 * 40 / 2);
	ck_assert_uint_eq(one_words(d)[39], 1);
	dev_free(d);
}
END_TEST

/* One warp spins until another one of its block has stored. */
START_TEST(test_spin_warp)
{
	static const char text[] = ONE_KERNEL(
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
	"OUT:\n" ONE_STORE);
	struct dev *d = dev_new();

	one_run(d, text, 64);
	ck_assert_uint_eq(one_words(d)[0], 42);
	ck_assert_uint_eq(one_words(d)[31], 42);
	ck_assert_uint_eq(one_words(d)[32], 0);
	dev_free(d);
}
END_TEST

/* bar.warp.sync met at two places, by halves that have parted. */
START_TEST(test_warp_barrier)
{
	static const char text[] = ONE_KERNEL(
	".reg .b32 %v; .reg .pred %q; .shared .u32 cell;\n",
	"setp.lt.u32 %q, %t, 16;\n"
	"@%q bra LOW;\n"
	"bar.warp.sync -1;\n"
	"ld.volatile.shared.u32 %s, [cell];\n"
	"bra OUT;\n"
	"LOW:\n"
	"st.volatile.shared.u32 [cell], 99;\n"
	"bar.warp.sync -1;\n"
	"OUT:\n" ONE_STORE);
	struct dev *d = dev_new();
	uint32_t t;

	one_run(d, text, 32);
	for (t = 0; t < 32; t++)
		ck_assert_uint_eq(one_words(d)[t], t < 16 ? 0 : 99);
	dev_free(d);
}
END_TEST

/* Clocks move, and a loop that waits for one ends. */
START_TEST(test_clock)
{
	static const char text[] = ONE_KERNEL(
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
	"sub.u32 %s, %e, %c;\n" ONE_STORE);
	struct dev *d = dev_new();

	d->clock = 1ull << 40;
	one_run(d, text, 32);
	ck_assert_uint_eq(one_words(d)[0], 1002);
	ck_assert_uint_ge(d->count.warp_instructions, 5000);
	ck_assert_uint_lt(d->count.warp_instructions, 5100);
	dev_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_barrier");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_barrier);
	tcase_add_test(t, test_named_barriers);
	tcase_add_test(t, test_barrier_reduce);
	tcase_add_test(t, test_barrier_partial);
	tcase_add_test(t, test_deadlock);
	tcase_add_test(t, test_spin_lock);
	tcase_add_test(t, test_spin_warp);
	tcase_add_test(t, test_warp_barrier);
	tcase_add_test(t, test_clock);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
