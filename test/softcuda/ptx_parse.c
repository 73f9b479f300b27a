/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules, variables and functions: everything of PTX that is no instruction.
 * Called by the driver through ptx_module_create() and its fellows; no locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/ptx_math.h"
#include "test/softcuda/ptx_parser.h"

#define SHARED_MAX (256u << 10)
#define LOCAL_MAX (512u << 10)

/* .align 4 .v2 .u32 name[2][3], what stands before and behind a name */
struct decl {
	struct ptx_token name;
	u32 align;
	u32 vec;
	enum ptx_type type;
	u64 count;
	bool open;		/* name[]: length from elsewhere */
};

static u64 align_up(u64 v, u64 align)
{
	return (v + align - 1) & ~(align - 1);
}

static void read_align(struct ptx_parser *p, struct decl *d)
{
	ptx_next(p);
	if (p->tok.kind != PTX_TOK_INT || !p->tok.value ||
	    p->tok.value > 4096 || (p->tok.value & (p->tok.value - 1)))
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"an alignment is a power of two");
	d->align = (u32)p->tok.value;
	ptx_next(p);
}

static void read_type(struct ptx_parser *p, struct decl *d)
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

/* .ptr .global .align 8, behind a kernel parameter's type: advice only */
static void skip_ptr(struct ptx_parser *p)
{
	if (!ptx_is_dot(p, "ptr"))
		return;
	ptx_next(p);
	while (p->tok.kind == PTX_TOK_DOT) {
		bool align = ptx_is_dot(p, "align");

		ptx_next(p);
		if (align)
			ptx_next(p);
	}
}

static void read_name(struct ptx_parser *p, struct decl *d)
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

static u32 decl_elem(const struct decl *d)
{
	return ptx_type_size(d->type) * d->vec;
}

static u32 decl_align(const struct decl *d)
{
	return d->align > decl_elem(d) ? d->align : d->align ? d->align :
		decl_elem(d);
}

static u64 decl_size(const struct decl *d)
{
	return d->count * decl_elem(d);
}

/* ---- initialisers ------------------------------------------------------------------ */

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

/* ---- variables ----------------------------------------------------------------------- */

static void add_variable(struct ptx_parser *p, struct decl *d, bool constant,
	bool is_extern)
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
		.align = decl_align(d) };
	in.var = s->index;
	in.elem = ptx_type_size(d->type);
	in.type = d->type;
	if (ptx_accept(p, '='))
		init_list(p, &in, 0);
	size = d->open && d->count == 1 ? in.len : decl_size(d);
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

static void add_shared(struct ptx_parser *p, struct decl *d)
{
	struct ptx_module *m = p->m;
	struct ptx_sym *s = ptx_sym_add(p, &d->name, PTX_SYM_SHARED);

	if (decl_size(d) > SHARED_MAX)
		ptx_fail(p, &d->name, PTX_UNSUPPORTED,
			"too much shared memory");
	m->shared = ptx_grow(p, m->shared, m->nr_shared, &m->cap_shared,
		sizeof(*m->shared));
	s->index = m->nr_shared;
	m->shared[m->nr_shared++] = (struct ptx_shared_var){
		.name = s->name, .align = decl_align(d), .dynamic = d->open,
		.size = d->open ? 0 : (u32)decl_size(d),
		.func = p->func ? p->func->index : PTX_NO_FUNC };
}

static struct ptx_sym *add_local(struct ptx_parser *p, struct decl *d)
{
	struct ptx_sym *s = ptx_sym_add(p, &d->name, PTX_SYM_LOCAL);
	struct ptx_func *f = p->func;
	u64 offset = align_up(f->local_size, decl_align(d));

	if (d->open || offset + decl_size(d) > LOCAL_MAX)
		ptx_fail(p, &d->name, PTX_UNSUPPORTED, "too much local memory");
	s->type = (u8)d->type;
	s->offset = (u32)offset;
	s->size = (u32)decl_size(d);
	s->align = decl_align(d);
	f->local_size = (u32)offset + s->size;
	return s;
}

