/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When Ballast begins, stays out and ends; see init.h.  init_lock guards the
 * step of the activation, never its work: start() calls the driver.
 */
#include "shim/init.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "shim/conf.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/stats.h"
#include "shim/status.h"

#define MAX_AT_EXIT 8
/* Longer than any start(); then a second thread goes on without Ballast. */
#define ACTIVATE_WAIT_NS (10ull * 1000000000)

int init_state_now;
__thread int init_depth;

static struct lock init_lock = LOCK_INITIALIZER(LOCK_INIT, "init");
static pthread_cond_t init_cond;

enum step { STEP_NONE, STEP_RUNNING, STEP_DONE };
static int step;		/* written under init_lock */
static pid_t active_pid;	/* 0: never active, or a forked child */

static void (*at_exit[MAX_AT_EXIT])(void);
static int nr_at_exit;

static void set_state(enum init_state s)
{
	__atomic_store_n(&init_state_now, (int)s, __ATOMIC_RELEASE);
}

/*
 * The driver's state does not survive a fork, and files and page are the
 * parent's.  Only stores here: other threads' locks may be held for ever.
 */
static void in_child(void)
{
	set_state(INIT_PASSIVE);
	__atomic_store_n(&step, STEP_DONE, __ATOMIC_RELEASE);
	active_pid = 0;
	log_threshold = -1;
	stats_detach();
}

static void say_complaint(void *arg, const char *origin, const char *text)
{
	log_warn("%s: %s", origin, text);
}

/* NULL, or why Ballast stays out. */
static const char *configure(void)
{
	struct conf again;
	int complaints, err;

	complaints = conf_load(&conf, NULL, NULL, NULL);
	/* Before the log is opened: switched off means no trace at all. */
	if (!conf.enabled)
		return "switched off by enabled = false";
	err = log_open((enum log_level)conf.log_level, conf.log_file.text);
	if (err != 0)
		log_warn("log_file: cannot open %s: %s; using standard error",
			conf.log_file.text, strerror(-err));
	/* A second time, now that there is a log to complain to. */
	if (complaints > 0)
		conf_load(&again, NULL, say_complaint, NULL);
	if (complaints > 0 && conf.strict) {
		log_err("strict: %d configuration errors; Ballast stays inert",
			complaints);
		return "strict, and the configuration has errors";
	}
	return NULL;
}

static void activate(bool (*start)(void))
{
	const char *why = configure();
	bool started;
	int err;

	if (why != NULL) {
		status_set_passive(why);
		set_state(INIT_PASSIVE);
		return;
	}
	active_pid = getpid();
	pthread_atfork(NULL, NULL, in_child);
	if (conf.stats) {
		err = stats_create();
		if (err != 0)
			log_warn("no statistics page: %s", strerror(-err));
	}
	init_enter();
	started = start();
	init_leave();
	if (started) {
		status_set_active();
		set_state(INIT_ACTIVE);
	} else {
		status_set_passive("it cannot work with this driver");
		set_state(INIT_PASSIVE);
		stats_destroy();
	}
}

void init_activate(bool (*start)(void))
{
	uint64_t deadline;
	bool mine;

	/* From start() itself, through a driver that calls its own exports. */
	if (__atomic_load_n(&step, __ATOMIC_ACQUIRE) == STEP_DONE ||
			init_depth > 0)
		return;
	lock_acquire(&init_lock);
	mine = step == STEP_NONE;
	if (mine) {
		cond_init(&init_cond);
		__atomic_store_n(&step, STEP_RUNNING, __ATOMIC_RELAXED);
	}
	deadline = lock_now_ns() + ACTIVATE_WAIT_NS;
	while (!mine && step == STEP_RUNNING)
		if (!lock_wait(&init_lock, &init_cond, deadline))
			break;
	lock_release(&init_lock);
	if (!mine)
		return;
	activate(start);
	lock_acquire(&init_lock);
	__atomic_store_n(&step, STEP_DONE, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&init_cond);
	lock_release(&init_lock);
}

void init_passive(const char *why)
{
	int old = __atomic_exchange_n(&init_state_now, INIT_PASSIVE,
		__ATOMIC_ACQ_REL);

	if (old == INIT_PASSIVE)
		return;
	log_warn("passive from now on: %s", why);
	status_set_passive(why);
}

void init_at_exit(void (*fn)(void))
{
	int nr = __atomic_fetch_add(&nr_at_exit, 1, __ATOMIC_RELAXED);

	if (nr < MAX_AT_EXIT)
		__atomic_store_n(&at_exit[nr], fn, __ATOMIC_RELEASE);
	else
		log_err("too many exit functions");
}

/*
 * After the program's atexit handlers, where a CUDA runtime unloads.  Other
 * threads and later destructors may still call the driver through us, so
 * nothing is taken down.
 */
static __attribute__((destructor)) void finish(void)
{
	int i;

	if (active_pid == 0 || active_pid != getpid())
		return;
	active_pid = 0;
	i = __atomic_load_n(&nr_at_exit, __ATOMIC_ACQUIRE);
	if (i > MAX_AT_EXIT)
		i = MAX_AT_EXIT;
	while (i-- > 0) {
		void (*fn)(void) = __atomic_load_n(&at_exit[i],
			__ATOMIC_ACQUIRE);

		if (fn != NULL)
			fn();
	}
	if (!status_keeps_stats())
		stats_destroy();
}
