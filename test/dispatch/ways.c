/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways into the driver for a program that is not linked to it.  One case per
 * run: ways CASE [argument]; run.sh gives each its environment.
 */
#include <cuda.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/dispatch/dispatch.h"

typedef CUresult init_fn(unsigned int);
typedef CUresult proc1_fn(const char *, void **, int, cuuint64_t);
typedef CUresult proc2_fn(const char *, void **, int, cuuint64_t,
	CUdriverProcAddressQueryResult *);

struct export {
	const char *symbol, *base;
	int since;
};

static const struct export exports[] = {
#define EXPORT(sym, base, since, flavour) { #sym, #base, since },
#include "test/softcuda/exports.def"
#undef EXPORT
};
#define NR_EXPORTS (sizeof(exports) / sizeof(exports[0]))

/* dlopen and dlsym, every name of the driver. */
static void way_dlsym(const char *arg)
{
	void *h = open_driver(RTLD_NOW | RTLD_LOCAL);
	init_fn *init;
	size_t i;

	for (i = 0; i < NR_EXPORTS; i++) {
		const char *name = exports[i].symbol;
		void *p = dlsym(h, name);
		const char *error = dlerror();

		CHECK(error == NULL, "%s: %s", name, error);
		CHECK(lies_in(p, expected_home(name)), "%s is in %s", name,
			home_of(p));
		CHECK(dlsym(h, name) == p, "%s: another answer", name);
	}
	CHECK(dlsym(h, "cuNoSuchThing") == NULL, "found");
	CHECK(strstr(dlerror(), "cuNoSuchThing") != NULL, "other message");
	CHECK(dlerror() == NULL, "a second message");
	init = (init_fn *)dlsym(h, "cuInit");
	CHECK(init(0) == CUDA_SUCCESS, "cuInit failed");
}

static const char *symbol_at(void *p)
{
	Dl_info info;

	if (p == NULL)
		return "NULL";
	CHECK(dladdr(p, &info) != 0 && info.dli_sname != NULL, "no symbol");
	return info.dli_sname;
}

/*
 * Prints what each look-up led to, by symbol; run.sh compares the answers with
 * and without Ballast.  The home is checked here.
 */
static void ask(proc1_fn *get1, proc2_fn *get2, const char *base, int version,
	cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status = 99;
	void *p1 = NULL, *p2 = NULL, *p3 = NULL;
	CUresult r1 = get1(base, &p1, version, flags);
	CUresult r2 = get2(base, &p2, version, flags, &status);

	CHECK(get2(base, &p3, version, flags, NULL) == r2, "status matters");
	CHECK(r1 == r2 && p1 == p2 && p2 == p3, "v1 and v2 differ for %s",
		base);
	printf("%s %d %d: %s %d %d\n", base, version, (int)flags,
		symbol_at(p2), (int)r2, (int)status);
	if (p2 != NULL)
		CHECK_IN(p2, expected_home(symbol_at(p2)));
}

static void way_procaddr(const char *arg)
{
	void *h = open_driver(RTLD_NOW);
	proc2_fn *get2 = (proc2_fn *)dlsym(h, "cuGetProcAddress_v2");
	proc1_fn *get1 = (proc1_fn *)dlsym(h, "cuGetProcAddress");
	cuuint64_t flags;
	size_t i;

	CHECK(get1 != NULL && get2 != NULL, "not found");
	for (i = 0; i < NR_EXPORTS; i++) {
		for (flags = 0; flags <= 2; flags++) {
			ask(get1, get2, exports[i].base, exports[i].since,
				flags);
			ask(get1, get2, exports[i].base, exports[i].since - 1,
				flags);
			ask(get1, get2, exports[i].base, 13000, flags);
		}
	}
	ask(get1, get2, "cuNoSuchThing", 13000, 0);
	ask(get1, get2, "", 0, 0);
}

/* As the runtime does it: one dlsym, then everything by cuGetProcAddress. */
static void way_runtime(const char *arg)
{
	void *h = open_driver(RTLD_NOW);
	proc2_fn *get = (proc2_fn *)dlsym(h, "cuGetProcAddress_v2");
	void *p = NULL;

	CHECK(get("cuGetProcAddress", &p, 12000, 0, NULL) == CUDA_SUCCESS,
		"no cuGetProcAddress");
	CHECK_IN(p, expected_home("cuGetProcAddress_v2"));
	get = (proc2_fn *)p;
	CHECK(get("cuInit", &p, 2000, 0, NULL) == CUDA_SUCCESS, "no cuInit");
	CHECK_IN(p, expected_home("cuInit"));
	CHECK(((init_fn *)p)(0) == CUDA_SUCCESS, "cuInit failed");
	CHECK(get("cuLaunchKernel", &p, 7000, 2, NULL) == CUDA_SUCCESS,
		"no cuLaunchKernel");
	CHECK(strcmp(symbol_at(p), "cuLaunchKernel_ptsz") == 0, "%s",
		symbol_at(p));
	CHECK_IN(p, expected_home("cuLaunchKernel_ptsz"));
}

