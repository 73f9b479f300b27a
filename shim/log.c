/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines; see log.h.  The formatter is our own because the C library's may
 * allocate, take locks and follow the program's locale.  Nothing here needs a
 * lock: the threshold and the file are set once, before other threads log.
 */
#include "shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

int log_threshold = LOG_WARN;

static struct {
	int fd;			/* -1: standard error */
	dev_t dev;
	ino_t ino;
	char path[512];
} out = { .fd = -1 };

/* ---- formatting ---- */

struct line {
	size_t len;
	bool cut;
	char text[LINE_MAX_BYTES];
};

static void put(struct line *l, char c)
{
	/* Room for the line end stays. */
	if (l->len + 1 < sizeof(l->text))
		l->text[l->len++] = c;
	else
		l->cut = true;
}

static void put_padded(struct line *l, const char *s, size_t len, int width,
	bool left, char pad)
{
	int fill = width - (int)len;

	while (!left && fill-- > 0)
		put(l, pad);
	while (len-- > 0) {
		/* A line stays one line, whatever names the program uses. */
		put(l, (unsigned char)*s < ' ' ? '?' : *s);
		s++;
	}
	while (left && fill-- > 0)
		put(l, ' ');
}

/* sign: what stands before the digits. */
static void put_number(struct line *l, unsigned long long v, const char *sign,
	unsigned int base, bool upper, int width, bool left, char pad)
{
	const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char buf[24];
	size_t pos = sizeof(buf);

	do {
		buf[--pos] = digits[v % base];
		v /= base;
	} while (v != 0);
	if (pad == '0') {
		for (; *sign != '\0'; sign++, width--)
			put(l, *sign);
	} else {
		pos -= strlen(sign);
		memcpy(buf + pos, sign, strlen(sign));
	}
	put_padded(l, buf + pos, sizeof(buf) - pos, width, left, pad);
}

struct spec {
	bool left;
	bool prefix;		/* 0x */
	char pad;
	int width;
	int precision;		/* -1: none */
	int longs;		/* l or z count as 1, ll as 2 */
};

static const char *read_spec(const char *p, struct spec *s, va_list *ap)
{
	*s = (struct spec){ .pad = ' ', .precision = -1 };
	for (; *p == '-' || *p == '0' || *p == '#'; p++) {
		s->left |= *p == '-';
		s->prefix |= *p == '#';
		if (*p == '0')
			s->pad = '0';
	}
	if (s->left)
		s->pad = ' ';
	if (*p == '*') {
		s->width = va_arg(*ap, int);
		p++;
	}
	for (; *p >= '0' && *p <= '9'; p++)
		s->width = s->width * 10 + (*p - '0');
	if (*p == '.') {
		s->precision = 0;
		p++;
		if (*p == '*') {
			s->precision = va_arg(*ap, int);
			p++;
		}
		for (; *p >= '0' && *p <= '9'; p++)
			s->precision = s->precision * 10 + (*p - '0');
	}
	for (; *p == 'l' || *p == 'z'; p++)
		s->longs++;
	return p;
}

static void put_format(struct line *l, const char *p, va_list *ap)
{
	struct spec s;
	unsigned long long u;
	long long d;
	const char *str;
	size_t len;
	char c;

	for (; *p != '\0'; p++) {
		if (*p != '%') {
			put(l, *p == '\n' ? ' ' : *p);
			continue;
		}
		p = read_spec(p + 1, &s, ap);
		switch (*p) {
		case '%':
			put(l, '%');
			break;
		case 'c':
			c = (char)va_arg(*ap, int);
			put_padded(l, &c, 1, s.width, s.left, ' ');
			break;
		case 's':
			str = va_arg(*ap, const char *);
			if (str == NULL)
				str = "(null)";
			len = s.precision >= 0 ?
				strnlen(str, (size_t)s.precision) : strlen(str);
			put_padded(l, str, len, s.width, s.left, ' ');
			break;
		case 'd':
		case 'i':
			d = s.longs ? va_arg(*ap, long) : va_arg(*ap, int);
			u = d < 0 ? 0 - (unsigned long long)d :
				(unsigned long long)d;
			put_number(l, u, d < 0 ? "-" : "", 10, false, s.width,
				s.left, s.pad);
			break;
		case 'u':
		case 'x':
		case 'X':
			u = s.longs ? va_arg(*ap, unsigned long) :
				va_arg(*ap, unsigned int);
			put_number(l, u, !s.prefix || u == 0 ? "" :
				*p == 'X' ? "0X" : "0x", *p == 'u' ? 10 : 16,
				*p == 'X', s.width, s.left, s.pad);
			break;
		case 'p':
			put_number(l, (uintptr_t)va_arg(*ap, void *), "0x", 16,
				false, s.width, s.left, s.pad);
			break;
		default:
			/*
			 * The size of its argument is unknown, so what
			 * follows cannot be read either.
			 */
			put(l, '%');
			for (; *p != '\0'; p++)
				put(l, *p);
			return;
		}
	}
}

