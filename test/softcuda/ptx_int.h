/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by ptx_*.c only: the decoded module and the decoded instruction.
 * Made by ptx_parse.c and ptx_decode.c, read by ptx_exec.c and the operation
 * files.  A module and all it owns lie in one arena.  No locks: a module is
 * used by one thread at a time.
 */
#ifndef SOFTCUDA_PTX_INT_H
#define SOFTCUDA_PTX_INT_H

#include <stdarg.h>

#include "test/softcuda/ptx.h"

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

#define PTX_LANES 32
#define PTX_FULL 0xffffffffu

/*
 * Generic addresses of the windows.  Above 2^47, so that neither device
 * memory nor a user address of the host can lie there; the low 32 bits of the
 * base are 0, so that a truncated generic address is the offset.
 */
#define PTX_SHARED_BASE 0xf00000000000ull
#define PTX_LOCAL_BASE 0xf10000000000ull
#define PTX_PARAM_BASE 0xf20000000000ull
#define PTX_WINDOW 0x100000000ull

/* Names end in PTX's own spelling, for the rows of ptx_ops.def. */
enum ptx_type {
	PTX_none, PTX_pred,
	PTX_b8, PTX_u8, PTX_s8,
	PTX_b16, PTX_u16, PTX_s16, PTX_f16, PTX_bf16,
	PTX_b32, PTX_u32, PTX_s32, PTX_f32, PTX_f16x2, PTX_bf16x2,
	PTX_b64, PTX_u64, PTX_s64, PTX_f64,
	PTX_NR_TYPES
};

enum ptx_space {
	PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST, PTX_PARAM,
	PTX_REG,
};

/* How the interpreter's loop treats an instruction. */
enum ptx_kind {
	PTX_PLAIN,		/* run(), cannot fail */
	PTX_MEMORY,		/* run(), may fault */
	PTX_CLOCK,		/* run(), reads the clock */
	PTX_SYNC,		/* run() once all named lanes have come */
	PTX_BRA, PTX_BRX, PTX_CALL, PTX_RET, PTX_EXIT, PTX_BAR,
	PTX_WARPSYNC, PTX_BUILTIN, PTX_TRAP_OP,
};

enum ptx_round { PTX_RN, PTX_RZ, PTX_RM, PTX_RP };

/* Modifiers that an instruction keeps. */
#define PTX_F_FTZ 1
#define PTX_F_SAT 2
#define PTX_F_RND 4		/* in a row: a rounding may be given */
#define PTX_F_NOT_C 8		/* setp: !c */
#define PTX_F_FRAME 16		/* address: relative to the local frame */
#define PTX_F_ADDR32 32		/* address register has 32 bits */
#define PTX_F_INT 64		/* cvt: round to an integral value */
#define PTX_F_CONST 128		/* membermask, address: the same in all lanes */

enum ptx_boolop { PTX_BOOL_NONE, PTX_BOOL_AND, PTX_BOOL_OR, PTX_BOOL_XOR };

struct ptx_warp;
struct ptx_insn;
typedef void ptx_run_fn(struct ptx_warp *w, const struct ptx_insn *i, u32 mask);

/*
 * d, a, b, c, e are byte offsets of rows in the frame; 0 is "none".  Vector
 * loads and stores: elements in d, b, c, e and the address in a.
 */
struct ptx_insn {
	ptx_run_fn *run;
	u32 d, a, b, c, e;
	u32 guard;		/* predicate row, for guard_kind */
	s64 imm;		/* address offset, lookup table, barrier id */
	u32 line;
	u32 target;		/* code index, function index, table index */
	u8 kind;
	u8 guard_kind;		/* 0: none, 1: @p, 2: @!p */
	u8 rnd;
	u8 flags;
	u8 type;		/* destination's or access's */
	u8 stype;		/* source's */
	u8 space;
	u8 size;		/* bytes of one element in memory */
	u8 vec;			/* elements */
	u8 regsize;		/* bytes of one register lane, destination */
	u8 sregsize;		/* the same, source */
	u8 op;			/* atomic, shuffle, boolean operator, ... */
};

