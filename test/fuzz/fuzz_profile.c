/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a profile: it is refused with a place, or accepted, and then it
 * can be written, read back and written again as the same text.
 */
#include "test/fuzz/fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_io.h"

static void demand(bool ok)
{
	if (!ok)
		abort();
}

static void again(const char *text)
{
	struct plan_arena *arena = plan_arena_create();
	struct plan_io io = { .file = "again" };
	struct plan_profile p;
	char *copy;

	if (!arena)
		return;
	demand(!plan_io_parse_profile(&io, text, strlen(text), arena, &p));
	copy = plan_io_print_profile(&p);
	demand(copy && !strcmp(copy, text));
	free(copy);
	plan_arena_destroy(arena);
}

void fuzz_one(char *text, size_t len)
{
	struct plan_arena *arena = plan_arena_create();
	struct plan_io io = { .file = "fuzz" };
	struct plan_profile p;
	struct plan_input in;
	char *copy;
	int err;

	if (!arena)
		return;
	err = plan_io_parse_profile(&io, text, len, arena, &p);
	demand(err == 0 || err == -EINVAL);
	demand(!err == !io.error[0]);
	if (!err) {
		in = plan_io_input(&p, PLAN_NO_LIMIT);
		demand(!plan_input_check(&in, NULL));
		copy = plan_io_print_profile(&p);
		demand(copy != NULL);
		again(copy);
		free(copy);
	}
	plan_arena_destroy(arena);
}
