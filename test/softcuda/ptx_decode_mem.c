/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders of ld, st, atom, red, cvta, isspacep, prefetch and cp.async.  Called
 * by ptx_decode.c; no locks.  Memory order and cache modifiers are read and
 * checked, and mean nothing: warps run one after another, on one memory.
 */
#include <string.h>

#include "test/softcuda/ptx_parser.h"

static bool one_of(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(s, *list))
			return true;
	return false;
}

static const char *const ordering[] = {
	"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio",
	"cta", "cluster", "gpu", "sys", NULL,
};

static const char *const caching[] = {
	"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc",
	"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
	"L1::evict_last", "L1::no_allocate", "L2::64B", "L2::128B",
	"L2::256B", NULL,
};

static bool space_named(const char *s, u8 *space)
{
	static const struct {
		const char *name;
		u8 space;
	} names[] = {
		{ "global", PTX_GLOBAL }, { "shared", PTX_SHARED },
		{ "shared::cta", PTX_SHARED }, { "local", PTX_LOCAL },
		{ "const", PTX_CONST }, { "param", PTX_PARAM },
		{ "param::entry", PTX_PARAM }, { "param::func", PTX_PARAM },
	};
	u32 k;

	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (strcmp(s, names[k].name))
			continue;
		*space = names[k].space;
		return true;
	}
	return false;
}

static void init(struct ptx_parser *p, struct ptx_insn *i, u8 kind)
{
	memset(i, 0, sizeof(*i));
	i->kind = kind;
	i->guard = p->guard;
	i->guard_kind = p->guard_kind;
}

/* Memory knows sizes and signs only. */
static u8 plain_type(enum ptx_type t)
{
	switch (ptx_type_size(t)) {
	case 1:
		return t == PTX_s8 ? PTX_s8 : PTX_u8;
	case 2:
		return t == PTX_s16 ? PTX_s16 : PTX_u16;
	case 4:
		return t == PTX_s32 ? PTX_s32 : PTX_u32;
	default:
		return PTX_u64;
	}
}

/* Modifiers of ld and st; the type comes last. */
static void read_modifiers(struct ptx_parser *p, const struct ptx_opcode *op,
	struct ptx_insn *i, enum ptx_type *t)
{
	u32 k;

	*t = op->nr ? ptx_type_named(op->mod[op->nr - 1]) : PTX_none;
	if (!*t || *t == PTX_pred || *t == PTX_f16x2 || *t == PTX_bf16x2)
		ptx_unsupported(p, op);
	i->space = PTX_GENERIC;
	i->vec = 1;
	for (k = 0; k + 1 < op->nr; k++) {
		const char *m = op->mod[k];

		if (!strcmp(m, "v2"))
			i->vec = 2;
		else if (!strcmp(m, "v4"))
			i->vec = 4;
		else if (!space_named(m, &i->space) && !one_of(m, ordering) &&
			 !one_of(m, caching))
			ptx_unsupported(p, op);
	}
	i->type = plain_type(*t);
	i->size = (u8)ptx_type_size(*t);
	if ((u32)i->size * i->vec > 16)
		ptx_unsupported(p, op);
}

/* A register at least as wide as the memory, or for st a constant. */
static u32 data_row(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t, u8 *regsize, bool dest)
{
	unsigned size = ptx_type_size(t), have;

	if (dest && o->kind == PTX_OPND_SINK)
		return ptx_row_new(p, *regsize ? *regsize : size < 2 ? 2 :
			size);
	if (o->kind != PTX_OPND_REG) {
		have = size < 2 ? 2 : size;
		if (dest)
			ptx_fail(p, &o->at, PTX_SYNTAX,
				"a register is expected");
		if (*regsize && *regsize > have)
			have = *regsize;
		*regsize = (u8)have;
		return ptx_src(p, o, have == size ? t : have == 8 ? PTX_b64 :
			have == 4 ? PTX_b32 : PTX_b16);
	}
	have = ptx_type_size(o->type);
	have = have < 2 ? 2 : have;
	if (o->type == PTX_pred || o->negate || have < size ||
	    (ptx_type_is_float(t) && have != size) ||
	    (*regsize && *regsize != have))
		ptx_fail(p, &o->at, PTX_SYNTAX,
			"the register's type does not fit the instruction");
	*regsize = (u8)have;
	return o->row;
}

