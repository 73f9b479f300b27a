#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files of a running program: profile_out, plan_out, plan_in; strategy with
# parameters; a process that is killed.  On the software driver.
. test/tools/lib.sh

[ -f "$B/softcuda/libcuda.so.1" ] || skip "no software driver"
cd "$T" || exit 1

# live SETTING... -- PROGRAM...: $T/out, $T/log and the driver's report.
live()
{
	: >log
	: >report
	env LD_LIBRARY_PATH="$B/softcuda" LD_PRELOAD="$B/libballast.so" \
		SOFTCUDA_STRICT=1 SOFTCUDA_REPORT="$T/report" \
		BALLAST_ARENA=128M BALLAST_LOG_FILE="$T/log" "$@" >out 2>err ||
		{ fail "exit $?: $*"; cat err log; }
	empty report
	digests out >got
	[ ! -f want ] || cmp -s want got || fail "other results: $*"
}

digests()
{
	grep -E '^[0-9]+: ' "$1"
}

loop=$B/e2e/loop

# Without Ballast: what the results must be.
env LD_LIBRARY_PATH="$B/softcuda" "$loop" >out 2>err || fail "loop fails"
digests out >want
[ -s want ] || fail "loop prints no results"

# A first run writes both; the offline commands read them without a word.
live SOFTCUDA_MEMORY=20M BALLAST_PROFILE_OUT="$T/p.json" \
	BALLAST_PLAN_OUT="$T/plan-%d.json" "$loop"
has log "profile_out: $T/p.json" "plan_out: $T/plan-0.json" "plan optimal:"
mv plan-0.json plan.json
try 0 ballast show p.json
has out loop "Soft GPU" "20 MiB"
empty err
try 0 ballast show plan.json
has out "a plan by optimal" "budget     18 MiB"
empty err
try 0 ballast simulate p.json plan.json
empty err
# What the run counts for write-back counts offline, too.
try 0 ballast plan p.json -b 18M -o again.json
has out "write-back"
empty err
grep -o '"release_ms": [0-9.e-]*' plan.json >a
grep -o '"release_ms": [0-9.e-]*' again.json | cmp -s a - ||
	fail "write-back: $(cat a) in the run"
[ -s a ] || fail "no release_ms in plan.json"
try 0 ballast plan p.json -b 18M -p release_ms=0
lacks out "write-back"
for key in device memory_bytes memory_stats duration_ms program; do
	grep -q "\"$key\"" p.json || fail "no $key in p.json"
done
grep -q '"is_valid": true' plan.json || fail "the plan is not valid"

# By the plan from the first iteration: 12 of them, less one that begins.
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN="$T/plan.json" BALLAST_STATS=1 \
	"$loop"
has log "plan optimal (plan_in):"
lacks log "refused" "not used from the start" "on demand" "another way"
early=$(sed -n 's/.*; \([0-9]*\) of [0-9]* launches needed.*/\1/p' log)
live SOFTCUDA_MEMORY=20M "$loop"
late=$(sed -n 's/.*; \([0-9]*\) of [0-9]* launches needed.*/\1/p' log)
[ "${early:-99}" -lt 24 ] && [ "$early" -lt "${late:-0}" ] ||
	fail "$early launches on demand with a plan, $late without"

# How it went, and no page is left.
try 0 env BALLAST_PLAN_IN="$T/plan.json" "$B/ballast" run --stats -q \
	--soft=memory=20M --arena 128M -- "$loop"
has err "loop [" "phase      fast" "iterations, 20 MiB streamed in each" \
	"ms measured" "layers in time" "% of the time"
iterations=$(sed -n 's/^ *plans *\([0-9]*\) iterations.*/\1/p' err)
[ "${iterations:-0}" -ge 11 ] || fail "$iterations of 12 iterations by the plan"
[ -z "$(ls "$T/run")" ] || fail "a statistics page is left"
try 0 "$B/ballast" run --stats -q -o stats=false --soft -- "$B/e2e/vecadd"
has err "no statistics"

