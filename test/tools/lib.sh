# SPDX-License-Identifier: Apache-2.0
#
# Frame of the launcher's tests; sourced by test_*.sh, which the test runner
# starts in the top folder.  B is the build folder (default: build).  Each test
# gets a temporary folder $T that is its own, with a copy of the launcher and
# a stand-in library in $T/bin.  Exit status: 0 passed, 1 failed, 77 skipped.

set -u
B=${B:-build}
: "${CC:=gcc}"
case $B in /*) ;; *) B=$PWD/$B ;; esac
TOP=$PWD
T=$(mktemp -d "${TMPDIR:-/tmp}/ballast-test.XXXXXX") || exit 1
trap 'rm -rf "$T"' EXIT
trap 'exit 1' INT TERM HUP
failed=0

for name in $(env | sed -n 's/^\(BALLAST_[A-Z_]*\)=.*/\1/p'); do
	unset "$name"
done
unset LD_PRELOAD

skip()
{
	echo "skip: $*"
	exit 77
}

fail()
{
	echo "FAIL: $*"
	failed=1
}

finish()
{
	exit "$failed"
}

[ -x "$B/ballast" ] || { echo "no $B/ballast: run make first"; exit 1; }
mkdir "$T/bin" "$T/run"
cp "$B/ballast" "$T/bin/"
XDG_RUNTIME_DIR=$T/run
export XDG_RUNTIME_DIR

# build_c OUTPUT SOURCE... [FLAGS]: tests compile their own helpers, plainly.
build_c()
{
	out=$1
	shift
	command -v "${CC%% *}" >/dev/null || skip "no compiler $CC"
	$CC -std=gnu11 -O1 -Wall -D_GNU_SOURCE -I"$TOP" -o "$out" "$@" ||
		{ echo "cannot build $out"; exit 1; }
}

# The stand-in does what FAKE_* says at start; see fake_ballast.c.
build_c "$T/bin/libballast.so" -shared -fPIC \
	"$TOP/test/tools/fake_ballast.c" "$TOP/shim/status.c" "$TOP/shim/stats.c"

# try WANTED_STATUS COMMAND...: output into $T/out and $T/err.
try()
{
	want=$1
	shift
	"$@" >"$T/out" 2>"$T/err"
	got=$?
	[ "$got" -eq "$want" ] && return 0
	fail "exit $got, not $want: $*"
	sed 's/^/  out: /' "$T/out"
	sed 's/^/  err: /' "$T/err"
}

ballast()
{
	"$T/bin/ballast" "$@"
}

# has FILE TEXT..., lacks FILE TEXT...: fixed strings.
has()
{
	file=$1
	shift
	for text; do
		grep -qF -e "$text" "$T/$file" && continue
		fail "no '$text' in $file:"
		sed 's/^/  /' "$T/$file"
	done
}

lacks()
{
	file=$1
	shift
	for text; do
		grep -qF -e "$text" "$T/$file" || continue
		fail "'$text' in $file:"
		sed 's/^/  /' "$T/$file"
	done
}

same()
{
	[ "$1" = "$2" ] || fail "'$1', not '$2'${3:+ ($3)}"
}

empty()
{
	[ ! -s "$T/$1" ] || { fail "$1 is not empty:"; sed 's/^/  /' "$T/$1"; }
}

# await COMMAND...: until it succeeds, at most 10 s.
await()
{
	n=0
	until "$@" 2>/dev/null; do
		n=$((n + 1))
		[ "$n" -lt 500 ] || { fail "waited in vain for: $*"; return 1; }
		sleep 0.02
	done
}
