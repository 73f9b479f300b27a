#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Options of `ballast run`: what they set, what is refused, what is printed.
. test/tools/lib.sh

lib=$T/bin/libballast.so

# Every option, as environment; the command last; nothing on standard error.
try 0 ballast run --dry-run -b 64M --arena=1G -o min_alloc=4M -q \
	--log /var/x.log --strict -- echo 'a b' "it's" ''
empty err
cat >"$T/want" <<END
export BALLAST_GPU_BUDGET=64M
export BALLAST_ARENA=1G
export BALLAST_MIN_ALLOC=4M
export BALLAST_LOG_LEVEL=warn
export BALLAST_LOG_FILE=/var/x.log
export BALLAST_STRICT=true
export LD_PRELOAD=$lib
echo 'a b' 'it'\''s' ''
END
cmp -s "$T/want" "$T/out" || { fail "dry run"; diff "$T/want" "$T/out"; }
# What is printed can be given to sh.
try 0 ballast run --dry-run -o log_file="$T/a b'c" -- sh -c \
	'echo "$BALLAST_LOG_FILE|$LD_PRELOAD|$1"' - "it's"
same "$(sh "$T/out")" "$T/a b'c|$lib|it's" "the output as a script"

# The last one counts; keys in any case; a percentage; long names.
try 0 ballast run --dry-run -v -q -b 1G --budget 50% -o ARENA=2G true
has out BALLAST_LOG_LEVEL=warn BALLAST_GPU_BUDGET=50% BALLAST_ARENA=2G
lacks out debug 1G

# Options end at the program's name, with or without --.
try 0 ballast run --dry-run echo -b --arena
has out 'echo -b --arena'
lacks out BALLAST_ARENA

# A relative log file is found from any folder.
(cd "$T" && bin/ballast run --dry-run --log my.log true) >"$T/out"
has out "BALLAST_LOG_FILE=$T/my.log"

# Errors: status 2, the culprit by name, the way to the help.
refuse()
{
	text=$1
	shift
	try 2 ballast "$@"
	empty out
	has err "$text" "try 'ballast help"
}
refuse "'lots' is no value for gpu_budget" run -b lots -- true
refuse "'-5' is no value for arena" run --arena -5 -- true
refuse "no key 'colour'" run -o colour=red -- true
refuse "is no value for report_memory" run -o report_memory=none -- true
refuse "physical|reclaimable|virtual" run -o report_memory=none -- true
refuse "is no value for wait_ms" run -o wait_ms=soon -- true
refuse "wants key=value" run -o arena -- true
refuse "no option '--bogus'" run --bogus -- true
refuse "'--quiet=1' takes no value" run --quiet=1 -- true
refuse "no option '-Z'" run -Z -- true
refuse "'--arena' needs a value" run --arena
refuse "'-b' needs a value" run -b
refuse "which program?" run
refuse "which program?" run -q --
refuse "no command 'rnu'" rnu
refuse "ballast run -- ./prog" ./prog
refuse "no command 'nope'" help nope
refuse "no option '-x'" -x
refuse "which command?"

# Help and version go to standard output.
for args in --help -h help; do
	try 0 ballast $args
	has out 'Usage: ballast' run config stats
	empty err
done
for command in run config stats help; do
	try 0 ballast help $command
	has out "Usage: ballast $command"
	try 0 ballast $command --help
	has out "Usage: ballast $command"
done
try 0 ballast --version
grep -qE '^ballast [0-9]+\.[0-9]+\.[0-9]+$' "$T/out" || fail "version"

# The user's own LD_PRELOAD stays, after ours; sanitizers stay first.
preload()
{
	LD_PRELOAD=$1 "$T/bin/ballast" run --dry-run true 2>/dev/null |
		sed -n 's/^export LD_PRELOAD=//p'
}
same "$(preload /nowhere/a.so)" "$lib:/nowhere/a.so"
same "$(preload '/nowhere/a.so /nowhere/b.so')" "$lib:/nowhere/a.so:/nowhere/b.so"
same "$(preload /n/a.so:/n/libclang_rt.asan-x86_64.so)" \
	"/n/libclang_rt.asan-x86_64.so:$lib:/n/a.so"
