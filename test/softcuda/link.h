/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link between host and device, shared by copies and by kernels that reach
 * host memory.  Called by sim.c when such operations begin and end.  Each
 * direction carries the link's rate in all: where copies and kernels ask for
 * more than that, either side gets half, or what the other one leaves of it.
 * (Copies among themselves are sim.c's matter.)  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_LINK_H
#define SOFTCUDA_LINK_H

#include <stdbool.h>

enum link_direction {
	LINK_IN,			/* to the device */
	LINK_OUT,
	NR_LINK_DIRECTIONS,
};

struct op;

/* In every operation. */
struct link_use {
	/* Part of the rate that it asks for while it runs; set by its start. */
	double demand[NR_LINK_DIRECTIONS];
	double speed;			/* of its progress; 1: undisturbed */
	struct op *next;
};

/* The operation begins: start_ns and end_ns are set. */
void link_join(struct op *op);
/* It has ended. */
void link_leave(struct op *op);

#endif
