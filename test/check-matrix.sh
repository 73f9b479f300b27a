#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A sample of the long matrix (test/soak/matrix.sh, all of it in "make soak").
#
#	B=build test/check-matrix.sh

exec "$(dirname "$0")/soak/matrix.sh" -s 5 layers train onebuf mtstreams \
	reuse spill
