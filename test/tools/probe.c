/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test program: appends the name of every signal it gets to a file, one a
 * line, with the value it came with.  SIGTERM ends it with exit code 42.
 * SIGTSTP and SIGSTOP stop it as they stop any program.
 * usage: probe FILE
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	siginfo_t info;
	sigset_t all;
	char line[64];
	int fd, n;

	if (argc != 2)
		return 2;
	fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0600);
	sigfillset(&all);
	sigdelset(&all, SIGTSTP);
	sigdelset(&all, SIGTTIN);
	sigprocmask(SIG_BLOCK, &all, NULL);
	n = snprintf(line, sizeof(line), "pid %d\n", (int)getpid());
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		return 1;
	for (;;) {
		if (sigwaitinfo(&all, &info) < 0)
			continue;
		n = snprintf(line, sizeof(line), "%s %d\n",
			sigabbrev_np(info.si_signo) ?
			sigabbrev_np(info.si_signo) : "RT",
			info.si_code == SI_QUEUE ? info.si_value.sival_int : 0);
		if (write(fd, line, (size_t)n) != n)
			return 1;
		if (info.si_signo == SIGTERM)
			return 42;
	}
}
