#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What a plan gains over what else could be done with the same GPU memory:
# virtual ms per iteration in the steady state, for workloads x budgets x link
# rates x policies.  Part of "make bench": prints a table and appends rows to
# $B/bench.jsonl, the last of them policy_rows_lost: rows in which the plan is
# more than 1 % slower than one of the others.
#
# Budgets are the smallest that the planner accepts for the workload's profile
# ("least"), and 50 and 75 % of its memory.  All policies run with verify = off.
# "uvm" is the program without Ballast on a driver that moves pages, with one
# page more than the budget for what is not managed.  An iteration takes the
# difference between a long and a short run, both of which go beyond the point
# where a plan comes into force.

set -eu

B=${B:-build}
here=$(dirname "$0")
out=$B/bench.jsonl
lib=$PWD/$B/libballast.so
policies="plan lru first-fit zero-copy uvm"
rates="25 60"
page=2097152

# The device: instructions make kernels take about as long as one of the links
# takes for their data, so that rows are found on both sides.  (Memory that is
# no faster than the link would make it a gain to have data on the host.)
soft="SOFTCUDA_RACE=0 SOFTCUDA_LANE_GIPS=${GIPS:-40}"

# name, granularity, short run, iterations that the long one has more.  The
# loop's state is uploaded once and then written by kernels, which verify = off
# does not allow in managed memory: so it is small.
workloads()
{
	cat <<-'END'
	decoder|2M|decoder --layers 3 --tokens|28|10
	layers|2M|layers --rounds|44|10
	loop|2M|loop --acts 1M --iters|44|12
	loop_heavy|2M|loop --work 3 --acts 1M --iters|44|12
	loop_sizes|2M|loop --sizes 3 --layers 6 --acts 1M --iters|44|12
	loop_tied|2M|loop --tied --acts 1M --iters|44|12
	loop_phases|2M|loop --phases 4 --acts 1M --iters|60|12
	loop_backward|2M|loop --backward --acts 1M --iters|44|12
	END
}

# timed MEMORY GRANULARITY RATE PROGRAM... [-- ASSIGNMENT...]: virtual ns
timed()
{
	memory=$1 granularity=$2 rate=$3 program=$4
	shift 4
	stats=$(mktemp "$tmp/stats.XXXXXX")
	# shellcheck disable=SC2086 # words
	env $soft LD_LIBRARY_PATH="$B/softcuda" SOFTCUDA_MEMORY="$memory" \
		SOFTCUDA_GRANULARITY="$granularity" \
		SOFTCUDA_H2D_GBPS="$rate" SOFTCUDA_D2H_GBPS="$rate" \
		SOFTCUDA_STATS="$stats" "$@" "$B"/e2e/$program \
		>"$stats.out" 2>"$stats.err" || {
		echo "$program ($*):" >&2
		tail -n 3 "$stats.err" >&2
		return 1
	}
	sed -n 's/.*"virtual_ns": *\([0-9]*\).*/\1/p' "$stats"
}

# run NAME BUDGET BYTES RATE POLICY: one line with the ms of an iteration.
run()
{
	name=$1 budget=$2 bytes=$3 rate=$4 policy=$5
	line=$(workloads | grep "^$name|")
	IFS='|' read -r name granularity program short more <<-END
	$line
	END
	# Only a plan takes its time.
	[ "$policy" = plan ] || short=$((short / 3))
	if [ "$policy" = uvm ]; then
		set -- $((bytes + page)) "$granularity" "$rate"
		over="SOFTCUDA_UVM=1"
	else
		set -- 1G "$granularity" "$rate"
		over="LD_PRELOAD=$lib BALLAST_LOG_LEVEL=warn
			BALLAST_GPU_BUDGET=$bytes BALLAST_ARENA=512M
			BALLAST_MIN_ALLOC=$granularity BALLAST_POLICY=$policy
			BALLAST_VERIFY=off SOFTCUDA_HOST_VMM=1"
	fi
	# shellcheck disable=SC2086 # words
	{
		a=$(timed "$@" "$program $short" $over) &&
		b=$(timed "$@" "$program $((short + more))" $over)
	} || {
		echo "$name $budget $bytes $rate $policy failed"
		return
	}
	echo "$a $b $more" | awk -v row="$name $budget $bytes $rate $policy" \
		'{ printf "%s %.4f\n", row, ($2 - $1) / $3 / 1e6 }'
}

