/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that grows, with JSON's strings and numbers.  Used by the writers of
 * files and by the tools; each text belongs to one thread.
 */
#ifndef BALLAST_PLANNER_PLAN_TEXT_H
#define BALLAST_PLANNER_PLAN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as zeroes. */
struct plan_text {
	char *data;	/* owned; NULL, or zero-terminated */
	size_t len, room;
	bool failed;	/* out of memory: the rest is dropped */
};

void plan_text_put(struct plan_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* In quotes. */
void plan_text_string(struct plan_text *t, const char *s);
/* The shortest that reads back as the same; null if not finite. */
void plan_text_real(struct plan_text *t, double v);
/* The text, which the caller frees; NULL if anything failed. */
char *plan_text_take(struct plan_text *t);

#endif
