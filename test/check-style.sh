#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every source begins with its licence line; no blank at the end of a line; no
# C line beyond 100 columns (80 is the aim); clang-format reads .clang-format.

set -eu
bad=0
files=$(git ls-files '*.c' '*.h' '*.def' '*.S' '*.sh' '*.map' Makefile \
	2>/dev/null || true)
if [ -z "$files" ]; then
	files=$(find shim test tools planner -name '*.[chS]' -o -name '*.def' \
		-o -name '*.sh' 2>/dev/null)
fi
for f in $files; do
	[ -f "$f" ] || continue
	if ! head -n 2 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0'
	then
		echo "$f: no SPDX line"
		bad=1
	fi
	if grep -n '[	 ]$' "$f" | head -n 3 | sed "s|^|$f:|" | grep .; then
		echo "$f: blanks at line ends"
		bad=1
	fi
	case $f in
	*.c|*.h) if expand "$f" | awk -v f="$f" 'length($0) > 100 {
			print f ":" NR ": " length($0) " columns"; bad = 1 }
			END { exit !bad }'; then
			bad=1
		fi ;;
	esac
done
if command -v clang-format >/dev/null &&
		! clang-format --style=file --dump-config >/dev/null; then
	echo ".clang-format is wrong"
	bad=1
fi
exit $bad
