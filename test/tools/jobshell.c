/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shell with job control on a terminal of its own, driven by arguments, so
 * that ^C, ^Z, fg and bg can be tested where there is no terminal.
 * usage: jobshell LOG ACTION... -- COMMAND...
 *   see:TEXT   wait until LOG has a line that begins with TEXT
 *   key:C      type a character (^C is written key:^C)
 *   resize     change the window's size
 *   kill:N     send signal N to the launcher only; group:N to its group
 *   stopped    the job must stop; running: it must not
 *   state:X    the process that LOG's "pid" names is in state X (T: stopped)
 *   fg         continue the job in the foreground
 *   end:N      the job must end with N: an exit code, or 128 + signal
 * Exit 0, or 1 with the action that failed.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define TRIES 500	/* of 10 ms */

static const char *log_path;
static int master, terminal;
static pid_t job;

static int log_line(const char *text, char *line, size_t size)
{
	FILE *f = fopen(log_path, "r");
	int found = 0;

	if (!f)
		return 0;
	while (!found && fgets(line, (int)size, f))
		found = strncmp(line, text, strlen(text)) == 0;
	fclose(f);
	return found;
}

static int see(const char *text)
{
	char line[128];
	int i;

	for (i = 0; i < TRIES; i++) {
		if (log_line(text, line, sizeof(line)))
			return 1;
		usleep(10000);
	}
	return 0;
}

static char probe_state(void)
{
	char path[64], line[256], state = '?';
	FILE *f;

	if (!log_line("pid ", line, sizeof(line)))
		return '?';
	snprintf(path, sizeof(path), "/proc/%d/stat", atoi(line + 4));
	f = fopen(path, "r");
	if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

static int state_is(char want)
{
	int i;

	for (i = 0; i < TRIES; i++) {
		if (want == 'T' ? probe_state() == 'T' : probe_state() != 'T')
			return 1;
		usleep(10000);
	}
	return 0;
}

/* The job's next status within the time, or -1. */
static int next_status(int tries)
{
	int status, i;

	for (i = 0; i < tries; i++) {
		if (waitpid(job, &status, WNOHANG | WUNTRACED) == job)
			return status;
		usleep(10000);
	}
	return -1;
}

static int type(const char *key)
{
	char c = key[0] == '^' && key[1] ? (char)(key[1] & 0x1f) : key[0];

	return write(master, &c, 1) == 1;
}

static int resize(void)
{
	struct winsize size = { .ws_row = 33, .ws_col = 77 };

	return ioctl(master, TIOCSWINSZ, &size) == 0;
}

static int end_is(int want)
{
	int status = next_status(TRIES);

	if (status == -1)
		printf("no end; the probe is in state %c\n", probe_state());
	else if (WIFSTOPPED(status))
		printf("stopped by signal %d\n", WSTOPSIG(status));
	else if (want == (WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
	    WEXITSTATUS(status)))
		return 1;
	else
		printf("status %#x\n", (unsigned int)status);
	return 0;
}

static int act(const char *a)
{
	int status;

	if (strncmp(a, "see:", 4) == 0)
		return see(a + 4);
	if (strncmp(a, "key:", 4) == 0)
		return type(a + 4);
	if (strcmp(a, "resize") == 0)
		return resize();
	if (strncmp(a, "kill:", 5) == 0)
		return kill(job, atoi(a + 5)) == 0;
	if (strncmp(a, "group:", 6) == 0)
		return kill(-job, atoi(a + 6)) == 0;
	if (strcmp(a, "stopped") == 0) {
		status = next_status(TRIES);
		return status != -1 && WIFSTOPPED(status);
	}
	if (strcmp(a, "running") == 0)
		return next_status(20) == -1;
	if (strncmp(a, "state:", 6) == 0)
		return state_is(a[6]);
	if (strcmp(a, "fg") == 0)
		return tcsetpgrp(terminal, job) == 0 &&
			kill(-job, SIGCONT) == 0;
	if (strncmp(a, "end:", 4) == 0)
		return end_is(atoi(a + 4));
	return 0;
}

static void start_job(char **command)
{
	job = fork();
	if (job == 0) {
		setpgid(0, 0);
		tcsetpgrp(terminal, getpid());
		signal(SIGTTOU, SIG_DFL);
		dup2(terminal, 0);
		execvp(command[0], command);
		_exit(99);
	}
	setpgid(job, job);
	tcsetpgrp(terminal, job);
}

int main(int argc, char **argv)
{
	int i, split = 2;

	while (split < argc && strcmp(argv[split], "--") != 0)
		split++;
	if (split + 1 >= argc)
		return 2;
	log_path = argv[1];
	/* A new session, so that the terminal can become its own. */
	if (getpgrp() == getpid() && fork() > 0) {
		int status;

		wait(&status);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	setsid();
	master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
		return 77;
	terminal = open(ptsname(master), O_RDWR | O_CLOEXEC);
	if (terminal < 0)
		return 77;
	signal(SIGTTOU, SIG_IGN);
	start_job(argv + split + 1);
	for (i = 2; i < split; i++) {
		if (act(argv[i]))
			continue;
		printf("action %d failed: %s\n", i - 1, argv[i]);
		kill(-job, SIGKILL);
		return 1;
	}
	return 0;
}
