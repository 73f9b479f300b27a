/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the dispatch tests: where an address lies, and checks that say what
 * failed.  The programs know which names Ballast wraps (cuda_api.def); BALLAST
 * in their environment says whether they run with it.
 */
#ifndef BALLAST_TEST_DISPATCH_H
#define BALLAST_TEST_DISPATCH_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond, ...) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, \
				#cond); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			exit(1); \
		} \
	} while (0)

#define WRAPPED "libballast.so"
#define DRIVER "libcuda.so"

/* The file name that an address belongs to; "nothing" where there is none. */
static inline const char *home_of(const void *p)
{
	const char *base;
	Dl_info info;

	if (p == NULL || dladdr(p, &info) == 0)
		return "nothing";
	base = strrchr(info.dli_fname, '/');
	return base != NULL ? base + 1 : info.dli_fname;
}

static inline bool lies_in(const void *p, const char *file)
{
	return strncmp(home_of(p), file, strlen(file)) == 0;
}

#define CHECK_IN(p, file) \
	CHECK(lies_in((p), (file)), "it is in %s, not %s", home_of(p), (file))

static inline bool is_hooked(const char *name)
{
	static const char *const hooked[] = {
#define HOOK(sym, base, since, flavour) #sym,
#define CALL(sym, base, since, flavour)
#include "shim/cuda_api.def"
#undef HOOK
#undef CALL
	};
	size_t i;

	for (i = 0; i < sizeof(hooked) / sizeof(hooked[0]); i++)
		if (strcmp(hooked[i], name) == 0)
			return true;
	return false;
}

/* Whether this process is expected to see wrappers. */
static inline bool with_ballast(void)
{
	const char *v = getenv("EXPECT");

	return v != NULL && strcmp(v, "ballast") == 0;
}

static inline const char *expected_home(const char *name)
{
	return with_ballast() && is_hooked(name) ? WRAPPED : DRIVER;
}

static inline void *open_driver(int mode)
{
	void *h = dlopen("libcuda.so.1", mode);

	CHECK(h != NULL, "%s", dlerror());
	return h;
}

#endif