# A trace of it: layers by name, copies, waits, as JSON.
live SOFTCUDA_MEMORY=20M BALLAST_TRACE_OUT="$T/trace.%p.json" "$loop"
has log "trace_out: $T/trace."
mv trace.*.json trace.json
for text in '"cat": "layer", "name": "0.mix"' '"cat": "copy", "name": "0.mix"' \
	'"cat": "wait", "name": "fetch on demand"' 'careful launch' \
	'"layers of device 0"' '"name": "loop"'; do
	grep -qF "$text" trace.json || fail "no $text in the trace"
done
if command -v jq >/dev/null; then
	jq -e 'type == "array" and (map(select(.ph == "X")) | length > 100 and
		all(.dur >= 0 and .ts >= 0))' trace.json >/dev/null ||
		fail "the trace is no list of spans"
fi

# A plan made offline from the profile, by another strategy.
try 0 ballast plan p.json -b 18M -s knapsack -p n_blocks=3 -o k.json
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN="$T/k.json" "$loop"
has log "plan knapsack (plan_in):"

# Other weights: refused with the reason, observed and planned.
rm want
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN="$T/plan.json" "$loop" --layers 9
has log "not used from the start" "other weights as well" \
	"plan_in is refused" "fingerprint" "plan optimal:"
env LD_LIBRARY_PATH="$B/softcuda" "$loop" --layers 9 2>err | digests - >want
cmp -s want got || fail "other results with a plan for other weights"

# Less memory than the plan needs.
env LD_LIBRARY_PATH="$B/softcuda" "$loop" 2>err | digests - >want
live SOFTCUDA_MEMORY=14M BALLAST_PLAN_IN="$T/plan.json" "$loop"
has log "more GPU memory than there is" "plan optimal:"

# No such file yet, a broken one, one that says nothing of the program.
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN="$T/none.json" "$loop"
has log "cannot open $T/none.json" "plan optimal:"
head -c 400 plan.json >cut.json
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN="$T/cut.json" "$loop"
has log "plan_in is refused: $T/cut.json:" "plan optimal:"
awk '/"program":/ { sub(/,$/, "", last); skip = 1 }
	!skip && NR > 1 { print last }
	!skip { last = $0 }
	skip && /\]}$/ { skip = 0 }
	END { print last }' plan.json >bare.json
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN="$T/bare.json" "$loop"
has log "when they have been observed" "plan optimal (plan_in):"

# Where all fits a profile is written, and nothing else is done.
live BALLAST_PROFILE_OUT="$T/fit.json" BALLAST_PLAN_OUT="$T/fit-plan.json" \
	"$loop"
has log "profile_out: $T/fit.json" "0 of " "0 B of host memory pinned"
[ ! -e fit-plan.json ] || fail "a plan where everything fits"
try 0 ballast plan fit.json -b 60%
empty err
rm want
live BALLAST_PROFILE_OUT="$T/short.json" "$loop" --iters 2
has log "profile_out: device 0 has none"
[ ! -e short.json ] || fail "a profile of two iterations"

env LD_LIBRARY_PATH="$B/softcuda" "$loop" 2>err | digests - >want

# Strategies: with parameters, with wrong ones, one that is not.
live SOFTCUDA_MEMORY=20M BALLAST_STRATEGY=knapsack:n_blocks=3,scale=0.5 \
	BALLAST_PLAN_OUT="$T/s.json" "$loop"
has log "plan knapsack:"
grep -q '"scale": 0.5, .*"n_blocks": 3' s.json || fail "parameters in s.json"
live SOFTCUDA_MEMORY=20M BALLAST_STRATEGY=best "$loop"
has log 'there is no strategy "best"'
lacks log " I: plan "
live SOFTCUDA_MEMORY=20M BALLAST_STRATEGY=optimal:colour=1 "$loop"
has log "takes no parameter 'colour'"
live SOFTCUDA_MEMORY=20M BALLAST_STRATEGY=optimal:margin=7 "$loop"
has log "strategy: margin"

