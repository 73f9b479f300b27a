/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of Ballast's own driver calls are legal while the program captures a
 * stream: by mode of the capture, in the capturing thread and in another one,
 * as they are and after cuThreadExchangeStreamCaptureMode(RELAXED).  A call
 * counts as legal when it succeeds and the capture survives.  Run by probe.c in
 * its own process; the other thread lives only while this one waits for it.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "test/gpu/probe_calls.h"

void probe_capture(void);

static const struct way {
	const char *name;
	CUstreamCaptureMode mode;
	int other, relaxed;	/* thread; whether it goes to RELAXED */
} ways[] = {
	{ "global", CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 0 },
	{ "global+relaxed", CU_STREAM_CAPTURE_MODE_GLOBAL, 0, 1 },
	{ "thread", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0, 0 },
	{ "thread+relaxed", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 0, 1 },
	{ "relaxed", CU_STREAM_CAPTURE_MODE_RELAXED, 0, 0 },
	{ "other", CU_STREAM_CAPTURE_MODE_GLOBAL, 1, 0 },
	{ "other+relaxed", CU_STREAM_CAPTURE_MODE_GLOBAL, 1, 1 },
};

struct attempt {
	const struct probe_call *call;
	int relaxed;
	CUcontext ctx;
	CUresult r;
};

/* The call, in whatever thread this is. */
static void make_call(struct attempt *a)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	if (a->relaxed && drv.cuThreadExchangeStreamCaptureMode(&mode)) {
		a->r = CUDA_ERROR_UNKNOWN;
		return;
	}
	a->r = a->call->call();
	if (a->relaxed)
		(void)drv.cuThreadExchangeStreamCaptureMode(&mode);
}

static void *other_thread(void *arg)
{
	struct attempt *a = arg;

	a->r = drv.cuCtxSetCurrent(a->ctx);
	if (a->r == CUDA_SUCCESS)
		make_call(a);
	return NULL;
}

/*
 * One call during one capture.  *call_r and *end_r: what it and the end of the
 * capture gave; the result is that of everything around them.
 */
static CUresult try_way(const struct probe_call *c, const struct way *w,
	CUstream s, CUfunction nop, CUresult *call_r, CUresult *end_r)
{
	struct attempt a = { .call = c, .relaxed = w->relaxed };
	CUgraph graph = NULL;
	pthread_t t;

	PROBE_PASS(probe_call_set(c));
	PROBE_PASS(drv.cuCtxSynchronize());
	PROBE_PASS(drv.cuCtxGetCurrent(&a.ctx));
	PROBE_PASS(drv.cuStreamBeginCapture_v2(s, w->mode));
	PROBE_PASS(probe_launch(nop, 1, 1, s, NULL));
	if (!w->other)
		make_call(&a);
	else if (pthread_create(&t, NULL, other_thread, &a))
		return CUDA_ERROR_OUT_OF_MEMORY;
	else
		pthread_join(t, NULL);
	*call_r = a.r;
	*end_r = drv.cuStreamEndCapture(s, &graph);
	if (graph && drv.cuGraphDestroy)
		(void)drv.cuGraphDestroy(graph);
	return CUDA_SUCCESS;
}

static void one_call(const struct probe_call *c, CUstream s, CUfunction nop)
{
	int legal = 0, wanted = 0, wanted_legal = 0;
	char note[400] = "";

	for (size_t i = 0; i < PROBE_LEN(ways); i++) {
		CUresult r = CUDA_SUCCESS, end = CUDA_SUCCESS;
		size_t len = strlen(note);
		int ok;

		PROBE_TRY(c->name, try_way(c, &ways[i], s, nop, &r, &end));
		ok = r == CUDA_SUCCESS && end == CUDA_SUCCESS;
		legal += ok;
		if (ways[i].relaxed) {
			wanted++;
			wanted_legal += ok;
		}
		snprintf(note + len, sizeof(note) - len, "%s%s %s",
			i ? ", " : "", ways[i].name, ok ? "ok"
			: probe_result(r == CUDA_SUCCESS ? end : r));
	}
	if (c->in_capture)
		probe_verdict(c->name, legal, "ways", wanted_legal == wanted,
			"the call is legal in RELAXED mode during a capture",
			"%s", note);
	else
		probe_value(c->name, legal, "ways", "%s", note);
}

void probe_capture(void)
{
	CUgraph graph;
	CUfunction nop;
	CUstream s;

	if (!probe_has_vmm())
		return;
	PROBE_TRY("kernel", probe_kernel(&nop, "nop"));
	PROBE_TRY("stream", probe_stream(&s));
	/* Loads the code now, since loading might not be legal later. */
	PROBE_TRY("launch", probe_launch(nop, 1, 1, s, NULL));
	PROBE_TRY("sync", drv.cuStreamSynchronize(s));
	PROBE_TRY("begin", drv.cuStreamBeginCapture_v2(s,
		CU_STREAM_CAPTURE_MODE_GLOBAL));
	PROBE_TRY("end", drv.cuStreamEndCapture(s, &graph));
	for (size_t i = 0; i < probe_nr_calls; i++)
		one_call(&probe_calls[i], s, nop);
}
