#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What runs on a real GPU works: the probes in small sizes and a few programs
# on the software driver.  The probes' declarations are the toolkit's, where
# one is installed.

set -eu
B=${B:-build}
CC=${CC:-gcc}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

inc=${CUDA_HOME:-/usr/local/cuda}/include
if [ -f "$inc/cuda.h" ] &&
		[ "$(sed -n 's/^#define CUDA_VERSION //p' "$inc/cuda.h")" -ge 13000 ]
then
	{
		echo '#define __CUDA_API_VERSION_INTERNAL'
		echo '#include <cuda.h>'
		echo '#define CALL(s) void *check_##s(void) { return s; }'
		echo '#define MORE(s, a) CUresult s a;'
		echo '#include "test/gpu/probe_api.def"'
	} >"$tmp/api.c"
	"$CC" -std=gnu11 -I. -I"$inc" -w -fsyntax-only "$tmp/api.c"
fi

# Every part of the output is checked: facts are JSON, and every item is there.
NOBUILD=1 OUT=$tmp/out test/gpu/run.sh --soft --quick
"$B/gpu/probe" --list | awk '{ print $2 }' | while read -r name; do
	if ! grep -q "\"probe\":\"$name\"" "$tmp/out/probe.jsonl"; then
		echo "no fact of the probe $name"
		exit 1
	fi
done
line='{"probe":"[a-z_]*","item":"[a-z-]*","name":"[^"]*","value":[^,]*,'
line=$line'"unit":"[^"]*","status":"[a-z]*","design":"[a-z-]*","note":".*"}'
if grep -vx "$line" "$tmp/out/probe.jsonl"; then
	echo "the lines above are not as documented"
	exit 1
fi
# What softcuda models is answered as modelled: the probes see it.
for fact in '"aliases_of_one_handle","value":1024' \
	'"kernel_writes_it","value":700' '"wrong_words_ld","value":0,' \
	'"cuMemFree","value":1,' '"cuMemUnmap","value":0,' \
	'"prefix_of_a_handle","value":1,'; do
	if ! grep -qF "\"name\":$fact" "$tmp/out/probe.jsonl"; then
		echo "the probes did not find $fact"
		exit 1
	fi
done
# And with the other values of its knobs.
probe()
{
	name=$1
	shift
	rm -f "$tmp/other"
	env LD_LIBRARY_PATH="$B/softcuda" SOFTCUDA_MEMORY=1G \
		SOFTCUDA_LANE_GIPS=0.05 "$@" "$B/gpu/probe" --quick \
		--out "$tmp/other" "$name" >"$tmp/text" 2>&1 || {
		cat "$tmp/text"
		exit 1
	}
}
want()
{
	if ! grep -qF "\"name\":$1" "$tmp/other"; then
		cat "$tmp/text"
		echo "a knob of the driver did not show: $1"
		exit 1
	fi
}
probe alias SOFTCUDA_ALIAS_LIMIT=100
want '"aliases_of_one_handle","value":100,'
probe readonly SOFTCUDA_ALIAS_READONLY=0
want '"read_alias_accepted","value":801,'
probe unmap_used SOFTCUDA_UNMAP_WAITS=1
want '"cuMemUnmap_waits","value":1,'
probe host_numa_vmm SOFTCUDA_HOST_VMM=1
want '"host_numa_works","value":1,'
