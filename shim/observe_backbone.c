/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that use some of their weights in some iterations only: experts,
 * branches.  Called by observe.c when no period holds.
 *
 * A set that every iteration uses once cuts the log into segments.  The sets
 * that all segments use, equally often and in the same order, are the backbone,
 * if they are enough of what is used; the rest is optional.  Which set cuts is
 * guessed from the numbers of uses: those of one iteration's fixed part are
 * the same, but for the iteration that is under way.
 */
#include "shim/observe_int.h"

#include <stdlib.h>

#define MIN_SEGMENTS 4
#define MAX_SEGMENTS 16
/* Segments that agree on few sets prove less: so many times sets in all. */
#define EVIDENCE 16
#define ROUNDS 4

struct cuts {
	uint32_t at[MAX_SEGMENTS + 1];
	uint32_t nr;		/* segments; at[nr] ends the last */
};

struct backbone {
	uint64_t steps, all_steps;
	uint64_t pages, all_pages;
	uint32_t turns;		/* steps of one iteration, neighbours merged */
};

/* What stands in the log before the search began is another matter. */
static uint32_t begin(const struct observer *o)
{
	return o->since > o->base ? (uint32_t)(o->since - o->base) : 0;
}

/* The last segments that begin with the set. */
static void cut(const struct observer *o, uint32_t set, struct cuts *c)
{
	uint32_t at[MAX_SEGMENTS + 1], nr = 0;

	for (uint32_t i = observe_len(o); i-- > begin(o) &&
	     nr <= MAX_SEGMENTS;)
		if (o->seq[i] == set)
			at[nr++] = i;
	c->nr = nr ? nr - 1 : 0;
	for (uint32_t i = 0; i < nr; i++)
		c->at[i] = at[nr - 1 - i];
}

/* Keeps the sets that all segments use equally often. */
static void keep_common(struct observer *o, const struct cuts *c)
{
	uint32_t trial = ++o->stamp;
	struct observe_set *s;

	for (uint32_t i = 0; i < o->nr_sets; i++)
		o->sets[i].kept = false;
	for (uint32_t i = c->at[0]; i < c->at[1]; i++) {
		s = &o->sets[o->seq[i]];
		if (s->trial != trial)
			s->want = s->agreed = 0;
		s->trial = trial;
		s->want++;
	}
	for (uint32_t k = 1; k < c->nr; k++) {
		o->stamp++;
		for (uint32_t i = c->at[k]; i < c->at[k + 1]; i++) {
			s = &o->sets[o->seq[i]];
			if (s->mark != o->stamp)
				s->count = 0;
			s->mark = o->stamp;
			s->count++;
		}
		for (uint32_t i = c->at[k]; i < c->at[k + 1]; i++) {
			s = &o->sets[o->seq[i]];
			if (s->mark == o->stamp && s->trial == trial)
				s->agreed += s->count == s->want;
			s->mark = 0;
		}
	}
	for (uint32_t i = c->at[0]; i < c->at[1]; i++) {
		s = &o->sets[o->seq[i]];
		s->kept = s->agreed == c->nr - 1;
	}
}

static uint32_t next_kept(const struct observer *o, uint32_t at, uint32_t end)
{
	while (at < end && !o->sets[o->seq[at]].kept)
		at++;
	return at;
}

/* Drops what stands in another place than in the first segment. */
static bool drop_unordered(struct observer *o, const struct cuts *c)
{
	bool dropped = false;

	for (uint32_t k = 1; k < c->nr; k++) {
		uint32_t i = c->at[0], j = c->at[k];

		for (;;) {
			i = next_kept(o, i, c->at[1]);
			j = next_kept(o, j, c->at[k + 1]);
			if (i == c->at[1] || j == c->at[k + 1])
				break;
			if (o->seq[i] != o->seq[j]) {
				o->sets[o->seq[i]].kept = false;
				o->sets[o->seq[j]].kept = false;
				dropped = true;
			}
			i++;
			j++;
		}
		/* One is longer than the other: what is dropped was in both. */
		if (i != c->at[1] || j != c->at[k + 1])
			dropped = true;
	}
	return dropped;
}