static void variables(struct ptx_parser *p, enum ptx_space space,
	bool is_extern)
{
	struct decl d;

	read_type(p, &d);
	if (d.type == PTX_pred)
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"a predicate is a register, not a variable");
	do {
		read_name(p, &d);
		switch (space) {
		case PTX_SHARED:
			if (d.open && !is_extern)
				ptx_fail(p, &d.name, PTX_SYNTAX,
					"the array has no length");
			add_shared(p, &d);
			break;
		case PTX_LOCAL: case PTX_PARAM:
			add_local(p, &d);
			break;
		default:
			add_variable(p, &d, space == PTX_CONST, is_extern);
		}
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
}

static void registers(struct ptx_parser *p)
{
	struct decl d;
	struct ptx_sym *s;

	read_type(p, &d);
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

/* ---- functions ----------------------------------------------------------------------- */

static void branch_targets(struct ptx_parser *p, const struct ptx_token *name)
{
	struct ptx_module *m = p->m;
	struct ptx_sym *s = ptx_sym_add(p, name, PTX_SYM_TABLE);
	struct ptx_token label[512];
	u32 n = 0, k;

	ptx_next(p);
	do {
		if (n == 512)
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"too many branch targets");
		label[n++] = p->tok;
		ptx_next(p);
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';');
	m->tables = ptx_grow(p, m->tables, m->nr_tables, &m->cap_tables,
		sizeof(*m->tables));
	s->index = m->nr_tables++;
	m->tables[s->index].nr = n;
	m->tables[s->index].target = ptx_alloc(p, n * sizeof(u32));
	for (k = 0; k < n; k++)
		ptx_fixup(p, &label[k], 0, &m->tables[s->index].target[k]);
}

static void body(struct ptx_parser *p, struct ptx_scope *s);

static void body_directive(struct ptx_parser *p)
{
	static const struct {
		const char *word;
		enum ptx_space space;
	} spaces[] = {
		{ "local", PTX_LOCAL }, { "shared", PTX_SHARED },
		{ "param", PTX_PARAM }, { "global", PTX_GLOBAL },
		{ "const", PTX_CONST },
	};
	u32 k;

	if (ptx_is_dot(p, "reg")) {
		ptx_next(p);
		registers(p);
		return;
	}
	if (ptx_is_dot(p, "loc") || ptx_is_dot(p, "file")) {
		ptx_skip_line(p);
		return;
	}
	if (ptx_is_dot(p, "pragma")) {
		while (p->tok.kind != PTX_TOK_END && !ptx_is_punct(p, ';'))
			ptx_next(p);
		ptx_expect(p, ';');
		return;
	}
	for (k = 0; k < sizeof(spaces) / sizeof(spaces[0]); k++) {
		if (!ptx_is_dot(p, spaces[k].word))
			continue;
		ptx_next(p);
		variables(p, spaces[k].space, false);
		return;
	}
	ptx_fail(p, &p->tok, PTX_UNSUPPORTED, "unsupported directive .%.*s",
		(int)p->tok.len, p->tok.text);
}

/* True when the word at hand is a label; the label is then behind us. */
static bool label(struct ptx_parser *p)
{
	struct ptx_token name = p->tok;
	const char *s = p->pos;

	while (s < p->end && (*s == ' ' || *s == '\t'))
		s++;
	if (s >= p->end || *s != ':')
		return false;
	ptx_next(p);
	ptx_next(p);
	if (ptx_is_dot(p, "branchtargets"))
		branch_targets(p, &name);
	else if (ptx_is_dot(p, "callprototype") || ptx_is_dot(p, "calltargets"))
		ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
			"indirect calls are not supported");
	else
		ptx_sym_add(p, &name, PTX_SYM_LABEL)->index = p->m->nr_code;
	return true;
}

static void body(struct ptx_parser *p, struct ptx_scope *s)
{
	struct ptx_scope inner;

	ptx_scope_enter(p, s);
	ptx_expect(p, '{');
	while (!ptx_accept(p, '}')) {
		if (p->tok.kind == PTX_TOK_END)
			ptx_fail(p, &p->tok, PTX_SYNTAX,
				"the text ends within a function");
		if (ptx_is_punct(p, '{'))
			body(p, &inner);
		else if (p->tok.kind == PTX_TOK_DOT)
			body_directive(p);
		else if (p->tok.kind != PTX_TOK_WORD || !label(p))
			ptx_instruction(p);
	}
	ptx_scope_leave(p);
}

