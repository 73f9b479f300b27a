#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Rules of tenancy between threads (test/mutant.sh):
#
#	1 pins		a pinned slot never gets a new tenant
#	2 sections	a resident page leaves only after every open issue
#			section has closed
#
# The software driver delays threads at the entry of driver calls by the seeds
# below; the library must pass with every seed, the other must fail with at
# least one.
#
#	B=build CC=gcc test/check-preempt.sh

set -u
. "$(dirname "$0")/mutant.sh"

rule pins 1 "1 3 4 5 6" 20M "$B/e2e/mtstreams" --threads 3 --mats 3 --rounds 3
rule sections 2 "1,200 3,200 4,200 5,200 7,200" 16M "$B/e2e/spill" \
	--base 6000000 --hot 2100000 --rounds 8 --steps 12
exit $status
