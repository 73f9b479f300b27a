/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders of control flow, barriers, and of the instructions that look across
 * lanes.  Called by ptx_decode.c; no locks.
 */
#include <string.h>

#include "test/softcuda/ptx_parser.h"

static void init(struct ptx_parser *p, struct ptx_insn *i, u8 kind)
{
	memset(i, 0, sizeof(*i));
	i->kind = kind;
	i->guard = p->guard;
	i->guard_kind = p->guard_kind;
	i->run = ptx_nop_run;
}

/* True when the modifiers are exactly these, in this order. */
static bool mods_are(const struct ptx_opcode *op, u32 from, const char *list)
{
	char have[128] = "";
	u32 k;

	for (k = from; k < op->nr; k++) {
		strcat(have, ".");
		strcat(have, op->mod[k]);
	}
	return !strcmp(have, list);
}

/* ---- branches ----------------------------------------------------------- */

void ptx_decode_bra(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;

	init(p, &i, PTX_BRA);
	if (!mods_are(op, 0, "") && !mods_are(op, 0, ".uni"))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 1, 1);
	if (v[0].at.kind != PTX_TOK_WORD || v[0].kind == PTX_OPND_REG)
		ptx_fail(p, &v[0].at, PTX_SYNTAX, "a label is expected");
	ptx_fixup(p, &v[0].at, p->m->nr_code, NULL);
	ptx_emit(p, &i);
}

/* brx.idx[.uni] index, table */
void ptx_decode_brx(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;

	init(p, &i, PTX_BRX);
	if (!mods_are(op, 0, ".idx") && !mods_are(op, 0, ".idx.uni"))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 2, 2);
	if (v[1].kind != PTX_OPND_SYM || v[1].sym->kind != PTX_SYM_TABLE)
		ptx_fail(p, &v[1].at, PTX_SYNTAX,
			"a list of branch targets is expected");
	i.a = ptx_src(p, &v[0], PTX_u32);
	i.target = v[1].sym->index;
	ptx_emit(p, &i);
}

void ptx_decode_ret(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[1];
	struct ptx_insn i;

	init(p, &i, p->func->entry ? PTX_EXIT : PTX_RET);
	if (!mods_are(op, 0, "") && !mods_are(op, 0, ".uni"))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, 1), 0, 0);
	ptx_emit(p, &i);
}

static void bare(struct ptx_parser *p, const struct ptx_opcode *op, u8 kind)
{
	struct ptx_operand v[1];
	struct ptx_insn i;

	init(p, &i, kind);
	if (op->nr)
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, 1), 0, 0);
	ptx_emit(p, &i);
}

void ptx_decode_exit(struct ptx_parser *p, const struct ptx_opcode *op)
{
	bare(p, op, PTX_EXIT);
}

void ptx_decode_trap(struct ptx_parser *p, const struct ptx_opcode *op)
{
	bare(p, op, PTX_TRAP_OP);
}

/* ---- calls -------------------------------------------------------------- */

/* ( a, b ): .param variables of the caller, or constants put into one */
static u32 arguments(struct ptx_parser *p, struct ptx_slot **out)
{
	struct ptx_slot slot[64];
	struct ptx_operand o;
	u32 n = 0;

	while (!ptx_accept(p, ')')) {
		if (n == 64)
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"too many arguments");
		ptx_operand(p, &o);
		if (o.kind != PTX_OPND_SYM || o.sym->kind != PTX_SYM_LOCAL ||
		    o.offset)
			ptx_fail(p, &o.at, PTX_UNSUPPORTED,
				"an argument is a .param variable");
		slot[n++] = (struct ptx_slot){ o.sym->offset, o.sym->size,
			o.sym->align };
		if (!ptx_accept(p, ',') && !ptx_is_punct(p, ')'))
			ptx_fail(p, &p->tok, PTX_SYNTAX, "`,' or `)' expected");
	}
	*out = ptx_alloc(p, n * sizeof(**out) + 1);
	memcpy(*out, slot, n * sizeof(**out));
	return n;
}

