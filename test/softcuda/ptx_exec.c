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

#include "test/softcuda/ptx_vm.h"

#define QUANTUM 262144
#define SLICE 1024
#define LOCAL_MAX (512u << 10)
#define REGS_MAX (256u << 20)
#define POISON 0xcd

/* ---- calls in progress -------------------------------------------------- */

static void call_put(struct ptx_exec *x, struct ptx_call *c)
{
	while (c && --c->refs == 0) {
		struct ptx_call *parent = c->parent;

		c->parent = x->free_calls;
		x->free_calls = c;
		c = parent;
	}
}

static struct ptx_call *call_get(struct ptx_call *c)
{
	if (c)
		c->refs++;
	return c;
}

static struct ptx_call *call_new(struct ptx_exec *x)
{
	struct ptx_call *c = x->free_calls;

	if (c)
		x->free_calls = c->parent;
	else
		c = malloc(sizeof(*c));
	return c;
}

static u32 depth(const struct ptx_frag *f)
{
	return f->call ? f->call->depth : 0;
}

/* ---- fragments ---------------------------------------------------------- */

static void frag_remove(struct ptx_warp *w, struct ptx_frag *f)
{
	call_put(w->x, f->call);
	*f = w->frag[--w->nr_frags];
}

/* A copy of *from at another place; lanes are disjoint, so there is room. */
static struct ptx_frag *frag_add(struct ptx_warp *w,
	const struct ptx_frag *from, u32 mask, u32 pc)
{
	struct ptx_frag *f = &w->frag[w->nr_frags++];

	*f = *from;
	f->mask = mask;
	f->pc = pc;
	f->state = PTX_RUNNABLE;
	call_get(f->call);
	return f;
}

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
			frag_remove(w, g);
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
		else if (depth(f) != depth(best))
			best = depth(f) > depth(best) ? f : best;
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

static void wake_sync(struct ptx_warp *w)
{
	u32 k;

	for (k = 0; k < w->nr_frags; k++)
		if (w->frag[k].state == PTX_AT_SYNC)
			w->frag[k].state = PTX_RUNNABLE;
}

/* ---- frames ------------------------------------------------------------- */

static bool grow_regs(struct ptx_warp *w, size_t need)
{
	size_t size = (need + 4095) & ~(size_t)4095;
	u8 *p;

	if (need <= w->regs_size)
		return true;
	if (size < 2 * w->regs_size)
		size = 2 * w->regs_size;
	if (size > REGS_MAX)
		return false;
	p = aligned_alloc(64, size);
	if (!p)
		return false;
	memset(p, 0, size);
	if (w->regs)
		memcpy(p, w->regs, w->regs_size);
	free(w->regs);
	w->regs = p;
	w->regs_size = size;
	return true;
}

static bool grow_local(struct ptx_warp *w, u32 need)
{
	u32 stride = (need + 255) & ~255u, l;
	u8 *p;

	if (need <= w->local_stride)
		return true;
	if (stride < 2 * w->local_stride)
		stride = 2 * w->local_stride;
	if (stride > LOCAL_MAX)
		return false;
	p = malloc((size_t)stride * PTX_LANES);
	if (!p)
		return false;
	memset(p, POISON, (size_t)stride * PTX_LANES);
	for (l = 0; l < PTX_LANES && w->local; l++)
		memcpy(p + (size_t)l * stride,
			w->local + (size_t)l * w->local_stride,
			w->local_stride);
	free(w->local);
	w->local = p;
	w->local_stride = stride;
	return true;
}

static u64 const_value(const struct ptx_exec *x, const struct ptx_const *c)
{
	const struct ptx_module *m = x->module;
	u32 align;

	switch (c->kind) {
	case PTX_CONST_GLOBAL:
		return m->vars[c->index].address + c->value;
	case PTX_CONST_SHARED:
		if (!m->shared[c->index].dynamic)
			return x->kernel->shared_offset[c->index] + c->value;
		align = m->shared[c->index].align;
		return ((x->kernel->shared_static + align - 1) & ~(align - 1))
			+ c->value;
	default:
		return c->value;
	}
}

