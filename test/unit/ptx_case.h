/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One instruction, its inputs and its result: the table-driven half of the
 * interpreter's tests.  A case runs in a full warp and in one with a single
 * lane, so that both ways of writing a row are seen.
 */
#ifndef TEST_PTX_CASE_H
#define TEST_PTX_CASE_H

#include "test/unit/ptx_util.h"

/*
 * sig: one letter for the result and for each source: h 16, w 32, d 64 bits,
 * p predicate.  `op` may hold modifiers behind the operands after a space:
 * "lop3.b32 0xe8".
 */
struct ptx_case {
	const char *op;
	const char *sig;
	uint64_t in[4];
	uint64_t out;
};

static inline const char *case_type(char c)
{
	return c == 'h' ? "b16" : c == 'w' ? "b32" : c == 'd' ? "b64" : "pred";
}

static inline int case_text(char *text, size_t size, const struct ptx_case *c)
{
	const char *space = strchr(c->op, ' ');
	int n, k, nr = (int)strlen(c->sig) - 1;

	n = snprintf(text, size, PTX_HEAD
		".visible .entry k(.param .u64 in, .param .u64 out) {\n"
		".reg .b64 %%in, %%out, %%o; .reg .b32 %%t, %%o32;\n"
		".reg .pred %%q;\n.reg .%s %%d;\n", case_type(c->sig[0]));
	for (k = 0; k < nr; k++)
		n += snprintf(text + n, size - (size_t)n, ".reg .%s %%s%d;\n",
			case_type(c->sig[k + 1]), k);
	n += snprintf(text + n, size - (size_t)n,
		"ld.param.u64 %%in, [in];\nld.param.u64 %%out, [out];\n"
		"mov.u32 %%t, %%tid.x;\nmul.wide.u32 %%o, %%t, 8;\n"
		"add.u64 %%out, %%out, %%o;\n");
	for (k = 0; k < nr; k++) {
		if (c->sig[k + 1] == 'p')
			n += snprintf(text + n, size - (size_t)n,
				"ld.global.u32 %%o32, [%%in+%d];\n"
				"setp.ne.u32 %%s%d, %%o32, 0;\n", 8 * k, k);
		else
			n += snprintf(text + n, size - (size_t)n,
				"ld.global.%s %%s%d, [%%in+%d];\n",
				case_type(c->sig[k + 1]), k, 8 * k);
	}
	n += snprintf(text + n, size - (size_t)n, "%.*s %%d",
		space ? (int)(space - c->op) : (int)strlen(c->op), c->op);
	for (k = 0; k < nr; k++)
		n += snprintf(text + n, size - (size_t)n, ", %%s%d", k);
	if (space)
		n += snprintf(text + n, size - (size_t)n, ", %s", space + 1);
	if (c->sig[0] == 'p')
		n += snprintf(text + n, size - (size_t)n,
			";\nselp.u32 %%o32, 1, 0, %%d;\n"
			"st.global.u32 [%%out], %%o32;\nret;\n}\n");
	else
		n += snprintf(text + n, size - (size_t)n,
			";\nst.global.%s [%%out], %%d;\nret;\n}\n",
			case_type(c->sig[0]));
	return n;
}

static inline void case_run(struct dev *d, const struct ptx_case *c)
{
	uint64_t params[2] = { DEV_BASE, DEV_BASE + 64 };
	uint64_t *out = (uint64_t *)(void *)(d->mem + 64);
	char text[4096];
	int k;

	ck_assert_int_lt(case_text(text, sizeof(text), c), (int)sizeof(text));
	memset(d->mem, 0, 4096);
	memcpy(d->mem, c->in, sizeof(c->in));
	dev_run_ok(d, text, "k", 1, 33, 0, params);
	for (k = 0; k < 33; k++)
		ck_assert_msg(out[k] == c->out,
			"%s(0x%llx, 0x%llx, 0x%llx, 0x%llx) in lane %d: "
			"0x%llx, not 0x%llx", c->op,
			(unsigned long long)c->in[0],
			(unsigned long long)c->in[1],
			(unsigned long long)c->in[2],
			(unsigned long long)c->in[3], k,
			(unsigned long long)out[k],
			(unsigned long long)c->out);
	ck_assert_uint_eq(out[33], 0);
}

static inline void case_run_all(const struct ptx_case *c, size_t nr)
{
	struct dev *d = dev_new();
	size_t k;

	for (k = 0; k < nr; k++)
		case_run(d, &c[k]);
	dev_free(d);
}

#define RUN_CASES(c) case_run_all(c, sizeof(c) / sizeof((c)[0]))

/*
 * With PTX_CASES_TO=DIR in the environment the texts are written there, for
 * an assembler to judge.
 */
static inline void case_dump(const char *name, const struct ptx_case *c,
	size_t nr)
{
	const char *dir = getenv("PTX_CASES_TO");
	char path[512], text[4096];
	size_t k;
	FILE *f;

	for (k = 0; dir && k < nr; k++) {
		snprintf(path, sizeof(path), "%s/%s-%03zu.ptx", dir, name, k);
		f = fopen(path, "w");
		ck_assert_ptr_nonnull(f);
		case_text(text, sizeof(text), &c[k]);
		fputs(text, f);
		fclose(f);
	}
}

#define CASE_TEST(name) \
START_TEST(test_##name) \
{ \
	case_dump(#name, name, sizeof(name) / sizeof(name[0])); \
	RUN_CASES(name); \
} \
END_TEST

#endif
