/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: what the check for leaks wants to know.
 */
#ifndef SOFTCUDA_VMM_H
#define SOFTCUDA_VMM_H

/* Handles of cuMemCreate not released. */
unsigned vmm_nr_handles(void);

#endif
