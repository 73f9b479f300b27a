/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors that several layers use, where they cannot all stay resident: how much
 * of which is streamed, for every use.  Called by optimal.c.  Pure; no locks.
 */
#include <math.h>
#include <stdlib.h>

#include "planner/optimal_int.h"

/* The part of a tied tensor that stays: in so many steps. */
#define KEEP_ALL 256u
#define STEPS 16u

static int by_users(const void *a, const void *b)
{
	const struct tied_class *x = a, *y = b;

	return (x->users < y->users) - (x->users > y->users);
}

/* Counts users, and sums up what has as many. */
static enum plan_status count_users(struct optimal *o)
{
	const struct plan_input *in = o->in;
	struct plan_ids seen;
	enum plan_status status = plan_ids_init(&seen, optimal_nr_tensors(in),
		o->arena);
	uint32_t n = 0;

	o->classes = plan_arena_alloc(o->arena, (size_t)o->nr_shared + 1,
		sizeof(*o->classes));
	if (status != PLAN_OK || !o->classes)
		return PLAN_NO_MEMORY;
	for (uint32_t i = 0; i < in->nr_layers; i++)
		for (uint32_t k = 0; k < in->layers[i].nr; k++) {
			uint32_t at = plan_ids_find(&o->ids,
				in->layers[i].tensors[k].id);

			if (optimal_is_shared(at) &&
				optimal_first_in_layer(&in->layers[i], k, &seen, i))
				o->shared[at & ~OPTIMAL_SHARED].users++;
		}
	for (uint32_t k = 0; k < o->nr_shared; k++)
		o->classes[k] = (struct tied_class){
			.users = o->shared[k].users,
			.bytes = o->shared[k].size,
		};
	qsort(o->classes, o->nr_shared, sizeof(*o->classes), by_users);
	for (uint32_t k = 0; k < o->nr_shared; k++)
		if (n > 0 && o->classes[n - 1].users == o->classes[k].users)
			o->classes[n - 1].bytes += o->classes[k].bytes;
		else
			o->classes[n++] = o->classes[k];
	o->nr_classes = n;
	return PLAN_OK;
}

/* What many layers use stays first: it would be loaded for each of them. */
static void split_classes(struct optimal *o, uint32_t part)
{
	uint64_t keep = o->tied / KEEP_ALL * part +
		o->tied % KEEP_ALL * part / KEEP_ALL;

	for (uint32_t k = 0; k < o->nr_classes; k++) {
		struct tied_class *c = &o->classes[k];
		uint64_t n = keep < c->bytes ? keep : c->bytes;

		c->stream = c->bytes - n;
		c->left = 0;
		keep -= n;
	}
}

/* Of the next tensor of its class, what is streamed; the rest is carried on. */
static void split_tied(struct optimal *o, struct tied *t)
{
	uint64_t chunk = o->p->chunk_bytes;
	struct tied_class *c = o->classes;

	while (c->users != t->users)
		c++;
	/* Below 2^53, so the sum is exact enough for whole chunks. */
	c->left += c->stream == c->bytes ? t->size : (uint64_t)
		((double)t->size * (double)c->stream / (double)c->bytes);
	t->streamed = c->left < t->size ? c->left / chunk * chunk : t->size;
	c->left -= t->streamed;
	o->kept += t->size - t->streamed;
}

/*
 * The model with this part of the tied tensors resident.  Of those with as many
 * users, as much of each, in chunks, and what is left over carried on to the
 * next, in order of first use.  Without it, a plan for a forward and a backward
 * pass would have no residents at all.
 */
static enum plan_status keep_tied(struct optimal *o, uint32_t part)
{
	const struct plan_input *in = o->in;
	struct plan_ids seen;
	enum plan_status status = plan_ids_init(&seen, optimal_nr_tensors(in),
		o->arena);

	if (!o->loads)
		o->loads = plan_arena_alloc(o->arena, in->nr_layers,
			sizeof(*o->loads));
	if (status != PLAN_OK || !o->loads)
		return PLAN_NO_MEMORY;
	split_classes(o, part);
	o->kept = 0;
	for (uint32_t i = 0; i < in->nr_layers; i++) {
		const struct layer_statistics *l = &in->layers[i];

		o->loads[i] = o->bytes[i];
		for (uint32_t k = 0; k < l->nr; k++) {
			uint32_t at = plan_ids_find(&o->ids, l->tensors[k].id);
			uint32_t *last = plan_ids_at(&seen, l->tensors[k].id);
			struct tied *t = &o->shared[at & ~OPTIMAL_SHARED];

			if (!optimal_is_shared(at) || *last == i)
				continue;
			if (*last == PLAN_NONE)
				split_tied(o, t);
			*last = i;
			o->loads[i] += t->streamed;
		}
	}
	optimal_set_model(o, true);
	return PLAN_OK;
}

/* ---- the search ---- */

