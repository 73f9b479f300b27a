#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What our objects must not call.  The library never ends, prints to or waits
# in the host program on its own account, and reaches dlsym and dlopen only by
# the addresses that resolve.c found.  The planner is pure: no threads,
# environment, files or clock, apart from plan_io.c, which reads and writes.

set -eu
O=${O:-build/obj/gcc}
bad=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# "shim/x.o symbol" for all undefined symbols.
for d in shim planner; do
	[ -d "$O/$d" ] || continue
	nm -u -A "$O/$d"/*.o
done | sed -e "s|^$O/||" -e 's/@.*//' | awk -F'[: ]+' '{ print $1, $NF }' \
	>"$tmp/calls"
grep -q '^shim/' "$tmp/calls" || {
	echo "no objects below $O/shim"
	exit 1
}

# forbid FOLDER PATTERN WHY [EXCEPT]: undefined symbols of its objects.
forbid()
{
	if awk -v d="$1/" -v p="^($2)\$" -v e="$1/${4:-/}.o" -v why="$3" '
		index($1, d) == 1 && $1 != e && $2 ~ p {
			print $1 " calls " $2 " (" why ")"
			bad = 1
		}
		END { exit !bad }' "$tmp/calls"; then
		bad=1
	fi
}

ends='exit|_exit|_Exit|quick_exit|abort|__assert_fail|__assert|perror'
ends="$ends|__builtin_trap|raise|err|errx|error"
prints='printf|puts|putchar|fprintf|fputs|fwrite|fputc|__printf_chk'
prints="$prints|__fprintf_chk|vprintf|vfprintf|psignal"
hangs='sleep|usleep|system|popen|fork|vfork|pause|sigsuspend'
forbid shim "$ends" "the host program must go on"
forbid shim "$prints" "output goes through log.c"
forbid shim "$hangs" "not in the host program"
forbid shim 'dlsym|dlopen|dlmopen' "resolve.c has the real ones"
forbid shim 'cu[A-Z][A-Za-z0-9_]*' "the driver is called through real" \
	api_table
forbid shim 'signal|sigaction|atexit|on_exit|setenv|putenv|unsetenv|chdir' \
	"the process is the host program's"
forbid shim __tls_get_addr "it may allocate, in any hook"

forbid planner "$ends|$prints|$hangs" "the planner is pure"
forbid planner 'pthread_.*|getenv|secure_getenv|clock_gettime|time|gettimeofday' \
	"the planner is pure"
forbid planner 'fopen|open|read|write|stat|fstat|rand|random' \
	"the planner is pure" plan_io
exit $bad
