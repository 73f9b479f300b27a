/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binaries as compilers make them: really compressed, several
 * architectures, and damaged ones, which must be refused.
 */
#include <lz4.h>
#include <zstd.h>

#include "test/softcuda/image.h"
#include "test/unit/softcuda.h"

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
	"// and the same words again and again and again and again and again\n"
	".visible .entry k(.param .u64 a, .param .u32 b)\n{\n	ret;\n}\n";

static uint8_t packed[4096], image[8192];

/* One entry; returns the size of the image. */
static size_t build(const void *payload, size_t size, size_t plain,
	uint64_t flags, uint32_t sm)
{
	uint64_t padded = (size + 7) & ~(size_t)7, all = 64 + padded;
	uint32_t compressed = plain ? (uint32_t)size : 0;

	memset(image, 0, sizeof(image));
	memcpy(image, "\x50\xed\x55\xba\1\0\20\0", 8);
	memcpy(image + 8, &all, 8);
	memcpy(image + 16, "\1\0\1\1\x40\0\0\0", 8);
	memcpy(image + 24, &padded, 8);
	memcpy(image + 32, &compressed, 4);
	memcpy(image + 44, &sm, 4);
	memcpy(image + 56, &flags, 8);
	memcpy(image + 72, &plain, 8);
	memcpy(image + 80, payload, size);
	return 80 + (size_t)padded;
}

static void expect_text(size_t size)
{
	char *got;
	size_t len;

	OK(image_text(image, size, 90, &got, &len));
	ck_assert_str_eq(got, text);
	ck_assert_uint_eq(len, strlen(text));
	free(got);
}

START_TEST(zstd)
{
	size_t n = ZSTD_compress(packed, sizeof(packed), text, sizeof(text),
		3);

	ck_assert(!ZSTD_isError(n) && n < sizeof(text));
	expect_text(build(packed, n, sizeof(text), 0x8011, 75));
	expect_text(0);
}
END_TEST

START_TEST(lz4)
{
	int n = LZ4_compress_default(text, (char *)packed, sizeof(text),
		sizeof(packed));

	ck_assert_int_gt(n, 0);
	expect_text(build(packed, (size_t)n, sizeof(text), 0x2011, 75));
}
END_TEST

START_TEST(plain)
{
	char *got;
	size_t len, n;

	expect_text(build(text, sizeof(text), 0, 0x11, 75));
	void *mine = image_wrap(text, strlen(text), 75, &n);

	OK(image_text(mine, n, 75, &got, &len));
	ck_assert_str_eq(got, text);
	free(got);
	IS(image_text(mine, n, 70, &got, &len), CUDA_ERROR_NO_BINARY_FOR_GPU);
	free(mine);
}
END_TEST

START_TEST(damaged)
{
	size_t n = ZSTD_compress(packed, sizeof(packed), text, sizeof(text),
		3), size, i, len;
	char *got;

	size = build(packed, n, sizeof(text), 0x8011, 75);
	/* Cut off anywhere, it must not be read beyond its end. */
	for (i = 1; i < size; i++) {
		uint8_t *part = malloc(i);

		memcpy(part, image, i);
		ck_assert(image_text(part, i, 90, &got, &len));
		free(part);
	}
	build(packed, n, sizeof(text) + 1, 0x8011, 75);
	IS(image_text(image, size, 90, &got, &len), CUDA_ERROR_INVALID_IMAGE);
	build(packed, n, sizeof(text), 0x4011, 75);
	IS(image_text(image, size, 90, &got, &len), CUDA_ERROR_INVALID_IMAGE);
	memcpy(image, "\177ELF", 4);
	IS(image_text(image, size, 90, &got, &len),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	IS(image_text("abc", 0, 90, &got, &len), CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

static void setup(void)
{
	soft_env();
}

int main(void)
{
	const struct soft_case cases[] = {
		{ setup, { zstd, lz4, plain, damaged } },
	};

	return soft_run_cases("softcuda_image", cases,
		sizeof(cases) / sizeof(cases[0]));
}
