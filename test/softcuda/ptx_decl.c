/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations: registers and variables of every state space, with their
 * initialisers.  Called by ptx_parse.c; no locks.
 */
#include <string.h>

#include "test/softcuda/ptx_math.h"
#include "test/softcuda/ptx_parser.h"

#define SHARED_MAX (256u << 10)
#define LOCAL_MAX (512u << 10)

static void read_align(struct ptx_parser *p, struct ptx_decl *d)
{
	ptx_next(p);
	if (p->tok.kind != PTX_TOK_INT || !p->tok.value ||
	    p->tok.value > 4096 || (p->tok.value & (p->tok.value - 1)))
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"an alignment is a power of two");
	d->align = (u32)p->tok.value;
	ptx_next(p);
}

void ptx_read_type(struct ptx_parser *p, struct ptx_decl *d)
{
	memset(d, 0, sizeof(*d));
	d->vec = 1;
	while (p->tok.kind == PTX_TOK_DOT && !d->type) {
		if (ptx_is_dot(p, "align")) {
			read_align(p, d);
			continue;
		}
		if (ptx_is_dot(p, "v2"))
			d->vec = 2;
		else if (ptx_is_dot(p, "v4"))
			d->vec = 4;
		else if (ptx_is_dot(p, "ptr"))
			break;
		else if (!(d->type = ptx_type_of(&p->tok)))
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"unsupported type or attribute .%.*s",
				(int)p->tok.len, p->tok.text);
		ptx_next(p);
	}
	if (!d->type)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "a type is expected");
}

void ptx_read_name(struct ptx_parser *p, struct ptx_decl *d)
{
	u64 n;

	if (p->tok.kind != PTX_TOK_WORD)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "a name is expected");
	d->name = p->tok;
	d->count = 1;
	d->open = false;
	ptx_next(p);
	while (ptx_accept(p, '[')) {
		if (ptx_accept(p, ']')) {
			d->open = true;
			continue;
		}
		n = ptx_const_expr(p);
		ptx_expect(p, ']');
		if (n > UINT32_MAX || d->count * n > UINT32_MAX)
			ptx_fail(p, &d->name, PTX_UNSUPPORTED,
				"the array is too large");
		d->count *= n;
	}
}

static u32 decl_elem(const struct ptx_decl *d)
{
	return ptx_type_size(d->type) * d->vec;
}

u32 ptx_decl_align(const struct ptx_decl *d)
{
	return d->align > decl_elem(d) ? d->align : d->align ? d->align :
		decl_elem(d);
}

u64 ptx_decl_size(const struct ptx_decl *d)
{
	return d->count * decl_elem(d);
}

/* ---- initialisers ------------------------------------------------------- */

struct init {
	u8 *data;
	u64 len, cap;
	u32 var;
	u32 elem;		/* bytes of one */
	enum ptx_type type;
};

static void init_put(struct ptx_parser *p, struct init *in, u64 v)
{
	if (in->len + in->elem > in->cap) {
		u64 cap = in->cap ? 2 * in->cap : 256;
		u8 *n = ptx_alloc(p, cap);

		if (in->len)
			memcpy(n, in->data, in->len);
		in->data = n;
		in->cap = cap;
	}
	memcpy(in->data + in->len, &v, in->elem);
	in->len += in->elem;
}

