/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_math.c beside libm: neighbouring doubles at most, nearly always the
 * same, and the same at the edges.
 */
#include <math.h>

/* Ours under other names, so that both are here. */
#define fmax own_fmax
#define fmin own_fmin
#define floor own_floor
#define ceil own_ceil
#define trunc own_trunc
#define rint own_rint
#define lgamma_r own_lgamma_r
#define exp own_exp
#define log own_log
#define pow own_pow
#define sin own_sin
#define cos own_cos
#define sincos own_sincos
double own_fmax(double a, double b);
double own_fmin(double a, double b);
double own_floor(double x);
double own_ceil(double x);
double own_trunc(double x);
double own_rint(double x);
double own_lgamma_r(double x, int *sign);
double own_exp(double x);
double own_log(double x);
double own_pow(double x, double y);
double own_sin(double x);
double own_cos(double x);
void own_sincos(double x, double *s, double *c);
#include "planner/plan_math.c"
#undef fmax
#undef fmin
#undef floor
#undef ceil
#undef trunc
#undef rint
#undef lgamma_r
#undef exp
#undef log
#undef pow
#undef sin
#undef cos
#undef sincos

#include <stdlib.h>

#include "test/unit/unit.h"

#define DRAWS 200000

static uint64_t seed = 1;

static double unit_real(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) * 0x1p-53;
}

/* Steps between neighbouring doubles; both finite. */
static int64_t ulps(double a, double b)
{
	int64_t x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x = x < 0 ? INT64_MIN - x : x;
	y = y < 0 ? INT64_MIN - y : y;
	return x > y ? x - y : y - x;
}

struct tally {
	uint32_t nr, differ;
	int64_t worst;
};

static void compare(struct tally *t, double own, double libm)
{
	int64_t d;

	if (isnan(libm) || isinf(libm)) {
		ck_assert(isnan(libm) ? isnan(own) : own == libm);
		return;
	}
	ck_assert(isfinite(own));
	d = ulps(own, libm);
	t->nr++;
	t->differ += d != 0;
	if (d > t->worst)
		t->worst = d;
}

static void verdict(const struct tally *t, const char *name)
{
	ck_assert_msg(t->worst <= 1, "%s: %lld units off", name,
		(long long)t->worst);
	ck_assert_msg(t->differ <= t->nr / 20, "%s: %u of %u differ", name,
		t->differ, t->nr);
}

static const double edges[] = {
	0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 1e-300, 1e300, -1e300,
	5e-324, DBL_MIN, DBL_MAX, -DBL_MAX, 709.782712893384, 709.7827128933841,
	-745.1332191019411, -745.1332191019412, -708.5, -740, INFINITY,
	-INFINITY, NAN, 4503599627370496.5, 0.9999999999999999,
	1.0000000000000002, 1024, 1e9,
};
#define EDGES (sizeof(edges) / sizeof(edges[0]))

START_TEST(test_edges)
{
	for (size_t i = 0; i < EDGES; i++) {
		struct tally t = { .nr = 0 };
		double x = edges[i];

		compare(&t, own_exp(x), exp(x));
		compare(&t, own_log(x), log(x));
		compare(&t, own_floor(x), floor(x));
		compare(&t, own_ceil(x), ceil(x));
		compare(&t, own_trunc(x), trunc(x));
		compare(&t, own_rint(x), rint(x));
		if (!(fabs(x) > 1e9)) {
			compare(&t, own_sin(x), sin(x));
			compare(&t, own_cos(x), cos(x));
		}
		ck_assert_msg(t.worst <= 1, "%a", x);
		for (size_t k = 0; k < EDGES; k++) {
			double y = edges[k];

			compare(&t, own_pow(x, y), pow(x, y));
			ck_assert_msg(t.worst <= 1, "pow %a %a", x, y);
			ck_assert(isnan(fmax(x, y)) ? isnan(own_fmax(x, y)) :
				own_fmax(x, y) == fmax(x, y));
			ck_assert(isnan(fmin(x, y)) ? isnan(own_fmin(x, y)) :
				own_fmin(x, y) == fmin(x, y));
		}
	}
}
END_TEST

START_TEST(test_exp)
{
	struct tally wide = { .nr = 0 }, small = { .nr = 0 };

	for (int i = 0; i < DRAWS; i++) {
		double x = unit_real();

		compare(&wide, own_exp(1460 * x - 748), exp(1460 * x - 748));
		compare(&small, own_exp(4 * x - 2), exp(4 * x - 2));
	}
	verdict(&wide, "wide");
	verdict(&small, "small");
}
END_TEST

START_TEST(test_log)
{
	struct tally wide = { .nr = 0 }, near = { .nr = 0 };

	for (int i = 0; i < DRAWS; i++) {
		double x = unit_real(), y = ldexp(x, (int)(seed % 2000) - 1060);

		compare(&wide, own_log(y), log(y));
		compare(&near, own_log(0.9 + x / 5), log(0.9 + x / 5));
	}
	verdict(&wide, "wide");
	verdict(&near, "near 1");
}
END_TEST

START_TEST(test_pow)
{
	struct tally t = { .nr = 0 }, whole = { .nr = 0 };

	for (int i = 0; i < DRAWS; i++) {
		double x = exp(20 * unit_real() - 10);
		double y = 20 * unit_real() - 10;

		compare(&t, own_pow(x, y), pow(x, y));
		compare(&whole, own_pow(-x, floor(y)), pow(-x, floor(y)));
	}
	verdict(&t, "real");
	verdict(&whole, "whole");
}
END_TEST

START_TEST(test_turn)
{
	struct tally t = { .nr = 0 };
	double s, c;

	for (int i = 0; i < DRAWS; i++) {
		double x = 40 * unit_real() - 20;

		compare(&t, own_sin(x), sin(x));
		compare(&t, own_cos(x), cos(x));
		own_sincos(x, &s, &c);
		ck_assert(s == own_sin(x) && c == own_cos(x));
	}
	verdict(&t, "turn");
}
END_TEST

START_TEST(test_whole)
{
	struct tally t = { .nr = 0 };

	for (int i = 0; i < DRAWS; i++) {
		double x = (unit_real() - 0.5) * exp(90 * unit_real() - 45);

		compare(&t, own_floor(x), floor(x));
		compare(&t, own_ceil(x), ceil(x));
		compare(&t, own_trunc(x), trunc(x));
		compare(&t, own_rint(x), rint(x));
		x = rint(x) / 2;
		compare(&t, own_rint(x), rint(x));
	}
	ck_assert_int_eq(t.worst, 0);
}
END_TEST

START_TEST(test_gamma)
{
	int sign;

	for (int i = 0; i < DRAWS / 10; i++) {
		double x = exp(12 * unit_real() - 4);
		double libm = lgamma_r(x, &sign), own = own_lgamma_r(x, &sign);

		ck_assert_int_eq(sign, 1);
		ck_assert_msg(fabs(own - libm) <= 4e-16 * fmax(1, fabs(libm)),
			"%a", x);
	}
	ck_assert(isnan(own_lgamma_r(-1.5, &sign)));
	ck_assert(isinf(own_lgamma_r(INFINITY, &sign)));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("plan_math");
	TCase *t = tcase_create("plan_math");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_edges);
	tcase_add_test(t, test_exp);
	tcase_add_test(t, test_log);
	tcase_add_test(t, test_pow);
	tcase_add_test(t, test_turn);
	tcase_add_test(t, test_whole);
	tcase_add_test(t, test_gamma);
	suite_add_tcase(s, t);
	return unit_run(s);
}