if [ "${1:-}" = run ]; then
	shift
	run "$@"
	exit 0
fi

for v in $(env | sed -n 's/^\(\(BALLAST\|SOFTCUDA\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done
tmp=$(mktemp -d)
export B tmp
trap 'rm -rf "$tmp"' EXIT

# The budgets of a workload, from a profile of a run in which all fits.
budgets()
{
	timed 1G "$2" 25 "$3 $4" LD_PRELOAD="$lib" BALLAST_ARENA=256M \
		BALLAST_PROFILE_OUT="$tmp/$1.json" \
		BALLAST_MIN_ALLOC="$2" >"$tmp/ns"
	all=$(sed -n 's/.*"total_unique_bytes": *\([0-9]*\).*/\1/p' \
		"$tmp/$1.json")
	least=$("$B/ballast" plan -b 1 "$tmp/$1.json" 2>&1 |
		sed -n 's/.* works is -b \([0-9]*\).*/\1/p')
	echo "$1 least $(((least + page - 1) / page * page))"
	for percent in 50 75; do
		echo "$1 $percent $((all * percent / 100 / page * page))"
	done
}

workloads | while IFS='|' read -r name granularity program short more; do
	budgets "$name" "$granularity" "$program" "$short"
done >"$tmp/budgets"

while read -r name budget bytes; do
	for rate in $rates; do
		for policy in $policies; do
			echo "$name $budget $bytes $rate $policy"
		done
	done
done <"$tmp/budgets" | xargs -P "$(nproc)" -L 1 "$here/policies.sh" run \
	>"$tmp/got"

awk -v policies="$policies" -v rates="$rates" -v out="$out" '
	FNR == NR { ms[$1, $2, $4, $5] = $6; next }
	{ order[++n] = $1 " " $2 " " $3 }
	END {
		nr_p = split(policies, p, " ")
		nr_r = split(rates, r, " ")
		printf "%-14s %-6s %8s %5s", "workload", "budget", "MiB", "GB/s"
		for (k = 1; k <= nr_p; k++)
			printf " %10s", p[k]
		print "   ms per iteration"
		for (i = 1; i <= n; i++) {
			split(order[i], f, " ")
			for (j = 1; j <= nr_r; j++)
				row(f[1], f[2], f[3], r[j])
		}
		printf "{\"name\":\"policy_rows_lost\",\"value\":%d," \
			"\"unit\":\"rows\",\"better\":\"lower\"," \
			"\"limit\":0,\"spread\":0}\n", lost >>out
		printf "%d of %d rows lost\n%s", lost, n * nr_r, text
		exit lost > 0
	}
	function row(w, b, bytes, rate,    k, v, plan, bad) {
		plan = ms[w, b, rate, p[1]]
		bad = plan == "failed"
		printf "%-14s %-6s %8.1f %5s", w, b, bytes / 1048576, rate
		for (k = 1; k <= nr_p; k++) {
			v = ms[w, b, rate, p[k]]
			printf " %10s", v
			if (v == "failed")
				continue
			printf "{\"name\":\"policy_%s_%s_%s_%s\"," \
				"\"value\":%s,\"unit\":\"ms\"," \
				"\"better\":\"lower\",\"limit\":null," \
				"\"spread\":0}\n", w, b, rate, p[k], v >>out
			if (k > 1 && !bad && plan > 1.01 * v)
				bad = 1
		}
		print bad ? "   lost" : ""
		lost += bad
		if (bad)
			text = text "lost: " w " " b " at " rate " GB/s\n"
	}' "$tmp/got" "$tmp/budgets"
