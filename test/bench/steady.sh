#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The steady state of plans on the software driver, in virtual time: how long an
# iteration takes against the same program with everything resident, against the
# proven bound and against what the planner expected; what a link that slows
# down does to it; which driver calls it takes.  Part of "make bench": prints a
# table and appends rows to $B/bench.jsonl.
#
# An iteration takes the difference between a long and a short run, both of which
# go beyond the point where the plan comes into force.  The link's rate is chosen
# from two runs before, so that the link is busy for 80 % of the compute time, or
# longer than that takes.  All with verify = off.  ONLY="NAME..." measures these
# workloads alone.

set -eu

B=${B:-build}
out=$B/bench.jsonl
lib=$PWD/$B/libballast.so

for v in $(env | sed -n 's/^\(\(BALLAST\|SOFTCUDA\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
: >"$tmp/log"

# Kernels take their time from instructions, so that the link can be faster.
soft="SOFTCUDA_RACE=0 SOFTCUDA_MEMORY=1G SOFTCUDA_LANE_GIPS=40"

# name, budget, granularity, short run, iterations that the long one has more,
# program.  What verify = off cannot have in swapped memory is small.
workloads()
{
	cat <<-'END'
	decoder|62M|2M|10|8|decoder --layers 6 --tokens
	loop|18M|64K|16|20|loop --acts 32K --iters
	loop_sizes|18M|64K|16|20|loop --sizes 3 --layers 6 --acts 32K --iters
	loop_tied|18M|64K|16|20|loop --tied --acts 32K --iters
	END
}

# one NAME COUNT ASSIGNMENT...: a run with so many iterations; its numbers go to
# $tmp/stats, its log to $tmp/log.
one()
{
	one_line=$(workloads | grep "^$1|")
	count=$2
	shift 2
	# shellcheck disable=SC2086 # words
	env $soft LD_LIBRARY_PATH="$B/softcuda" \
		SOFTCUDA_GRANULARITY="$(echo "$one_line" | cut -d'|' -f3)" \
		SOFTCUDA_STATS="$tmp/stats" "$@" \
		"$B"/e2e/${one_line##*|} "$count" >"$tmp/out" 2>"$tmp/err" || {
		echo "$1 ($*):" >&2
		tail -n 3 "$tmp/err" >&2
		exit 1
	}
}

number()
{
	sed -n "s/.*\"$1\": *\\([0-9]*\\).*/\\1/p" "$tmp/stats"
}

# From Ballast's log, in us: what the plan expected, and the bound.
logged()
{
	sed -n "s/.* I: plan .*; \\([0-9]*\\) us expected, bound \\([0-9]*\\) us/$1/p" \
		"$tmp/log" | tail -n 1
}

entered()
{
	sed -n 's/.* I: by plans: .*, \([0-9]*\) prefetches in time and \([0-9]*\) missed.*/\1 \2/p' \
		"$tmp/log" | awk '{ n = $1 + $2 } END { print n + 0 }'
}

counters="virtual_ns calls creates maps unmaps set_accesses syncs h2d_copies
	h2d_bytes h2d_busy_ns"

# steady NAME ASSIGNMENT...: per iteration, each counter as $counter.
steady()
{
	name=$1
	shift
	line=$(workloads | grep "^$name|")
	short=$(echo "$line" | cut -d'|' -f4)
	more=$(echo "$line" | cut -d'|' -f5)
	one "$name" "$short" "$@"
	for c in $counters; do
		eval "a_$c=$(number "$c")"
	done
	a_entered=$(entered)
	one "$name" $((short + more)) "$@"
	for c in $counters; do
		eval "$c=\$(awk -v a=\$a_$c -v b=$(number "$c") -v n=$more \
			'BEGIN { print (b - a) / n }')"
	done
	layers=$(awk -v a="${a_entered:-0}" -v b="$(entered)" -v n="$more" 'BEGIN { print (b - a) / n }')
}

# planned NAME RATE ASSIGNMENT...
planned()
{
	p_name=$1 p_rate=$2
	shift 2
	line=$(workloads | grep "^$p_name|")
	budget=$(echo "$line" | cut -d'|' -f2)
	least=$(echo "$line" | cut -d'|' -f3)
	steady "$p_name" SOFTCUDA_H2D_GBPS="$p_rate" \
		SOFTCUDA_D2H_GBPS="$p_rate" LD_PRELOAD="$lib" \
		BALLAST_LOG_FILE="$tmp/log" BALLAST_GPU_BUDGET="$budget" \
		BALLAST_ARENA=512M BALLAST_MIN_ALLOC="$least" \
		BALLAST_VERIFY=off "$@"
}

# larger A B
larger()
{
	awk -v a="$1" -v b="$2" 'BEGIN { if (a > b) print a; else print b }'
}

calc()
{
	awk "BEGIN { printf \"%.4f\", ($1) }"
}

# emit NAME VALUE UNIT LIMIT: a row; no spread in virtual time.
emit()
{
	printf '{"name":"%s","value":%s,"unit":"%s","better":"lower",' \
		"$1" "$2" "$3" >>"$out"
	printf '"limit":%s,"spread":0}\n' "$4" >>"$out"
	printf '%-44s %10s %-6s (limit %s)\n' "$1" "$2" "$3" "$4"
	case $4 in
	null)	;;
	*)	awk -v v="$2" -v l="$4" 'BEGIN { exit !(v > l) }' &&
			over="$over $1" || true ;;
	esac
}

