/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is there: device and driver; what cuGetProcAddress returns, compared
 * with the library's exports; where a tensor map keeps its address.  Run by
 * probe.c, each in its own process.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/gpu/probe.h"

void probe_machine(void);
void probe_entry(void);
void probe_tensor_map(void);

/* ---- the device --------------------------------------------------------------- */

void probe_machine(void)
{
	size_t total = 0, free_bytes = 0, best = 0;
	CUmemAllocationProp prop = probe_prop();
	char name[128] = "";
	int version = 0;

	PROBE_TRY("version", drv.cuDriverGetVersion(&version));
	PROBE_TRY("name", drv.cuDeviceGetName(name, sizeof(name),
		probe_device()));
	PROBE_TRY("memory", drv.cuMemGetInfo_v2(&free_bytes, &total));
	probe_value("driver", version, "", "%s", name);
	probe_value("compute_capability", probe_attribute(
		CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
		+ probe_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
		"", "%s", "");
	probe_value("memory", (double)total, "bytes", "%.2f GiB free",
		(double)free_bytes / (double)PROBE_GIB);
	if (!probe_has_vmm())
		return;
	PROBE_TRY("granularity", drv.cuMemGetAllocationGranularity(&best, &prop,
		CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
	probe_verdict("granularity", (double)probe_grain(), "bytes",
		probe_grain() == 2 * PROBE_MIB, "it is 2 MiB",
		"recommended %zu", best);
}

/* ---- h: entry points -------------------------------------------------------------- */

/* Every name of a driver of 13.0. */
static const struct row {
	const char *symbol, *base, *flavour;
	int since;
} rows[] = {
#define EXPORT(symbol, base, since, flavour)				\
	{ #symbol, #base, #flavour, since },
#include "test/softcuda/exports.def"
#undef EXPORT
};

static void *address[PROBE_LEN(rows)];	/* of the export, or NULL */

/* What the driver gives for a name; NULL if nothing. */
static void *look_up(const char *base, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
	void *p = NULL;
	CUresult r;

	if (drv.cuGetProcAddress_v2)
		r = drv.cuGetProcAddress_v2(base, &p, version, flags, &found);
	else
		r = drv.cuGetProcAddress(base, &p, version, flags);
	return r == CUDA_SUCCESS && found == CU_GET_PROC_ADDRESS_SUCCESS ? p
		: NULL;
}

static int is_export(const void *p)
{
	for (size_t i = 0; i < PROBE_LEN(rows); i++)
		if (address[i] == p)
			return 1;
	return 0;
}

/* Every row by its own version and flavour: the very same address. */
static void own_versions(void)
{
	size_t same = 0, other = 0;
	char first[128] = "";

	for (size_t i = 0; i < PROBE_LEN(rows); i++) {
		int ptsz = !strncmp(rows[i].flavour, "PT", 2);
		void *p;

		if (!address[i])
			continue;
		p = look_up(rows[i].base, rows[i].since, ptsz
			? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
			: CU_GET_PROC_ADDRESS_LEGACY_STREAM);
		same += p == address[i];
		if (p && p != address[i] && !other++)
			snprintf(first, sizeof(first), ", first %s",
				rows[i].symbol);
	}
	probe_verdict("rows_with_their_own_address", (double)same, "count",
		other == 0, "a look-up by a row's version gives that export",
		"%zu rows, %zu gave another address%s", PROBE_LEN(rows), other,
		first);
}

/* All versions and flags: addresses that dlsym gives too. */
static void all_versions(void)
{
	static const int versions[] = { 11000, 11020, 11040, 11060, 11080,
		12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090,
		13000 };
	size_t asked = 0, known = 0, start = 0;
	char first[128] = "";
	Dl_info info;

	for (size_t i = 0; i < PROBE_LEN(rows); i++) {
		for (size_t v = 0; v < PROBE_LEN(versions); v++) {
			for (cuuint64_t flags = 0; flags < 3; flags++) {
				void *p = look_up(rows[i].base, versions[v],
					flags);

				if (!p)
					continue;
				asked++;
				if (is_export(p))
					known++;
				else if (!first[0])
					snprintf(first, sizeof(first),
						", first %s for %d",
						rows[i].base, versions[v]);
				if (dladdr(p, &info) && info.dli_saddr == p)
					start++;
			}
		}
	}
	probe_verdict("addresses_known_to_dlsym", (double)known, "count",
		known == asked, "cuGetProcAddress returns addresses of exports",
		"of %zu%s", asked, first);
	probe_value("addresses_that_dladdr_names", (double)start, "count",
		"of %zu", asked);
}

void probe_entry(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	size_t missing = 0;

	if (!lib)
		lib = dlopen("libcuda.so", RTLD_NOW | RTLD_NOLOAD);
	if (!lib) {
		probe_status("library", PROBE_FAILED, "%s", dlerror());
		return;
	}
	for (size_t i = 0; i < PROBE_LEN(rows); i++) {
		address[i] = dlsym(lib, rows[i].symbol);
		missing += !address[i];
	}
	probe_value("rows_not_exported", (double)missing, "count",
		"newer than the driver, or older than it keeps");
	own_versions();
	all_versions();
	dlclose(lib);
}

/* ---- i: tensor maps ------------------------------------------------------------------ */

/* cuTensorMapEncodeTiled; the map is 128 opaque bytes, enums are ints. */
typedef CUresult (*encode_fn)(void *, int, cuuint32_t, void *,
	const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
	const cuuint32_t *, int, int, int, int);

#define MAP_WORDS 16
#define TYPE_FLOAT32 7

static CUresult encode(encode_fn fn, uint64_t *map, CUdeviceptr at)
{
	static const cuuint64_t dim[2] = { 64, 64 }, stride[1] = { 256 };
	static const cuuint32_t box[2] = { 16, 16 }, step[2] = { 1, 1 };

	return fn(map, TYPE_FLOAT32, 2, (void *)(uintptr_t)at, dim, stride, box,
		step, 0, 0, 0, 0);
}

void probe_tensor_map(void)
{
	static uint64_t a[MAP_WORDS] __attribute__((aligned(128)));
	static uint64_t b[MAP_WORDS] __attribute__((aligned(128)));
	int differ = 0, at = -1;
	encode_fn fn = NULL;
	void *found;
	CUdeviceptr p;

	found = look_up("cuTensorMapEncodeTiled", 12000,
		CU_GET_PROC_ADDRESS_LEGACY_STREAM);
	if (!found) {
		probe_status("encode", PROBE_UNSUPPORTED,
			"the driver has no cuTensorMapEncodeTiled");
		return;
	}
	memcpy(&fn, &found, sizeof(fn));
	PROBE_TRY("memory", drv.cuMemAlloc_v2(&p, PROBE_MIB));
	PROBE_TRY("encode", encode(fn, a, p));
	PROBE_TRY("encode", encode(fn, b, p + 64 * PROBE_KIB));
	for (int i = 0; i < MAP_WORDS; i++) {
		differ += a[i] != b[i];
		if (a[i] == p && b[i] == p + 64 * PROBE_KIB)
			at = i;
	}
	probe_value("words_that_differ", differ, "count",
		"of 16, with two addresses");
	probe_verdict("word_of_the_address", at, "", at == 0,
		"the address is word 0 as it is, where encoders are not seen",
		"-1: in no word as it is");
}
