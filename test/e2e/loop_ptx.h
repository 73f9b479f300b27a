/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of loop.c and what they leave, computed by the host.  A state x
 * of 32 words goes through all of them: `mix` sums the words of a tensor with
 * odd factors that come from x, `fold` changes x by these sums.  Arithmetic is
 * modulo 2^32 and a sum is linear in the words, so the host needs no more of a
 * tensor than the two numbers of struct loop_sums, whatever is done to it.
 */
#ifndef LOOP_PTX_H
#define LOOP_PTX_H

#include "test/e2e/e2e_digest.h"

enum {
	LOOP_STATE = 32,	/* words of x */
	LOOP_THREADS = 128,	/* of a block of any kernel but fold */
	LOOP_EXPERTS = 8,	/* of a stacked tensor: 3 bits of x choose */
	LOOP_MAX_PARTS = 128,	/* words that one mix leaves */
};

#define LOOP_ODD 0x9e3779b1u

/*
 * name(parts, w, x, me, words, work): parts[warp] = sum over r < work and
 * i < words of w[i] * (2 i + 2 r + (x[me] | 1)), times %scale.  `setup` runs
 * with %data = w and %seed = x[me].
 */
#define LOOP_MIX(name, setup, scale)					\
	".visible .entry " name "(.param .u64 parts, .param .u64 w,\n"	\
	"	.param .u64 x, .param .u32 me, .param .u32 words,\n"	\
	"	.param .u32 work)\n"					\
	"{\n"								\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %words, %work, %seed, %i, %first, %step;\n"	\
	"	.reg .u32 %t, %me, %f, %sum, %w<4>;\n"			\
	"	.reg .u64 %data, %out, %at, %o;\n"			\
	"\n"								\
	"	ld.param.u32 %words, [words];\n"			\
	"	ld.param.u32 %work, [work];\n"				\
	"	ld.param.u64 %data, [w];\n"				\
	"	cvta.to.global.u64 %data, %data;\n"			\
	"	ld.param.u64 %at, [x];\n"				\
	"	cvta.to.global.u64 %at, %at;\n"				\
	"	ld.param.u32 %i, [me];\n"				\
	"	mul.wide.u32 %o, %i, 4;\n"				\
	"	add.u64 %at, %at, %o;\n"				\
	"	ld.global.u32 %seed, [%at];\n"				\
	setup								\
	"	or.b32 %seed, %seed, 1;\n"				\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %t, %ntid.x;\n"					\
	"	mov.u32 %step, %nctaid.x;\n"				\
	"	mul.lo.u32 %step, %step, %t;\n"				\
	"	shl.b32 %step, %step, 2;\n"				\
	"	mov.u32 %me, %tid.x;\n"					\
	"	mad.lo.u32 %me, %i, %t, %me;\n"				\
	"	shl.b32 %first, %me, 2;\n"				\
	"	mov.u32 %sum, 0;\n"					\
	"AGAIN:\n"							\
	"	mov.u32 %i, %first;\n"					\
	"	bra NEXT;\n"						\
	"WORDS:\n"							\
	"	mul.wide.u32 %o, %i, 4;\n"				\
	"	add.u64 %at, %data, %o;\n"				\
	"	ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%at];\n"	\
	"	shl.b32 %f, %i, 1;\n"					\
	"	add.u32 %f, %f, %seed;\n"				\
	E2E_DIGEST_WORD(0) E2E_DIGEST_WORD(1)				\
	E2E_DIGEST_WORD(2) E2E_DIGEST_WORD(3)				\
	"	add.u32 %i, %i, %step;\n"				\
	"NEXT:\n"							\
	"	setp.lt.u32 %p, %i, %words;\n"				\
	"	@%p bra WORDS;\n"					\
	"	add.u32 %seed, %seed, 2;\n"				\
	"	sub.u32 %work, %work, 1;\n"				\
	"	setp.ne.u32 %p, %work, 0;\n"				\
	"	@%p bra AGAIN;\n"					\
	"	mul.lo.u32 %sum, %sum, " scale ";\n"			\
	E2E_DIGEST_FOLD(16) E2E_DIGEST_FOLD(8) E2E_DIGEST_FOLD(4)	\
	E2E_DIGEST_FOLD(2) E2E_DIGEST_FOLD(1)				\
	"	and.b32 %t, %me, 31;\n"					\
	"	setp.ne.u32 %p, %t, 0;\n"				\
	"	@%p ret;\n"						\
	"	ld.param.u64 %out, [parts];\n"				\
	"	cvta.to.global.u64 %out, %out;\n"			\
	"	shr.u32 %t, %me, 5;\n"					\
	"	mul.wide.u32 %o, %t, 4;\n"				\
	"	add.u64 %out, %out, %o;\n"				\
	"	st.global.u32 [%out], %sum;\n"				\
	"	ret;\n"							\
	"}\n"

