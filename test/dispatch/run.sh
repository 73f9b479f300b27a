#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs one dispatch case on the null driver: B=build test/dispatch/run.sh CASE
# Each runs without Ballast first, where that makes sense: what the test
# expects must hold there too.

set -u

here=$PWD/$(dirname "$0")
B=$PWD/${B:-build}
CC=${CC:-gcc}
SAN=${SAN:-}
lib=${LIB:-$B/libballast.so}
d=$B/dispatch
case=${1:-}

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/run"
for v in $(env | sed -n 's/^\(BALLAST_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done
export XDG_RUNTIME_DIR="$tmp/run" BALLAST_LOG_FILE="$tmp/log"
export INTERPOSED="$tmp/chain"
cd "$tmp" || exit 1

fail()
{
	echo "$case: $*"
	for f in "$tmp/out" "$tmp/err" "$tmp/log"; do
		[ ! -s "$f" ] || { echo "--- $f"; tail -n 30 "$f"; }
	done
	exit 1
}

rt=
case $CC in
*clang*) ;;
*)	case $SAN in
	address)	rt=$("$CC" -print-file-name=libasan.so) ;;
	thread)		rt=$("$CC" -print-file-name=libtsan.so) ;;
	esac ;;
esac

driver=$B/bench

# plain PROGRAM...: without Ballast.
plain()
{
	EXPECT=driver LD_LIBRARY_PATH=$driver "$@" \
		>"$tmp/out" 2>"$tmp/err" || fail "without Ballast: status $?"
}

# ballast PROGRAM...: with it.  PRE and POST are preloaded around it.
ballast()
{
	EXPECT=${EXPECT:-ballast} LD_LIBRARY_PATH=$driver \
		LD_PRELOAD=${rt:+$rt:}${PRE:+$PRE:}$lib${POST:+:$POST} "$@" \
		>"$tmp/out" 2>"$tmp/err" || fail "with Ballast: status $?"
}

# Nothing on the standard streams, no page left behind.
no_trace()
{
	[ ! -s "$tmp/err" ] || fail "text on standard error"
	[ -z "$(ls "$tmp/run")" ] || fail "left behind: $(ls "$tmp/run")"
}

both()
{
	plain "$@"
	rm -f "$tmp/log"
	ballast "$@"
	no_trace
}

case $case in
linked)		both "$d/linked" calls
		[ "$(grep -c . "$tmp/log")" -ge 1 ] || fail "not active" ;;
dlsym)		both "$d/ways" dlsym ;;
runtime)	both "$d/ways" runtime ;;
procaddr)
	plain "$d/ways" procaddr
	cp "$tmp/out" "$tmp/want"
	[ "$(wc -l <"$tmp/want")" -gt 5000 ] || fail "few answers"
	ballast "$d/ways" procaddr
	cmp "$tmp/want" "$tmp/out" || fail "other answers with Ballast"
	no_trace ;;
plugin)		both "$d/ways" plugin "$d/plugin.so" ;;
plugin-old)	both "$d/ways" plugin "$d/plugin-old.so" ;;
deepbind)
	[ -z "$SAN" ] || { echo "sanitizers refuse RTLD_DEEPBIND"; exit 77; }
	both "$d/ways" deepbind "$d/plugin.so"
	both "$d/ways" deepbind "$d/plugin-old.so" ;;
deepbind-keep)
	# The plugin's C library comes first, and with it the real dlsym.
	[ -z "$SAN" ] || { echo "sanitizers refuse RTLD_DEEPBIND"; exit 77; }
	EXPECT=driver
	export BALLAST_DEEPBIND=keep EXPECT
	ballast "$d/ways" deepbind "$d/plugin.so"
	unset BALLAST_DEEPBIND
	echo 'deepbind = keep' >preload.conf
	ballast "$d/ways" deepbind "$d/plugin.so"
	no_trace ;;
default)	both "$d/ways" default ;;
versions)	both "$d/ways" versions ;;
names)		both "$d/ways" names "$d/names.so" ;;
next)		both "$d/ways" next "$d/libnext.so" ;;
close)		both "$d/ways" close ;;
origin)
	[ -z "$SAN" ] || { echo "sanitizers open libraries themselves"; exit 77; }
	both "$d/ways" origin liborigin.so ;;
absent)
	# Also when switched off: our exports must not look like a driver.
	driver=$tmp/nowhere
	if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then
		echo "this machine has a driver"
		exit 77
	fi
	both "$d/ways" absent
	BALLAST_ENABLED=0
	export BALLAST_ENABLED
	ballast "$d/ways" absent
	[ ! -e "$tmp/log" ] || fail "a log without a driver" ;;
