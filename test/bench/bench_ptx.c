/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the interpreter is, in million lane-instructions per second on one
 * core: a matrix-vector product, a warp per row (coalesced loads, fma, loop,
 * shuffle reduction), first without anybody watching memory, then with a
 * callback that marks every byte read or written in a bitmap, as a race
 * detector does.  The clock is the thread's own, so that other work on the
 * machine counts little.  run.sh collects the lines.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "test/softcuda/ptx.h"

#define ROWS 2048
#define COLS 1024
#define WARPS 4			/* of a block */
#define RUNS 9
#define BASE 0x200000000000ull

static const char text[] =
".version 7.0\n"
".target sm_75\n"
".address_size 64\n"
".visible .entry matvec(.param .u64 w, .param .u64 x, .param .u64 y,\n"
"	.param .u32 rows, .param .u32 cols)\n"
"{\n"
"	.reg .pred %p<5>;\n"
"	.reg .f32 %f<12>;\n"
"	.reg .b32 %r<16>;\n"
"	.reg .b64 %rd<16>;\n"
"	ld.param.u64 %rd1, [w];\n"
"	ld.param.u64 %rd2, [x];\n"
"	ld.param.u64 %rd3, [y];\n"
"	ld.param.u32 %r1, [rows];\n"
"	ld.param.u32 %r2, [cols];\n"
"	cvta.to.global.u64 %rd1, %rd1;\n"
"	cvta.to.global.u64 %rd2, %rd2;\n"
"	cvta.to.global.u64 %rd3, %rd3;\n"
"	mov.u32 %r3, %tid.x;\n"
"	mov.u32 %r4, %ctaid.x;\n"
"	mov.u32 %r5, %ntid.x;\n"
"	mad.lo.s32 %r6, %r4, %r5, %r3;\n"
"	shr.u32 %r6, %r6, 5;\n"
"	and.b32 %r7, %r3, 31;\n"
"	setp.ge.u32 %p1, %r6, %r1;\n"
"	@%p1 bra DONE;\n"
"	mul.lo.u32 %r8, %r6, %r2;\n"
"	add.u32 %r8, %r8, %r7;\n"
"	mul.wide.u32 %rd4, %r8, 4;\n"
"	add.s64 %rd5, %rd1, %rd4;\n"
"	mul.wide.u32 %rd6, %r7, 4;\n"
"	add.s64 %rd7, %rd2, %rd6;\n"
"	mov.f32 %f1, 0f00000000;\n"
"	mov.u32 %r9, %r7;\n"
"	setp.ge.u32 %p2, %r9, %r2;\n"
"	@%p2 bra SUM;\n"
"LOOP:\n"
"	ld.global.nc.f32 %f2, [%rd5];\n"
"	ld.global.nc.f32 %f3, [%rd7];\n"
"	fma.rn.f32 %f1, %f2, %f3, %f1;\n"
"	add.s64 %rd5, %rd5, 128;\n"
"	add.s64 %rd7, %rd7, 128;\n"
"	add.s32 %r9, %r9, 32;\n"
"	setp.lt.u32 %p3, %r9, %r2;\n"
"	@%p3 bra LOOP;\n"
"SUM:\n"
"	mov.b32 %r10, %f1;\n"
"	shfl.sync.bfly.b32 %r11, %r10, 16, 31, -1;\n"
"	mov.b32 %f4, %r11;\n"
"	add.f32 %f1, %f1, %f4;\n"
"	mov.b32 %r10, %f1;\n"
"	shfl.sync.bfly.b32 %r11, %r10, 8, 31, -1;\n"
"	mov.b32 %f4, %r11;\n"
"	add.f32 %f1, %f1, %f4;\n"
"	mov.b32 %r10, %f1;\n"
"	shfl.sync.bfly.b32 %r11, %r10, 4, 31, -1;\n"
"	mov.b32 %f4, %r11;\n"
"	add.f32 %f1, %f1, %f4;\n"
"	mov.b32 %r10, %f1;\n"
"	shfl.sync.bfly.b32 %r11, %r10, 2, 31, -1;\n"
"	mov.b32 %f4, %r11;\n"
"	add.f32 %f1, %f1, %f4;\n"
"	mov.b32 %r10, %f1;\n"
"	shfl.sync.bfly.b32 %r11, %r10, 1, 31, -1;\n"
"	mov.b32 %f4, %r11;\n"
"	add.f32 %f1, %f1, %f4;\n"
"	setp.ne.u32 %p4, %r7, 0;\n"
"	@%p4 bra DONE;\n"
"	mul.wide.u32 %rd8, %r6, 4;\n"
"	add.s64 %rd9, %rd3, %rd8;\n"
"	st.global.f32 [%rd9], %f1;\n"
"DONE:\n"
"	ret;\n"
"}\n";