static PRINTF(2, 3) void put_text(struct line *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_format(l, fmt, &ap);
	va_end(ap);
}

/* ---- writing ---- */

static int open_file(void)
{
	struct stat st;
	int fd;

	/* A pipe that nobody reads is an error, not a wait for a reader. */
	fd = open(out.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
		O_NOCTTY | O_NONBLOCK, 0644);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFL, O_APPEND);
	/* Keep clear of 0, 1 and 2: programs take those for granted. */
	if (fd <= 2) {
		int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);

		close(fd);
		if (high < 0)
			return -EMFILE;
		fd = high;
	}
	if (fstat(fd, &st) != 0) {
		close(fd);
		return -EIO;
	}
	out.dev = st.st_dev;
	out.ino = st.st_ino;
	__atomic_store_n(&out.fd, fd, __ATOMIC_RELEASE);
	return 0;
}

/*
 * A program may close descriptors it does not know and get the same number
 * for a file of its own.  Nothing of ours may go there.
 */
static int checked_fd(void)
{
	int fd = __atomic_load_n(&out.fd, __ATOMIC_ACQUIRE);
	struct stat st;

	if (fd < 0)
		return STDERR_FILENO;
	if (fstat(fd, &st) == 0 && st.st_dev == out.dev &&
			st.st_ino == out.ino)
		return fd;
	return open_file() == 0 ? out.fd : -1;
}

/* A reader that has gone away must not kill the program. */
static void write_quietly(int fd, const char *text, size_t len)
{
	const struct timespec no_time = { 0, 0 };
	sigset_t pipe_set, old, pending;
	bool was_pending;
	ssize_t n;
	int tries = 0;

	sigemptyset(&pipe_set);
	sigaddset(&pipe_set, SIGPIPE);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	if (pthread_sigmask(SIG_BLOCK, &pipe_set, &old) != 0)
		return;
	do
		n = write(fd, text, len);
	while (n < 0 && errno == EINTR && tries++ < 8);
	if (n < 0 && errno == EPIPE && !was_pending)
		sigtimedwait(&pipe_set, NULL, &no_time);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int log_open(enum log_level level, const char *file)
{
	size_t len = file != NULL ? strlen(file) : 0;
	int old = out.fd, err = 0;

	log_threshold = (int)level;
	if (len >= sizeof(out.path))
		return -ENAMETOOLONG;
	out.fd = -1;
	if (len != 0) {
		memcpy(out.path, file, len + 1);
		err = open_file();
	}
	if (old >= 0)
		close(old);
	return err;
}

void log_write(enum log_level level, const char *fmt, ...)
{
	static const char letters[] = "EWID";
	int save = errno, fd;
	struct line l;
	va_list ap;

	l.len = 0;
	l.cut = false;
	put_text(&l, "ballast[%d:%d] %c: ", (int)getpid(), (int)gettid(),
		letters[level]);
	va_start(ap, fmt);
	put_format(&l, fmt, &ap);
	va_end(ap);
	if (l.cut)
		memcpy(l.text + l.len - 3, "...", 3);
	l.text[l.len++] = '\n';
	fd = checked_fd();
	if (fd >= 0)
		write_quietly(fd, l.text, l.len);
	errno = save;
}