static void init_address(struct ptx_parser *p, struct init *in)
{
	struct ptx_module *m = p->m;
	bool generic = ptx_tok_is(&p->tok, "generic");
	struct ptx_token at = p->tok;
	struct ptx_sym *s;
	u64 add = 0;

	if (generic) {
		ptx_next(p);
		ptx_expect(p, '(');
		at = p->tok;
	}
	s = ptx_sym_find(p, at.text, at.len);
	if (!s || s->kind != PTX_SYM_VAR || s->index == PTX_NO_FUNC)
		ptx_fail(p, &at, s && s->kind != PTX_SYM_VAR ?
			PTX_UNSUPPORTED : PTX_SYNTAX,
			"an initialiser takes the address of a variable");
	ptx_next(p);
	if (generic)
		ptx_expect(p, ')');
	if (ptx_is_punct(p, '+') || ptx_is_punct(p, '-'))
		add = ptx_const_expr(p);
	if (in->elem < 4)
		ptx_fail(p, &at, PTX_UNSUPPORTED, "an address does not fit");
	m->relocs = ptx_grow(p, m->relocs, m->nr_relocs, &m->cap_relocs,
		sizeof(*m->relocs));
	m->relocs[m->nr_relocs++] = (struct ptx_reloc){ .var = in->var,
		.offset = (u32)in->len, .target = s->index, .addend = add,
		.size = in->elem };
	init_put(p, in, 0);
}

static void init_scalar(struct ptx_parser *p, struct init *in)
{
	struct ptx_operand o;
	f64 d;

	if (p->tok.kind == PTX_TOK_WORD && !ptx_tok_is(&p->tok, "WARP_SZ")) {
		init_address(p, in);
		return;
	}
	ptx_operand(p, &o);
	if (o.kind != PTX_OPND_INT && o.kind != PTX_OPND_F32 &&
	    o.kind != PTX_OPND_F64)
		ptx_fail(p, &o.at, PTX_SYNTAX, "a constant is expected");
	if (o.kind == PTX_OPND_INT) {
		d = (f64)(s64)o.value;
		init_put(p, in, in->type == PTX_f32 ? f32_bits((f32)d) :
			in->type == PTX_f64 ? f64_bits(d) : o.value);
		return;
	}
	d = o.kind == PTX_OPND_F32 ? (f64)bits_f32((u32)o.value) :
		bits_f64(o.value);
	if (in->elem == 8)
		init_put(p, in, f64_bits(d));
	else if (in->elem == 4)
		init_put(p, in, o.kind == PTX_OPND_F32 ? o.value :
			f32_bits((f32)d));
	else
		ptx_fail(p, &o.at, PTX_SYNTAX, "a float does not fit");
}

/* Braces may nest; each list is padded by the end of the variable only. */
static void init_list(struct ptx_parser *p, struct init *in, u32 depth)
{
	if (!ptx_accept(p, '{')) {
		init_scalar(p, in);
		return;
	}
	if (depth > 8)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "braces nest too deep");
	if (ptx_accept(p, '}'))
		return;
	do {
		init_list(p, in, depth + 1);
	} while (ptx_accept(p, ','));
	ptx_expect(p, '}');
}

/* ---- variables ---------------------------------------------------------- */

static void add_variable(struct ptx_parser *p, struct ptx_decl *d,
	bool constant, bool is_extern)
{
	struct ptx_module *m = p->m;
	struct ptx_variable *v;
	struct ptx_sym *s;
	struct init in = { 0 };
	u64 size;

	s = p->func ? NULL : ptx_sym_find(p, d->name.text, d->name.len);
	if (s && s->kind == PTX_SYM_VAR && s->index == PTX_NO_FUNC) {
		if (is_extern)
			return;
	} else {
		s = ptx_sym_add(p, &d->name, PTX_SYM_VAR);
		s->index = PTX_NO_FUNC;
		if (is_extern)
			return;
	}
	m->vars = ptx_grow(p, m->vars, m->nr_vars, &m->cap_vars,
		sizeof(*m->vars));
	s->index = m->nr_vars++;
	v = &m->vars[s->index];
	*v = (struct ptx_variable){ .name = s->name, .constant = constant,
		.align = ptx_decl_align(d) };
	in.var = s->index;
	in.elem = ptx_type_size(d->type);
	in.type = d->type;
	if (ptx_accept(p, '='))
		init_list(p, &in, 0);
	size = d->open && d->count == 1 ? in.len : ptx_decl_size(d);
	if (d->open && !in.len)
		ptx_fail(p, &d->name, PTX_SYNTAX, "the array has no length");
	if (size < in.len)
		ptx_fail(p, &d->name, PTX_SYNTAX, "too many initialisers");
	if (in.len) {
		u8 *init = ptx_alloc(p, size);

		memcpy(init, in.data, in.len);
		m->vars[s->index].init = init;
	}
	m->vars[s->index].size = size;
}

