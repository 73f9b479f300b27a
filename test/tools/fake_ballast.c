/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libballast.so in the launcher's tests: at start it does what
 * the variables FAKE_* ask for, so that the launcher can be tested without a
 * GPU and without the real library's decisions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/stats.h"
#include "shim/status.h"

static int asked_for(const char *name)
{
	const char *value = getenv(name);

	/* FAKE_PROGRAM limits it to one program of those that are started. */
	return value && (!getenv("FAKE_PROGRAM") ||
		strcmp(getenv("FAKE_PROGRAM"),
			program_invocation_short_name) == 0);
}

__attribute__((constructor)) static void fake_start(void)
{
	struct status_failure f = {
		.request = 512ull << 20,
		.gpu_used = 60ull << 20,
		.gpu_budget = 64ull << 20,
		.arena_used = 1ull << 30,
		.arena_capacity = 1ull << 30,
		.call = "cuMemAlloc",
		.key = "arena",
	};
	int i, n;

	if (asked_for("FAKE_ACTIVE"))
		status_set_active();
	if (asked_for("FAKE_PASSIVE"))
		status_set_passive(getenv("FAKE_PASSIVE"));
	if (asked_for("FAKE_MANAGED"))
		status_note_managed();
	if (asked_for("FAKE_FAILURES")) {
		n = atoi(getenv("FAKE_FAILURES"));
		for (i = 1; i <= n; i++) {
			f.request = (uint64_t)i << 20;
			if (getenv("FAKE_KEY"))
				snprintf(f.key, sizeof(f.key), "%s",
					getenv("FAKE_KEY"));
			status_note_failure(&f);
		}
	}
	if (asked_for("FAKE_STATS")) {
		stats_create();
		stat_set(gpu_total, 64ull << 20);
		stat_set(fetches, 12345);
		stat_set(wait_ns, 1234567890);
	}
}
