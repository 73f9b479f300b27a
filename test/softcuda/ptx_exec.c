/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a grid: blocks one after another, the warps of a block in turn until
 * each waits or has exited, the fragments of a warp by place.  Called by the
 * driver through ptx_run(); no locks, no state outlives the call.
 *
 * Divergence.  Lanes of a warp that are at one place form a fragment.  The
 * fragment in the deepest call runs first, then the one with the lowest pc;
 * fragments that meet become one.  That brings lanes together again behind
 * ifs and loops, since the text of a program puts joins below branches; where
 * it does not, only speed is lost: instructions that need lanes of other
 * fragments (.sync) wait for them.  After QUANTUM instructions the fragments
 * run by turns for a while, so that a lane spinning on another lane's store
 * ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "test/softcuda/ptx_exec.h"

#define QUANTUM 262144
#define SLICE 1024

/* ---- which fragment ----------------------------------------------------- */

static bool same_place(const struct ptx_frag *a, const struct ptx_frag *b)
{
	return a->pc == b->pc && a->call == b->call;
}

/*
 * Joins what can be joined, then chooses.  `rotate`: the one that has waited
 * longest.  NULL: all wait.
 */
static struct ptx_frag *frag_pick(struct ptx_warp *w, bool rotate)
{
	struct ptx_frag *best = NULL, *f;
	u32 k, n;

	for (k = 0; k < w->nr_frags; k++) {
		f = &w->frag[k];
		if (f->state == PTX_AT_BARRIER)
			continue;
		for (n = k + 1; n < w->nr_frags; n++) {
			struct ptx_frag *g = &w->frag[n];

			if (g->state == PTX_AT_BARRIER || !same_place(f, g))
				continue;
			f->mask |= g->mask;
			f->state = PTX_RUNNABLE;
			ptx_frag_remove(w, g);
			n--;
		}
	}
	for (k = 0; k < w->nr_frags; k++) {
		f = &w->frag[k];
		if (f->state != PTX_RUNNABLE)
			continue;
		if (!best)
			best = f;
		else if (rotate)
			best = f->stamp < best->stamp ? f : best;
		else if (ptx_depth(f) != ptx_depth(best))
			best = ptx_depth(f) > ptx_depth(best) ? f : best;
		else if (f->pc < best->pc)
			best = f;
	}
	return best;
}

/* The first place where running *f must look at the other fragments again. */
static u32 frag_limit(const struct ptx_warp *w, const struct ptx_frag *f)
{
	u32 limit = 0xffffffff, k;

	for (k = 0; k < w->nr_frags; k++) {
		const struct ptx_frag *g = &w->frag[k];

		if (g != f && g->state != PTX_AT_BARRIER &&
		    g->call == f->call && g->pc < limit && g->pc > f->pc)
			limit = g->pc;
	}
	return limit;
}

/* ---- the loop ----------------------------------------------------------- */

static inline u32 guarded(const struct ptx_warp *w, const struct ptx_insn *i,
	u32 mask)
{
	u32 p = *PTX_ROW(w, u32, i->guard);

	return mask & (i->guard_kind == 1 ? p : ~p);
}

/*
 * Runs one fragment until it ends, waits, splits, meets another one, or has
 * used `left` instructions.  Returns how many it used.
 */
