/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fork, wait, signals and job control for `ballast run`.
 *
 * The launcher has no signal handler: all signals that people or terminals
 * send are blocked and taken one by one with sigwaitinfo(), so there is no
 * race and the child, which gets the old mask back, inherits no change.
 * Launcher and child share a process group.  What the terminal sends goes to
 * both (si_code SI_KERNEL) and is not passed on; what a process sends to the
 * launcher is.
 */
#include "tools/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli.h"

static sigset_t taken;			/* what sigwaitinfo takes */
static sigset_t old_mask;
static struct sigaction old_sigchld;
static bool child_stopped;		/* as far as is known */
static bool stop_reported;		/* and not yet mirrored */
static bool self_stopped;		/* SIGCONT is on its way to us */

static void signals_take(void)
{
	static const int faults[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
	};
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	size_t i;

	sigfillset(&taken);
	for (i = 0; i < ARRAY_LEN(faults); i++)
		sigdelset(&taken, faults[i]);
	sigprocmask(SIG_BLOCK, &taken, &old_mask);
	/* Ignored, it would make children vanish without a status. */
	sigaction(SIGCHLD, &dfl, &old_sigchld);
}

static void signals_restore(void)
{
	sigaction(SIGCHLD, &old_sigchld, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
}

static void run_program(const char *path, char **argv, pid_t parent, int report)
	__attribute__((noreturn));

/* In the child.  On failure errno goes down the pipe, which exec closes. */
static void run_program(const char *path, char **argv, pid_t parent, int report)
{
	int err;

	/* Who kills the launcher for good means the program. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_LAUNCHER);
	signals_restore();
	execv(path, argv);
	err = errno;
	if (write(report, &err, sizeof(err)) < 0)
		_exit(EXIT_LAUNCHER);
	_exit(EXIT_NOEXEC);
}

/* A file without magic is the shell's, as execvp and the shells have it. */
static char **shell_argv(const char *path, char **argv)
{
	size_t n = 0;
	char **out;

	while (argv[n])
		n++;
	out = (char **)(void *)cli_alloc((n + 2) * sizeof(*out));
	out[0] = cli_format("sh");
	out[1] = cli_format("%s", path);
	if (n > 1)
		memcpy(out + 2, argv + 1, (n - 1) * sizeof(*out));
	return out;
}

static bool has_elf_magic(const char *path)
{
	char magic[4] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true;
	if (read(fd, magic, sizeof(magic)) < 0)
		magic[0] = '\0';
	close(fd);
	return memcmp(magic, "\177ELF", 4) == 0;
}

/* Forks; 0 once the program runs, -errno when it could not be started. */
static int child_start(struct child *c, const char *path, char **argv)
{
	pid_t parent = getpid();
	int ends[2], err = 0;
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	/* Not 0, 1 or 2: the program must find those as they are. */
	ends[0] = cli_high_fd(ends[0]);
	ends[1] = cli_high_fd(ends[1]);
	if (ends[0] < 0 || ends[1] < 0)
		return -EMFILE;
	c->pid = fork();
	if (c->pid == 0)
		run_program(path, argv, parent, ends[1]);
	if (c->pid < 0)
		err = errno;
	close(ends[1]);
	if (c->pid > 0) {
		do {
			n = read(ends[0], &err, sizeof(err));
		} while (n < 0 && errno == EINTR);
		if (n != (ssize_t)sizeof(err))
			err = 0;
		else
			waitpid(c->pid, NULL, 0);
	}
	close(ends[0]);
	return -err;
}

/*
 * The launcher must not keep a pipe alive that the program closes, nor hold a
 * lock or terminal that it was handed for the program.
 */
static void release_descriptors(int keep_fd)
{
	int null = cli_high_fd(open("/dev/null", O_RDWR | O_CLOEXEC));

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	if (keep_fd < 0) {
		close_range(3, ~0u, 0);
		return;
	}
	if (keep_fd > 3)
		close_range(3, (unsigned int)keep_fd - 1, 0);
	close_range((unsigned int)keep_fd + 1, ~0u, 0);
}

/* Takes what the child has done; true when it has ended. */
static bool child_poll(struct child *c)
{
	int status;
	pid_t r;

	for (;;) {
		r = waitpid(c->pid, &status, WNOHANG | WUNTRACED | WCONTINUED);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {	/* somebody else took it: end, do not hang */
			c->status = EXIT_LAUNCHER << 8;
			return true;
		}
		if (r == 0)
			return false;
		c->status = status;
		if (!WIFCONTINUED(status) && !WIFSTOPPED(status))
			return true;
		child_stopped = stop_reported = WIFSTOPPED(status);
	}
}

/* What the kernel says now: reports of waitpid are late, or lost in an exit. */
static bool is_stopped(pid_t pid)
{
	char text[512], *end;
	ssize_t n = -1;
	int fd;

	fd = open(cli_format("/proc/%d/stat", (int)pid), O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n < 0)
		return true;	/* no /proc: believe the report */
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && end[1] && (end[2] == 'T' || end[2] == 't');
}

/*
 * Stops the launcher by the signal that stopped the child, so that the shell
 * sees the job as it would see the program.  Returns after SIGCONT, or at once
 * where the kernel stops nobody (orphaned process groups), SIGCONT is waiting
 * already (raise() would drop it; a later ^Z has dropped it), or the child
 * runs again.  A SIGCONT after raise() takes the pending signal back.
 */
static void stop_too(pid_t child, int sig)
{
	struct sigaction act = { .sa_handler = SIG_DFL }, old;
	sigset_t set;

	stop_reported = false;
	sigpending(&set);
	if (sigismember(&set, SIGCONT) == 1) {
		self_stopped = true;
		return;
	}
	if (sig == SIGSTOP) {
		if (is_stopped(child))
			raise(SIGSTOP);
	} else {
		sigemptyset(&set);
		sigaddset(&set, sig);
		sigaction(sig, &act, &old);
		raise(sig);
		if (!is_stopped(child)) {
			act.sa_handler = SIG_IGN;	/* drops it */
			sigaction(sig, &act, NULL);
		}
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		sigprocmask(SIG_BLOCK, &set, NULL);
		sigaction(sig, &old, NULL);
	}
	/* Blocked, so what ended the stop is still to be seen. */
	sigpending(&set);
	self_stopped = sigismember(&set, SIGCONT) == 1;
}

/* `fg` and `bg` reach both; kill -CONT of the launcher must reach the child. */
static void on_continue(const struct child *c, bool pass_on)
{
	if (self_stopped) {
		self_stopped = false;
		if (child_stopped)
			kill(c->pid, SIGCONT);
		/* If it exits, no report of its going on may ever come. */
		child_stopped = stop_reported = false;
	} else if (pass_on) {
		kill(c->pid, SIGCONT);
	}
}

static void on_signal(const struct child *c, const siginfo_t *info)
{
	/*
	 * Not what the kernel sent: the child has got it too.  Not what the
	 * child sent to its parent or group.  Not our own SIGPIPE.
	 */
	bool pass_on = info->si_code <= 0 && info->si_pid != c->pid &&
		info->si_pid != getpid();

	if (info->si_signo == SIGCONT)
		on_continue(c, pass_on);
	else if (!pass_on)
		return;
	else if (info->si_code == SI_QUEUE)
		sigqueue(c->pid, info->si_signo, info->si_value);
	else
		kill(c->pid, info->si_signo);
}

int child_run(struct child *c, const char *path, char **argv, int keep_fd)
{
	siginfo_t info;
	int r;

	signals_take();
	r = child_start(c, path, argv);
	if (r == -ENOEXEC && !has_elf_magic(path))
		r = child_start(c, "/bin/sh", shell_argv(path, argv));
	if (r != 0) {
		signals_restore();
		return r;
	}
	release_descriptors(keep_fd);
	while (!child_poll(c)) {
		if (stop_reported)
			stop_too(c->pid, WSTOPSIG(c->status));
		if (sigwaitinfo(&taken, &info) < 0)
			continue;
		/* How the child stands now decides what SIGCONT means. */
		if (info.si_signo == SIGCONT && child_poll(c))
			break;
		on_signal(c, &info);
	}
	return 0;
}

int child_exit_code(const struct child *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) :
		WEXITSTATUS(c->status);
}

int child_was_ended(const struct child *c)
{
	int sig = WIFSIGNALED(c->status) ? WTERMSIG(c->status) : 0;

	return sig == SIGINT || sig == SIGTERM || sig == SIGHUP ||
		sig == SIGQUIT || sig == SIGPIPE || sig == SIGKILL;
}

void child_mirror(const struct child *c)
{
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	struct rlimit none = { 0, 0 };
	sigset_t one;
	int sig;

	if (!WIFSIGNALED(c->status))
		exit(WEXITSTATUS(c->status));
	sig = WTERMSIG(c->status);
	/* One core is enough; a core pipe ignores the limit. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	sigaction(sig, &dfl, NULL);
	sigemptyset(&one);
	sigaddset(&one, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	_exit(128 + sig);
}
