#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# "make deps": installs what building and testing need and this machine lacks
# (Debian, Ubuntu).  Without the right to install it prints the line to run.

set -u
CC=${CC:-gcc}

have_header()
{
	printf '#include <%s>\n' "$1" | "$CC" -E - >/dev/null 2>&1
}

have_library()
{
	case $("$CC" -print-file-name="$1" 2>/dev/null) in
	/*) return 0 ;;
	esac
	return 1
}

missing=
need()
{
	missing="$missing $1"
}

command -v "$CC" >/dev/null || need "$(basename "$CC")"
command -v make >/dev/null || need make
command -v pkg-config >/dev/null || need pkg-config
if command -v "$CC" >/dev/null; then
	have_header stdio.h || need libc6-dev
	{ have_header check.h && pkg-config check 2>/dev/null; } || need check
	have_header uthash.h || need uthash-dev
	{ have_header json-c/json.h && have_library libjson-c.a; } ||
		need libjson-c-dev
	{ have_header ini.h && have_library libinih.a; } || need libinih-dev
	have_header zstd.h || need libzstd-dev
	have_header lz4.h || need liblz4-dev
else
	missing="$missing libc6-dev check uthash-dev libjson-c-dev libinih-dev"
	missing="$missing libzstd-dev liblz4-dev"
fi

[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if ! command -v apt-get >/dev/null; then
	echo "missing (Debian names):$missing" >&2
	exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
	sudo=
elif sudo -n true 2>/dev/null; then
	sudo=sudo
else
	echo "packages are missing; run: sudo $line" >&2
	exit 1
fi
echo "installing:$missing"
# shellcheck disable=SC2086 # lists of words
{ $sudo env DEBIAN_FRONTEND=noninteractive $line >/dev/null 2>&1 ||
	{ $sudo apt-get update >/dev/null &&
	  $sudo env DEBIAN_FRONTEND=noninteractive $line >/dev/null; } } || {
	echo "installing failed; run: sudo $line" >&2
	exit 1
}
