/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of steps and its period.  Called by phase.c, which serialises the
 * calls.
 *
 * A candidate for the period is kept as long as every step equals the one that
 * far before.  When it breaks, the earlier uses of the newest step are looked
 * at: best is a distance at which a whole iteration repeats already, otherwise
 * the one that agrees for longest, otherwise the nearest.  While it holds, a
 * launch costs a comparison or two.
 */
#include "shim/observe_int.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_LIMIT 65536
/* Comparisons, at most, in search of a new candidate. */
#define SELECT_WORK 4096
/*
 * Two steps that come twice are no period yet where many others have been seen:
 * the end of one random order may look like the beginning of the next.
 */
#define MIN_RUN 16
/* A period that held for so long was one; the search begins anew. */
#define SETTLED 4

/* ---- life ---- */

struct observer *observe_create(void)
{
	struct observer *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->limit = DEFAULT_LIMIT;
	o->last_function = OBSERVE_NONE;
	return o;
}

static void log_free(struct observer *o)
{
	free(o->seq);
	free(o->back);
	free(o->steps);
	o->seq = o->back = NULL;
	o->steps = NULL;
	o->room = 0;
	o->base = o->next;
}

static void search_begin(struct observer *o)
{
	o->state = OBSERVE_SEARCHING;
	o->period = 0;
	o->run = 0;
	o->since = o->next_try = o->next;
	o->fails = 0;
	o->generation++;
}

/* All but the functions' names and the numbers that go on. */
static void forget(struct observer *o)
{
	log_free(o);
	observe_sets_clear(o);
	o->lost_period = o->comebacks = o->nr_optional = 0;
	o->filter = false;
	o->skipped = 0;
	search_begin(o);
}

void observe_destroy(struct observer *o)
{
	if (!o)
		return;
	forget(o);
	observe_functions_clear(o);
	free(o);
}

void observe_reset(struct observer *o)
{
	o->next = 0;
	forget(o);
}

void observe_set_limit(struct observer *o, uint32_t steps)
{
	o->limit = steps;
}

enum observe_state observe_state(const struct observer *o)
{
	return o->state;
}

uint32_t observe_period(const struct observer *o)
{
	return o->period;
}

uint32_t observe_iterations(const struct observer *o)
{
	if (o->period == 0)
		return 0;
	return (uint32_t)((o->next - o->origin) / o->period);
}

uint32_t observe_generation(const struct observer *o)
{
	return o->generation;
}

static void give_up(struct observer *o)
{
	forget(o);
	o->state = OBSERVE_APERIODIC;
}

/* ---- the log ---- */

static void log_trim(struct observer *o, uint64_t keep)
{
	uint32_t nr = observe_len(o), drop;

	if (keep >= nr)
		return;
	drop = nr - (uint32_t)keep;
	nr = (uint32_t)keep;
	memmove(o->seq, o->seq + drop, nr * sizeof(*o->seq));
	memmove(o->back, o->back + drop, nr * sizeof(*o->back));
	memmove(o->steps, o->steps + drop, nr * sizeof(*o->steps));
	o->base += drop;
}

/*
 * Whatever a period that has just been found may turn out to be, what was
 * before it goes only once it has held for as long.  At least half of the room
 * is empty after a trim, so a step's share in that is small.
 */
static bool log_reserve(struct observer *o)
{
	uint64_t keep = (uint64_t)o->limit + o->period;
	uint32_t nr = observe_len(o), rooms[3] = { o->room, o->room, o->room };

	if (nr < o->room)
		return true;
	if (o->state == OBSERVE_PERIODIC && o->run >= nr / 2 &&
	    keep > (OBSERVE_TIMED + 2) * (uint64_t)o->period)
		keep = (OBSERVE_TIMED + 2) * (uint64_t)o->period;
	if (keep < 3 * (uint64_t)o->period)
		keep = 3 * (uint64_t)o->period;
	if (nr >= 2 * keep) {
		log_trim(o, keep);
		return true;
	}
	if (!observe_grow((void **)&o->seq, &rooms[0], nr, sizeof(*o->seq)) ||
	    !observe_grow((void **)&o->back, &rooms[1], nr,
			sizeof(*o->back)) ||
	    !observe_grow((void **)&o->steps, &rooms[2], nr,
			sizeof(*o->steps)))
		return false;
	o->room = rooms[0];
	return true;
}

static void log_append(struct observer *o, uint32_t set)
{
	struct observe_set *s = &o->sets[set];
	uint32_t at = observe_len(o);

	o->seq[at] = set;
	o->back[at] = s->used && s->last >= o->base ?
		(uint32_t)(o->next - s->last) : 0;
	memset(&o->steps[at], 0, sizeof(o->steps[at]));
	s->last = o->next++;
	s->used = true;
	o->skipped = 0;
}

/* ---- the period ---- */

