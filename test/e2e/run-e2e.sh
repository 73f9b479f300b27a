#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one line of test/e2e/cases on the software driver:
#
#	B=build test/e2e/run-e2e.sh NAME
#	B=build test/e2e/run-e2e.sh --list	names; with SAN set, its subset
#
# A case without Ballast must exit 0 and report no race and no strict error.
# One with Ballast must also print what the program prints on a device that
# holds everything, and log no error; with the flag "swap" it must have copied
# more to the device than that run did, with "plan" have put a plan into force,
# with "again" another one after the first has ended, with "ahead" have kept to
# it, with "hits=N" have copied in time so often.
#
# With E2E_PLAIN, a directory, what programs print without Ballast is kept there
# and read by later cases of the same build.

set -u

here=$(dirname "$0")
B=${B:-build}
CC=${CC:-gcc}
SAN=${SAN:-}
cases=${CASES:-$here/cases}

# Comments and blank lines out, fields trimmed.
table()
{
	sed -e '/^[ 	]*#/d' -e '/^[ 	]*$/d' -e 's/[ 	]*|[ 	]*/|/g' \
		-e 's/[ 	]*$//' "$cases"
}

if [ "${1:-}" = --list ]; then
	table | while IFS='|' read -r name prog soft ballast flags; do
		case ",$SAN,$flags," in
		,,*|*,san,*) echo "$name" ;;
		esac
	done
	exit 0
fi

line=$(table | awk -F'|' -v n="${1:-}" '$1 == n')
if [ -z "$line" ]; then
	echo "no case named ${1:-}" >&2
	exit 2
fi
IFS='|' read -r name prog soft ballast flags <<END
$line
END

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

fail()
{
	echo "$name: $*"
	for f in out err log report; do
		if [ -s "$tmp/$f" ]; then
			echo "--- $f"
			tail -n 40 "$tmp/$f"
		fi
	done
	exit 1
}

has()
{
	case ",$flags," in *",$1,"*) return 0 ;; esac
	return 1
}

# settings PREFIX "key=value ...": PREFIX_KEY=value, one a line.
settings()
{
	for s in $2; do
		[ "$s" = - ] || echo "$1_$(echo "${s%%=*}" |
			tr '[:lower:]' '[:upper:]')=${s#*=}"
	done
}

# gcc's sanitizer runtimes want to be first; clang's is in the program.
runtime()
{
	case $CC in *clang*) return ;; esac
	case $SAN in
	address)	"$CC" -print-file-name=libasan.so ;;
	thread)		"$CC" -print-file-name=libtsan.so ;;
	esac
}

# run PRELOAD ASSIGNMENT...: the program; sets rc.
run()
{
	preload=$1
	shift
	# What the caller's environment sets must not reach the program.
	for v in $(env | sed -n 's/^\(\(BALLAST\|SOFTCUDA\)_[A-Z0-9_]*\)=.*/\1/p')
	do
		unset "$v"
	done
	: >"$tmp/report"
	# shellcheck disable=SC2086 # arguments of the program
	env "LD_LIBRARY_PATH=$B/softcuda" ${preload:+"LD_PRELOAD=$preload"} \
		SOFTCUDA_STRICT=1 "SOFTCUDA_REPORT=$tmp/report" \
		"SOFTCUDA_STATS=$tmp/stats" "$@" \
		"$B"/e2e/$prog >"$tmp/out" 2>"$tmp/err"
	rc=$?
}

# Timings and the size of the device may differ, results may not.
results()
{
	grep -Ev '^(gpu_bytes|ms_per_[a-z]+|[a-z]+_ms):' "$1"
}

counter()
{
	sed -n "s/.*\"$1\": *\\([0-9]*\\).*/\\1/p" "$tmp/stats" | head -n 1
}

soft_env=$(settings SOFTCUDA "$soft")
expected=0
text=$(echo ",$flags," | sed -n 's/.*,fail=\([^,]*\),.*/\1/p')
[ -z "$text" ] || expected=1

# The program must have failed for the reason given.
failed_right()
{
	grep -qF -- "$text" "$tmp/err" || fail "it did not say \"$text\""
}

if [ "$ballast" = - ]; then
	# shellcheck disable=SC2086 # one assignment a word
	run "" $soft_env
	[ $rc -eq $expected ] || fail "exit status $rc"
	[ ! -s "$tmp/report" ] || fail "the driver reported errors"
	[ -z "$text" ] || failed_right
	exit 0
