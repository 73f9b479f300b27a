/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SOFTCUDA_TRACE: what ran when, in virtual time, in the format that Chrome's
 * and Perfetto's trace viewers read.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_TRACE_H
#define SOFTCUDA_TRACE_H

#include <stdint.h>

struct op;

void trace_open(void);
void trace_close(void);
/* An operation that has just been given its start and end. */
void trace_op(const struct op *op);
/* A host call that began at start_ns and returns now. */
void trace_call(const char *name, unsigned thread, uint64_t start_ns);

#endif
