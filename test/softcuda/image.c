/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fat binaries, see image.h.  A fat binary is a header and entries, each with
 * a header of its own; text entries are plain or compressed.  Machine code is
 * passed over: there is nothing here that could run it.  Called by module.c,
 * library.c and linker.c.
 */
#include "test/softcuda/image.h"

#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "test/softcuda/object.h"
#include "test/softcuda/report.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC 0xba55ed50u
#define ELF_MAGIC 0x464c457fu

#define KIND_PTX 1
#define FLAG_64BIT 0x1
#define FLAG_LINUX 0x10
#define FLAG_LZ4 0x2000
#define FLAG_ZSTD 0x8000

#define TEXT_MAX (1u << 30)

struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *more;
};

struct fatbin {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;			/* of the entries */
};

struct entry {
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size;			/* of the payload, padded */
	uint32_t compressed;		/* bytes, 0 when it is plain */
	uint32_t options;		/* offset */
	uint16_t minor, major;
	uint32_t sm;
	uint32_t name, name_len;
	uint64_t flags;
	uint64_t zero;
	uint64_t plain_size;		/* 0 when it is plain */
};

_Static_assert(sizeof(struct entry) == 64, "as it lies in the file");
_Static_assert(sizeof(struct fatbin) == 16, "as it lies in the file");

static uint32_t magic_of(const void *image)
{
	uint32_t magic;

	memcpy(&magic, image, sizeof(magic));
	return magic;
}

static CUresult copy_text(const void *from, size_t size, char **text,
	size_t *len)
{
	*text = object_alloc(size + 1);
	memcpy(*text, from, size);
	*len = strlen(*text);
	return CUDA_SUCCESS;
}

static CUresult unpack(const struct entry *e, const uint8_t *payload,
	char **text, size_t *len)
{
	size_t size = e->plain_size, got;

	if (!e->compressed)
		return copy_text(payload, e->size, text, len);
	if (!size || size > TEXT_MAX || e->compressed > e->size)
		return CUDA_ERROR_INVALID_IMAGE;
	*text = object_alloc(size + 1);
	if (e->flags & FLAG_ZSTD) {
		got = ZSTD_decompress(*text, size, payload, e->compressed);
		if (ZSTD_isError(got))
			got = 0;
	} else if (e->flags & FLAG_LZ4) {
		int n = LZ4_decompress_safe((const char *)payload, *text,
			(int)e->compressed, (int)size);

		got = n < 0 ? 0 : (size_t)n;
	} else {
		report_log("module: entry compressed in an unknown way, flags "
			"%#llx", (unsigned long long)e->flags);
		got = 0;
	}
	if (got != size) {
		free(*text);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*len = strlen(*text);
	return CUDA_SUCCESS;
}

/* The newest text that the device can take. */
static CUresult from_fatbin(const uint8_t *image, size_t size, int cc,
	char **text, size_t *len)
{
	struct entry e, best = { 0 };
	const uint8_t *payload = NULL;
	struct fatbin f;
	uint64_t off, end;

	memcpy(&f, image, sizeof(f));
	if (f.version != 1 || f.header_size < sizeof(f)
	    || f.size > UINT64_MAX / 2
	    || (size && f.header_size + f.size > size))
		return CUDA_ERROR_INVALID_IMAGE;
	off = f.header_size;
	end = off + f.size;
	while (end - off >= sizeof(e)) {
		memcpy(&e, image + off, sizeof(e));
		if (e.header_size < sizeof(e) || e.header_size > end - off
		    || e.size > end - off - e.header_size)
			return CUDA_ERROR_INVALID_IMAGE;
		if (e.kind == KIND_PTX && (int64_t)e.sm <= cc
		    && (!payload || e.sm > best.sm)) {
			best = e;
			payload = image + off + e.header_size;
		}
		off += e.header_size + e.size;
	}
	if (!payload) {
		report_log("module: a fat binary without PTX for sm_%d", cc);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	return unpack(&best, payload, text, len);
}

static CUresult from_wrapper(const void *image, int cc, char **text,
	size_t *len)
{
	struct wrapper w;

	memcpy(&w, image, sizeof(w));
	/* Version 2: several that are to be linked; here the linked one. */
	if ((w.version != 1 && w.version != 2) || !w.data)
		return CUDA_ERROR_INVALID_IMAGE;
	if (magic_of(w.data) != FATBIN_MAGIC)
		return CUDA_ERROR_INVALID_IMAGE;
	return from_fatbin(w.data, 0, cc, text, len);
}

CUresult image_text(const void *image, size_t size, int cc, char **text,
	size_t *len)
{
	size_t n;

	if (size && size < sizeof(uint32_t))
		return CUDA_ERROR_INVALID_IMAGE;
	/* A shorter text is none. */
	if (!size && strnlen(image, 4) < 4)
		return CUDA_ERROR_INVALID_IMAGE;
	switch (magic_of(image)) {
	case WRAPPER_MAGIC:
		/* Holds addresses: of use only in memory. */
		return size ? CUDA_ERROR_INVALID_IMAGE
			: from_wrapper(image, cc, text, len);
	case FATBIN_MAGIC:
		if (size && size < sizeof(struct fatbin))
			return CUDA_ERROR_INVALID_IMAGE;
		return from_fatbin(image, size, cc, text, len);
	case ELF_MAGIC:
		report_log("module: machine code cannot be run");
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	n = size ? strnlen(image, size) : strlen(image);
	return n < 8 ? CUDA_ERROR_INVALID_IMAGE
		: copy_text(image, n, text, len);
}

CUresult image_read(const char *path, void **image, size_t *size)
{
	size_t len = 0, cap = 0;
	char *text = NULL;
	FILE *f;
	int ch;

	f = fopen(path, "re");
	if (!f)
		return CUDA_ERROR_FILE_NOT_FOUND;
	do {
		ch = getc(f);
		text = object_grow(text, len, &cap, 1);
		text[len++] = ch == EOF ? 0 : (char)ch;
	} while (ch != EOF);
	fclose(f);
	*image = text;
	*size = len - 1;
	if (*size)
		return CUDA_SUCCESS;
	free(text);
	return CUDA_ERROR_INVALID_IMAGE;
}

void *image_wrap(const char *text, size_t len, unsigned target, size_t *size)
{
	size_t padded = (len + 1 + 7) & ~(size_t)7;
	struct fatbin f = {
		.magic = FATBIN_MAGIC, .version = 1,
		.header_size = sizeof(f), .size = sizeof(struct entry) + padded,
	};
	struct entry e = {
		.kind = KIND_PTX, .version = 0x0101, .header_size = sizeof(e),
		.size = padded, .sm = target, .flags = FLAG_64BIT | FLAG_LINUX,
	};
	uint8_t *image;

	*size = sizeof(f) + sizeof(e) + padded;
	image = object_alloc(*size);
	memcpy(image, &f, sizeof(f));
	memcpy(image + sizeof(f), &e, sizeof(e));
	memcpy(image + sizeof(f) + sizeof(e), text, len);
	return image;
}
