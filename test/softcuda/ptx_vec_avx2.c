/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx_vec.c once more, for machines with AVX2, FMA and BMI (the Makefile gives
 * the flags).  Same results bit for bit: contraction is off in both.
 */
#define PTX_VEC ptx_vec_avx2
#define PTX_VEC_NAME "avx2"
#include "test/softcuda/ptx_vec.c"
