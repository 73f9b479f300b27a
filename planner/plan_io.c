/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles and plans from and to files.  The only file of planner/ that opens
 * any.  Called by the tools and by the library's own thread; no locks.
 */
#include "planner/plan_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_fail(struct plan_io *io, const char *what, const char *path,
	int err)
{
	snprintf(io->error, sizeof(io->error), "cannot %s %.300s: %s", what,
		path, strerror(err));
	return -err;
}

int plan_io_load(struct plan_io *io, const char *path, char **text,
	size_t *len)
{
	bool is_stdin = !io->guest && !strcmp(path, "-");
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC |
		O_NOCTTY | (io->guest ? O_NONBLOCK : 0)), err = 0;
	size_t room = 1 << 16, n = 0;
	char *data = NULL, *more;
	ssize_t got = 1;

	if (fd < 0)
		return io_fail(io, "open", path, errno);
	while (!err && got > 0) {
		if (!data || n + 1 == room) {
			room = data ? 2 * room : room;
			more = n < PLAN_IO_MAX_BYTES ? realloc(data, room) :
				NULL;
			if (!more) {
				err = data ? EFBIG : ENOMEM;
				break;
			}
			data = more;
		}
		got = read(fd, data + n, room - n - 1);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			err = errno;
		else
			n += (size_t)got;
	}
	if (!is_stdin)
		close(fd);
	if (err) {
		free(data);
		return io_fail(io, "read", path, err);
	}
	data[n] = '\0';
	*text = data;
	*len = n;
	return 0;
}

int plan_io_save(struct plan_io *io, const char *path, const char *text)
{
	char *tmp = malloc(strlen(path) + 8);
	size_t len = strlen(text), n = 0;
	struct stat st;
	int fd, err = 0;
	ssize_t got;

	if (!tmp)
		return io_fail(io, "write", path, ENOMEM);
	sprintf(tmp, "%s.XXXXXX", path);
	/* Devices and pipes are written to as they are. */
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		*tmp = '\0';
		fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY |
			(io->guest ? O_NONBLOCK : 0));
		/* There is a reader: it may take its time. */
		if (fd >= 0)
			fcntl(fd, F_SETFL, 0);
	} else {
		fd = mkostemp(tmp, O_CLOEXEC);
	}
	if (fd < 0) {
		err = errno;
		free(tmp);
		return io_fail(io, "write", path, err);
	}
	while (!err && n < len) {
		got = write(fd, text + n, len - n);
		if (got < 0 && errno != EINTR)
			err = errno;
		n += got > 0 ? (size_t)got : 0;
	}
	/* What an editor would have made. */
	if (!err && *tmp && fchmod(fd, stat(path, &st) == 0 ?
				   st.st_mode & 0777 : 0644))
		err = errno;
	if (close(fd) && !err)
		err = errno;
	if (!err && *tmp && rename(tmp, path))
		err = errno;
	if (err && *tmp)
		unlink(tmp);
	free(tmp);
	return err ? io_fail(io, "write", path, err) : 0;
}
