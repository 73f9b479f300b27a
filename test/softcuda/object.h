/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a handle.  Handles that a program passes in are looked up
 * before they are used, so a dead or invented one is an error and no crash.
 * Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_OBJECT_H
#define SOFTCUDA_OBJECT_H

#include <stdbool.h>
#include <uthash.h>

enum object_kind {
	OBJECT_CONTEXT,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_MEMPOOL,
	OBJECT_LIBRARY,
	OBJECT_KERNEL,
	OBJECT_LINK,
	OBJECT_RESOURCES,
	OBJECT_GREEN,
};

/* The first member of every such struct. */
struct object {
	enum object_kind kind;
	void *self;
	UT_hash_handle hh;
};

void object_add(void *object, enum object_kind kind);
void object_remove(void *object);
/* The object if `handle` is a live one of this kind, else NULL. */
void *object_find(const void *handle, enum object_kind kind);

/* Memory for the driver's own records; there is no plan without it. */
void *object_alloc(size_t size);
void *object_grow(void *old, size_t nr, size_t *cap, size_t size);

#endif
