/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frame of the fuzzers.  With clang, libFuzzer calls fuzz_one() through its
 * entry point; otherwise (FUZZ_REPLAY) main() replays the files and folders
 * that are named, so that a finding can be looked at with any compiler.
 */
#ifndef BALLAST_TEST_FUZZ_H
#define BALLAST_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* text[len] is 0.  Aborts on a broken promise. */
void fuzz_one(char *text, size_t len);

#endif