static u32 run_frag(struct ptx_warp *w, struct ptx_frag *f, u32 left)
{
	struct ptx_exec *x = w->x;
	const struct ptx_insn *code = x->module->code, *i;
	u32 pc = f->pc, mask = f->mask, limit = frag_limit(w, f), m;
	u32 lanes = (u32)__builtin_popcount(mask), n = 0;
	u64 lane_count = 0;

	w->frame = w->regs + f->frame;
	w->local_base = f->local;
	do {
		i = &code[pc];
		m = mask;
		n++;
		lane_count += lanes;
		if (i->guard_kind) {
			m = guarded(w, i, mask);
			if (m != mask)
				lane_count -= lanes -
					(u32)__builtin_popcount(m);
		}
		if (i->kind == PTX_PLAIN) {
			if (m)
				i->run(w, i, m);
			pc++;
		} else if (i->kind == PTX_MEMORY) {
			if (m)
				i->run(w, i, m);
			if (x->status != PTX_OK)
				break;
			pc++;
		} else if (i->kind == PTX_BRA && (m == mask || !m)) {
			pc = m ? i->target : pc + 1;
		} else if (i->kind == PTX_CLOCK) {
			x->clock = x->base_clock + n;
			if (m)
				i->run(w, i, m);
			pc++;
		} else if (i->kind == PTX_SYNC && m == mask &&
			   (i->flags & PTX_F_CONST) &&
			   !(i->target & w->alive & ~m)) {
			i->run(w, i, m);
			pc++;
		} else {
			f->pc = pc;
			f->stamp = x->base_clock + n;
			ptx_control(w, f, i, m);
			goto out;
		}
	} while (pc < limit && n < left);
	f->pc = pc;
	f->stamp = x->base_clock + n;
out:
	x->base_clock += n;
	x->count->warp_instructions += n;
	x->count->lane_instructions += lane_count;
	return n;
}

/*
 * Until all fragments wait or are gone, or the warp's time is up.  Fragments
 * normally run in the order that brings them together; when that has gone on
 * for long, in small slices by turns.
 */
static bool run_warp(struct ptx_warp *w)
{
	struct ptx_exec *x = w->x;
	u64 start = x->base_clock;
	u32 left = QUANTUM, turns = 0;
	bool rotate = false;

	while (x->status == PTX_OK && w->nr_frags) {
		struct ptx_frag *f = frag_pick(w, rotate);
		u32 n;

		if (!f) {
			if (!ptx_release_warpsync(w))
				break;
			continue;
		}
		n = run_frag(w, f, rotate && left > SLICE ? SLICE : left);
		left -= n;
		if (left)
			continue;
		left = QUANTUM;
		rotate = !rotate && w->nr_frags > 1;
		if (++turns == 2 && x->nr_warps > 1)
			break;
	}
	return x->base_clock != start;
}

/* ---- blocks ------------------------------------------------------------- */

static void init_block(struct ptx_exec *x)
{
	u32 k;

	memset(x->barrier, 0, sizeof(x->barrier));
	for (k = 0; k < PTX_NR_BARRIERS; k++)
		x->barrier[k].all = 1;
	if (x->shared_size)
		memset(x->shared, POISON, x->shared_size);
	x->live_threads = x->nr_threads;
	for (k = 0; k < x->nr_warps; k++) {
		struct ptx_warp *w = &x->warps[k];

		w->alive = w->valid;
		w->cc = 0;
		w->nr_frags = 1;
		w->frag[0] = (struct ptx_frag){
			.pc = x->kernel->func->start, .mask = w->valid,
			.func = x->kernel->func->index,
		};
	}
}

static void deadlock(struct ptx_exec *x)
{
	u32 k;

	for (k = 0; k < x->nr_warps; k++) {
		struct ptx_warp *w = &x->warps[k];
		const struct ptx_frag *f = w->frag;
		u32 back;

		if (!w->nr_frags)
			continue;
		back = f->state == PTX_AT_BARRIER;
		ptx_fault_at(w, &x->module->code[f->pc - back],
			(u32)__builtin_ctz(f->mask), PTX_DEADLOCK, 0,
			back ? "deadlock: barrier %u is never complete" :
			"deadlock: lanes that a .sync names never come",
			f->barrier);
	}
}

static void run_block(struct ptx_exec *x)
{
	bool moved;
	u32 k;

	init_block(x);
	while (x->status == PTX_OK && x->live_threads) {
		moved = false;
		for (k = 0; k < x->nr_warps && x->status == PTX_OK; k++)
			if (x->warps[k].nr_frags)
				moved |= run_warp(&x->warps[k]);
		if (!moved)
			deadlock(x);
	}
}

