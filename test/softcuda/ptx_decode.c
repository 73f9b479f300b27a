/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions: spelling to row of ptx_ops.def, or to the decoder of a family
 * (memory: ptx_decode_mem.c, control: ptx_decode_flow.c).  Called by the parser
 * for each instruction; no locks.  Nothing is ever skipped: a spelling that is
 * not known, to the last modifier, is an error.
 */
#include <stdio.h>
#include <string.h>

#include "test/softcuda/ptx_parser.h"

static u32 hash_key(const char *s)
{
	u32 h = 2166136261u;

	while (*s)
		h = (h ^ (u8)*s++) * 16777619u;
	return h;
}

void ptx_keys_init(struct ptx_parser *p)
{
	unsigned k;
	u32 h;

	for (k = 0; k < ptx_nr_ops; k++) {
		h = hash_key(ptx_ops[k].key) % PTX_KEYS;
		while (p->key[h])
			h = (h + 1) % PTX_KEYS;
		p->key[h] = (u16)(k + 1);
	}
}

int ptx_op_find(struct ptx_parser *p, const char *key)
{
	u32 h = hash_key(key) % PTX_KEYS;

	for (; p->key[h]; h = (h + 1) % PTX_KEYS)
		if (!strcmp(ptx_ops[p->key[h] - 1].key, key))
			return p->key[h] - 1;
	return -1;
}

/* ---- spelling ----------------------------------------------------------- */

static void read_opcode(struct ptx_parser *p, struct ptx_opcode *op)
{
	size_t used = 0, len = 0;

	memset(op, 0, sizeof(*op));
	op->at = p->tok;
	if (p->tok.kind != PTX_TOK_WORD)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "an instruction is expected");
	op->base = op->store;
	do {
		size_t n = p->tok.len;
		bool dot = p->tok.kind == PTX_TOK_DOT;

		if (used + n + 1 > sizeof(op->store) ||
		    len + n + 2 > sizeof(op->text) ||
		    op->nr == PTX_MAX_MODS)
			ptx_fail(p, &op->at, PTX_UNSUPPORTED,
				"instruction with too many modifiers");
		if (dot) {
			op->mod[op->nr++] = op->store + used;
			op->text[len++] = '.';
		}
		memcpy(op->store + used, p->tok.text, n);
		memcpy(op->text + len, p->tok.text, n);
		used += n + 1;
		len += n;
		ptx_next(p);
	} while (p->tok.kind == PTX_TOK_DOT);
}

static int rounding(const char *s)
{
	return !strcmp(s, "rn") ? PTX_RN : !strcmp(s, "rz") ? PTX_RZ :
		!strcmp(s, "rm") ? PTX_RM : !strcmp(s, "rp") ? PTX_RP : -1;
}

struct spelling {
	char key[128];
	u8 rnd;
	u8 flags;		/* PTX_F_FTZ, PTX_F_SAT, PTX_F_RND: was given */
	u8 boolop;
};

static void key_add(struct spelling *s, const char *word)
{
	size_t n = strlen(s->key);

	snprintf(s->key + n, sizeof(s->key) - n, "%s%s", n ? "." : "", word);
}

/* Takes rounding, ftz and sat out; with `compare`, and/or/xor as well. */
static void strip(const struct ptx_opcode *op, u32 from, struct spelling *s,
	bool compare)
{
	u32 k;

	for (k = from; k < op->nr; k++) {
		const char *m = op->mod[k];

		if (rounding(m) >= 0) {
			s->rnd = (u8)rounding(m);
			s->flags |= PTX_F_RND;
		} else if (!strcmp(m, "ftz")) {
			s->flags |= PTX_F_FTZ;
		} else if (!strcmp(m, "sat")) {
			s->flags |= PTX_F_SAT;
		} else if (compare && !strcmp(m, "and")) {
			s->boolop = PTX_BOOL_AND;
		} else if (compare && !strcmp(m, "or")) {
			s->boolop = PTX_BOOL_OR;
		} else if (compare && !strcmp(m, "xor")) {
			s->boolop = PTX_BOOL_XOR;
		} else {
			key_add(s, m);
		}
	}
}

