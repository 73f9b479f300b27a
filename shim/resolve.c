/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways in that are not bound at load time: dlsym, dlopen and
 * cuGetProcAddress.  The trampolines of resolve_x86_64.S are what the program
 * calls as dlsym and dlopen; they ask resolve_dlsym() and resolve_dlopen()
 * here and, in nearly every case, jump on to the C library with all arguments
 * as they were: RTLD_NEXT, $ORIGIN and namespaces depend on the caller's
 * address, so our frame must not stand between.
 *
 * This file is built without sanitizers: their runtimes call dlsym before they
 * are ready.  For the same reason a name that does not begin with "cu" touches
 * nothing but its first two bytes.  No locks: the loader may hold its own.
 */
#include "shim/resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim/api_table.h"
#include "shim/conf.h"

typedef void *dlsym_fn(void *handle, const char *name);
typedef void *dlopen_fn(const char *file, int mode);

/* What a trampoline does next; returned in rax and rdx. */
struct answer {
	uintptr_t value;	/* dlsym: the result; dlopen: the mode */
	void *jump;		/* where to go on; NULL: return value */
};

struct answer resolve_dlsym(void *handle, const char *name, void *caller);
struct answer resolve_dlopen(const char *file, int mode);

static dlsym_fn *real_dlsym;
static dlopen_fn *real_dlopen;

static void *no_dlsym(void *handle, const char *name)
{
	return NULL;
}

static void *no_dlopen(const char *file, int mode)
{
	return NULL;
}

/*
 * dlvsym is the one look-up function that is not wrapped.  With a version it
 * also finds the next interposer behind us, which then finds the C library.
 */
static void *next_version(const char *name, void *fallback)
{
	void *p = dlvsym(RTLD_NEXT, name, "GLIBC_2.34");

	if (p == NULL)
		p = dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
	return p != NULL ? p : fallback;
}

static dlsym_fn *get_dlsym(void)
{
	dlsym_fn *fn = __atomic_load_n(&real_dlsym, __ATOMIC_RELAXED);

	if (fn == NULL) {
		fn = (dlsym_fn *)next_version("dlsym", (void *)no_dlsym);
		__atomic_store_n(&real_dlsym, fn, __ATOMIC_RELAXED);
	}
	return fn;
}

static dlopen_fn *get_dlopen(void)
{
	dlopen_fn *fn = __atomic_load_n(&real_dlopen, __ATOMIC_RELAXED);

	if (fn == NULL) {
		fn = (dlopen_fn *)next_version("dlopen", (void *)no_dlopen);
		__atomic_store_n(&real_dlopen, fn, __ATOMIC_RELAXED);
	}
	return fn;
}

void *resolve_symbol(void *handle, const char *name)
{
	void *p = get_dlsym()(handle, name);

	/* Also keeps the call above from becoming a jump: see the file head. */
	dlerror();
	return p;
}

void *resolve_open(const char *file, int mode)
{
	void *h = get_dlopen()(file, mode);

	dlerror();
	return h;
}

bool resolve_in_driver(const void *address)
{
	const char *base;
	Dl_info info;

	if (dladdr(address, &info) == 0 || info.dli_fname == NULL)
		return false;
	base = strrchr(info.dli_fname, '/');
	base = base != NULL ? base + 1 : info.dli_fname;
	return strncmp(base, "libcuda.so", 10) == 0;
}

/*
 * BALLAST_ENABLED alone decides here: the files are not read before cuInit.
 * The spellings are those of conf_value.c.
 */
static bool switched_off(void)
{
	static const char *const no[] = { "false", "no", "off", "0" };
	static int known;	/* 0: not yet, 1: off, 2: on */
	int now = __atomic_load_n(&known, __ATOMIC_RELAXED);
	const char *value;
	size_t i;

	if (now == 0) {
		now = 2;
		value = secure_getenv("BALLAST_ENABLED");
		for (i = 0; value != NULL && i < ARRAY_LEN(no); i++)
			if (strcasecmp(value, no[i]) == 0)
				now = 1;
		__atomic_store_n(&known, now, __ATOMIC_RELAXED);
	}
	return now == 1;
}

/* ---- dlsym ---- */

/* The function in a driver that is loaded, whoever can see it, or NULL. */
static void *in_any_driver(const char *name)
{
	void *p = resolve_symbol(RTLD_NEXT, name), *h;

	if (p != NULL)
		return p;
	h = resolve_open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (h == NULL)
		return NULL;
	p = resolve_symbol(h, name);
	dlclose(h);
	return p;
}

static bool is_ours(const char *name, const void *p)
{
	return p == api_wrapper_named(name);
}

struct answer resolve_dlsym(void *handle, const char *name, void *caller)
{
	dlsym_fn *fn = get_dlsym();
	const struct answer go_on = { 0, (void *)fn };
	void *wrapper, *found;

	if (name == NULL || name[0] != 'c' || name[1] != 'u')
		return go_on;
	if (handle == RTLD_NEXT)
		return go_on;
	wrapper = api_wrapper_named(name);
	/* A driver that asks for itself (WSL's loads another) gets itself. */
	if (wrapper == NULL || resolve_in_driver(caller))
		return go_on;
	found = resolve_symbol(handle, name);
	if (found == NULL)
		return go_on;
	if (is_ours(name, found)) {
		/*
		 * Found through the global scope, where we stand for a driver
		 * that may not exist.  The look-up behind us then fails with
		 * the message that the program would have got.
		 */
		found = in_any_driver(name);
		if (found == NULL)
			found = fn(RTLD_NEXT, name);
		else if (!switched_off())
			found = wrapper;
		return (struct answer){ (uintptr_t)found, NULL };
	}
	if (switched_off() || !resolve_in_driver(found) || !api_bind(handle))
		return go_on;
	return (struct answer){ (uintptr_t)wrapper, NULL };
}

/* ---- dlopen ---- */

static bool drops_deepbind(void)
{
	static int known;	/* 0: not yet, 1: keeps, 2: drops */
	int now = __atomic_load_n(&known, __ATOMIC_RELAXED);

	if (now == 0) {
		struct conf c;

		conf_load(&c, NULL, NULL, NULL);
		now = c.enabled && c.deepbind == DEEPBIND_DROP ? 2 : 1;
		__atomic_store_n(&known, now, __ATOMIC_RELAXED);
	}
	return now == 2;
}

/*
 * A library opened with RTLD_DEEPBIND looks itself and its own C library up
 * first, so its dlsym would be the real one and we would not be seen.
 */
struct answer resolve_dlopen(const char *file, int mode)
{
	if (mode & RTLD_DEEPBIND && !switched_off() && drops_deepbind())
		mode &= ~RTLD_DEEPBIND;
	return (struct answer){ (uintptr_t)(unsigned int)mode,
		(void *)get_dlopen() };
}

/* ---- cuGetProcAddress ---- */

/*
 * The driver decides what a name, version and flags mean; only the address it
 * gave is replaced.
 */
static void replace(CUresult r, void **pfn)
{
	void *wrapper;

	if (r != CUDA_SUCCESS || pfn == NULL || *pfn == NULL || switched_off())
		return;
	wrapper = api_wrapper_of(*pfn);
	if (wrapper != NULL)
		*pfn = wrapper;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version,
	cuuint64_t flags)
{
	CUresult r = REAL(cuGetProcAddress)(symbol, pfn, version, flags);

	replace(r, pfn);
	return r;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version,
	cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult r = REAL(cuGetProcAddress_v2)(symbol, pfn, version, flags,
		status);

	replace(r, pfn);
	return r;
}
