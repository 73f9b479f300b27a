# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034 # what is set is for those who source it
#
# Sourced by the scripts of `make soak`: $B, $CC, $SAN, $JOBS; no settings from
# outside; what to preload first ($rt); results().

B=${B:-build}
CC=${CC:-gcc}
SAN=${SAN:-}
JOBS=${JOBS:-2}

for v in $(env | sed -n 's/^\(\(BALLAST\|SOFTCUDA\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done

# gcc's sanitizer runtimes want to be first.
rt=
case $CC/$SAN in
*clang*)	;;
*/address)	rt=$("$CC" -print-file-name=libasan.so): ;;
*/thread)	rt=$("$CC" -print-file-name=libtsan.so): ;;
esac
export ASAN_OPTIONS=detect_leaks=0

# Timings and the size of the device may differ, results may not.
results()
{
	grep -Ev '^(gpu_bytes|ms_per_[a-z]+|[a-z]+_ms):' "$1"
}