static const size_t size = 4ul * (ROWS * COLS + COLS + ROWS);
static uint8_t *memory;
static uint64_t *read_map, *write_map;	/* one bit a byte */

static void die(const char *what)
{
	fprintf(stderr, "bench_ptx: %s\n", what);
	exit(1);
}

static bool translate(void *self, uint64_t address, bool write,
	struct ptx_run *out)
{
	if (address - BASE >= size)
		return false;
	*out = (struct ptx_run){ BASE, size, memory };
	return true;
}

static void mark(void *self, uint64_t address, uint64_t n, bool write)
{
	uint64_t *map = write ? write_map : read_map;
	uint64_t bit = address - BASE, end = bit + n;

	while (bit < end) {
		uint64_t in = 64 - (bit & 63);

		if (in > end - bit)
			in = end - bit;
		map[bit >> 6] |= (in == 64 ? ~0ull : (1ull << in) - 1)
			<< (bit & 63);
		bit += in;
	}
}

/* Row 0 in the order in which the kernel adds: bit for bit. */
static float expected(const float *w, const float *x)
{
	float s[32] = { 0 }, t[32];
	int k, l;

	for (k = 0; k < COLS; k += 32)
		for (l = 0; l < 32; l++)
			s[l] = fmaf(w[k + l], x[k + l], s[l]);
	for (k = 16; k; k >>= 1) {
		for (l = 0; l < 32; l++)
			t[l] = s[l] + s[l ^ k];
		memcpy(s, t, sizeof(s));
	}
	return s[0];
}

static double one_run(const struct ptx_kernel *k, bool touch)
{
	struct {
		uint64_t w, x, y;
		uint32_t rows, cols;
	} params = { BASE, BASE + 4ull * ROWS * COLS,
		BASE + 4ull * (ROWS * COLS + COLS), ROWS, COLS };
	struct ptx_memory m = { .translate = translate,
		.touch = touch ? mark : NULL };
	struct ptx_launch l = { .grid = { ROWS / WARPS, 1, 1 },
		.block = { WARPS * 32, 1, 1 }, .params = &params,
		.memory = &m };
	struct ptx_count count;
	struct ptx_fault fault;
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	if (ptx_run(k, &l, &count, &fault) != PTX_OK)
		die(fault.message);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	return (double)count.lane_instructions * 1e3 /
		((double)(b.tv_sec - a.tv_sec) * 1e9 +
		 (double)(b.tv_nsec - a.tv_nsec));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void report(const struct ptx_kernel *k, const char *name, bool touch,
	const char *limit)
{
	double v[RUNS];
	int n;

	one_run(k, touch);
	for (n = 0; n < RUNS; n++)
		v[n] = one_run(k, touch);
	qsort(v, RUNS, sizeof(v[0]), compare);
	printf("{\"name\":\"%s\",\"value\":%.1f,\"unit\":\"M/s\","
		"\"better\":\"higher\",\"limit\":%s,\"spread\":%.3f}\n", name,
		v[RUNS / 2], limit, (v[RUNS - 1] - v[0]) / v[RUNS / 2]);
}

int main(void)
{
	struct ptx_module *m;
	struct ptx_error e;
	float *w, *x, *y;
	uint32_t seed = 1, n;

	memory = aligned_alloc(4096, (size + 4095) & ~4095ul);
	read_map = calloc(1, size / 8 + 8);
	write_map = calloc(1, size / 8 + 8);
	if (!memory || !read_map || !write_map)
		die("no memory");
	w = (float *)memory;
	x = w + ROWS * COLS;
	y = x + COLS;
	for (n = 0; n < ROWS * COLS + COLS; n++) {
		seed = seed * 1664525u + 1013904223u;
		w[n] = (float)(seed >> 8) / 16777216.0f - 0.5f;
	}
	if (ptx_module_create(text, sizeof(text) - 1, &m, &e) != PTX_OK)
		die(e.message);
	report(ptx_module_kernel(m, "matvec"), "ptx_matvec_mlaneops", false,
		"400");
	report(ptx_module_kernel(m, "matvec"), "ptx_matvec_touch_mlaneops",
		true, "null");
	if (y[0] != expected(w, x))
		die("the product is wrong");
	ptx_module_destroy(m);
	free(memory);
	free(read_map);
	free(write_map);
	return 0;
}
