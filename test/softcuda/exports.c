/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A body for every name that the real driver exports.  They are weak: where
 * another file defines the function, that one is taken; the rest refuse and
 * say once who they are.  No prototypes here, for the same reason.
 */
#include "test/softcuda/exports.h"

#include <stdatomic.h>
#include <stdio.h>

#define NOT_SUPPORTED 801	/* CUDA_ERROR_NOT_SUPPORTED */

static int refuse(const char *name, atomic_flag *said)
{
	if (!atomic_flag_test_and_set(said))
		fprintf(stderr, "softcuda: %s is not supported\n", name);
	return NOT_SUPPORTED;
}

#define EXPORT(symbol, base, since, flavour) \
__attribute__((weak, visibility("default"))) int symbol(void); \
int symbol(void) \
{ \
	static atomic_flag said = ATOMIC_FLAG_INIT; \
\
	return refuse(#symbol, &said); \
}
#include "test/softcuda/exports.def"
#undef EXPORT

#define PLAIN EXPORT_PLAIN
#define PTDS EXPORT_PTDS
#define PTSZ EXPORT_PTSZ

const struct export exports[] = {
#define EXPORT(symbol, base, since, flavour) \
	{ #symbol, #base, since, flavour, (void *)(uintptr_t)symbol },
#include "test/softcuda/exports.def"
#undef EXPORT
};

const unsigned exports_nr = sizeof(exports) / sizeof(exports[0]);