/* Marks the sets of the iteration before `end`; their number, and a sum. */
static uint32_t mark_period(struct observer *o, uint32_t end, uint64_t *sum)
{
	uint32_t distinct = 0;

	o->stamp++;
	*sum = 0;
	for (uint32_t i = end - o->period; i < end; i++) {
		struct observe_set *s = &o->sets[o->seq[i]];

		*sum += observe_mix(o->seq[i]);
		distinct += s->mark != o->stamp;
		s->mark = o->stamp;
	}
	return distinct;
}

static void set_optional(struct observer *o, struct observe_set *s)
{
	o->nr_optional += !s->optional;
	s->optional = true;
}

/*
 * The period that broke is back, soon.  What came between and is no part of it
 * is left out from its second time on; if it is something new each time,
 * everything new is.  The period's sets are marked.
 */
static void note_comeback(struct observer *o)
{
	uint64_t from = o->lost_at > o->base ? o->lost_at : o->base;

	if (o->lost_run < MIN_RUN ||
	    o->lost_run < (o->origin - o->lost_at) * 8)
		return;
	for (; from < o->origin; from++) {
		struct observe_set *s = &o->sets[o->seq[from - o->base]];

		if (s->mark != o->stamp && ++s->glitches == 2)
			set_optional(o, s);
	}
	if (++o->comebacks == 3)
		o->filter = true;
}

/*
 * The least rotation, with sets numbered by their first use: an iteration
 * begins where it began in the program, whenever it was found.
 */
static uint32_t least_rotation(const uint32_t *seq, uint32_t nr)
{
	uint32_t i = 0, j = 1, k = 0;

	while (i < nr && j < nr && k < nr) {
		uint32_t a = seq[(i + k) % nr], b = seq[(j + k) % nr];

		if (a == b) {
			k++;
			continue;
		}
		if (a > b)
			i += k + 1;
		else
			j += k + 1;
		if (i == j)
			j++;
		k = 0;
	}
	return i < j ? i : j;
}

static void confirm(struct observer *o)
{
	uint32_t distinct, others;
	uint64_t sum, whole;

	distinct = mark_period(o, observe_len(o), &sum);
	others = o->nr_sets - o->nr_optional;
	others = others > distinct ? others - distinct : 0;
	o->need = others < MIN_RUN ? others : MIN_RUN;
	if (o->need < o->period)
		o->need = o->period;
	if (o->run < o->need)
		return;
	o->state = OBSERVE_PERIODIC;
	/* The log may begin later than the first iteration did. */
	whole = o->next - 2 * (uint64_t)o->period;
	whole += least_rotation(&o->seq[whole - o->base], o->period);
	o->start = o->origin + (whole - o->origin) % o->period;
	if (o->lost_period == o->period && o->lost_sum == sum)
		note_comeback(o);
}

/* A new candidate, from the earlier uses of the newest step. */
static void period_select(struct observer *o)
{
	uint32_t at = observe_len(o) - 1, j = at, len, d, best = 0;
	uint32_t best_len = 0, work = SELECT_WORK;
	bool whole, best_whole = false;

	while (work > 0 && o->back[j] != 0 && o->back[j] <= j) {
		j -= o->back[j];
		d = at - j;
		work--;
		for (len = 1; len <= j && work > 0 &&
		     o->seq[at - len] == o->seq[j - len]; len++)
			work--;
		whole = len >= d;
		if (best == 0 || whole > best_whole ||
		    (whole == best_whole && len > best_len)) {
			best = d;
			best_len = len;
			best_whole = whole;
		}
	}
	o->period = best;
	if (best == 0)
		return;
	o->run = best_len;
	o->need = best;
	o->origin = o->next - best_len - best;
	o->state = OBSERVE_CANDIDATE;
	o->generation++;
}

static void period_lose(struct observer *o)
{
	uint64_t sum;

	if (o->state == OBSERVE_PERIODIC &&
	    observe_iterations(o) >= SETTLED) {
		mark_period(o, observe_len(o) - 1, &sum);
		if (o->lost_period != o->period || o->lost_sum != sum)
			o->comebacks = 0;
		o->lost_period = o->period;
		o->lost_sum = sum;
		o->lost_run = o->run;
		o->lost_at = o->since = o->next_try = o->next - 1;
		o->fails = 0;
	}
	o->state = OBSERVE_SEARCHING;
	o->period = 0;
	o->run = 0;
	o->fails++;
	o->generation++;
}

/*
 * A period has settled.  If it is not the one that sets were left out for, they
 * may well belong to it, so all is looked at anew.
 */
static void check_optional(struct observer *o)
{
	uint64_t sum;

	mark_period(o, observe_len(o), &sum);
	if (o->lost_period == 0) {
		o->lost_period = o->period;
		o->lost_sum = sum;
	} else if (o->lost_period != o->period || o->lost_sum != sum) {
		forget(o);
	}
}

