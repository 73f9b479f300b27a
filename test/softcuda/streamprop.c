/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of streams: kept and given back; only the priority means
 * something to others, none to this driver.  Called by the program; guarded by
 * the driver's lock.
 */
#include "test/softcuda/stream.h"

#include "test/softcuda/call.h"
#include "test/softcuda/context.h"

/* Where the attribute is kept; NULL for one that streams do not have. */
static CUstreamAttrValue *slot(struct stream *s, CUstreamAttrID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		return &s->attr[0];
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		return &s->attr[1];
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
		return &s->attr[2];
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
		return &s->attr[3];
	default:
		return NULL;
	}
}

static CUresult get_attribute(struct stream *s, CUstreamAttrID id,
	CUstreamAttrValue *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		out->priority = s->priority;
		return CUDA_SUCCESS;
	}
	if (!slot(s, id))
		return CUDA_ERROR_INVALID_VALUE;
	*out = *slot(s, id);
	return CUDA_SUCCESS;
}

static CUresult set_attribute(struct stream *s, CUstreamAttrID id,
	const CUstreamAttrValue *value)
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		s->priority = stream_priority(value->priority);
		return CUDA_SUCCESS;
	}
	if (!slot(s, id))
		return CUDA_ERROR_INVALID_VALUE;
	*slot(s, id) = *value;
	return CUDA_SUCCESS;
}

static CUresult copy_attributes(struct stream *dst, const struct stream *src)
{
	int i;

	for (i = 0; i < STREAM_ATTRS; i++)
		dst->attr[i] = src->attr[i];
	dst->priority = src->priority;
	return CUDA_SUCCESS;
}

static CUresult get_device(const struct stream *s, CUdevice *out)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = s->context->device;
	return CUDA_SUCCESS;
}

#define STREAM_CALL(name, zero, action, ...) \
CUresult name(CUstream handle, __VA_ARGS__) \
{ \
	struct stream *s; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) { \
		c.result = stream_find(c.context, handle, zero, &s); \
		if (!c.result) \
			c.result = action; \
	} \
	return call_end(&c); \
}

#define STREAM_CALLS(name, action, ...) \
	STREAM_CALL(name, STREAM_0_LEGACY, action, __VA_ARGS__) \
	STREAM_CALL(name##_ptsz, STREAM_0_PER_THREAD, action, __VA_ARGS__)

STREAM_CALLS(cuStreamGetAttribute, get_attribute(s, id, out),
	CUstreamAttrID id, CUstreamAttrValue *out)
STREAM_CALLS(cuStreamSetAttribute, set_attribute(s, id, value),
	CUstreamAttrID id, const CUstreamAttrValue *value)
STREAM_CALLS(cuStreamGetDevice, get_device(s, out), CUdevice *out)

#define COPY(name, zero) \
CUresult name(CUstream dst, CUstream src) \
{ \
	struct stream *d, *s; \
	struct call c; \
\
	if (!call_begin(&c, __func__, CALL_CONTEXT)) { \
		c.result = stream_find(c.context, dst, zero, &d); \
		if (!c.result) \
			c.result = stream_find(c.context, src, zero, &s); \
		if (!c.result) \
			c.result = copy_attributes(d, s); \
	} \
	return call_end(&c); \
}

COPY(cuStreamCopyAttributes, STREAM_0_LEGACY)
COPY(cuStreamCopyAttributes_ptsz, STREAM_0_PER_THREAD)