static struct ptx_func *function_named(struct ptx_parser *p,
	const struct ptx_token *name, bool entry)
{
	struct ptx_module *m = p->m;
	struct ptx_sym *s = ptx_sym_find(p, name->text, name->len);
	struct ptx_func *f;

	if (s) {
		if (s->kind != PTX_SYM_FUNC || m->funcs[s->index]->defined)
			ptx_fail(p, name, PTX_SYNTAX, "%.*s is declared twice",
				(int)name->len, name->text);
		return m->funcs[s->index];
	}
	s = ptx_sym_add(p, name, PTX_SYM_FUNC);
	m->funcs = ptx_grow(p, m->funcs, m->nr_funcs, &m->cap_funcs,
		sizeof(*m->funcs));
	f = ptx_alloc(p, sizeof(*f));
	s->index = f->index = m->nr_funcs;
	m->funcs[m->nr_funcs++] = f;
	f->name = s->name;
	f->entry = entry;
	f->line = name->line;
	f->max_threads = 1024;
	if (!strcmp(f->name, "vprintf"))
		f->builtin = PTX_VPRINTF;
	else if (!strcmp(f->name, "__assertfail"))
		f->builtin = PTX_ASSERTFAIL;
	return f;
}

/*
 * ( .param .b64 a, .reg .u32 b ): a kernel's lie in the packed buffer, a
 * function's in its local memory.
 */
static void parameters(struct ptx_parser *p, bool outputs)
{
	struct ptx_func *f = p->func;
	struct ptx_param list[1024];
	u32 n = 0;
	u64 offset = 0;
	struct decl d;

	ptx_expect(p, '(');
	while (!ptx_is_punct(p, ')')) {
		struct ptx_sym *s;

		if (n == 1024)
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"too many parameters");
		if (!ptx_is_dot(p, "param"))
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"only .param parameters are supported");
		ptx_next(p);
		read_type(p, &d);
		skip_ptr(p);
		read_name(p, &d);
		if (f->entry) {
			s = ptx_sym_add(p, &d.name, PTX_SYM_PARAM);
			offset = align_up(offset, decl_align(&d));
			s->offset = (u32)offset;
			s->size = (u32)decl_size(&d);
			s->align = decl_align(&d);
			offset += s->size;
			if (offset > 32764)
				ptx_fail(p, &d.name, PTX_UNSUPPORTED,
					"too many bytes of parameters");
		} else {
			s = add_local(p, &d);
		}
		list[n++] = (struct ptx_param){ s->offset, s->size, s->align };
		if (!ptx_accept(p, ',') && !ptx_is_punct(p, ')'))
			ptx_fail(p, &p->tok, PTX_SYNTAX, "`,' or `)' expected");
	}
	ptx_next(p);
	if (f->entry) {
		f->params = ptx_alloc(p, n * sizeof(*list));
		memcpy(f->params, list, n * sizeof(*list));
		f->nr_params = n;
		f->params_size = (u32)offset;
		return;
	}
	{
		struct ptx_slot *slots = ptx_alloc(p, n * sizeof(*slots));
		u32 k;

		for (k = 0; k < n; k++)
			slots[k] = (struct ptx_slot){ list[k].offset,
				list[k].size, list[k].align };
		*(outputs ? &f->out : &f->in) = slots;
		*(outputs ? &f->nr_out : &f->nr_in) = n;
	}
}

