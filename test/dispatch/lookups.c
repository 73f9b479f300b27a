/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded before Ballast, or alone: writes what a program asks of
 * cuGetProcAddress_v2, and what it gets, to the file LOOKUPS, one request a
 * line: name, version, flags, result, symbol.  A line "bad ..." says that the
 * answer is not who it should be, by EXPECT as in the other dispatch tests:
 * Ballast's wrapper for what it hooks, the driver for the rest.  Called by
 * run.sh; the program under test is the real CUDA runtime's.
 */
#include <cuda.h>

#include "test/dispatch/dispatch.h"

typedef void *dlsym_fn(void *, const char *);
typedef CUresult get_fn(const char *, void **, int, cuuint64_t,
	CUdriverProcAddressQueryResult *);

static dlsym_fn *libc_dlsym, *next_dlsym;
static get_fn *next_get, *driver_get;
static FILE *out;

/* The driver's own answer, which names the symbol that is meant. */
static const char *symbol_of(void *p)
{
	Dl_info info;

	if (p == NULL)
		return "NULL";
	return dladdr(p, &info) && info.dli_sname ? info.dli_sname : "unknown";
}

static CUresult get(const char *name, void **p, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status)
{
	CUresult r = next_get(name, p, version, flags, status);
	void *own = NULL;
	const char *symbol;

	if (r != CUDA_SUCCESS || driver_get(name, &own, version, flags, NULL) !=
	    CUDA_SUCCESS)
		own = NULL;
	symbol = symbol_of(own);
	fprintf(out, "%s %d %d %d %s\n", *name ? name : "-", version,
		(int)flags, (int)r, symbol);
	if (own != NULL && !lies_in(own, DRIVER))
		fprintf(out, "bad %s: the driver's answer lies in %s\n", name,
			home_of(own));
	if (own != NULL && (!lies_in(*p, expected_home(symbol)) ||
	    strcmp(symbol_of(*p), symbol) != 0))
		fprintf(out, "bad %s: %s in %s, not %s in %s\n", name,
			symbol_of(*p), home_of(*p), symbol,
			expected_home(symbol));
	fflush(out);
	/* The runtime asks the rest of what it got here. */
	if (strcmp(symbol, "cuGetProcAddress_v2") == 0)
		*p = (void *)get;
	return r;
}

static void begin(void)
{
	const char *path = getenv("LOOKUPS");
	void *ballast = dlopen(WRAPPED, RTLD_NOW | RTLD_NOLOAD);

	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	libc_dlsym = (dlsym_fn *)dlvsym(libc, "dlsym", "GLIBC_2.34");
	CHECK(libc_dlsym != NULL, "no dlsym");
	next_dlsym = libc_dlsym;
	if (ballast != NULL)
		next_dlsym = (dlsym_fn *)libc_dlsym(ballast, "dlsym");
	CHECK(next_dlsym != NULL, "no dlsym in Ballast");
	out = fopen(path != NULL ? path : "/dev/null", "a");
	CHECK(out != NULL, "%s cannot be written", path);
}

__attribute__((visibility("default")))
void *dlsym(void *restrict handle, const char *restrict name)
{
	void *p;

	if (next_dlsym == NULL)
		begin();
	p = next_dlsym(handle, name);
	if (p == NULL || strncmp(name, "cu", 2) != 0)
		return p;
	fprintf(out, "dlsym %s in %s\n", name, home_of(p));
	fflush(out);
	if (strcmp(name, "cuGetProcAddress_v2") != 0)
		return p;
	next_get = (get_fn *)p;
	driver_get = (get_fn *)libc_dlsym(handle, name);
	return (void *)get;
}
