/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assignments: which block each transfer uses, transfers in execution order.
 * Called by the strategies that plan with blocks.
 *
 * The optimized one maximises (1-w)(1 - block bytes / all bytes) + w * distance,
 * distance being the mean number of transfers between two uses of a block over
 * the number of blocks, at most 1.  Up to twelve transfers it is solved exactly.
 * Swapping the names of blocks changes nothing, so only assignments in which
 * block b appears after block b-1 are tried, and those whose bytes so far
 * already rule out a better score are dropped.  In the published order, the
 * first assignment with the best score is always one of these, so that the
 * result is the same, in 1/k! of the steps at most.
 */
#include "planner/plan_int.h"

#include <stdlib.h>
#include <string.h>

#define EXACT_TRANSFERS 12
#define EXACT_BLOCKS 4

enum plan_status plan_assign_strict(const struct plan_assignment *self,
	const uint64_t *sizes, uint32_t nr, uint32_t n_blocks, uint32_t *block)
{
	(void)self;
	(void)sizes;
	if (!n_blocks)
		return PLAN_TOO_FEW_BLOCKS;
	for (uint32_t i = 0; i < nr; i++)
		block[i] = i % n_blocks;
	return PLAN_OK;
}

/* Fewest users first, never the neighbour's: that is one after the other. */
enum plan_status plan_assign_balanced(const uint64_t *sizes, uint32_t nr,
	uint32_t n_blocks, uint32_t *block)
{
	if (n_blocks < 2 && nr > n_blocks)
		return PLAN_TOO_FEW_BLOCKS;
	return nr ? plan_assign_strict(NULL, sizes, nr, n_blocks, block) :
		PLAN_OK;
}

/* ---- the optimized assignment ---- */

/* The heaviest transfer, and pair of neighbours, of transfers i.. */
struct rest {
	uint64_t one[PLAN_EXACT_BLOCKS + 1], two[PLAN_EXACT_BLOCKS + 1];
};

static void rest_init(struct rest *r, const uint64_t *sizes, uint32_t nr)
{
	r->one[nr] = r->two[nr] = 0;
	for (uint32_t i = nr; i-- > 0;) {
		uint64_t pair = sizes[i] + (i + 1 < nr ? sizes[i + 1] : 0);

		r->one[i] = sizes[i] > r->one[i + 1] ? sizes[i] : r->one[i + 1];
		r->two[i] = pair > r->two[i + 1] ? pair : r->two[i + 1];
	}
}

/*
 * What the blocks must grow by, at least: the heaviest transfer to come fits one
 * block, the heaviest pair two of them, and these are at best the largest.
 */
static uint64_t rest_growth(const struct rest *r, uint32_t i,
	const uint64_t *most, uint32_t used)
{
	uint64_t top = 0, second = 0, growth;

	for (uint32_t b = 0; b < used; b++) {
		if (most[b] > top) {
			second = top;
			top = most[b];
		} else if (most[b] > second) {
			second = most[b];
		}
	}
	growth = r->one[i] > top ? r->one[i] - top : 0;
	if (r->two[i] > top + second && r->two[i] - top - second > growth)
		growth = r->two[i] - top - second;
	return growth;
}

struct scorer {
	const uint64_t *sizes;
	uint32_t nr, k;
	double weight, total;
	/* exact search */
	uint64_t most[EXACT_BLOCKS];
	uint32_t last[EXACT_BLOCKS];
	struct rest rest;
	uint32_t at[EXACT_TRANSFERS], best[EXACT_TRANSFERS];
	double best_score;
	bool found;
};

static double score(const struct scorer *s, uint64_t bytes, uint64_t gaps,
	uint32_t reuses)
{
	double distance = 1;

	if (s->nr > s->k && reuses) {
		distance = (double)gaps / reuses / s->k;
		if (distance > 1)
			distance = 1;
	}
	return (1 - s->weight) * (1 - (double)bytes / s->total) +
		s->weight * distance;
}

/*
 * No completion scores better: blocks only grow, and the distances of a block
 * add up to its last use minus its first.  The same sums as a score's, so that
 * rounding cannot make it too low.
 */
static double best_from(const struct scorer *s, uint32_t i, uint32_t used,
	uint64_t bytes, uint32_t firsts)
{
	uint64_t gaps = 0;

	for (uint32_t j = 0; j < s->k; j++)
		gaps += s->nr - 1 - j;
	for (uint32_t j = used; j < s->k; j++)
		firsts += i + j - used;
	return score(s, bytes + rest_growth(&s->rest, i, s->most, used),
		gaps - firsts, s->nr - s->k);
}