/* .maxntid and friends, between the parameters and the body */
static void performance(struct ptx_parser *p, struct ptx_func *f)
{
	static const char *const known[] = {
		"maxntid", "reqntid", "minnctapersm", "maxnctapersm",
		"maxnreg", "noreturn", "pragma", "maxclusterrank",
		"unique_extern", "abi_preserve", "abi_preserve_control",
	};
	u32 k;

	while (p->tok.kind == PTX_TOK_DOT) {
		bool threads = ptx_is_dot(p, "maxntid") ||
			ptx_is_dot(p, "reqntid");
		u64 n = 1;

		for (k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (ptx_is_dot(p, known[k]))
				break;
		if (k == sizeof(known) / sizeof(known[0]))
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"unsupported directive .%.*s",
				(int)p->tok.len, p->tok.text);
		ptx_next(p);
		while (p->tok.kind == PTX_TOK_INT ||
		       p->tok.kind == PTX_TOK_STRING || ptx_is_punct(p, ',')) {
			if (p->tok.kind == PTX_TOK_INT && n < 1u << 30)
				n *= p->tok.value;
			ptx_next(p);
		}
		if (p->tok.kind == PTX_TOK_PUNCT && p->tok.punct == ';' &&
		    !strcmp(known[k], "pragma"))
			ptx_next(p);
		if (threads && n && n <= 1024)
			f->max_threads = (u32)n;
	}
}

/* The end of a function is its return, also without an instruction there. */
static void close_body(struct ptx_parser *p, struct ptx_func *f)
{
	struct ptx_insn i = { .kind = f->entry ? PTX_EXIT : PTX_RET,
		.run = ptx_nop_run };

	p->insn_line = p->tok.line;
	ptx_emit(p, &i);
	f->end = p->m->nr_code;
	f->frame_size = (u32)align_up(f->frame_size, 64);
	f->local_size = (u32)align_up(f->local_size, 16);
}

static void function(struct ptx_parser *p, bool entry)
{
	struct ptx_scope params, inner;
	struct ptx_func *f, early = { .entry = entry };
	bool has_out;

	/* results come before the name, so they are first kept aside */
	ptx_scope_enter(p, &params);
	p->func = &early;
	has_out = !entry && ptx_is_punct(p, '(');
	if (has_out)
		parameters(p, true);
	if (p->tok.kind != PTX_TOK_WORD)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "a name is expected");
	p->scope = params.parent;
	f = function_named(p, &p->tok, entry);
	p->scope = &params;
	if (f->entry != entry)
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"%s was declared as another kind", f->name);
	ptx_next(p);
	f->local_size = early.local_size;
	f->nr_out = early.nr_out;
	f->out = early.out;
	f->nr_in = f->nr_regs = 0;
	p->func = f;
	p->pred_left = 0;
	/* row 0 is zero: "no operand", and addresses without a register */
	f->frame_size = f->nr_consts = 0;
	ptx_const_row(p, PTX_CONST_VALUE, 0, 0, 8);
	if (ptx_is_punct(p, '('))
		parameters(p, false);
	performance(p, f);
	if (!ptx_accept(p, ';')) {
		f->defined = true;
		f->start = p->m->nr_code;
		body(p, &inner);
		close_body(p, f);
	}
	ptx_scope_leave(p);
	p->func = NULL;
}

/* ---- the module ------------------------------------------------------------------------ */

static void version(struct ptx_parser *p)
{
	const char *s = p->tok.text;
	unsigned major = 0, minor = 0;

	if (p->tok.kind != PTX_TOK_F64 ||
	    sscanf(s, "%3u.%3u", &major, &minor) != 2)
		ptx_fail(p, &p->tok, PTX_SYNTAX, "a version is expected");
	p->m->version = 10 * major + minor;
	ptx_next(p);
}

static void target(struct ptx_parser *p)
{
	do {
		if (p->tok.kind != PTX_TOK_WORD)
			ptx_fail(p, &p->tok, PTX_SYNTAX, "a target is expected");
		if (p->tok.len > 3 && !memcmp(p->tok.text, "sm_", 3))
			p->m->target = (u32)strtoul(p->tok.text + 3, NULL, 10);
		ptx_next(p);
	} while (ptx_accept(p, ','));
}

static void skip_section(struct ptx_parser *p)
{
	u32 depth = 0;

	while (p->tok.kind != PTX_TOK_END) {
		depth += ptx_is_punct(p, '{');
		depth -= ptx_is_punct(p, '}');
		if (!depth && ptx_is_punct(p, '}')) {
			ptx_next(p);
			return;
		}
		ptx_next(p);
	}
}

