/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and functions; variables are in ptx_decl.c, instructions in
 * ptx_decode.c.  Called by the driver through ptx_module_create(); no locks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/ptx_parser.h"

/* ---- functions ---------------------------------------------------------- */

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
		ptx_registers(p);
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
		ptx_variables(p, spaces[k].space, false);
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
	struct ptx_decl d;

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
		ptx_read_type(p, &d);
		skip_ptr(p);
		ptx_read_name(p, &d);
		if (f->entry) {
			s = ptx_sym_add(p, &d.name, PTX_SYM_PARAM);
			offset = ptx_align_up(offset, ptx_decl_align(&d));
			s->offset = (u32)offset;
			s->size = (u32)ptx_decl_size(&d);
			s->align = ptx_decl_align(&d);
			offset += s->size;
			if (offset > 32764)
				ptx_fail(p, &d.name, PTX_UNSUPPORTED,
					"too many bytes of parameters");
		} else {
			s = ptx_add_local(p, &d);
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
	f->frame_size = (u32)ptx_align_up(f->frame_size, 64);
	f->local_size = (u32)ptx_align_up(f->local_size, 16);
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

/* ---- the module --------------------------------------------------------- */

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
			ptx_fail(p, &p->tok, PTX_SYNTAX,
				"a target is expected");
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
		ptx_variables(p, spaces[k].space, is_extern);
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

/* ---- kernels ------------------------------------------------------------ */

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
			size = (u32)ptx_align_up(size, m->shared[v].align);
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
