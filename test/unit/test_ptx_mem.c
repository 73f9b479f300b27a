/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in the interpreter: state spaces and generic addresses, vectors,
 * widths, variables and parameters, cp.async, what the watcher is told, and
 * every way of reaching memory that is not there.
 */
#include "test/unit/ptx_one.h"
#include "test/unit/unit.h"

/* Narrow loads extend by their type to the register, stores cut. */
START_TEST(test_widths)
{
	static const char text[] = ONE_BEGIN
	"ld.global.s8 %v0, [%p];\n"
	"ld.global.u8 %v1, [%p];\n"
	"ld.global.s16 %v2, [%p];\n"
	"ld.global.u16 %v3, [%p];\n"
	"st.global.v4.u32 [%p+16], {%v0, %v1, %v2, %v3};\n"
	"ld.global.s8 %x0, [%p];\n"
	"ld.global.s32 %x1, [%p];\n"
	"ld.global.u32 %x2, [%p];\n"
	"st.global.u64 [%p+32], %x0;\n"
	"st.global.v2.u64 [%p+48], {%x1, %x2};\n"
	"ld.global.s8 %h0, [%p];\n"
	"st.global.u16 [%p+40], %h0;\n"
	"st.global.u8 [%p+42], %v2;\n"
	"st.global.u16 [%p+44], %x1;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t *w = one_words(d);

	w[0] = 0x8765f381;
	one_run(d, text, 1);
	ck_assert_uint_eq(w[4], 0xffffff81);
	ck_assert_uint_eq(w[5], 0x81);
	ck_assert_uint_eq(w[6], 0xfffff381);
	ck_assert_uint_eq(w[7], 0xf381);
	ck_assert_uint_eq(w[8], 0xffffff81);
	ck_assert_uint_eq(w[9], 0xffffffff);
	ck_assert_uint_eq(w[10], 0x0081ff81);
	ck_assert_uint_eq(w[11], 0xf381);
	ck_assert_uint_eq(w[12], 0x8765f381);
	ck_assert_uint_eq(w[13], 0xffffffff);
	ck_assert_uint_eq(w[14], 0x8765f381);
	ck_assert_uint_eq(w[15], 0);
	dev_free(d);
}
END_TEST

/* Each shape of an access: in line, all at one place, apart, back to front. */
START_TEST(test_shapes)
{
	static const char text[] = ONE_BEGIN
	"mul.wide.u32 %x0, %t, 16;\n"
	"add.u64 %x1, %p, %x0;\n"
	"ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%x1];\n"
	"ld.global.u32 %v4, [%p+20];\n"
	"sub.u32 %v5, 63, %t;\n"
	"mul.wide.u32 %x2, %v5, 16;\n"
	"add.u64 %x2, %p, %x2;\n"
	"ld.global.v2.u32 {%v6, %v7}, [%x2+8];\n"
	"add.u32 %v0, %v0, %v1; add.u32 %v0, %v0, %v2;\n"
	"add.u32 %v0, %v0, %v3; add.u32 %v0, %v0, %v4;\n"
	"sub.u32 %v0, %v0, %v6; sub.u32 %v0, %v0, %v7;\n"
	"mul.wide.u32 %x3, %t, 4;\n"
	"add.u64 %x3, %p, %x3;\n"
	"setp.ne.u32 %q0, %t, 9;\n"
	"@%q0 st.global.u32 [%x3+4096], %v0;\n"
	"st.global.v2.u32 [%x2+8192], {%t, %v0};\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t *w = one_words(d), t, want;

	for (t = 0; t < 256; t++)
		w[t] = t * t;
	one_run(d, text, 64);
	for (t = 0; t < 64; t++) {
		uint32_t o = 4 * (63 - t);

		want = w[4 * t] + w[4 * t + 1] + w[4 * t + 2] + w[4 * t + 3] +
			w[5] - w[o + 2] - w[o + 3];
		ck_assert_uint_eq(w[1024 + t], t == 9 ? 0 : want);
		ck_assert_uint_eq(w[2048 + o], t);
		ck_assert_uint_eq(w[2048 + o + 1], want);
	}
	for (t = 0; t < 1024; t++)
		ck_assert_uint_eq(d->touched[t], 1);
	for (t = 1024; t < 4096; t++)
		ck_assert_uint_eq(d->touched[t], 0);
	for (t = 0; t < 64; t++)
		ck_assert_uint_eq(d->touched[4096 + 4 * t],
			t == 9 ? 0 : 2);
	dev_free(d);
}
END_TEST

