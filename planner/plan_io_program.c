/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The member "program" of a profile: where its tensors lie in the program's
 * allocations, so that the library knows them again before they are used.
 * Called through plan_io.h; no locks.
 */
#include "planner/plan_io_int.h"

#include <inttypes.h>

#define PROGRAM_VERSION 1

static const char *const program_keys[] = {
	"version", "page_bytes", "uploaded_bytes", "parts", NULL,
};
static const char *const part_keys[] = {
	"id", "offset", "allocation", "allocation_bytes", "at", "bytes", NULL,
};

static void read_part(struct plan_io_doc *d, struct json_object *o,
	struct plan_part *p)
{
	plan_io_id(d, o, "id", true, &p->id);
	plan_io_whole(d, o, "offset", true, INT64_MAX, &p->offset);
	plan_io_whole(d, o, "allocation", true, INT64_MAX, &p->allocation);
	plan_io_whole(d, o, "allocation_bytes", true, INT64_MAX,
		&p->allocation_bytes);
	plan_io_whole(d, o, "at", true, INT64_MAX, &p->at);
	plan_io_whole(d, o, "bytes", true, INT64_MAX, &p->bytes);
	if (!d->err && (p->bytes == 0 || p->allocation == 0))
		plan_io_bad(d, o, "bytes and allocation must be above 0");
	plan_io_unknown(d, o, part_keys, NULL, PLAN_IO_TOP, 0, 0);
}

void plan_io_read_program(struct plan_io_doc *d, struct json_object *top,
	struct plan_program *out)
{
	struct json_object *o, *list, *item;
	uint64_t version = 0;
	struct plan_part *p;
	uint32_t nr = 0;

	if (!plan_io_object(d, top, "program", false, &o))
		return;
	if (plan_io_whole(d, o, "version", true, INT64_MAX, &version) &&
	    version != PROGRAM_VERSION) {
		plan_io_warning(d, o, "\"program\" is of version %" PRIu64
			", which is not known, and is left out", version);
		return;
	}
	plan_io_whole(d, o, "page_bytes", true, INT64_MAX, &out->page_bytes);
	plan_io_whole(d, o, "uploaded_bytes", true, INT64_MAX,
		&out->uploaded_bytes);
	if (!plan_io_array(d, o, "parts", true, &list, &nr))
		return;
	p = plan_arena_alloc(d->arena, nr, sizeof(*p));
	if (!p) {
		plan_io_no_memory(d);
		return;
	}
	for (uint32_t i = 0; i < nr && !d->err; i++) {
		item = plan_io_item_object(d, list, i);
		if (item)
			read_part(d, item, &p[i]);
	}
	plan_io_unknown(d, o, program_keys, NULL, PLAN_IO_TOP, 0, 0);
	out->parts = p;
	out->nr_parts = nr;
}

void plan_text_program(struct plan_text *t, const struct plan_program *p,
	const char *in)
{
	if (p->nr_parts == 0)
		return;
	plan_text_put(t, ",\n%s\"program\": {\"version\": %d, \"page_bytes\": %"
		PRIu64 ", \"uploaded_bytes\": %" PRIu64 ", \"parts\": [", in,
		PROGRAM_VERSION, p->page_bytes, p->uploaded_bytes);
	for (uint32_t i = 0; i < p->nr_parts; i++) {
		const struct plan_part *q = &p->parts[i];

		plan_text_put(t, "%s%s  {\"id\": %" PRId64 ", \"offset\": %"
			PRIu64 ", \"allocation\": %" PRIu64
			", \"allocation_bytes\": %" PRIu64 ", \"at\": %" PRIu64
			", \"bytes\": %" PRIu64 "}", i ? ",\n" : "\n", in,
			q->id, q->offset, q->allocation, q->allocation_bytes,
			q->at, q->bytes);
	}
	plan_text_put(t, "]}");
}
