/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of what the planner is given, and sums over it.  Called before every
 * strategy, and by the readers of files.
 */
#include "planner/plan_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum plan_status bad(char *message, enum plan_status status,
	const char *format, ...) __attribute__((format(printf, 3, 4)));

static enum plan_status bad(char *message, enum plan_status status,
	const char *format, ...)
{
	va_list args;

	if (message) {
		va_start(args, format);
		vsnprintf(message, PLAN_MESSAGE, format, args);
		va_end(args);
	}
	return status;
}

static bool time_ok(double ms)
{
	return isfinite(ms) && ms >= 0;
}

/* The first bytes of a label, for messages. */
#define LABEL(l) (int)strnlen((l)->label, 80), (l)->label

static enum plan_status check_layer(const struct layer_statistics *l,
	const struct plan_input *in, const struct plan_ids *ids,
	uint64_t *total, char *message)
{
	uint32_t layer = l - in->layers;

	if (!time_ok(l->duration_ms))
		return bad(message, PLAN_BAD_MODEL,
			"layer %.*s: duration is not a time", LABEL(l));
	if (l->nr && !l->tensors)
		return bad(message, PLAN_BAD_MODEL,
			"layer %.*s: no tensors given", LABEL(l));
	for (uint32_t j = 0; j < l->nr; j++) {
		const struct tensor_statistics *t = &l->tensors[j], *other;
		uint32_t *at = plan_ids_at(ids, t->id);

		if (!time_ok(t->load_time_ms))
			return bad(message, PLAN_BAD_MODEL,
				"layer %.*s: tensor %u: load time is not a "
				"time", LABEL(l), j);
		if (t->size_bytes > INT64_MAX ||
		    (*total += t->size_bytes) > INT64_MAX)
			return bad(message, PLAN_TOO_LARGE,
				"layer %.*s: tensor %u: sizes add up to more "
				"than 63 bits", LABEL(l), j);
		if (*at == PLAN_NONE) {
			*at = layer;
			continue;
		}
		/* The layer that the id was last seen in. */
		for (uint32_t k = 0; k < in->layers[*at].nr; k++) {
			other = &in->layers[*at].tensors[k];
			if (other == t)
				break;
			if (other->id != t->id)
				continue;
			if (*at == layer)
				return bad(message, PLAN_BAD_MODEL,
					"layer %.*s: a tensor stands there "
					"twice", LABEL(l));
			if (other->size_bytes != t->size_bytes)
				return bad(message, PLAN_BAD_MODEL,
					"layer %.*s: tensor %u has another "
					"size elsewhere", LABEL(l), j);
		}
		*at = layer;
	}
	return PLAN_OK;
}

static int64_t label_hash(const char *label)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *label; label++)
		h = (h ^ (unsigned char)*label) * 0x100000001b3u;
	return (int64_t)h;
}

/* Labels by hash; a clash of hashes is resolved by the next number. */
static enum plan_status check_labels(const struct plan_input *in,
	struct plan_arena *scratch, char *message)
{
	struct plan_ids seen;
	enum plan_status err;

	err = plan_ids_init(&seen, in->nr_layers, scratch);
	for (uint32_t i = 0; i < in->nr_layers && !err; i++) {
		const struct layer_statistics *l = &in->layers[i];
		uint32_t *at;
		int64_t h;

		if (!l->label)
			return bad(message, PLAN_BAD_MODEL,
				"layer %u has no label", i);
		for (h = label_hash(l->label);; h = (int64_t)((uint64_t)h + 1)) {
			at = plan_ids_at(&seen, h);
			if (*at == PLAN_NONE)
				break;
			if (!strcmp(in->layers[*at].label, l->label))
				return bad(message, PLAN_BAD_MODEL,
					"two layers are called %.*s", LABEL(l));
		}
		*at = i;
	}
	return err;
}