static void module_directive(struct ptx_parser *p)
{
	static const struct {
		const char *word;
		enum ptx_space space;
	} spaces[] = {
		{ "global", PTX_GLOBAL }, { "const", PTX_CONST },
		{ "shared", PTX_SHARED },
	};
	bool is_extern = false;
	u32 k;

	while (ptx_is_dot(p, "visible") || ptx_is_dot(p, "extern") ||
	       ptx_is_dot(p, "weak") || ptx_is_dot(p, "common")) {
		is_extern |= ptx_is_dot(p, "extern");
		ptx_next(p);
	}
	for (k = 0; k < sizeof(spaces) / sizeof(spaces[0]); k++) {
		if (!ptx_is_dot(p, spaces[k].word))
			continue;
		ptx_next(p);
		variables(p, spaces[k].space, is_extern);
		return;
	}
	if (ptx_is_dot(p, "entry") || ptx_is_dot(p, "func")) {
		bool entry = ptx_is_dot(p, "entry");

		ptx_next(p);
		function(p, entry);
	} else if (ptx_is_dot(p, "file") || ptx_is_dot(p, "loc")) {
		ptx_skip_line(p);
	} else if (ptx_is_dot(p, "section")) {
		skip_section(p);
	} else if (ptx_is_dot(p, "pragma")) {
		while (p->tok.kind != PTX_TOK_END && !ptx_accept(p, ';'))
			ptx_next(p);
	} else {
		ptx_fail(p, &p->tok, p->tok.kind == PTX_TOK_DOT ?
			PTX_UNSUPPORTED : PTX_SYNTAX,
			"unknown directive %.*s", (int)p->tok.len,
			p->tok.text);
	}
}

static void header(struct ptx_parser *p)
{
	if (!ptx_is_dot(p, "version"))
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"PTX begins with a .version directive");
	ptx_next(p);
	version(p);
	if (!ptx_is_dot(p, "target"))
		ptx_fail(p, &p->tok, PTX_SYNTAX,
			"a .target directive is expected");
	ptx_next(p);
	target(p);
	if (ptx_is_dot(p, "address_size")) {
		ptx_next(p);
		if (p->tok.kind != PTX_TOK_INT || p->tok.value != 64)
			ptx_fail(p, &p->tok, PTX_UNSUPPORTED,
				"addresses have 64 bits");
		ptx_next(p);
	}
}

/* ---- kernels ---------------------------------------------------------------------------- */

struct reached {
	u8 state;		/* 0: no, 1: being looked at, 2: done */
	u32 local;		/* deepest stack from here on */
};

/* Marks f and all it calls.  Recursion counts once; the stack can grow. */
static u32 reach(const struct ptx_module *m, u32 index, struct reached *seen)
{
	const struct ptx_func *f = m->funcs[index];
	u32 deepest = 0, k;

	if (seen[index].state)
		return seen[index].local;
	seen[index].state = 1;
	for (k = 0; k < f->nr_calls; k++) {
		u32 d = reach(m, f->calls[k], seen);

		deepest = d > deepest ? d : deepest;
	}
	seen[index].state = 2;
	seen[index].local = f->local_size + deepest;
	return seen[index].local;
}

static void place_shared(const struct ptx_module *m, struct ptx_kernel *k,
	const struct reached *seen)
{
	u32 f, n, v, size = 0;

	for (f = 0; f < m->nr_funcs; f++) {
		for (n = 0; seen[f].state && n < m->funcs[f]->nr_shared; n++) {
			v = m->funcs[f]->shared[n];
			if (m->shared[v].dynamic ||
			    k->shared_offset[v] != PTX_NO_FUNC)
				continue;
			size = (u32)align_up(size, m->shared[v].align);
			k->shared_offset[v] = size;
			size += m->shared[v].size;
		}
	}
	k->shared_static = size;
}

