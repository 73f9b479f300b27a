/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles and plans of a running program as files (ballast-files(5)), and the
 * strategy that the configuration names.  Called by phase.c and phase_plan.c,
 * which own the orders; no lock of its own.
 */
#ifndef BALLAST_PHASE_FILE_H
#define BALLAST_PHASE_FILE_H

#include "shim/phase_int.h"

/* The key `strategy`; NULL: o.message (PLAN_MESSAGE bytes) says why not. */
const struct plan_strategy *file_strategy(struct plan_params *params,
	char *message);

/* Whether any of these files is in use. */
bool file_keys(void);
/* Whether profiles are wanted also where everything fits. */
bool file_wants_profile(void);

/*
 * What only the program's threads can ask: the device's name, where tensors
 * lie.  No lock of tenancy is held.
 */
void file_describe(struct plan_order *o, struct device *d);

/* On the planning thread. */
void file_save_profile(const struct plan_order *o);
void file_save_plan(const struct plan_order *o);
/*
 * The plan of the key plan_in, if it is for the order's profile: o->result and
 * the rest of what planning gives.  false: there is none, or it is refused, and
 * the log has the reason.
 */
bool file_take_plan(struct plan_order *o);

/* The file of plan_in, to be known again in the program's memory. */
struct file_plan;

/* NULL: no such key, no such file, or it tells no places (logged). */
struct file_plan *file_open(const struct device *d);
void file_close(struct file_plan *f);	/* NULL is fine */

enum file_match {
	FILE_MATCHES,	/* *out is an order, done */
	FILE_LATER,	/* not all of the program's memory is there yet */
	FILE_REFUSED,	/* logged */
};

/* No lock held.  After FILE_MATCHES only file_close() is left for f. */
enum file_match file_match(struct file_plan *f, struct device *d,
	struct plan_order **out);

#endif
