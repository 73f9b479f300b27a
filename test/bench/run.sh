#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# "make bench": runs the measurements, prints a table and writes
# $B/bench.jsonl, one object a line: name, value, unit, better (lower or
# higher), limit (null where there is none) and spread, (max - min) / median
# over the repetitions.
#
# A launch is measured in three kinds of process, in turn, on one core: with
# the null driver alone, with Ballast preloaded and switched off, with Ballast
# active and all eight pointers in managed memory.  What Ballast adds is the
# median of the differences within a turn.  A launch under a plan is measured in
# the same way; it carries its share of what a plan does in an iteration.

set -eu

B=${B:-build}
CORE=${CORE:-$(($(nproc) - 1))}
TURNS=${TURNS:-9}
out=$B/bench.jsonl
lib=$PWD/$B/libballast.so
null=$PWD/$B/bench

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for v in $(env | sed -n 's/^\(BALLAST_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done

one()
{
	env LD_LIBRARY_PATH="$null" "$@" taskset -c "$CORE" "$B/bench/bench_launch"
}

# With Ballast active: without managed allocations the number means nothing.
active()
{
	rm -f "$tmp/log"
	one BALLAST_LOG_FILE="$tmp/log" LD_PRELOAD="$lib"
	grep -q ' managed .* in 8 allocations' "$tmp/log" || {
		echo "the eight allocations were not managed:" >&2
		cat "$tmp/log" >&2
		return 1
	}
}

# The same under a plan; without one the number means nothing.
swapped()
{
	rm -f "$tmp/log"
	env LD_LIBRARY_PATH="$null" BALLAST_LOG_FILE="$tmp/log" \
		BALLAST_VERIFY=off BALLAST_GUARD=fast BALLAST_ARENA=128M \
		BALLAST_GPU_BUDGET=40M LD_PRELOAD="$lib" \
		taskset -c "$CORE" "$B/bench/bench_swap"
	grep -q ' I: by plans: 1[0-9][0-9] iterations' "$tmp/log" || {
		echo "the launches did not go by a plan:" >&2
		cat "$tmp/log" >&2
		return 1
	}
}

: >"$tmp/swap"
i=0
while [ $i -lt "$TURNS" ]; do
	a=$(env LD_LIBRARY_PATH="$null" taskset -c "$CORE" \
		"$B/bench/bench_swap")
	b=$(swapped)
	echo "$a $b" >>"$tmp/swap"
	i=$((i + 1))
done

: >"$tmp/turns"
i=0
while [ $i -lt "$TURNS" ]; do
	a=$(one)
	b=$(one BALLAST_ENABLED=0 LD_PRELOAD="$lib")
	c=$(active)
	echo "$a $b $c" >>"$tmp/turns"
	i=$((i + 1))
done

# row NAME COLUMN LIMIT [FILE]: median and spread of column - column 1.
row()
{
	awk -v c="$2" '{ print $c - $1 }' "$tmp/${4:-turns}" | sort -n |
		awk -v n="$1" -v l="$3" '{ v[NR] = $1 } END {
			m = v[int((NR + 1) / 2)]
			s = m ? (v[NR] - v[1]) / (m < 0 ? -m : m) : 0
			printf "{\"name\":\"%s\",\"value\":%.2f,", n, m
			printf "\"unit\":\"ns\",\"better\":\"lower\","
			printf "\"limit\":%s,\"spread\":%.3f}\n", l, s
		}'
}

# Launches per second of $1 threads; the null driver's launch takes 4 us.
threads()
{
	n=$1
	shift
	env LD_LIBRARY_PATH="$null" NULLCUDA_LAUNCH_NS=4000 "$@" \
		"$B/bench/bench_threads" "$n" 100
}

# scaling NAME BUDGET1 BUDGET8: the same ratio, eight threads over one, with
# Ballast and without; their quotient, of the best of several turns.  The budgets
# make the sets resident, or streamed.
scaling()
{
	: >"$tmp/scaling"
	i=0
	while [ $i -lt 9 ]; do
		a=$(threads 1)
		b=$(threads 8)
		c=$(threads 1 LD_PRELOAD="$lib" BALLAST_LOG_LEVEL=error \
			BALLAST_GPU_BUDGET="$2" BALLAST_ARENA=256M)
		d=$(threads 8 LD_PRELOAD="$lib" BALLAST_LOG_LEVEL=error \
			BALLAST_GPU_BUDGET="$3" BALLAST_ARENA=256M)
		echo "$a $b $c $d" >>"$tmp/scaling"
		i=$((i + 1))
	done
	awk -v n="$1" '{
			for (k = 1; k <= 4; k++)
				if ($k > best[k])
					best[k] = $k
			r = $4 / $3 / ($2 / $1)
			low = NR == 1 || r < low ? r : low
			high = r > high ? r : high
		} END {
			m = best[4] / best[3] / (best[2] / best[1])
			printf "{\"name\":\"%s\",\"value\":%.3f,", n, m
			printf "\"unit\":\"ratio\","
			printf "\"better\":\"higher\","
			printf "\"limit\":0.9,\"spread\":%.3f}\n",
				(high - low) / m
		}' "$tmp/scaling"
}

{
	row launch8_resident_added_ns 3 100
	row launch8_disabled_added_ns 2 20
	row launch8_swap_added_ns 2 150 swap
	taskset -c "$CORE" "$B/bench/bench_lookup"
	scaling launch_8threads_scaling_resident 1G 1G
	# Three quarters of 16 and 128 MiB, of which launches use a half in turn.
	scaling launch_8threads_scaling_streamed 12M 96M
	if [ -x "$B/bench/bench_plan" ]; then
		taskset -c "$CORE" "$B/bench/bench_plan"
	fi
	if [ -x "$B/bench/bench_ptx" ]; then
		taskset -c "$CORE" "$B/bench/bench_ptx"
	fi
} >"$tmp/jsonl"
mv "$tmp/jsonl" "$out"

awk '
	function get(key,    v) {
		v = $0
		if (!sub(".*\"" key "\": *", "", v))
			return ""
		sub(/[,}].*/, "", v)
		gsub(/"/, "", v)
		return v
	}
	BEGIN {
		printf "%-32s %12s %-10s %10s %8s\n", "measurement", "value",
			"unit", "limit", "spread"
	}
	/^{/ {
		v = get("value")
		l = get("limit")
		ok = 1
		if (l != "" && l != "null")
			ok = get("better") == "higher" ? v + 0 >= l + 0 : \
				v + 0 <= l + 0
		printf "%-32s %12.2f %-10s %10s %7.1f%%%s\n", get("name"), v,
			get("unit"), l == "null" ? "-" : l,
			100 * get("spread"), ok ? "" : "  beyond the limit"
		bad += !ok
	}
	END { exit bad > 0 }' "$out" || {
	echo "some measurements are beyond their limits"
	exit 1
}