static bool init_warp(struct ptx_exec *x, u32 k)
{
	struct ptx_warp *w = &x->warps[k];
	const u32 *b = x->launch->block;
	u32 l, t;

	w->x = x;
	w->index = k;
	for (l = 0; l < PTX_LANES; l++) {
		t = k * PTX_LANES + l;
		w->tid[0][l] = t % b[0];
		w->tid[1][l] = t / b[0] % b[1];
		w->tid[2][l] = t / b[0] / b[1];
		if (t < x->nr_threads)
			w->valid |= 1u << l;
	}
	if (!ptx_grow_regs(w, x->kernel->func->frame_size) ||
	    !ptx_grow_local(w, x->kernel->local_total))
		return false;
	ptx_fill_consts(x, x->kernel->func, w->regs, PTX_FULL);
	return true;
}

static enum ptx_status bad_launch(struct ptx_exec *x, const char *why)
{
	if (x->fault)
		snprintf(x->fault->message, sizeof(x->fault->message),
			"%s: %s", x->kernel->func->name, why);
	return PTX_BAD_LAUNCH;
}

static u32 dynamic_start(const struct ptx_kernel *k)
{
	const struct ptx_module *m = k->module;
	u32 n, align = 1;

	for (n = 0; n < m->nr_shared; n++)
		if (m->shared[n].dynamic && m->shared[n].align > align)
			align = m->shared[n].align;
	return (k->shared_static + align - 1) & ~(align - 1);
}

static enum ptx_status setup(struct ptx_exec *x)
{
	const struct ptx_launch *l = x->launch;
	const struct ptx_func *f = x->kernel->func;
	u64 threads = 1, blocks = 1;
	u32 k;

	for (k = 0; k < 3; k++) {
		if (!l->grid[k] || !l->block[k])
			return bad_launch(x, "a dimension is 0");
		if (l->block[k] > 1024)
			return bad_launch(x, "too many threads in a block");
		threads *= l->block[k];
		blocks = blocks > UINT32_MAX ? blocks : blocks * l->grid[k];
	}
	if (threads > f->max_threads)
		return bad_launch(x, "too many threads in a block");
	if (f->params_size && !l->params)
		return bad_launch(x, "no parameters");
	if (l->dynamic_shared > (1u << 20))
		return bad_launch(x, "too much shared memory");
	x->nr_threads = (u32)threads;
	x->nr_warps = (u32)(threads + PTX_LANES - 1) / PTX_LANES;
	x->shared_size = dynamic_start(x->kernel) + l->dynamic_shared;
	x->params_size = f->params_size;
	x->shared = malloc(x->shared_size + 16);
	x->params = calloc(1, x->params_size + 16);
	x->warps = calloc(x->nr_warps, sizeof(*x->warps));
	if (!x->shared || !x->params || !x->warps)
		return PTX_NO_MEMORY;
	if (f->params_size)
		memcpy(x->params, l->params, f->params_size);
	for (k = 0; k < x->nr_warps; k++)
		if (!init_warp(x, k))
			return PTX_NO_MEMORY;
	return PTX_OK;
}

static void teardown(struct ptx_exec *x)
{
	struct ptx_call *c;
	u32 k, n;

	for (k = 0; x->warps && k < x->nr_warps; k++) {
		struct ptx_warp *w = &x->warps[k];

		for (n = 0; n < w->nr_frags; n++)
			ptx_call_put(x, w->frag[n].call);
		free(w->regs);
		free(w->local);
	}
	while ((c = x->free_calls)) {
		x->free_calls = c->parent;
		free(c);
	}
	free(x->warps);
	free(x->shared);
	free(x->params);
}

enum ptx_status ptx_run(const struct ptx_kernel *k, const struct ptx_launch *l,
	struct ptx_count *count, struct ptx_fault *fault)
{
	struct ptx_exec x = {
		.kernel = k, .module = k->module, .launch = l,
		.memory = l->memory, .count = count, .fault = fault,
		.base_clock = l->clock,
	};
	u32 *c = x.ctaid;

	memset(count, 0, sizeof(*count));
	if (fault)
		memset(fault, 0, sizeof(*fault));
	x.status = setup(&x);
	for (c[2] = 0; c[2] < l->grid[2] && !x.status; c[2]++)
		for (c[1] = 0; c[1] < l->grid[1] && !x.status; c[1]++)
			for (c[0] = 0; c[0] < l->grid[0] && !x.status; c[0]++)
				run_block(&x);
	teardown(&x);
	return x.status;
}