/* ---- table rows --------------------------------------------------------- */

static void init_insn(struct ptx_parser *p, struct ptx_insn *i, u8 kind)
{
	memset(i, 0, sizeof(*i));
	i->kind = kind;
	i->guard = p->guard;
	i->guard_kind = p->guard_kind;
}

static void emit_row(struct ptx_parser *p, const struct ptx_opcode *op, int row,
	const struct spelling *s)
{
	const struct ptx_op *o = &ptx_ops[row];
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_insn i;
	u32 n, want = 1u + o->nr + (o->form == PTX_FORM_IMM), k;
	u32 *slot[PTX_MAX_SOURCES];

	init_insn(p, &i, PTX_PLAIN);
	slot[0] = &i.a;
	slot[1] = &i.b;
	slot[2] = &i.c;
	slot[3] = &i.e;
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	ptx_need(p, op, n, want, want);
	i.flags = s->flags & (PTX_F_FTZ | PTX_F_SAT);
	i.rnd = s->rnd;
	i.run = i.flags || i.rnd ? p->vec->general[row] : p->vec->run[row];
	for (k = 0; k < o->nr; k++) {
		if (o->s[k] == PTX_pred && v[k + 1].negate)
			ptx_fail(p, &v[k + 1].at, PTX_SYNTAX,
				"this predicate cannot be negated");
		*slot[k] = ptx_src(p, &v[k + 1], o->s[k]);
	}
	if (o->form == PTX_FORM_IMM) {
		if (v[want - 1].kind != PTX_OPND_INT)
			ptx_fail(p, &v[want - 1].at, PTX_SYNTAX,
				"a constant is expected");
		i.imm = (s64)v[want - 1].value;
	}
	i.d = ptx_dst(p, &v[0], o->d);
	ptx_emit(p, &i);
}

static bool row_allows(const struct ptx_op *o, const struct spelling *s)
{
	if (s->flags & ~o->allow)
		return false;
	if (o->form == PTX_FORM_HALF && s->rnd != PTX_RN)
		return false;
	return o->form != PTX_FORM_COMPARE;
}

/* The spelling as it stands, else without the modifiers a row may allow. */
static int find_row(struct ptx_parser *p, const struct ptx_opcode *op,
	struct spelling *s)
{
	int row = ptx_op_find(p, op->text);

	memset(s, 0, sizeof(*s));
	if (row >= 0 && ptx_ops[row].form != PTX_FORM_COMPARE)
		return row;
	key_add(s, op->base);
	strip(op, 0, s, false);
	row = ptx_op_find(p, s->key);
	return row >= 0 && row_allows(&ptx_ops[row], s) ? row : -1;
}

static void decode_row(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct spelling s;
	int row = find_row(p, op, &s);

	if (row < 0)
		ptx_unsupported(p, op);
	emit_row(p, op, row, &s);
}

/* ---- comparisons -------------------------------------------------------- */

static int compare_row(struct ptx_parser *p, const struct ptx_opcode *op,
	struct spelling *s)
{
	int row = ptx_op_find(p, s->key);

	if (row < 0 || ptx_ops[row].form != PTX_FORM_COMPARE ||
	    (s->flags & ~ptx_ops[row].allow))
		ptx_unsupported(p, op);
	return row;
}

static void compare_sources(struct ptx_parser *p, const struct ptx_opcode *op,
	struct ptx_insn *i, const struct ptx_operand *v, u32 n, int row)
{
	u32 want = i->op == PTX_BOOL_NONE ? 3 : 4;

	ptx_need(p, op, n, want, want);
	i->a = ptx_src(p, &v[1], ptx_ops[row].s[0]);
	i->b = ptx_src(p, &v[2], ptx_ops[row].s[1]);
	if (n == 4)
		i->c = ptx_src_pred(p, &v[3], &i->flags);
}

