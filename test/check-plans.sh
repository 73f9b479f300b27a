#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A sample of the matrix of plans (test/soak/plans.sh, all of it in "make soak").
#
#	B=build test/check-plans.sh

exec "$(dirname "$0")/soak/plans.sh" -s 20 streams models train packed order
