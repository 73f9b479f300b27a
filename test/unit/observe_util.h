/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs for the tests of observe.c, as texts: a letter is a launch that
 * names weights of its own, ten pages, '.' one that names none.
 */
#ifndef BALLAST_TEST_OBSERVE_UTIL_H
#define BALLAST_TEST_OBSERVE_UTIL_H

#include <stdint.h>
#include <stdio.h>

#include "shim/observe.h"

#define SET_PAGES 10

/* Weights number `set`, used by a kernel of that number. */
static inline uint32_t feed_set(struct observer *o, uint32_t set)
{
	struct page_range r = { .first = set * SET_PAGES, .nr = SET_PAGES };
	char name[16];

	snprintf(name, sizeof(name), "k%u", set);
	return observe_launch(o, set + 1, name, &r, 1);
}

/* The last launch's step. */
static inline uint32_t feed(struct observer *o, const char *program)
{
	uint32_t step = OBSERVE_NONE;

	for (; *program; program++)
		step = *program == '.' ?
			observe_launch(o, 1000, "dot", NULL, 0) :
			feed_set(o, (uint32_t)(*program - 'A'));
	return step;
}

static inline void feed_times(struct observer *o, const char *program, int n)
{
	while (n-- > 0)
		feed(o, program);
}

/* The same numbers for every compiler. */
static inline uint32_t draw(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*seed >> 33) % below);
}

#endif
