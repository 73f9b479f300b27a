#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The order of modules: a file includes, and calls, only what stands before it
# in the list below.  Includes come from the compiler's .d files, calls from
# the objects' symbol tables.  Also what the software driver, the launcher, the
# planner and the e2e programs may include.

set -eu
B=${B:-build}
O=${O:-build/obj/gcc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# What stands on one line may not use each other, unless the line begins with
# "=": one layer, or one module of several files.
cat >"$tmp/order" <<'END'
=compiler log lock conf conf_int conf_value stats status
=cuda_abi cuda_abi_copy cuda_proto cuda_result cuda_attr cuda_api api_table resolve resolve_x86_64 init
device
=context event
chunk
arena
host
alloc
kernarg
=outfile trace
mover
dirty
section page_set period visit
=observe observe_int observe_set observe_backbone observe_profile observe_times
=tenancy policy tenancy_int tenancy_part tenancy_pair turn pool pool_int pool_place pool_size release unit fetch demote fix prefetch schedule schedule_make in_place
=vmm vmm_int vmm_map vmm_native
capture
=timing gauge convert convert_int convert_unit phase phase_int phase_plan phase_file phase_mix phase_order phase_trial phase_turn
trust
=issue issue_int issue_green issue_mem issue_pointer issue_pool issue_share issue_touch issue_unit issue_vmm
hook_batch hook_copy hook_copy2d hook_ctx hook_graph hook_launch hook_mem hook_module hook_pointer hook_sync hook_vmm
END

# "file header" for every header that a file includes, directly or not.
deps()
{
	find "$O/$1" -name '*.d' 2>/dev/null | while read -r d; do
		# Not what is left of a file that is gone.
		f=${d#"$O/"}
		[ ! -e "${f%.d}.c" ] || echo "$d"
	# shellcheck disable=SC2016 # awk, not shell
	done | xargs -r awk '
		FNR == 1 { done = 0; text = "" }
		done { next }
		{ more = sub(/\\$/, ""); text = text " " $0 }
		!more {
			done = 1
			n = split(text, w, " ")
			for (i = 3; i <= n; i++)
				if (w[i] !~ /^\//)
					print w[2] " " w[i]
		}' | sort -u
}

bad=0

# ---- the library

deps shim >"$tmp/deps"
if [ ! -s "$tmp/deps" ]; then
	echo "no .d files below $O/shim"
	exit 1
fi
# Calls: each undefined symbol of an object, and the object that defines it.
nm -A "$O"/shim/*.o | sed -e "s|^$O/||" -e 's|\.o:| |' | awk '
	NF == 3 && $2 == "U" { print "U " $1 ".c " $3 }
	NF == 4 && $3 ~ /^[TDBRVC]$/ { print "D " $1 ".c " $4 }' | awk '
	$1 == "D" { where[$3] = $2 }
	$1 == "U" { user[++n] = $2; sym[n] = $3 }
	END {
		for (i = 1; i <= n; i++)
			# The table of wrappers names those in the hooks.
			if (sym[i] in where && !(sym[i] ~ /^cu[A-Z]/))
				print user[i] " " where[sym[i]]
	}' | sort -u >"$tmp/calls"

cat "$tmp/deps" "$tmp/calls" | awk -v order="$tmp/order" '
	BEGIN {
		while ((getline line < order) > 0) {
			rank++
			open = sub(/^=/, "", line)
			n = split(line, w, " ")
			for (i = 1; i <= n; i++) {
				place[w[i]] = rank
				peer[w[i]] = open
			}
		}
	}
	function stem(path) {
		sub(/^.*\//, "", path)
		sub(/\.[a-zA-Z]*$/, "", path)
		return path
	}
	function known(path) {
		if (stem(path) in place)
			return 1
		if (!said[path]++)
			print path ": no place in check-layers.sh"
		bad = 1
		return 0
	}
	{
		if (!known($1))
			next
		if ($2 ~ /^planner\/(planner\.h|timeline\.h|plan_io\.h|plan_text\.h|bound\.h|optimal\.h|plan_(status|params)\.def)$/ &&
				place[stem($1)] > 2)
			next
		if ($2 !~ /^shim\//) {
			print $1 ": may not use " $2
			bad = 1
			next
		}
		if (!known($2))
			next
		a = stem($1)
		b = stem($2)
		if (a == b || place[b] < place[a] ||
				(place[a] == place[b] && peer[a]))
			next
		print $1 ": may not use " $2
		bad = 1
	}
	END { exit bad }' || bad=1

# ---- everything else

# allowed FOLDER PATTERN: its files include only what matches.
allowed()
{
	if deps "$1" | awk -v ok="$2" '$2 !~ ok { print $1 ": may not use " $2
			bad = 1 } END { exit !bad }'; then
		bad=1
	fi
}

abi='^shim/cuda_(abi|abi_copy|proto)\.h$|^shim/cuda_(result|attr)\.def$'
allowed test/softcuda "^test/softcuda/|$abi"
allowed test/e2e "^test/e2e/|^test/include/cuda\.h$|$abi"
allowed tools '^tools/|^planner/|^shim/(compiler|log|lock|conf|stats|status)\.(h|def)$'
allowed planner '^planner/'

# The e2e programs name <cuda.h> and the C library, nothing of ours.
if grep -n '#include "' test/e2e/*.c test/e2e/*.h | grep -v '"test/e2e/'; then
	echo "the e2e programs above include more than <cuda.h>"
	bad=1
fi
if grep -n '#include "shim/' test/softcuda/*.[ch] |
		grep -Ev 'cuda_(abi|proto)\.h"|cuda_(result|attr)\.def"'; then
	echo "the software driver includes the library's code above"
	bad=1
fi
exit $bad
