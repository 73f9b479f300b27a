/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device for the interpreter's unit tests: a stretch of memory at one device
 * address, kernels as text, parameters as 64-bit words.  Header only; each
 * test program has its own copy.
 */
#ifndef TEST_PTX_UTIL_H
#define TEST_PTX_UTIL_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/ptx.h"

#define DEV_BASE 0x200000000000ull
#define DEV_SIZE (1u << 20)

#define PTX_HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"

struct dev {
	uint8_t *mem;			/* DEV_SIZE bytes at DEV_BASE */
	uint8_t *touched;		/* 1: read, 2: written */
	unsigned touches;
	char printed[4096];
	size_t nr_printed;
	struct ptx_count count;
	struct ptx_fault fault;
	struct ptx_error error;
	uint64_t clock;
};

static inline bool dev_translate(void *self, uint64_t address, bool write,
	struct ptx_run *out)
{
	struct dev *d = self;

	(void)write;
	if (address - DEV_BASE >= DEV_SIZE)
		return false;
	*out = (struct ptx_run){ DEV_BASE, DEV_SIZE, d->mem };
	return true;
}

static inline void dev_touch(void *self, uint64_t address, uint64_t size,
	bool write)
{
	struct dev *d = self;

	ck_assert(address >= DEV_BASE);
	ck_assert(address + size <= DEV_BASE + DEV_SIZE);
	d->touches++;
	while (size--)
		d->touched[address++ - DEV_BASE] |= write ? 2 : 1;
}

static inline void dev_print(void *self, const char *text, size_t len)
{
	struct dev *d = self;

	ck_assert(d->nr_printed + len < sizeof(d->printed));
	memcpy(d->printed + d->nr_printed, text, len);
	d->nr_printed += len;
}

static inline struct dev *dev_new(void)
{
	struct dev *d = calloc(1, sizeof(*d));

	ck_assert_ptr_nonnull(d);
	d->mem = calloc(1, DEV_SIZE);
	d->touched = calloc(1, DEV_SIZE);
	ck_assert(d->mem && d->touched);
	return d;
}

static inline void dev_free(struct dev *d)
{
	free(d->mem);
	free(d->touched);
	free(d);
}

static inline struct ptx_module *dev_load(struct dev *d, const char *text)
{
	struct ptx_module *m = NULL;
	enum ptx_status s = ptx_module_create(text, strlen(text), &m,
		&d->error);

	ck_assert_msg(s == PTX_OK, "%u:%u: %s", d->error.line,
		d->error.column, d->error.message);
	return m;
}

/* Runs kernel `name`; shape is blocks, threads, dynamic shared bytes. */
static inline enum ptx_status dev_run3(struct dev *d, struct ptx_module *m,
	const char *name, const uint32_t *grid, const uint32_t *block,
	uint32_t shared, const void *params)
{
	struct ptx_kernel *k = ptx_module_kernel(m, name);
	struct ptx_memory memory = { .self = d, .translate = dev_translate,
		.touch = dev_touch, .print = dev_print };
	struct ptx_launch l = { .grid = { grid[0], grid[1], grid[2] },
		.block = { block[0], block[1], block[2] },
		.dynamic_shared = shared, .params = params,
		.memory = &memory, .clock = d->clock };

	ck_assert_ptr_nonnull(k);
	return ptx_run(k, &l, &d->count, &d->fault);
}

static inline enum ptx_status dev_run(struct dev *d, const char *text,
	const char *name, uint32_t blocks, uint32_t threads, uint32_t shared,
	const void *params)
{
	struct ptx_module *m = dev_load(d, text);
	uint32_t grid[3] = { blocks, 1, 1 }, block[3] = { threads, 1, 1 };
	enum ptx_status s = dev_run3(d, m, name, grid, block, shared, params);

	ptx_module_destroy(m);
	return s;
}

static inline void dev_run_ok(struct dev *d, const char *text,
	const char *name, uint32_t blocks, uint32_t threads, uint32_t shared,
	const void *params)
{
	enum ptx_status s = dev_run(d, text, name, blocks, threads, shared,
		params);

	ck_assert_msg(s == PTX_OK, "%s: line %u: %s", ptx_status_name(s),
		d->fault.line, d->fault.message);
}

#endif
