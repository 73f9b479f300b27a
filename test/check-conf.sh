#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The committed preload.conf is the one that conf.def gives.  After a change
# there: make update-conf.

set -eu
B=${B:-build}
if ! BALLAST_CONFIG='' "$B/ballast" config --template | diff -u preload.conf -
then
	echo "preload.conf is not current; run: make update-conf"
	exit 1
fi
