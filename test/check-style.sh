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
# Deleted in the working tree, or a link's target elsewhere.
files=$(for f in $files; do [ ! -f "$f" ] || echo "$f"; done)
# shellcheck disable=SC2086 # a list of files without blanks
awk '
	FNR == 1 {
		if (file != "" && !spdx)
			say(file ": no SPDX line")
		file = FILENAME
		spdx = 0
		c = file ~ /\.[ch]$/
	}
	FNR <= 2 && /SPDX-License-Identifier: Apache-2.0/ { spdx = 1 }
	/[ \t]$/ { say(FILENAME ":" FNR ": blanks at the line end") }
	c && columns($0) > 100 {
		say(FILENAME ":" FNR ": " columns($0) " columns")
	}
	function say(text) {
		print text
		bad = 1
	}
	function columns(line,    n, i, w) {
		if (length(line) <= 40)
			return 0
		n = split(line, part, "\t")
		for (i = 1; i < n; i++)
			w = int((w + length(part[i])) / 8 + 1) * 8
		return w + length(part[n])
	}
	END {
		if (!spdx)
			say(file ": no SPDX line")
		exit bad
	}' $files || bad=1
if command -v clang-format >/dev/null &&
		! clang-format --style=file --dump-config >/dev/null; then
	echo ".clang-format is wrong"
	bad=1
fi
exit $bad