/* What can be said without a period: try a backbone, or give up. */
static void search_on(struct observer *o)
{
	uint64_t steps = o->next - o->since;

	if (steps >= o->limit) {
		give_up(o);
		return;
	}
	/*
	 * Perhaps what was left out is what counts now; or most sets are from
	 * long ago, as this search alone has found fewer.
	 */
	if ((o->nr_optional != 0 && steps >= o->limit / 4) ||
	    o->nr_sets > 2 * (uint64_t)o->limit) {
		forget(o);
		return;
	}
	if (o->fails < 4 || o->next < o->next_try)
		return;
	o->next_try = o->next + 8 + steps / 2;
	if (!observe_backbone(o))
		return;
	o->filter = true;
	o->lost_period = o->comebacks = 0;
	o->base = o->next;
	search_begin(o);
}

/* The newest step has just begun. */
static void period_step(struct observer *o)
{
	uint32_t at = observe_len(o) - 1;
	bool broke = false;

	if (o->period != 0 && at >= o->period &&
	    o->seq[at] == o->seq[at - o->period]) {
		o->run++;
	} else {
		if (o->period != 0)
			period_lose(o);
		period_select(o);
		broke = true;
	}
	if (o->state == OBSERVE_CANDIDATE && o->run >= o->need)
		confirm(o);
	if ((o->nr_optional != 0 || o->filter) &&
	    o->state == OBSERVE_PERIODIC &&
	    o->run == (SETTLED - 1) * (uint64_t)o->period)
		check_optional(o);
	if (o->state != OBSERVE_PERIODIC && (broke ||
	    o->next - o->since >= o->limit))
		search_on(o);
}

/* ---- launches ---- */

static void step_count(struct observe_step *s, uint64_t key, uint32_t function,
	bool names_weights)
{
	struct observe_top *t, *least = &s->top[0];

	if (s->nr_launches < UINT32_MAX)
		s->nr_launches++;
	if (!s->varied)
		s->kernels = observe_mix(s->kernels ^ key);
	if (!names_weights || function == OBSERVE_NONE)
		return;
	for (t = s->top; t < s->top + OBSERVE_TOP; t++) {
		if (t->nr != 0 && t->function == function) {
			t->nr++;
			return;
		}
		if (t->nr < least->nr)
			least = t;
	}
	least->function = function;
	least->nr++;
}

/*
 * The set's number; OBSERVE_NONE with *optional: it is left out of the order,
 * without: no memory.
 */
static uint32_t set_of(struct observer *o, const struct page_range *weights,
	uint32_t nr, bool *optional)
{
	uint32_t len = observe_len(o), set;
	uint64_t hash;

	*optional = false;
	if (len > 0 && observe_set_is(o, o->seq[len - 1], weights, nr))
		return o->seq[len - 1];
	/* What is expected next. */
	if (o->period != 0 && len >= o->period) {
		set = o->seq[len - o->period];
		if (observe_set_is(o, set, weights, nr) &&
		    !o->sets[set].optional)
			return set;
	}
	set = observe_set_find(o, weights, nr, &hash);
	*optional = set == OBSERVE_NONE ? o->filter : o->sets[set].optional;
	if (*optional)
		return OBSERVE_NONE;
	return set != OBSERVE_NONE ? set :
		observe_set_add(o, weights, nr, hash);
}

/* An optional set: too many of them in a row are another program. */
static void skip(struct observer *o)
{
	uint64_t most = 64 + 4 * (uint64_t)(o->period ? o->period :
		o->lost_period);

	if (++o->skipped > most)
		forget(o);
	else if (observe_len(o) > 0)
		o->steps[observe_len(o) - 1].varied = true;
}

uint32_t observe_launch(struct observer *o, uint64_t function,
	const char *name, const struct page_range *weights, uint32_t nr)
{
	uint32_t set = OBSERVE_NONE;
	bool optional = false;

	if (o->state == OBSERVE_APERIODIC)
		return OBSERVE_NONE;
	if (function != o->last_key || o->last_function == OBSERVE_NONE) {
		o->last_function = observe_function(o, function, name);
		o->last_key = function;
	}
	if (nr != 0) {
		set = set_of(o, weights, nr, &optional);
		if (optional)
			skip(o);
	}
	if (set != OBSERVE_NONE && (observe_len(o) == 0 ||
	    o->seq[observe_len(o) - 1] != set)) {
		if (!log_reserve(o)) {
			give_up(o);
			return OBSERVE_NONE;
		}
		log_append(o, set);
		period_step(o);
	} else if (set == OBSERVE_NONE && nr != 0 && !optional) {
		give_up(o);
	}
	if (observe_len(o) == 0)
		return OBSERVE_NONE;
	step_count(&o->steps[observe_len(o) - 1], function, o->last_function,
		set != OBSERVE_NONE);
	/* Once in 2^32 this reads as none: that step goes untimed. */
	return (uint32_t)(o->next - 1);
}

void observe_time(struct observer *o, uint32_t step, double ms)
{
	uint32_t age = (uint32_t)o->next - step;
	struct observe_step *s;

	if (age == 0 || age > observe_len(o) || !(ms >= 0 && ms <= DBL_MAX))
		return;
	s = &o->steps[observe_len(o) - age];
	s->ms += ms;
	s->timed = true;
}
