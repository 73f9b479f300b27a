/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the probes share.  A probe asks a real driver one question of the
 * design; it is a function without arguments that runs in its own process,
 * since an illegal access or a hang ends the process.  It answers in facts:
 * a JSON line in the result file and a row of the table on standard output.
 * Only probe.c starts processes; probe_dev.c talks to the driver; probe_out.c
 * writes.  One thread calls, except where a probe says otherwise.
 */
#ifndef GPU_PROBE_H
#define GPU_PROBE_H

#include "shim/cuda_abi.h"

#define PROBE_KIB ((size_t)1 << 10)
#define PROBE_MIB ((size_t)1 << 20)
#define PROBE_GIB ((size_t)1 << 30)
#define PROBE_LEN(a) (sizeof(a) / sizeof((a)[0]))

struct probe_api {
#define CALL(symbol) __typeof__(symbol) *symbol;
#define MORE(symbol, args) CUresult (*symbol) args;
#include "test/gpu/probe_api.def"
#undef CALL
#undef MORE
};

/* The driver's functions; set by probe_open. */
extern struct probe_api drv;
/* Set from --quick: small sizes and few rounds, to try the probes out. */
extern int probe_quick;

/* ---- facts (probe_out.c) -------------------------------------------------- */

enum probe_status {
	PROBE_OK,
	PROBE_FAILED,		/* the question could not be answered */
	PROBE_UNSUPPORTED,	/* the driver or device says that it cannot */
	PROBE_TIMEOUT,
};

/* Facts of `item` go to the file `path` (appended to) from now on. */
int probe_out_open(const char *path, const char *key, const char *item);

/* A number that the design has no opinion on. */
void probe_value(const char *name, double value, const char *unit,
	const char *note, ...) __attribute__((format(printf, 4, 5)));

/* A fact beside what the design assumes. */
void probe_verdict(const char *name, double value, const char *unit, int agrees,
	const char *assumes, const char *note, ...)
	__attribute__((format(printf, 6, 7)));

/* No answer: the status and why. */
void probe_status(const char *name, enum probe_status status, const char *note,
	...) __attribute__((format(printf, 3, 4)));

/* No answer since `call` failed; NOT_SUPPORTED is unsupported. */
void probe_error(const char *name, CUresult r, const char *call);

/* The name of a result without its prefix, "success" for 0; static. */
const char *probe_result(CUresult r);

/* PROBE_TRY("copy", drv.cuX(...)): on an error the fact, and the probe ends. */
#define PROBE_TRY(name, call) do {					\
	CUresult try_result = (call);					\
									\
	if (try_result != CUDA_SUCCESS) {				\
		probe_error(name, try_result, #call);			\
		return;							\
	}								\
} while (0)

/* Inside functions that return a result. */
#define PROBE_PASS(call) do {						\
	CUresult pass_result = (call);					\
									\
	if (pass_result != CUDA_SUCCESS)				\
		return pass_result;					\
} while (0)

/* PROBE_HAS(cuX): else the fact that it is missing, and the probe ends. */
#define PROBE_HAS(symbol) do {						\
	if (!drv.symbol) {						\
		probe_status(#symbol, PROBE_UNSUPPORTED,		\
			"the driver does not export it");		\
		return;							\
	}								\
} while (0)

/* ---- device (probe_dev.c) --------------------------------------------------- */

/*
 * Loads the driver and makes device 0's primary context current.  0, or the
 * exit status: 77 where there is no driver or no device, 1 on errors.
 */
int probe_open(void);
/* Frees the host memory given out; the context goes with the process. */
void probe_close(void);

CUdevice probe_device(void);
int probe_attribute(CUdevice_attribute a);
/* Whether physical memory can be mapped; if not, the fact `unsupported`. */
int probe_has_vmm(void);
double probe_now_us(void);

/* Full size, or the small one under --quick. */
static inline size_t probe_pick(size_t full, size_t quick)
{
	return probe_quick ? quick : full;
}

/* Host memory, zeroed, owned by the framework until the end.  Never NULL. */
void *probe_host(size_t size);
/* The same, pinned and seen by the device; NULL and a fact if there is none. */
void *probe_pinned(size_t size);

/* The unit of physical memory on this device. */
size_t probe_grain(void);
CUmemAllocationProp probe_prop(void);
CUresult probe_create(CUmemGenericAllocationHandle *h, size_t size);
CUresult probe_reserve(CUdeviceptr *va, size_t size);
CUresult probe_access(CUdeviceptr va, size_t size, CUmemAccess_flags flags);
/* Maps the whole handle and gives device 0 the rights. */
CUresult probe_map(CUdeviceptr va, size_t size, CUmemGenericAllocationHandle h,
	CUmemAccess_flags flags);
/* `nr` new handles of `size` side by side at a new address; handles in h. */
CUresult probe_tile(CUdeviceptr *va, size_t nr, size_t size,
	CUmemGenericAllocationHandle *h);

CUresult probe_stream(CUstream *s);		/* non-blocking */
CUresult probe_event(CUevent *e);		/* without timing */
CUresult probe_timer(CUevent *e);		/* with timing */
/* Milliseconds between two recorded timers, after waiting for the second. */
CUresult probe_elapsed(double *ms, CUevent from, CUevent to);

/* ---- kernels (probe_dev.c, texts in probe_ptx.h) ----------------------------- */

/* The text's module; on failure a result and, on stderr, the compiler's log. */
CUresult probe_module(CUmodule *mod, const char *ptx);
/* A kernel of probe_ptx_base. */
CUresult probe_kernel(CUfunction *f, const char *name);
CUresult probe_launch(CUfunction f, unsigned int grid, unsigned int block,
	CUstream s, void **params);
/* Writes word i = i * 0x9e3779b1 + seed. */
CUresult probe_fill(CUdeviceptr p, size_t size, uint32_t seed, CUstream s);
void probe_fill_host(void *p, size_t size, uint32_t seed);
/* Adds the number of words that differ from that to *bad; kernel "check". */
CUresult probe_check(CUfunction check, CUdeviceptr p, size_t size,
	uint32_t seed, CUdeviceptr bad, CUstream s);
/* A kernel that reads every 16 bytes of the range `rounds` times. */
CUresult probe_read(CUdeviceptr p, size_t size, unsigned int rounds,
	CUstream s);
/* GB/s of one pass of that, the best of `tries`. */
CUresult probe_read_rate(double *gbps, CUdeviceptr p, size_t size,
	unsigned int tries);
/* A kernel of one thread that takes about that long. */
CUresult probe_spin(CUstream s, double ms);
/* Whether the stream has finished; -1 on an error. */
int probe_idle(CUstream s);

#endif