/*
 * Transfer i onwards; used blocks so far, their bytes, the reuses' gaps, the
 * sum of the blocks' first uses.  Until something is found, best_score is that
 * of an assignment known to exist: to be reached, not beaten.
 */
static void exact_from(struct scorer *s, uint32_t i, uint32_t used,
	uint64_t bytes, uint64_t gaps, uint32_t firsts)
{
	double v;

	/* With as many blocks left to open as transfers, all must be opened. */
	if (s->k - used > s->nr - i)
		return;
	v = best_from(s, i, used, bytes, firsts);
	if (v < s->best_score || (s->found && v <= s->best_score))
		return;
	if (i == s->nr) {
		v = score(s, bytes, gaps, s->nr - s->k);
		if (v > s->best_score || (!s->found && v == s->best_score)) {
			s->found = true;
			s->best_score = v;
			memcpy(s->best, s->at, s->nr * sizeof(*s->at));
		}
		return;
	}
	for (uint32_t b = 0; b < s->k && b <= used; b++) {
		uint64_t most = s->most[b];
		uint32_t last = s->last[b];
		uint64_t more = s->sizes[i] > most ? s->sizes[i] - most : 0;

		if (i > 0 && s->at[i - 1] == b)
			continue;
		s->at[i] = b;
		s->most[b] += more;
		s->last[b] = i;
		exact_from(s, i + 1, b == used ? used + 1 : used, bytes + more,
			gaps + (b == used ? 0 : i - last),
			firsts + (b == used ? i : 0));
		s->most[b] = most;
		s->last[b] = last;
	}
}

static void greedy(const struct scorer *s, uint32_t *block, uint64_t *most)
{
	uint32_t used = 0, k = s->k, best;
	uint64_t more, least;

	memset(most, 0, k * sizeof(*most));
	for (uint32_t i = 0; i < s->nr; i++) {
		/* The first k transfers open the k blocks in turn. */
		best = used;
		least = UINT64_MAX;
		for (uint32_t b = 0; used == k && b < k; b++) {
			if (i > 0 && block[i - 1] == b)
				continue;
			more = s->sizes[i] > most[b] ?
				s->sizes[i] - most[b] : 0;
			if (more < least) {
				least = more;
				best = b;
			}
		}
		used += best == used;
		block[i] = best;
		if (s->sizes[i] > most[best])
			most[best] = s->sizes[i];
	}
}

/* The last transfer moves, if it may, from the block of the first. */
static void mend_wrap(const struct scorer *s, uint32_t *block,
	const uint64_t *most)
{
	uint32_t last = s->nr - 1, best = PLAN_NONE;
	uint64_t least = UINT64_MAX, more;

	if (s->nr < 2 || block[0] != block[last])
		return;
	for (uint32_t b = 0; b < s->k; b++) {
		if (b == block[last - 1] || b == block[0])
			continue;
		more = s->sizes[last] > most[b] ? s->sizes[last] - most[b] : 0;
		if (more < least) {
			least = more;
			best = b;
		}
	}
	if (best != PLAN_NONE)
		block[last] = best;
}

static double score_blocks(const struct scorer *s, const uint32_t *block,
	uint64_t *most, uint32_t *last)
{
	uint64_t bytes = 0, gaps = 0;
	uint32_t reuses = 0;

	memset(most, 0, s->k * sizeof(*most));
	memset(last, 0xff, s->k * sizeof(*last));
	for (uint32_t i = 0; i < s->nr; i++) {
		uint32_t b = block[i];

		if (last[b] != PLAN_NONE) {
			gaps += i - last[b];
			reuses++;
		}
		last[b] = i;
		if (s->sizes[i] > most[b]) {
			bytes += s->sizes[i] - most[b];
			most[b] = s->sizes[i];
		}
	}
	return score(s, bytes, gaps, reuses);
}

static void try_blocks(struct scorer *s, uint32_t *block, uint64_t *most,
	uint32_t *last)
{
	if (s->k < 2) {
		memset(block, 0, s->nr * sizeof(*block));
		return;
	}
	if (s->nr > EXACT_TRANSFERS || s->k > EXACT_BLOCKS) {
		greedy(s, block, most);
		mend_wrap(s, block, most);
		return;
	}
	greedy(s, block, most);
	s->best_score = score_blocks(s, block, most, last);
	s->found = false;
	memset(s->most, 0, sizeof(s->most));
	rest_init(&s->rest, s->sizes, s->nr);
	exact_from(s, 0, 0, 0, 0, 0);
	if (s->found)
		memcpy(block, s->best, s->nr * sizeof(*block));
	/* As published: a conflict across the wrap means plain turns. */
	if (!s->found || (s->nr >= 2 && block[0] == block[s->nr - 1]))
		for (uint32_t i = 0; i < s->nr; i++)
			block[i] = i % s->k;
}

