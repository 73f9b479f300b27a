#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Help, man pages, README and completion say what the launcher has.
. test/tools/lib.sh

# Every long option of `run` is in its help, man page and completion, except
# the second name of --verbose.
options=$(sed -n 's/^\t{ "\([a-z-]*\)", .*_argument.*/\1/p' tools/cmd_run.c |
	grep -v -x -e debug)
[ "$(echo "$options" | wc -l)" -gt 8 ] || fail "no options found"
ballast help run >"$T/out"
sed 's/\\//g' tools/ballast.1 >"$T/man"
for option in $options; do
	[ "$option" = help ] || has out "--$option"
	[ "$option" = help ] || has man "--$option"
	grep -q -e "--$option" tools/ballast.bash-completion ||
		fail "--$option is not completed"
	# And the program knows it.
	"$T/bin/ballast" run "--$option" 2>"$T/err" >/dev/null
	lacks err "no option"
done

# The other way round: what the texts show exists.
for option in $(grep -oh -e ' --[a-z][a-z-]*' README "$T/out" "$T/man" |
	sort -u); do
	case $option in --json | --template | --model | --version | --help | \
		--html)
		continue ;;
	esac
	echo "$options" | grep -qx -e "${option#--}" ||
		fail "a text names $option"
done

# Exit codes of its own are in help and man page.
for code in $(sed -n 's/^\tEXIT_[A-Z]* = \([0-9]*\),.*/\1/p' tools/cli.h); do
	[ "$code" -gt 1 ] || continue
	has out "$code"
	grep -qx "\.B $code" tools/ballast.1 || fail "$code is not in ballast.1"
done

# Every key and its default are in preload.conf(5), and no other.
ballast config --template | sed -n 's/^\([a-z_]*\) = *\(.*\)/\1 \2/p' |
	while read -r key default; do
		echo ".BR $key \" (${default:-empty})\""
	done | sort >"$T/want"
grep '^\.BR [a-z_]* " (' tools/preload.conf.5 | sort >"$T/have"
cmp -s "$T/want" "$T/have" || { fail "keys"; diff "$T/want" "$T/have"; }

# Version in the README.
has_version=$("$T/bin/ballast" --version | sed 's/ballast //')
grep -q "^Ballast $has_version," README || fail "README names another version"

# What goes for a demonstration is short enough to be read.
for file in README HACKING; do
	awk 'length > 80 { exit 1 }' "$file" || fail "long lines in $file"
done

if command -v man >/dev/null && command -v groff >/dev/null; then
	for page in tools/ballast.1 tools/preload.conf.5 \
			tools/ballast-plan.1 tools/ballast-files.5; do
		groff -man -ww -Tutf8 -z "$page" 2>"$T/err"
		empty err
	done
fi

# Completion, where there is bash.
command -v bash >/dev/null || finish
complete_line()
{
	PATH=$T/bin:$PATH bash -c '
		. tools/ballast.bash-completion
		COMP_WORDS=("$@")
		COMP_CWORD=$(($# - 1))
		_ballast 2>/dev/null
		printf "%s\n" "${COMPREPLY[@]}"' - ballast "$@" | tr '\n' ' '
}
same "$(complete_line conf)" "config "
same "$(complete_line sim)" "simulate "
same "$(complete_line show --ht)" "--html "
same "$(complete_line plan x -s glob)" "global_offload global_offload_strict \
global_tensor_selection_de global_tensor_selection_sa "
same "$(complete_line run --bu)" "--budget "
same "$(complete_line run -o gpu_)" "gpu_budget= gpu_reserve= "
same "$(complete_line config are)" "arena "
same "$(complete_line help st)" "stats "
same "$(complete_line run --arena au)" "auto "
case $(complete_line run -b 1G -- pref) in *--*) fail "options after --" ;; esac
same "$(complete_line run -q ballast --bu)" " "
finish
