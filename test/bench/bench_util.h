/* SPDX-License-Identifier: Apache-2.0 */
/* What the benches that are CUDA programs share. */
#ifndef BALLAST_BENCH_UTIL_H
#define BALLAST_BENCH_UTIL_H

#include <cuda.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void check(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: error %d\n", program_invocation_short_name,
		what, (int)r);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#endif
