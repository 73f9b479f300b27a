/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is freed all at once: a list of slabs, each allocation cut from
 * the newest.  Called by every part of the planner; one thread at a time.
 */
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_BYTES (64 * 1024 - 64)

struct slab {
	struct slab *next;
	size_t used, size;
	max_align_t data[];
};

struct plan_arena {
	struct slab *slabs;	/* owned, newest first */
};

struct plan_arena *plan_arena_create(void)
{
	return calloc(1, sizeof(struct plan_arena));
}

void plan_arena_destroy(struct plan_arena *arena)
{
	struct slab *s, *next;

	if (!arena)
		return;
	for (s = arena->slabs; s; s = next) {
		next = s->next;
		free(s);
	}
	free(arena);
}

void *plan_arena_alloc(struct plan_arena *arena, size_t nr, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct slab *s = arena->slabs;
	size_t bytes, want;
	void *p;

	if (__builtin_mul_overflow(nr, size, &bytes) ||
	    bytes > SIZE_MAX / 2)
		return NULL;
	/* Never NULL for nothing: that would look like a failure. */
	bytes = bytes ? (bytes + align - 1) / align * align : align;
	if (!s || s->size - s->used < bytes) {
		want = bytes > SLAB_BYTES ? bytes : SLAB_BYTES;
		s = malloc(sizeof(*s) + want);
		if (!s)
			return NULL;
		s->used = 0;
		s->size = want;
		s->next = arena->slabs;
		arena->slabs = s;
	}
	p = (char *)s->data + s->used;
	s->used += bytes;
	return memset(p, 0, bytes);
}

char *plan_arena_strdup(struct plan_arena *arena, const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = plan_arena_alloc(arena, 1, size);

	return copy ? memcpy(copy, text, size) : NULL;
}
