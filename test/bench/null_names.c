/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every export of the real driver, as a function that succeeds at once.  Weak:
 * null.c defines those that must return something.  Each has an address of its
 * own, since Ballast tells functions apart by that.
 */
#define EXPORT(symbol, base, since, flavour) \
	__asm__( \
		"\t.text\n" \
		"\t.weak " #symbol "\n" \
		"\t.type " #symbol ", @function\n" \
		"\t.p2align 4\n" \
		#symbol ":\n" \
		"\tendbr64\n" \
		"\txorl %eax, %eax\n" \
		"\tret\n" \
		"\t.size " #symbol ", . - " #symbol "\n");
#include "test/softcuda/exports.def"
