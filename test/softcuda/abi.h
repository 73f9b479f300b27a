/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's ABI, with every function of it exported.  Everything else in
 * the software driver is hidden by the compiler's default.
 */
#ifndef SOFTCUDA_ABI_H
#define SOFTCUDA_ABI_H

#pragma GCC visibility push(default)
#include "shim/cuda_abi.h"
#pragma GCC visibility pop

#endif
