/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CUDA programs in this folder share: error checks that name the
 * call, opening device 0, loading PTX, options, random numbers, a checksum.
 * Only <cuda.h> and libc are used, so every program builds and runs on a real
 * GPU as it is.  Errors end the program: 1 failed, 2 wrong usage.
 */
#ifndef E2E_UTIL_H
#define E2E_UTIL_H

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define E2E_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline const char *e2e_error_name(CUresult r)
{
	const char *name = NULL;

	if (cuGetErrorName(r, &name) != CUDA_SUCCESS || !name)
		return "unknown error";
	return name;
}

static inline void e2e_check(CUresult r, const char *call, const char *file,
	int line)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s:%d: %s failed: %s\n", file, line, call,
		e2e_error_name(r));
	exit(1);
}

/* CU(cuStreamCreate, &s, 0): the call, ended with its name on any error. */
#define CU(fn, ...) e2e_check(fn(__VA_ARGS__), #fn, __FILE__, __LINE__)

#define E2E_FAIL(...) do {						\
	fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);			\
	fprintf(stderr, __VA_ARGS__);					\
	fputc('\n', stderr);						\
	exit(1);							\
} while (0)

/* Host memory; never NULL, owned by the caller. */
static inline void *e2e_host(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		E2E_FAIL("no host memory for %zu bytes", size);
	return p;
}

static inline CUdeviceptr e2e_alloc(size_t size)
{
	CUdeviceptr p = 0;
	CUresult r = cuMemAlloc(&p, size);

	if (r != CUDA_SUCCESS) {
		fprintf(stderr, "cuMemAlloc of %zu bytes failed: %s\n", size,
			e2e_error_name(r));
		exit(1);
	}
	return p;
}

/* Makes device 0's primary context current to the calling thread. */
static inline CUdevice e2e_open(void)
{
	CUdevice dev;
	CUcontext ctx;

	CU(cuInit, 0);
	CU(cuDeviceGet, &dev, 0);
	CU(cuDevicePrimaryCtxRetain, &ctx, dev);
	CU(cuCtxSetCurrent, ctx);
	return dev;
}

static inline void e2e_close(CUdevice dev)
{
	CU(cuCtxSetCurrent, NULL);
	CU(cuDevicePrimaryCtxRelease, dev);
}

static inline CUmodule e2e_module(const char *ptx)
{
	static char log[4096];
	CUjit_option names[] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
	};
	void *values[] = { log, (void *)(uintptr_t)sizeof(log) };
	CUmodule mod;
	CUresult r = cuModuleLoadDataEx(&mod, ptx, 2, names, values);

	if (r != CUDA_SUCCESS)
		E2E_FAIL("cuModuleLoadDataEx failed: %s\n%s",
			e2e_error_name(r), log);
	return mod;
}

static inline CUfunction e2e_kernel(CUmodule mod, const char *name)
{
	CUfunction f;
	CUresult r = cuModuleGetFunction(&f, mod, name);

	if (r != CUDA_SUCCESS)
		E2E_FAIL("cuModuleGetFunction of %s failed: %s", name,
			e2e_error_name(r));
	return f;
}

/* splitmix64: one step of a stream of random numbers. */
static inline uint64_t e2e_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static inline void e2e_fill_random(void *data, size_t size, uint64_t *seed)
{
	unsigned char *p = data;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), p += sizeof(word)) {
		word = e2e_random(seed);
		memcpy(p, &word, sizeof(word));
	}
	word = e2e_random(seed);
	memcpy(p, &word, size);
}

/* FNV-1a over 64-bit words (the rest by bytes); start with E2E_HASH. */
#define E2E_HASH 0xcbf29ce484222325u

static inline uint64_t e2e_hash(uint64_t h, const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t word;

	for (; size >= sizeof(word); size -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = (h ^ word) * 0x100000001b3u;
		h ^= h >> 32;
	}
	for (; size; size--, p++)
		h = (h ^ *p) * 0x100000001b3u;
	return h;
}

/* ---- options ------------------------------------------------------------- */

/* --name VALUE where `value` is a number; --name alone where it is a flag. */
struct e2e_option {
	const char *name;
	uint64_t *value;
	int flag;
};

/* "4096", "64K", "4M", "1G".  0 when it is a number, else -1. */
static inline int e2e_number(const char *text, uint64_t *out)
{
	static const char unit[] = "KMG";
	const char *at;
	char *end;
	uint64_t v = strtoull(text, &end, 0);

	if (end == text || *text == '-')
		return -1;
	if (*end && (at = strchr(unit, *end & ~0x20))) {
		v <<= 10 * (at - unit + 1);
		end++;
	}
	*out = v;
	return *end ? -1 : 0;
}

static inline void e2e_usage(const char *prog, const struct e2e_option *opts,
	size_t nr)
{
	fprintf(stderr, "usage: %s", prog);
	for (size_t i = 0; i < nr; i++)
		fprintf(stderr, opts[i].flag ? " [--%s]" : " [--%s N]",
			opts[i].name);
	fputc('\n', stderr);
	exit(2);
}

static inline void e2e_options(int argc, char **argv,
	const struct e2e_option *opts, size_t nr)
{
	for (int i = 1; i < argc; i++) {
		size_t o = 0;

		if (strncmp(argv[i], "--", 2))
			e2e_usage(argv[0], opts, nr);
		while (o < nr && strcmp(argv[i] + 2, opts[o].name))
			o++;
		if (o == nr)
			e2e_usage(argv[0], opts, nr);
		if (opts[o].flag)
			*opts[o].value = 1;
		else if (++i == argc || e2e_number(argv[i], opts[o].value))
			e2e_usage(argv[0], opts, nr);
	}
}

#endif
