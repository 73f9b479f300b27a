/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another interposer, preloaded before or behind Ballast: wraps cuInit, finds
 * the next one by RTLD_NEXT and writes where that is to the file INTERPOSED.
 */
#include <fcntl.h>
#include <unistd.h>

#include "test/dispatch/dispatch.h"

__attribute__((visibility("default"))) int cuInit(unsigned int flags);

int cuInit(unsigned int flags)
{
	int (*next)(unsigned int) =
		(int (*)(unsigned int))dlsym(RTLD_NEXT, "cuInit");
	const char *home = home_of((void *)next);
	int fd = open(getenv("INTERPOSED"), O_WRONLY | O_CREAT | O_APPEND, 0600);

	CHECK(next != NULL && next != cuInit, "nothing behind");
	dprintf(fd, "%s\n", home);
	close(fd);
	return next(flags);
}