static void weigh(const struct observer *o, const struct cuts *c,
	struct backbone *b)
{
	uint32_t last = OBSERVE_NONE, first = OBSERVE_NONE;

	*b = (struct backbone){ .turns = 0 };
	for (uint32_t i = c->at[0]; i < c->at[c->nr]; i++) {
		const struct observe_set *s = &o->sets[o->seq[i]];

		b->all_steps++;
		b->all_pages += s->pages;
		if (!s->kept)
			continue;
		b->steps++;
		b->pages += s->pages;
		if (i >= c->at[1])
			continue;
		b->turns += o->seq[i] != last;
		last = o->seq[i];
		if (first == OBSERVE_NONE)
			first = last;
	}
	/* The last step of an iteration may go on in the next. */
	if (b->turns > 1 && first == last)
		b->turns--;
}

/* Leaves `kept` set for what the segments of this set have in common. */
static bool try(struct observer *o, uint32_t set, struct backbone *b)
{
	struct cuts c;
	int round = 0;

	cut(o, set, &c);
	if (c.nr < MIN_SEGMENTS)
		return false;
	keep_common(o, &c);
	while (drop_unordered(o, &c))
		if (++round == ROUNDS)
			return false;
	weigh(o, &c, b);
	if (b->turns < 2 || (b->turns - 1) * (uint64_t)c.nr < EVIDENCE)
		return false;
	return b->steps * 3 >= b->all_steps || b->pages * 2 >= b->all_pages;
}

/* The number of uses that most steps' sets have, or one more. */
static uint32_t common_count(const uint32_t *weight, uint32_t nr)
{
	uint32_t best = 0;
	uint64_t most = 0;

	for (uint32_t n = MIN_SEGMENTS + 1; n <= nr; n++) {
		uint64_t w = (uint64_t)weight[n] + weight[n + 1];

		if (w > most) {
			most = w;
			best = n;
		}
	}
	return best;
}

/* Tries the first and the last set in the log that is used so often. */
static uint32_t best_anchor(struct observer *o, uint32_t uses, uint64_t *most)
{
	uint32_t len = observe_len(o), best = OBSERVE_NONE, set;
	uint32_t anchors[2] = { OBSERVE_NONE, OBSERVE_NONE };
	struct backbone b;

	for (uint32_t i = begin(o); i < len; i++) {
		set = o->seq[i];
		if (o->sets[set].count - uses > 1)
			continue;
		if (anchors[0] == OBSERVE_NONE)
			anchors[0] = set;
		anchors[1] = set;
	}
	for (int i = 0; i < 2; i++) {
		if (anchors[i] == OBSERVE_NONE ||
		    (i == 1 && anchors[1] == anchors[0]))
			continue;
		if (try(o, anchors[i], &b) && b.steps > *most) {
			*most = b.steps;
			best = anchors[i];
		}
	}
	return best;
}

static void count_uses(struct observer *o)
{
	for (uint32_t i = 0; i < o->nr_sets; i++)
		o->sets[i].count = 0;
	for (uint32_t i = begin(o); i < observe_len(o); i++)
		o->sets[o->seq[i]].count++;
}

bool observe_backbone(struct observer *o)
{
	uint32_t len = observe_len(o), anchor = OBSERVE_NONE, set, uses;
	/* By number of uses: the steps. */
	uint32_t *weight = calloc((size_t)len + 2, sizeof(*weight));
	struct backbone b;
	uint64_t most = 0;

	if (!weight)
		return false;
	count_uses(o);
	for (uint32_t i = 0; i < o->nr_sets; i++)
		weight[o->sets[i].count] += o->sets[i].count;
	for (int i = 0; i < 2; i++) {
		uses = common_count(weight, len);
		if (uses == 0)
			break;
		weight[uses] = weight[uses + 1] = 0;
		count_uses(o);
		set = best_anchor(o, uses, &most);
		if (set != OBSERVE_NONE)
			anchor = set;
	}
	free(weight);
	if (anchor == OBSERVE_NONE || !try(o, anchor, &b))
		return false;
	for (uint32_t i = 0; i < o->nr_sets; i++) {
		o->nr_optional += !o->sets[i].kept && !o->sets[i].optional;
		o->sets[i].optional |= !o->sets[i].kept;
	}
	return true;
}
