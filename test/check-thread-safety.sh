#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# clang's lock analysis over the annotations in the library's sources.

set -eu
clang=$(command -v clang || command -v clang-14 || true)
if [ -z "$clang" ]; then
	echo "no clang"
	exit 77
fi
"$clang" -std=gnu11 -I. -D_GNU_SOURCE -fsyntax-only -Wthread-safety \
	-Werror=thread-safety shim/*.c