/* The top bits of x[me] choose one of eight parts of w, `words` long. */
#define LOOP_CHOOSE							\
	"	shr.u32 %t, %seed, 29;\n"				\
	"	mul.lo.u32 %t, %t, %words;\n"				\
	"	mul.wide.u32 %o, %t, 4;\n"				\
	"	add.u64 %data, %data, %o;\n"

#define LOOP_UPDATE_WORD(n)						\
	"	mad.lo.u32 %w" #n ", %w" #n ", 3, %c;\n"		\
	"	add.u32 %c, %c, 1;\n"

/*
 * Start of a kernel over `words` words of `data`, `each` a thread: the index of
 * this one's first is %i, its address %data; %x is the state.
 */
#define LOOP_ELEMENT(each)						\
	"{\n"								\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %i, %n, %t, %c;\n"				\
	"	.reg .u64 %data, %x, %o;\n"				\
	"\n"								\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %n, %ntid.x;\n"					\
	"	mov.u32 %t, %tid.x;\n"					\
	"	mad.lo.u32 %i, %i, %n, %t;\n"				\
	"	ld.param.u32 %n, [words];\n"				\
	"	mul.lo.u32 %i, %i, " each ";\n"			\
	"	setp.ge.u32 %p, %i, %n;\n"				\
	"	@%p ret;\n"						\
	"	mul.wide.u32 %o, %i, 4;\n"				\
	"	ld.param.u64 %data, [data];\n"				\
	"	cvta.to.global.u64 %data, %data;\n"			\
	"	add.u64 %data, %data, %o;\n"				\
	"	ld.param.u64 %x, [x];\n"				\
	"	cvta.to.global.u64 %x, %x;\n"

static const char loop_ptx[] = E2E_PTX_HEAD
	LOOP_MIX("mix", "", "1")
	LOOP_MIX("wide", "", "0x9e3779b1")
	LOOP_MIX("pick", LOOP_CHOOSE, "1")

/*
 * x[l] = x[l] * ODD + (2 l + 1) * (parts[0] + parts[1] + ...) + salt, noted in
 * `past` too.  One warp.
 */
	".visible .entry fold(.param .u64 x, .param .u64 past,\n"
	"	.param .u64 parts, .param .u32 nr, .param .u32 salt)\n"
	"{\n"
	"	.reg .pred %p;\n"
	"	.reg .u32 %l, %n, %t, %sum;\n"
	"	.reg .u64 %x, %past, %parts, %o;\n"
	"\n"
	"	ld.param.u64 %parts, [parts];\n"
	"	cvta.to.global.u64 %parts, %parts;\n"
	"	ld.param.u32 %n, [nr];\n"
	"	mov.u32 %sum, 0;\n"
	"PARTS:\n"
	"	ld.global.u32 %t, [%parts];\n"
	"	add.u32 %sum, %sum, %t;\n"
	"	add.u64 %parts, %parts, 4;\n"
	"	sub.u32 %n, %n, 1;\n"
	"	setp.ne.u32 %p, %n, 0;\n"
	"	@%p bra PARTS;\n"
	"	mov.u32 %l, %tid.x;\n"
	"	mul.wide.u32 %o, %l, 4;\n"
	"	ld.param.u64 %x, [x];\n"
	"	cvta.to.global.u64 %x, %x;\n"
	"	add.u64 %x, %x, %o;\n"
	"	ld.param.u64 %past, [past];\n"
	"	cvta.to.global.u64 %past, %past;\n"
	"	add.u64 %past, %past, %o;\n"
	"	shl.b32 %l, %l, 1;\n"
	"	or.b32 %l, %l, 1;\n"
	"	ld.param.u32 %n, [salt];\n"
	"	mad.lo.u32 %n, %sum, %l, %n;\n"
	"	ld.global.u32 %t, [%x];\n"
	"	mad.lo.u32 %t, %t, 0x9e3779b1, %n;\n"
	"	st.global.u32 [%x], %t;\n"
	"	st.global.u32 [%past], %t;\n"
	"	ret;\n"
	"}\n"