static void note_call(struct ptx_parser *p, u32 func)
{
	struct ptx_func *f = p->func;
	u32 k;

	for (k = 0; k < f->nr_calls; k++)
		if (f->calls[k] == func)
			return;
	f->calls = ptx_grow(p, f->calls, f->nr_calls, &f->cap_calls,
		sizeof(*f->calls));
	f->calls[f->nr_calls++] = func;
}

/* call[.uni] [(results),] name[, (arguments)]; */
void ptx_decode_call(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_module *m = p->m;
	struct ptx_callsite site = { 0 };
	struct ptx_insn i;
	struct ptx_sym *s;

	init(p, &i, PTX_CALL);
	if (!mods_are(op, 0, "") && !mods_are(op, 0, ".uni"))
		ptx_unsupported(p, op);
	if (ptx_accept(p, '(')) {
		site.nr_out = arguments(p, &site.out);
		ptx_expect(p, ',');
	}
	s = p->tok.kind == PTX_TOK_WORD ?
		ptx_sym_find(p, p->tok.text, p->tok.len) : NULL;
	if (s && s->kind == PTX_SYM_REG)
		ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
			"indirect calls are not supported");
	if (!s || s->kind != PTX_SYM_FUNC)
		ptx_fail(p, &p->tok, p->tok.kind == PTX_TOK_WORD &&
			p->tok.text[0] == '%' ? PTX_UNSUPPORTED : PTX_SYNTAX,
			"%.*s is not a declared function", (int)p->tok.len,
			p->tok.text);
	ptx_next(p);
	if (ptx_accept(p, ',')) {
		ptx_expect(p, '(');
		site.nr_in = arguments(p, &site.in);
	}
	ptx_expect(p, ';');
	if (m->funcs[s->index]->entry)
		ptx_fail(p, &op->at, PTX_SYNTAX, "a kernel cannot be called");
	site.func = s->index;
	note_call(p, s->index);
	m->sites = ptx_grow(p, m->sites, m->nr_sites, &m->cap_sites,
		sizeof(*m->sites));
	i.target = m->nr_sites;
	m->sites[m->nr_sites++] = site;
	ptx_emit(p, &i);
}

/* ---- barriers ----------------------------------------------------------- */

static void warpsync(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;

	init(p, &i, PTX_WARPSYNC);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 1, 1);
	i.imm = ptx_src(p, &v[0], PTX_b32);
	ptx_emit(p, &i);
}

static const struct {
	const char *mods;
	u8 op;
	u8 type;		/* of the result */
} bar_forms[] = {
	{ ".sync", PTX_BAR_SYNC, PTX_none },
	{ ".sync.aligned", PTX_BAR_SYNC, PTX_none },
	{ ".arrive", PTX_BAR_ARRIVE, PTX_none },
	{ ".arrive.aligned", PTX_BAR_ARRIVE, PTX_none },
	{ ".red.popc.u32", PTX_BAR_POPC, PTX_u32 },
	{ ".red.popc.aligned.u32", PTX_BAR_POPC, PTX_u32 },
	{ ".red.and.pred", PTX_BAR_AND, PTX_pred },
	{ ".red.and.aligned.pred", PTX_BAR_AND, PTX_pred },
	{ ".red.or.pred", PTX_BAR_OR, PTX_pred },
	{ ".red.or.aligned.pred", PTX_BAR_OR, PTX_pred },
};

/*
 * bar.sync a[, b];  bar.arrive a, b;  bar.red.OP d, a[, b], [!]c; the same with
 * barrier and with .cta
 */