/* A row that is filled when a frame is made. */
struct ptx_const {
	u32 row;
	u8 width;		/* bytes a lane */
	u8 kind;		/* enum ptx_const_kind */
	u32 index;		/* of the variable */
	u64 value;		/* or addend */
};

enum ptx_const_kind {
	PTX_CONST_VALUE, PTX_CONST_PRED, PTX_CONST_GLOBAL, PTX_CONST_SHARED,
};

/* One formal or actual parameter of a device function, in local memory. */
struct ptx_slot {
	u32 offset;
	u32 size;
	u32 align;
};

/* A call: which slots of the caller go where. */
struct ptx_callsite {
	u32 func;
	u32 nr_in, nr_out;
	struct ptx_slot *in, *out;	/* owned by the arena */
};

struct ptx_shared_var {
	const char *name;
	u32 func;		/* owner, or PTX_NO_FUNC for the module's */
	u32 size;
	u32 align;
	bool dynamic;		/* .extern: after the static ones */
};

#define PTX_NO_FUNC 0xffffffffu

struct ptx_branch_table {
	u32 nr;
	u32 *target;		/* owned by the arena */
};

enum ptx_builtin { PTX_NOT_BUILTIN, PTX_VPRINTF, PTX_ASSERTFAIL };

struct ptx_func {
	const char *name;
	bool entry;
	bool defined;
	u8 builtin;
	u32 index;
	u32 start, end;		/* code */
	u32 frame_size;		/* bytes of all rows */
	u32 local_size;		/* own local memory, parameters included */
	u32 nr_regs;
	u32 max_threads;
	u32 line;
	/* entry: offsets in the packed buffer */
	u32 nr_params;
	struct ptx_param *params;
	u32 params_size;
	/* function: slots in its own local memory */
	u32 nr_in, nr_out;
	struct ptx_slot *in, *out;
	u32 nr_consts, cap_consts;
	struct ptx_const *consts;	/* malloc */
	u32 nr_calls, cap_calls;
	u32 *calls;			/* malloc: functions called */
	u32 nr_shared, cap_shared;
	u32 *shared;			/* malloc: shared variables named */
};

struct ptx_kernel {
	struct ptx_module *module;	/* borrowed, while it lives */
	struct ptx_func *func;
	u32 shared_static;		/* bytes, with all called functions */
	u32 local_total;
	/* offset of every shared variable of the module; ~0 when unused */
	u32 *shared_offset;
};

/* An initialiser that holds an address. */
struct ptx_reloc {
	u32 var;		/* where */
	u32 offset;
	u32 target;		/* whose address */
	u64 addend;
	u32 size;
};

struct ptx_block;

struct ptx_arena {
	struct ptx_block *blocks;
};

struct ptx_module {
	struct ptx_arena arena;
	u32 target, version;
	struct ptx_insn *code;
	u32 nr_code, cap_code;
	struct ptx_func **funcs;
	u32 nr_funcs, cap_funcs;
	struct ptx_variable *vars;
	u32 nr_vars, cap_vars;
	struct ptx_shared_var *shared;
	u32 nr_shared, cap_shared;
	struct ptx_reloc *relocs;
	u32 nr_relocs, cap_relocs;
	struct ptx_callsite *sites;
	u32 nr_sites, cap_sites;
	struct ptx_branch_table *tables;
	u32 nr_tables, cap_tables;
	struct ptx_kernel *kernels;
	u32 nr_kernels;
};

/* Zeroed memory that lives as long as the arena; NULL when there is none. */
void *ptx_arena_alloc(struct ptx_arena *a, size_t size);
void ptx_arena_free(struct ptx_arena *a);

unsigned ptx_type_size(enum ptx_type t);
bool ptx_type_is_float(enum ptx_type t);
bool ptx_type_is_signed(enum ptx_type t);

/* ---- operation tables (ptx_ops.def) ------------------------------------- */

#define PTX_MAX_SOURCES 4

struct ptx_op {
	const char *key;	/* spelling without the modifiers in `allow` */
	u8 form;		/* enum ptx_form */
	u8 allow;		/* PTX_F_* that may be added */
	u8 nr;			/* sources */
	u8 d;			/* types, enum ptx_type */
	u8 s[PTX_MAX_SOURCES];
};