# No plan, since the budget is too small: the profile is there all the same.
live SOFTCUDA_MEMORY=20M BALLAST_GPU_BUDGET=4M BALLAST_STRATEGY=knapsack \
	BALLAST_PROFILE_OUT="$T/tight.json" \
	BALLAST_PLAN_OUT="$T/tight-plan.json" "$loop"
has log "no plan, data is moved on demand"
[ ! -e tight-plan.json ] || fail "a plan where there is none"
try 0 ballast plan tight.json -b 18M

# A decoder, whose weights and cache grow into a plan.
rm want
decoder=$B/e2e/decoder
live SOFTCUDA_MEMORY=28M BALLAST_ARENA=256M BALLAST_PLAN_OUT="$T/d.json" \
	"$decoder" --tokens 6
grep -Ev '^(gpu_bytes|ms_per_[a-z]+|[a-z]+_ms):' out >plain
live SOFTCUDA_MEMORY=28M BALLAST_ARENA=256M BALLAST_PLAN_IN="$T/d.json" \
	"$decoder" --tokens 6
has log "plan optimal (plan_in):"
grep -Ev '^(gpu_bytes|ms_per_[a-z]+|[a-z]+_ms):' out >again
cmp -s plain again || fail "the decoder says something else with a plan"

# Pipes without another end, and a name that is standard input elsewhere: the
# program neither waits nor loses its input.
mkfifo fifo
live SOFTCUDA_MEMORY=20M BALLAST_PROFILE_OUT="$T/fifo" \
	BALLAST_PLAN_OUT="$T/fifo" BALLAST_PLAN_IN="$T/fifo" \
	BALLAST_TRACE_OUT="$T/fifo" timeout 60 "$loop"
has log "profile_out: cannot write $T/fifo" "plan_out: cannot write $T/fifo" \
	"trace_out: cannot write $T/fifo" "fifo:1:1: the file is empty"
live SOFTCUDA_MEMORY=20M BALLAST_PLAN_IN=- timeout 60 "$loop" 3<>fifo <fifo
has log "cannot open -: No such file"
env LD_LIBRARY_PATH="$B/softcuda" LD_PRELOAD="$B/libballast.so" \
	SOFTCUDA_MEMORY=20M BALLAST_LOG_FILE="$T/fifo" timeout 60 "$loop" \
	>out 2>err || fail "exit $? with a pipe for a log"
has err "log_file: cannot open $T/fifo: " "using standard error"

# The key that helps.
LD_PRELOAD='' BALLAST_ARENA=128M try 1 "$B/ballast" run --soft=memory=20M -b 0 \
	-- "$loop"
has err "raise it with --budget (BALLAST_GPU_BUDGET)"
LD_PRELOAD='' BALLAST_ARENA=128M try 1 "$B/ballast" run --soft=memory=20M \
	-o window=22M -- "$loop"
has err "raise it with -o window=... (BALLAST_WINDOW)"

# On a GPU that holds everything layers are those that a smaller one needs.
live SOFTCUDA_MEMORY=4G BALLAST_PROFILE_OUT="$T/all.json" "$loop"
has log "0 B copied to the GPU"
try 0 ballast plan all.json -b 50%
same "$(grep -c duration_ms all.json)" "$(grep -c duration_ms p.json)" \
	"layers of a profile where everything fits"

# Killed at any time: a whole file, or none, and at most a temporary one.
n=0
while [ $n -lt 12 ]; do
	rm -f dead*.json*
	env LD_LIBRARY_PATH="$B/softcuda" LD_PRELOAD="$B/libballast.so" \
		SOFTCUDA_MEMORY=20M BALLAST_ARENA=128M BALLAST_LOG_FILE=/dev/null \
		BALLAST_PROFILE_OUT="$T/dead-p.json" \
		BALLAST_PLAN_OUT="$T/dead.json" "$loop" --iters 200 \
		>/dev/null 2>&1 &
	pid=$!
	sleep "0.$(printf '%02d' $((n * 4)))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	for f in dead.json dead-p.json; do
		[ ! -e $f ] || ballast show $f >/dev/null 2>err ||
			fail "$f is broken: $(cat err)"
	done
	n=$((n + 1))
done
finish
