#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program ends: the launcher ends as it did, and leaves its output alone.
. test/tools/lib.sh

# Exit codes.
for code in 0 1 2 3 42 125 126 127 255; do
	try $code ballast run -q -- sh -c "exit $code"
done

# Signals: seen by the caller as the same signal (a shell shows 128 + n).
for n in 1 2 3 6 9 10 11 13 14 15; do
	try $((128 + n)) ballast run -- sh -c "ulimit -c 0; kill -$n \$\$"
done
build_c "$T/wait" -x c - <<'END'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
/* Prints how a command ended, which a shell cannot tell exactly. */
int main(int argc, char **argv)
{
	int status = 0;

	if (fork() == 0) {
		if (getenv("IGNORE_CHILDREN"))
			signal(SIGCHLD, SIG_IGN);
		execv(argv[1], argv + 1);
		_exit(99);
	}
	if (wait(&status) < 0)
		return 1;
	if (WIFSIGNALED(status))
		printf("signal %d%s\n", WTERMSIG(status),
			WCOREDUMP(status) ? " core" : "");
	else
		printf("exit %d\n", WEXITSTATUS(status));
	return 0;
}
END
same "$("$T/wait" "$T/bin/ballast" run -- sh -c 'kill -TERM $$' 2>/dev/null)" \
	"signal 15"
# The launcher itself leaves no core, even where cores are on.
(
	cd "$T" || exit 1
	ulimit -c unlimited 2>/dev/null
	./wait bin/ballast run -- sh -c 'ulimit -c 0; kill -SEGV $$' 2>/dev/null
) >"$T/out"
same "$(cat "$T/out")" "signal 11"

# 126 and 127 as a shell has them.
: >"$T/plain"
try 126 ballast run -- "$T/plain"
has err "$T/plain: Permission denied"
try 126 ballast run -- "$T"
has err 'Is a directory'
try 127 ballast run -- "$T/none"
has err "$T/none: No such file"
try 127 ballast run -- no-such-program-here
has err 'no-such-program-here: not found in PATH'
try 127 ballast run -- ''
printf '#!/nowhere/interpreter\n' >"$T/script"
chmod +x "$T/script"
try 127 ballast run -- "$T/script"
printf '\177ELF garbage that is long enough for a header, but is none of a kind' \
	>"$T/broken"
chmod +x "$T/broken"
try 126 ballast run -- "$T/broken"
has err 'Exec format error'

# A file that is not executable hides none that is, further on in PATH.
mkdir "$T/p1" "$T/p2"
: >"$T/p1/tool"
printf '#!/bin/sh\necho "tool $1"\n' >"$T/p2/tool"
chmod +x "$T/p2/tool"
PATH=$T/p1:$T/p2:$PATH try 0 ballast run -- tool 7
same "$(cat "$T/out")" "tool 7"
# No magic: the shell runs it.
echo 'echo "sh $1 $0"' >"$T/p2/nomagic"
chmod +x "$T/p2/nomagic"
try 0 ballast run -- "$T/p2/nomagic" x
same "$(cat "$T/out")" "sh x $T/p2/nomagic"
# argv[0] is what the user typed.
try 0 ballast run -- sh -c 'cat /proc/$$/cmdline | tr "\0" "\n" | head -1'
same "$(cat "$T/out")" sh

# Standard output, error and input belong to the program.
printf 'in\0put\n' >"$T/in"
"$T/bin/ballast" run -- sh -c 'cat; echo bad >&2' <"$T/in" >"$T/out" 2>"$T/err"
cmp -s "$T/in" "$T/out" || fail "standard output is changed"
same "$(head -1 "$T/err")" bad
printf 'x\ny\n' | "$T/bin/ballast" run -- cat 2>/dev/null | tail -1 >"$T/out"
same "$(cat "$T/out")" y

# The launcher keeps no pipe open that the program has closed.
"$T/bin/ballast" run -- sh -c 'echo out; exec >&- 2>/dev/null; sleep 2
	: >"$0/ended"' "$T" 2>/dev/null |
	{ cat >"$T/out"; [ ! -e "$T/ended" ]; } || fail "a closed pipe was held open"
# Nor any other descriptor, and it adds none to the program's.
try 0 sh -c "\"$T/bin/ballast\" run -- ls /proc/self/fd"
ls /proc/self/fd | wc -l >"$T/plain_fds"
same "$(wc -l <"$T/out")" "$(cat "$T/plain_fds")" "descriptors"
# Descriptors that are closed at the start stay closed, and nothing breaks.
"$T/bin/ballast" run -- sh -c 'exit 5' <&- >&- 2>&-
same $? 5
"$T/bin/ballast" run -- sh -c 'test -e /proc/self/fd/0 && exit 1; exit 6' <&- \
	2>/dev/null
same $? 6

# SIGCHLD ignored by the caller: the status is not lost.
export IGNORE_CHILDREN=1
same "$("$T/wait" "$T/bin/ballast" run -- sh -c 'exit 9' 2>/dev/null)" "exit 9"
# And the program still finds it ignored, as it would without a launcher.
same "$("$T/wait" "$T/bin/ballast" run -- sed -n 's/^SigIgn:\t//p' \
	/proc/self/status 2>/dev/null | grep -v exit)" \
	"$("$T/wait" "$(command -v sed)" -n 's/^SigIgn:\t//p' /proc/self/status | grep -v exit)"
unset IGNORE_CHILDREN

# Nothing of ours is written on a success that Ballast saw.
FAKE_ACTIVE=1 try 0 ballast run -- true
empty out
empty err
finish
