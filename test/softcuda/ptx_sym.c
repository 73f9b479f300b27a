/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parser remembers: memory, names and scopes, labels still to come,
 * register rows and constants of the function in work.  Called by the parser
 * only; no locks.
 */
#include <stdlib.h>
#include <string.h>

#include "test/softcuda/ptx_parser.h"

struct ptx_block {
	struct ptx_block *next;
	size_t used, size;
	_Alignas(16) u8 data[];
};

#define BLOCK_SIZE 65536

void *ptx_arena_alloc(struct ptx_arena *a, size_t size)
{
	struct ptx_block *b = a->blocks;
	void *p;

	size = (size + 15) & ~(size_t)15;
	if (!b || b->size - b->used < size) {
		size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;

		b = calloc(1, sizeof(*b) + room);
		if (!b)
			return NULL;
		b->size = room;
		b->next = a->blocks;
		a->blocks = b;
	}
	p = b->data + b->used;
	b->used += size;
	return p;
}

void ptx_arena_free(struct ptx_arena *a)
{
	struct ptx_block *b;

	while ((b = a->blocks)) {
		a->blocks = b->next;
		free(b);
	}
}

void *ptx_alloc(struct ptx_parser *p, size_t size)
{
	void *m = ptx_arena_alloc(&p->m->arena, size);

	if (!m)
		ptx_fail(p, &p->tok, PTX_NO_MEMORY, "no memory");
	return m;
}

void *ptx_grow(struct ptx_parser *p, void *array, u32 nr, u32 *cap, size_t size)
{
	u32 more;
	void *n;

	if (nr < *cap)
		return array;
	more = *cap ? 2 * *cap : 16;
	n = realloc(array, more * size);
	if (!n)
		ptx_fail(p, &p->tok, PTX_NO_MEMORY, "no memory");
	*cap = more;
	return n;
}

/* ---- names -------------------------------------------------------------- */

static u32 hash_name(const char *s, u32 len)
{
	u32 h = 2166136261u;

	while (len--)
		h = (h ^ (u8)*s++) * 16777619u;
	return h;
}

struct ptx_sym *ptx_sym_find(struct ptx_parser *p, const char *name, u32 len)
{
	u32 h = hash_name(name, len);
	struct ptx_sym *s = p->bucket[h % PTX_BUCKETS];

	while (s && (s->hash != h || s->len != len ||
		memcmp(s->name, name, len)))
		s = s->bucket;
	return s;
}

static struct ptx_sym *find_in_scope(const struct ptx_scope *scope,
	const char *name, u32 len)
{
	struct ptx_sym *s = scope->syms;

	while (s && (s->len != len || memcmp(s->name, name, len)))
		s = s->in_scope;
	return s;
}

struct ptx_sym *ptx_sym_add(struct ptx_parser *p, const struct ptx_token *name,
	enum ptx_sym_kind kind)
{
	struct ptx_sym *s = ptx_sym_find(p, name->text, name->len), *in;
	char *copy;

	for (in = p->scope->syms; s && in; in = in->in_scope)
		if (in == s)
			ptx_fail(p, name, PTX_SYNTAX, "%.*s is declared twice",
				(int)name->len, name->text);
	s = ptx_alloc(p, sizeof(*s) + name->len + 1);
	copy = (char *)(s + 1);
	memcpy(copy, name->text, name->len);
	s->name = copy;
	s->len = name->len;
	s->hash = hash_name(copy, name->len);
	s->kind = (u8)kind;
	s->bucket = p->bucket[s->hash % PTX_BUCKETS];
	p->bucket[s->hash % PTX_BUCKETS] = s;
	s->in_scope = p->scope->syms;
	p->scope->syms = s;
	return s;
}

void ptx_scope_enter(struct ptx_parser *p, struct ptx_scope *s)
{
	memset(s, 0, sizeof(*s));
	s->parent = p->scope;
	p->scope = s;
}

void ptx_fixup(struct ptx_parser *p, const struct ptx_token *label, u32 code,
	u32 *target)
{
	struct ptx_fixup *f = ptx_alloc(p, sizeof(*f));

	f->at = *label;
	f->name = label->text;
	f->len = label->len;
	f->code = code;
	f->target = target;
	f->next = p->scope->fixups;
	p->scope->fixups = f;
}

