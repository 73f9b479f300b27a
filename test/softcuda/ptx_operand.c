/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands: text to struct ptx_operand, and from there to rows, with the checks
 * of size and kind.  Called by the parser and the decoders; no locks.
 */
#include <string.h>

#include "test/softcuda/ptx_math.h"
#include "test/softcuda/ptx_parser.h"

/* ---- constant expressions ----------------------------------------------- */

static u64 binary(struct ptx_parser *p, int level);

/* primary := number | ( expr ) | - primary | + | ! | ~ */
static u64 primary(struct ptx_parser *p)
{
	u64 v;

	if (ptx_accept(p, '(')) {
		if (p->tok.kind == PTX_TOK_DOT && (ptx_is_dot(p, "u64") ||
		    ptx_is_dot(p, "s64"))) {	/* cast */
			ptx_next(p);
			ptx_expect(p, ')');
			return primary(p);
		}
		v = binary(p, 0);
		ptx_expect(p, ')');
		return v;
	}
	if (ptx_accept(p, '-'))
		return 0 - primary(p);
	if (ptx_accept(p, '+'))
		return primary(p);
	if (ptx_accept(p, '~'))
		return ~primary(p);
	if (ptx_accept(p, '!'))
		return !primary(p);
	if (p->tok.kind == PTX_TOK_WORD && ptx_tok_is(&p->tok, "WARP_SZ")) {
		ptx_next(p);
		return PTX_LANES;
	}
	if (p->tok.kind != PTX_TOK_INT)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "a number is expected");
	v = p->tok.value;
	ptx_next(p);
	return v;
}

/* Returns the operator's level (higher binds tighter) and its name. */
static int operator_at(const struct ptx_parser *p, char *op)
{
	static const struct {
		char name[3];
		u8 level;
	} ops[] = {
		{ "||", 1 }, { "&&", 2 }, { "==", 6 }, { "!=", 6 },
		{ "<<", 8 }, { ">>", 8 }, { "<=", 7 }, { ">=", 7 },
		{ "<", 7 }, { ">", 7 }, { "|", 3 }, { "^", 4 }, { "&", 5 },
		{ "+", 9 }, { "-", 9 }, { "*", 10 }, { "/", 10 }, { "%", 10 },
	};
	u32 k;

	if (p->tok.kind != PTX_TOK_PUNCT)
		return 0;
	for (k = 0; k < sizeof(ops) / sizeof(ops[0]); k++) {
		size_t n = strlen(ops[k].name);

		if ((size_t)(p->end - p->tok.text) >= n &&
		    !memcmp(p->tok.text, ops[k].name, n)) {
			memcpy(op, ops[k].name, n + 1);
			return ops[k].level;
		}
	}
	return 0;
}

static u64 compute(struct ptx_parser *p, const char *op, u64 a, u64 b)
{
	switch (op[0]) {
	case '|':
		return op[1] ? a || b : a | b;
	case '&':
		return op[1] ? a && b : a & b;
	case '^':
		return a ^ b;
	case '=':
		return a == b;
	case '!':
		return a != b;
	case '<':
		return op[1] == '<' ? a << (b & 63) : op[1] ? (s64)a <= (s64)b :
			(s64)a < (s64)b;
	case '>':
		return op[1] == '>' ? a >> (b & 63) : op[1] ? (s64)a >= (s64)b :
			(s64)a > (s64)b;
	case '+':
		return a + b;
	case '-':
		return a - b;
	case '*':
		return a * b;
	default:
		if (!b)
			ptx_fail(p, &p->tok, PTX_SYNTAX, "division by zero");
		return (u64)(op[0] == '/' ? div_s64((s64)a, (s64)b) :
			rem_s64((s64)a, (s64)b));
	}
}

static u64 binary(struct ptx_parser *p, int level)
{
	u64 v = primary(p);
	char op[3];
	int l;

	while ((l = operator_at(p, op)) > level) {
		ptx_next(p);
		if (op[1])
			ptx_next(p);
		v = compute(p, op, v, binary(p, l));
	}
	return v;
}

u64 ptx_const_expr(struct ptx_parser *p)
{
	return binary(p, 0);
}

/* ---- registers ---------------------------------------------------------- */