fi

# What a program prints on a large device is the same for all its cases with
# these settings alike: the last two are answers that programs see.
plain_env=$(echo "$soft_env" | grep -E \
	'^SOFTCUDA_(DEVICES|GRANULARITY|POOL_CONTEXT|LAYER_ROWS)=')
kept=
[ -z "${E2E_PLAIN:-}" ] ||
	kept=$E2E_PLAIN/$(echo "$prog $plain_env" | cksum | tr ' ' -)
if [ -n "$kept" ] && [ -s "$kept" ]; then
	sed 1d "$kept" >"$tmp/want"
	plain_h2d=$(sed 1q "$kept")
else
	# shellcheck disable=SC2086 # one assignment a word
	run "" $plain_env
	[ $rc -eq 0 ] ||
		fail "without Ballast on a large device: exit status $rc"
	results "$tmp/out" >"$tmp/want"
	plain_h2d=$(counter h2d_bytes)
	if [ -n "$kept" ]; then
		{ echo "$plain_h2d"; cat "$tmp/want"; } >"$kept.$$"
		mv "$kept.$$" "$kept"
	fi
fi

# What Ballast holds stays until the process is gone: other threads and later
# destructors may still call it.  The pointers lie in mapped tables, which the
# leak checker does not look into.
rt=$(runtime)
export ASAN_OPTIONS=detect_leaks=0
# shellcheck disable=SC2046,SC2086 # one assignment a word
run "${rt:+$rt:}$PWD/$B/libballast.so" "BALLAST_LOG_FILE=$tmp/log" \
	$soft_env $(settings BALLAST "$ballast")
[ $rc -eq $expected ] || fail "exit status $rc"
[ ! -s "$tmp/report" ] || fail "the driver reported errors"
if [ -n "$text" ]; then
	failed_right
	exit 0
fi
results "$tmp/out" >"$tmp/got"
if ! cmp -s "$tmp/want" "$tmp/got"; then
	diff "$tmp/want" "$tmp/got" | head -n 20
	fail "the results differ"
fi
[ -s "$tmp/log" ] || fail "Ballast wrote no line"
# Requests beyond all memory are errors to Ballast, and part of some programs.
oom='an allocation of .* failed: '
has oom || oom='^$'
refusal=$(echo ",$flags," | sed -n 's/.*,error=\([^,]*\),.*/\1/p')
if grep '^ballast\[[0-9:]*\] E: ' "$tmp/log" |
		grep -v "E: ${refusal:-^\$}" | grep -qv "E: $oom"; then
	fail "Ballast logged an error"
fi
[ -z "$refusal" ] || grep -q "E: $refusal" "$tmp/log" ||
	fail "Ballast did not say \"$refusal\""
says=$(echo ",$flags," | sed -n 's/.*,says=\([^,]*\),.*/\1/p')
[ -z "$says" ] || grep -qF -- "$says" "$tmp/log" ||
	fail "Ballast did not say \"$says\""
if has swap; then
	h2d=$(counter h2d_bytes)
	[ "${h2d:-0}" -gt "${plain_h2d:-0}" ] ||
		fail "nothing was swapped: $h2d bytes copied, $plain_h2d plain"
fi
if has again; then
	awk '/ I: the plan ends: / { ended = 1 }
		/ I: plan / && ended { found = 1 }
		END { exit !found }' "$tmp/log" ||
		fail "no plan came into force after one that ended"
fi
if has plan; then
	grep -q '^ballast\[[0-9:]*\] I: plan ' "$tmp/log" ||
		fail "no plan came into force"
fi
if has ahead; then
	grep -q '^ballast\[[0-9:]*\] I: by plans: ' "$tmp/log" ||
		fail "no iteration went by a plan"
	! grep -q ' I: the plan ends: the program ' "$tmp/log" ||
		fail "the plan did not fit the program"
fi
hits=$(echo ",$flags," | sed -n 's/.*,hits=\([0-9]*\),.*/\1/p')
if [ -n "$hits" ]; then
	got=$(sed -n 's/.* I: by plans: .*, \([0-9]*\) prefetches in time .*/\1/p' \
		"$tmp/log")
	[ "${got:-0}" -ge "$hits" ] ||
		fail "${got:-0} prefetches in time, not $hits"
fi
exit 0