void ptx_decode_bar(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 from = op->nr && !strcmp(op->mod[0], "cta"), n, k, first;

	if (!strcmp(op->base, "bar") && mods_are(op, 0, ".warp.sync")) {
		warpsync(p, op);
		return;
	}
	for (k = 0; k < sizeof(bar_forms) / sizeof(*bar_forms); k++)
		if (mods_are(op, from, bar_forms[k].mods))
			break;
	if (k == sizeof(bar_forms) / sizeof(*bar_forms))
		ptx_unsupported(p, op);
	init(p, &i, PTX_BAR);
	i.op = bar_forms[k].op;
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	first = bar_forms[k].type != PTX_none;
	if (first) {
		ptx_need(p, op, n, 3, 4);
		i.c = ptx_src_pred(p, &v[--n], &i.flags);
		i.d = ptx_dst(p, &v[0], bar_forms[k].type);
	} else {
		ptx_need(p, op, n, i.op == PTX_BAR_ARRIVE ? 2 : 1, 2);
	}
	i.a = ptx_src(p, &v[first], PTX_u32);
	if (n > first + 1)
		i.b = ptx_src(p, &v[first + 1], PTX_u32);
	ptx_emit(p, &i);
}

/* Memory is sequentially consistent here, so a fence orders nothing more. */
void ptx_decode_fence(struct ptx_parser *p, const struct ptx_opcode *op)
{
	static const char *const known[] = {
		"cta", "gl", "sys", "gpu", "cluster", "sc", "acq_rel",
		"acquire", "release",
	};
	struct ptx_operand v[1];
	struct ptx_insn i;
	u32 k, n;

	init(p, &i, PTX_PLAIN);
	for (k = 0; k < op->nr; k++) {
		for (n = 0; n < sizeof(known) / sizeof(*known); n++)
			if (!strcmp(op->mod[k], known[n]))
				break;
		if (n == sizeof(known) / sizeof(*known))
			ptx_unsupported(p, op);
	}
	if (!op->nr)
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, 1), 0, 0);
	ptx_emit(p, &i);
}

void ptx_decode_nanosleep(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;

	init(p, &i, PTX_PLAIN);
	if (!mods_are(op, 0, ".u32"))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 1, 1);
	i.a = ptx_src(p, &v[0], PTX_u32);
	i.run = ptx_sleep_run;
	ptx_emit(p, &i);
}

/* ---- across lanes ------------------------------------------------------- */

/* The membermask; where it is a constant the loop need not look at lanes. */
static void member(struct ptx_parser *p, const struct ptx_operand *o,
	struct ptx_insn *i)
{
	i->imm = ptx_src(p, o, PTX_b32);
	if (o->kind == PTX_OPND_INT) {
		i->flags |= PTX_F_CONST;
		i->target = (u32)o->value;
	}
}

/* shfl.sync.MODE.b32 d[|p], a, b, c, membermask */
void ptx_decode_shfl(struct ptx_parser *p, const struct ptx_opcode *op)
{
	static const char *const forms[] = {
		[PTX_SHFL_UP] = ".sync.up.b32",
		[PTX_SHFL_DOWN] = ".sync.down.b32",
		[PTX_SHFL_BFLY] = ".sync.bfly.b32",
		[PTX_SHFL_IDX] = ".sync.idx.b32",
	};
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 k;

	init(p, &i, PTX_SYNC);
	for (k = 0; k < 4; k++)
		if (mods_are(op, 0, forms[k]))
			break;
	if (k == 4)
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 5, 5);
	i.op = (u8)k;
	i.a = ptx_src(p, &v[1], PTX_b32);
	i.b = ptx_src(p, &v[2], PTX_b32);
	i.c = ptx_src(p, &v[3], PTX_b32);
	member(p, &v[4], &i);
	if (v[0].pair)
		i.e = ptx_dst(p, v[0].pair, PTX_pred);
	i.d = ptx_dst(p, &v[0], PTX_b32);
	i.run = ptx_shfl_run;
	ptx_emit(p, &i);
}

