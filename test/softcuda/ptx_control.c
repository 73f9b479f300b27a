/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an instruction may do to the lanes of a warp beside computing: calls,
 * branches that part them, barriers, exits; and the frames that calls need.
 * Called by ptx_exec.c, from its loop where that is not simple.
 */
#include <stdlib.h>

#include "test/softcuda/ptx_exec.h"

#define LOCAL_MAX (512u << 10)
#define REGS_MAX (256u << 20)

/* ---- calls in progress -------------------------------------------------- */

void ptx_call_put(struct ptx_exec *x, struct ptx_call *c)
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

/* ---- fragments ---------------------------------------------------------- */

void ptx_frag_remove(struct ptx_warp *w, struct ptx_frag *f)
{
	ptx_call_put(w->x, f->call);
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

static void wake_sync(struct ptx_warp *w)
{
	u32 k;

	for (k = 0; k < w->nr_frags; k++)
		if (w->frag[k].state == PTX_AT_SYNC)
			w->frag[k].state = PTX_RUNNABLE;
}

/* ---- frames ------------------------------------------------------------- */

bool ptx_grow_regs(struct ptx_warp *w, size_t need)
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

bool ptx_grow_local(struct ptx_warp *w, u32 need)
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
void ptx_fill_consts(struct ptx_exec *x, const struct ptx_func *f, u8 *frame,
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
	ptx_frag_remove(w, f);
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
	ptx_call_put(w->x, from.call);
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

	if (ptx_depth(f) >= PTX_MAX_DEPTH ||
	    !ptx_grow_regs(w, (size_t)frame + to->frame_size) ||
	    !ptx_grow_local(w, local + to->local_size) || !(c = call_new(x))) {
		ptx_fault_at(w, i, (u32)__builtin_ctz(m), PTX_ILLEGAL_ADDRESS,
			0, "call of %s: the stack is full", to->name);
		return;
	}
	if (f->mask & ~m)
		frag_add(w, f, f->mask & ~m, f->pc + 1);
	*c = (struct ptx_call){
		.parent = f->call, .refs = 1, .depth = ptx_depth(f) + 1,
		.ret = f->pc + 1, .site = i->target, .func = f->func,
		.frame = f->frame, .local = f->local,
	};
	f->call = c;
	f->mask = m;
	f->func = s->func;
	f->frame = frame;
	f->local = local;
	f->pc = to->start;
	ptx_fill_consts(x, to, w->regs + frame, m);
	copy_slots(w, m, s->nr_in, s->in, c->local, to->in, local);
}

static void do_exit(struct ptx_warp *w, struct ptx_frag *f, u32 m)
{
	f->mask &= ~m;
	f->pc++;
	if (!f->mask)
		ptx_frag_remove(w, f);
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
	ptx_call_put(w->x, c);
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
bool ptx_release_warpsync(struct ptx_warp *w)
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

void ptx_control(struct ptx_warp *w, struct ptx_frag *f,
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
