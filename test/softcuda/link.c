/* SPDX-License-Identifier: Apache-2.0 */
/* Two kinds of users of one link, see link.h. */
#include "test/softcuda/link.h"

#include <utlist.h>

#include "test/softcuda/sim.h"

#define MAX_DEVICES 8

static struct op *users[MAX_DEVICES];

static bool uses_link(const struct op *op)
{
	return op->link.demand[LINK_IN] > 0 || op->link.demand[LINK_OUT] > 0;
}

static bool is_kernel(const struct op *op)
{
	return op->type->engine == ENGINE_COMPUTE;
}

static double at_least(double a, double b)
{
	return a > b ? a : b;
}

/* What part of their demand in one direction kernels and copies get. */
static void shares(const struct op *list, enum link_direction way,
	double *kernels, double *copies)
{
	double k = 0, c = 0;
	const struct op *op;

	for (op = list; op; op = op->link.next)
		*(is_kernel(op) ? &k : &c) += op->link.demand[way];
	if (c > 1)
		c = 1;		/* they overlap and share already */
	*kernels = *copies = 1;
	if (k + c <= 1)
		return;
	if (k > at_least(0.5, 1 - c))
		*kernels = at_least(0.5, 1 - c) / k;
	*copies = (1 - k * *kernels) / c;
}

/* What is left of an operation takes as much longer. */
static void set_speed(struct op *op, double speed)
{
	uint64_t now = sim_now();

	if (speed == op->link.speed)
		return;
	op->end_ns = now + (uint64_t)((double)(op->end_ns - now) *
		op->link.speed / speed);
	op->link.speed = speed;
}

static void settle(struct op *list)
{
	double kernels[NR_LINK_DIRECTIONS], copies[NR_LINK_DIRECTIONS], speed;
	struct op *op;
	int way;

	for (way = 0; way < NR_LINK_DIRECTIONS; way++)
		shares(list, way, &kernels[way], &copies[way]);
	for (op = list; op; op = op->link.next) {
		speed = 1;
		for (way = 0; way < NR_LINK_DIRECTIONS; way++) {
			double part = is_kernel(op) ? kernels[way]
				: copies[way];

			if (op->link.demand[way] > 0 && part < speed)
				speed = part;
		}
		set_speed(op, speed);
	}
}

void link_join(struct op *op)
{
	if (!uses_link(op))
		return;
	op->link.speed = 1;
	LL_PREPEND2(users[op->device], op, link.next);
	settle(users[op->device]);
}

void link_leave(struct op *op)
{
	if (!uses_link(op))
		return;
	LL_DELETE2(users[op->device], op, link.next);
	settle(users[op->device]);
}