static enum plan_status check_table(const struct memory_stats *m,
	char *message)
{
	if (m->nr && !m->points)
		return bad(message, PLAN_BAD_TABLE, "no transfer times given");
	for (uint32_t i = 0; i < m->nr; i++)
		if (!m->points[i].bytes || m->points[i].bytes > INT64_MAX ||
		    !isfinite(m->points[i].ms) || m->points[i].ms <= 0)
			return bad(message, PLAN_BAD_TABLE,
				"transfer time %u is not positive", i);
	return PLAN_OK;
}

enum plan_status plan_input_check(const struct plan_input *in, char *message)
{
	struct plan_arena *scratch;
	struct plan_ids ids;
	enum plan_status err;
	uint64_t total = 0;
	double time = 0;
	size_t nr = 0;

	if (in->nr_layers && !in->layers)
		return bad(message, PLAN_BAD_MODEL, "no layers given");
	if (in->max_gpu_mem_bytes != PLAN_NO_LIMIT &&
	    in->max_gpu_mem_bytes > INT64_MAX)
		return bad(message, PLAN_BAD_BUDGET,
			"the budget does not fit 63 bits");
	scratch = plan_arena_create();
	if (!scratch)
		return PLAN_NO_MEMORY;
	err = check_labels(in, scratch, message);
	for (uint32_t i = 0; i < in->nr_layers; i++)
		nr += in->layers[i].nr;
	if (!err)
		err = plan_ids_init(&ids, nr, scratch);
	for (uint32_t i = 0; i < in->nr_layers && !err; i++) {
		err = check_layer(&in->layers[i], in, &ids, &total, message);
		time += in->layers[i].duration_ms;
	}
	if (!err && !isfinite(time))
		err = bad(message, PLAN_BAD_MODEL,
			"the durations add up to infinity");
	if (!err && in->memory_stats)
		err = check_table(in->memory_stats, message);
	plan_arena_destroy(scratch);
	return err;
}

uint64_t plan_total_bytes(const struct plan_input *in)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t j = 0; j < in->layers[i].nr; j++)
			total += in->layers[i].tensors[j].size_bytes;
	return total;
}

static void pick_add(struct plan_pick *p, const struct tensor_statistics *t)
{
	p->at[p->nr++] = t;
	p->bytes += t->size_bytes;
}

enum plan_status plan_groups_create(const struct plan_input *in,
	double threshold_mb, int group_size, struct plan_arena *arena,
	struct plan_groups *out)
{
	uint32_t size = group_size > 1 ? group_size : 1, nr;
	struct plan_group *g;

	out->total_bytes = 0;
	out->nr = in->nr_layers / size + (in->nr_layers % size != 0);
	out->at = plan_arena_alloc(arena, out->nr, sizeof(*out->at));
	if (!out->at)
		return PLAN_NO_MEMORY;
	for (uint32_t k = 0; k < out->nr; k++) {
		uint32_t end = in->nr_layers - k * size;

		g = &out->at[k];
		g->first = k * size;
		end = g->first + (end < size ? end : size);
		nr = 0;
		for (uint32_t i = g->first; i < end; i++)
			nr += in->layers[i].nr;
		g->all.at = plan_arena_alloc(arena, nr, sizeof(*g->all.at));
		g->eligible.at = plan_arena_alloc(arena, nr,
			sizeof(*g->eligible.at));
		if (!g->all.at || !g->eligible.at)
			return PLAN_NO_MEMORY;
		for (uint32_t i = g->first; i < end; i++) {
			const struct layer_statistics *l = &in->layers[i];

			g->duration_ms += l->duration_ms;
			for (uint32_t j = 0; j < l->nr; j++) {
				pick_add(&g->all, &l->tensors[j]);
				if (plan_eligible(&l->tensors[j], threshold_mb))
					pick_add(&g->eligible, &l->tensors[j]);
			}
		}
		out->total_bytes += g->all.bytes;
	}
	return PLAN_OK;
}