/* arg: the plugin; EXPECT_PLUGIN says whose functions it must find. */
static void open_plugin(const char *arg, int mode)
{
	int (*go)(const char *home);
	void *h = dlopen(arg, mode);

	CHECK(h != NULL, "%s", dlerror());
	go = (int (*)(const char *))dlsym(h, "plugin_go");
	CHECK(go != NULL, "no plugin_go");
	CHECK(go(with_ballast() ? WRAPPED : DRIVER) == 0, "plugin failed");
}

static void way_plugin(const char *arg)
{
	open_plugin(arg, RTLD_NOW | RTLD_LOCAL);
}

static void way_deepbind(const char *arg)
{
	open_plugin(arg, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}

/* Without a driver nothing may look as if there were one. */
static void way_absent(const char *arg)
{
	void *self = dlopen(NULL, RTLD_NOW);
	const char *error;

	CHECK(dlopen("libcuda.so.1", RTLD_NOW) == NULL, "there is a driver");
	CHECK((error = dlerror()) != NULL && strstr(error, "libcuda.so.1"),
		"other message: %s", error ? error : "none");
	CHECK(dlsym(RTLD_DEFAULT, "cuInit") == NULL, "found by RTLD_DEFAULT");
	CHECK((error = dlerror()) != NULL && strstr(error, "cuInit"),
		"other message: %s", error ? error : "none");
	CHECK(dlsym(self, "cuInit") == NULL, "found in the program");
	CHECK((error = dlerror()) != NULL && strstr(error, "cuInit"),
		"other message: %s", error ? error : "none");
	/* From the program the next object is Ballast: as the loader says. */
	if (!with_ballast())
		CHECK(dlsym(RTLD_NEXT, "cuInit") == NULL, "found");
	if (cuInit != NULL)
		CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE, "weak reference");
	else
		CHECK(!with_ballast(), "weak reference is NULL");
}

/* RTLD_DEFAULT and the program's own handle, once a driver is there. */
static void way_default(const char *arg)
{
	void *self = dlopen(NULL, RTLD_NOW);
	void *h = open_driver(RTLD_NOW | RTLD_GLOBAL);

	CHECK_IN(dlsym(RTLD_DEFAULT, "cuInit"), expected_home("cuInit"));
	CHECK(dlerror() == NULL, "a message");
	CHECK_IN(dlsym(self, "cuInit"), expected_home("cuInit"));
	CHECK_IN(dlsym(h, "cuInit"), expected_home("cuInit"));
	CHECK_IN(dlsym(RTLD_DEFAULT, "cuDriverGetVersion"), DRIVER);
}

static void expect_same(void *h, void *list, const char *name)
{
	void *own = ((void *(*)(const char *))list)(name);

	CHECK(own != NULL, "%s is not in the library", name);
	CHECK(dlsym(h, name) == own, "%s was replaced", name);
}

/* arg: a library with names that only look like the driver's. */
static void way_names(const char *arg)
{
	void *driver = open_driver(RTLD_NOW);
	void *h = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
	void *list;

	CHECK(h != NULL, "%s", dlerror());
	list = dlsym(h, "own_address");
	CHECK(list != NULL, "no own_address");
	expect_same(h, list, "cublasCreate_v2");
	expect_same(h, list, "cudnnCreate");
	expect_same(h, list, "curl_easy_init");
	expect_same(h, list, "cuInitX");
	expect_same(h, list, "cu");
	/* Not a driver, whatever it exports. */
	expect_same(h, list, "cuInit");
	expect_same(h, list, "cuLaunchKernel");
	CHECK_IN(dlsym(driver, "cuInit"), expected_home("cuInit"));
}

/* arg: a library that only the program's RUNPATH $ORIGIN/sub leads to. */
static void way_origin(const char *arg)
{
	void *h = dlopen(arg, RTLD_NOW | RTLD_LOCAL);

	CHECK(h != NULL, "%s", dlerror());
	CHECK(dlsym(h, "origin_ok") != NULL, "%s", dlerror());
}

