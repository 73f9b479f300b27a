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

# forbid FOLDER PATTERN WHY [EXCEPT]: undefined symbols of its objects.
forbid()
{
	[ -d "$O/$1" ] || return 0
	for o in "$O/$1"/*.o; do
		[ -e "$o" ] || continue
		[ "$(basename "$o" .o)" != "${4:-}" ] || continue
		hits=$(nm -u "$o" | awk '{ print $NF }' | sed 's/@.*//' |
			grep -E "^($2)\$" || true)
		[ -z "$hits" ] || {
			echo "$o calls $(echo "$hits" | tr '\n' ' ')($3)"
			bad=1
		}
	done
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

forbid planner "$ends|$prints|$hangs" "the planner is pure"
forbid planner 'pthread_.*|getenv|secure_getenv|clock_gettime|time|gettimeofday' \
	"the planner is pure"
forbid planner 'fopen|open|read|write|stat|fstat|rand|random' \
	"the planner is pure" plan_io
exit $bad
