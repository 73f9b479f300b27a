#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# "make check-gpu": the e2e programs on this machine's GPU, alone and with
# Ballast, once with all the memory there is and once with a budget that makes
# them swap.  Results must be those of the run alone.  Without a GPU: 77.

set -u

B=${B:-build}

if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
	echo "no driver library (libcuda.so.1)"
	exit 77
fi
if [ -z "$(ls /dev/nvidia[0-9]* 2>/dev/null)" ]; then
	echo "no GPU (/dev/nvidia0)"
	exit 77
fi

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0
failed=0

results()
{
	grep -Ev '^(gpu_bytes|ms_per_[a-z]+|[a-z]+_ms):' "$1"
}

# try NAME PROGRAM ASSIGNMENT...: with Ballast, against $tmp/want.
try()
{
	name=$1
	prog=$2
	shift 2
	# shellcheck disable=SC2086 # a program and its arguments
	env LD_PRELOAD="$PWD/$B/libballast.so" BALLAST_LOG_FILE="$tmp/log" \
		"$@" "$B"/e2e/$prog >"$tmp/out" 2>"$tmp/err"
	rc=$?
	results "$tmp/out" >"$tmp/got"
	if [ $rc -eq 0 ] && cmp -s "$tmp/want" "$tmp/got"; then
		echo "ok   $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name (status $rc)"
		tail -n 20 "$tmp/err" "$tmp/log"
		failed=$((failed + 1))
	fi
	rm -f "$tmp/log"
}

while IFS='|' read -r prog budget; do
	# shellcheck disable=SC2086 # a program and its arguments
	if ! "$B"/e2e/$prog >"$tmp/out" 2>"$tmp/err"; then
		echo "FAIL $prog, alone"
		tail -n 20 "$tmp/err"
		failed=$((failed + 1))
		continue
	fi
	results "$tmp/out" >"$tmp/want"
	try "${prog%% *}" "$prog"
	[ "$budget" = - ] || try "${prog%% *}, $budget" "$prog" \
		BALLAST_GPU_BUDGET="$budget" BALLAST_ARENA=512M
done <<'END'
copies|8M
decoder --tokens 24|28M
layers|20M
matmul|-
mtstreams|16M
onebuf|28M
streams|-
train|24M
vecadd|-
END

echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
