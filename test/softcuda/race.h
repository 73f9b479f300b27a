/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The race detector: vector clocks for what is ordered, shadow state over
 * physical bytes for what was touched.  Actors are streams and host threads;
 * because the driver cannot see how host threads synchronise, they are one
 * actor unless SOFTCUDA_RACE=2.  Guarded by the driver's lock.
 */
#ifndef SOFTCUDA_RACE_H
#define SOFTCUDA_RACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shadow;
struct race_stamp;

struct race_clock {
	uint32_t len;
	uint32_t *tick;		/* owned; by actor */
};

void race_clock_join(struct race_clock *into, const struct race_clock *from);
void race_clock_free(struct race_clock *c);

/* A new actor's number; its clock counts on where a former owner stopped. */
uint32_t race_actor_get(void);
void race_actor_put(uint32_t actor);
/* One step further on the actor's own component of `c`; returns the tick. */
uint32_t race_step(uint32_t actor, struct race_clock *c);

/* Whom a report names. */
struct race_who {
	uint32_t actor;
	uint32_t tick;
	const struct race_clock *clock;	/* borrowed */
	uint64_t op;			/* number of the operation */
	uint64_t stream;
	uint64_t when;			/* virtual time of the access */
	const char *what;		/* "kernel matvec"; copied */
};

/* One per operation that touches memory; counted. */
struct race_stamp *race_stamp_create(const struct race_who *who);
void race_stamp_put(struct race_stamp *s);

/*
 * `stamp` with clock `c` reads or writes bytes of the object behind *shadow,
 * which is made when it is NULL.  `where` is an address for the report.
 */
void race_access(struct shadow **shadow, uint64_t offset, uint64_t size,
	bool write, struct race_stamp *stamp, const struct race_clock *c,
	uint64_t where);

/* A kernel's accesses are collected first and checked when it has run. */
void race_touch(struct shadow **shadow, uint64_t offset, uint64_t size,
	bool write, uint64_t where);
void race_touch_done(struct race_stamp *stamp, const struct race_clock *c);

/* 1 + when an operation last wrote any of these bytes, 0 if none ever did. */
uint64_t race_last_write(const struct shadow *shadow, uint64_t offset,
	uint64_t size);

/*
 * Whoever has clock `c` has seen the values that stand there: it is ordered
 * after those who wrote them.  The bytes lie within one aligned word.
 */
void race_acquire(const struct shadow *shadow, uint64_t offset, uint64_t size,
	struct race_clock *c);

/* The bytes got a new life: nothing earlier counts. */
void race_forget(struct shadow *shadow, uint64_t offset, uint64_t size);
void race_shadow_free(struct shadow *shadow);

#endif
