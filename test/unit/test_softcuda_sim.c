/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time: what takes how long, what overlaps, what waits.  With the
 * knobs of soft_env a copy of n bytes takes 1000 + n ns.
 */
#include "test/unit/softcuda.h"

#include <sys/wait.h>
#include <unistd.h>

#define SIZE 100000u

static CUdeviceptr d, e;
static void *pin, *pin2;
static CUstream s1, s2;

static void open_all(void)
{
	soft_open();
	d = soft_alloc(SIZE);
	e = soft_alloc(SIZE);
	pin = soft_pinned(SIZE);
	pin2 = soft_pinned(SIZE);
	s1 = soft_stream();
	s2 = soft_stream();
}

static void setup(void)
{
	soft_env();
	open_all();
}

static void setup_two_engines(void)
{
	soft_env();
	setenv("SOFTCUDA_COPY_ENGINES", "2", 1);
	open_all();
}

static void setup_jitter(void)
{
	soft_env();
	setenv("SOFTCUDA_JITTER", "20", 1);
	open_all();
}

static void setup_drop(void)
{
	soft_env();
	setenv("SOFTCUDA_DROP", "0.05:0.2:50", 1);
	open_all();
}

static uint64_t span(uint64_t since)
{
	return softcuda_now_ns() - since;
}

START_TEST(one_copy)
{
	uint64_t t = softcuda_now_ns();

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	ck_assert_uint_eq(span(t), 0);
	OK(cuStreamSynchronize(s1));
	ck_assert_uint_eq(span(t), SIZE + 1000);
	/* Synchronous copies take as long, and the host waits. */
	t = softcuda_now_ns();
	OK(cuMemcpyDtoH_v2(pin, d, SIZE));
	ck_assert_uint_eq(span(t), SIZE + 1000);
}
END_TEST

/* One engine a direction: the same way in turn, both ways at once. */
START_TEST(engines)
{
	uint64_t t = softcuda_now_ns();

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemcpyHtoDAsync_v2(e, pin2, SIZE, s2));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(span(t), 2 * (SIZE + 1000));
	t = softcuda_now_ns();
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemcpyDtoHAsync_v2(pin2, e, SIZE, s2));
	OK(cuCtxSynchronize());
	ck_assert_uint_eq(span(t), SIZE + 1000);
}
END_TEST

START_TEST(two_engines)
{
	uint64_t t = softcuda_now_ns();

	/* The second copy starts while the first runs: half the link. */
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemcpyHtoDAsync_v2(e, pin2, SIZE / 10, s2));
	OK(cuStreamSynchronize(s2));
	ck_assert_uint_eq(span(t), 2 * (SIZE / 10 + 1000));
	OK(cuStreamSynchronize(s1));
	ck_assert_uint_eq(span(t), SIZE + 1000);
}
END_TEST

START_TEST(dependency)
{
	CUevent ev = soft_event();
	uint64_t t = softcuda_now_ns();

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuEventRecord(ev, s1));
	OK(cuStreamWaitEvent(s2, ev, 0));
	OK(cuMemsetD8Async(e, 1, SIZE, s2));
	OK(cuStreamSynchronize(s2));
	/* The memset: 500 + 100000 / 10 ns. */
	ck_assert_uint_eq(span(t), SIZE + 1000 + 500 + SIZE / 10);
	/* Without the wait it would have run beside the copy. */
	t = softcuda_now_ns();
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemsetD8Async(e, 1, SIZE, s2));
	OK(cuStreamSynchronize(s2));
	ck_assert_uint_eq(span(t), 500 + SIZE / 10);
	OK(cuStreamSynchronize(s1));
	ck_assert_uint_eq(span(t), SIZE + 1000);
}
END_TEST

/* A copy reads at its end, so what a forgotten wait computes is wrong. */
START_TEST(forgotten_wait)
{
	unsigned char out[4];

	OK(cuMemsetD8_v2(d, 3, SIZE));
	OK(cuCtxSynchronize());
	memset(pin, 7, SIZE);
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuMemcpyDtoDAsync_v2(e, d, 4, s2));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH_v2(out, e, 4));
	ck_assert_int_eq(out[0], 3);
	ck_assert_uint_ge(softcuda_nr_reports(), 1);
	softcuda_clear_reports();
}
END_TEST

/* The source may change until the copy has run, pageable memory at once. */
START_TEST(staging)
{
	static unsigned char pageable[64];
	unsigned char out[2];

	memset(pageable, 1, sizeof(pageable));
	memset(pin, 1, SIZE);
	OK(cuMemcpyHtoDAsync_v2(d, pageable, 64, s1));
	OK(cuMemcpyHtoDAsync_v2(e, pin, 64, s1));
	memset(pageable, 2, sizeof(pageable));
	memset(pin, 2, SIZE);
	OK(cuStreamSynchronize(s1));
	OK(cuMemcpyDtoH_v2(&out[0], d, 1));
	OK(cuMemcpyDtoH_v2(&out[1], e, 1));
	ck_assert_int_eq(out[0], 1);
	ck_assert_int_eq(out[1], 2);
	soft_expect_report("hostwrite");
}
END_TEST