static void data_rows(struct ptx_parser *p, const struct ptx_opcode *op,
	const struct ptx_operand *o, enum ptx_type t, struct ptx_insn *i,
	bool dest)
{
	u32 row[4] = { 0 }, k;

	if (i->vec == 1 && o->kind != PTX_OPND_VEC) {
		i->d = data_row(p, o, t, &i->regsize, dest);
		return;
	}
	if (o->kind != PTX_OPND_VEC || o->nr != i->vec)
		ptx_fail(p, &o->at, PTX_SYNTAX, "%s takes a vector of %u",
			op->text, i->vec);
	/* registers first: they say how wide the constants are */
	for (k = 0; k < i->vec; k++)
		if (o->elem[k].kind == PTX_OPND_REG)
			row[k] = data_row(p, &o->elem[k], t, &i->regsize, dest);
	for (k = 0; k < i->vec; k++)
		if (o->elem[k].kind != PTX_OPND_REG)
			row[k] = data_row(p, &o->elem[k], t, &i->regsize, dest);
	if (!i->regsize)
		i->regsize = i->size < 2 ? 2 : i->size;
	i->d = row[0];
	i->b = row[1];
	i->c = row[2];
	i->e = row[3];
}

/* Marks, by its bytes a lane, what vec_load has a short way for. */
static void mark_common(struct ptx_insn *i)
{
	bool plain = i->size == i->regsize &&
		!(i->flags & (PTX_F_ADDR32 | PTX_F_FRAME)) &&
		(i->space == PTX_GLOBAL || i->space == PTX_CONST ||
		 i->space == PTX_GENERIC);

	i->op = 0;
	if (plain && (i->size == 4 || (i->size == 8 && i->vec == 1)))
		i->op = (u8)(i->size * i->vec);
}

void ptx_decode_ld(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	enum ptx_type t;

	init(p, &i, PTX_MEMORY);
	read_modifiers(p, op, &i, &t);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 2, 2);
	data_rows(p, op, &v[0], t, &i, true);
	ptx_address(p, &v[1], &i);
	mark_common(&i);
	i.run = p->vec->load;
	ptx_emit(p, &i);
}

void ptx_decode_st(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	enum ptx_type t;

	init(p, &i, PTX_MEMORY);
	read_modifiers(p, op, &i, &t);
	if (i.space == PTX_CONST)
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 2, 2);
	data_rows(p, op, &v[1], t, &i, false);
	ptx_address(p, &v[0], &i);
	mark_common(&i);
	i.run = p->vec->store;
	ptx_emit(p, &i);
}

/* ---- atomics ------------------------------------------------------------ */

static const char *const atom_name[] = {
	[PTX_ATOM_ADD] = "add", [PTX_ATOM_INC] = "inc", [PTX_ATOM_DEC] = "dec",
	[PTX_ATOM_MIN] = "min", [PTX_ATOM_MAX] = "max", [PTX_ATOM_AND] = "and",
	[PTX_ATOM_OR] = "or", [PTX_ATOM_XOR] = "xor", [PTX_ATOM_EXCH] = "exch",
	[PTX_ATOM_CAS] = "cas",
};

static bool atom_type(u8 op, enum ptx_type t)
{
	switch (op) {
	case PTX_ATOM_ADD:
		return t == PTX_u32 || t == PTX_s32 || t == PTX_u64 ||
			t == PTX_s64 || t == PTX_f32 || t == PTX_f64 ||
			t == PTX_f16 || t == PTX_f16x2 || t == PTX_bf16 ||
			t == PTX_bf16x2;
	case PTX_ATOM_INC: case PTX_ATOM_DEC:
		return t == PTX_u32;
	case PTX_ATOM_MIN: case PTX_ATOM_MAX:
		return t == PTX_u32 || t == PTX_s32 || t == PTX_u64 ||
			t == PTX_s64;
	case PTX_ATOM_CAS:
		return t == PTX_b16 || t == PTX_b32 || t == PTX_b64 ||
			t == PTX_u32 || t == PTX_u64 || t == PTX_s32;
	default:
		return t == PTX_b32 || t == PTX_b64 || t == PTX_u32 ||
			t == PTX_u64 || t == PTX_s32;
	}
}

