/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of several processes, see ipcevent.h.  Their clocks have nothing in
 * common: a wait ends when the other process's simulation has come to the
 * record, which a thread of the driver sees to there.  Where two processes
 * record one event, the later record stands for both.
 */
#include "test/softcuda/ipcevent.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"
#include "test/softcuda/object.h"

#define MAGIC "softcuda event"

struct page {
	uint64_t recorded, done;	/* atomic */
};

struct ipc_event {
	unsigned refs;
	int fd;
	uint64_t file;
	struct page *page;
};

struct handle {
	char magic[16];
	int pid, fd;
	uint64_t file;
};

struct ipc_op {
	struct op op;
	struct ipc_event *event;	/* counted */
	uint64_t number;
	struct ipc_op *next;		/* among those that are watched */
};

/* Takes the descriptor. */
static struct ipc_event *make(int fd)
{
	struct ipc_event *e = object_alloc(sizeof(*e));
	struct stat st;

	e->refs = 1;
	e->fd = fd;
	e->page = MAP_FAILED;
	if (fd >= 0 && !fstat(fd, &st)
	    && st.st_size >= (off_t)sizeof(*e->page)) {
		e->file = st.st_ino;
		e->page = mmap(NULL, sizeof(*e->page), PROT_READ | PROT_WRITE,
			MAP_SHARED, fd, 0);
	}
	if (e->page != MAP_FAILED)
		return e;
	if (fd >= 0)
		close(fd);
	free(e);
	return NULL;
}

struct ipc_event *ipc_event_create(void)
{
	int fd = memfd_create("softcuda-event", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, sizeof(struct page))) {
		close(fd);
		fd = -1;
	}
	return make(fd);
}

void ipc_event_get(struct ipc_event *e)
{
	e->refs++;
}

void ipc_event_put(struct ipc_event *e)
{
	if (!e || --e->refs)
		return;
	munmap(e->page, sizeof(*e->page));
	close(e->fd);
	free(e);
}

void ipc_event_handle(const struct ipc_event *e, CUipcEventHandle *out)
{
	struct handle h = {
		.magic = MAGIC, .pid = getpid(), .fd = e->fd, .file = e->file,
	};

	memset(out, 0, sizeof(*out));
	memcpy(out, &h, sizeof(h));
}

struct ipc_event *ipc_event_open(const CUipcEventHandle *handle, CUresult *r)
{
	struct ipc_event *e;
	struct handle h;
	char path[64];

	memcpy(&h, handle, sizeof(h));
	*r = CUDA_ERROR_INVALID_HANDLE;
	if (memcmp(h.magic, MAGIC, sizeof(MAGIC)))
		return NULL;
	/* Not within the process that it comes from. */
	if (h.pid == getpid()) {
		*r = CUDA_ERROR_INVALID_CONTEXT;
		return NULL;
	}
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h.pid, h.fd);
	e = make(open(path, O_RDWR | O_CLOEXEC));
	if (e && e->file == h.file)
		return e;
	ipc_event_put(e);
	return NULL;
}

uint64_t ipc_event_latest(const struct ipc_event *e)
{
	return __atomic_load_n(&e->page->recorded, __ATOMIC_ACQUIRE);
}

bool ipc_event_reached(const struct ipc_event *e, uint64_t number)
{
	return __atomic_load_n(&e->page->done, __ATOMIC_ACQUIRE) >= number;
}

static void release(struct op *op)
{
	ipc_event_put(((struct ipc_op *)op)->event);
}

/* Numbers only grow. */
static void reach(struct op *op)
{
	struct ipc_op *o = (struct ipc_op *)op;
	uint64_t *done = &o->event->page->done;
	uint64_t was = __atomic_load_n(done, __ATOMIC_ACQUIRE);

	while (was < o->number && !__atomic_compare_exchange_n(done, &was,
	       o->number, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		continue;
}

static bool has_come(struct op *op)
{
	const struct ipc_op *o = (const struct ipc_op *)op;

	return op->context->error || ipc_event_reached(o->event, o->number);
}

static const struct op_type record_type = {
	.name = "record", .engine = ENGINE_NONE, .finish = reach,
	.release = release,
};
static const struct op_type wait_type = {
	.name = "wait for another process", .engine = ENGINE_NONE,
	.may_end = has_come, .release = release,
};

static struct op *op_of(const struct op_type *type, struct ipc_event *e,
	uint64_t number)
{
	struct ipc_op *o = (struct ipc_op *)op_create(type, sizeof(*o));

	ipc_event_get(e);
	o->event = e;
	o->number = number;
	return &o->op;
}

struct op *ipc_event_record(struct ipc_event *e, uint64_t *number)
{
	*number = __atomic_add_fetch(&e->page->recorded, 1, __ATOMIC_ACQ_REL);
	return op_of(&record_type, e, *number);
}

struct op *ipc_event_wait(struct ipc_event *e, uint64_t number)
{
	return op_of(&wait_type, e, number);
}

/* ---- the thread that sees to it ------------------------------------------------ */

static struct ipc_op *watched, **last = &watched;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static bool has_thread;

static void *run(void *unused)
{
	struct ipc_op *o;

	call_forbid();
	call_lock();
	for (;;) {
		while (!(o = watched))
			call_wait(&more, 0);
		watched = o->next;
		if (!watched)
			last = &watched;
		sim_wait(&o->op);
		op_put(&o->op);
	}
	return unused;
}

/* Signals are for the program's own threads. */
static void start_thread(void)
{
	sigset_t all, old;
	pthread_t t;

	if (has_thread)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	has_thread = !pthread_create(&t, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (has_thread)
		pthread_detach(t);
}

void ipc_event_watch(struct op *record)
{
	struct ipc_op *o = (struct ipc_op *)record;

	start_thread();
	op_get(record);
	o->next = NULL;
	*last = o;
	last = &o->next;
	pthread_cond_signal(&more);
}