static const struct {
	const char *name;
	u8 type;
	u8 reg;
} sregs[] = {
	{ "%tid.x", PTX_u32, PTX_SREG_TID_X },
	{ "%tid.y", PTX_u32, PTX_SREG_TID_Y },
	{ "%tid.z", PTX_u32, PTX_SREG_TID_Z },
	{ "%ntid.x", PTX_u32, PTX_SREG_NTID_X },
	{ "%ntid.y", PTX_u32, PTX_SREG_NTID_Y },
	{ "%ntid.z", PTX_u32, PTX_SREG_NTID_Z },
	{ "%ctaid.x", PTX_u32, PTX_SREG_CTAID_X },
	{ "%ctaid.y", PTX_u32, PTX_SREG_CTAID_Y },
	{ "%ctaid.z", PTX_u32, PTX_SREG_CTAID_Z },
	{ "%nctaid.x", PTX_u32, PTX_SREG_NCTAID_X },
	{ "%nctaid.y", PTX_u32, PTX_SREG_NCTAID_Y },
	{ "%nctaid.z", PTX_u32, PTX_SREG_NCTAID_Z },
	{ "%laneid", PTX_u32, PTX_SREG_LANEID },
	{ "%warpid", PTX_u32, PTX_SREG_WARPID },
	{ "%nwarpid", PTX_u32, PTX_SREG_NWARPID },
	{ "%smid", PTX_u32, PTX_SREG_SMID },
	{ "%nsmid", PTX_u32, PTX_SREG_NSMID },
	{ "%gridid", PTX_u64, PTX_SREG_GRIDID },
	{ "%lanemask_eq", PTX_u32, PTX_SREG_LANEMASK_EQ },
	{ "%lanemask_lt", PTX_u32, PTX_SREG_LANEMASK_LT },
	{ "%lanemask_le", PTX_u32, PTX_SREG_LANEMASK_LE },
	{ "%lanemask_gt", PTX_u32, PTX_SREG_LANEMASK_GT },
	{ "%lanemask_ge", PTX_u32, PTX_SREG_LANEMASK_GE },
	{ "%clock", PTX_u32, PTX_SREG_CLOCK },
	{ "%clock_hi", PTX_u32, PTX_SREG_CLOCK_HI },
	{ "%clock64", PTX_u64, PTX_SREG_CLOCK64 },
	{ "%globaltimer", PTX_u64, PTX_SREG_GLOBALTIMER },
	{ "%globaltimer_lo", PTX_u32, PTX_SREG_GLOBALTIMER_LO },
	{ "%globaltimer_hi", PTX_u32, PTX_SREG_GLOBALTIMER_HI },
	{ "%dynamic_smem_size", PTX_u32, PTX_SREG_DYNAMIC_SMEM },
	{ "%total_smem_size", PTX_u32, PTX_SREG_TOTAL_SMEM },
};

u32 ptx_reg_row(struct ptx_parser *p, struct ptx_sym *s, u32 number)
{
	u32 *row = s->kind == PTX_SYM_RANGE ? &s->rows[number] : &s->row;
	unsigned size = ptx_type_size(s->type);

	if (!*row)
		*row = s->type == PTX_pred ? ptx_pred_new(p) :
			ptx_row_new(p, size < 2 ? 2 : size);
	return *row;
}

/* %r12 declared as %r<100> */
static bool find_range(struct ptx_parser *p, const struct ptx_token *t,
	struct ptx_operand *o)
{
	u32 n = t->len, number = 0, k;
	struct ptx_sym *s;

	while (n && t->text[n - 1] >= '0' && t->text[n - 1] <= '9')
		n--;
	if (n == t->len || t->len - n > 8 ||
	    (t->text[n] == '0' && t->len - n > 1))
		return false;
	for (k = n; k < t->len; k++)
		number = number * 10 + (u32)(t->text[k] - '0');
	s = ptx_sym_find(p, t->text, n);
	if (!s || s->kind != PTX_SYM_RANGE || number >= s->count)
		return false;
	o->kind = PTX_OPND_REG;
	o->type = s->type;
	o->row = ptx_reg_row(p, s, number);
	return true;
}

static bool find_sreg(struct ptx_parser *p, const struct ptx_token *t,
	struct ptx_operand *o)
{
	char name[40];
	u32 k, n = t->len;

	if (t->text[0] != '%' || n > 30)
		return false;
	memcpy(name, t->text, n);
	if (p->tok.kind == PTX_TOK_DOT && p->tok.len == 1) {
		name[n++] = '.';
		name[n++] = p->tok.text[0];
	}
	name[n] = '\0';
	for (k = 0; k < sizeof(sregs) / sizeof(sregs[0]); k++) {
		if (strcmp(sregs[k].name, name))
			continue;
		if (n > t->len)
			ptx_next(p);
		o->kind = PTX_OPND_SREG;
		o->type = sregs[k].type;
		o->sreg = sregs[k].reg;
		return true;
	}
	return false;
}