static void add_shared(struct ptx_parser *p, struct ptx_decl *d)
{
	struct ptx_module *m = p->m;
	struct ptx_sym *s = ptx_sym_add(p, &d->name, PTX_SYM_SHARED);

	if (ptx_decl_size(d) > SHARED_MAX)
		ptx_fail(p, &d->name, PTX_UNSUPPORTED,
			"too much shared memory");
	m->shared = ptx_grow(p, m->shared, m->nr_shared, &m->cap_shared,
		sizeof(*m->shared));
	s->index = m->nr_shared;
	m->shared[m->nr_shared++] = (struct ptx_shared_var){
		.name = s->name, .align = ptx_decl_align(d), .dynamic = d->open,
		.size = d->open ? 0 : (u32)ptx_decl_size(d),
		.func = p->func ? p->func->index : PTX_NO_FUNC };
}

struct ptx_sym *ptx_add_local(struct ptx_parser *p, struct ptx_decl *d)
{
	struct ptx_sym *s = ptx_sym_add(p, &d->name, PTX_SYM_LOCAL);
	struct ptx_func *f = p->func;
	u64 offset = ptx_align_up(f->local_size, ptx_decl_align(d));

	if (d->open || offset + ptx_decl_size(d) > LOCAL_MAX)
		ptx_fail(p, &d->name, PTX_UNSUPPORTED, "too much local memory");
	s->type = (u8)d->type;
	s->offset = (u32)offset;
	s->size = (u32)ptx_decl_size(d);
	s->align = ptx_decl_align(d);
	f->local_size = (u32)offset + s->size;
	return s;
}

void ptx_variables(struct ptx_parser *p, enum ptx_space space,
	bool is_extern)
{
	struct ptx_decl d;

	ptx_read_type(p, &d);
	if (d.type == PTX_pred)
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"a predicate is a register, not a variable");
	do {
		ptx_read_name(p, &d);
		switch (space) {
		case PTX_SHARED:
			if (d.open && !is_extern)
				ptx_fail(p, &d.name, PTX_SYNTAX,
					"the array has no length");
			add_shared(p, &d);
			break;
		case PTX_LOCAL: case PTX_PARAM:
			ptx_add_local(p, &d);
			break;
		default:
			add_variable(p, &d, space == PTX_CONST, is_extern);
		}
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
}

void ptx_registers(struct ptx_parser *p)
{
	struct ptx_decl d;
	struct ptx_sym *s;

	ptx_read_type(p, &d);
	if (d.vec > 1)
		ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
			"vector registers are not supported");
	do {
		struct ptx_token name = p->tok;

		if (name.kind != PTX_TOK_WORD)
			ptx_fail(p, &name, PTX_SYNTAX, "a name is expected");
		ptx_next(p);
		if (ptx_accept(p, '<')) {
			s = ptx_sym_add(p, &name, PTX_SYM_RANGE);
			if (p->tok.kind != PTX_TOK_INT ||
			    p->tok.value > 4000000)
				ptx_fail(p, &p->tok, PTX_SYNTAX,
					"a number is expected");
			s->count = (u32)p->tok.value;
			s->rows = ptx_alloc(p, s->count * sizeof(u32));
			ptx_next(p);
			ptx_expect(p, '>');
			p->func->nr_regs += s->count;
		} else {
			s = ptx_sym_add(p, &name, PTX_SYM_REG);
			p->func->nr_regs++;
		}
		s->type = (u8)d.type;
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
}