/* setp.CMP[.BOOL][.ftz].type p[|q], a, b[, [!]c] */
static void decode_setp(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct spelling s = { 0 };
	struct ptx_insn i;
	u32 n;
	int row;

	strip(op, 0, &s, true);
	row = compare_row(p, op, &s);
	init_insn(p, &i, PTX_PLAIN);
	i.run = p->vec->run[row];
	i.flags = s.flags;
	i.op = s.boolop;
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	compare_sources(p, op, &i, v, n, row);
	if (v[0].pair)
		i.e = ptx_dst(p, v[0].pair, PTX_pred);
	i.d = ptx_dst(p, &v[0], PTX_pred);
	ptx_emit(p, &i);
}

/* Result types: those of a packed source are packed, or masks. */
static bool set_type(enum ptx_type d, enum ptx_type s)
{
	if (s == PTX_f16x2 || s == PTX_bf16x2)
		return d == s || d == PTX_u32 || d == PTX_s32;
	if (d == PTX_f16 || d == PTX_bf16 || d == PTX_u16 || d == PTX_s16)
		return s == PTX_f16 || s == PTX_bf16;
	return d == PTX_u32 || d == PTX_s32 || d == PTX_f32;
}

/* set.CMP[.BOOL][.ftz].dtype.stype d, a, b[, [!]c] */
static void decode_set(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct ptx_opcode plain = *op;
	struct spelling s = { 0 };
	struct ptx_insn i;
	enum ptx_type t = PTX_none;
	u32 n, k;
	int row;

	init_insn(p, &i, PTX_PLAIN);
	if (op->nr >= 3) {
		k = op->nr - 2;
		t = ptx_type_named(op->mod[k]);
		plain.mod[k] = op->mod[k + 1];
		plain.nr--;
	}
	strip(&plain, 0, &s, true);
	row = compare_row(p, op, &s);
	if (!set_type(t, ptx_ops[row].s[0]))
		ptx_unsupported(p, op);
	i.regsize = (u8)ptx_type_size(t);
	i.run = p->vec->general[row];
	i.flags = s.flags;
	i.op = s.boolop;
	i.type = (u8)t;
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	compare_sources(p, op, &i, v, n, row);
	i.d = ptx_dst(p, &v[0], t);
	ptx_emit(p, &i);
}

/* ---- mov ---------------------------------------------------------------- */

static u32 element(struct ptx_parser *p, const struct ptx_operand *o, bool dest,
	unsigned bytes)
{
	enum ptx_type t = bytes == 2 ? PTX_b16 : bytes == 4 ? PTX_b32 : PTX_b64;

	if (dest && o->kind == PTX_OPND_SINK)
		return 0;
	return dest ? ptx_dst(p, o, t) : ptx_src(p, o, t);
}

/* mov.b64 {a, b}, c and mov.b64 d, {a, b} */
static void decode_mov_vector(struct ptx_parser *p, const struct ptx_opcode *op,
	const struct ptx_operand *v)
{
	enum ptx_type t = ptx_type_named(op->mod[0]);
	bool unpack = v[0].kind == PTX_OPND_VEC;
	const struct ptx_operand *vec = unpack ? &v[0] : &v[1];
	unsigned size = ptx_type_size(t), part;
	struct ptx_insn i;
	u32 row[4] = { 0 }, k;

	if (op->nr != 1 || (t != PTX_b32 && t != PTX_b64) ||
	    (vec->nr != 2 && vec->nr != 4) || size / vec->nr < 2)
		ptx_unsupported(p, op);
	part = size / vec->nr;
	init_insn(p, &i, PTX_PLAIN);
	i.run = unpack ? ptx_mov_unpack_run : ptx_mov_pack_run;
	i.vec = vec->nr;
	i.size = (u8)part;
	i.regsize = i.sregsize = (u8)size;
	for (k = 0; k < vec->nr; k++)
		row[k] = element(p, &vec->elem[k], unpack, part);
	*(unpack ? &i.d : &i.a) = row[0];
	i.b = row[1];
	i.c = row[2];
	i.e = row[3];
	if (unpack)
		i.a = ptx_src(p, &v[1], t);
	else
		i.d = ptx_dst(p, &v[0], t);
	ptx_emit(p, &i);
}

