#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Rules of tenancy between threads, each with a library built without it
# (MUTANT=n), which must fail, or the test shows nothing:
#
#	1 pins		a pinned slot never gets a new tenant
#	2 sections	a resident page leaves only after every open issue
#			section has closed
#	3 hands		who lacks chunks waits for those that others have in
#			their hands
#	4 turns		a call that waits for nearly the whole pool is not
#			passed by smaller ones
#
# For the first two the software driver delays threads at the entry of driver
# calls by the seeds below; the library must pass with every seed, the other
# must fail with at least one.  For the last two the program itself has threads
# stopped in their calls (held.c), and no seed is needed.
#
#	B=build CC=gcc test/check-preempt.sh

set -u

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
	for seed in $seeds; do
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

rule pins 1 "1 3 4 5 6" 20M "$B/e2e/mtstreams" --threads 3 --mats 3 --rounds 3
rule sections 2 "1,200 3,200 4,200 5,200 7,200" 16M "$B/e2e/spill" \
	--base 6000000 --hot 2100000 --rounds 8 --steps 12
held="env SOFTCUDA_GRANULARITY=64K BALLAST_MIN_ALLOC=64K BALLAST_WAIT_MS=60000"
# shellcheck disable=SC2086 # one setting a word
rule hands 3 none 2176K $held "$B/e2e/held" --hands
# shellcheck disable=SC2086
rule turns 4 none 2176K $held "$B/e2e/held" --turns
exit $status
