/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a plan: it is refused with a place, or accepted, and then the
 * evaluation and the timeline take it without harm, and it can be written, read
 * back and written again as the same text.
 */
#include "test/fuzz/fuzz.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_io.h"
#include "planner/timeline.h"

static void demand(bool ok)
{
	if (!ok)
		abort();
}

static void again(const char *text)
{
	struct plan_arena *arena = plan_arena_create();
	struct plan_io io = { .file = "again" };
	struct plan_file f;
	char *copy;

	if (!arena)
		return;
	demand(!plan_io_parse_plan(&io, text, strlen(text), NULL, arena, &f));
	copy = plan_io_print_plan(&f);
	demand(copy && !strcmp(copy, text));
	free(copy);
	plan_arena_destroy(arena);
}

/* Statuses are free; crashes and endless loops are not. */
static void use(const struct plan_file *f, struct plan_arena *arena)
{
	struct plan_input in = plan_io_input(&f->profile, f->budget);
	struct timeline_options opt = { .wrap = f->params.wrap };
	struct memory_transfer_interpolator *ip = NULL;
	struct strategy_score score;
	struct timeline_times times;
	struct timeline t;

	if (!plan_interpolator_of(&in, arena, &ip))
		evaluate_strategy_result(&f->result, &in, f->strategy, ip,
			&score);
	if (timeline_link_of(&in, arena, &opt.link) ||
	    timeline_of_result(&f->result, &in, &opt, arena, &t))
		return;
	if (!plan_timeline(&t, true, arena, &times))
		demand(times.period_ms >= 0);
}

void fuzz_one(char *text, size_t len)
{
	struct plan_arena *arena = plan_arena_create();
	struct plan_io io = { .file = "fuzz" };
	struct plan_file f;
	char *copy;
	int err;

	if (!arena)
		return;
	err = plan_io_parse_plan(&io, text, len, NULL, arena, &f);
	demand(err == 0 || err == -EINVAL);
	demand(!err == !io.error[0]);
	if (!err) {
		use(&f, arena);
		copy = plan_io_print_plan(&f);
		demand(copy != NULL);
		again(copy);
		free(copy);
	}
	plan_arena_destroy(arena);
}
