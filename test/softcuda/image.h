/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that programs hand over as modules: PTX text, fat binaries, and the
 * wrappers that compilers put around these.  Pure.
 */
#ifndef SOFTCUDA_IMAGE_H
#define SOFTCUDA_IMAGE_H

#include <stddef.h>

#include "test/softcuda/abi.h"

/*
 * The PTX in `image`, which ends with a NUL; the caller frees *text.  `size`
 * is that of the image, 0 where only the image itself tells.  `cc`: code for
 * newer devices is passed over.
 */
CUresult image_text(const void *image, size_t size, int cc, char **text,
	size_t *len);
/* A whole file as an image, read into memory that the caller frees. */
CUresult image_read(const char *path, void **image, size_t *size);
/* A fat binary with this text in it; the caller frees it. */
void *image_wrap(const char *text, size_t len, unsigned target, size_t *size);

#endif