static void make_kernels(struct ptx_parser *p)
{
	struct ptx_module *m = p->m;
	struct reached *seen = ptx_alloc(p, (m->nr_funcs + 1) *
		sizeof(*seen));
	u32 n, v;

	m->kernels = ptx_alloc(p, (m->nr_funcs + 1) * sizeof(*m->kernels));
	for (n = 0; n < m->nr_funcs; n++) {
		struct ptx_kernel *k = &m->kernels[m->nr_kernels];

		if (!m->funcs[n]->entry || !m->funcs[n]->defined)
			continue;
		m->nr_kernels++;
		k->module = m;
		k->func = m->funcs[n];
		k->shared_offset = ptx_alloc(p, (m->nr_shared + 1) *
			sizeof(u32));
		for (v = 0; v < m->nr_shared; v++)
			k->shared_offset[v] = PTX_NO_FUNC;
		memset(seen, 0, m->nr_funcs * sizeof(*seen));
		k->local_total = reach(m, n, seen);
		place_shared(m, k, seen);
	}
}

/* A called function must be here, or one of those we have built in. */
static void check_calls(struct ptx_parser *p)
{
	struct ptx_module *m = p->m;
	u32 n, k;

	for (n = 0; n < m->nr_code; n++) {
		struct ptx_insn *i = &m->code[n];
		struct ptx_token at = { .line = i->line, .column = 1 };
		const struct ptx_callsite *s;
		const struct ptx_func *f;

		if (i->kind != PTX_CALL && i->kind != PTX_BUILTIN)
			continue;
		s = &m->sites[i->target];
		f = m->funcs[s->func];
		if (!f->defined && !f->builtin)
			ptx_fail(p, &at, PTX_UNSUPPORTED,
				"the function %s is not in this module",
				f->name);
		i->kind = f->defined ? PTX_CALL : PTX_BUILTIN;
		if (s->nr_in != f->nr_in || s->nr_out != f->nr_out)
			ptx_fail(p, &at, PTX_SYNTAX,
				"%s is called with %u arguments, not %u",
				f->name, s->nr_in, f->nr_in);
		for (k = 0; k < s->nr_in; k++)
			if (s->in[k].size < f->in[k].size)
				ptx_fail(p, &at, PTX_SYNTAX,
					"argument %u of %s is too small",
					k + 1, f->name);
		for (k = 0; k < s->nr_out; k++)
			if (s->out[k].size > f->out[k].size)
				ptx_fail(p, &at, PTX_SYNTAX,
					"the result of %s is too small",
					f->name);
	}
}

static void parse(struct ptx_parser *p, const char *text, size_t len)
{
	struct ptx_scope top;

	ptx_scope_enter(p, &top);
	ptx_keys_init(p);
	ptx_lex_start(p, text, len);
	header(p);
	while (p->tok.kind != PTX_TOK_END)
		if (!ptx_accept(p, ';'))
			module_directive(p);
	check_calls(p);
	make_kernels(p);
}

enum ptx_status ptx_module_create(const char *text, size_t len,
	struct ptx_module **out, struct ptx_error *err)
{
	struct ptx_module *m = calloc(1, sizeof(*m));
	struct ptx_parser *p = calloc(1, sizeof(*p));
	enum ptx_status status = PTX_OK;

	*out = NULL;
	if (err)
		memset(err, 0, sizeof(*err));
	if (!m || !p) {
		free(m);
		free(p);
		return PTX_NO_MEMORY;
	}
	p->m = m;
	p->err = err;
	p->vec = ptx_vec_choose();
	if (!setjmp(p->fail))
		parse(p, text, len);
	status = p->status;
	free(p);
	if (status != PTX_OK)
		ptx_module_destroy(m);
	else
		*out = m;
	return status;
}

void ptx_module_destroy(struct ptx_module *m)
{
	u32 k;

	if (!m)
		return;
	for (k = 0; k < m->nr_funcs; k++) {
		free(m->funcs[k]->consts);
		free(m->funcs[k]->calls);
		free(m->funcs[k]->shared);
	}
	free(m->code);
	free(m->funcs);
	free(m->vars);
	free(m->shared);
	free(m->relocs);
	free(m->sites);
	free(m->tables);
	ptx_arena_free(&m->arena);
	free(m);
}