static void atom_modifiers(struct ptx_parser *p, const struct ptx_opcode *op,
	struct ptx_insn *i)
{
	enum ptx_type t = op->nr ? ptx_type_named(op->mod[op->nr - 1]) :
		PTX_none;
	int found = -1;
	u32 k, n;

	i->space = PTX_GENERIC;
	for (k = 0; k + 1 < op->nr; k++) {
		const char *m = op->mod[k];

		for (n = 0; n < sizeof(atom_name) / sizeof(*atom_name); n++)
			if (!strcmp(m, atom_name[n]))
				break;
		if (n < sizeof(atom_name) / sizeof(*atom_name) && found < 0)
			found = (int)n;
		else if (!space_named(m, &i->space) && !one_of(m, ordering) &&
			 strcmp(m, "noftz"))
			ptx_unsupported(p, op);
	}
	if (found < 0 || !atom_type((u8)found, t) || (i->space != PTX_GENERIC &&
	    i->space != PTX_GLOBAL && i->space != PTX_SHARED))
		ptx_unsupported(p, op);
	i->op = (u8)found;
	i->type = (u8)t;
	i->size = (u8)ptx_type_size(t);
}

static void decode_atomic(struct ptx_parser *p, const struct ptx_opcode *op,
	bool returns)
{
	struct ptx_operand v[PTX_MAX_OPERANDS], *a;
	struct ptx_insn i;
	u32 n, want;

	init(p, &i, PTX_MEMORY);
	atom_modifiers(p, op, &i);
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	want = 2u + returns + (i.op == PTX_ATOM_CAS);
	ptx_need(p, op, n, want, want);
	a = v + returns;
	i.b = ptx_src(p, &a[1], i.type);
	if (i.op == PTX_ATOM_CAS)
		i.c = ptx_src(p, &a[2], i.type);
	ptx_address(p, &a[0], &i);
	if (returns && v[0].kind != PTX_OPND_SINK)
		i.d = ptx_dst(p, &v[0], i.type);
	i.run = ptx_atom_run;
	ptx_emit(p, &i);
}

void ptx_decode_atom(struct ptx_parser *p, const struct ptx_opcode *op)
{
	decode_atomic(p, op, true);
}

void ptx_decode_red(struct ptx_parser *p, const struct ptx_opcode *op)
{
	if (op->nr && !strcmp(op->mod[0], "async"))
		ptx_unsupported(p, op);
	decode_atomic(p, op, false);
}

/* ---- addresses ---------------------------------------------------------- */

static u64 window(u8 space)
{
	switch (space) {
	case PTX_SHARED:
		return PTX_SHARED_BASE;
	case PTX_LOCAL:
		return PTX_LOCAL_BASE;
	case PTX_PARAM:
		return PTX_PARAM_BASE;
	default:		/* global and const are what they are */
		return 0;
	}
}

/* cvta[.to].space.u64 d, a */
void ptx_decode_cvta(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 to = op->nr && !strcmp(op->mod[0], "to");
	u8 space = PTX_GENERIC;

	init(p, &i, PTX_PLAIN);
	if (op->nr != to + 2 || !space_named(op->mod[to], &space) ||
	    strcmp(op->mod[to + 1], "u64"))
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 2, 2);
	if (v[1].kind == PTX_OPND_SYM && v[1].sym->kind == PTX_SYM_LOCAL)
		space = PTX_LOCAL;
	if (space == PTX_PARAM && !p->func->entry)
		space = PTX_LOCAL;
	i.imm = (s64)window(space);
	i.op = (u8)to;
	i.regsize = i.sregsize = 8;
	i.a = ptx_src(p, &v[1], PTX_u64);
	i.d = ptx_dst(p, &v[0], PTX_u64);
	i.run = ptx_cvta_run;
	if (!i.imm)
		i.run = p->vec->run[ptx_op_find(p, "mov.u64")];
	ptx_emit(p, &i);
}

void ptx_decode_isspacep(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u8 space = PTX_GENERIC;

	init(p, &i, PTX_PLAIN);
	if (op->nr != 1 || !space_named(op->mod[0], &space) ||
	    space == PTX_CONST)
		ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 2, 2);
	i.imm = (s64)window(space);
	i.a = ptx_src(p, &v[1], PTX_u64);
	i.d = ptx_dst(p, &v[0], PTX_pred);
	i.run = ptx_isspacep_run;
	ptx_emit(p, &i);
}

