/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table behind exports.def.  Constant.
 */
#ifndef SOFTCUDA_EXPORTS_H
#define SOFTCUDA_EXPORTS_H

#include <stdint.h>

enum export_flavour {
	EXPORT_PLAIN,	/* stream 0 is the legacy stream */
	EXPORT_PTDS,	/* stream 0 is the thread's; no stream argument */
	EXPORT_PTSZ,	/* stream 0 is the thread's */
};

struct export {
	const char *symbol, *base;
	int since;
	enum export_flavour flavour;
	void *address;
};

/* Sorted by symbol. */
extern const struct export exports[];
extern const unsigned exports_nr;

#endif
