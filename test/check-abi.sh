#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Our declarations of the CUDA ABI are equal to the toolkit's, where one of
# version 13.0 or later is installed (CUDA_HOME or /usr/local/cuda):
#
#	prototypes	cuda_proto.h compiled after cuda.h, every name declared
#	types		sizes, offsets and values, printed by one program that is
#			compiled against either header
#	rows		cuda_api.def against the PFN types of cudaTypedefs.h, and
#			against the software driver's list of exports
#	short names	test/include/cuda.h against cuda.h's macros

set -eu
CC=${CC:-gcc}
inc=${CUDA_HOME:-/usr/local/cuda}/include
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0

say()
{
	echo "$*"
	bad=1
}

# ---- rows against the list of exports; needs no toolkit

printf '%s\n' '#define HOOK(s,b,v,f) s b v' '#define CALL HOOK' \
	'#include "shim/cuda_api.def"' | "$CC" -E -P -I. - | sed '/^ *$/d' |
	LC_ALL=C sort >"$tmp/rows"
printf '%s\n' '#define EXPORT(s,b,v,f) s b v' \
	'#include "test/softcuda/exports.def"' | "$CC" -E -P -I. - |
	sed '/^ *$/d' | LC_ALL=C sort >"$tmp/exports"
LC_ALL=C comm -23 "$tmp/rows" "$tmp/exports" >"$tmp/unknown"
[ ! -s "$tmp/unknown" ] || say "rows of cuda_api.def that exports.def does" \
	"not have: $(cat "$tmp/unknown")"
[ "$(cut -d' ' -f1 "$tmp/rows" | uniq -d | wc -l)" -eq 0 ] ||
	say "cuda_api.def names a symbol twice"

if [ ! -f "$inc/cuda.h" ] || [ ! -f "$inc/cudaTypedefs.h" ]; then
	[ $bad -eq 0 ] || exit 1
	echo "no CUDA toolkit"
	exit 77
fi
version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$inc/cuda.h")
if [ "${version:-0}" -lt 13000 ]; then
	[ $bad -eq 0 ] || exit 1
	echo "the toolkit's version is $version, not 13000 or later"
	exit 77
fi

compile()
{
	"$CC" -std=gnu11 -I. -w -fsyntax-only "$@" 2>"$tmp/errors"
}

# ---- prototypes

names=$(sed 's|/\*.*\*/||' shim/cuda_proto.h |
	grep -o '^CUresult cu[A-Za-z0-9_]*' | sed 's/^CUresult //')
{
	echo '#define __CUDA_API_VERSION_INTERNAL'
	echo '#include <cuda.h>'
	echo 'void *all[] = {'
	for n in $names; do
		echo "(void *)$n,"
	done
	echo '};'
	echo '#include "shim/cuda_proto.h"'
} >"$tmp/proto.c"
compile -I"$inc" "$tmp/proto.c" || say "prototypes: $(cat "$tmp/errors")"

# ---- types

# Our part of the preprocessed header, as one line.
printf '#include "shim/cuda_abi.h"\n' | "$CC" -E -I. - | awk '
	/^# [0-9]+ "/ { ours = $3 ~ /shim\// ; next }
	ours' | tr '\n' ' ' | sed 's/[ 	][ 	]*/ /g' >"$tmp/flat"

