/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a launch's parameters to the words in them that may be pointers.  What
 * a function's parameters look like is asked of the driver once and kept.
 */
#ifndef BALLAST_KERNARG_H
#define BALLAST_KERNARG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/compiler.h"
#include "shim/cuda_abi.h"

struct kernarg_param {
	uint32_t offset;	/* in a packed buffer */
	uint32_t size;		/* at least 8: smaller ones hold no pointer */
	uint32_t index;		/* of kernelParams[] */
};

/* What is known of a function.  Never freed: a launch may be reading it. */
struct kernarg {
	CUfunction function;
	uint32_t generation;	/* atomic; older than now: stands for nothing */
	bool known;		/* false: the driver did not tell */
	uint32_t nr;		/* parameters that may hold pointers */
	uint32_t params_size;	/* bytes of a packed buffer */
	struct kernarg *next;
	struct kernarg_param params[];
};

/* The record of a function; NULL: no memory, host's or GPU's.  Any thread. */
const struct kernarg *kernarg_find(CUfunction f);
/*
 * A CUkernel that the program may launch in place of a CUfunction: its layout
 * is asked for by another call.
 */
void kernarg_kernel_known(CUkernel k);
/*
 * After a module was unloaded: handles of its functions may come back as other
 * functions, so every layout is asked for again.
 */
void kernarg_forget_all(void);

/*
 * Calls visit for every 8-byte word, at every byte offset, that could be a
 * pointer.  params and extra as cuLaunchKernel got them; either may be NULL.
 * false: visit returned false (at once), or `extra` is malformed.
 */
typedef bool kernarg_visit_fn(void *arg, uint64_t word);
bool kernarg_walk(const struct kernarg *k, void **params, void **extra,
	kernarg_visit_fn *visit, void *arg);

/* The packed buffer in `extra`, or NULL. */
const uint8_t *kernarg_packed(void **extra, size_t *size);

static inline uint64_t kernarg_word(const void *p)
{
	uint64_t w;

	__builtin_memcpy(&w, p, sizeof(w));
	return w;
}

#endif