enum plan_status plan_assign_optimized(const struct plan_assignment *self,
	const uint64_t *sizes, uint32_t nr, uint32_t n_blocks, uint32_t *block)
{
	struct scorer s = { .sizes = sizes, .nr = nr,
		.weight = self->distribution_weight };
	uint32_t hi = self->max_blocks, lo = self->min_blocks;
	uint32_t *trial, *last;
	double best = 0, v;
	bool found = false;
	uint64_t *most;

	if (!n_blocks || !hi || !lo)
		return PLAN_TOO_FEW_BLOCKS;
	for (uint32_t i = 0; i < nr; i++)
		s.total += (double)sizes[i];
	hi = hi < nr ? hi : nr;
	hi = hi < n_blocks ? hi : n_blocks;
	lo = lo < hi ? lo : hi;
	/* Nothing to place (published: a division by zero). */
	if (s.total == 0 || nr < 2) {
		memset(block, 0, nr * sizeof(*block));
		return s.total == 0 && nr > 1 ?
			plan_assign_strict(NULL, sizes, nr, hi, block) :
			PLAN_OK;
	}
	trial = malloc(nr * sizeof(*trial));
	last = malloc(hi * sizeof(*last));
	most = malloc(hi * sizeof(*most));
	for (s.k = lo; trial && last && most && s.k <= hi; s.k++) {
		try_blocks(&s, trial, most, last);
		v = score_blocks(&s, trial, most, last);
		if (!found || v > best) {
			found = true;
			best = v;
			memcpy(block, trial, nr * sizeof(*trial));
		}
	}
	free(trial);
	free(last);
	free(most);
	return found ? PLAN_OK : PLAN_NO_MEMORY;
}

struct plan_assignment plan_assignment_of(const struct plan_params *p,
	plan_assign_fn *otherwise)
{
	struct plan_assignment a = p->assignment;

	if (!a.compute) {
		a.compute = otherwise;
		a.distribution_weight = 0.5;
	}
	if (!a.min_blocks)
		a.min_blocks = p->min_blocks ? p->min_blocks : 2;
	if (!a.max_blocks)
		a.max_blocks = p->max_blocks ? p->max_blocks : p->n_blocks;
	if (a.max_blocks < a.min_blocks)
		a.max_blocks = a.min_blocks;
	return a;
}

/* ---- fewest bytes, exactly ---- */

struct least {
	const uint64_t *sizes;
	uint32_t nr, k;
	uint64_t most[PLAN_EXACT_BLOCKS], best;
	uint32_t at[PLAN_EXACT_BLOCKS], *block;
	struct rest rest;
};

static void least_from(struct least *l, uint32_t i, uint32_t used,
	uint64_t bytes)
{
	if (bytes + rest_growth(&l->rest, i, l->most, used) >= l->best)
		return;
	if (i == l->nr) {
		l->best = bytes;
		memcpy(l->block, l->at, l->nr * sizeof(*l->at));
		return;
	}
	/* First where nothing grows, then where least does. */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t b = 0; b < l->k && b <= used; b++) {
			uint64_t most = l->most[b];
			bool grows = l->sizes[i] > most;

			if (grows != (pass == 1) ||
			    (i > 0 && l->at[i - 1] == b))
				continue;
			l->at[i] = b;
			if (grows)
				l->most[b] = l->sizes[i];
			least_from(l, i + 1, b == used ? used + 1 : used,
				bytes + (grows ? l->sizes[i] - most : 0));
			l->most[b] = most;
		}
}

enum plan_status plan_assign_least(const uint64_t *sizes, uint32_t nr,
	uint32_t n_blocks, uint32_t *block)
{
	struct least l = { .sizes = sizes, .nr = nr, .block = block };
	enum plan_status err;

	err = plan_assign_balanced(sizes, nr, n_blocks, block);
	if (err || nr > PLAN_EXACT_BLOCKS || nr < 2)
		return err;
	l.k = n_blocks < nr ? n_blocks : nr;
	l.best = plan_block_bytes(sizes, block, nr);
	rest_init(&l.rest, sizes, nr);
	least_from(&l, 0, 0, 0);
	return PLAN_OK;
}