same "$(preload "/n/a.so:$lib")" "$lib:/n/a.so" "nested"

# A path that LD_PRELOAD cannot express is refused, not cut.
mkdir "$T/a b"
cp "$T/bin/"* "$T/a b/"
try 125 "$T/a b/ballast" run -- true
has err 'LD_PRELOAD cannot name'

# Without a library: where it was looked for.
mkdir "$T/alone"
cp "$T/bin/ballast" "$T/alone/"
try 125 "$T/alone/ballast" run -- true
has err "$T/alone/libballast.so" lib/ballast/libballast.so
# Installed: bin/ beside lib/ballast/.
mkdir -p "$T/usr/bin" "$T/usr/lib/ballast/softcuda"
cp "$T/bin/ballast" "$T/usr/bin/"
cp "$lib" "$T/usr/lib/ballast/"
try 0 "$T/usr/bin/ballast" run --dry-run -- true
has out "LD_PRELOAD=$T/usr/lib/ballast/libballast.so"

# --soft: the driver's folder first, its knobs in capitals.
try 125 ballast run --soft -- true
has err 'no software driver'
mkdir "$T/bin/softcuda"
printf 'x\0SOFTCUDA_MEMORY\0SOFTCUDA_H2D_GBPS\0SOFTCUDA_X: no\0SOFTCUDA_' >"$T/bin/softcuda/libcuda.so.1"
: >"$T/usr/lib/ballast/softcuda/libcuda.so.1"
LD_LIBRARY_PATH=/opt/x "$T/bin/ballast" run --dry-run \
	--soft=memory=64M,h2d-gbps=12 true >"$T/out"
has out SOFTCUDA_MEMORY=64M SOFTCUDA_H2D_GBPS=12 \
	"LD_LIBRARY_PATH=$T/bin/softcuda:/opt/x"
refuse "wants key=value" run --soft=memory -- true
refuse "no knob 'memroy'" run --soft=memroy=64M -- true
refuse "no knob 'mem'" run --soft=memory=1G --soft=mem=64M -- true
refuse "--soft=help lists them" run --soft=x=1 -- true
try 0 ballast run --soft=help
same "$(sed -n 's/^  //p' "$T/out" | tr '\n' ' ')" "memory h2d_gbps " knobs
empty err
# Those of the real one are those of its list.
if [ -e "$B/softcuda/libcuda.so.1" ]; then
	try 0 "$B/ballast" run --soft=help
	same "$(sed -n 's/^  //p' "$T/out" | sort)" "$(sed -n \
		's/^KNOB([a-z_0-9]*, SOFTCUDA_\([A-Z_0-9]*\),.*/\1/p' \
		test/softcuda/knobs.def | tr A-Z a-z | sort)" "the real knobs"
fi
(unset LD_LIBRARY_PATH; "$T/usr/bin/ballast" run --dry-run --soft true) \
	>"$T/out"
grep -qx "export LD_LIBRARY_PATH=$T/usr/lib/ballast/softcuda" "$T/out" ||
	fail "an empty element in LD_LIBRARY_PATH"

# The program gets the settings; the parent's environment is not changed.
try 0 ballast run -b 1G -o arena=2G -- sh -c \
	'echo "$BALLAST_GPU_BUDGET $BALLAST_ARENA $LD_PRELOAD"'
same "$(cat "$T/out")" "1G 2G $lib"

# A strategy that is none is told; with --strict nothing is started.
try 0 ballast run -o strategy=nonsense -- true
has err 'there is no strategy "nonsense"'
try 3 ballast run --strict -o strategy=knapsack_block:n_blocks=x -- true
has err "n_blocks is 'x'"
has err 'true was not started'
try 0 ballast run -o strategy=nonsense -o policy=lru -- true
! grep -q nonsense "$T/err" || fail "a strategy without a plan"

# Standard output that cannot be written is an error.
if [ -c /dev/full ]; then
	"$T/bin/ballast" config >/dev/full 2>"$T/err" && fail "/dev/full"
	has err 'cannot write standard output'
fi
finish
