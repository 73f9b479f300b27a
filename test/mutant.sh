# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tests of rules between threads: each rule has a library built
# without it (MUTANT=n), which must fail, or the test shows nothing.  The caller
# ends with `exit $status`.

B=${B:-build}
cc=$(basename "${CC:-gcc}")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
status=0

# run LIBRARY SEED MEMORY PROGRAM ARGS: 0 as it should be
run()
{
	lib=$1 seed=$2 memory=$3
	shift 3
	: >"$tmp/report"
	env LD_PRELOAD="$PWD/$lib" LD_LIBRARY_PATH="$B/softcuda" \
		SOFTCUDA_MEMORY="$memory" SOFTCUDA_PREEMPT="${seed#none}" \
		SOFTCUDA_REPORT="$tmp/report" BALLAST_ARENA=128M \
		BALLAST_LOG_LEVEL=error BALLAST_STATS=false \
		timeout 120 "$@" >"$tmp/out" 2>"$tmp/err" &&
		[ ! -s "$tmp/report" ] && cmp -s "$tmp/want" "$tmp/out"
}

# rule NAME MUTANT SEEDS MEMORY PROGRAM ARGS
rule()
{
	name=$1 mutant=$2 seeds=$3 memory=$4
	shift 4
	env LD_LIBRARY_PATH="$B/softcuda" SOFTCUDA_MEMORY=512M "$@" \
		>"$tmp/want" 2>"$tmp/err" || {
		echo "$name: $1 fails without Ballast"
		cat "$tmp/err"
		exit 1
	}
	# A seed that stands there again is another try for the mutant.
	for seed in $(echo "$seeds" | tr ' ' '\n' | sort -u); do
		if ! run "$B/libballast.so" "$seed" "$memory" "$@"; then
			echo "$name: fails with seed $seed"
			tail -n 5 "$tmp/err" "$tmp/report"
			status=1
		fi
	done
	for seed in $seeds; do
		run "build/$cc-mutant$mutant/libballast.so" "$seed" "$memory" \
			"$@" || return 0
	done
	echo "$name: a library without the rule passes with every seed: $seeds"
	status=1
}