/* vote.sync.MODE d, [!]a, membermask */
void ptx_decode_vote(struct ptx_parser *p, const struct ptx_opcode *op)
{
	static const char *const forms[] = {
		[PTX_VOTE_ALL] = ".sync.all.pred",
		[PTX_VOTE_ANY] = ".sync.any.pred",
		[PTX_VOTE_UNI] = ".sync.uni.pred",
		[PTX_VOTE_BALLOT] = ".sync.ballot.b32",
	};
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 k;

	init(p, &i, PTX_SYNC);
	for (k = 0; k < 4; k++)
		if (mods_are(op, 0, forms[k]))
			break;
	if (k == 4)
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 3, 3);
	i.op = (u8)k;
	i.a = ptx_src_pred(p, &v[1], &i.flags);
	member(p, &v[2], &i);
	i.d = ptx_dst(p, &v[0], k == PTX_VOTE_BALLOT ? PTX_b32 : PTX_pred);
	i.run = ptx_vote_run;
	ptx_emit(p, &i);
}

/* match.any.sync.TYPE d, a, membermask;  match.all.sync.TYPE d[|p], ... */
void ptx_decode_match(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	enum ptx_type t = PTX_b32;

	init(p, &i, PTX_SYNC);
	i.op = mods_are(op, 0, ".all.sync.b32") ||
		mods_are(op, 0, ".all.sync.b64");
	if (!i.op && !mods_are(op, 0, ".any.sync.b32") &&
	    !mods_are(op, 0, ".any.sync.b64"))
		ptx_unsupported(p, op);
	if (!strcmp(op->mod[2], "b64"))
		t = PTX_b64;
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 3, 3);
	i.size = (u8)ptx_type_size(t);
	i.a = ptx_src(p, &v[1], t);
	member(p, &v[2], &i);
	if (v[0].pair && i.op)
		i.e = ptx_dst(p, v[0].pair, PTX_pred);
	i.d = ptx_dst(p, &v[0], PTX_b32);
	i.run = ptx_match_run;
	ptx_emit(p, &i);
}

/* redux.sync.OP.TYPE d, a, membermask */
void ptx_decode_redux(struct ptx_parser *p, const struct ptx_opcode *op)
{
	static const struct {
		const char *mods;
		u8 op, type;
	} forms[] = {
		{ ".sync.add.u32", PTX_REDUX_ADD, PTX_u32 },
		{ ".sync.add.s32", PTX_REDUX_ADD, PTX_s32 },
		{ ".sync.min.u32", PTX_REDUX_MIN, PTX_u32 },
		{ ".sync.min.s32", PTX_REDUX_MIN, PTX_s32 },
		{ ".sync.max.u32", PTX_REDUX_MAX, PTX_u32 },
		{ ".sync.max.s32", PTX_REDUX_MAX, PTX_s32 },
		{ ".sync.and.b32", PTX_REDUX_AND, PTX_b32 },
		{ ".sync.or.b32", PTX_REDUX_OR, PTX_b32 },
		{ ".sync.xor.b32", PTX_REDUX_XOR, PTX_b32 },
	};
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 k;

	init(p, &i, PTX_SYNC);
	for (k = 0; k < sizeof(forms) / sizeof(*forms); k++)
		if (mods_are(op, 0, forms[k].mods))
			break;
	if (k == sizeof(forms) / sizeof(*forms))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 3, 3);
	i.op = forms[k].op;
	i.type = forms[k].type;
	i.a = ptx_src(p, &v[1], forms[k].type);
	member(p, &v[2], &i);
	i.d = ptx_dst(p, &v[0], forms[k].type);
	i.run = ptx_redux_run;
	ptx_emit(p, &i);
}

void ptx_decode_activemask(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;

	init(p, &i, PTX_PLAIN);
	if (!mods_are(op, 0, ".b32"))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 1, 1);
	i.d = ptx_dst(p, &v[0], PTX_b32);
	i.run = ptx_activemask_run;
	ptx_emit(p, &i);
}
