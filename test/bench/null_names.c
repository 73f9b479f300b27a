/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every export of the real driver, as a function that succeeds at once.  Weak:
 * null.c defines those that must return something.
 */
int null_ok(void);

int null_ok(void)
{
	return 0;
}

#define EXPORT(symbol, base, since, flavour) \
	__attribute__((weak, alias("null_ok"), visibility("default"))) \
	int symbol(void);
#include "test/softcuda/exports.def"
