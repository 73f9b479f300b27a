/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the software driver for tests, beside the CUDA names.  A test
 * finds them with dlsym; where they are missing, the driver is a real one.
 */
#ifndef SOFTCUDA_CTL_H
#define SOFTCUDA_CTL_H

#include <stdint.h>

struct softcuda_stats {
	uint64_t virtual_ns;		/* the virtual clock */
	uint64_t calls;			/* driver calls */
	uint64_t failed_calls;		/* of them, not CUDA_SUCCESS */
	uint64_t h2d_bytes, h2d_copies;
	uint64_t d2h_bytes, d2h_copies;
	uint64_t d2d_bytes, d2d_copies;
	uint64_t set_bytes, sets;
	uint64_t kernels;
	uint64_t lane_instructions;
	uint64_t kernel_bytes;		/* read and written by kernels */
	uint64_t used_bytes;		/* device memory now, all devices */
	uint64_t peak_bytes;		/* at most at one time */
	uint64_t pinned_bytes;		/* host memory now */
	uint64_t pinned_peak_bytes;
	uint64_t h2d_busy_ns;		/* engines, all devices */
	uint64_t d2h_busy_ns;
	uint64_t compute_busy_ns;
	uint64_t creates, releases;	/* virtual memory calls that worked */
	uint64_t maps, unmaps, set_accesses;
	uint64_t allocs, frees;
	uint64_t syncs;			/* calls that waited for work */
	uint64_t mapped_bytes;		/* host memory, by kernels' accesses */
	uint64_t uvm_faults;		/* pages that faults were served in */
	uint64_t uvm_in_bytes, uvm_out_bytes;	/* that moved for them */
	uint64_t races;			/* reports by rule */
	uint64_t reports;		/* all reports, races too */
};

/* Prototypes of what dlsym finds under the names without "_fn". */
typedef uint64_t softcuda_now_ns_fn(void);
typedef void softcuda_get_stats_fn(struct softcuda_stats *);
typedef uint64_t softcuda_nr_reports_fn(void);
/* The latest report's text into buf (truncated); its length, 0 for none. */
typedef uint64_t softcuda_last_report_fn(char *buf, uint64_t size);
/* Forgets reports so far, for tests that provoke them. */
typedef void softcuda_clear_reports_fn(void);
/* The next call of `name` (NULL: any) after `skip` others fails with `code`. */
typedef void softcuda_fail_next_fn(const char *name, uint64_t skip, int code);
/* The calling thread's next call of `name` waits at its entry. */
typedef void softcuda_hold_fn(const char *name);
/* How many threads wait so now. */
typedef uint64_t softcuda_nr_held_fn(void);
/* They go on, and nobody waits who was to. */
typedef void softcuda_let_go_fn(void);
/*
 * What a network card's driver does: the GPU's physical memory that is at
 * [address, address + size) now, whatever is there later.  A descriptor, closed
 * by close(); -1 where such memory cannot be reached.  That of
 * cuMemGetHandleForAddressRange is of the same kind.
 */
typedef int softcuda_dma_open_fn(uint64_t address, uint64_t size);
/* The card reads (writes) the bytes at `offset` now; 0, or -1. */
typedef int softcuda_dma_read_fn(int fd, uint64_t offset, void *to,
	uint64_t n);
typedef int softcuda_dma_write_fn(int fd, uint64_t offset, const void *from,
	uint64_t n);

#endif
