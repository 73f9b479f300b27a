/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver calls wait for work in flight.  A kernel of known length runs
 * on a non-blocking stream and has nothing to do with what the call is about;
 * when the call returns, the stream is asked whether it has finished.  So the
 * answer needs no host clock and holds on the software driver's virtual time.
 * Run by probe.c, each in its own process.
 */
#include "test/gpu/probe_calls.h"

void probe_waits(void);
void probe_unmap_used(void);

struct waited {
	double ms;		/* how long the kernel runs */
	double alone_us, us;	/* the call without it, and beside it */
	int before, after;	/* whether the kernel had finished */
};

/* The result is that of the preparations; *call_r that of the call. */
static CUresult try_wait(const struct probe_call *c, CUstream busy,
	struct waited *w, CUresult *call_r)
{
	double t0;

	PROBE_PASS(probe_call_set(c));
	PROBE_PASS(drv.cuCtxSynchronize());
	t0 = probe_now_us();
	*call_r = c->call();
	w->alone_us = probe_now_us() - t0;
	if (*call_r != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	/* A slow call must not be taken for one that waits. */
	if (!probe_quick && w->ms * 1000 < 4 * w->alone_us)
		w->ms = w->alone_us < 250e3 ? w->alone_us * 4 / 1000 : 1000;
	PROBE_PASS(probe_call_set(c));
	PROBE_PASS(drv.cuCtxSynchronize());
	PROBE_PASS(probe_spin(busy, w->ms));
	w->before = probe_idle(busy);
	t0 = probe_now_us();
	*call_r = c->call();
	w->us = probe_now_us() - t0;
	w->after = probe_idle(busy);
	return drv.cuStreamSynchronize(busy);
}

static void one_wait(const struct probe_call *c, CUstream busy, double ms)
{
	struct waited w = { .ms = ms };
	CUresult r = CUDA_SUCCESS;

	PROBE_TRY(c->name, try_wait(c, busy, &w, &r));
	if (r != CUDA_SUCCESS) {
		probe_error(c->name, r, c->name);
		return;
	}
	if (w.before)
		probe_status(c->name, PROBE_FAILED,
			"the kernel of %g ms ended too early", w.ms);
	else if (c->waits < 0)
		probe_value(c->name, w.after, "waits", "%.0f us, alone %.0f",
			w.us, w.alone_us);
	else
		probe_verdict(c->name, w.after, "waits", w.after == c->waits,
			c->waits ? "the call waits for work in flight"
				: "the call does not wait for other work",
			"%.0f us, alone %.0f", w.us, w.alone_us);
}

void probe_waits(void)
{
	double ms = probe_pick(40, 20);
	CUstream busy;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("stream", probe_stream(&busy));
	/* Calibrates, so that the first case is like the others. */
	PROBE_TRY("spin", probe_spin(busy, 1));
	for (size_t i = 0; i < probe_nr_calls; i++)
		if (probe_calls[i].waits >= -1)
			one_wait(&probe_calls[i], busy, ms);
}

/* The memory that is unmapped is the one that the kernel reads. */
void probe_unmap_used(void)
{
	size_t size = probe_grain();
	CUmemGenericAllocationHandle h;
	unsigned int rounds = 16;
	CUevent from, to;
	CUdeviceptr va;
	CUstream s;
	CUresult r;
	double ms = 0, t0, us;
	int before, after;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("memory", probe_tile(&va, 1, size, &h));
	PROBE_TRY("stream", probe_stream(&s));
	PROBE_TRY("timer", probe_timer(&from));
	PROBE_TRY("timer", probe_timer(&to));
	for (int i = 0; i < 2; i++) {
		PROBE_TRY("time", drv.cuEventRecord(from, s));
		PROBE_TRY("time", probe_read(va, size, rounds, s));
		PROBE_TRY("time", drv.cuEventRecord(to, s));
		PROBE_TRY("time", probe_elapsed(&ms, from, to));
	}
	if (ms < 30)
		rounds = (unsigned int)(rounds * 30 / (ms > 1e-3 ? ms : 1e-3));
	/* The software driver interprets every one of them. */
	if (probe_quick && rounds > 64)
		rounds = 64;
	PROBE_TRY("read", probe_read(va, size, rounds, s));
	before = probe_idle(s);
	t0 = probe_now_us();
	r = drv.cuMemUnmap(va, size);
	us = probe_now_us() - t0;
	after = probe_idle(s);
	probe_value("running_before", before == 0, "", "%s", "");
	probe_value("cuMemUnmap_waits", after == 1, "waits", "%s, %.0f us",
		probe_result(r), us);
	r = drv.cuStreamSynchronize(s);
	probe_value("kernel_after_it", r, "code", "%s", probe_result(r));
}
