#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The demonstration (make demo): one CUDA program, test/e2e/decoder.c, on the
# software driver
#	(a) with a GPU that holds all its weights,
#	(b) with a GPU of a quarter of their size: out of memory,
#	(c) on that GPU with Ballast: the same tokens, bit for bit.
# Prints what moved and how long it took in the driver's virtual time.  Exits
# non-zero, with the reason, if a promise is broken.  Needs B, the build folder.

set -u

B=${B:-build}
out=$B/demo
program=$B/e2e/decoder
tokens=24
fewer=8			# a second, shorter run: the difference is steady state
arena=256M
gbps=25			# of the soft GPU's link, each way
limit=1.5		# most H2D bytes per token, times what cannot stay

for v in $(env | sed -n 's/^\(\(BALLAST\|SOFTCUDA\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$v"
done
export SOFTCUDA_H2D_GBPS=$gbps SOFTCUDA_D2H_GBPS=$gbps

die()
{
	echo "demo: $*" >&2
	exit 1
}

# show NAME: what a run that went wrong had to say.
show()
{
	for f in err report; do
		[ ! -s "$out/$1.$f" ] || tail -n 20 "$out/$1.$f" >&2
	done
}

# run NAME COMMAND...: output, reports and counters to $out/NAME.*
run()
{
	name=$1
	shift
	(
		export SOFTCUDA_REPORT="$out/$name.report"
		export SOFTCUDA_STATS="$out/$name.stats"
		"$@"
	) >"$out/$name.out" 2>"$out/$name.err"
}

# plain MEMORY COMMAND...
plain()
{
	soft_memory=$1
	shift
	env SOFTCUDA_MEMORY="$soft_memory" \
		LD_LIBRARY_PATH="$B/softcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
		"$@"
}

ballast()
{
	"$B/ballast" run "--soft=memory=$memory" --arena "$arena" -q -- "$@"
}

# value NAME KEY: from what the program printed.
value()
{
	sed -n "s/^$2: *//p" "$out/$1.out"
}

# counter NAME KEY: from the driver's counters.
counter()
{
	sed -n "s/.*\"$2\": *\\([0-9]*\\).*/\\1/p" "$out/$1.stats" | head -n 1
}

# calc FORMAT EXPRESSION: in awk.
calc()
{
	awk "BEGIN { printf \"$1\", ($2) }"
}

mib()
{
	calc '%.2f MiB' "$1 / 1048576"
}

# per_token LONG SHORT: of two values, the cost of one token more.
per_token()
{
	calc '%.6f' "($1 - $2) / ($tokens - $fewer)"
}

bytes_per_token()
{
	per_token "$(counter "$1" "$2")" "$(counter "$1-short" "$2")"
}

ms_per_token()
{
	per_token "$(value "$1" rest_ms)" "$(value "$1-short" rest_ms)"
}

must_run()
{
	"$@" && return
	show "$2"
	die "run ($2) failed"
}

must_be_clean()
{
	[ ! -s "$out/$1.report" ] && return
	show "$1"
	die "run ($1): the software driver reported errors"
}

row()
{
	printf '  %-28s %15s %15s %15s\n' "$@"
}

rm -rf "$out"
mkdir -p "$out" || exit 1
start=$(date +%s)

# (a)
must_run run a plain 256M "$program" --tokens $tokens
must_run run a-short plain 256M "$program" --tokens $fewer
weights=$(value a weights_bytes)
other=$(value a other_bytes)
memory=$(calc '%d' "$weights / 4")

# (b)
if run b plain "$memory" "$program" --tokens $tokens; then
	die "run (b): $(mib "$weights") of weights ran on a GPU of" \
		"$(mib "$memory")"
fi
if ! grep -q CUDA_ERROR_OUT_OF_MEMORY "$out/b.err"; then
	show b
	die "run (b) failed, but not by CUDA_ERROR_OUT_OF_MEMORY"
fi

# (c)
must_run run c ballast "$program" --tokens $tokens
must_run run c-short ballast "$program" --tokens $fewer
for r in a a-short b c c-short; do
	must_be_clean $r
done

# The same?
for r in "a c" "a-short c-short"; do
	# shellcheck disable=SC2086 # two words
	set -- $r
	[ -n "$(value "$1" tokens)" ] || die "run ($1) printed no tokens"
	for k in tokens logits; do
		[ "$(value "$1" $k)" = "$(value "$2" $k)" ] && continue
		diff "$out/$1.out" "$out/$2.out" >&2
		die "runs ($1) and ($2) differ in their $k"
	done
done

gpu=$(value c gpu_bytes)
excess=$(calc '%d' "$weights + $other - $gpu")
bound=$(calc '%.6f' "$excess / ($gbps * 1e6)")
[ "$excess" -gt 0 ] || die "run (c) had a GPU of $(mib "$gpu")"
a_h2d=$(bytes_per_token a h2d_bytes)
a_d2h=$(bytes_per_token a d2h_bytes)
a_ms=$(ms_per_token a)
c_h2d=$(bytes_per_token c h2d_bytes)
c_d2h=$(bytes_per_token c d2h_bytes)
c_ms=$(ms_per_token c)

echo "A decoder with $(mib "$weights") of weights, $tokens tokens:"
echo "  $(value c tokens)"
echo
row "" "(a) all fits" "(b) a quarter" "(c) + Ballast"
row "GPU memory" "$(mib "$(value a gpu_bytes)")" "$(mib "$memory")" \
	"$(mib "$gpu")"
row "peak used" "$(mib "$(counter a peak_bytes)")" \
	"$(mib "$(counter b peak_bytes)")" "$(mib "$(counter c peak_bytes)")"
row "result" "$tokens tokens" "out of memory" "the same tokens"
row "to the GPU per token" "$(mib "$a_h2d")" - "$(mib "$c_h2d")"
row "from the GPU per token" "$(mib "$a_d2h")" - "$(mib "$c_d2h")"
row "virtual ms per token" "$(calc '%.3f' "$a_ms")" - \
	"$(calc '%.3f' "$c_ms")"
row "  against (a)" 1.00 - "$(calc '%.2f' "$c_ms / $a_ms")"
row "  against the link bound" - - "$(calc '%.2f' "$c_ms / $bound")"
echo
echo "Tokens and logits of (a) and (c) are identical.  The link bound:" \
	"$(mib "$excess")"
echo "that cannot stay on the GPU, once per token at $gbps GB/s:" \
	"$(calc '%.3f' "$bound") ms."

distinct=$(value c distinct)
[ "$distinct" -ge 12 ] || die "only $distinct distinct tokens"
# Less than what the GPU has no room for cannot be true.
if [ "$(calc '%d' "$c_h2d < $weights - $gpu")" = 1 ]; then
	die "$(mib "$c_h2d") per token to the GPU cannot be enough"
fi
if [ "$(calc '%d' "$c_h2d > $limit * $excess")" = 1 ]; then
	die "$(mib "$c_h2d") per token to the GPU, more than $limit times" \
		"$(mib "$excess")"
fi
echo "Took $(($(date +%s) - start)) s."