/* A contiguous access of a warp is told once, in whole. */
START_TEST(test_touch_count)
{
	static const char text[] = ONE_BEGIN
	"mul.wide.u32 %x0, %t, 4;\n"
	"add.u64 %x1, %p, %x0;\n"
	"ld.global.u32 %v0, [%x1];\n"
	"st.global.u32 [%x1+1024], %v0;\n"
	"ld.global.u32 %v1, [%p];\n"
	"ret;\n}\n";
	struct dev *d = dev_new();

	one_run(d, text, 64);
	ck_assert_uint_eq(d->touches, 6);
	ck_assert_uint_eq(d->count.bytes_read, 256 + 8);
	ck_assert_uint_eq(d->count.bytes_written, 256);
	dev_free(d);
}
END_TEST

/* One kernel, every space through generic addresses, chosen by lane. */
START_TEST(test_generic)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u64 p, .param .align 8 .b8 s[24]) {\n"
	".local .align 8 .b8 mine[64]; .shared .align 8 .b8 ours[512];\n"
	".reg .b64 %p, %x<8>; .reg .b32 %t, %v<8>; .reg .pred %q<8>;\n"
	"ld.param.u64 %p, [p];\n"
	"mov.u32 %t, %tid.x;\n"
	"mul.wide.u32 %x0, %t, 4;\n"
	"add.u64 %x1, %p, %x0;\n"
	"mov.u64 %x2, ours;\n"
	"cvta.shared.u64 %x2, %x2;\n"
	"add.u64 %x2, %x2, %x0;\n"
	"mov.u64 %x3, mine;\n"
	"cvta.local.u64 %x3, %x3;\n"
	"and.b32 %v0, %t, 3;\n"
	"setp.eq.u32 %q0, %v0, 1;\n"
	"selp.b64 %x4, %x2, %x1, %q0;\n"
	"setp.ge.u32 %q1, %v0, 2;\n"
	"selp.b64 %x4, %x3, %x4, %q1;\n"
	"mad.lo.u32 %v1, %t, 5, 1;\n"
	"st.u32 [%x4], %v1;\n"
	"ld.u32 %v2, [%x4];\n"
	"isspacep.shared %q2, %x4;\n"
	"selp.u32 %v3, 1000, 0, %q2;\n"
	"isspacep.local %q2, %x4;\n"
	"selp.u32 %v4, 2000, %v3, %q2;\n"
	"isspacep.global %q2, %x4;\n"
	"selp.u32 %v4, 3000, %v4, %q2;\n"
	"add.u32 %v2, %v2, %v4;\n"
	"cvta.to.shared.u64 %x5, %x2;\n"
	"@%q0 ld.shared.u32 %v2, [%x5];\n"
	"ld.local.u32 %v5, [mine];\n"
	"st.global.u32 [%x1+4096], %v2;\n"
	"@%q1 st.global.u32 [%x1+8192], %v5;\n"
	"mov.b64 %x6, s;\n"
	"ld.param.u32 %v6, [%x6+16];\n"
	"ld.param.u32 %v7, [s+20];\n"
	"add.u32 %v6, %v6, %v7;\n"
	"st.global.u32 [%x1+12288], %v6;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t *w = one_words(d), t;
	struct {
		uint64_t p;
		uint32_t s[6];
	} params = { DEV_BASE, { 1, 2, 3, 4, 500, 60 } };

	dev_run_ok(d, text, "k", 1, 40, 0, &params);
	for (t = 0; t < 40; t++) {
		uint32_t v = 5 * t + 1;

		ck_assert_uint_eq(w[1024 + t], t % 4 == 1 ? v :
			t % 4 == 0 ? v + 3000 : v + 2000);
		ck_assert_uint_eq(w[2048 + t], t % 4 >= 2 ? v : 0);
		ck_assert_uint_eq(w[t], t % 4 == 0 ? v : 0);
		ck_assert_uint_eq(w[3072 + t], 560);
	}
	dev_free(d);
}
END_TEST