/* data[i] = data[i] * 3 + i + x[0]; four words a thread */
	".visible .entry update(.param .u64 data, .param .u64 x,\n"
	"	.param .u32 words)\n"
	LOOP_ELEMENT("4")
	"	.reg .u32 %w<4>;\n"
	"	ld.global.u32 %c, [%x];\n"
	"	add.u32 %c, %c, %i;\n"
	"	ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%data];\n"
	LOOP_UPDATE_WORD(0) LOOP_UPDATE_WORD(1)
	LOOP_UPDATE_WORD(2) LOOP_UPDATE_WORD(3)
	"	st.global.v4.u32 [%data], {%w0, %w1, %w2, %w3};\n"
	"	ret;\n"
	"}\n"

/* data[i] = x[i % 32] * (2 i + 1) */
	".visible .entry append(.param .u64 data, .param .u64 x,\n"
	"	.param .u32 words)\n"
	LOOP_ELEMENT("1")
	"	and.b32 %t, %i, 31;\n"
	"	mul.wide.u32 %o, %t, 4;\n"
	"	add.u64 %x, %x, %o;\n"
	"	ld.global.u32 %c, [%x];\n"
	"	shl.b32 %t, %i, 1;\n"
	"	or.b32 %t, %t, 1;\n"
	"	mul.lo.u32 %t, %t, %c;\n"
	"	st.global.u32 [%data], %t;\n"
	"	ret;\n"
	"}\n";

enum loop_kernel {
	LOOP_MIX,		/* decode-like */
	LOOP_WIDE,		/* prefill-like: twice the blocks */
	LOOP_PICK,		/* a part of the tensor, chosen by data */
	LOOP_FOLD,
	LOOP_UPDATE,
	LOOP_APPEND,
	LOOP_KERNELS,
};

static const char *const loop_kernels[LOOP_KERNELS] = {
	"mix", "wide", "pick", "fold", "update", "append",
};

static inline unsigned int loop_mix_blocks(enum loop_kernel k)
{
	return k == LOOP_WIDE ? 32 : 16;
}

/* ---- the same on the host ------------------------------------------------ */

/* Of words w[0], w[1], ...: the sums of 2 i w[i] and of w[i]. */
struct loop_sums {
	uint32_t ramp, flat;
};

/* data[0] is word `first` of what is summed. */
static inline void loop_sums_add(struct loop_sums *s, const uint32_t *data,
	size_t words, size_t first)
{
	for (size_t i = 0; i < words; i++) {
		s->ramp += (uint32_t)(first + i) * 2 * data[i];
		s->flat += data[i];
	}
}

static inline uint32_t loop_host_mix(enum loop_kernel k,
	const struct loop_sums *s, uint32_t seed, uint32_t work)
{
	uint32_t sum = work * s->ramp +
		s->flat * (work * (seed | 1) + work * (work - 1));

	return k == LOOP_WIDE ? sum * LOOP_ODD : sum;
}

static inline void loop_host_fold(uint32_t *x, uint32_t sum, uint32_t salt)
{
	for (uint32_t l = 0; l < LOOP_STATE; l++)
		x[l] = x[l] * LOOP_ODD + (2 * l + 1) * sum + salt;
}

static inline void loop_host_update(struct loop_sums *s, size_t words,
	uint32_t c)
{
	unsigned __int128 n = words;
	uint32_t i = n * (n - !!n) / 2;			/* sum of i */
	uint32_t ii = n * (n - !!n) * (2 * n - !!n) / 6;	/* of i * i */

	s->ramp = s->ramp * 3 + 2 * ii + 2 * c * i;
	s->flat = s->flat * 3 + i + c * words;
}

static inline void loop_host_append(struct loop_sums *s, const uint32_t *x,
	size_t words, size_t first)
{
	for (size_t i = 0; i < words; i++) {
		uint32_t w = x[i % LOOP_STATE] * (2 * (uint32_t)i + 1);

		loop_sums_add(s, &w, 1, first + i);
	}
}

static inline struct loop_sums loop_host_memset(size_t words, uint32_t value)
{
	unsigned __int128 n = words;
	struct loop_sums s = {
		.ramp = value * (uint32_t)(n * (n - !!n)),
		.flat = value * (uint32_t)words,
	};

	return s;
}

#endif
