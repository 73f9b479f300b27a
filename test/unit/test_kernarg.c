/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernarg.c: which words of a launch can be pointers, from separate parameters
 * and packed buffers, and what is remembered of functions and kernels.
 */
#include "shim/kernarg.c"

#include "test/unit/unit.h"

struct real_api real;
static int asked_function, asked_kernel;

/* Parameters: a pointer, an int, a struct of 24 bytes at 16, a short at 40. */
static const struct { size_t offset, size; } layout[] = {
	{ 0, 8 }, { 8, 4 }, { 16, 24 }, { 40, 2 },
};
static size_t nr_layout = ARRAY_LEN(layout);

static CUresult info(size_t i, size_t *offset, size_t *size)
{
	if (i >= nr_layout)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = layout[i].offset;
	*size = layout[i].size;
	return CUDA_SUCCESS;
}

static CUresult of_function(CUfunction f, size_t i, size_t *offset,
	size_t *size)
{
	asked_function++;
	return info(i, offset, size);
}

static CUresult of_kernel(CUkernel k, size_t i, size_t *offset, size_t *size)
{
	asked_kernel++;
	return info(i, offset, size);
}

bool api_has(const void *real_entry)
{
	return true;
}

const char *api_result_name(CUresult r)
{
	return "some error";
}

static void setup(void)
{
	real.cuFuncGetParamInfo = of_function;
	real.cuKernelGetParamInfo = of_kernel;
	log_threshold = -1;
}

struct seen {
	uint64_t words[64];
	int nr;
	int stop_at;
};

static bool visit(void *arg, uint64_t word)
{
	struct seen *s = arg;

	s->words[s->nr++] = word;
	return s->nr != s->stop_at;
}

START_TEST(test_separate)
{
	const struct kernarg *k = kernarg_find((CUfunction)0x1000);
	uint64_t pointer = 0x1122334455667788;
	uint8_t bytes[24];
	int number = 7;
	short small = 1;
	void *params[] = { &pointer, &number, bytes, &small };
	struct seen s = { .stop_at = -1 };

	for (int i = 0; i < 24; i++)
		bytes[i] = (uint8_t)i;
	ck_assert(k->known);
	ck_assert_uint_eq(k->nr, 2);
	ck_assert(kernarg_walk(k, params, NULL, visit, &s));
	/* The pointer, and every byte offset of the struct. */
	ck_assert_int_eq(s.nr, 1 + 17);
	ck_assert_uint_eq(s.words[0], pointer);
	for (int i = 0; i < 17; i++)
		ck_assert_uint_eq(s.words[1 + i], kernarg_word(bytes + i));
	s = (struct seen){ .stop_at = 3 };
	ck_assert(!kernarg_walk(k, params, NULL, visit, &s));
	ck_assert_int_eq(s.nr, 3);
}
END_TEST

START_TEST(test_packed)
{
	const struct kernarg *k = kernarg_find((CUfunction)0x1000);
	uint8_t buffer[42];
	size_t size = sizeof(buffer);
	void *extra[] = {
		CU_LAUNCH_PARAM_BUFFER_POINTER, buffer,
		CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END,
	};
	struct seen s = { .stop_at = -1 };

	for (size_t i = 0; i < sizeof(buffer); i++)
		buffer[i] = (uint8_t)(i * 3);
	ck_assert(kernarg_walk(k, NULL, extra, visit, &s));
	ck_assert_int_eq(s.nr, 1 + 17);
	ck_assert_uint_eq(s.words[0], kernarg_word(buffer));
	ck_assert_uint_eq(s.words[1], kernarg_word(buffer + 16));
	/* A buffer too short for a parameter is not read beyond its end. */
	size = 20;
	s = (struct seen){ .stop_at = -1 };
	ck_assert(kernarg_walk(k, NULL, extra, visit, &s));
	ck_assert_int_eq(s.nr, 1);
	/* Neither parameters nor buffer: nothing to see. */
	s = (struct seen){ .stop_at = -1 };
	ck_assert(kernarg_walk(k, NULL, NULL, visit, &s));
	ck_assert_int_eq(s.nr, 0);
}
END_TEST

START_TEST(test_remembered)
{
	const struct kernarg *k = kernarg_find((CUfunction)0x2000), *again;
	int asked = asked_function;

	again = kernarg_find((CUfunction)0x2000);
	ck_assert_ptr_eq(k, again);
	ck_assert_int_eq(asked_function, asked);
	/* Forgotten, but it looks as before: the record is taken up again. */
	kernarg_forget_all();
	again = kernarg_find((CUfunction)0x2000);
	ck_assert_ptr_eq(k, again);
	ck_assert_int_gt(asked_function, asked);
	/* Forgotten, and the handle is another function now. */
	kernarg_forget_all();
	nr_layout = 1;
	again = kernarg_find((CUfunction)0x2000);
	ck_assert_ptr_ne(k, again);
	ck_assert_uint_eq(again->nr, 1);
	nr_layout = ARRAY_LEN(layout);
}
END_TEST

START_TEST(test_kernels)
{
	for (uintptr_t k = 1; k <= 2000; k++)
		kernarg_kernel_known((CUkernel)(k * 64));
	ck_assert(kernarg_find((CUfunction)(700 * 64))->known);
	ck_assert_int_gt(asked_kernel, 0);
	asked_function = 0;
	kernarg_find((CUfunction)(700 * 64 + 8));
	ck_assert_int_gt(asked_function, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kernarg");
	TCase *t = tcase_create("kernarg");

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_test(t, test_separate);
	tcase_add_test(t, test_packed);
	tcase_add_test(t, test_remembered);
	tcase_add_test(t, test_kernels);
	suite_add_tcase(s, t);
	return unit_run(s);
}