static void word(struct ptx_parser *p, struct ptx_operand *o)
{
	struct ptx_token t = p->tok;

	ptx_next(p);
	if (ptx_tok_is(&t, "_")) {
		o->kind = PTX_OPND_SINK;
		return;
	}
	o->sym = ptx_sym_find(p, t.text, t.len);
	if (o->sym && o->sym->kind == PTX_SYM_REG) {
		o->kind = PTX_OPND_REG;
		o->type = o->sym->type;
		o->row = ptx_reg_row(p, o->sym, 0);
	} else if (o->sym && o->sym->kind != PTX_SYM_RANGE &&
		   o->sym->kind != PTX_SYM_LABEL) {
		o->kind = PTX_OPND_SYM;
	} else if (!find_range(p, &t, o) && !find_sreg(p, &t, o)) {
		if (t.text[0] == '%')
			ptx_fail(p, &t, PTX_SYNTAX, "unknown register %.*s",
				(int)t.len, t.text);
		o->kind = PTX_OPND_NAME;
	}
	if (p->tok.kind == PTX_TOK_DOT && o->kind == PTX_OPND_REG)
		ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
			"vector registers are not supported");
}

static void number(struct ptx_parser *p, struct ptx_operand *o)
{
	bool minus = false;

	if (ptx_accept(p, '-')) {
		/* a float has no expression but its sign */
		minus = p->tok.kind == PTX_TOK_F32 ||
			p->tok.kind == PTX_TOK_F64;
		if (!minus) {
			o->kind = PTX_OPND_INT;
			o->value = 0 - primary(p);
			return;
		}
	}
	if (p->tok.kind == PTX_TOK_F32 || p->tok.kind == PTX_TOK_F64) {
		bool is32 = p->tok.kind == PTX_TOK_F32;

		o->kind = is32 ? PTX_OPND_F32 : PTX_OPND_F64;
		o->value = p->tok.value;
		if (minus)
			o->value ^= is32 ? 0x80000000 : 1ull << 63;
		ptx_next(p);
		return;
	}
	o->kind = PTX_OPND_INT;
	o->value = ptx_const_expr(p);
}

/* ---- whole operands ----------------------------------------------------- */

static void list(struct ptx_parser *p, struct ptx_operand *o)
{
	struct ptx_operand e[8];
	u32 n = 0;

	o->kind = PTX_OPND_VEC;
	do {
		if (n == 8)
			ptx_fail(p, &p->tok, PTX_SYNTAX, "vector too long");
		ptx_operand(p, &e[n++]);
	} while (ptx_accept(p, ','));
	ptx_expect(p, '}');
	o->nr = (u8)n;
	o->elem = ptx_alloc(p, n * sizeof(*e));
	memcpy(o->elem, e, n * sizeof(*e));
}

static s64 offset(struct ptx_parser *p)
{
	s64 v = 0;

	while (ptx_is_punct(p, '+') || ptx_is_punct(p, '-')) {
		bool minus = ptx_is_punct(p, '-');
		u64 n;

		ptx_next(p);
		n = primary(p);
		v = (s64)(minus ? (u64)v - n : (u64)v + n);
	}
	return v;
}

void ptx_operand(struct ptx_parser *p, struct ptx_operand *o)
{
	memset(o, 0, sizeof(*o));
	o->at = p->tok;
	if (ptx_accept(p, '{')) {
		list(p, o);
		return;
	}
	if (ptx_accept(p, '[')) {
		o->kind = PTX_OPND_ADDR;
		o->elem = ptx_alloc(p, sizeof(*o));
		ptx_operand(p, o->elem);
		o->offset = o->elem->offset + offset(p);
		ptx_expect(p, ']');
		return;
	}
	o->negate = ptx_accept(p, '!');
	if (p->tok.kind != PTX_TOK_WORD || ptx_tok_is(&p->tok, "WARP_SZ")) {
		number(p, o);
		return;
	}
	word(p, o);
	if (o->kind == PTX_OPND_SYM)
		o->offset = offset(p);
	if (ptx_accept(p, '|')) {
		o->pair = ptx_alloc(p, sizeof(*o));
		ptx_operand(p, o->pair);
	}
}