static void decode_mov_sreg(struct ptx_parser *p, const struct ptx_opcode *op,
	const struct ptx_operand *v)
{
	enum ptx_type t = ptx_type_named(op->mod[0]);
	struct ptx_insn i;

	if (!t || ptx_type_is_float(t) || t == PTX_pred)
		ptx_unsupported(p, op);
	init_insn(p, &i, v[1].sreg >= PTX_SREG_CLOCK &&
		v[1].sreg <= PTX_SREG_GLOBALTIMER_HI ? PTX_CLOCK : PTX_PLAIN);
	i.run = ptx_sreg_run;
	i.target = v[1].sreg;
	i.regsize = (u8)ptx_type_size(t);
	i.d = ptx_dst(p, &v[0], t);
	ptx_emit(p, &i);
}

static void decode_mov(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	struct spelling s;
	struct ptx_insn i;
	int row = find_row(p, op, &s);
	u32 n;

	if (row < 0)
		ptx_unsupported(p, op);
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	ptx_need(p, op, n, 2, 2);
	if (v[0].kind == PTX_OPND_VEC || v[1].kind == PTX_OPND_VEC) {
		decode_mov_vector(p, op, v);
		return;
	}
	if (v[1].kind == PTX_OPND_SREG) {
		decode_mov_sreg(p, op, v);
		return;
	}
	init_insn(p, &i, PTX_PLAIN);
	i.run = p->vec->run[row];
	i.a = ptx_src(p, &v[1], ptx_ops[row].s[0]);
	i.d = ptx_dst(p, &v[0], ptx_ops[row].d);
	ptx_emit(p, &i);
}

/* ---- cvt ---------------------------------------------------------------- */

static bool cvt_modifier(struct ptx_insn *i, const char *m, bool *integral)
{
	static const char *const to_int[] = { "rni", "rzi", "rmi", "rpi" };
	u32 k;

	for (k = 0; k < 4; k++) {
		if (strcmp(m, to_int[k]))
			continue;
		i->rnd = (u8)k;
		*integral = true;
		return true;
	}
	if (rounding(m) >= 0)
		i->rnd = (u8)rounding(m);
	else if (!strcmp(m, "ftz"))
		i->flags |= PTX_F_FTZ;
	else if (!strcmp(m, "sat"))
		i->flags |= PTX_F_SAT;
	else
		return false;
	return true;
}

static u32 cvt_register(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t, u8 *bytes, bool dest)
{
	unsigned size = o->kind == PTX_OPND_REG ? ptx_type_size(o->type) : 0;

	/* registers may be wider than the type, for integers */
	if (o->kind == PTX_OPND_REG && o->type != PTX_pred &&
	    !ptx_type_is_float(t) && size > ptx_type_size(t)) {
		*bytes = (u8)(size < 2 ? 2 : size);
		return o->row;
	}
	*bytes = (u8)(ptx_type_size(t) < 2 ? 2 : ptx_type_size(t));
	return dest ? ptx_dst(p, o, t) : ptx_src(p, o, t);
}

static bool is_bits(enum ptx_type t)
{
	return t == PTX_b8 || t == PTX_b16 || t == PTX_b32 || t == PTX_b64;
}

