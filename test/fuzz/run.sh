#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# "make fuzz": each fuzzer for SECONDS_EACH (20) seconds, from profiles and plans
# that the launcher makes.  What breaks one stays in $F/NAME.found.  F is the
# folder of the fuzzers, B that of the launcher.  77 without libFuzzer.

set -eu
B=${B:-build}
F=${F:-$B/fuzz}
SECONDS_EACH=${SECONDS_EACH:-20}
cases=test/data/cases

mkdir -p "$F/seeds/profile" "$F/seeds/plan"
for name in one_layer two_layer vit_small embed_heavy; do
	cp "$cases/$name.json" "$F/seeds/profile/"
	"$B/ballast" plan "$cases/$name.json" -b 90% \
		-o "$F/seeds/plan/optimal-$name.json" >/dev/null 2>&1 || :
	for s in greedy knapsack budget_fill_greedy global_offload; do
		"$B/ballast" plan "$cases/$name.json" -b 75% -s $s \
			-o "$F/seeds/plan/$s-$name.json" >/dev/null 2>&1 || :
	done
done
# A small one with everything in it.
cat >"$F/seeds/profile/small.json" <<'END'
{"ballast_profile": 1, "name": "n", "note": "", "device": {"name": "d",
"memory_bytes": 9}, "link_gbps": 25, "memory_stats": [{"bytes": 1, "ms": 1e-3}],
"budgets": [1, null], "x": [1, {"y": null}], "layers": [{"label": "a",
"duration_ms": 1, "z": 2, "tensors": [{"id": 1, "name": "t", "bytes": 3,
"load_time_ms": 0.5, "w": "\u00e4"}]}, {"label": "b", "duration_ms": 2e0,
"tensors": [{"id": 1, "bytes": 3}, {"id": 2, "bytes": 40}]}]}
END
"$B/ballast" plan "$F/seeds/profile/small.json" -b none -s nth_layer \
	-p threshold_mb=0 -o "$F/seeds/plan/small.json" >/dev/null 2>&1 || :

bad=0
for name in profile plan; do
	mkdir -p "$F/$name.corpus"
	echo "fuzz_$name, $SECONDS_EACH s"
	"$F/fuzz_$name" -max_total_time="$SECONDS_EACH" -max_len=16384 \
		-timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
		-artifact_prefix="$F/$name.found-" \
		-dict=test/fuzz/json.dict \
		"$F/$name.corpus" "$F/seeds/$name" >"$F/$name.log" 2>&1 || bad=1
	grep -E '^(stat::number_of_exec|SUMMARY|==.*ERROR)' "$F/$name.log" ||
		tail -n 5 "$F/$name.log"
done
exit $bad
