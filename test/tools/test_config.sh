#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `ballast config`: precedence, origins, the template, wrong keys and values.
. test/tools/lib.sh

cd "$T" || exit 1
unset BALLAST_CONFIG

value()
{
	"$T/bin/ballast" config "$1" 2>/dev/null
}

origin()
{
	"$T/bin/ballast" config 2>/dev/null |
		awk -v k="$1" '$1 == k { sub(/^[^ ]+ +[^ ]+ +/, ""); print }'
}

# Every key has a line, in columns.
try 0 ballast config
empty err
keys=$(sed -n 's/^CONF([A-Z]*, \([a-z_]*\),.*/\1/p' "$TOP/shim/conf.def")
[ "$(echo "$keys" | wc -l)" -gt 10 ] || fail "no keys in conf.def"
same "$(awk '{ print $1 }' out)" "$keys" "keys"
same "$(awk '{ print match($0, /default$/) }' out | sort -u | wc -l)" 1 "columns"

# Default, file here, file named, environment: each beats the one before.
same "$(value arena)" auto
same "$(origin arena)" default
printf '# mine\narena = 1G\nwait_ms = 5\nmin_alloc = 4M\n' >preload.conf
same "$(value arena)" 1G
same "$(origin arena)" preload.conf:2
printf 'arena = 2G\nwait_ms = 6\n' >other.conf
BALLAST_CONFIG=$T/other.conf
export BALLAST_CONFIG
same "$(value arena)" 2G
same "$(origin arena)" "$T/other.conf:1"
BALLAST_ARENA=3G
export BALLAST_ARENA
same "$(value arena)" 3G
same "$(origin arena)" "environment BALLAST_ARENA"
same "$(value wait_ms)" 6
same "$(value min_alloc)" 4M "a key that only the weaker file has"
# `run -o` beats all of them.
same "$("$T/bin/ballast" run -o arena=4G -- "$T/bin/ballast" config arena \
	2>/dev/null)" 4G
unset BALLAST_CONFIG BALLAST_ARENA

# The template names every key with its default, and can be read back.
rm -f preload.conf other.conf
try 0 ballast config --template
empty err
mv out preload.conf
same "$(sed -n 's/^\([a-z_]*\) =.*/\1/p' preload.conf)" "$keys" "template"
awk 'length > 80 { exit 1 }' preload.conf || fail "long lines in the template"
"$T/bin/ballast" config >with 2>err || fail "the template is not accepted"
empty err
same "$(grep -c 'preload.conf:[0-9]*$' with)" "$(echo "$keys" | wc -l)"
rm preload.conf
"$T/bin/ballast" config >without
awk '{ print $1, $2 }' with >a
awk '{ print $1, $2 }' without >b
cmp -s a b || { fail "the template changes a value"; diff a b; }

# What is wrong is named with its place; the rest counts.
printf 'arena = 1G\ncolour = red\nwait_ms = soon\n' >preload.conf
try 1 ballast config
has err preload.conf:2 colour preload.conf:3 wait_ms
same "$(value arena)" 1G
same "$(value wait_ms)" 10000
rm preload.conf
BALLAST_ARNA=1G try 1 ballast config
has err BALLAST_ARNA
# Nothing of the launcher's own is taken for a key.
try 0 ballast run -- "$T/bin/ballast" config
lacks err 'no such key'

try 2 ballast config nope
has err "no key 'nope'"
try 2 ballast config --bogus
has err "'--bogus' is unknown"
try 2 ballast config --template arena
same "$(value ARENA)" auto "any case"
same "$("$T/bin/ballast" config chunk window | tr '\n' ' ')" "auto 1T "
finish
