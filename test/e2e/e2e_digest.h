/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that reads all words of a buffer and makes one number of them, and
 * the same on the host.  Every word counts with an odd factor of its own, so
 * any one changed word changes the number, as do words in the wrong place;
 * arithmetic is modulo 2^32, so the order of summing does not matter.
 */
#ifndef E2E_DIGEST_H
#define E2E_DIGEST_H

#include "test/e2e/e2e_util.h"

#define E2E_PTX_HEAD							\
	".version 7.0\n"						\
	".target sm_75\n"						\
	".address_size 64\n"

/*
 * Sums %data[0 .. %words), a multiple of 4 words, with factors 2 i + %seed to
 * %out[warp].  What leads here sets these four; the rest is declared here.
 */
#define E2E_DIGEST_REGS							\
	"	.reg .pred %p;\n"					\
	"	.reg .u32 %words, %seed, %i, %step, %t, %me, %f, %sum;\n" \
	"	.reg .u32 %w<4>;\n"					\
	"	.reg .u64 %data, %out, %at, %o;\n"

#define E2E_DIGEST_WORD(n)						\
	"	mad.lo.u32 %sum, %w" #n ", %f, %sum;\n"			\
	"	add.u32 %f, %f, 2;\n"

#define E2E_DIGEST_FOLD(lanes)						\
	"	shfl.sync.down.b32 %t, %sum, " #lanes ", 31, 0xffffffff;\n" \
	"	add.u32 %sum, %sum, %t;\n"

#define E2E_DIGEST_BODY							\
	"	or.b32 %seed, %seed, 1;\n"				\
	"	mov.u32 %i, %ctaid.x;\n"				\
	"	mov.u32 %t, %ntid.x;\n"					\
	"	mov.u32 %step, %nctaid.x;\n"				\
	"	mul.lo.u32 %step, %step, %t;\n"				\
	"	shl.b32 %step, %step, 2;\n"				\
	"	mov.u32 %me, %tid.x;\n"					\
	"	mad.lo.u32 %me, %i, %t, %me;\n"				\
	"	shl.b32 %i, %me, 2;\n"					\
	"	mov.u32 %sum, 0;\n"					\
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
	E2E_DIGEST_FOLD(16) E2E_DIGEST_FOLD(8) E2E_DIGEST_FOLD(4)	\
	E2E_DIGEST_FOLD(2) E2E_DIGEST_FOLD(1)				\
	"	and.b32 %t, %me, 31;\n"					\
	"	setp.ne.u32 %p, %t, 0;\n"				\
	"	@%p bra DONE;\n"					\
	"	shr.u32 %t, %me, 5;\n"					\
	"	mul.wide.u32 %o, %t, 4;\n"				\
	"	add.u64 %out, %out, %o;\n"				\
	"	st.global.u32 [%out], %sum;\n"				\
	"DONE:\n"

/* digest(out, data, words, seed) */
#define E2E_DIGEST_KERNEL						\
	".visible .entry digest(.param .u64 out, .param .u64 data,\n"	\
	"	.param .u32 words, .param .u32 seed)\n"			\
	"{\n"								\
	E2E_DIGEST_REGS							\
	"	ld.param.u64 %out, [out];\n"				\
	"	cvta.to.global.u64 %out, %out;\n"			\
	"	ld.param.u64 %data, [data];\n"				\
	"	cvta.to.global.u64 %data, %data;\n"			\
	"	ld.param.u32 %words, [words];\n"			\
	"	ld.param.u32 %seed, [seed];\n"				\
	E2E_DIGEST_BODY							\
	"	ret;\n"							\
	"}\n"

/* A digest launch has this shape and leaves so many words in `out`. */
enum {
	E2E_DIGEST_BLOCKS = 16,
	E2E_DIGEST_THREADS = 128,
	E2E_DIGEST_WORDS = E2E_DIGEST_BLOCKS * E2E_DIGEST_THREADS / 32,
	E2E_DIGEST_SIZE = E2E_DIGEST_WORDS * 4,
};

/* Bytes beyond a multiple of 16 do not count. */
static inline uint32_t e2e_digest(const void *data, size_t size, uint32_t seed)
{
	const uint32_t *w = data;
	uint32_t sum = 0, f = seed | 1;

	for (size_t i = 0; i < size / 16 * 4; i++, f += 2)
		sum += w[i] * f;
	return sum;
}

/* What the launch left in `out`, read back into `part`. */
static inline uint32_t e2e_digest_sum(const uint32_t *part)
{
	uint32_t sum = 0;

	for (int i = 0; i < E2E_DIGEST_WORDS; i++)
		sum += part[i];
	return sum;
}

static inline void e2e_digest_launch(CUfunction f, CUstream s, CUdeviceptr out,
	CUdeviceptr data, size_t size, uint32_t seed)
{
	uint32_t words = size / 16 * 4;
	void *args[] = { &out, &data, &words, &seed };

	CU(cuLaunchKernel, f, E2E_DIGEST_BLOCKS, 1, 1, E2E_DIGEST_THREADS, 1, 1,
		0, s, args, NULL);
}

/* Launches, waits and returns the number; `out` holds E2E_DIGEST_SIZE. */
static inline uint32_t e2e_digest_now(CUfunction f, CUstream s, CUdeviceptr out,
	CUdeviceptr data, size_t size, uint32_t seed)
{
	uint32_t part[E2E_DIGEST_WORDS];

	e2e_digest_launch(f, s, out, data, size, seed);
	CU(cuStreamSynchronize, s);
	CU(cuMemcpyDtoH, part, out, sizeof(part));
	return e2e_digest_sum(part);
}

#endif