/* Writes a function's constant rows, for the lanes of mask only. */
static void fill_consts(struct ptx_exec *x, const struct ptx_func *f, u8 *frame,
	u32 mask)
{
	u32 k, m;

	for (k = 0; k < f->nr_consts; k++) {
		const struct ptx_const *c = &f->consts[k];
		u64 v = const_value(x, c);
		u32 *pred = (u32 *)(frame + c->row);

		if (c->kind == PTX_CONST_PRED) {
			*pred = (*pred & ~mask) | ((u32)v & mask);
			continue;
		}
		for (m = mask; m; m &= m - 1)
			memcpy(frame + c->row +
				(size_t)__builtin_ctz(m) * c->width, &v,
				c->width);
	}
}

/* ---- barriers ----------------------------------------------------------- */

static void barrier_result(struct ptx_warp *w, const struct ptx_frag *f,
	const struct ptx_barrier *b)
{
	const struct ptx_insn *i = &w->x->module->code[f->pc - 1];
	u8 *frame = w->regs + f->frame;
	u32 *d = (u32 *)(frame + i->d), v, m;

	switch (i->op) {
	case PTX_BAR_POPC:
		for (m = f->mask; m; m &= m - 1)
			d[__builtin_ctz(m)] = b->popc;
		return;
	case PTX_BAR_AND:
		v = b->all ? PTX_FULL : 0;
		break;
	case PTX_BAR_OR:
		v = b->any ? PTX_FULL : 0;
		break;
	default:
		return;
	}
	*d = (*d & ~f->mask) | (v & f->mask);
}

/* Lets the waiters go when all have come. */
static void barrier_check(struct ptx_exec *x, u32 id)
{
	struct ptx_barrier *b = &x->barrier[id];
	u32 need = b->expected ? b->expected : x->live_threads, k, n;

	if (!b->arrived || b->arrived < need)
		return;
	for (k = 0; k < x->nr_warps; k++) {
		struct ptx_warp *w = &x->warps[k];

		for (n = 0; n < w->nr_frags; n++) {
			struct ptx_frag *f = &w->frag[n];

			if (f->state != PTX_AT_BARRIER || f->barrier != id)
				continue;
			barrier_result(w, f, b);
			f->state = PTX_RUNNABLE;
		}
	}
	memset(b, 0, sizeof(*b));
	b->all = 1;
}

static void lanes_exit(struct ptx_warp *w, u32 mask)
{
	struct ptx_exec *x = w->x;
	u32 id;

	w->alive &= ~mask;
	x->live_threads -= (u32)__builtin_popcount(mask);
	wake_sync(w);
	for (id = 0; id < PTX_NR_BARRIERS; id++)
		if (x->barrier[id].arrived && !x->barrier[id].expected)
			barrier_check(x, id);
}

/*
 * The lanes of m arrive.  A named count is in whole warps, so the lanes that a
 * last warp lacks arrive with it.  Returns false after a fault.
 */
static bool arrive(struct ptx_warp *w, const struct ptx_insn *i, u32 m)
{
	struct ptx_exec *x = w->x;
	u32 lane = (u32)__builtin_ctz(m);
	u32 id = PTX_ROW(w, u32, i->a)[lane], pred;
	u32 count = i->b ? PTX_ROW(w, u32, i->b)[lane] : 0;
	struct ptx_barrier *b;

	if (id >= PTX_NR_BARRIERS || count % PTX_LANES) {
		ptx_fault_at(w, i, lane, PTX_TRAP, 0, id >= PTX_NR_BARRIERS ?
			"barrier %u does not exist" :
			"barrier %u: count is no multiple of the warp size",
			id);
		return false;
	}
	b = &x->barrier[id];
	b->expected = count;
	b->arrived += (u32)__builtin_popcount(m);
	if (count && m == w->alive)
		b->arrived += (u32)__builtin_popcount(~w->alive);
	if (i->op >= PTX_BAR_POPC) {
		pred = *PTX_ROW(w, u32, i->c);
		if (i->flags & PTX_F_NOT_C)
			pred = ~pred;
		pred &= m;
		b->popc += (u32)__builtin_popcount(pred);
		b->all &= pred == m;
		b->any |= pred != 0;
	}
	return true;
}

/* ---- control ------------------------------------------------------------ */

/*
 * Each of these takes the running fragment f (its pc at the instruction) and
 * the lanes m that the guard lets through, and leaves all fragments with their
 * next pc.  The caller then picks again.
 */

