#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Rules of tenancy between threads (test/mutant.sh):
#
#	3 hands		who lacks chunks waits for those that others have in
#			their hands
#	4 turns		a call that waits for nearly the whole pool is not
#			passed by smaller ones
#
# The program itself has threads stopped in their calls (held.c), so no seed is
# needed.  In about one run of twelve, more on a busy machine, a launch without
# rule 3 finds slots to wait for, so it has six.
#
#	B=build CC=gcc test/check-held.sh

set -u
. "$(dirname "$0")/mutant.sh"

held="env SOFTCUDA_GRANULARITY=64K BALLAST_MIN_ALLOC=64K BALLAST_WAIT_MS=60000"
# shellcheck disable=SC2086 # one setting a word
rule hands 3 "none none none none none none" 2176K $held "$B/e2e/held" --hands
# shellcheck disable=SC2086
rule turns 4 none 2176K $held "$B/e2e/held" --turns
exit $status
