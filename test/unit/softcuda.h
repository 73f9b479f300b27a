/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the software driver share: the driver is linked in, each
 * test is a process of its own with its own knobs.
 */
#ifndef UNIT_SOFTCUDA_H
#define UNIT_SOFTCUDA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/cuda_abi.h"
#include "test/softcuda/softcuda_ctl.h"
#include "test/unit/unit.h"

extern softcuda_now_ns_fn softcuda_now_ns;
extern softcuda_get_stats_fn softcuda_get_stats;
extern softcuda_nr_reports_fn softcuda_nr_reports;
extern softcuda_last_report_fn softcuda_last_report;
extern softcuda_clear_reports_fn softcuda_clear_reports;
extern softcuda_fail_next_fn softcuda_fail_next;

#define GRAIN 65536u

#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)
#define IS(call, code) ck_assert_int_eq((call), (code))

/* Small pages, numbers that are easy to add up, nothing from outside. */
static inline void soft_env(void)
{
	setenv("SOFTCUDA_GRANULARITY", "65536", 1);
	setenv("SOFTCUDA_MEMORY", "16M", 1);
	setenv("SOFTCUDA_CALL_NS", "0", 1);
	setenv("SOFTCUDA_LINK_NS", "1000", 1);
	setenv("SOFTCUDA_LAUNCH_NS", "500", 1);
	setenv("SOFTCUDA_H2D_GBPS", "1", 1);
	setenv("SOFTCUDA_D2H_GBPS", "1", 1);
	setenv("SOFTCUDA_PAGEABLE_GBPS", "1", 1);
	setenv("SOFTCUDA_HBM_GBPS", "10", 1);
	unsetenv("SOFTCUDA_STRICT");
	unsetenv("SOFTCUDA_REPORT");
	unsetenv("SOFTCUDA_STATS");
}

/* A context on device 0, current. */
static inline CUcontext soft_open(void)
{
	CUcontext ctx;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cuCtxSetCurrent(ctx));
	return ctx;
}

static inline CUdeviceptr soft_alloc(size_t size)
{
	CUdeviceptr p;

	OK(cuMemAlloc_v2(&p, size));
	return p;
}

static inline void *soft_pinned(size_t size)
{
	void *p;

	OK(cuMemAllocHost_v2(&p, size));
	memset(p, 1, size);
	return p;
}

static inline CUstream soft_stream(void)
{
	CUstream s;

	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	return s;
}

static inline CUevent soft_event(void)
{
	CUevent e;

	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	return e;
}

static inline CUmemGenericAllocationHandle soft_create(size_t size)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle h;

	OK(cuMemCreate(&h, size, &prop, 0));
	return h;
}

static inline CUdeviceptr soft_reserve(size_t size)
{
	CUdeviceptr p;

	OK(cuMemAddressReserve(&p, size, 0, 0, 0));
	return p;
}

static inline CUresult soft_access(CUdeviceptr p, size_t size,
	CUmemAccess_flags flags)
{
	CUmemAccessDesc d = {
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.flags = flags,
	};

	return cuMemSetAccess(p, size, &d, 1);
}

/* One more report of this kind than before, and nothing else. */
static inline void soft_expect_report(const char *rule)
{
	char text[512], want[64];

	ck_assert_uint_eq(softcuda_nr_reports(), 1);
	softcuda_last_report(text, sizeof(text));
	snprintf(want, sizeof(want), "REPORT %s:", rule);
	ck_assert_msg(strstr(text, want) != NULL, "%s", text);
	softcuda_clear_reports();
}

static inline void soft_expect_silence(void)
{
	char text[512] = "";

	softcuda_last_report(text, sizeof(text));
	ck_assert_msg(!softcuda_nr_reports(), "%s", text);
}

/* Tests that want the same knobs. */
struct soft_case {
	void (*setup)(void);
	const TTest *test[16];		/* NULL behind the last */
};

static inline int soft_run_cases(const char *name, const struct soft_case *c,
	size_t nr)
{
	Suite *s = suite_create(name);
	size_t i, j;
	TCase *tc;

	for (i = 0; i < nr; i++) {
		tc = tcase_create(name);
		tcase_add_checked_fixture(tc, c[i].setup, NULL);
		for (j = 0; j < 16 && c[i].test[j]; j++)
			tcase_add_test(tc, c[i].test[j]);
		suite_add_tcase(s, tc);
	}
	return unit_run(s);
}

#endif
