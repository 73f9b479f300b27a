#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The bytes in the arena are the weights: one bit flipped there, before the
# n-th copy to the GPU, must change the decoder's tokens.  (Its logits' checksum
# would change too, but tokens are what a user reads.)
#
#	B=build test/check-flip.sh

set -u

B=${B:-build}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# decode FILE FLIP: four tokens on a GPU that holds a quarter
decode()
{
	env LD_PRELOAD="$PWD/$B/libballast.so" LD_LIBRARY_PATH="$B/softcuda" \
		SOFTCUDA_MEMORY=31M ${2:+SOFTCUDA_FLIP_H2D=$2} \
		BALLAST_ARENA=160M BALLAST_LOG_LEVEL=error \
		BALLAST_STATS=false "$B/e2e/decoder" --tokens 6 \
		>"$tmp/$1" 2>"$tmp/err" || {
		cat "$tmp/err"
		exit 1
	}
	grep '^tokens:' "$tmp/$1" >"$tmp/$1.tokens"
}

decode plain ""
decode again ""
cmp -s "$tmp/plain" "$tmp/again" || {
	echo "two runs without a flip differ"
	exit 1
}
status=0
for flip in 10 50 100; do
	decode "flip$flip" $flip
	if cmp -s "$tmp/plain.tokens" "$tmp/flip$flip.tokens"; then
		echo "a flipped bit before copy $flip changed no token"
		status=1
	fi
done
exit $status