# Prints C statements that print every type, field and enumerator.
awk '
	function out(text) { printf "\tP(%s);\n", text }
	function name_of(decl) {
		sub(/\[.*$/, "", decl)
		gsub(/[* ]+$/, "", decl)
		sub(/^.*[* ]/, "", decl)
		return decl
	}
	{
		n = length($0)
		for (i = 1; i <= n; i++) {
			c = substr($0, i, 1)
			if (c == "{") {
				depth++
				if (depth == 1) {
					head = text
					body = ""
				} else
					inner = ""
				text = ""
				nested = depth == 2
			} else if (c == "}") {
				depth--
				if (depth == 1)
					closed = 1
				if (depth == 0) {
					body = body text
					text = ""
				}
			} else if (c == ";" && depth == 0) {
				decl(head, body, text)
				head = body = text = ""
			} else if (c == ";" && depth == 1) {
				f = name_of(text)
				fields = fields " " f
				if (closed) {
					m = split(inner, w, " ")
					for (j = 1; j <= m; j++)
						fields = fields " " \
							(f == "" ? "" : f ".") w[j]
					closed = 0
				}
				text = ""
			} else if (c == ";") {
				inner = inner " " name_of(text)
				text = ""
			} else
				text = text c
		}
	}
	function decl(h, b, t,    m, w, j, e) {
		t = name_of(t)
		if (h ~ /typedef enum/) {
			out("sizeof(" t ")")
			m = split(b, w, ",")
			for (j = 1; j <= m; j++) {
				e = w[j]
				sub(/=.*/, "", e)
				gsub(/ /, "", e)
				if (e != "")
					out("(long long)" e)
			}
		} else if (h ~ /typedef (struct|union)/) {
			out("sizeof(" t ")")
			m = split(fields, w, " ")
			for (j = 1; j <= m; j++)
				out("offsetof(" t ", " w[j] ")")
		}
		fields = ""
	}' "$tmp/flat" | grep -v 'CUlaunchAttributeValue, align' >"$tmp/types"
{
	# Plain typedefs, handles, constants.
	grep -o 'typedef [^;{}]*;' "$tmp/flat" | grep -v '(\|_st [A-Za-z]' |
		sed 's/.*[ *]\([A-Za-z0-9_]*\);/	P(sizeof(\1));/'
	grep -o '_st \*[A-Za-z0-9_]*;' "$tmp/flat" |
		sed 's/.*\*\(.*\);/	P(sizeof(\1));/'
	sed -n 's/^#define \(CU_[A-Z0-9_]*\) .*/	P((long long)\1);/p' \
		shim/cuda_abi.h
} >>"$tmp/types"

dump()
{
	{
		echo '#include <stddef.h>'
		echo '#include <stdio.h>'
		echo "$2"
		printf '#define P(x) printf("%%s = %%lld\\n", #x, %s)\n' \
			'(long long)(x)'
		echo 'int main(void)'
		echo '{'
		cat "$tmp/types"
		echo '	return 0;'
		echo '}'
	} >"$tmp/$1.c"
	"$CC" -std=gnu11 -I. -I"$inc" -w -o "$tmp/$1" "$tmp/$1.c" \
		2>"$tmp/errors" || {
		say "types of $1: $(head -n 20 "$tmp/errors")"
		return
	}
	"$tmp/$1" >"$tmp/$1.txt"
}

dump ours '#include "shim/cuda_abi.h"'
dump theirs '#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>'
if [ -f "$tmp/ours.txt" ] && [ -f "$tmp/theirs.txt" ]; then
	diff "$tmp/ours.txt" "$tmp/theirs.txt" ||
		say "types differ: ours <, the toolkit's >"
	# A parser that found nothing would find no difference.
	[ "$(wc -l <"$tmp/ours.txt")" -gt 400 ] ||
		say "only $(wc -l <"$tmp/ours.txt") types and values compared"
	for must in 'sizeof(CUDA_MEMCPY3D)' 'sizeof(CUcontext)' \
		'offsetof(CUmemAllocationProp, allocFlags.usage)' \
		'sizeof(CUdevice)' '(long long)CUDA_ERROR_UNKNOWN' \
		'(long long)CU_STREAM_LEGACY'; do
		grep -qF "$must" "$tmp/ours.txt" || say "$must is not compared"
	done
fi

# ---- rows against the PFN types

cat >"$tmp/rows.c" <<'END'
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>
#include "shim/cuda_proto.h"
#define PFN_LEGACY(p) p
#define PFN_PTDS(p) p##_ptds
#define PFN_PTSZ(p) p##_ptsz
#define PFN(base, since, fl) PFN_##fl(PFN_##base##_v##since)
#define HOOK(sym, base, since, fl) \
	_Static_assert(__builtin_types_compatible_p(PFN(base, since, fl), \
		__typeof__(&sym)), #sym);
#define CALL HOOK
#include "shim/cuda_api.def"
END
compile -I"$inc" "$tmp/rows.c" || say "rows: $(head -n 30 "$tmp/errors")"

# ---- short names

bases=$(for n in $names; do
	case $n in
	*_ptsz|*_ptds) ;;
	*)	echo "${n%%_v[0-9]*}" ;;
	esac
done | sort -u)
expand_names()
{
	{
		echo '#include <cuda.h>'
		for n in $bases; do
			printf '"%s" %s\n' "$n" "$n"
		done
	} | "$CC" -E -P -I. "$@" - | grep '^"cu'
}
expand_names -Itest/include >"$tmp/short.ours"
expand_names -I"$inc" >"$tmp/short.theirs"
diff "$tmp/short.ours" "$tmp/short.theirs" ||
	say "short names: test/include/cuda.h <, the toolkit's >"

exit $bad