static void do_branch(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m)
{
	u32 rest = f->mask & ~m;

	if (rest)
		frag_add(w, f, rest, f->pc + 1);
	f->mask = m;
	f->pc = i->target;
}

static void do_branch_table(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m)
{
	const struct ptx_branch_table *t = &w->x->module->tables[i->target];
	const u32 *index = PTX_ROW(w, u32, i->a);
	struct ptx_frag from = *f;
	u32 rest = f->mask & ~m;

	call_get(from.call);
	frag_remove(w, f);
	if (rest)
		frag_add(w, &from, rest, from.pc + 1);
	while (m) {
		u32 l = (u32)__builtin_ctz(m), v = index[l], same = 0, n;

		for (n = m; n; n &= n - 1)
			if (index[__builtin_ctz(n)] == v)
				same |= n & -n;
		m &= ~same;
		if (v >= t->nr) {
			ptx_fault_at(w, i, l, PTX_TRAP, 0,
				"brx.idx: index %u of %u", v, t->nr);
			break;
		}
		frag_add(w, &from, same, t->target[v]);
	}
	call_put(w->x, from.call);
}

static void copy_slots(struct ptx_warp *w, u32 m, u32 nr,
	const struct ptx_slot *from, u32 from_base, const struct ptx_slot *to,
	u32 to_base)
{
	u32 k;

	for (; m; m &= m - 1) {
		u8 *p = w->local + (size_t)__builtin_ctz(m) * w->local_stride;

		for (k = 0; k < nr; k++)
			memcpy(p + to_base + to[k].offset,
				p + from_base + from[k].offset, to[k].size);
	}
}

static void do_call(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m)
{
	struct ptx_exec *x = w->x;
	const struct ptx_module *mod = x->module;
	const struct ptx_callsite *s = &mod->sites[i->target];
	const struct ptx_func *to = mod->funcs[s->func];
	const struct ptx_func *from = mod->funcs[f->func];
	struct ptx_call *c;
	u32 frame = f->frame + from->frame_size;
	u32 local = (f->local + from->local_size + 15) & ~15u;

	if (depth(f) >= PTX_MAX_DEPTH ||
	    !grow_regs(w, (size_t)frame + to->frame_size) ||
	    !grow_local(w, local + to->local_size) || !(c = call_new(x))) {
		ptx_fault_at(w, i, (u32)__builtin_ctz(m), PTX_ILLEGAL_ADDRESS,
			0, "call of %s: the stack is full", to->name);
		return;
	}
	if (f->mask & ~m)
		frag_add(w, f, f->mask & ~m, f->pc + 1);
	*c = (struct ptx_call){
		.parent = f->call, .refs = 1, .depth = depth(f) + 1,
		.ret = f->pc + 1, .site = i->target, .func = f->func,
		.frame = f->frame, .local = f->local,
	};
	f->call = c;
	f->mask = m;
	f->func = s->func;
	f->frame = frame;
	f->local = local;
	f->pc = to->start;
	fill_consts(x, to, w->regs + frame, m);
	copy_slots(w, m, s->nr_in, s->in, c->local, to->in, local);
}

static void do_exit(struct ptx_warp *w, struct ptx_frag *f, u32 m)
{
	f->mask &= ~m;
	f->pc++;
	if (!f->mask)
		frag_remove(w, f);
	lanes_exit(w, m);
}

static void do_ret(struct ptx_warp *w, struct ptx_frag *f, u32 m)
{
	struct ptx_call *c = f->call;
	const struct ptx_callsite *s;

	if (!c) {
		do_exit(w, f, m);
		return;
	}
	s = &w->x->module->sites[c->site];
	copy_slots(w, m, s->nr_out, w->x->module->funcs[f->func]->out,
		f->local, s->out, c->local);
	if (f->mask & ~m)
		frag_add(w, f, f->mask & ~m, f->pc + 1);
	f->mask = m;
	f->pc = c->ret;
	f->func = c->func;
	f->frame = c->frame;
	f->local = c->local;
	f->call = call_get(c->parent);
	call_put(w->x, c);
}