START_TEST(order_in_stream)
{
	unsigned char out[3];
	int i;

	for (i = 0; i < 100; i++) {
		OK(cuMemsetD8Async(d, (unsigned char)i, 3, s1));
		OK(cuMemcpyDtoDAsync_v2(e, d, 3, s1));
	}
	OK(cuMemcpyDtoHAsync_v2(pin, e, 3, s1));
	OK(cuStreamSynchronize(s1));
	memcpy(out, pin, 3);
	ck_assert_int_eq(out[2], 99);
	soft_expect_silence();
}
END_TEST

START_TEST(event_times)
{
	CUevent a, b;
	float ms;

	OK(cuEventCreate(&a, 0));
	OK(cuEventCreate(&b, 0));
	OK(cuEventRecord(a, s1));
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuEventRecord(b, s1));
	IS(cuEventQuery(b), CUDA_ERROR_NOT_READY);
	IS(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY);
	OK(cuEventSynchronize(b));
	OK(cuEventElapsedTime_v2(&ms, a, b));
	ck_assert_float_eq_tol(ms, (SIZE + 1000) / 1e6, 1e-6);
}
END_TEST

static uint64_t run_jitter(void)
{
	uint64_t t = softcuda_now_ns();

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	return span(t);
}

START_TEST(jitter)
{
	uint64_t a = run_jitter(), b = run_jitter();

	ck_assert_uint_ne(a, b);
	ck_assert_uint_ge(a, (SIZE + 1000) * 8 / 10);
	ck_assert_uint_le(a, (SIZE + 1000) * 12 / 10);
}
END_TEST

START_TEST(bandwidth_drop)
{
	uint64_t t;

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	t = softcuda_now_ns();
	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	OK(cuStreamSynchronize(s1));
	ck_assert_uint_eq(span(t), 2 * SIZE + 1000);
}
END_TEST

/* Thousands of events in a chain need no stack. */
START_TEST(long_chain)
{
	CUevent ev = soft_event();
	int i;

	OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
	for (i = 0; i < 20000; i++) {
		OK(cuEventRecord(ev, i % 2 ? s2 : s1));
		OK(cuStreamWaitEvent(i % 2 ? s1 : s2, ev, 0));
	}
	OK(cuCtxSynchronize());
	soft_expect_silence();
}
END_TEST

START_TEST(counters)
{
	struct softcuda_stats st;

	OK(cuMemcpyHtoD_v2(d, pin, 1000));
	OK(cuMemcpyDtoH_v2(pin, d, 500));
	OK(cuMemcpyDtoD_v2(e, d, 300));
	OK(cuMemsetD8_v2(e, 0, 200));
	OK(cuCtxSynchronize());
	softcuda_get_stats(&st);
	ck_assert_uint_eq(st.h2d_bytes, 1000);
	ck_assert_uint_eq(st.d2h_bytes, 500);
	ck_assert_uint_eq(st.d2d_bytes, 300);
	ck_assert_uint_eq(st.set_bytes, 200);
	ck_assert_uint_eq(st.h2d_copies, 1);
	ck_assert_uint_eq(st.h2d_busy_ns, 2000);
	ck_assert_uint_eq(st.pinned_bytes, 2 * SIZE);
	ck_assert_uint_eq(st.virtual_ns, softcuda_now_ns());
}
END_TEST

static void read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	fclose(f);
	unlink(path);
}

/* What a process leaves behind: counters, trace, reports. */
START_TEST(files)
{
	static const char *const names[] = { "STATS", "TRACE", "REPORT" };
	char path[3][40], env[32];
	static char text[1 << 20];
	int i, status;
	pid_t pid;

	soft_env();
	for (i = 0; i < 3; i++) {
		snprintf(path[i], sizeof(path[i]), "/tmp/softcuda-%d-%d",
			(int)getpid(), i);
		snprintf(env, sizeof(env), "SOFTCUDA_%s", names[i]);
		setenv(env, path[i], 1);
	}
	pid = fork();
	if (!pid) {
		open_all();
		OK(cuMemcpyHtoDAsync_v2(d, pin, SIZE, s1));
		OK(cuMemsetD8Async(d, 0, 1, s2));
		OK(cuCtxSynchronize());
		exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	read_file(path[0], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "\"h2d_bytes\": 100000,"));
	ck_assert_ptr_nonnull(strstr(text, "\"races\": 1,"));
	ck_assert_ptr_nonnull(strstr(text, "\"virtual_ns\": 101000,"));
	read_file(path[1], text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "\"name\":\"copy to device\","
		"\"pid\":0,\"tid\":0,\"ts\":0.000,\"dur\":101.000"));
	ck_assert_ptr_nonnull(strstr(text, "cuMemsetD8Async"));
	ck_assert_str_eq(text + strlen(text) - 3, "}]\n");
	read_file(path[2], text, sizeof(text));
	ck_assert_ptr_eq(strstr(text, "softcuda: REPORT race: "), text);
}
END_TEST

static void setup_nothing(void)
{
}

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { one_copy, engines, dependency, forgotten_wait,
			staging, order_in_stream, event_times, long_chain,
			counters } },
		{ setup_two_engines, { two_engines } },
		{ setup_jitter, { jitter } },
		{ setup_drop, { bandwidth_drop } },
		{ setup_nothing, { files } },
	};

	return soft_run_cases("softcuda_sim", cases,
		sizeof(cases) / sizeof(cases[0]));
}
