#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The software driver exports the names of exports.def and the functions that
# softcuda_ctl.h describes, and nothing else; every prototype of cuda_proto.h
# that it implements is in the list; where the toolkit's stub library is found,
# the list is that library's.  Its README names every knob.

set -eu
B=${B:-build}
CC=${CC:-gcc}
so=$B/softcuda/libcuda.so.1
stub=${CUDA_STUB:-/usr/local/cuda/lib64/stubs/libcuda.so}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

names()
{
	nm -D --defined-only "$1" | awk '$2 == "T" || $2 == "W" { print $3 }' |
		LC_ALL=C sort
}

printf '#define EXPORT(s,b,v,f) s\n#include "test/softcuda/exports.def"\n' |
	"$CC" -E -P -I. - | sed '/^ *$/d' | LC_ALL=C sort >"$tmp/cuda"
{
	cat "$tmp/cuda"
	sed -n 's/^typedef .* \(softcuda_[a-z_]*\)_fn(.*/\1/p' \
		test/softcuda/softcuda_ctl.h
} | LC_ALL=C sort >"$tmp/want"
names "$so" >"$tmp/have"
if ! diff -u "$tmp/want" "$tmp/have"; then
	echo "exports of $so (+) differ from the list (-)"
	exit 1
fi
if [ -e "$stub" ]; then
	names "$stub" >"$tmp/stub"
	if ! diff -u "$tmp/stub" "$tmp/cuda"; then
		echo "exports.def (+) differs from $stub (-)"
		exit 1
	fi
fi
printf '#include "shim/cuda_abi.h"\n' | "$CC" -E -P -I. - |
	grep -o '\bcu[A-Z][A-Za-z0-9_]* *(' | tr -d ' (' |
	LC_ALL=C sort -u >"$tmp/proto"
if LC_ALL=C comm -23 "$tmp/proto" "$tmp/cuda" | grep .; then
	echo "the names above are declared, but no driver exports them"
	exit 1
fi
for k in $(sed -n 's/^KNOB([a-z0-9_]*, *\(SOFTCUDA_[A-Z0-9_]*\),.*/\1/p' \
		test/softcuda/knobs.def); do
	if ! grep -q "^  $k " test/softcuda/README; then
		echo "test/softcuda/README does not name $k"
		exit 1
	fi
done
