/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is when slots are short.  A call that needs nearly the whole
 * pool would wait for ever while smaller ones take what is given back, and the
 * thread that has just given it back is the first to come again.  So one that
 * must wait puts itself first, and others that need slots let it pass; not for
 * longer than a tenth of wait_ms, since what it waits for may itself wait for
 * them.  Called by pool.c; guarded by pool_lock.
 */
#include "shim/conf.h"
#include "shim/tenancy_int.h"

uint64_t turn_patience(void)
{
	return lock_now_ns() + conf.wait_ms * 100000ull;
}

bool turn_yield(struct device *d, uint64_t ticket, uint64_t deadline)
{
	const struct tenancy *t = d->tenancy;

#if defined(MUTANT) && MUTANT == 4
	return false;
#endif
	return t->first != 0 && t->first != ticket &&
		lock_wait(&d->pool_lock, &d->pool_cond, deadline);
}

void turn_first(struct device *d, uint64_t *ticket)
{
	struct tenancy *t = d->tenancy;

	if (*ticket == 0)
		*ticket = ++t->tickets;
	if (t->first == 0)
		t->first = *ticket;
}

void turn_end(struct device *d, uint64_t ticket)
{
	struct tenancy *t = d->tenancy;

	if (ticket == 0 || t->first != ticket)
		return;
	t->first = 0;
	pthread_cond_broadcast(&d->pool_cond);
}