/* A hint: checked, then nothing to do. */
void ptx_decode_prefetch(struct ptx_parser *p, const struct ptx_opcode *op)
{
	static const char *const levels[] = {
		"L1", "L2", "L2::evict_last", "L2::evict_normal", NULL,
	};
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 k;

	init(p, &i, PTX_PLAIN);
	for (k = 0; k < op->nr; k++)
		if (!space_named(op->mod[k], &i.space) &&
		    !one_of(op->mod[k], levels))
			ptx_unsupported(p, op);
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), 1, 1);
	ptx_address(p, &v[0], &i);
	i.run = ptx_nop_run;
	ptx_emit(p, &i);
}

/* ---- asynchronous copies ------------------------------------------------- */

/*
 * The instruction has room for one address: the destination's goes to a row
 * of its own first.
 */
static u32 address_row(struct ptx_parser *p, const struct ptx_operand *o)
{
	struct ptx_insn i;

	init(p, &i, PTX_PLAIN);
	i.space = PTX_SHARED;
	ptx_address(p, o, &i);
	if (i.space != PTX_SHARED)
		ptx_fail(p, &o->at, PTX_SYNTAX,
			"the destination is shared memory");
	i.d = ptx_row_new(p, 8);
	i.run = ptx_lea_run;
	ptx_emit(p, &i);
	return i.d;
}

/* cp.async.ca|cg.shared.global [d], [a], size{, source size | ignore} */
static void copy_async(struct ptx_parser *p, const struct ptx_opcode *op)
{
	static const char *const hints[] = {
		"L2::64B", "L2::128B", "L2::256B", NULL,
	};
	bool cg = op->nr > 1 && !strcmp(op->mod[1], "cg");
	struct ptx_operand v[PTX_MAX_OPERANDS];
	u8 to = PTX_GENERIC, from = PTX_GENERIC;
	struct ptx_insn i;
	u32 n, k;

	if (op->nr < 4 || (!cg && strcmp(op->mod[1], "ca")) ||
	    !space_named(op->mod[2], &to) || to != PTX_SHARED ||
	    !space_named(op->mod[3], &from) || from != PTX_GLOBAL)
		ptx_unsupported(p, op);
	for (k = 4; k < op->nr; k++)
		if (!one_of(op->mod[k], hints))
			ptx_unsupported(p, op);
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	ptx_need(p, op, n, 3, 4);
	if (v[2].kind != PTX_OPND_INT || (v[2].value != 16 && (cg ||
	    (v[2].value != 4 && v[2].value != 8))))
		ptx_fail(p, &v[2].at, PTX_SYNTAX, cg ?
			"the size is 16 bytes" : "the size is 4, 8 or 16 bytes");
	init(p, &i, PTX_MEMORY);
	i.size = (u8)v[2].value;
	i.space = PTX_GLOBAL;
	i.b = address_row(p, &v[0]);
	if (n == 4 && v[3].kind == PTX_OPND_REG && v[3].type == PTX_pred)
		i.e = ptx_src_pred(p, &v[3], &i.flags);
	else if (n == 4)
		i.c = ptx_src(p, &v[3], PTX_u32);
	ptx_address(p, &v[1], &i);
	i.run = ptx_copy_run;
	ptx_emit(p, &i);
}

/*
 * cp.async and what waits for it.  Copies are made at once, which is one of
 * the times that the rules allow; so there is nothing to wait for, and a
 * kernel that forgets to wait is not found out.
 */
void ptx_decode_cp(struct ptx_parser *p, const struct ptx_opcode *op)
{
	const char *what = op->nr > 1 ? op->mod[1] : "";
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 n;

	if (!op->nr || strcmp(op->mod[0], "async"))
		ptx_unsupported(p, op);
	if (strcmp(what, "commit_group") && strcmp(what, "wait_group") &&
	    strcmp(what, "wait_all")) {
		copy_async(p, op);
		return;
	}
	if (op->nr != 2)
		ptx_unsupported(p, op);
	init(p, &i, PTX_PLAIN);
	n = !strcmp(what, "wait_group");
	ptx_need(p, op, ptx_operands(p, v, PTX_MAX_OPERANDS), n, n);
	if (n && v[0].kind != PTX_OPND_INT)
		ptx_fail(p, &v[0].at, PTX_SYNTAX,
			"the number of groups is a constant");
	i.run = ptx_nop_run;
	ptx_emit(p, &i);
}
