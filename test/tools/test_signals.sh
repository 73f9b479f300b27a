#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Signals to the launcher reach the program once; stops and continues agree.
. test/tools/lib.sh

build_c "$T/probe" test/tools/probe.c
build_c "$T/jobshell" test/tools/jobshell.c

launcher= program=
# Whatever went wrong, nothing stays behind, stopped or not.
trap 'kill -KILL $launcher $program 2>/dev/null; rm -rf "$T"' EXIT

count()
{
	grep -c "^$1 " "$T/log"
}

state_of()
{
	sed 's/.*) \(.\).*/\1/' "/proc/$1/stat"
}

is_state()
{
	[ "$(state_of "$1")" = "$2" ]
}

# A launcher in the background; its number in $launcher, the program's in
# $program.
start()
{
	rm -f "$T/log"
	"$T/bin/ballast" run -- "$T/probe" "$T/log" 2>"$T/err" &
	launcher=$!
	await grep -q '^pid' "$T/log"
	program=$(sed -n 's/^pid //p' "$T/log")
}

ended()
{
	wait "$launcher"
	same $? "$1" "end of the launcher"
	[ ! -e "/proc/$program" ] || fail "the program lives on"
}

# What is sent to the launcher, the program gets, once.  By number: shells
# disagree about names.  HUP INT QUIT USR1 USR2 PIPE ALRM CHLD CONT URG WINCH
# IO and a real-time signal.
start
for sig in HUP:1 INT:2 QUIT:3 USR1:10 USR2:12 PIPE:13 ALRM:14 CHLD:17 CONT:18 \
	URG:23 WINCH:28 POLL:29 RT:40; do
	kill -"${sig#*:}" "$launcher"
	await grep -q "^${sig%:*} " "$T/log"
done
sleep 0.1
for sig in HUP INT QUIT USR1 USR2 PIPE ALRM CHLD CONT URG WINCH POLL RT; do
	same "$(count $sig)" 1 "SIG$sig"
done
# TERM too, and the launcher ends as the program chooses to.
kill "$launcher"
ended 42

# A stop of the program stops the launcher, SIGCONT to it continues both.
for stop in 20 19; do
	start
	kill -$stop "$program"
	await is_state "$launcher" T
	is_state "$program" T || fail "the program is not stopped"
	kill -CONT "$launcher"
	await is_state "$program" S
	await is_state "$launcher" S
	kill "$launcher"
	ended 42
done
# TSTP to the launcher alone stops both.
start
kill -20 "$launcher"
await is_state "$program" T
await is_state "$launcher" T
kill -CONT "$launcher"
await is_state "$program" S
kill "$launcher"
ended 42

# Killing the launcher for good is killing the program.
start
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
same $? 137
gone()
{
	[ ! -e "/proc/$program" ] || is_state "$program" Z
}
await gone

# What the program sends to its parent or group does not come back to it.
build_c "$T/tell" -x c - <<'END'
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t seen;
static void on_signal(int sig) { seen++; }
int main(void)
{
	int i;

	signal(SIGUSR1, on_signal);
	kill(getppid(), SIGUSR1);
	for (i = 0; i < 10; i++)
		usleep(10000);
	return seen ? 1 : 0;
}
END
try 0 ballast run -- "$T/tell"

# A terminal: keys reach launcher and program; the program sees them once.
job()
{
	rm -f "$T/log"
	"$T/jobshell" "$T/log" see:pid "$@" -- "$T/bin/ballast" run -- \
		"$T/probe" "$T/log" >"$T/out" 2>"$T/err"
	got=$?
	[ "$got" -ne 77 ] || skip "no terminals here"
	[ "$got" -eq 0 ] || fail "job $*: $(cat "$T/out")"
}
job key:^C see:INT 'key:^\' see:QUIT resize see:WINCH running kill:15 end:42
same "$(count INT) $(count QUIT) $(count WINCH)" "1 1 1" "doubled keys"
job kill:10 see:USR1 kill:15 end:42
same "$(count USR1)" 1
job key:^Z stopped state:T fg state:S running see:CONT kill:15 end:42
same "$(count CONT)" 1 "fg"
# Twice, and continued by its number only.
job key:^Z stopped fg state:S running key:^Z stopped state:T kill:18 state:S \
	running kill:15 end:42
# Stopped and then killed, as `kill %1` does it.
job key:^Z stopped group:15 group:18 end:42
job key:^Z stopped group:9 end:137
# A program that ^C kills: the launcher dies of the same signal.  (Not sh: it
# may put off an interrupt until its child has ended.)
build_c "$T/idle" -x c - <<'END'
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	FILE *f = fopen(argv[1], "w");

	if (!f || fputs("up\n", f) < 0 || fclose(f) != 0)
		return 1;
	sleep(60);
	return 0;
}
END
rm -f "$T/log"
"$T/jobshell" "$T/log" see:up key:^C end:130 -- "$T/bin/ballast" run -- \
	"$T/idle" "$T/log" >"$T/out" 2>"$T/err" || fail "^C: $(cat "$T/out")"
empty err
# Reading the terminal from the foreground works.
rm -f "$T/log"
"$T/jobshell" "$T/log" see:up 'key:q' key:^J end:7 -- "$T/bin/ballast" run -- \
	sh -c "echo up >$T/log; read x; [ \"\$x\" = q ] && exit 7" \
	>"$T/out" 2>"$T/err" || fail "read: $(cat "$T/out")"
finish
