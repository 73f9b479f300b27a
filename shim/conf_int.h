/* SPDX-License-Identifier: Apache-2.0 */
/* What conf.c and conf_value.c share. */
#ifndef BALLAST_CONF_INT_H
#define BALLAST_CONF_INT_H

#include <ctype.h>

#define CONF_KEY_MAX 64

static inline const char *conf_skip_space(const char *s)
{
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

#endif
