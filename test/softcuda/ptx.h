/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX for the software driver: text in, parsed module out, kernels run.
 * Pure: no driver state, no globals, no environment.  The driver owns device
 * memory and lends it through struct ptx_memory.  A module may be used by one
 * thread at a time.
 */
#ifndef SOFTCUDA_PTX_H
#define SOFTCUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_kernel;

/* Where and why: line and column count from 1; 0 where there is no place. */
struct ptx_error {
	unsigned line;
	unsigned column;
	char message[240];
};

enum ptx_status {
	PTX_OK = 0,
	PTX_NO_MEMORY,
	PTX_SYNTAX,		/* the text is not PTX */
	PTX_UNSUPPORTED,	/* PTX, but an opcode or directive we lack */
	PTX_ILLEGAL_ADDRESS,	/* a lane touched memory that is not there */
	PTX_MISALIGNED,
	PTX_TRAP,
	PTX_ASSERT,
	PTX_BAD_LAUNCH,		/* sizes, shared memory, parameter bytes */
	PTX_DEADLOCK,		/* a barrier that can never be met */
};

/* ---- modules ---- */

/*
 * Parses `len` bytes of PTX (NULs at the end are ignored).  On success *out is
 * owned by the caller; on failure *err says where and why, with the offending
 * source line's text in the message.  Every opcode is checked here: a module
 * that loads has none that ptx_run does not know.
 */
enum ptx_status ptx_module_create(const char *text, size_t len,
	struct ptx_module **out, struct ptx_error *err);
void ptx_module_destroy(struct ptx_module *m);

/* PTX .target, for example 75 for sm_75, and .version as 10 * major + minor. */
unsigned ptx_module_target(const struct ptx_module *m);
unsigned ptx_module_version(const struct ptx_module *m);

/* ---- module variables (.global and .const) ---- */

struct ptx_variable {
	const char *name;	/* borrowed from the module */
	uint64_t size;
	uint32_t align;
	bool constant;		/* .const rather than .global */
	const void *init;	/* size bytes, or NULL for zeros; borrowed */
	uint64_t address;	/* device address; the driver sets it */
};

size_t ptx_module_nr_variables(const struct ptx_module *m);
struct ptx_variable *ptx_module_variable(struct ptx_module *m, size_t i);
/*
 * To be called once every variable has its address: resolves initialisers that
 * hold other variables' addresses (into `init`).
 */
enum ptx_status ptx_module_relocate(struct ptx_module *m,
	struct ptx_error *err);

/* ---- kernels ---- */

struct ptx_kernel *ptx_module_kernel(struct ptx_module *m, const char *name);
size_t ptx_module_nr_kernels(const struct ptx_module *m);
struct ptx_kernel *ptx_module_kernel_at(struct ptx_module *m, size_t i);

struct ptx_param {
	uint32_t offset;
	uint32_t size;
	uint32_t align;
};

struct ptx_kernel_info {
	const char *name;		/* borrowed from the module */
	size_t nr_params;
	const struct ptx_param *params;	/* borrowed */
	uint32_t params_size;		/* bytes of the packed buffer */
	uint32_t shared_size;		/* static shared memory */
	uint32_t local_size;		/* per thread */
	uint32_t nr_regs;		/* registers as declared, all types */
	uint32_t max_threads;		/* from .maxntid, else 1024 */
};

void ptx_kernel_info(const struct ptx_kernel *k, struct ptx_kernel_info *out);

/* ---- running ---- */

/* A stretch of device memory that is contiguous in host memory. */
struct ptx_run {
	uint64_t address;	/* first device address */
	uint64_t size;		/* bytes; all of [address, address + size) is good */
	uint8_t *host;
};

struct ptx_memory {
	void *self;
	/*
	 * The run that holds `address` for reading, or for writing when `write`.
	 * false: no such memory, or no such right.  Answers stay true until
	 * ptx_run returns; the interpreter caches them.
	 */
	bool (*translate)(void *self, uint64_t address, bool write,
		struct ptx_run *out);
	/*
	 * Told of every global access, a whole warp's at once where it is
	 * contiguous; atomics are told as writes.  NULL: nobody wants to know.
	 */
	void (*touch)(void *self, uint64_t address, uint64_t size, bool write);
	/* Text of one vprintf call of the kernel, formatted.  May be NULL. */
	void (*print)(void *self, const char *text, size_t len);
};

struct ptx_launch {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t dynamic_shared;
	const void *params;		/* packed, params_size bytes */
	const struct ptx_memory *memory;
	uint64_t clock;			/* start value of %clock64, ticks */
};

/* What a launch did, for the cost model. */
struct ptx_count {
	uint64_t warp_instructions;
	uint64_t lane_instructions;	/* active lanes of each of them */
	uint64_t bytes_read;		/* global memory */
	uint64_t bytes_written;
};

/* Where a launch failed. */
struct ptx_fault {
	unsigned line;			/* of the PTX text */
	uint32_t block[3];
	uint32_t thread[3];
	uint64_t address;		/* for memory faults */
	char message[240];
};

/*
 * Runs a whole grid to its end, block after block.  *count is always written;
 * *fault only on failure.  Memory written before a fault stays written.
 */
enum ptx_status ptx_run(const struct ptx_kernel *k, const struct ptx_launch *l,
	struct ptx_count *count, struct ptx_fault *fault);

const char *ptx_status_name(enum ptx_status s);

#endif