static void do_barrier(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m)
{
	u32 id;

	if (!arrive(w, i, m))
		return;
	id = PTX_ROW(w, u32, i->a)[__builtin_ctz(m)];
	if (f->mask & ~m)
		frag_add(w, f, f->mask & ~m, f->pc + 1);
	f->mask = m;
	f->pc++;
	if (i->op != PTX_BAR_ARRIVE) {
		f->state = PTX_AT_BARRIER;
		f->barrier = (u8)id;
	}
	barrier_check(w->x, id);
}

/*
 * A .sync instruction: each group of lanes that names one membermask runs once
 * all of that mask's living lanes are here; the others wait.
 */
static void do_sync(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m)
{
	const u32 *member = PTX_ROW(w, u32, (u32)i->imm);
	u32 left = m, done = f->mask & ~m;

	while (left) {
		u32 want = member[__builtin_ctz(left)], group = 0, n;

		for (n = left; n; n &= n - 1)
			if (member[__builtin_ctz(n)] == want)
				group |= n & -n;
		left &= ~group;
		if (want & w->alive & ~group)
			continue;
		i->run(w, i, group);
		done |= group;
	}
	if (done == f->mask) {
		f->pc++;
		return;
	}
	if (done)
		frag_add(w, f, done, f->pc + 1);
	f->mask &= ~done;
	f->state = PTX_AT_SYNC;
}

/*
 * All fragments wait.  bar.warp.sync may be met at different places: lets go
 * whom all partners have joined.
 */
static bool release_warpsync(struct ptx_warp *w)
{
	u32 here[PTX_LANES], at = 0, go = 0, k, m;

	for (k = 0; k < w->nr_frags; k++) {
		const struct ptx_frag *f = &w->frag[k];
		const struct ptx_insn *i = &w->x->module->code[f->pc];
		const u32 *row;

		if (f->state != PTX_AT_SYNC || i->kind != PTX_WARPSYNC)
			continue;
		row = (const u32 *)(w->regs + f->frame + (u32)i->imm);
		for (m = f->mask; m; m &= m - 1)
			here[__builtin_ctz(m)] = row[__builtin_ctz(m)];
		at |= f->mask;
	}
	for (m = at; m; m &= m - 1) {
		u32 want = here[__builtin_ctz(m)], group = 0, n;

		for (n = at; n; n &= n - 1)
			if (here[__builtin_ctz(n)] == want)
				group |= n & -n;
		if (!(want & w->alive & ~group))
			go |= group;
	}
	for (k = w->nr_frags; k-- > 0; ) {
		struct ptx_frag *f = &w->frag[k];

		if (f->state != PTX_AT_SYNC || !(f->mask & go) ||
		    w->x->module->code[f->pc].kind != PTX_WARPSYNC)
			continue;
		if (f->mask & ~go)
			frag_add(w, f, f->mask & ~go, f->pc)->state =
				PTX_AT_SYNC;
		f->mask &= go;
		f->pc++;
		f->state = PTX_RUNNABLE;
	}
	return go != 0;
}

static void do_control(struct ptx_warp *w, struct ptx_frag *f,
	const struct ptx_insn *i, u32 m)
{
	if (!m) {
		f->pc++;
		return;
	}
	switch (i->kind) {
	case PTX_BRA:
		do_branch(w, f, i, m);
		break;
	case PTX_BRX:
		do_branch_table(w, f, i, m);
		break;
	case PTX_CALL:
		do_call(w, f, i, m);
		break;
	case PTX_BUILTIN:
		ptx_builtin(w, i, m);
		f->pc++;
		break;
	case PTX_RET:
		do_ret(w, f, m);
		break;
	case PTX_EXIT:
		do_exit(w, f, m);
		break;
	case PTX_BAR:
		do_barrier(w, f, i, m);
		break;
	case PTX_SYNC: case PTX_WARPSYNC:
		do_sync(w, f, i, m);
		break;
	default:
		ptx_fault_at(w, i, (u32)__builtin_ctz(m), PTX_TRAP, 0, "trap");
	}
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
			do_control(w, f, i, m);
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
			if (!release_warpsync(w))
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
	if (!grow_regs(w, x->kernel->func->frame_size) ||
	    !grow_local(w, x->kernel->local_total))
		return false;
	fill_consts(x, x->kernel->func, w->regs, PTX_FULL);
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
			call_put(x, w->frag[n].call);
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
