/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of live handles.  Called by every file that makes objects for the
 * program; guarded by the driver's lock.
 */
#include "test/softcuda/object.h"

#include <stdio.h>
#include <stdlib.h>

static struct object *objects;

void object_add(void *object, enum object_kind kind)
{
	struct object *o = object;

	o->kind = kind;
	o->self = object;
	HASH_ADD_PTR(objects, self, o);
}

void object_remove(void *object)
{
	struct object *o = object;

	HASH_DEL(objects, o);
}

void *object_find(const void *handle, enum object_kind kind)
{
	struct object *o;

	HASH_FIND_PTR(objects, &handle, o);
	return o && o->kind == kind ? o : NULL;
}

void *object_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p) {
		fputs("softcuda: the host is out of memory\n", stderr);
		abort();
	}
	return p;
}

void *object_grow(void *old, size_t nr, size_t *cap, size_t size)
{
	void *p;

	if (nr < *cap)
		return old;
	*cap = *cap ? 2 * *cap : 8;
	p = reallocarray(old, *cap, size);
	if (!p) {
		fputs("softcuda: the host is out of memory\n", stderr);
		abort();
	}
	return p;
}
