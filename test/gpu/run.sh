#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Everything that wants a GPU, in at most 8 minutes (make check-gpu):
#
#	test/gpu/run.sh [--soft] [--quick] [--no-probes | --no-e2e]
#
# Builds what it needs, runs the probes, then the programs of test/gpu/cases
# with and without Ballast on the machine's driver, and compares what they
# print.  --soft: on the software driver instead, the probes in small sizes,
# to try all of this out.  --quick: few programs.  Results go to OUT
# (build/gpu):
#
#	device.txt	driver, device, machine
#	probe.jsonl	a fact a line; probe.txt is the table, probe.err the rest
#	e2e.txt		a line for each program
#	e2e.log		what failing programs and Ballast had to say
#
# Environment: B, OUT, LIMIT (480 seconds for all), PROBE_LIMIT (240),
# NOBUILD=1 (take what is there: built by the caller, or on another machine).
# Exit status: 0 good, 1 something failed, 77 no GPU.

set -u

cd "$(dirname "$0")/../.." || exit 1
B=${B:-build}
OUT=${OUT:-$B/gpu}
LIMIT=${LIMIT:-480}
PROBE_LIMIT=${PROBE_LIMIT:-240}
begin=$(date +%s)
soft=
quick=
probes=1
e2e=1
for arg in "$@"; do
	case $arg in
	--soft)		soft=1 ;;
	--quick)	quick=1 ;;
	--no-probes)	probes= ;;
	--no-e2e)	e2e= ;;
	*)	sed -n '5p' "$0" | sed 's/^#	/usage: /' >&2
		exit 2 ;;
	esac
done

left()
{
	echo $((LIMIT - ($(date +%s) - begin)))
}

# Comments and blank lines out, fields trimmed.
table()
{
	sed -e '/^[ 	]*#/d' -e '/^[ 	]*$/d' -e 's/[ 	]*|[ 	]*/|/g' \
		-e 's/[ 	]*$//' test/gpu/cases | while read -r l; do
		case $quick:${l##*|}, in
		1:*quick,*|:*) echo "$l" ;;
		esac
	done
}

programs=$(table | cut -d'|' -f2 | cut -d' ' -f1 | sort -u)

# ---- build

needed=$B/gpu/probe
[ -z "$soft" ] || needed="$needed $B/softcuda/libcuda.so.1"
if [ -n "$e2e" ]; then
	needed="$needed $B/libballast.so"
	for p in $programs; do
		needed="$needed $B/e2e/$p"
	done
fi
# shellcheck disable=SC2086 # a list of targets
if [ -z "${NOBUILD:-}" ] && ! timeout "$LIMIT" make -j"$(nproc)" $needed
then
	echo "building failed; NOBUILD=1 takes what was built elsewhere" >&2
	exit 1
fi
for f in $needed; do
	[ -e "$f" ] || { echo "no $f" >&2; exit 1; }
done
mkdir -p "$OUT" || exit 1
rm -f "$OUT"/device.txt "$OUT"/probe.jsonl "$OUT"/probe.txt \
	"$OUT"/probe.err "$OUT"/e2e.txt "$OUT"/e2e.log
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# ---- the driver

