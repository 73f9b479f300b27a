/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts without a plan, one for each policy: who stays on the GPU, how large
 * the pool is, which tenant makes way.  They are also what plans are measured
 * against.  The functions of layouts are called with pool_lock held.
 */
#include "shim/conf.h"
#include "shim/host.h"
#include "shim/log.h"
#include "shim/pool_int.h"

/* The program's wish, or `otherwise`. */
static uint64_t pool_wanted(uint64_t otherwise)
{
	return conf.pool != CONF_AUTO ? conf.pool : otherwise;
}

static uint32_t any_slot(const struct device *d, uint32_t page)
{
	return SLOT_ANY;
}

static bool stays(const struct device *d, uint32_t page)
{
	return true;
}

static bool passes(const struct device *d, uint32_t page)
{
	return false;
}

/* ---- on demand ---- */

static uint64_t on_demand_pool(const struct device *d)
{
	return pool_wanted(d->budget_most / 4);
}

const struct layout layout_on_demand = {
	.name = "on demand",
	.pool_bytes = on_demand_pool,
	.slot_of = any_slot,
	.stays = stays,
	.order = ORDER_SECOND_CHANCE,
};

/* ---- first come, first served ---- */

/* As small as pool_target() has it; it grows by what one call needs. */
static uint64_t first_fit_pool(const struct device *d)
{
	return pool_wanted(0);
}

static const struct layout layout_first_fit = {
	.name = "first fit",
	.pool_bytes = first_fit_pool,
	.slot_of = any_slot,
	.stays = stays,
	.order = ORDER_RING,
};

/* ---- a cache ---- */

/* All there is; less when the program's own allocations needed some. */
static uint64_t lru_pool(const struct device *d)
{
	return d->budget;
}

static const struct layout layout_lru = {
	.name = "least recently used",
	.pool_bytes = lru_pool,
	.slot_of = any_slot,
	.stays = passes,
	.order = ORDER_LRU,
};

/* ---- host memory in place ---- */

/* For residents that had to make way for the program's own allocations. */
static const struct layout layout_zero_copy = {
	.name = "zero copy",
	.pool_bytes = first_fit_pool,
	.slot_of = any_slot,
	.stays = stays,
	.order = ORDER_RING,
	.host = true,
};

static const struct layout *zero_copy(struct device *d)
{
	const char *why = host_start(d, d->window);

	if (why == NULL)
		return &layout_zero_copy;
	log_warn("device %d cannot do policy = zero-copy: %s; data is moved on "
		"demand", d->ordinal, why);
	return &layout_on_demand;
}

const struct layout *policy_layout(struct device *d)
{
	switch ((enum conf_policy)conf.policy) {
	case POLICY_LRU:
		return &layout_lru;
	case POLICY_FIRST_FIT:
		return &layout_first_fit;
	case POLICY_ZERO_COPY:
		return zero_copy(d);
	case POLICY_PLAN:
	case POLICY_ON_DEMAND:
		break;
	}
	return &layout_on_demand;
}