static void decode_cvt(struct ptx_parser *p, const struct ptx_opcode *op)
{
	struct ptx_operand v[PTX_MAX_OPERANDS];
	enum ptx_type d, s;
	struct ptx_insn i;
	bool integral = false;
	u32 n, k;
	int row;

	init_insn(p, &i, PTX_PLAIN);
	if (op->nr < 2)
		ptx_unsupported(p, op);
	d = ptx_type_named(op->mod[op->nr - 2]);
	s = ptx_type_named(op->mod[op->nr - 1]);
	row = ptx_op_find(p, op->text);
	if (row >= 0 && ptx_ops[row].nr == 2) {
		struct spelling plain = { 0 };

		emit_row(p, op, row, &plain);
		return;
	}
	for (k = 0; k + 2 < op->nr; k++)
		if (!cvt_modifier(&i, op->mod[k], &integral))
			ptx_unsupported(p, op);
	if (!d || !s || d == PTX_pred || s == PTX_pred || d == PTX_f16x2 ||
	    d == PTX_bf16x2 || s == PTX_f16x2 || s == PTX_bf16x2 ||
	    is_bits(d) || is_bits(s))
		ptx_unsupported(p, op);
	n = ptx_operands(p, v, PTX_MAX_OPERANDS);
	ptx_need(p, op, n, 2, 2);
	i.type = (u8)d;
	i.stype = (u8)s;
	if (integral)
		i.flags |= PTX_F_INT;
	i.a = cvt_register(p, &v[1], s, &i.sregsize, false);
	i.d = cvt_register(p, &v[0], d, &i.regsize, true);
	i.run = ptx_cvt_run;
	if (row >= 0 && i.regsize == ptx_type_size(d) &&
	    i.sregsize == ptx_type_size(s))
		i.run = p->vec->run[row];
	ptx_emit(p, &i);
}

/* ---- all of them -------------------------------------------------------- */

static const struct {
	const char *base;
	ptx_decode_fn *decode;
} families[] = {
	{ "setp", decode_setp }, { "set", decode_set }, { "mov", decode_mov },
	{ "cvt", decode_cvt },
	{ "ld", ptx_decode_ld }, { "ldu", ptx_decode_ld },
	{ "st", ptx_decode_st }, { "atom", ptx_decode_atom },
	{ "red", ptx_decode_red }, { "cvta", ptx_decode_cvta },
	{ "prefetch", ptx_decode_prefetch },
	{ "prefetchu", ptx_decode_prefetch },
	{ "isspacep", ptx_decode_isspacep }, { "cp", ptx_decode_cp },
	{ "bra", ptx_decode_bra }, { "brx", ptx_decode_brx },
	{ "call", ptx_decode_call }, { "ret", ptx_decode_ret },
	{ "exit", ptx_decode_exit }, { "trap", ptx_decode_trap },
	{ "brkpt", ptx_decode_trap },
	{ "bar", ptx_decode_bar }, { "barrier", ptx_decode_bar },
	{ "membar", ptx_decode_fence }, { "fence", ptx_decode_fence },
	{ "nanosleep", ptx_decode_nanosleep },
	{ "shfl", ptx_decode_shfl }, { "vote", ptx_decode_vote },
	{ "match", ptx_decode_match }, { "redux", ptx_decode_redux },
	{ "activemask", ptx_decode_activemask },
};

static void read_guard(struct ptx_parser *p)
{
	struct ptx_operand o;
	u8 flags = 0;

	p->guard = p->guard_kind = 0;
	if (!ptx_accept(p, '@'))
		return;
	ptx_operand(p, &o);
	p->guard = ptx_src_pred(p, &o, &flags);
	p->guard_kind = flags & PTX_F_NOT_C ? 2 : 1;
}

void ptx_instruction(struct ptx_parser *p)
{
	struct ptx_opcode op;
	u32 k;

	if (ptx_accept(p, ';'))
		return;
	p->insn_line = p->tok.line;
	read_guard(p);
	read_opcode(p, &op);
	for (k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
		if (!strcmp(families[k].base, op.base)) {
			families[k].decode(p, &op);
			return;
		}
	}
	decode_row(p, &op);
}
