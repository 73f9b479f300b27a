/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that several processes know: records are counted in a page that they
 * share.  Called by event.c; guarded by the driver's lock.
 */
#ifndef SOFTCUDA_IPCEVENT_H
#define SOFTCUDA_IPCEVENT_H

#include "test/softcuda/abi.h"
#include "test/softcuda/sim.h"

struct ipc_event;

/* One reference; NULL: no memory. */
struct ipc_event *ipc_event_create(void);
void ipc_event_get(struct ipc_event *e);
void ipc_event_put(struct ipc_event *e);	/* NULL is fine */
void ipc_event_handle(const struct ipc_event *e, CUipcEventHandle *out);
/* Another process's; NULL: *r says why. */
struct ipc_event *ipc_event_open(const CUipcEventHandle *handle, CUresult *r);

/* The number of the latest record, whoever made it; 0: there is none. */
uint64_t ipc_event_latest(const struct ipc_event *e);
bool ipc_event_reached(const struct ipc_event *e, uint64_t number);
/*
 * A record, with its number, and what waits for one of another process; one
 * reference each.  Once a record has been submitted, somebody has to see to it
 * that it comes even if this process makes no more calls: ipc_event_watch().
 */
struct op *ipc_event_record(struct ipc_event *e, uint64_t *number);
struct op *ipc_event_wait(struct ipc_event *e, uint64_t number);
void ipc_event_watch(struct op *record);

#endif
