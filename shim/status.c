/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's side of the launcher's status page (status.h).  Called by init
 * and the state modules, from any thread; no lock, see there.  After a fork
 * the mapping is shared with the parent, and the child stays silent because
 * Ballast is passive in it.
 */
#include "shim/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(sizeof(struct status_failure) == 104, "shared layout");
_Static_assert(sizeof(struct launch_status) == 40 + 4 * STATUS_PIDS + 128 +
	112 * STATUS_FAILURES + 8, "shared layout");

static struct launch_status *page;	/* mapped, or NULL */
static bool counted_active, counted_managed;

/*
 * The file behind /proc/<pid>/fd/<fd> is looked at before it is opened for
 * real: the launcher may be gone, its number reused, and opening a device or
 * a pipe of a stranger could have effects.
 */
static int status_fd(unsigned int pid, int fd)
{
	char path[64];
	struct stat st;
	int look, err, real_fd = -1;

	snprintf(path, sizeof(path), "/proc/%u/fd/%d", pid, fd);
	look = open(path, O_PATH | O_CLOEXEC);
	if (look < 0)
		return -errno;
	if (fstat(look, &st) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid() ||
	    st.st_size != (off_t)sizeof(struct launch_status)) {
		close(look);
		return -EBADF;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", look);
	real_fd = open(path, O_RDWR | O_CLOEXEC);
	err = errno;
	close(look);
	if (real_fd < 0)
		return -err;
	/* Only a file that cannot shrink is safe to keep mapped. */
	err = fcntl(real_fd, F_GET_SEALS);
	if (err < 0 || !(err & F_SEAL_SHRINK)) {
		close(real_fd);
		return -EBADF;
	}
	return real_fd;
}

static int status_map(void)
{
	const char *text = getenv(STATUS_ENV);
	struct launch_status *p, *none = NULL;
	unsigned int pid;
	uint64_t nonce;
	int fd, end = 0;

	if (!text || !*text)
		return -ENOENT;
	if (sscanf(text, "%u:%d:%" SCNx64 "%n", &pid, &fd, &nonce, &end) != 3 ||
	    text[end] != '\0')
		return -EINVAL;
	fd = status_fd(pid, fd);
	if (fd < 0)
		return fd;
	p = mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return -ENOMEM;
	if (p->magic != STATUS_MAGIC || p->version != STATUS_VERSION ||
	    p->size != sizeof(*p) || p->nonce != nonce) {
		munmap(p, sizeof(*p));
		return -EBADF;
	}
	if (!__atomic_compare_exchange_n(&page, &none, p, false,
	    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		munmap(p, sizeof(*p));	/* another thread was first */
	return 0;
}

int status_open(void)
{
	int saved = errno, r = 0;

	if (!__atomic_load_n(&page, __ATOMIC_ACQUIRE))
		r = status_map();
	errno = saved;
	return r;
}

void status_close(void)
{
	struct launch_status *p;

	p = __atomic_exchange_n(&page, NULL, __ATOMIC_ACQ_REL);
	if (p)
		munmap(p, sizeof(*p));
	counted_active = counted_managed = false;
}

static struct launch_status *status_page(void)
{
	(void)!status_open();
	return __atomic_load_n(&page, __ATOMIC_ACQUIRE);
}

static void status_copy(char *to, const char *from, size_t size)
{
	size_t len = strnlen(from, size - 1);

	memcpy(to, from, len);
	to[len] = '\0';
}

void status_set_active(void)
{
	struct launch_status *p;
	uint32_t n;

	if (__atomic_exchange_n(&counted_active, true, __ATOMIC_RELAXED))
		return;
	p = status_page();
	if (!p)
		return;
	n = __atomic_fetch_add(&p->nr_active, 1, __ATOMIC_RELAXED);
	if (n < STATUS_PIDS)
		__atomic_store_n(&p->pids[n], (uint32_t)getpid(),
			__ATOMIC_RELEASE);
}

void status_set_passive(const char *why)
{
	struct launch_status *p = status_page();

	if (!p)
		return;
	status_copy(p->passive_why, why, sizeof(p->passive_why));
	__atomic_fetch_add(&p->nr_passive, 1, __ATOMIC_RELEASE);
}

bool status_keeps_stats(void)
{
	const struct launch_status *p = status_page();

	return p != NULL && __atomic_load_n(&p->keep_stats, __ATOMIC_RELAXED);
}

void status_note_managed(void)
{
	struct launch_status *p;

	if (likely(__atomic_load_n(&counted_managed, __ATOMIC_RELAXED)) ||
	    __atomic_exchange_n(&counted_managed, true, __ATOMIC_RELAXED))
		return;
	p = status_page();
	if (p)
		__atomic_fetch_add(&p->nr_managed, 1, __ATOMIC_RELAXED);
}

void status_note_failure(const struct status_failure *f)
{
	struct launch_status *p = status_page();
	struct status_record *r;
	uint32_t n, old;

	if (!p)
		return;
	n = __atomic_fetch_add(&p->nr_failures, 1, __ATOMIC_RELAXED);
	r = &p->records[n % STATUS_FAILURES];
	old = __atomic_load_n(&r->seq, __ATOMIC_RELAXED);
	/* Somebody is writing this one: there are enough others. */
	if (old == STATUS_BUSY || !__atomic_compare_exchange_n(&r->seq, &old,
	    STATUS_BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	r->pid = (uint32_t)getpid();
	r->failure = *f;
	r->failure.call[sizeof(f->call) - 1] = '\0';
	r->failure.key[sizeof(f->key) - 1] = '\0';
	__atomic_store_n(&r->seq, n + 1, __ATOMIC_RELEASE);
}