/* Labels of the scope bind its jumps; the others are left to the outer one. */
void ptx_scope_leave(struct ptx_parser *p)
{
	struct ptx_scope *s = p->scope;
	struct ptx_fixup *f, *next;
	struct ptx_sym *y;

	for (f = s->fixups; f; f = next) {
		next = f->next;
		y = find_in_scope(s, f->name, f->len);
		if (y && y->kind == PTX_SYM_LABEL) {
			if (f->target)
				*f->target = y->index;
			else
				p->m->code[f->code].target = y->index;
			continue;
		}
		if (!s->parent || !s->parent->parent)
			ptx_fail(p, &f->at, PTX_SYNTAX, "no label %.*s",
				(int)f->len, f->name);
		f->next = s->parent->fixups;
		s->parent->fixups = f;
	}
	for (y = s->syms; y; y = y->in_scope)
		p->bucket[y->hash % PTX_BUCKETS] = y->bucket;
	p->scope = s->parent;
}

/* ---- types -------------------------------------------------------------- */

static const char *const type_name[PTX_NR_TYPES] = {
	[PTX_pred] = "pred",
	[PTX_b8] = "b8", [PTX_u8] = "u8", [PTX_s8] = "s8",
	[PTX_b16] = "b16", [PTX_u16] = "u16", [PTX_s16] = "s16",
	[PTX_f16] = "f16", [PTX_bf16] = "bf16",
	[PTX_b32] = "b32", [PTX_u32] = "u32", [PTX_s32] = "s32",
	[PTX_f32] = "f32", [PTX_f16x2] = "f16x2", [PTX_bf16x2] = "bf16x2",
	[PTX_b64] = "b64", [PTX_u64] = "u64", [PTX_s64] = "s64",
	[PTX_f64] = "f64",
};

enum ptx_type ptx_type_of(const struct ptx_token *t)
{
	unsigned k;

	for (k = PTX_pred; k < PTX_NR_TYPES; k++)
		if (t->kind == PTX_TOK_DOT && ptx_tok_is(t, type_name[k]))
			return k;
	return PTX_none;
}

enum ptx_type ptx_type_named(const char *s)
{
	unsigned k;

	for (k = PTX_pred; k < PTX_NR_TYPES; k++)
		if (!strcmp(s, type_name[k]))
			return k;
	return PTX_none;
}

/* ---- rows --------------------------------------------------------------- */

u32 ptx_row_new(struct ptx_parser *p, unsigned bytes)
{
	u32 row = p->func->frame_size;

	if (row > (64u << 20))
		ptx_fail(p, &p->tok, PTX_UNSUPPORTED, "too many registers");
	p->func->frame_size += bytes * PTX_LANES;
	return row;
}

u32 ptx_pred_new(struct ptx_parser *p)
{
	if (!p->pred_left) {
		p->pred_row = ptx_row_new(p, 2);
		p->pred_left = 16;
	}
	p->pred_left--;
	p->pred_row += 4;
	return p->pred_row - 4;
}

u32 ptx_const_row(struct ptx_parser *p, enum ptx_const_kind kind, u32 index,
	u64 value, unsigned bytes)
{
	struct ptx_func *f = p->func;
	struct ptx_const *c;
	u32 k;

	if (kind == PTX_CONST_VALUE && bytes < 8)
		value &= (1ull << (8 * bytes)) - 1;
	for (k = 0; k < f->nr_consts; k++) {
		c = &f->consts[k];
		if (c->kind == kind && c->index == index &&
		    c->value == value && c->width == bytes)
			return c->row;
	}
	f->consts = ptx_grow(p, f->consts, f->nr_consts, &f->cap_consts,
		sizeof(*c));
	c = &f->consts[f->nr_consts++];
	*c = (struct ptx_const){ .row = ptx_row_new(p, bytes),
		.width = (u8)bytes, .kind = (u8)kind, .index = index,
		.value = value };
	return c->row;
}