none)
	both "$d/ways" none
	[ -n "$SAN" ] || both "$d/ways" none deepbind
	[ ! -e "$tmp/log" ] || fail "a log without CUDA" ;;
inert)
	EXPECT=driver
	for off in 0 false No OFF; do
		export EXPECT BALLAST_ENABLED=$off
		ballast "$d/ways" dlsym
		ballast "$d/ways" runtime
		ballast "$d/ways" default
		[ -n "$SAN" ] || ballast "$d/ways" deepbind "$d/plugin.so"
	done
	# Linked calls do pass through us; they leave no trace.
	unset EXPECT
	EXPECT=off ballast "$d/linked" threads
	unset BALLAST_ENABLED
	echo 'enabled = false' >preload.conf
	EXPECT=off ballast "$d/linked" threads
	no_trace
	[ ! -e "$tmp/log" ] || fail "a log although switched off" ;;
strict)
	echo 'arean = 1G' >preload.conf
	ballast "$d/linked" threads
	grep -q 'W: preload.conf:1: arean: no such key' "$tmp/log" ||
		fail "no complaint"
	export BALLAST_STRICT=1
	EXPECT=off ballast "$d/linked" threads
	grep -q 'E: strict: 1 configuration error' "$tmp/log" ||
		fail "no refusal"
	no_trace ;;
fork)		both "$d/linked" fork
		pids=$(sed 's/^ballast\[\([0-9]*\):.*/\1/' "$tmp/log" |
			sort -u | wc -l)
		[ "$pids" -eq 1 ] || fail "$pids processes wrote to the log" ;;
fork-first)	both "$d/linked" fork-first ;;
threads)
	for _ in 1 2 3 4 5; do
		both "$d/linked" threads
		both "$d/ways" threads
	done ;;
exit)
	LAST_CALL=1
	export LAST_CALL
	both "$d/linked" exit ;;
early)		both "$d/early" ;;
own-exports)
	# A driver that calls itself through its exports.
	driver=$d/own-exports
	both "$d/linked" calls
	both "$d/linked" threads
	both "$d/ways" runtime
	both "$d/ways" default ;;
interposer)
	PRE=$d/interposer.so
	ballast "$d/linked" threads
	[ "$(sort -u "$tmp/chain")" = libballast.so ] ||
		fail "before Ballast: $(cat "$tmp/chain")"
	rm -f "$tmp/chain"
	PRE=
	POST=$d/interposer.so
	ballast "$d/linked" threads
	[ "$(sort -u "$tmp/chain")" = libcuda.so.1 ] ||
		fail "behind Ballast: $(cat "$tmp/chain")"
	no_trace ;;
cudart-static|cudart-shared)
	# The real runtime on the software driver, which does not answer its
	# check of the driver; all its look-ups come before that.
	nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
	[ -x "$nvcc" ] || { echo "no nvcc here"; exit 77; }
	[ -z "$SAN" ] || { echo "nvcc's program has no sanitizer"; exit 77; }
	"$nvcc" -cudart "${case#cudart-}" -o "$tmp/runtime" \
		"$here/runtime.cu" >"$tmp/out" 2>&1 || fail "nvcc failed"
	driver=$B/softcuda:$(dirname "$(dirname "$nvcc")")/lib64
	export LOOKUPS="$tmp/plain" LD_PRELOAD="$d/lookups.so"
	plain "$tmp/runtime"
	unset LD_PRELOAD
	LOOKUPS=$tmp/ballast
	PRE=$d/lookups.so
	ballast "$tmp/runtime"
	grep -h '^bad' "$tmp/plain" "$tmp/ballast" && fail "wrong answers"
	grep -q '^dlsym cuGetProcAddress_v2 in libballast' "$tmp/ballast" ||
		fail "the resolver is not Ballast's"
	grep -v '^dlsym' "$tmp/plain" >"$tmp/want"
	grep -v '^dlsym' "$tmp/ballast" >"$tmp/got"
	cmp "$tmp/want" "$tmp/got" || fail "other requests with Ballast"
	nr=$(wc -l <"$tmp/got")
	sed -n 's/^HOOK(\([A-Za-z0-9_]*\),.*/\1/p' \
		"$here/../../shim/cuda_api.def" >"$tmp/hooks"
	hooked=$(cut -d' ' -f5 "$tmp/got" | sort -u | grep -cxFf - "$tmp/hooks")
	echo "$nr requests, $hooked symbols that Ballast hooks"
	[ "$nr" -ge 400 ] && [ "$hooked" -ge 60 ] || fail "few requests" ;;
*)	echo "no such case: $case"
	exit 2 ;;
esac
exit 0
