/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to module: shared by ptx_lex.c, ptx_parse.c, ptx_operand.c and
 * ptx_decode*.c.  One parser lives on the stack of ptx_module_create().  Errors
 * leave by longjmp to it; all memory made meanwhile belongs to the module.
 */
#ifndef SOFTCUDA_PTX_PARSER_H
#define SOFTCUDA_PTX_PARSER_H

#include <setjmp.h>

#include "test/softcuda/ptx_int.h"

enum ptx_tok {
	PTX_TOK_END,
	PTX_TOK_WORD,		/* identifier, % and $ included */
	PTX_TOK_DOT,		/* .word, :: included */
	PTX_TOK_INT,
	PTX_TOK_F32,		/* 0fXXXXXXXX: value has the bits */
	PTX_TOK_F64,		/* 0dX..., or decimal: bits of the double */
	PTX_TOK_STRING,
	PTX_TOK_PUNCT,		/* one character, in `punct` */
};

struct ptx_token {
	u8 kind;
	char punct;
	bool is_unsigned;	/* suffix U */
	const char *text;	/* into the source; DOT: behind the dot */
	u32 len;
	u32 line, column;
	u64 value;
};

enum ptx_sym_kind {
	PTX_SYM_REG, PTX_SYM_RANGE, PTX_SYM_VAR, PTX_SYM_SHARED, PTX_SYM_LOCAL,
	PTX_SYM_PARAM, PTX_SYM_FUNC, PTX_SYM_LABEL, PTX_SYM_TABLE,
	PTX_SYM_PROTO,
};

struct ptx_sym {
	const char *name;
	u32 len, hash;
	struct ptx_sym *bucket;		/* next in the hash chain */
	struct ptx_sym *in_scope;	/* next in the same scope */
	u8 kind;
	u8 type;
	u32 row;			/* register; 0: none given yet */
	u32 count, *rows;		/* range */
	u32 index;			/* variable, function, code, table */
	u32 offset, size, align;	/* local memory, parameter */
};

struct ptx_fixup {
	struct ptx_fixup *next;
	const char *name;
	u32 len;
	u32 *target;		/* table entry, or NULL */
	u32 code;		/* instruction */
	struct ptx_token at;
};

struct ptx_scope {
	struct ptx_scope *parent;
	struct ptx_sym *syms;
	struct ptx_fixup *fixups;
};

#define PTX_BUCKETS 1024
#define PTX_KEYS 2048

struct ptx_parser {
	const char *text, *end, *pos, *line_start;
	u32 line;
	struct ptx_token tok;		/* the next one */
	struct ptx_module *m;
	struct ptx_error *err;
	enum ptx_status status;
	jmp_buf fail;
	const struct ptx_vec *vec;
	struct ptx_sym *bucket[PTX_BUCKETS];
	struct ptx_scope *scope;
	struct ptx_func *func;
	u32 pred_row, pred_left;	/* predicates share a row's bytes */
	u16 key[PTX_KEYS];		/* hash of ptx_ops, index + 1 */
	/* the instruction being read */
	u32 insn_line;
	u32 guard;
	u8 guard_kind;
};

#define PTX_MAX_MODS 14

struct ptx_opcode {
	struct ptx_token at;
	char text[96];			/* whole spelling */
	const char *base;
	u32 nr;
	const char *mod[PTX_MAX_MODS];	/* without dots */
	char store[128];
};

enum ptx_operand_kind {
	PTX_OPND_REG, PTX_OPND_INT, PTX_OPND_F32, PTX_OPND_F64, PTX_OPND_SYM,
	PTX_OPND_ADDR, PTX_OPND_VEC, PTX_OPND_SREG, PTX_OPND_SINK,
	PTX_OPND_NAME,
};

struct ptx_operand {
	u8 kind;
	u8 type;		/* register */
	bool negate;		/* ! */
	u8 nr;			/* vector */
	u32 row;
	u32 sreg;
	u64 value;
	s64 offset;
	struct ptx_sym *sym;
	struct ptx_operand *elem;	/* vector; address: its base */
	struct ptx_operand *pair;	/* p|q */
	struct ptx_token at;
};

#define PTX_MAX_OPERANDS 8

/* ptx_lex.c */
void ptx_lex_start(struct ptx_parser *p, const char *text, size_t len);
void ptx_next(struct ptx_parser *p);
bool ptx_tok_is(const struct ptx_token *t, const char *word);
bool ptx_is_punct(const struct ptx_parser *p, char c);
bool ptx_is_dot(const struct ptx_parser *p, const char *word);
bool ptx_accept(struct ptx_parser *p, char c);
void ptx_expect(struct ptx_parser *p, char c);
void ptx_skip_line(struct ptx_parser *p);
void ptx_fail(struct ptx_parser *p, const struct ptx_token *at,
	enum ptx_status status, const char *fmt, ...)
	__attribute__((noreturn, format(printf, 4, 5)));

