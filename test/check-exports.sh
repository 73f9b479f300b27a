#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# libballast.so exports the HOOK rows of cuda_api.def, dlsym and dlopen (both
# under the two versions that the C library has), and nothing else.

set -eu
B=${B:-build}
CC=${CC:-gcc}
so=$B/libballast.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

{
	printf '#define HOOK(s,b,v,f) s\n#define CALL(s,b,v,f)\n%s\n' \
		'#include "shim/cuda_api.def"' | "$CC" -E -P -I. - |
		sed '/^ *$/d'
	for f in dlopen dlsym; do
		echo "$f@@GLIBC_2.34"
		echo "$f@GLIBC_2.2.5"
	done
} | LC_ALL=C sort >"$tmp/want"

# Everything but the version names themselves (type A).
nm -D --defined-only "$so" | awk '$2 != "A" { print $2 " " $3 }' |
	LC_ALL=C sort -k 2 >"$tmp/have-types"
awk '{ print $2 }' "$tmp/have-types" | LC_ALL=C sort >"$tmp/have"

if ! diff -u "$tmp/want" "$tmp/have"; then
	echo "exports of $so (+) differ from cuda_api.def (-)"
	exit 1
fi
if grep -v '^T ' "$tmp/have-types"; then
	echo "the lines above are not functions"
	exit 1
fi
