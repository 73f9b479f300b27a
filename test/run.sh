#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests, one line each, two at a time; the log of a test only when it
# fails.  "make check" calls it with the list; by hand:
#
#	B=build test/run.sh [-f FILTER]... KIND/NAME...
#
# KIND/NAME is unit/NAME (a program in $B/unit), check/NAME (test/check-NAME.sh),
# dispatch/NAME (a case of test/dispatch/run.sh), tools/NAME
# (test/tools/NAME.sh), e2e/NAME (a line of test/e2e/cases) or e2e for all
# lines, those marked "san" when SAN is set.  A FILTER keeps tests whose name
# contains it.  A test passes with status 0 and is skipped with 77; the first
# line that it then prints is the reason.
#
# Environment: B, CC, SAN as in the Makefile; JOBS (2); TIMEOUT, seconds for
# one test.

set -u

here=$(dirname "$0")
B=${B:-build}
CC=${CC:-gcc}
SAN=${SAN:-}
JOBS=${JOBS:-2}
if [ -n "$SAN" ]; then
	TIMEOUT=${TIMEOUT:-400}
else
	TIMEOUT=${TIMEOUT:-300}
fi
# Check's own limit is 4 s for one test: short on a busy machine.
CK_TIMEOUT_MULTIPLIER=${CK_TIMEOUT_MULTIPLIER:-$([ -n "$SAN" ] && echo 20 || echo 5)}
export B CC SAN TIMEOUT CK_TIMEOUT_MULTIPLIER

# One test: the command for a name.
command_of()
{
	case $1 in
	unit/*)		echo "$B/unit/${1#unit/}" ;;
	check/*)	echo "$here/check-${1#check/}.sh" ;;
	dispatch/*)	echo "$here/dispatch/run.sh ${1#dispatch/}" ;;
	tools/*)	echo "$here/tools/${1#tools/}.sh" ;;
	e2e/*)		echo "$here/e2e/run-e2e.sh ${1#e2e/}" ;;
	*)		echo "false: no such kind of test" ;;
	esac
}

# run_one DIR NAME: writes DIR/SAFE.rc and prints the test's line in one piece.
run_one()
{
	dir=$1
	name=$2
	safe=$(echo "$name" | tr '/ ' '__')
	log=$dir/$safe.log
	begin=$(date +%s%N)
	# shellcheck disable=SC2046 # a command and its arguments
	timeout -k 10 "$TIMEOUT" $(command_of "$name") \
		>"$log" 2>&1 </dev/null
	rc=$?
	ms=$((($(date +%s%N) - begin) / 1000000))
	echo "$rc" >"$dir/$safe.rc"
	time=$(printf '%d.%d s' $((ms / 1000)) $((ms % 1000 / 100)))
	{
		case $rc in
		0)	echo "ok   $name ($time)" ;;
		77)	echo "skip $name: $(head -n 1 "$log")" ;;
		124|137) echo "FAIL $name (timeout after $time)" ;;
		*)	echo "FAIL $name (status $rc, $time)" ;;
		esac
		if [ "$rc" -ne 0 ] && [ "$rc" -ne 77 ]; then
			tail -n 60 "$log" | sed 's/^/     | /'
		fi
	} >"$log.line"
	cat "$log.line"
}

if [ "${1:-}" = --one ]; then
	run_one "$2" "$3"
	exit 0
fi

filters=
list=
while [ $# -gt 0 ]; do
	case $1 in
	-f)	filters="$filters $2"; shift ;;
	e2e)	for c in $("$here/e2e/run-e2e.sh" --list); do
			list="$list e2e/$c"
		done ;;
	*)	list="$list $1" ;;
	esac
	shift
done

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

for name in $list; do
	keep=1
	for f in $filters; do
		keep=0
		case $name in *"$f"*) keep=1; break ;; esac
	done
	[ $keep -eq 0 ] || echo "$name"
done >"$tmp/list"

if [ ! -s "$tmp/list" ]; then
	echo "no test matches${filters:+:$filters}" >&2
	exit 1
fi

E2E_PLAIN=$tmp/plain
mkdir "$E2E_PLAIN"
export E2E_PLAIN
xargs -P "$JOBS" -n 1 "$0" --one "$tmp" <"$tmp/list"

passed=0
failed=0
skipped=0
while read -r name; do
	safe=$(echo "$name" | tr '/ ' '__')
	case $(cat "$tmp/$safe.rc" 2>/dev/null) in
	0)	passed=$((passed + 1)) ;;
	77)	skipped=$((skipped + 1)) ;;
	*)	failed=$((failed + 1)) ;;
	esac
done <"$tmp/list"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