/* ptx_sym.c */
void *ptx_alloc(struct ptx_parser *p, size_t size);
/* Makes room for one more in an array that the module owns. */
void *ptx_grow(struct ptx_parser *p, void *array, u32 nr, u32 *cap,
	size_t size);
struct ptx_sym *ptx_sym_add(struct ptx_parser *p, const struct ptx_token *name,
	enum ptx_sym_kind kind);
struct ptx_sym *ptx_sym_find(struct ptx_parser *p, const char *name, u32 len);
void ptx_scope_enter(struct ptx_parser *p, struct ptx_scope *s);
void ptx_scope_leave(struct ptx_parser *p);
void ptx_fixup(struct ptx_parser *p, const struct ptx_token *label, u32 code,
	u32 *target);
enum ptx_type ptx_type_of(const struct ptx_token *t);
enum ptx_type ptx_type_named(const char *s);
u32 ptx_row_new(struct ptx_parser *p, unsigned bytes);
u32 ptx_pred_new(struct ptx_parser *p);
u32 ptx_const_row(struct ptx_parser *p, enum ptx_const_kind kind, u32 index,
	u64 value, unsigned bytes);

/* ptx_decl.c */
/* .align 4 .v2 .u32 name[2][3], what stands before and behind a name */
struct ptx_decl {
	struct ptx_token name;
	u32 align;
	u32 vec;
	enum ptx_type type;
	u64 count;
	bool open;		/* name[]: length from elsewhere */
};

static inline u64 ptx_align_up(u64 v, u64 align)
{
	return (v + align - 1) & ~(align - 1);
}

void ptx_read_type(struct ptx_parser *p, struct ptx_decl *d);
void ptx_read_name(struct ptx_parser *p, struct ptx_decl *d);
u32 ptx_decl_align(const struct ptx_decl *d);
u64 ptx_decl_size(const struct ptx_decl *d);
struct ptx_sym *ptx_add_local(struct ptx_parser *p, struct ptx_decl *d);
void ptx_variables(struct ptx_parser *p, enum ptx_space space, bool is_extern);
void ptx_registers(struct ptx_parser *p);

/* ptx_operand.c */
u64 ptx_const_expr(struct ptx_parser *p);
u32 ptx_reg_row(struct ptx_parser *p, struct ptx_sym *s, u32 number);
void ptx_operand(struct ptx_parser *p, struct ptx_operand *o);
u32 ptx_operands(struct ptx_parser *p, struct ptx_operand *o, u32 max);
u32 ptx_src(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t);
u32 ptx_dst(struct ptx_parser *p, const struct ptx_operand *o,
	enum ptx_type t);
/* Predicate source that may be negated; adds PTX_F_NOT_C to *flags. */
u32 ptx_src_pred(struct ptx_parser *p, const struct ptx_operand *o, u8 *flags);
/* Sets a, imm, flags and, for .param and .local, the space. */
void ptx_address(struct ptx_parser *p, const struct ptx_operand *o,
	struct ptx_insn *i);
void ptx_emit(struct ptx_parser *p, struct ptx_insn *i);
void ptx_need(struct ptx_parser *p, const struct ptx_opcode *op, u32 got,
	u32 min, u32 max);
void ptx_unsupported(struct ptx_parser *p, const struct ptx_opcode *op)
	__attribute__((noreturn));

/* ptx_decode.c, ptx_decode_mem.c, ptx_decode_flow.c */
void ptx_keys_init(struct ptx_parser *p);
void ptx_instruction(struct ptx_parser *p);
typedef void ptx_decode_fn(struct ptx_parser *p, const struct ptx_opcode *op);
int ptx_op_find(struct ptx_parser *p, const char *key);
ptx_decode_fn ptx_decode_ld, ptx_decode_st, ptx_decode_atom, ptx_decode_red,
	ptx_decode_cvta, ptx_decode_prefetch, ptx_decode_isspacep,
	ptx_decode_cp;
ptx_decode_fn ptx_decode_bra, ptx_decode_brx, ptx_decode_call, ptx_decode_ret,
	ptx_decode_exit, ptx_decode_trap, ptx_decode_bar, ptx_decode_fence,
	ptx_decode_nanosleep;
ptx_decode_fn ptx_decode_shfl, ptx_decode_vote, ptx_decode_match,
	ptx_decode_redux, ptx_decode_activemask;

#endif
