#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `ballast stats` of running programs.
. test/tools/lib.sh

pids=
trap 'kill $pids 2>/dev/null; rm -rf "$T"' EXIT

try 0 ballast stats --json
same "$(tr -d ' \n' <"$T/out" | head -c 1)" "["

# Two programs with a page each.
cp "$(command -v sleep)" "$T/dozer"
for i in 1 2; do
	FAKE_ACTIVE=1 FAKE_STATS=1 FAKE_PROGRAM=dozer LD_PRELOAD=$T/bin/libballast.so \
		"$T/dozer" 60 &
	pids="$pids $!"
	last=$!
	await test -s "$T/run/ballast-$last.stats"
done

# One by its number: a table with units people read.
try 0 ballast stats "$last"
empty err
has out "dozer [$last]"
grep -qE 'gpu_total +64 MiB  memory of the device' "$T/out" || fail "bytes"
grep -qE 'fetches +12345  ' "$T/out" || fail "counts"
grep -qE 'wait_ns +1234.567 ms  ' "$T/out" || fail "times"
rows=$(grep -c '^STAT(' "$TOP/shim/stats.def")
same "$(grep -c '^  ' "$T/out")" "$rows" "rows"

# All of them.
try 0 ballast stats
for pid in $pids; do
	has out "dozer [$pid]"
done

# For programs.
try 0 ballast stats --json $pids
if command -v python3 >/dev/null; then
	python3 - "$T/out" $pids <<'END' || fail "JSON"
import json, sys
pages = json.load(open(sys.argv[1]))
assert [str(p["pid"]) for p in pages] == sys.argv[2:], pages
for p in pages:
    assert p["program"] == "dozer" and p["start_ns"] > 0
    assert p["counters"]["gpu_total"] == 64 << 20
    assert p["counters"]["wait_ns"] == 1234567890
END
fi
same "$(grep -c '"gpu_total": 67108864' "$T/out")" 2

# What cannot be shown, and why.
sleep 60 &
plain=$!
try 1 ballast stats "$plain"
has err "process $plain has no statistics"
kill "$plain"
wait "$plain" 2>/dev/null
try 1 ballast stats 4194304
has err 'no process 4194304'
try 2 ballast stats twelve
has err "'twelve' is no process number"
try 2 ballast stats --bogus
printf 'not a page of ours, but long enough to be one: %0200d' 0 \
	>"$T/run/ballast-$$.stats"
try 1 ballast stats $$
has err 'not of this version'
# What there is of several is printed, wherever the missing one stands.
try 1 ballast stats "$last" 4194304
has out "dozer [$last]"
has err 'no process 4194304'
try 1 ballast stats 4194304 $pids $$ --json
same "$(grep -c '"gpu_total": 67108864' "$T/out")" 2
same "$(tail -n 1 "$T/out")" ']'
has err 'no process 4194304' 'not of this version'
try 2 ballast stats "$last" twelve
empty out

# The launcher's number stands for what it runs, also through a shell.
FAKE_ACTIVE=1 FAKE_STATS=1 FAKE_PROGRAM=dozer "$T/bin/ballast" run -- \
	sh -c '"$0" 60; true' "$T/dozer" &
launcher=$!
pids="$pids $launcher"
below()
{
	"$T/bin/ballast" stats "$launcher" >/dev/null
}
await below
try 0 ballast stats "$launcher"
same "$(grep -c '^dozer ' "$T/out")" 1 "processes below the launcher"
dozer=$(sed -n 's/^dozer \[\([0-9]*\)\].*/\1/p' "$T/out")
[ "$dozer" != "$launcher" ] || fail "the launcher has no page"
kill "$dozer"
wait "$launcher" 2>/dev/null

# A page whose process has ended is not shown as a running one.
kill -KILL "$last"
wait "$last" 2>/dev/null
try 1 ballast stats "$last"
has err "no process $last"
try 0 ballast stats
lacks out "[$last]" "[$$]"
# And it is removed; what is no page of ours stays, whatever its name.
[ ! -e "$T/run/ballast-$last.stats" ] || fail "a stale page stays"
[ -e "$T/run/ballast-$$.stats" ] || fail "a strange file was removed"
# A link is not followed.
ln -s "$T/run/ballast-${pids##* }.stats" "$T/run/ballast-1.stats"
try 1 ballast stats 1
finish