/* The model with this part of the tied tensors resident, and a first choice. */
static enum plan_status try_part(struct optimal *o, uint32_t part,
	struct optimal_choice *c)
{
	uint64_t budget = o->in->max_gpu_mem_bytes;
	enum plan_status status = keep_tied(o, part);

	if (status != PLAN_OK)
		return status;
	if (o->kept >= budget)
		return PLAN_INFEASIBLE;
	return optimal_search_quick(&o->m, o->m.total + o->kept - budget, c);
}

/* All that the model has goes through a ring of what is left. */
static bool stream_all(const struct optimal *o, struct optimal_choice *c)
{
	uint64_t chunk = o->m.chunk, used = 0;

	c->chunk = c->unit = chunk;
	c->ring = (uint32_t)((o->in->max_gpu_mem_bytes - o->kept) / chunk);
	c->most = (uint64_t)c->ring * chunk;
	c->streamed = o->m.total;
	c->split = true;
	c->bound_ms = 0;
	for (uint32_t i = 0; i < o->m.nr; i++) {
		c->bytes[i] = o->m.bytes[i];
		c->pads[i] = 0;
		if (c->bytes[i] > c->most)
			return false;
		used += (c->bytes[i] + chunk - 1) / chunk;
	}
	if (c->ring == 0 || used < c->ring)
		return false;
	c->pads[0] = (uint32_t)((c->ring - used % c->ring) % c->ring);
	return true;
}

/* What has been found so far. */
struct tied_best {
	double ms;		/* as replayed */
	uint32_t part;
	struct optimal_choice choice;
};

static enum plan_status judge(struct optimal *o, uint32_t part,
	const struct optimal_choice *c, struct tied_best *best)
{
	struct plan_arena *arena = o->arena, *scratch = plan_arena_create();
	struct optimal_trial t;
	double ms;
	enum plan_status status;

	if (!scratch)
		return PLAN_NO_MEMORY;
	/* It is much, and many times. */
	o->arena = scratch;
	status = optimal_trial_init(&t, &o->m, scratch);
	if (status == PLAN_OK) {
		optimal_trial_lay(&t, c);
		status = optimal_replay(o, &t, &ms);
	}
	o->arena = arena;
	plan_arena_destroy(scratch);
	/* Of equal ones the one that keeps more, as it streams less. */
	if (status == PLAN_OK && ms <= best->ms * (1 + 1e-9)) {
		best->ms = ms;
		best->part = part;
		optimal_choice_copy(&best->choice, c, o->m.nr);
	}
	return status;
}

/* The largest part that leaves a pool which works. */
static enum plan_status most_part(struct optimal *o, struct optimal_choice *c,
	uint32_t *part)
{
	uint32_t low = 0, high = KEEP_ALL;
	enum plan_status status = PLAN_OK;

	while (high - low > 1 && status == PLAN_OK) {
		uint32_t mid = low + (high - low) / 2;

		status = try_part(o, mid, c);
		if (status == PLAN_OK)
			low = mid;
		else if (status == PLAN_INFEASIBLE)
			high = mid;
		if (status == PLAN_INFEASIBLE)
			status = PLAN_OK;
	}
	*part = low;
	return status;
}

/*
 * How much of the tied tensors stays, and how large the pool is: beyond some
 * point it is too small to keep up.
 */
enum plan_status optimal_search_tied(struct optimal *o, double bound,
	struct optimal_choice *best)
{
	struct tied_best found = { .ms = INFINITY };
	struct optimal_choice c;
	uint32_t most = 0;
	enum plan_status status = optimal_choice_init(&c, o->m.nr, o->arena);

	if (status == PLAN_OK)
		status = optimal_choice_init(&found.choice, o->m.nr, o->arena);
	if (status == PLAN_OK)
		status = count_users(o);
	if (status == PLAN_OK)
		status = most_part(o, &c, &most);
	for (uint32_t k = 0; k <= STEPS && status == PLAN_OK; k++) {
		uint32_t part = most * k / STEPS;

		status = try_part(o, part, &c);
		if (status == PLAN_OK)
			status = judge(o, part, &c, &found);
		else if (status == PLAN_INFEASIBLE)
			status = PLAN_OK;
		if (status == PLAN_OK && o->kept < o->in->max_gpu_mem_bytes &&
			stream_all(o, &c))
			status = judge(o, part, &c, &found);
	}
	if (status != PLAN_OK)
		return status;
	status = keep_tied(o, found.part);
	if (status == PLAN_OK)
		status = optimal_search_budget(o, o->m.total + o->kept -
			o->in->max_gpu_mem_bytes, bound, &c);
	if (status == PLAN_OK)
		status = judge(o, found.part, &c, &found);
	if (found.ms == INFINITY ||
		(status != PLAN_OK && status != PLAN_INFEASIBLE))
		return status;
	optimal_choice_copy(best, &found.choice, o->m.nr);
	return PLAN_OK;
}