/* arg: a library whose dependency has the next definition of a function. */
static void way_next(const char *arg)
{
	void *h = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
	int (*go)(void);

	CHECK(h != NULL, "%s", dlerror());
	go = (int (*)(void))dlsym(h, "next_value");
	CHECK(go != NULL, "%s", dlerror());
	CHECK(go() == 12, "RTLD_NEXT led to %d", go());
}

/* Versioned look-ups of the look-up functions themselves. */
static void way_versions(const char *arg)
{
	static const char *const names[] = { "dlsym", "dlopen" };
	static const char *const versions[] = { "GLIBC_2.2.5", "GLIBC_2.34" };
	void *h = open_driver(RTLD_NOW);
	void *(*look_up)(void *, const char *);
	int i, j;

	for (i = 0; i < 2; i++) {
		for (j = 0; j < 2; j++) {
			void *p = dlvsym(RTLD_DEFAULT, names[i], versions[j]);

			CHECK(p != NULL, "no %s@%s", names[i], versions[j]);
			CHECK(lies_in(p, WRAPPED) == with_ballast(), "%s@%s "
				"is in %s", names[i], versions[j], home_of(p));
		}
		look_up = (void *(*)(void *, const char *))
			dlvsym(RTLD_DEFAULT, "dlsym", versions[i]);
		CHECK_IN(look_up(h, "cuInit"), expected_home("cuInit"));
	}
}

#ifdef SAN_BUILD
/*
 * A library's name is made and read under the loader's own lock, which the
 * thread sanitizer does not see.
 */
__attribute__((visibility("default")))
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:ld-linux\n";
}
#endif

static pthread_barrier_t gate;

static void *race(void *arg)
{
	init_fn *init;
	void *h;

	pthread_barrier_wait(&gate);
	h = open_driver(RTLD_NOW);
	init = (init_fn *)dlsym(h, "cuInit");
	CHECK_IN((void *)init, expected_home("cuInit"));
	CHECK(init(0) == CUDA_SUCCESS, "cuInit failed");
	return NULL;
}

static void way_threads(const char *arg)
{
	pthread_t t[16];
	int i;

	pthread_barrier_init(&gate, NULL, 16);
	for (i = 0; i < 16; i++)
		pthread_create(&t[i], NULL, race, NULL);
	for (i = 0; i < 16; i++)
		pthread_join(t[i], NULL);
}

/* Closing the driver's handle must not leave us with dangling pointers. */
static void way_close(const char *arg)
{
	init_fn *init;
	void *h;
	int i;

	for (i = 0; i < 3; i++) {
		h = open_driver(RTLD_NOW);
		init = (init_fn *)dlsym(h, "cuInit");
		CHECK(init(0) == CUDA_SUCCESS, "cuInit failed");
		CHECK(dlclose(h) == 0, "%s", dlerror());
	}
	if (with_ballast())
		CHECK(init(0) == CUDA_SUCCESS, "cuInit failed");
}

/* No CUDA at all. */
static void way_none(const char *arg)
{
	struct stat st;

	CHECK(dlsym(RTLD_DEFAULT, "printf") != NULL, "no printf");
	CHECK(dlsym(RTLD_DEFAULT, "no_such_function") == NULL, "found");
	CHECK(dlsym(RTLD_DEFAULT, "c") == NULL, "found");
	CHECK(dlopen("libm.so.6", RTLD_NOW | (arg ? RTLD_DEEPBIND : 0)),
		"%s", dlerror());
	CHECK(stat("/proc/self/task", &st) == 0, "no /proc");
	/* ThreadSanitizer has one of its own. */
	if (getenv("SAN") == NULL || *getenv("SAN") == '\0')
		CHECK(st.st_nlink == 3, "%d threads", (int)st.st_nlink - 2);
}

/* The weak reference of way_absent; other cases have it bound to Ballast. */
#pragma weak cuInit

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *arg);
	} ways[] = {
		{ "absent", way_absent }, { "close", way_close },
		{ "deepbind", way_deepbind }, { "default", way_default },
		{ "dlsym", way_dlsym }, { "names", way_names },
		{ "next", way_next }, { "none", way_none },
		{ "origin", way_origin }, { "plugin", way_plugin },
		{ "procaddr", way_procaddr }, { "runtime", way_runtime },
		{ "threads", way_threads }, { "versions", way_versions },
	};
	size_t i;

	for (i = 0; argc > 1 && i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (strcmp(ways[i].name, argv[1]) != 0)
			continue;
		ways[i].run(argc > 2 ? argv[2] : NULL);
		return 0;
	}
	fprintf(stderr, "ways: no such case\n");
	return 2;
}
