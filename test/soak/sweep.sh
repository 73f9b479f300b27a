#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The every-N failure sweep: short programs on a soft GPU smaller than their
# data, under Ballast; each driver call fails once, with out of memory and with
# an unknown error, and each allocation that Ballast makes.  test/soak/sweep.c
# says what is right.
#
#	B=build test/soak/sweep.sh [-s STEP] [-f FIRST] [PROGRAM...]
#
# STEP (1): every STEP-th failure only, from FIRST on.  KEEP=dir keeps the files
# of what went wrong.

set -u

# shellcheck source=test/soak/common.sh
. "$(dirname "$0")/common.sh"
step=1
first=1
while getopts s:f: o; do
	case $o in
	s)	step=$OPTARG ;;
	f)	first=$OPTARG ;;
	*)	exit 2 ;;
	esac
done
shift $((OPTIND - 1))
only=$*

case $B in /*) abs=$B ;; *) abs=$PWD/$B ;; esac
tmp=${KEEP:-$(mktemp -d)} || exit 1
[ -n "${KEEP:-}" ] || trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp"

export LD_LIBRARY_PATH="$abs/softcuda"

# What sanitizers find has a status of its own.
export ASAN_OPTIONS=detect_leaks=0:exitcode=99
export UBSAN_OPTIONS=exitcode=99 TSAN_OPTIONS=exitcode=99

status=0
# More settings of a program; how many times STEP it is that its failures are
# apart.
settings=
stride=1

# sweep NAME MEMORY ARENA PROGRAM ARGS: codes 2 (memory) and 999 (unknown) for
# driver calls, then allocations
sweep()
{
	name=$1 memory=$2 arena=$3 program=$4
	shift 4
	[ -z "$only" ] || case " $only " in *" $name "*) ;; *) return ;; esac
	if ! "$abs/e2e/$program" "$@" >"$tmp/want" 2>"$tmp/err"; then
		echo "$name fails by itself"
		cat "$tmp/err"
		status=1
		return
	fi
	for code in 2 999 alloc; do
		c="-c $code"
		if [ $code = alloc ]; then
			# A sanitizer's own malloc leaves nothing to fail.
			case $SAN in address|thread) continue ;; esac
			c=
		fi
		mkdir -p "$tmp/$name.$code"
		# shellcheck disable=SC2086 # options
		SOFTCUDA_MEMORY=$memory SOFTCUDA_GRANULARITY=64K \
			SOFTCUDA_STRICT=1 BALLAST_MIN_ALLOC=64K \
			BALLAST_ARENA=$arena BALLAST_LOG_LEVEL=debug \
			BALLAST_WAIT_MS=60000 BALLAST_STATS=false \
			env $settings "$abs/soak/sweep" -n "$name" -j "$JOBS" -d "$tmp/$name.$code" \
			-p "$rt$abs/soak/failalloc.so:$abs/libballast.so" \
			-w "$tmp/want" -s $((step * stride)) -f "$first" $c \
			"$abs/e2e/$program" "$@" || status=1
	done
}

sweep layers 512K 2M layers --mats 5 --bytes 128K --rounds 2
sweep train 640K 2M train --tensors 3 --bytes 128K --steps 2
sweep onebuf 512K 2M onebuf --tensors 6 --bytes 128K --rounds 2
sweep copies 12M 16M copies --steps 24
sweep reuse 768K 2M reuse --steps 40 --live 1M --no-fill
sweep spill 512K 2M spill --base 256K --hot 192K --rounds 2 --steps 4 --pieces 2
sweep threads 768K 2M mtstreams --threads 1 --mats 4 --bytes 128K --shared 3 \
	--rounds 2
# A plan, then data in place, then other data; many calls are alike.
settings="SOFTCUDA_HOST_VMM=1 SOFTCUDA_LANE_GIPS=40 BALLAST_GPU_BUDGET=512K"
stride=9
sweep in_place 1G 8M loop --layers 3 --bytes 256K --acts 64K --iters 26 --free 23
exit $status