/* Static and dynamic shared memory do not overlap; sizes are as asked. */
START_TEST(test_shared)
{
	static const char text[] = PTX_HEAD
	".extern .shared .align 16 .b8 dyn[];\n"
	".shared .align 4 .b8 unused[4096];\n"
	".shared .u32 flag;\n"
	".visible .entry k(.param .u64 p) {\n"
	".shared .align 8 .f64 a[5];\n"
	".reg .b64 %p; .reg .b32 %t, %v<4>; .reg .f64 %d;\n"
	"ld.param.u64 %p, [p];\n"
	"st.shared.f64 [a+32], 0d3FF8000000000000;\n"
	"st.shared.u32 [flag], 7;\n"
	"mov.u32 %v0, dyn;\n"
	"st.shared.u32 [%v0+60], 9;\n"
	"st.shared.u32 [dyn], 8;\n"
	"ld.shared.f64 %d, [a+32];\n"
	"ld.shared.u32 %v1, [flag];\n"
	"ld.shared.u32 %v2, [dyn+60];\n"
	"st.global.f64 [%p], %d;\n"
	"st.global.v2.u32 [%p+8], {%v1, %v2};\n"
	"mov.u32 %v3, %dynamic_smem_size;\n"
	"st.global.u32 [%p+16], %v3;\n"
	"mov.u32 %v3, %total_smem_size;\n"
	"st.global.u32 [%p+20], %v3;\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	static const uint32_t one[3] = { 1, 1, 1 };
	struct ptx_kernel_info info;
	uint64_t params = DEV_BASE;
	double v;

	ptx_kernel_info(ptx_module_kernel(m, "k"), &info);
	ck_assert_uint_ge(info.shared_size, 44);
	ck_assert_uint_le(info.shared_size, 48);
	ck_assert_int_eq(dev_run3(d, m, "k", one, one, 64, &params), PTX_OK);
	memcpy(&v, d->mem, 8);
	ck_assert(v == 1.5);
	ck_assert_uint_eq(one_words(d)[2], 7);
	ck_assert_uint_eq(one_words(d)[3], 9);
	ck_assert_uint_eq(one_words(d)[4], 64);
	ck_assert_uint_eq(one_words(d)[5], 48 + 64);
	ck_assert_int_eq(dev_run3(d, m, "k", one, one, 60, &params),
		PTX_ILLEGAL_ADDRESS);
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

/* Variables of a module: values, sizes, addresses of each other. */
START_TEST(test_variables)
{
	static const char text[] = PTX_HEAD
	".visible .global .align 4 .u32 count = 5;\n"
	".const .align 8 .f32 table[4] = {1.5, 0f40000000, -3.0};\n"
	".global .align 1 .b8 text[6] = {104, 0x65, 108, 108, 111};\n"
	".global .align 8 .u64 to = generic(text)+2;\n"
	".global .align 8 .u64 list[2] = {count, table+8};\n"
	".global .align 2 .u16 grid[2][3] = {{1,2,3},{4,5,6}};\n"
	".global .align 16 .b8 zero[100];\n"
	".visible .entry k(.param .u64 p) {\n"
	".reg .b64 %p, %x<4>; .reg .b32 %v<6>; .reg .f32 %f<3>;\n"
	"ld.param.u64 %p, [p];\n"
	"ld.global.u32 %v0, [count];\n"
	"add.u32 %v0, %v0, 1;\n"
	"st.global.u32 [count], %v0;\n"
	"ld.const.f32 %f0, [table+8];\n"
	"mov.u64 %x0, table;\n"
	"ld.const.f32 %f1, [%x0+4];\n"
	"ld.global.u64 %x1, [to];\n"
	"ld.u8 %v1, [%x1];\n"
	"ld.global.u64 %x2, [list+8];\n"
	"ld.f32 %f2, [%x2];\n"
	"ld.global.u16 %v2, [grid+10];\n"
	"ld.global.u8 %v3, [zero+99];\n"
	"st.global.v4.u32 [%p], {%v0, %v1, %v2, %v3};\n"
	"st.global.f32 [%p+16], %f0;\n"
	"st.global.f32 [%p+20], %f1;\n"
	"st.global.f32 [%p+24], %f2;\n"
	"ret;\n}\n";
	static const uint32_t one[3] = { 1, 1, 1 };
	static const uint64_t sizes[] = { 4, 16, 6, 8, 16, 12, 100 };
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	uint64_t params = DEV_BASE, at = DEV_BASE + 65536;
	struct ptx_error e;
	float f[3];
	size_t n;

	ck_assert_uint_eq(ptx_module_nr_variables(m), 7);
	for (n = 0; n < 7; n++) {
		struct ptx_variable *v = ptx_module_variable(m, n);

		ck_assert_uint_eq(v->size, sizes[n]);
		ck_assert_int_eq(v->constant, n == 1);
		ck_assert_int_eq(v->init == NULL, n == 6);
		v->address = at;
		at += 256;
	}
	ck_assert_uint_eq(ptx_module_variable(m, 6)->align, 16);
	ck_assert_str_eq(ptx_module_variable(m, 0)->name, "count");
	ck_assert_int_eq(ptx_module_relocate(m, &e), PTX_OK);
	for (n = 0; n < 6; n++) {
		struct ptx_variable *v = ptx_module_variable(m, n);

		memcpy(d->mem + (v->address - DEV_BASE), v->init, v->size);
	}
	ck_assert_int_eq(dev_run3(d, m, "k", one, one, 0, &params), PTX_OK);
	ck_assert_uint_eq(one_words(d)[0], 6);
	ck_assert_uint_eq(one_words(d)[1], 'l');
	ck_assert_uint_eq(one_words(d)[2], 6);
	ck_assert_uint_eq(one_words(d)[3], 0);
	memcpy(f, d->mem + 16, sizeof(f));
	ck_assert(f[0] == -3.0f && f[1] == 2.0f && f[2] == -3.0f);
	ck_assert_uint_eq(one_words(d)[65536 / 4], 6);
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

START_TEST(test_params)
{
	static const char text[] = PTX_HEAD
	".visible .entry k(.param .u8 a, .param .f64 b, .param .u16 c,\n"
	".param .align 4 .b8 d[10], .param .align 16 .b8 e[16],\n"
	".param .u64 .ptr .global .align 16 f)\n"
	".maxntid 128, 2, 1\n.minnctapersm 2\n{\n"
	".reg .pred %p<3>; .reg .b32 %r<10>; .reg .f64 %fd;\n"
	"ret;\n}\n"
	".entry other() { ret; }\n";
	static const struct ptx_param want[] = { { 0, 1, 1 }, { 8, 8, 8 },
		{ 16, 2, 2 }, { 20, 10, 4 }, { 32, 16, 16 }, { 48, 8, 8 } };
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	struct ptx_kernel_info info;
	size_t n;

	ck_assert_uint_eq(ptx_module_nr_kernels(m), 2);
	ck_assert_uint_eq(ptx_module_target(m), 75);
	ck_assert_uint_eq(ptx_module_version(m), 78);
	ck_assert_ptr_null(ptx_module_kernel(m, "nobody"));
	ptx_kernel_info(ptx_module_kernel(m, "k"), &info);
	ck_assert_str_eq(info.name, "k");
	ck_assert_uint_eq(info.nr_params, 6);
	ck_assert_uint_eq(info.params_size, 56);
	ck_assert_uint_eq(info.max_threads, 256);
	ck_assert_uint_eq(info.nr_regs, 14);
	for (n = 0; n < 6; n++) {
		ck_assert_uint_eq(info.params[n].offset, want[n].offset);
		ck_assert_uint_eq(info.params[n].size, want[n].size);
		ck_assert_uint_eq(info.params[n].align, want[n].align);
	}
	ptx_kernel_info(ptx_module_kernel_at(m, 1), &info);
	ck_assert_str_eq(info.name, "other");
	ck_assert_uint_eq(info.params_size, 0);
	ck_assert_uint_eq(info.max_threads, 1024);
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

/* ---- cp.async ----------------------------------------------------------- */

#define SHARED_BEGIN PTX_HEAD ".shared .align 16 .b8 buf[1024];\n" \
	".visible .entry k(.param .u64 p) {\n" \
	".reg .b64 %p, %x<8>; .reg .b32 %t, %v<8>; .reg .pred %q<4>;\n" \
	"ld.param.u64 %p, [p];\n" \
	"mov.u32 %t, %tid.x;\n"

/* Every lane moves 16 bytes of its own to shared memory and back. */
START_TEST(test_copy_async)
{
	static const char text[] = SHARED_BEGIN
	"mul.wide.u32 %x0, %t, 16;\n"
	"add.u64 %x1, %p, %x0;\n"
	"mov.u32 %v0, buf;\n"
	"mad.lo.u32 %v1, %t, 16, %v0;\n"
	"cp.async.cg.shared.global.L2::128B [%v1], [%x1+64], 16;\n"
	"cp.async.commit_group;\n"
	"cp.async.wait_group 0;\n"
	"bar.sync 0;\n"
	"xor.b32 %v1, %v1, 16;\n"
	"ld.shared.v4.u32 {%v4, %v5, %v6, %v7}, [%v1];\n"
	"st.global.v4.u32 [%x1+2048], {%v4, %v5, %v6, %v7};\n"
	"ret;\n}\n";
	struct dev *d = dev_new();
	uint32_t *w = one_words(d);

	for (uint32_t k = 0; k < 40 * 4; k++)
		w[16 + k] = k * 0x01234567 + 1;
	one_run(d, text, 40);
	for (uint32_t k = 0; k < 40 * 4; k++)
		ck_assert_uint_eq(w[512 + k], w[16 + (k ^ 4)]);
	for (uint32_t k = 0; k < 64 + 40 * 16 + 16; k++)
		ck_assert_uint_eq(d->touched[k], k >= 64 && k < 64 + 40 * 16);
	dev_free(d);
}
END_TEST

/* All sizes, sources that are shorter, ignored or guarded away. */
START_TEST(test_copy_async_forms)
{
	static const char text[] = SHARED_BEGIN
	"mov.u64 %x2, -1;\n"
	"st.shared.v2.u64 [buf], {%x2, %x2};\n"
	"st.shared.v2.u64 [buf+16], {%x2, %x2};\n"
	"st.shared.v2.u64 [buf+32], {%x2, %x2};\n"
	"st.shared.v2.u64 [buf+48], {%x2, %x2};\n"
	"mov.u32 %v2, 3;\n"
	"setp.eq.u32 %q0, %t, 0;\n"
	"cp.async.ca.shared.global [buf], [%p], 4;\n"
	"cp.async.ca.shared::cta.global [buf+8], [%p+8], 8, %v2;\n"
	"cp.async.cg.shared.global [buf+16], [%p+16], 16, 8;\n"
	"cp.async.ca.shared.global [buf+32], [%p], 4, %q0;\n"
	"cp.async.ca.shared.global [buf+36], [%p], 4, !%q0;\n"
	"@!%q0 cp.async.ca.shared.global [buf+40], [%p], 8;\n"
	/* nothing is read from there */
	"mov.u64 %x3, 64;\n"
	"cp.async.ca.shared.global [buf+48], [%x3], 8, 0;\n"
	"cp.async.wait_all;\n"
	"ld.shared.v2.u64 {%x4, %x5}, [buf];\n"
	"st.global.v2.u64 [%p+64], {%x4, %x5};\n"
	"ld.shared.v2.u64 {%x4, %x5}, [buf+16];\n"
	"st.global.v2.u64 [%p+80], {%x4, %x5};\n"
	"ld.shared.v2.u64 {%x4, %x5}, [buf+32];\n"
	"st.global.v2.u64 [%p+96], {%x4, %x5};\n"
	"ld.shared.v2.u64 {%x4, %x5}, [buf+48];\n"
	"st.global.v2.u64 [%p+112], {%x4, %x5};\n"
	"ret;\n}\n";
	static const uint32_t want[16] = {
		0x11223344, ~0u, 0x223344, 0, 0x11223348, 0x11223349, 0, 0,
		0, 0x11223344, ~0u, ~0u, 0, 0, ~0u, ~0u,
	};
	struct dev *d = dev_new();
	uint32_t *w = one_words(d);

	for (uint32_t k = 0; k < 16; k++)
		w[k] = 0x11223344 + k;
	w[2] = 0x55223344;
	one_run(d, text, 1);
	for (uint32_t k = 0; k < 16; k++)
		ck_assert_msg(w[16 + k] == want[k], "word %u: %08x, not %08x",
			k, w[16 + k], want[k]);
	for (uint32_t k = 0; k < 64; k++)
		ck_assert_uint_eq(d->touched[k], k < 4 || (k >= 8 && k < 11) ||
			(k >= 16 && k < 24));
	dev_free(d);
}
END_TEST

START_TEST(test_copy_async_refused)
{
	static const struct {
		const char *body;
		enum ptx_status status;		/* of the run, or the parser */
		const char *message;
	} cases[] = {
		{ "cp.async.cg.shared.global [buf], [%p], 8;\n", PTX_SYNTAX,
		  "the size is 16 bytes" },
		{ "cp.async.ca.shared.global [buf], [%p], 2;\n", PTX_SYNTAX,
		  "the size is 4, 8 or 16 bytes" },
		{ "cp.async.bulk.commit_group;\n", PTX_UNSUPPORTED, "cp" },
		{ "cp.async.ca.global.shared [%p], [buf], 4;\n",
		  PTX_UNSUPPORTED, "cp" },
		{ "cp.async.ca.shared.global [buf+4], [%p], 8;\n",
		  PTX_MISALIGNED, "misaligned write of 8 bytes" },
		{ "cp.async.ca.shared.global [buf], [%p+4], 8;\n",
		  PTX_MISALIGNED, "misaligned read of 8 bytes" },
		{ "cp.async.ca.shared.global [buf+1024], [%p], 4;\n",
		  PTX_ILLEGAL_ADDRESS, "illegal shared write" },
		{ "cp.async.ca.shared.global [buf], [%p+1048576], 4;\n",
		  PTX_ILLEGAL_ADDRESS, "illegal global read of 4 bytes" },
	};
	struct dev *d = dev_new();
	uint64_t params = DEV_BASE;
	char text[1024];

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		struct ptx_module *m = NULL;
		enum ptx_status s;

		snprintf(text, sizeof(text), "%s%sret;\n}\n", SHARED_BEGIN,
			cases[n].body);
		s = ptx_module_create(text, strlen(text), &m, &d->error);
		if (s == PTX_OK) {
			ptx_module_destroy(m);
			s = dev_run(d, text, "k", 1, 1, 0, &params);
			ck_assert_msg(strstr(d->fault.message,
				cases[n].message), "%zu: %s", n,
				d->fault.message);
		} else {
			ck_assert_msg(strstr(d->error.message,
				cases[n].message), "%zu: %s", n,
				d->error.message);
		}
		ck_assert_msg(s == cases[n].status, "%zu: %s", n,
			ptx_status_name(s));
	}
	dev_free(d);
}
END_TEST

/* ---- faults ------------------------------------------------------------- */

START_TEST(test_faults)
{
	static const struct {
		const char *body;
		enum ptx_status status;
		uint32_t thread;
		uint64_t address;
		const char *message;
	} cases[] = {
		{ "mul.wide.u32 %x0, %t, 32768;\nadd.u64 %x0, %p, %x0;\n"
		  "ld.global.u32 %v0, [%x0];\n", PTX_ILLEGAL_ADDRESS, 32,
		  DEV_BASE + DEV_SIZE, "illegal global read of 4 bytes" },
		{ "mov.u64 %x0, 0;\nmov.u32 %v0, 0;\nst.global.u32 [%x0], %v0;\n",
		  PTX_ILLEGAL_ADDRESS, 0, 0, "illegal global write" },
		{ "mul.wide.u32 %x0, %t, 2;\nadd.u64 %x0, %p, %x0;\n"
		  "ld.global.u32 %v0, [%x0];\n", PTX_MISALIGNED, 1,
		  DEV_BASE + 2, "misaligned read of 4 bytes" },
		{ "mov.u32 %v0, 8;\nadd.u64 %x0, %p, 8;\n"
		  "ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%x0];\n",
		  PTX_MISALIGNED, 0, DEV_BASE + 8, "16 bytes" },
		{ "mov.u32 %v0, 4;\nmov.u32 %v1, 5;\nst.shared.u32 [%v0], %t;\n",
		  PTX_ILLEGAL_ADDRESS, 0, 4, "illegal shared write" },
		{ "mov.u32 %v0, 4;\nadd.u64 %x0, %p, 2;\n"
		  "atom.global.add.u32 %v0, [%x0], 1;\n",
		  PTX_MISALIGNED, 0, DEV_BASE + 2, "misaligned write" },
		{ "setp.eq.u32 %q0, %t, 17;\nmov.u32 %v0, 1;\n@%q0 trap;\n",
		  PTX_TRAP, 17, 0, "trap" },
	};
	struct dev *d = dev_new();
	uint64_t params = DEV_BASE;
	char text[2048];
	size_t n;

	for (n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		snprintf(text, sizeof(text), "%s%sret;\n}\n", ONE_BEGIN,
			cases[n].body);
		ck_assert_int_eq(dev_run(d, text, "k", 2, 64, 0, &params),
			cases[n].status);
		ck_assert_msg(strstr(d->fault.message, cases[n].message),
			"%zu: %s", n, d->fault.message);
		ck_assert_uint_eq(d->fault.thread[0], cases[n].thread);
		ck_assert_uint_eq(d->fault.block[0], 0);
		ck_assert_uint_eq(d->fault.address, cases[n].address);
		ck_assert_uint_eq(d->fault.line, 11);
	}
	dev_free(d);
}
END_TEST

START_TEST(test_bad_launch)
{
	static const char text[] = ONE_BEGIN "ret;\n}\n";
	static const uint32_t one[3] = { 1, 1, 1 }, zero[3] = { 1, 0, 1 },
		many[3] = { 1024, 2, 1 };
	struct dev *d = dev_new();
	struct ptx_module *m = dev_load(d, text);
	uint64_t params = DEV_BASE;

	ck_assert_int_eq(dev_run3(d, m, "k", zero, one, 0, &params),
		PTX_BAD_LAUNCH);
	ck_assert_int_eq(dev_run3(d, m, "k", one, many, 0, &params),
		PTX_BAD_LAUNCH);
	ck_assert_int_eq(dev_run3(d, m, "k", one, one, 0, NULL),
		PTX_BAD_LAUNCH);
	ck_assert_int_eq(dev_run3(d, m, "k", one, one, 0, &params), PTX_OK);
	ptx_module_destroy(m);
	dev_free(d);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("ptx_mem");
	TCase *t = tcase_create("all");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_widths);
	tcase_add_test(t, test_shapes);
	tcase_add_test(t, test_touch_count);
	tcase_add_test(t, test_generic);
	tcase_add_test(t, test_shared);
	tcase_add_test(t, test_variables);
	tcase_add_test(t, test_params);
	tcase_add_test(t, test_copy_async);
	tcase_add_test(t, test_copy_async_forms);
	tcase_add_test(t, test_copy_async_refused);
	tcase_add_test(t, test_faults);
	tcase_add_test(t, test_bad_launch);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
