#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What libballast.so needs at run time: the C library, libdl (empty since glibc
# 2.34) and the loader; no symbol newer than GLIBC_2.34; no text relocation, no
# executable stack, little of each thread's own.

set -eu
B=${B:-build}
so=$B/libballast.so
bad=0

if [ -n "${SAN:-}" ]; then
	echo "a sanitizer build needs its runtime"
	exit 77
fi
needed=$(readelf -d "$so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for lib in $needed; do
	case $lib in
	libc.so.6|libdl.so.2|ld-linux-x86-64.so.2) ;;
	*)	echo "$so needs $lib"
		bad=1 ;;
	esac
done

newest=$(readelf -V "$so" | sed -n '/Version needs/,$p' |
	grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1)
if [ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -n 1)" != \
		GLIBC_2.34 ]; then
	echo "$so needs $newest:"
	nm -D --undefined-only "$so" | grep "$newest" || true
	bad=1
fi
if [ -z "$newest" ]; then
	echo "no glibc version found in $so"
	bad=1
fi

if readelf -d "$so" | grep -q TEXTREL; then
	echo "$so has text relocations"
	bad=1
fi
if readelf -lW "$so" | grep GNU_STACK | grep -q 'RWE'; then
	echo "$so wants an executable stack"
	bad=1
fi
if ! readelf -d "$so" | grep -q 'BIND_NOW\|NOW'; then
	echo "$so is not bound at load time"
	bad=1
fi
# What may be opened with dlopen gets little room of this kind.
tls=$(readelf -lW "$so" | awk '$1 == "TLS" { print $6 }')
if [ $((${tls:-0})) -gt 1024 ]; then
	echo "$so has $((tls)) bytes of each thread's own; 1024 are safe"
	bad=1
fi
exit $bad