# ends FROM_US: when iterations ended, in us, from the trace.
ends()
{
	sed -n 's/.*"name":"cuStreamSynchronize".*"ts":\([0-9.]*\),"dur":\([0-9.]*\).*/\1 \2/p' \
		"$tmp/trace" | awk -v from="$1" '{ e = $1 + $2 }
			e > from { print e }'
}

# mean FROM_US TO_US: of the iterations in between, but for the first ten.
mean()
{
	ends "$1" | awk -v to="$2" '
		$1 <= to { n++; if (n == 11) first = $1; last = $1 }
		END { if (n < 16) exit 1; print (last - first) / (n - 11) }'
}

# The link drops to 70 % for 40 ms, durations vary by 20 %.
dropped()
{
	steady loop
	planned loop 25
	rate=$(calc "$h2d_bytes / (0.8 * $virtual_ns)")
	planned loop "$(calc "0.7 * $rate")"
	slow=$(logged '\2')
	planned loop "$rate"
	fast=$(logged '\2')
	one loop 20 SOFTCUDA_H2D_GBPS="$rate" SOFTCUDA_D2H_GBPS="$rate"
	# By then the plan is in force: on demand takes longer than a plan.
	begin=$(calc "$(number virtual_ns) * 2 / 1000000")
	end=$(calc "$begin + 40")
	one loop 140 SOFTCUDA_H2D_GBPS="$rate" SOFTCUDA_D2H_GBPS="$rate" \
		SOFTCUDA_JITTER=20 SOFTCUDA_DROP="$begin:$end:70" \
		SOFTCUDA_TRACE="$tmp/trace" LD_PRELOAD="$lib" \
		BALLAST_LOG_FILE="$tmp/log" BALLAST_GPU_BUDGET="$budget" \
		BALLAST_ARENA=512M BALLAST_MIN_ALLOC="$least" \
		BALLAST_VERIFY=off
	during=$(mean "$(calc "$begin * 1000")" "$(calc "$end * 1000")")
	after=$(mean "$(calc "$end * 1000")" 1e12)
	printf 'a link at 70 %%: %s us, bound %s; back: %s us, bound %s\n' \
		"$during" "$slow" "$after" "$fast"
}

# Iterations from the program's first to the first fast one.
until_fast()
{
	for n in 4 5 6 7 8 9 10 11 12; do
		rm -f "$tmp/log"
		one loop "$n" LD_PRELOAD="$lib" BALLAST_LOG_FILE="$tmp/log" \
			BALLAST_LOG_LEVEL=debug BALLAST_GPU_BUDGET=18M \
			BALLAST_ARENA=512M BALLAST_MIN_ALLOC=64K \
			BALLAST_VERIFY=off "$@"
		if grep -q ' D: device 0: fast;' "$tmp/log"; then
			echo $((n - 1))
			return
		fi
	done
	echo 99
}

over=
max_predicted=0 max_resident=0 max_bound=0 max_maps=0 max_calls=0

printf '%-12s %6s %10s %10s %10s %10s %6s %7s %6s\n' workload GB/s \
	resident period expected bound link% copies calls
for w in ${ONLY-$(workloads | cut -d"|" -f1)}; do
	steady "$w"
	resident=$virtual_ns plain_calls=$calls plain_syncs=$syncs
	planned "$w" 25
	bytes=$h2d_bytes
	for busy in 0.8 1.3; do
		# What is streamed depends on the rate: once more with that.
		for turn in 1 2; do
			rate=$(calc "$bytes / ($busy * $resident)")
			planned "$w" "$rate"
			bytes=$h2d_bytes
		done
		expected=$(logged '\1') bound=$(logged '\2')
		link=$(calc "100 * $h2d_busy_ns / $resident")
		own=$(calc "$calls - $plain_calls")
		maps_row=$(calc "$creates + $maps + $unmaps + $set_accesses + \
			$syncs - $plain_syncs")
		# One call for each further piece is allowed for.
		calls_row=$(calc "($own - ($h2d_copies - $layers)) / $layers")
		printf '%-12s %6.1f %10.1f %10.1f %10s %10s %6.0f %7.1f %6.1f\n' \
			"$w" "$rate" "$(calc "$resident / 1000")" \
			"$(calc "$virtual_ns / 1000")" "$expected" "$bound" \
			"$link" "$h2d_copies" "$own"
		r=$(calc "$virtual_ns / 1000 / $expected")
		max_predicted=$(larger "$r" "$max_predicted")
		max_maps=$(larger "$maps_row" "$max_maps")
		max_calls=$(larger "$calls_row" "$max_calls")
		if [ "$busy" = 0.8 ]; then
			r=$(calc "$virtual_ns / $resident")
			max_resident=$(larger "$r" "$max_resident")
		else
			r=$(calc "$virtual_ns / 1000 / $bound")
			max_bound=$(larger "$r" "$max_bound")
		fi
	done
done
emit period_compute_bound_over_resident "$max_resident" ratio 1.01
emit period_link_bound_over_bound "$max_bound" ratio 1.02
emit period_over_predicted_max "$max_predicted" ratio 1.03
emit steady_map_calls_per_iter "$max_maps" calls 0
emit driver_calls_per_streamed_layer "$max_calls" calls 5

# discovery_iters + profiling_iters + verify_iters, as they are by default.
emit iterations_until_fast "$(until_fast)" iters 6
dropped
emit period_slow_link_over_bound "$(calc "$during / $slow")" ratio 1.05
emit period_after_slow_link_over_bound "$(calc "$after / $fast")" ratio 1.05

[ -z "$over" ] || {
	echo "over the limit:$over"
	exit 1
}
