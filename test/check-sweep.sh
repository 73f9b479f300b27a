#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A sample of the failure sweep (test/soak/sweep.sh, all of it in "make soak").
#
#	B=build test/check-sweep.sh

exec "$(dirname "$0")/soak/sweep.sh" -s 67 -f 7