/* All operands of an instruction, to its semicolon. */
u32 ptx_operands(struct ptx_parser *p, struct ptx_operand *o, u32 max)
{
	u32 n = 0;

	if (ptx_accept(p, ';'))
		return 0;
	do {
		if (n == max)
			ptx_fail(p, &p->tok, PTX_SYNTAX, "too many operands");
		ptx_operand(p, &o[n++]);
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
	return n;
}

void ptx_need(struct ptx_parser *p, const struct ptx_opcode *op, u32 got,
	u32 min, u32 max)
{
	if (got >= min && got <= max)
		return;
	if (min == max)
		ptx_fail(p, &op->at, PTX_SYNTAX, "%s takes %u operands, not %u",
			op->text, min, got);
	ptx_fail(p, &op->at, PTX_SYNTAX, "%s takes %u to %u operands, not %u",
		op->text, min, max, got);
}

void ptx_unsupported(struct ptx_parser *p, const struct ptx_opcode *op)
{
	ptx_fail(p, &op->at, PTX_UNSUPPORTED, "unsupported instruction %s",
		op->text);
}

void ptx_emit(struct ptx_parser *p, struct ptx_insn *i)
{
	struct ptx_module *m = p->m;

	m->code = ptx_grow(p, m->code, m->nr_code, &m->cap_code,
		sizeof(*m->code));
	i->line = p->insn_line;
	m->code[m->nr_code++] = *i;
}

static unsigned width(enum ptx_type t)
{
	unsigned size = ptx_type_size(t);

	return size < 2 ? 2 : size;
}

static void check_size(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t)
{
	if ((o->type == PTX_pred) != (t == PTX_pred) ||
	    width(o->type) != width(t))
		ptx_fail(p, &o->at, PTX_SYNTAX,
			"the register's type does not fit the instruction");
}

/* An address as a value: variables, shared memory, parameters. */
static u32 symbol_row(struct ptx_parser *p, const struct ptx_operand *o,
	unsigned bytes)
{
	struct ptx_sym *s = o->sym;
	struct ptx_insn i = { .kind = PTX_PLAIN, .run = ptx_lea_local_run };
	struct ptx_func *f = p->func;
	u32 k;

	switch (s->kind) {
	case PTX_SYM_VAR:
		if (s->index == PTX_NO_FUNC)
			ptx_fail(p, &o->at, PTX_UNSUPPORTED,
				"%s is not defined in this module", s->name);
		return ptx_const_row(p, PTX_CONST_GLOBAL, s->index,
			(u64)o->offset, bytes);
	case PTX_SYM_SHARED:
		for (k = 0; k < f->nr_shared; k++)
			if (f->shared[k] == s->index)
				break;
		if (k == f->nr_shared) {
			f->shared = ptx_grow(p, f->shared, k, &f->cap_shared,
				sizeof(*f->shared));
			f->shared[f->nr_shared++] = s->index;
		}
		return ptx_const_row(p, PTX_CONST_SHARED, s->index,
			(u64)o->offset, bytes);
	case PTX_SYM_PARAM:
		return ptx_const_row(p, PTX_CONST_VALUE, 0,
			s->offset + (u64)o->offset, bytes);
	case PTX_SYM_LOCAL:
		i.d = ptx_row_new(p, bytes);
		i.regsize = (u8)bytes;
		i.imm = (s64)s->offset + o->offset;
		ptx_emit(p, &i);
		return i.d;
	default:
		ptx_fail(p, &o->at, PTX_UNSUPPORTED,
			"the address of %s cannot be taken", s->name);
	}
}

static u32 sreg_row(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t)
{
	struct ptx_insn i = { .kind = PTX_PLAIN, .run = ptx_sreg_run };

	if (ptx_type_is_float(t) || t == PTX_pred)
		ptx_fail(p, &o->at, PTX_SYNTAX,
			"a special register is an integer");
	if (o->sreg >= PTX_SREG_CLOCK && o->sreg <= PTX_SREG_GLOBALTIMER_HI)
		i.kind = PTX_CLOCK;
	i.target = o->sreg;
	i.regsize = (u8)width(t);
	i.d = ptx_row_new(p, i.regsize);
	ptx_emit(p, &i);
	return i.d;
}

/* Float literals by the type that wants them; integers are bits. */
static u64 literal(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t)
{
	bool is32 = o->kind == PTX_OPND_F32;
	f64 d = is32 ? (f64)bits_f32((u32)o->value) : bits_f64(o->value);

	if (o->kind == PTX_OPND_INT) {
		if (t == PTX_f32 || t == PTX_f64)
			ptx_fail(p, &o->at, PTX_SYNTAX,
				"a float literal is expected");
		return o->value;
	}
	switch (width(t)) {
	case 4:
		return is32 ? o->value : f32_bits((f32)d);
	case 8:
		return is32 ? f64_bits(d) : o->value;
	default:
		ptx_fail(p, &o->at, PTX_SYNTAX, "a float does not fit here");
	}
}

u32 ptx_src(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type t)
{
	if (o->negate && t != PTX_pred)
		ptx_fail(p, &o->at, PTX_SYNTAX, "`!' is for predicates");
	switch (o->kind) {
	case PTX_OPND_REG:
		if (o->negate)
			ptx_fail(p, &o->at, PTX_SYNTAX,
				"this predicate cannot be negated");
		check_size(p, o, t);
		return o->row;
	case PTX_OPND_SREG:
		return sreg_row(p, o, t);
	case PTX_OPND_INT: case PTX_OPND_F32: case PTX_OPND_F64:
		if (t == PTX_pred)
			return ptx_const_row(p, PTX_CONST_PRED, 0,
				o->value ? PTX_FULL : 0, 4);
		return ptx_const_row(p, PTX_CONST_VALUE, 0, literal(p, o, t),
			width(t));
	case PTX_OPND_SYM:
		if (width(t) < 4 || ptx_type_is_float(t))
			ptx_fail(p, &o->at, PTX_SYNTAX,
				"an address does not fit here");
		return symbol_row(p, o, width(t));
	case PTX_OPND_NAME:
		ptx_fail(p, &o->at, PTX_SYNTAX, "%.*s is not declared",
			(int)o->at.len, o->at.text);
	default:
		ptx_fail(p, &o->at, PTX_SYNTAX, "wrong kind of operand");
	}
}

u32 ptx_dst(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type t)
{
	if (o->kind == PTX_OPND_SINK)
		return t == PTX_pred ? ptx_pred_new(p) :
			ptx_row_new(p, width(t));
	if (o->kind != PTX_OPND_REG || o->negate)
		ptx_fail(p, &o->at, PTX_SYNTAX, "a register is expected");
	check_size(p, o, t);
	return o->row;
}

u32 ptx_src_pred(struct ptx_parser *p, const struct ptx_operand *o, u8 *flags)
{
	struct ptx_operand plain = *o;

	if (o->negate)
		*flags |= PTX_F_NOT_C;
	plain.negate = false;
	return ptx_src(p, &plain, PTX_pred);
}

void ptx_address(struct ptx_parser *p, const struct ptx_operand *o,
	struct ptx_insn *i)
{
	const struct ptx_operand *b = o->elem;
	struct ptx_operand sym;

	if (o->kind != PTX_OPND_ADDR)
		ptx_fail(p, &o->at, PTX_SYNTAX, "an address is expected");
	i->imm = o->offset;
	switch (b->kind) {
	case PTX_OPND_REG:
		if (ptx_type_size(b->type) < 4 || b->type == PTX_pred)
			ptx_fail(p, &b->at, PTX_SYNTAX,
				"an address has 32 or 64 bits");
		if (ptx_type_size(b->type) == 4)
			i->flags |= PTX_F_ADDR32;
		i->a = b->row;
		if (i->space == PTX_PARAM && !p->func->entry)
			i->space = PTX_LOCAL;
		return;
	case PTX_OPND_INT:
		i->imm = (s64)b->value + o->offset;
		i->a = 0;		/* the row of zeros */
		return;
	case PTX_OPND_SYM:
		if (b->sym->kind == PTX_SYM_LOCAL) {
			i->space = PTX_LOCAL;
			i->flags |= PTX_F_FRAME;
			i->imm = (s64)b->sym->offset + o->offset;
			return;
		}
		if (b->sym->kind == PTX_SYM_PARAM) {
			i->imm = (s64)b->sym->offset + o->offset;
			return;
		}
		sym = *b;
		sym.offset = o->offset;
		i->a = symbol_row(p, &sym, 8);
		i->imm = 0;
		return;
	default:
		ptx_fail(p, &b->at, PTX_SYNTAX, "%.*s is no address",
			(int)b->at.len, b->at.text);
	}
}
