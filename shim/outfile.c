/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See outfile.h.  Called by the planning thread and at exit.
 */
#include "shim/outfile.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "planner/plan_io.h"
#include "shim/conf.h"
#include "shim/log.h"

bool outfile_name(const char *pattern, int device, char *buf, size_t size)
{
	size_t n = 0;
	int more;

	for (const char *c = pattern; *c != '\0'; c++) {
		if (c[0] == '%' && (c[1] == 'p' || c[1] == 'd')) {
			more = snprintf(buf + n, size - n, "%d",
				c[1] == 'p' ? (int)getpid() : device);
			c++;
		} else {
			c += c[0] == '%' && c[1] == '%';
			more = snprintf(buf + n, size - n, "%c", *c);
		}
		if (more < 0 || (size_t)more >= size - n)
			return false;
		n += (size_t)more;
	}
	return n > 0;
}

void outfile_save(const char *key, const char *pattern, int device, char *text)
{
	char path[CONF_TEXT_MAX + 32];
	struct plan_io io = { .guest = true };

	if (text == NULL)
		log_warn("%s: no memory for the file", key);
	else if (!outfile_name(pattern, device, path, sizeof(path)))
		log_warn("%s: the file's name is too long", key);
	else if (plan_io_save(&io, path, text) != 0)
		log_warn("%s: %s", key, io.error);
	else
		log_info("%s: %s", key, path);
	free(text);
}
