#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the launcher says once the program has ended, and --strict.
. test/tools/lib.sh

lines()
{
	wc -l <"$T/err"
}

# No cuInit(): one line, and the program's own end.
try 0 ballast run -- true
same "$(lines)" 1
has err 'ballast: no successful cuInit() by true'
try 3 ballast run -- sh -c 'echo mine >&2; exit 3'
same "$(sed -n 1p "$T/err")" mine
has err 'no successful cuInit()'
# Not where it was not to work, was told to be silent, or was ended by hand.
try 0 ballast run -q -o enabled=false -- true
empty err
try 0 ballast run -o log_level=error -- true
empty err
try 143 ballast run -- sh -c 'kill -15 $$'
lacks err 'no successful cuInit()'
FAKE_ACTIVE=1 try 0 ballast run -- true
empty err
# That it is not to work, and by whose word, is said first.
try 0 ballast run -o enabled=false -- sh -c 'echo mine >&2'
same "$(head -n 1 "$T/err")" "ballast: sh runs without Ballast: enabled = \
false (environment BALLAST_ENABLED)"
same "$(lines)" 2
printf 'enabled = no\n' >"$T/off.conf"
BALLAST_CONFIG=$T/off.conf try 0 ballast run -- true
has err "true runs without Ballast: enabled = false ($T/off.conf:1)"
same "$(lines)" 1
BALLAST_ENABLED=0 try 0 ballast run -q -- true
empty err
# Given up: the library's reason.
FAKE_PASSIVE='it is Sunday' try 0 ballast run -- true
has err 'ballast: true ran without Ballast: it is Sunday'
same "$(lines)" 1

# The sign is seen from wherever the CUDA call is made: after exec, in a child,
# in one that has closed all descriptors, and with another folder as its own.
FAKE_PROGRAM=cat
export FAKE_PROGRAM
FAKE_ACTIVE=1 try 0 ballast run -- sh -c 'cat </dev/null'
empty err
FAKE_ACTIVE=1 try 0 ballast run -- sh -c 'cd /; exec env cat </dev/null'
empty err
FAKE_ACTIVE=1 try 0 ballast run -- sh -c '(cat </dev/null) 2>&1; true'
empty err
build_c "$T/closer" -x c - <<'END'
#include <unistd.h>
int main(int argc, char **argv)
{
	int fd;

	for (fd = 3; fd < 1024; fd++)
		close(fd);
	execvp(argv[1], argv + 1);
	return 1;
}
END
FAKE_ACTIVE=1 try 0 ballast run -- "$T/closer" cat /dev/null
empty err
FAKE_ACTIVE=1 try 0 ballast run -- true
has err 'no successful cuInit()'
unset FAKE_PROGRAM
# A program within a program: the inner launcher has the inner sign.
FAKE_ACTIVE=1 try 0 ballast run -- "$T/bin/ballast" run -- true
empty err

# A failed request: the last line, after the program's own words.
FAKE_ACTIVE=1 FAKE_FAILURES=1 try 1 ballast run -- sh -c 'echo oom >&2; exit 1'
same "$(tail -n 1 "$T/err")" "ballast: cuMemAlloc of 1 MiB failed: 60 MiB of \
64 MiB GPU budget and 1 GiB of 1 GiB arena in use; raise it with --arena \
(BALLAST_ARENA)"
same "$(lines)" 2
# The last of many counts; the key is named as it can be given.
for n in 7 8 9 100; do
	FAKE_ACTIVE=1 FAKE_FAILURES=$n FAKE_KEY=gpu_budget \
		try 1 ballast run -- false
	n=$(grep -o 'of [0-9]* MiB failed' "$T/err" | tr -dc 0-9)
done
same "$n" 100
has err 'raise it with --budget (BALLAST_GPU_BUDGET)'
FAKE_ACTIVE=1 FAKE_FAILURES=1 FAKE_KEY=pool try 1 ballast run -- false
has err '-o pool=... (BALLAST_POOL)'
# A program that lives with the failure is left alone.
FAKE_ACTIVE=1 FAKE_FAILURES=1 try 0 ballast run -- true
empty err
# One that aborts over it is not.
FAKE_ACTIVE=1 FAKE_FAILURES=1 try 134 ballast run -- sh -c 'kill -6 $$'
has err 'cuMemAlloc of 1 MiB failed'

# --strict: 3 when nothing was managed; a failure keeps its own code.
try 3 ballast run --strict -- true
has err 'strict: nothing was managed'
FAKE_ACTIVE=1 try 3 ballast run --strict -- true
has err 'strict: nothing was managed'
FAKE_ACTIVE=1 FAKE_MANAGED=1 try 0 ballast run --strict -- true
empty err
FAKE_ACTIVE=1 try 7 ballast run --strict -- sh -c 'exit 7'
try 3 ballast run --strict -o enabled=false -- true
BALLAST_STRICT=1 try 3 ballast run -- true
printf 'strict = true\n' >"$T/strict.conf"
BALLAST_CONFIG=$T/strict.conf try 3 ballast run -- true

# A statistics page that a killed program left is removed.
FAKE_ACTIVE=1 FAKE_STATS=1 try 137 ballast run -- sh -c 'kill -9 $$'
same "$(ls "$T/run")" ""
# Also that of a grandchild; the page of one that lives stays.
FAKE_ACTIVE=1 FAKE_STATS=1 FAKE_PROGRAM=cat try 0 ballast run -- sh -c \
	'cat /dev/zero >/dev/null & kill -9 $!; wait; exit 0'
same "$(ls "$T/run")" ""
mkfifo "$T/fifo"
FAKE_ACTIVE=1 FAKE_STATS=1 FAKE_PROGRAM=cat try 0 ballast run -- sh -c \
	'cat "$0" >/dev/null 2>&1 & while [ -z "$(ls "$1")" ]; do sleep 0.05; done' \
	"$T/fifo" "$T/run"
same "$(ls "$T/run" | wc -l)" 1 "the page of a living process"
: >"$T/fifo"

# What BALLAST_STATUS names is not trusted: others' files stay as they are.
printf 'precious' >"$T/file"
for value in garbage 1:2:3 "$$:1:ff" :: 4294967295:0:0; do
	BALLAST_STATUS=$value FAKE_ACTIVE=1 LD_PRELOAD=$T/bin/libballast.so \
		try 0 cat "$T/file"
	empty err
	same "$(cat "$T/out")" precious
done
(
	exec 7<>"$T/file"
	BALLAST_STATUS=$(sh -c 'echo $PPID'):7:0 FAKE_ACTIVE=1 \
		LD_PRELOAD=$T/bin/libballast.so cat /dev/null
)
same "$(cat "$T/file")" precious
finish
