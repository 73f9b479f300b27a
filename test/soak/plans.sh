#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The matrix of plans: programs with iterations under Ballast, at the smallest
# budget that the planner accepts for them, at 50 and at 75 % of their weights,
# with the settings of plans.knobs, any two values of which meet in some row
# (pairs.awk).  The output must be that without Ballast, with no report of the
# driver (races, strict checks) and no error of Ballast's.
#
#	B=build test/soak/plans.sh [-s N] [NAME...]
#
# -s N: of the rows only every N-th, each program beginning with another one.

set -u

here=$(dirname "$0")
# shellcheck source=test/soak/common.sh
. "$here/common.sh"
STEP=${STEP:-1}

# name | program: heterogeneous layers, several streams, several threads, two
# phases, two models, training, changing order, one buffer for all weights.
cases()
{
	cat <<-'END'
	threads|loop --threads 2 --layers 2 --bytes 256K --acts 64K --iters 12
	decoder|decoder --layers 2 --tokens 14
	sizes|loop --sizes 3 --layers 6 --acts 64K --iters 16
	streams|loop --streams 3 --layers 5 --bytes 256K --acts 64K --iters 16
	phases|loop --phases 5 --layers 5 --bytes 256K --acts 64K --iters 20
	models|loop --models 2 --layers 4 --bytes 256K --acts 64K --iters 18
	train|loop --train --layers 5 --bytes 256K --acts 64K --iters 16
	both|loop --train --backward --layers 4 --bytes 256K --acts 64K --iters 16
	order|loop --order 8 --layers 5 --bytes 256K --acts 64K --iters 24
	packed|loop --packed --sizes 5 --layers 5 --acts 64K --iters 16
	tied|loop --tied --layers 5 --bytes 256K --acts 64K --iters 16
	END
}

# run SETTING...: 0 when the program ended well; its output is in $tmp/out.
run()
{
	: >"$tmp/report"
	: >"$tmp/log"
	# shellcheck disable=SC2086 # arguments of the program
	env LD_LIBRARY_PATH="$B/softcuda" SOFTCUDA_STRICT=1 \
		SOFTCUDA_GRANULARITY=64K SOFTCUDA_MEMORY=1G \
		SOFTCUDA_REPORT="$tmp/report" BALLAST_LOG_FILE="$tmp/log" \
		BALLAST_ARENA=256M BALLAST_MIN_ALLOC=64K "$@" \
		timeout -k 5 120 "$B"/e2e/$program >"$tmp/out" 2>"$tmp/err"
	rc=$?
	[ $rc -eq 0 ] && [ ! -s "$tmp/report" ]
}

say()
{
	echo "$name: wrong $*: status $rc"
	for f in report err log; do
		[ ! -s "$tmp/$f" ] || tail -n 5 "$tmp/$f" | sed 's/^/    | /'
	done
	bad=$((bad + 1))
}

# profile SETTING...: of a run in which everything fits.
profile()
{
	rm -f "$tmp/profile"
	run LD_PRELOAD="$rt$PWD/$B/libballast.so" \
		BALLAST_PROFILE_OUT="$tmp/profile" "$@" && [ -s "$tmp/profile" ]
}

# The budgets.  Layers are cut the finer the less memory there is, so the one
# that counts is from a run with hardly more than the program needs.
budgets()
{
	profile || return
	all=$(sed -n 's/.*"total_unique_bytes": *\([0-9]*\).*/\1/p' \
		"$tmp/profile")
	profile BALLAST_GPU_BUDGET=$((all * 2)) || return
	"$B/ballast" plan -b 1 "$tmp/profile" 2>&1 |
		sed -n 's/.* works is -b \([0-9]*\).*/\1/p'
	echo $((all / 2)) $((all / 4 * 3))
}

# one NAME ROWS NUMBER
one()
{
	name=$1 bad=0 nr=0 planned=0
	program=$(cases | sed -n "s/^$1|//p")
	tmp=$(mktemp -d) || exit 1
	trap 'rm -rf "$tmp"' EXIT
	run || say "without Ballast"
	results "$tmp/out" >"$tmp/want"
	sizes=$(budgets)
	i=0
	while read -r row; do
		i=$((i + 1))
		[ $(((i + $3) % STEP)) -eq 0 ] || continue
		row=$(echo "$row" | sed 's/[A-Z0-9_]*=-\( \|$\)//g')
		# Threads have no period in all orders: then there is no budget.
		for size in ${sizes:-1M 2M}; do
			nr=$((nr + 1))
			# shellcheck disable=SC2086 # one setting a word
			if ! run LD_PRELOAD="$rt$PWD/$B/libballast.so" \
					BALLAST_GPU_BUDGET="$size" $row ||
				! results "$tmp/out" | cmp -s - "$tmp/want" ||
				grep -q '^ballast\[[0-9:]*\] E: ' "$tmp/log"
			then
				say "with $size bytes: $row"
			fi
			grep -q ' I: plan ' "$tmp/log" &&
				planned=$((planned + 1))
		done
	done <"$2"
	# A few rows may be of strategies that have no plan for it.
	if [ "$STEP" -eq 1 ] && [ $planned -eq 0 ] && [ "$name" != threads ]
	then
		echo "$name: no plan came into force"
		bad=$((bad + 1))
	fi
	echo "$name: $nr runs, $planned by a plan, $bad wrong"
	exit $((bad > 0))
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

rows=$(mktemp) || exit 1
trap 'rm -f "$rows" "$rows.list"' EXIT
awk -f "$here/pairs.awk" "$here/plans.knobs" >"$rows"
number=0
for name in ${*:-$(cases | cut -d'|' -f1)}; do
	echo "$rows $number $name"
	number=$((number + 1))
done >"$rows.list"
export STEP B CC SAN
xargs -P "$JOBS" -L 1 "$0" --one <"$rows.list"