enum ptx_form {
	PTX_FORM_PLAIN,		/* d, sources */
	PTX_FORM_FLOAT,		/* the same; a general function exists */
	PTX_FORM_HALF,		/* float that rounds to nearest only */
	PTX_FORM_COMPARE,	/* setp and set */
	PTX_FORM_IMM,		/* the last source is an immediate in .imm */
};

extern const struct ptx_op ptx_ops[];
extern const unsigned ptx_nr_ops;

/* One build of the vector code. */
struct ptx_vec {
	const char *name;
	ptx_run_fn *const *run;		/* by row; setp for comparisons */
	ptx_run_fn *const *general;	/* rounding, ftz, sat; set */
	ptx_run_fn *load, *store;	/* every form of ld and st */
};

extern const struct ptx_vec ptx_vec_base;
extern const struct ptx_vec ptx_vec_avx2;

/* The best build this machine can run. */
const struct ptx_vec *ptx_vec_choose(void);

/* ptx_cvt.c, ptx_lane.c, ptx_atom.c: built once */
ptx_run_fn ptx_cvt_run;
ptx_run_fn ptx_atom_run;
ptx_run_fn ptx_shfl_run, ptx_vote_run, ptx_match_run, ptx_activemask_run;
ptx_run_fn ptx_sreg_run, ptx_nop_run, ptx_sleep_run;
ptx_run_fn ptx_mov_pack_run, ptx_mov_unpack_run;
ptx_run_fn ptx_lea_local_run, ptx_cvta_run, ptx_isspacep_run;
ptx_run_fn ptx_lea_run, ptx_copy_run;

enum ptx_sreg {
	PTX_SREG_TID_X, PTX_SREG_TID_Y, PTX_SREG_TID_Z,
	PTX_SREG_NTID_X, PTX_SREG_NTID_Y, PTX_SREG_NTID_Z,
	PTX_SREG_CTAID_X, PTX_SREG_CTAID_Y, PTX_SREG_CTAID_Z,
	PTX_SREG_NCTAID_X, PTX_SREG_NCTAID_Y, PTX_SREG_NCTAID_Z,
	PTX_SREG_LANEID, PTX_SREG_WARPID, PTX_SREG_NWARPID,
	PTX_SREG_SMID, PTX_SREG_NSMID, PTX_SREG_GRIDID,
	PTX_SREG_LANEMASK_EQ, PTX_SREG_LANEMASK_LT, PTX_SREG_LANEMASK_LE,
	PTX_SREG_LANEMASK_GT, PTX_SREG_LANEMASK_GE,
	PTX_SREG_CLOCK, PTX_SREG_CLOCK_HI, PTX_SREG_CLOCK64,
	PTX_SREG_GLOBALTIMER, PTX_SREG_GLOBALTIMER_LO,
	PTX_SREG_GLOBALTIMER_HI,
	PTX_SREG_DYNAMIC_SMEM, PTX_SREG_TOTAL_SMEM,
	PTX_NR_SREGS
};

enum ptx_atom_op {
	PTX_ATOM_ADD, PTX_ATOM_INC, PTX_ATOM_DEC, PTX_ATOM_MIN, PTX_ATOM_MAX,
	PTX_ATOM_AND, PTX_ATOM_OR, PTX_ATOM_XOR, PTX_ATOM_EXCH, PTX_ATOM_CAS,
};

enum ptx_shfl_op { PTX_SHFL_UP, PTX_SHFL_DOWN, PTX_SHFL_BFLY, PTX_SHFL_IDX };

enum ptx_vote_op {
	PTX_VOTE_ALL, PTX_VOTE_ANY, PTX_VOTE_UNI, PTX_VOTE_BALLOT,
};

enum ptx_redux_op {
	PTX_REDUX_ADD, PTX_REDUX_MIN, PTX_REDUX_MAX, PTX_REDUX_AND,
	PTX_REDUX_OR, PTX_REDUX_XOR,
};

ptx_run_fn ptx_redux_run;

enum ptx_bar_op {
	PTX_BAR_SYNC, PTX_BAR_ARRIVE, PTX_BAR_POPC, PTX_BAR_AND, PTX_BAR_OR,
};

#endif
