/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace file, see trace.h.  A process is a device (or the host), a thread
 * is an engine (or a host thread).
 */
#include "test/softcuda/trace.h"

#include <stdio.h>

#include "test/softcuda/knobs.h"
#include "test/softcuda/launch.h"
#include "test/softcuda/sim.h"

#define HOST_PID 100

static FILE *file;

void trace_open(void)
{
	static const char *const engines[] = { "H2D", "D2H", "compute",
		"host functions" };
	int d, k;

	if (!knobs.trace)
		return;
	file = fopen(knobs.trace, "we");
	if (!file) {
		fprintf(stderr, "softcuda: cannot write %s\n", knobs.trace);
		return;
	}
	fprintf(file, "[{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\","
		"\"args\":{\"name\":\"host\"}}", HOST_PID);
	for (d = 0; d < knobs.devices; d++) {
		fprintf(file, ",\n{\"ph\":\"M\",\"pid\":%d,\"name\":"
			"\"process_name\",\"args\":{\"name\":\"device %d\"}}",
			d, d);
		for (k = 0; k < NR_ENGINES; k++)
			fprintf(file, ",\n{\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
				"\"name\":\"thread_name\",\"args\":{\"name\":"
				"\"%s\"}}", d, k, engines[k]);
	}
}

void trace_close(void)
{
	if (!file)
		return;
	fputs("]\n", file);
	fclose(file);
	file = NULL;
}

static void event(const char *name, int pid, unsigned tid, uint64_t from,
	uint64_t to)
{
	fprintf(file, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":%u,"
		"\"ts\":%llu.%03u,\"dur\":%llu.%03u", name, pid, tid,
		(unsigned long long)(from / 1000), (unsigned)(from % 1000),
		(unsigned long long)((to - from) / 1000),
		(unsigned)((to - from) % 1000));
}

void trace_op(const struct op *op)
{
	const char *name;

	if (!file)
		return;
	name = launch_kernel_name(op);
	event(name ? name : op->type->name, op->device,
		(unsigned)op->type->engine, op->start_ns, op->end_ns);
	fprintf(file, ",\"args\":{\"op\":%llu,\"stream\":%llu,\"submit_us\":"
		"%llu.%03u}}", (unsigned long long)op->number,
		(unsigned long long)op->stream_id,
		(unsigned long long)(op->submit_ns / 1000),
		(unsigned)(op->submit_ns % 1000));
}

void trace_call(const char *name, unsigned thread, uint64_t start_ns)
{
	if (!file)
		return;
	event(name, HOST_PID, thread, start_ns, sim_now());
	fputs("}", file);
}
