#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that Ballast cannot work with are told, and run all the same.
. test/tools/lib.sh

echo 'int main(void) { return 4; }' >"$T/main.c"
build_c "$T/dynamic" "$T/main.c"
FAKE_ACTIVE=1
export FAKE_ACTIVE

# The ordinary one is not complained of.
try 4 ballast run -- "$T/dynamic"
empty err
# Nor a program that is started through its loader.
loader=$(readelf -l "$T/dynamic" | sed -n 's/.*interpreter: \(.*\)]/\1/p')
try 4 ballast run -- "$loader" "$T/dynamic"
empty err

told()
{
	[ "$(grep -c "$1" "$T/err")" -eq 1 ] && return 0
	fail "not told once: $1"
	sed 's/^/  /' "$T/err"
}

# Static, also as position independent.
for kind in -static -static-pie; do
	$CC $kind -o "$T/static" "$T/main.c" 2>/dev/null || continue
	try 4 ballast run -- "$T/static"
	told "$T/static is a static program"
	same "$(wc -l <"$T/err")" 1 "lines about a static program"
	try 3 ballast run --strict -- "$T/static"
	has err "is a static program" "was not started"
	try 4 ballast run -o enabled=false -- "$T/static"
	has err 'runs without Ballast: enabled = false'
	lacks err 'static program'
done

# Of scripts, what runs them counts, through env and a second script too.
printf '#!%s\n' "$T/static" >"$T/script1"
printf '#!/usr/bin/env -S A=1 static\n' >"$T/script2"
printf '#!%s arg\n' "$T/script1" >"$T/script3"
printf '#! /bin/sh\nexit 5\n' >"$T/script4"
chmod +x "$T"/script?
if [ -x "$T/static" ]; then
	for script in script1 script2 script3; do
		PATH=$T:$PATH try 4 ballast run -- "$T/$script"
		told "$T/static is a static program"
	done
fi
try 5 ballast run -- "$T/script4"
empty err

# Another class, another processor: headers changed, so they cannot run.
# patch OFFSET BYTE (octal)
patch()
{
	printf "\\$2" | dd of="$T/patched" bs=1 seek="$1" conv=notrunc 2>/dev/null
}
cp "$T/dynamic" "$T/patched"
patch 4 001
patch 18 003
try 126 ballast run -- "$T/patched"
told "$T/patched is a 32-bit program"
cp "$T/dynamic" "$T/patched"
patch 18 267
try 126 ballast run -- "$T/patched"
told "$T/patched is made for another processor"

# Another C library: Ballast would kill the program, so it is left out.
$CC -o "$T/musl" "$T/main.c" -Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1
try 0 ballast run --dry-run -- "$T/musl"
lacks out LD_PRELOAD
if [ -e /lib/ld-musl-x86_64.so.1 ]; then
	try 4 ballast run -- "$T/musl"
else
	try 127 ballast run -- "$T/musl"
fi
told "uses the loader /lib/ld-musl-x86_64.so.1"

# setuid and setgid to another: the loader ignores LD_PRELOAD.
if [ "$(id -u)" -eq 0 ]; then
	cp "$T/dynamic" "$T/setuid"
	chown 65534 "$T/setuid"
	chmod 4755 "$T/setuid"
	cp "$T/dynamic" "$T/setgid"
	chgrp 65534 "$T/setgid"
	chmod 2755 "$T/setgid"
	if ! findmnt -nT "$T" -o OPTIONS 2>/dev/null | grep -qw nosuid; then
		chmod 755 "$T" "$T/bin"
		for kind in setuid setgid; do
			try 4 ballast run -- "$T/$kind"
			told "$T/$kind is setuid or setgid"
		done
	fi
	# To oneself it changes nothing.
	cp "$T/dynamic" "$T/own"
	chmod 4755 "$T/own"
	try 4 ballast run -- "$T/own"
	empty err
	# Capabilities count for others than root.
	cp "$T/dynamic" "$T/caps"
	if command -v setpriv >/dev/null && command -v setcap >/dev/null &&
		setcap cap_net_raw+ep "$T/caps" 2>/dev/null; then
		chmod 755 "$T" "$T/bin" "$T/caps"
		XDG_RUNTIME_DIR= try 4 setpriv --reuid 65534 --regid 65534 \
			--clear-groups --bounding-set +all \
			"$T/bin/ballast" run -- "$T/caps"
		told "$T/caps has file capabilities"
	fi
fi

# No driver is told at the end, together with what follows from it.
unset FAKE_ACTIVE
mkdir "$T/driver"
try 4 ballast run -- "$T/dynamic"
same "$(wc -l <"$T/err")" 1 "lines about no driver"
has err 'no successful cuInit()'
cp "$T/dynamic" "$T/driver/libcuda.so.1"
LD_LIBRARY_PATH=$T/driver try 4 ballast run -- "$T/dynamic"
has err 'no successful cuInit()'
lacks err 'no libcuda.so.1'
finish
