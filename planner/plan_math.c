/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libm that the planner calls, under their own names, hidden.
 * libballast.so must not need libm at run time (it would come into every
 * program, and glibc's static one cannot be linked into a library), and the
 * tools must plan to the same bit as the library: so this stands before libm in
 * everything that contains the planner.
 *
 * Series on a small interval, the leading terms in long double: the result is
 * the nearest double or, rarely, its neighbour.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define OWN __attribute__((visibility("hidden")))

/* In two parts, the first short enough that small multiples of it are exact. */
#define LN2_HIGH 0x1.62e42fefap-1L
#define LN2_LOW 0x1.cf79abc9e3b39803f2f6af40f34326p-40L
#define HALF_PI_HIGH 0x1.921fb5444p+0L
#define HALF_PI_LOW 0x1.68c234c4c6628b80dc1cd129024e09p-39L

OWN double fmax(double a, double b)
{
	return a > b || b != b ? a : b;
}

OWN double fmin(double a, double b)
{
	return a < b || b != b ? a : b;
}

OWN double floor(double x)
{
	double t;

	if (!(x > -0x1p52 && x < 0x1p52))
		return x;
	t = (double)(int64_t)x;
	if (t == x)
		return x;
	return t > x ? t - 1 : t;
}

OWN double ceil(double x)
{
	return -floor(-x);
}

/* 2^n for -1022 <= n <= 1023. */
static double power_of_two(int n)
{
	uint64_t bits = (uint64_t)(n + 1023) << 52;
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

static int nearest(double x)
{
	return (int)(x < 0 ? x - 0.5 : x + 0.5);
}

OWN double trunc(double x)
{
	return x < 0 ? ceil(x) : floor(x);
}

/* Half goes to the even one: above 2^52 there is nothing but whole numbers. */
OWN double rint(double x)
{
	if (!(x > -0x1p52 && x < 0x1p52))
		return x;
	return x < 0 ? -((0x1p52 - x) - 0x1p52) : (0x1p52 + x) - 0x1p52;
}

/* ---- exponential and logarithm ---- */

static double exp_of(long double x)
{
	double s, even, odd, z;
	long double r;
	int k;

	if (x > 709.79L)
		return DBL_MAX * 2;	/* infinite */
	if (x < -745.2L)
		return 0;
	k = nearest((double)x * 1.4426950408889634);
	r = (x - k * LN2_HIGH) - k * LN2_LOW;
	/* exp(r) = 1 + r + r^2 * (1/2! + r/3! + r^2/4! + ...) */
	s = (double)r;
	z = s * s;
	even = 1.0 / 2 + z * (1.0 / 24 + z * (1.0 / 720 + z * (1.0 / 40320 +
		z * (1.0 / 3628800 + z * (1.0 / 479001600)))));
	odd = 1.0 / 6 + z * (1.0 / 120 + z * (1.0 / 5040 + z * (1.0 / 362880 +
		z * (1.0 / 39916800 + z * (1.0 / 6227020800)))));
	r = 1 + (r + z * (even + s * odd));
	/* Twice, since half of it is a double even where the whole is none. */
	return (double)(r * power_of_two(k / 2) * power_of_two(k - k / 2));
}

/* x > 0 and finite. */
static long double log_of(double x)
{
	double z, y, even, odd;
	long double s;
	uint64_t bits;
	int k = 0;

	if (x < DBL_MIN) {
		x *= 0x1p54;
		k = -54;
	}
	memcpy(&bits, &x, sizeof(bits));
	k += (int)(bits >> 52) - 1023;
	bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
	memcpy(&x, &bits, sizeof(x));
	if (x > 1.4142135623730951) {
		x /= 2;
		k++;
	}
	/* log(x) = 2 * (s + s^3/3 + s^5/5 + ...) */
	s = ((long double)x - 1) / ((long double)x + 1);
	z = (double)(s * s);
	y = z * z;
	even = 1.0 / 3 + y * (1.0 / 7 + y * (1.0 / 11 + y * (1.0 / 15 +
		y * (1.0 / 19 + y * (1.0 / 23)))));
	odd = 1.0 / 5 + y * (1.0 / 9 + y * (1.0 / 13 + y * (1.0 / 17 +
		y * (1.0 / 21))));
	return k * LN2_HIGH + (2 * (s + s * (z * (even + z * odd))) +
		k * LN2_LOW);
}

/* Also what does not fit a double: the rest is tiny beside it. */
static long double log_of_long(long double x)
{
	double d = (double)x;

	return log_of(d) + (x - d) / d;
}

OWN double exp(double x)
{
	return x != x ? x : exp_of(x);
}

OWN double log(double x)
{
	if (x > 0 && x <= DBL_MAX)
		return (double)log_of(x);
	if (x == 0)
		return -HUGE_VAL;
	return x > 0 || x != x ? x : (double)NAN;
}

OWN double pow(double x, double y)
{
	double size = fabs(x), half = y / 2, r;

	if (y == 0 || x == 1)
		return 1;
	if (x != x || y != y)
		return x + y;
	if (size == 1 && fabs(y) > DBL_MAX)
		return 1;
	if (size == 0 || size > DBL_MAX || fabs(y) > DBL_MAX)
		r = (size > 1) == (y > 0) ? HUGE_VAL : 0;
	else if (x < 0 && floor(y) != y)
		return (double)NAN;
	else
		r = exp_of(y * log_of(size));
	/* An odd power of what has a sign has one. */
	if (signbit(x) && fabs(y) <= DBL_MAX && floor(y) == y &&
	    floor(half) != half)
		return -r;
	return r;
}

/* Stirling's series, from 16 on; below by the recurrence.  x > 0 only. */
OWN double lgamma_r(double x, int *sign)
{
	long double y = x, product = 1, z, sum;

	*sign = 1;
	if (!(x > 0 && x < 1e300))
		return x > 0 ? (double)HUGE_VAL : (double)NAN;
	for (; y < 16; y++)
		product *= y;
	z = 1 / (y * y);
	sum = (1.0L / 12 - z * (1.0L / 360 - z * (1.0L / 1260 - z *
		(1.0L / 1680 - z * (1.0L / 1188 - z * 691 / 360360))))) / y;
	sum += 0.91893853320467274178L - y;	/* half the log of 2 pi */
	return (double)(sum + (y - 0.5L) * log_of_long(y) -
		log_of_long(product));
}

/* ---- sine and cosine; what they lose is |x| / 2^60 ---- */

static double sin_part(long double r)
{
	double z = (double)(r * r), s;

	s = -1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 +
		z * (-1.0 / 39916800 + z * (1.0 / 6227020800 +
		z * (-1.0 / 1307674368000))))));
	return (double)(r + r * (z * s));
}

static double cos_part(long double r)
{
	long double square = r * r;
	double z = (double)square, s;

	s = 1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 +
		z * (-1.0 / 3628800 + z * (1.0 / 479001600 +
		z * (-1.0 / 87178291200 + z * (1.0 / 20922789888000))))));
	return (double)(1 - (square / 2 - z * (z * s)));
}

/* Sine `quarter` quarters of a turn ahead. */
static double turn(double x, unsigned int quarter)
{
	long double r;
	double k;

	if (!(fabs(x) < 0x1p31))
		return (double)NAN;
	k = floor(x * 0.6366197723675814 + 0.5);
	r = (x - k * HALF_PI_HIGH) - k * HALF_PI_LOW;
	quarter += (unsigned int)(int64_t)k;
	x = quarter & 1 ? cos_part(r) : sin_part(r);
	return quarter & 2 ? -x : x;
}

OWN double sin(double x)
{
	return turn(x, 0);
}

OWN double cos(double x)
{
	return turn(x, 1);
}

OWN void sincos(double x, double *s, double *c)
{
	*s = turn(x, 0);
	*c = turn(x, 1);
}
