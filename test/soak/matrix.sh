#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The long matrix: every program of matrix.cases under Ballast, on the smallest
# soft GPU that it can run on and on one of twice that, with the settings of
# matrix.knobs, any two values of which meet in some row (pairs.awk).  The
# output must be that without Ballast on a large GPU of the same granularity,
# with no report.
#
#	B=build test/soak/matrix.sh [-s N] [NAME...]
#
# -s N: of the rows only every N-th, each program beginning with another one,
# and the smallest GPU only.  The smallest size is found by bisection, for each
# granularity and min_alloc, and kept in $B/soak/min.

set -u

here=$(dirname "$0")
# shellcheck source=test/soak/common.sh
. "$here/common.sh"
STEP=${STEP:-0}
case $B in /*) abs=$B ;; *) abs=$PWD/$B ;; esac

# run MIB SETTING...: 0 when the program did right
run()
{
	memory=$1
	shift
	: >"$tmp/report"
	# shellcheck disable=SC2086 # settings, arguments of the program
	env LD_LIBRARY_PATH="$abs/softcuda" SOFTCUDA_STRICT=1 \
		LD_PRELOAD="$rt$abs/libballast.so" \
		SOFTCUDA_REPORT="$tmp/report" SOFTCUDA_MEMORY="${memory}K" \
		BALLAST_LOG_FILE="$tmp/log" BALLAST_ARENA="${arena}M" \
		BALLAST_STATS=false "$@" $always \
		timeout -k 5 120 "$abs"/e2e/$program >"$tmp/out" 2>"$tmp/err"
	rc=$?
	[ $rc -eq "$wanted" ] && [ ! -s "$tmp/report" ] || return 1
	results "$tmp/out" | cmp -s - "$tmp/want.$want"
}

# expect NAME SETTING...: from here on, what the program does by itself on a
# large GPU with these settings; fails where it does not work.
expect()
{
	want=$1
	shift
	if [ ! -s "$tmp/status.$want" ]; then
		# shellcheck disable=SC2086 # arguments of the program
		env LD_LIBRARY_PATH="$abs/softcuda" "$@" $always \
			"$abs"/e2e/$program >"$tmp/out" 2>"$tmp/err"
		echo $? >"$tmp/status.$want"
		results "$tmp/out" >"$tmp/want.$want"
	fi
	wanted=$(cat "$tmp/status.$want")
	[ "$wanted" -eq 0 ] || [ "$wanted" -eq 77 ]
}

# How much threads need depends on who comes first (a driver's memory for code
# is taken with the first launch, and not ours any more): what is enough must
# be so three times, and there is one unit more.
case_threads()
{
	case $program in *thread*|mtstreams*) return 0 ;; esac
	return 1
}

# enough MIB SETTING...
enough()
{
	run "$@" || return 1
	! case_threads || { run "$@" && run "$@"; }
}

# smallest GRANULARITY MIN_ALLOC: KiB in $least
smallest()
{
	file=$abs/soak/min/$name.$1.$2
	if [ -n "$(find "$file" -newer "$abs/libballast.so" 2>/dev/null)" ]; then
		least=$(cat "$file")
		return
	fi
	unit=256
	[ "$1" = 64K ] || unit=2048
	lo=0
	hi=$((most * 1024 / unit))
	if ! enough $((hi * unit)) SOFTCUDA_GRANULARITY="$1" \
			BALLAST_MIN_ALLOC="$2"; then
		say "on $most MiB (granularity $1, min_alloc $2)"
		least=0
		return
	fi
	while [ $((hi - lo)) -gt 1 ]; do
		mid=$(((lo + hi) / 2))
		if enough $((mid * unit)) SOFTCUDA_GRANULARITY="$1" \
				BALLAST_MIN_ALLOC="$2"; then
			hi=$mid
		else
			lo=$mid
		fi
	done
	! case_threads || hi=$((hi + 1))
	least=$((hi * unit))
	echo $least >"$file.new$$" && mv "$file.new$$" "$file"
}

say()
{
	echo "$name: wrong $*: status $rc"
	for f in report err log; do
		[ ! -s "$tmp/$f" ] || tail -n 5 "$tmp/$f" | sed 's/^/    | /'
	done
	bad=$((bad + 1))
}

value()
{
	echo "$2" | tr ' ' '\n' | sed -n "s/^$1=//p"
}

# one NAME ROWS NUMBER: all of a program's runs
one()
{
	rows=$2 number=$3 bad=0 nr=0
	tmp=$(mktemp -d) || exit 1
	trap 'rm -rf "$tmp"' EXIT
	line=$(table | awk -F'|' -v n="$1" '$1 == n')
	IFS='|' read -r name program most arena always <<-END
	$line
	END
	i=0
	while read -r row; do
		i=$((i + 1))
		[ "$STEP" -eq 0 ] ||
			[ $(((i + number) % STEP)) -eq 0 ] || continue
		row=$(echo "$row" | sed 's/[A-Z0-9_]*=-\( \|$\)//g')
		grain=$(value SOFTCUDA_GRANULARITY "$row")
		if ! expect "$grain" SOFTCUDA_GRANULARITY="$grain"; then
			rc=$wanted
			say "by itself (granularity $grain)"
			break
		fi
		smallest "$grain" "$(value BALLAST_MIN_ALLOC "$row")"
		[ "$least" -gt 0 ] || continue
		# Answers of the driver that programs see.
		seen=$(echo "$row" | tr ' ' '\n' |
			grep -E '^SOFTCUDA_(POOL_CONTEXT|LAYER_ROWS)=')
		# shellcheck disable=SC2086 # one setting a word
		expect "$grain.$(echo "$seen" | tr -dc 0-9)" \
			SOFTCUDA_GRANULARITY="$grain" $seen
		sizes=$least
		[ "$STEP" -gt 0 ] || sizes="$least $((least * 2))"
		for size in $sizes; do
			nr=$((nr + 1))
			# shellcheck disable=SC2086 # one setting a word
			run "$size" $row || say "on $size KiB: $row"
		done
	done <"$rows"
	# Without virtual memory management all stays with the driver, and a
	# program that needs it must say so.
	if [ "$STEP" -eq 0 ]; then
		nr=$((nr + 1))
		expect novmm SOFTCUDA_VMM=0 &&
			run $((most * 4096)) SOFTCUDA_VMM=0 ||
			say "without virtual memory management"
	fi
	echo "$name: $nr runs, $bad wrong"
	exit $((bad > 0))
}

table()
{
	sed -e '/^[ 	]*#/d' -e '/^[ 	]*$/d' -e 's/[ 	]*|[ 	]*/|/g' \
		"$here/matrix.cases"
}

if [ "${1:-}" = --one ]; then
	one "$4" "$2" "$3"
fi
while getopts s: o; do
	case $o in
	s)	STEP=$OPTARG ;;
	*)	exit 2 ;;
	esac
done
shift $((OPTIND - 1))

mkdir -p "$abs/soak/min"
rows=$(mktemp) || exit 1
trap 'rm -f "$rows" "$rows.list"' EXIT
status=0
for knob in $(sed -n 's/^KNOB([a-z_0-9]*, SOFTCUDA_\([A-Z_0-9]*\),.*/\1/p' \
		"$here/../softcuda/knobs.def"); do
	grep -qE "^SOFTCUDA_$knob |^#.* $knob( |\$)" "$here/matrix.knobs" || {
		echo "matrix.knobs does not name the knob $knob"
		[ "$STEP" -gt 0 ] || status=1
	}
done
awk -f "$here/pairs.awk" "$here/matrix.knobs" >"$rows"
names=${*:-$(table | cut -d'|' -f1)}
number=0
for name in $names; do
	echo "$rows $number $name"
	number=$((number + 1))
done >"$rows.list"
export STEP B CC SAN
xargs -P "$JOBS" -L 1 "$0" --one <"$rows.list" || status=1
exit $status