for v in $(env | sed -n 's/^\(\(BALLAST\|SOFTCUDA\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done
if [ -n "$soft" ]; then
	# A slow device, so that kernels of some ms are quick to interpret.
	# Some probes break rules on purpose; SOFTCUDA_STRICT stays off.
	LD_LIBRARY_PATH=$PWD/$B/softcuda
	case $B in /*) LD_LIBRARY_PATH=$B/softcuda ;; esac
	SOFTCUDA_MEMORY=64G
	SOFTCUDA_LANE_GIPS=0.05
	export LD_LIBRARY_PATH SOFTCUDA_MEMORY SOFTCUDA_LANE_GIPS
fi
{
	date -u
	uname -srm
	nproc
	grep -m 1 'model name' /proc/cpuinfo
	grep MemTotal /proc/meminfo
	[ -n "$soft" ] || nvidia-smi 2>&1
	[ -n "$soft" ] || nvidia-smi topo -m 2>&1
	[ -z "$soft" ] || echo "softcuda"
} >"$OUT/device.txt" 2>/dev/null

"$B/gpu/probe" --quick --out "$tmp/machine" machine >"$tmp/out" 2>"$tmp/err"
rc=$?
if [ $rc -ne 0 ]; then
	# The reason first: it is what a skipped test shows.
	head -n 1 "$tmp/err"
	cat "$tmp/out"
	exit $rc
fi

failed=0

# ---- probes

if [ -n "$probes" ]; then
	limit=$(left)
	[ "$limit" -lt "$PROBE_LIMIT" ] || limit=$PROBE_LIMIT
	echo "== probes (at most $limit s)"
	# The table is shown as it grows; the status comes by a file.
	{
		timeout -k 5 $((limit + 10)) "$B/gpu/probe" --limit "$limit" \
			${soft:+--quick} --out "$OUT/probe.jsonl" \
			2>"$OUT/probe.err"
		echo $? >"$tmp/rc"
	} | tee "$OUT/probe.txt"
	rc=$(cat "$tmp/rc")
	if [ "$rc" -ne 0 ]; then
		echo "FAIL probes (status $rc); standard error:"
		tail -n 20 "$OUT/probe.err"
		failed=$((failed + 1))
	fi
fi

# ---- programs

# run PRELOAD ASSIGNMENT...: $prog within the time; sets rc and ms.
run()
{
	preload=$1
	shift
	limit=$(left)
	[ "$limit" -lt 60 ] || limit=60
	# 0 would be no limit.
	[ "$limit" -gt 0 ] || limit=1
	t=$(date +%s%N)
	# shellcheck disable=SC2086 # arguments of the program
	timeout -k 5 "$limit" env ${preload:+"LD_PRELOAD=$preload"} "$@" \
		"$B"/e2e/$prog >"$tmp/out" 2>"$tmp/err"
	rc=$?
	ms=$((($(date +%s%N) - t) / 1000000))
}

# Timings and the size of the device may differ, results may not.
results()
{
	grep -Ev '^(gpu_bytes|ms_per_[a-z]+|[a-z]+_ms):' "$1"
}

# settings "key=value ...": BALLAST_KEY=value, one a line.
settings()
{
	for s in $1; do
		echo "BALLAST_$(echo "${s%%=*}" | tr '[:lower:]' '[:upper:]')=${s#*=}"
	done
}

# bad TEXT: the case has failed; what was said goes to the log.
bad()
{
	verdict="FAIL: $1"
	failed=$((failed + 1))
	{
		echo "== $name: $1"
		for f in err log out want; do
			[ ! -s "$tmp/$f" ] || { echo "-- $f"
				tail -n 40 "$tmp/$f"; }
		done
	} >>"$OUT/e2e.log"
}

# One case; sets verdict, plain_ms and ms.
one()
{
	plain_ms=-
	ms=-
	: >"$tmp/log"
	run ""
	plain_ms=$ms
	if [ $rc -eq 77 ]; then
		verdict="skip: $(head -n 1 "$tmp/err")"
		return
	elif [ $rc -ne 0 ]; then
		bad "status $rc without Ballast"
		return
	fi
	results "$tmp/out" >"$tmp/want"
	# shellcheck disable=SC2046 # one assignment a word
	run "$ballast" "BALLAST_LOG_FILE=$tmp/log" $(settings "$set")
	results "$tmp/out" >"$tmp/got"
	# Requests beyond all memory are errors to Ballast, and part of some
	# programs.
	oom='^$'
	case ,$flags, in *,oom,*) oom='an allocation of .* failed: ' ;; esac
	verdict=ok
	if [ $rc -ne 0 ]; then
		bad "status $rc with Ballast"
	elif ! cmp -s "$tmp/want" "$tmp/got"; then
		bad "the results differ"
	elif [ ! -s "$tmp/log" ]; then
		bad "Ballast wrote no line"
	elif grep '^ballast\[[0-9:]*\] E: ' "$tmp/log" |
			grep -qv "E: $oom"; then
		bad "Ballast logged an error"
	else
		case ,$flags, in
		*,swap,*)	grep -q '[ ;][1-9][0-9]* of [0-9]* launches needed' \
				"$tmp/log" || bad "nothing was swapped" ;;
		esac
	fi
	{
		echo "== $name: $prog: $set"
		cat "$tmp/log"
	} >>"$OUT/e2e.log"
}

if [ -n "$e2e" ]; then
	ballast=$PWD/$B/libballast.so
	case $B in /*) ballast=$B/libballast.so ;; esac
	skipped=
	echo "== programs, without and with Ballast"
	table >"$tmp/cases"
	while IFS='|' read -r name prog set flags; do
		# What is started must be able to end.
		if [ "$(left)" -lt 5 ]; then
			skipped="$skipped $name"
			continue
		fi
		one
		printf '%-14s %8s ms alone %8s ms with Ballast  %s\n' "$name" \
			"$plain_ms" "$ms" "$verdict" | tee -a "$OUT/e2e.txt"
		case $verdict in
		FAIL*)	tail -n 3 "$tmp/err" | sed 's/^/    | /' ;;
		esac
	done <"$tmp/cases"
	[ -z "$skipped" ] || echo "not run, the time was up:$skipped" |
		tee -a "$OUT/e2e.txt"
fi

echo "$failed failed; $(($(date +%s) - begin)) s; results in $OUT"
[ $failed -eq 0 ]
