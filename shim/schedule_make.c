/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule's memory.  Called by who makes one and who puts it into force.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/schedule.h"

struct schedule *schedule_create(uint32_t nr_units)
{
	struct schedule *sc = calloc(1, sizeof(*sc));
	void *units;

	if (sc == NULL)
		return NULL;
	if (posix_memalign(&units, CACHE_LINE, ((size_t)nr_units + 1) *
	    sizeof(*sc->units)) != 0)
		units = NULL;
	sc->units = units;
	if (sc->units == NULL) {
		schedule_destroy(sc);
		return NULL;
	}
	memset(sc->units, 0, ((size_t)nr_units + 1) * sizeof(*sc->units));
	sc->nr_units = nr_units;
	for (uint32_t i = 0; i < nr_units; i++)
		sc->units[i].index = i;
	return sc;
}

void schedule_destroy(struct schedule *sc)
{
	if (sc == NULL)
		return;
	for (uint32_t i = 0; sc->units != NULL && i < sc->nr_units; i++) {
		event_put(sc->units[i].ready);
		free(sc->units[i].pages);
		free(sc->units[i].slots);
	}
	free(sc->units);
	free(sc->pieces);
	visits_fini(&sc->visits);
	free(sc);
}
