/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library whose constructor uses the driver.  Dependencies are initialised
 * before preloaded libraries, so it runs before Ballast's own constructors.
 */
#include "test/dispatch/dispatch.h"

__attribute__((visibility("default"))) int early_result;

static __attribute__((constructor)) void early(void)
{
	void *h = open_driver(RTLD_NOW);
	int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(h, "cuInit");

	CHECK_IN((void *)init, expected_home("cuInit"));
	early_result = init(0) == 0 ? 42 : 1;
}
