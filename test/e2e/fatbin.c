/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binaries put together by hand: the text plain, as an LZ4 block and as a
 * zstd frame (both made of literals, which needs no compressor), alone and in
 * a wrapper, for several architectures in one; loaded as modules and as a
 * library.  What is no code for this device is refused.
 */
#include "test/e2e/e2e_util.h"

/* A kernel that stores a number; the number tells which text was taken. */
#define TEXT(sm, number) \
	".version 7.0\n" \
	".target sm_" #sm "\n" \
	".address_size 64\n" \
	".visible .entry store(.param .u64 p)\n" \
	"{\n" \
	"	.reg .u64 %p;\n" \
	"	.reg .u32 %v;\n" \
	"	ld.param.u64 %p, [p];\n" \
	"	cvta.to.global.u64 %p, %p;\n" \
	"	mov.u32 %v, " #number ";\n" \
	"	st.global.u32 [%p], %v;\n" \
	"	ret;\n" \
	"}\n"

struct image {
	unsigned char data[8192];
	size_t len;
};

static void put(struct image *m, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		m->data[m->len++] = (unsigned char)(v >> 8 * i);
}

static void put_text(struct image *m, const char *text, size_t len)
{
	memcpy(m->data + m->len, text, len);
	m->len += len;
}

/* One sequence of literals. */
static void lz4(struct image *m, const char *text, size_t len)
{
	size_t rest = len - 15;

	put(m, 0xf0, 1);
	for (; rest >= 255; rest -= 255)
		put(m, 255, 1);
	put(m, rest, 1);
	put_text(m, text, len);
}

/* A frame of one raw block, the size of the contents in the header. */
static void zstd(struct image *m, const char *text, size_t len)
{
	put(m, 0xfd2fb528, 4);
	put(m, 0xa0, 1);
	put(m, len, 4);
	put(m, len << 3 | 1, 3);
	put_text(m, text, len);
}

enum how { PLAIN, LZ4, ZSTD };

static void entry(struct image *m, int kind, unsigned int sm, const char *text,
	enum how how)
{
	static const uint64_t flags[] = { 0x11, 0x2011, 0x8011 };
	static struct image packed;
	size_t len = strlen(text) + 1;

	packed.len = 0;
	if (how == PLAIN)
		put_text(&packed, text, len);
	else if (how == LZ4)
		lz4(&packed, text, len);
	else
		zstd(&packed, text, len);
	size_t size = packed.len;

	while (packed.len % 8)
		put(&packed, 0, 1);
	put(m, (uint64_t)kind, 2);
	put(m, 0x0101, 2);
	put(m, 64, 4);
	put(m, packed.len, 8);
	put(m, how == PLAIN ? 0 : size, 4);
	put(m, 0, 4);
	put(m, 0, 2);
	put(m, 7, 2);
	put(m, sm, 4);
	put(m, 0, 8);
	put(m, flags[how], 8);
	put(m, 0, 8);
	put(m, how == PLAIN ? 0 : len, 8);
	put_text(m, (const char *)packed.data, packed.len);
}

static void begin(struct image *m)
{
	m->len = 0;
	put(m, 0xba55ed50, 4);
	put(m, 1, 2);
	put(m, 16, 2);
	put(m, 0, 8);
}

static void end(struct image *m)
{
	uint64_t size = m->len - 16;

	memcpy(m->data + 8, &size, 8);
}

static uint32_t launch(CUfunction f)
{
	CUdeviceptr p = e2e_alloc(4);
	uint32_t v = 0;
	void *args[] = { &p };

	CU(cuLaunchKernel, f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
	CU(cuMemcpyDtoH, &v, p, 4);
	CU(cuMemFree, p);
	return v;
}

static void expect(uint32_t got, uint32_t want, const char *what)
{
	if (got != want)
		E2E_FAIL("%s: the kernel stored %u, not %u", what, got, want);
	printf("%s: %u\n", what, got);
}

static uint32_t through_module(const void *image, int fat)
{
	CUmodule mod;
	uint32_t v;

	if (fat)
		CU(cuModuleLoadFatBinary, &mod, image);
	else
		CU(cuModuleLoadData, &mod, image);
	v = launch(e2e_kernel(mod, "store"));
	CU(cuModuleUnload, mod);
	return v;
}

static uint32_t through_library(const void *image)
{
	CUkernel kernel;
	CUlibrary lib;
	uint32_t v;

	CU(cuLibraryLoadData, &lib, image, NULL, NULL, 0, NULL, NULL, 0);
	CU(cuLibraryGetKernel, &kernel, lib, "store");
	v = launch((CUfunction)kernel);
	CU(cuLibraryUnload, lib);
	return v;
}

/* Bytes of `m` in a file that cuModuleLoad reads. */
static uint32_t through_file(const struct image *m)
{
	char path[] = "/tmp/fatbin-XXXXXX";
	int fd = mkstemp(path);
	CUmodule mod;
	CUresult r;
	uint32_t v;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f || fwrite(m->data, 1, m->len, f) != m->len || fclose(f))
		E2E_FAIL("no temporary file");
	r = cuModuleLoad(&mod, path);
	remove(path);
	if (r != CUDA_SUCCESS)
		E2E_FAIL("cuModuleLoad failed: %s", e2e_error_name(r));
	v = launch(e2e_kernel(mod, "store"));
	CU(cuModuleUnload, mod);
	return v;
}

static void refused(const struct image *m, CUresult want, const char *what)
{
	CUmodule mod;
	CUresult r = cuModuleLoadData(&mod, m->data);

	if (r != want)
		E2E_FAIL("%s: %s", what, e2e_error_name(r));
}

int main(void)
{
	static struct image m;
	struct {
		uint32_t magic, version;
		const void *data, *unused;
	} wrapper = { 0x466243b1, 1, m.data, NULL };
	CUdevice dev = e2e_open();

	begin(&m);
	entry(&m, 1, 75, TEXT(75, 100), PLAIN);
	end(&m);
	expect(through_module(m.data, 0), 100, "plain");
	expect(through_module(&wrapper, 0), 100, "wrapped");
	expect(through_module(&wrapper, 1), 100, "fat binary");
	expect(through_library(&wrapper), 100, "library");
	expect(through_file(&m), 100, "file");

	begin(&m);
	entry(&m, 1, 70, TEXT(70, 201), LZ4);
	entry(&m, 1, 75, TEXT(75, 202), LZ4);
	entry(&m, 1, 999, "nothing that this device could take", PLAIN);
	end(&m);
	expect(through_module(&wrapper, 0), 202, "lz4");

	begin(&m);
	entry(&m, 1, 75, TEXT(75, 300), ZSTD);
	end(&m);
	expect(through_library(m.data), 300, "zstd");

	begin(&m);
	entry(&m, 1, 999, TEXT(75, 1), PLAIN);
	end(&m);
	refused(&m, CUDA_ERROR_NO_BINARY_FOR_GPU, "code of the future");
	e2e_close(dev);
	return 0;
}
